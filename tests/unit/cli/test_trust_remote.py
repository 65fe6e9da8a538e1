"""`notyet trust ssh://...`: files of a workspace, looked at and trusted over SSH (M5, N5)."""

import os
import shutil

import pytest

from config_places import hooks
from hook_runs import query
from notyet.cli.main import main
from notyet.config.compiled import read_record
from notyet.config.find import state_folder
from with_runs import Terminal, command_line
from workspaces import load_there, unreachable, write_there

pytestmark = pytest.mark.usefixtures("place")


@pytest.fixture
def trust(capsys):
    """Run `notyet trust`; return its exit code and what it said."""

    def trust(*argv):
        capsys.readouterr()
        code = main(["trust", *argv])
        said = capsys.readouterr()
        return code, said.out, said.err

    return trust


def is_trusted(url):
    return read_record(state_folder(os.environ), url) is not None


@pytest.mark.rule("N5", "M5")
def test_a_file_there_is_shown_with_where_it_would_run_trusted_and_revoked(warm_box, app, trust):
    path = write_there(app, "notyet.toml", '[gates]\na = "x"\n[observers.o]\nrun = "y"\n')
    url = warm_box.url(app)
    code, out, _ = trust(url, "--show")
    assert (code, is_trusted(f"{url}/notyet.toml")) == (1, False)
    assert out.splitlines() == [
        f"{url}/notyet.toml  (not trusted)",
        "  1 | [gates]",
        '  2 | a = "x"',
        "  3 | [observers.o]",
        '  4 | run = "y"',
        f"would run in {url}:",
        "  a           x",
        "  observer o  y",
    ]
    code, out, _ = trust(url, "--yes")
    assert code == 0
    assert f"1 gate of this file in force now, for agents whose workspace is {url}" in out
    assert [gate.name for gate in load_there(warm_box, app).gates] == ["a"]
    path.write_text('[gates]\na = "z"\n')
    code, out, _ = trust(url, "--show")
    assert (code, '+a = "z"' in out) == (1, True)
    code, out, _ = trust(url, "--revoke")
    assert (code, out) == (0, f"no longer trusted: {url}/notyet.toml\n")
    assert not is_trusted(f"{url}/notyet.toml")
    code, _, err = trust(url, "--revoke")
    assert code == 1
    assert f"nothing of {url} is trusted" in err
    acts = query("SELECT what, place FROM acts ORDER BY id")
    assert acts == [("trust", f"{url}/notyet.toml"), ("revoke", f"{url}/notyet.toml")]


@pytest.mark.rule("N5", "M3")
def test_trust_is_taken_back_without_the_machine(warm_box, app, tmp_path, trust, monkeypatch):
    write_there(app, "notyet.toml", '[gates]\na = "x"\n')
    write_there(app, ".mux/stop", "#!/bin/sh\n", mode=0o755)
    url = warm_box.url(app)
    assert trust(url, "--read", "mux", "--yes")[0] == 0
    unreachable(monkeypatch, warm_box, tmp_path)
    code, _, err = trust(url, "--show")
    assert code == 1
    assert err.startswith(f"notyet trust: {url} cannot be read: ")
    assert "Connection refused" in err
    code, out, _ = trust(url, "--read", "mux", "--revoke")
    assert (code, out.count("no longer trusted")) == (0, 2)


@pytest.mark.rule("J2", "J3", "M5")
def test_files_of_hosts_there_are_found_with_read_and_by_their_names(warm_box, app, trust):
    write_there(app, ".mux/settings.json", hooks("mux says"))
    write_there(app, ".mux/stop", "#!/bin/sh\n", mode=0o755)
    url = warm_box.url(app)
    code, _, err = trust(url, "--show")
    assert (code, "add --read HOST for files of another host" in err) == (1, True)
    code, out, _ = trust(url, "--show", "--read", "mux")
    assert f"{url}/.mux/settings.json  (not trusted)" in out
    assert f"{url}/.mux/stop  (not trusted)" in out
    assert "mux .mux/stop  the file itself" in out
    code, out, _ = trust(f"{url}/.mux/stop", "--yes")
    assert (code, ".mux/settings.json" in out) == (0, False)
    assert is_trusted(f"{url}/.mux/stop")
    write_there(app, "notyet.toml", '[read]\nhosts = ["mux"]\n')
    (app / "sub").mkdir()
    code, out, _ = trust(f"{url}/sub", "--yes")
    assert (code, is_trusted(f"{url}/.mux/settings.json")) == (0, True)


@pytest.mark.rule("N5", "M5")
def test_what_a_file_there_says_cannot_hide_on_a_terminal(warm_box, app, trust):
    text = '[gates]\n"a\\u001b[2K" = "x"\n# \x1b[8mhidden\u202e\n'
    write_there(app, "notyet.toml", text)
    _, out, err = trust(warm_box.url(app), "--show")
    assert "hidden" in out
    assert {"\x1b", "\u202e"}.isdisjoint(out + err)


@pytest.mark.rule("M5")
def test_a_file_here_that_names_a_workspace_says_where_it_would_run(place, trust):
    text = 'workspace = "ssh://box/srv/app"\n[gates]\na = "x"\n[observers.o]\nrun = "y"\n'
    (place / "notyet.toml").write_text(text)
    code, out, _ = trust("--yes")
    assert code == 0
    assert out.splitlines()[-6:] == [
        "would run here:",
        "  observer o  y",
        "would run in ssh://box/srv/app:",
        "  a           x",
        "trusted: 1 gate of this file in force now",
        "files of its workspace that differ need their own trust: notyet trust ssh://box/srv/app",
    ]


@pytest.mark.rule("M5")
def test_a_copy_of_the_file_here_that_names_the_workspace_needs_no_trust(
    warm_box, app, place, trust
):
    url = warm_box.url(app)
    text = f'workspace = "{url}"\n[gates]\na = "x"\n'
    (place / "notyet.toml").write_text(text)
    write_there(app, "notyet.toml", text)
    assert "(not trusted)" in trust(url, "--show")[1]  # nor is the one here
    assert trust("--yes")[0] == 0
    code, out, _ = trust(url, "--yes")
    same = f"{url}/notyet.toml is the same as {place}/notyet.toml here; it needs no trust\n"
    assert (code, out, is_trusted(f"{url}/notyet.toml")) == (0, same, False)
    write_there(app, "notyet.toml", f"{text}b = 'y'\n")
    assert trust(url, "--yes")[0] == 0
    assert is_trusted(f"{url}/notyet.toml")


@pytest.mark.rule("M3")
def test_a_host_with_an_unknown_key_is_not_connected_to(warm_box, app, trust):
    url = f"ssh://127.0.0.1:{warm_box.port}{app}"
    code, _, err = trust(url)
    assert (code, "host key" in err, f"ssh -p {warm_box.port} 127.0.0.1" in err) == (1, True, True)


@pytest.mark.rule("N5")
def test_a_person_at_a_terminal_is_told_what_is_waited_for_and_asked(
    warm_box, app, tmp_path, monkeypatch
):
    # What is quick is not announced.
    slow = tmp_path / "bin" / "ssh"
    slow.parent.mkdir()
    slow.write_text(f'#!/bin/sh\nsleep 1\nexec {shutil.which("ssh")} "$@"\n')
    slow.chmod(0o755)
    path = f"{slow.parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setattr("with_runs.clean_environ", _with(warm_box, PATH=path))
    write_there(app, "notyet.toml", '[gates]\na = "x"\n')
    with Terminal(tmp_path, *command_line("trust", warm_box.url(app))) as terminal:
        terminal.expect("looking at ssh://box/")
        terminal.expect("[y/N]")
        terminal.press(b"y\n")
        assert terminal.wait() == 0
    assert is_trusted(f"{warm_box.url(app)}/notyet.toml")


def _with(box, **values):
    from hook_runs import clean_environ

    return lambda **more: clean_environ(**(more | box.environ | values))
