"""What an agent there cannot get rid of: gates that were trusted, whatever it does to the look."""

import os
import shutil

import pytest

from config_places import READS, hooks, write, write_own, write_user_toml
from notyet.config.load import NO_LOOK
from notyet.core.event import StopEvent
from notyet.core.record import replace
from notyet.engine.from_project import configured_engine
from workspaces import load_here, load_there, naming, places, trust_there, unreachable, write_there

PROGRAM = "#!/usr/bin/env python3\nimport sys\nsys.exit('not done')\n"


def decided(found, **changes):
    """Ask the gates that are in force."""
    gates = tuple(replace(gate, **changes) for gate in found.gates)
    event = StopEvent(host="mux", session_id="s", cwd=os.getcwd(), workspace=found.workspace)
    return configured_engine(replace(found, gates=gates)).check_sync(event)


@pytest.fixture
def program(warm_box, app):
    """A trusted program, which is run by its path, of the repository that the agent works in."""
    path = write_there(app, ".mux/stop", PROGRAM, mode=0o755)
    trust_there(warm_box, app, ".mux/stop")
    (app / "sub").mkdir()
    return path


@pytest.mark.rule("N5", "M3", "G5")
def test_a_trusted_program_that_was_not_read_cannot_start(warm_box, app, program):
    url = warm_box.url(app)
    assert load_there(warm_box, app / "sub", "mux").offline == ()
    shutil.move(app / "sub", app / "sub2")
    found = load_there(warm_box, app / "sub", "mux")
    why = f"{app}/sub does not exist on box"
    assert found.warnings == (
        f"the files of {url}/sub cannot be read: {why}; {url}/.mux/stop cannot be run without "
        "being looked at",
    )
    decision = decided(found)
    assert (decision.outcome, decision.reports[0].answer.kind) == ("failed_open", "cannot_start")
    assert decision.reports[0].answer.detail == f"{url}/.mux/stop could not be read: {why}"
    assert decided(found, if_broken="block").outcome == "blocked"


@pytest.mark.rule("N5")
def test_so_it_is_for_one_that_was_removed_or_became_too_large(tmp_path):
    path = write(tmp_path, ".mux/stop", PROGRAM)

    def found():
        return load_here(tmp_path, "mux")

    name = str(path)
    path.write_bytes(b"x" * 5_000_000)
    assert found().warnings == (f"{name} cannot be read: it is larger than 4 MB",)
    reason = "it is larger than 4 MB"
    assert decided(found()).reports[0].answer.detail == f"{name} could not be read: {reason}"
    path.unlink()
    (warning,) = found().warnings
    assert "was removed since it was trusted; it cannot be run: put it back, or run: " in warning
    assert decided(found()).reports[0].answer.detail == f"{name} was removed"


# -- where a repository begins


@pytest.mark.rule("N5", "J2", "M5")
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_repository_that_begins_nearer_hides_nothing_that_was_trusted(warm_box, app, elsewhere):
    (app / "sub").mkdir()
    write(app, ".mux/settings.json", hooks("mux says"))  # trusted here
    trust_there(warm_box, app, ".mux/settings.json")

    def found():
        place = app / "sub"
        return load_there(warm_box, place, "mux") if elsewhere else load_here(place, "mux")

    assert [gate.check.line for gate in found().gates] == ["mux says"]
    (app / "sub" / ".git").mkdir()
    (app / ".git").rmdir()
    write_there(app / "sub", ".mux/settings.json", hooks("the agent's"))
    assert [gate.check.line for gate in found().gates] == ["mux says"]
    assert [file.kind for file in found().untrusted] == ["mux"]
    assert found().warnings == ()  # it was seen there, and is as it was


# -- the same file here and there


@pytest.mark.rule("M5")
def test_a_copy_there_adds_nothing_though_it_was_trusted_itself(
    warm_box, app, here, tmp_path, monkeypatch
):
    text = naming(warm_box, app, '[gates.notes]\nrun = "y"\nworkspace = "local"\n')
    write(here, "notyet.toml", text)
    write_there(app, "notyet.toml", text)
    before = places(load_here(here))
    trust_there(warm_box, app)
    assert places(load_here(here)) == before
    new = text.replace('"y"', '"z"')  # on both sides, and trusted here
    write_there(app, "notyet.toml", new)
    write(here, "notyet.toml", new)
    found = load_here(here)
    assert [gate.check.line for gate in found.gates] == ["x", "z"]
    (warning,) = found.warnings
    assert f"says the same as {here}/notyet.toml: that one alone is in force; run: " in warning
    assert warning.endswith(f"notyet trust {warm_box.url(app)} --revoke")
    trust_there(warm_box, app)
    unreachable(monkeypatch, warm_box, tmp_path)
    assert places(load_here(here)) == before


# -- "local"


@pytest.mark.rule("M1", "J6")
def test_a_nearer_file_that_says_local_wins_over_a_wider_one(here):
    write_user_toml('workspace = "ssh://nobody.invalid/srv"\n')
    write(here, "notyet.toml", '[gates]\na = "x"\n')
    assert load_here(here, patience=NO_LOOK).workspace == "ssh://nobody.invalid/srv"
    write(here, "notyet.toml", 'workspace = "local"\n[gates]\na = "x"\n')
    found = load_here(here)
    assert (found.workspace, found.workspace_problem, found.warnings) == ("", "", ())
    assert places(found) == {"a": ("", str(here))}


@pytest.mark.rule("M1")
def test_who_says_local_is_obeyed_whatever_a_file_says(here):
    text = '[gates]\na = "x"\n[gates.b]\nrun = "y"\ndir = "d"\n'
    own = '[gates.c]\nrun = "z"\nworkspace = "ssh://box/c"\n'
    write(here, "notyet.toml", f'workspace = "ssh://nobody.invalid/srv"\n{text}{own}')
    found = load_here(here, workspace="local")
    assert (found.workspace, found.workspace_problem, found.warnings) == ("", "", ())
    there = {"c": ("ssh://box/c", "/c")}  # that one says so itself
    assert places(found) == {"a": ("", str(here)), "b": ("", f"{here}/d")} | there


# -- hosts that run their own files, on their own machine


@pytest.mark.rule("J8", "M5")
def test_files_there_are_not_left_to_a_host_that_runs_its_files_here(warm_box, app, here):
    write(here, "notyet.toml", naming(warm_box, app, READS.format("claude")))
    for folder in (here, app):
        write_there(folder, ".claude/settings.json", hooks(f"in {folder.name}"))
    write(here, ".claude/settings.json", hooks("in here"))
    write_own(".claude/settings.json", hooks("the user's"))
    trust_there(warm_box, app, ".claude/settings.json")
    found = load_here(here, "claude")
    assert [gate.check.line for gate in found.gates] == ["x", "in app"]
    assert [gate.check.line for gate in load_here(here, agent="claude").gates] == ["x", "in app"]
