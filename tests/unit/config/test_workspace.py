"""`workspace` in `notyet.toml`: where gates run, and what is wrong about it (M1, M5)."""

import os
from pathlib import Path

import pytest

from notyet.config.compile import compile_text
from notyet.config.compiled import Trusted, freeze, read_record, thaw, write_record
from notyet.config.files import ConfigFile
from notyet.config.find import state_folder
from notyet.config.records import record_path

THERE = "ssh://dev@box/srv/app"
GATES = '[gates]\na = "x"\n[gates.b]\nrun = "y"\ndir = "sub"\n'


def read(text, path="/p/notyet.toml", kind="notyet"):
    return compile_text(text, path, kind)


def where(settings):
    return {gate.name: (gate.check.workspace, gate.check.dir) for gate in settings.gates}


def said(settings):
    return [str(mistake) for mistake in settings.mistakes]


@pytest.mark.rule("M1")
def test_a_workspace_of_the_file_is_where_its_gates_run_and_folders_are_below_it():
    settings = read(f'workspace = "{THERE}"\n{GATES}[observers.o]\nrun = "z"\n')
    assert where(settings) == {"a": (THERE, "/srv/app"), "b": (THERE, "/srv/app/sub")}
    assert settings.workspace == THERE
    (observer,) = settings.observers
    assert (observer.check.workspace, observer.check.dir) == ("", "/p")
    assert thaw(freeze(settings)) == settings


@pytest.mark.rule("M1")
def test_a_workspace_of_a_gate_wins_and_local_is_here():
    settings = read(
        f'workspace = "{THERE}"\n[gates.a]\nrun = "x"\nworkspace = "local"\ndir = "d"\n'
        '[gates.b]\nrun = "y"\nworkspace = "ssh://other:22/x/../y/"\ndir = "d"\n'
    )
    assert where(settings) == {"a": ("local", "/p/d"), "b": ("ssh://other:22/y", "/y/d")}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('"box:/srv/app"', 'begins with ssh:// (did you mean "ssh://box/srv/app"?)'),
        ('"dev@box:/srv"', 'begins with ssh:// (did you mean "ssh://dev@box/srv"?)'),
        ('"ssh:/box/srv"', 'begins with ssh:// (did you mean "ssh://box/srv"?)'),
        ('"http://box/srv"', "begins with ssh:// (write it like ssh://dev@box.example/srv/app)"),
        ('"ssh://box"', "a workspace names a folder, from the root on (write it like"),
        ('"ssh://box/~/app"', "begins at the root: write /home/you, not ~"),
        ('"ssh://me:pw@box/x"', "must not contain a password"),
        ('"ssh://-oProxyCommand=x/x"', "a workspace names a host"),
        ('"ssh://box/a\\nb"', "`workspace` contains a line break"),
        ("7", '`workspace` must be "ssh://[user@]host[:port]/path" or "local", not 7'),
        ('""', "`workspace` must not be blank"),
    ],
)
def test_what_is_wrong_with_a_workspace_is_said_with_its_place_and_no_gate_is_kept(value, message):
    settings = read(f"# first\nworkspace = {value}\n{GATES}[limits]\nmax_blocks = 7\n")
    (found,) = said(settings)
    assert found.startswith("/p/notyet.toml:2:1: `workspace`")
    assert message in found
    assert (settings.gates, settings.workspace) == ((), "")
    assert settings.limits == {"max_blocks": 7}


def test_a_gate_whose_workspace_is_wrong_is_left_out_and_its_neighbours_stay():
    settings = read(GATES + 'workspace = "sh://box/x"\n[gates.c]\nrun = "z"\n')
    assert said(settings) == [
        '/p/notyet.toml:6:1: `gates.b.workspace` is "sh://box/x": a workspace begins '
        "with ssh:// (write it like ssh://dev@box.example/srv/app)"
    ]
    assert list(where(settings)) == ["a", "c"]


@pytest.mark.rule("M5")
def test_a_file_that_is_read_from_a_workspace_speaks_of_that_machine_only():
    path = f"{THERE}/notyet.toml"
    settings = read(f'{GATES}workspace = "local"\n[observers.o]\nrun = "z"\n', path)
    assert where(settings) == {"a": (THERE, "/srv/app"), "b": (THERE, "/srv/app/sub")}
    assert settings.observers[0].check.workspace == THERE
    assert {gate.source.file for gate in settings.gates} == {path}
    settings = read(f'workspace = "ssh://elsewhere/x"\n{GATES}', path)
    assert where(settings)["a"] == (THERE, "/srv/app")
    assert [str(warning) for warning in settings.warnings] == [
        f"{path}:1:1: `workspace` has no effect in a file of the workspace {THERE}"
    ]
    assert settings.workspace == ""
    assert not read(f'workspace = "{THERE}"\n{GATES}', path).warnings
    settings = read(GATES + 'workspace = "ssh://elsewhere/x"\n', path)
    assert list(where(settings)) == ["a"]
    assert said(settings) == [
        f"{path}:6:1: `gates.b.workspace` names another machine or folder than the file's "
        '(leave it out, or write "local" for the machine that the file is on)'
    ]


@pytest.mark.rule("J9", "M5")
def test_a_file_in_a_workspace_does_not_make_us_read_files_here(tmp_path):
    here = tmp_path / "openclaw.json"
    here.write_text('{"agents": {"defaults": {"subagents": {"maxSteerRestarts": 9}}}}')
    settings = read(f'[read]\nopenclaw = "{here}"\n', f"{THERE}/notyet.toml")
    assert (dict(settings.limits), settings.openclaw) == ({}, "")
    (warning,) = settings.warnings
    assert "`read.openclaw` has no effect" in warning.message


@pytest.mark.parametrize(
    ("path", "kind", "command"),
    [
        ("/p/notyet.toml", "notyet", "notyet trust"),
        ("/p/.mux/stop", "mux-stop", "notyet trust --read mux"),
        (f"{THERE}/notyet.toml", "notyet", f"notyet trust {THERE}"),
        (f"{THERE}/.mux/stop", "mux-stop", f"notyet trust {THERE} --read mux"),
        ("ssh://box/it's here/notyet.toml", "notyet", "notyet trust 'ssh://box/it'\"'\"'s%20here'"),
        ("ssh://[::1]/x/notyet.toml", "notyet", "notyet trust 'ssh://[::1]/x'"),
    ],
)
def test_a_file_says_how_to_trust_it(path, kind, command):
    assert ConfigFile(path=path, kind=kind).command == command


@pytest.mark.rule("N5", "M5")
@pytest.mark.parametrize("there", [f"{THERE}/notyet.toml", "ssh://../trust/srv/app/notyet.toml"])
def test_a_record_of_a_file_elsewhere_is_none_of_a_file_here(there):
    state = state_folder(os.environ)
    here = "/ssh:/dev@box/srv/app/notyet.toml"
    others = (here, "/srv/app/notyet.toml", "/dev@box/srv/app/notyet.toml")
    write_record(state, Trusted(path=there, content="x", compiled={}))
    assert read_record(state, there).content == "x"
    assert Path(record_path(state, there)).is_relative_to(Path(state, "trust-there"))
    for path in others:
        assert not os.path.exists(record_path(state, path))
    others = ("ssh://box/srv/app", "ssh://dev@box:22/srv/app", "ssh://dev@box/srv")
    for path in others:
        assert read_record(state, f"{path}/notyet.toml") is None
