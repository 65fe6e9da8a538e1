"""What is in force where an agent's files are in a workspace elsewhere (M5, N5)."""

import pytest

from commands import until
from config_places import READS, hooks, write, write_own, write_user_toml
from notyet.config.load import NO_LOOK
from workspaces import (
    load_here,
    load_there,
    naming,
    places,
    trust_there,
    unreachable,
    write_there,
)

# -- files of a workspace


@pytest.mark.rule("M5", "N5", "J6")
def test_a_file_there_counts_once_it_is_trusted_under_its_address(warm_box, app):
    write_there(app, "notyet.toml", '[gates]\na = "x"\n')
    found = load_there(warm_box, app)
    url = warm_box.url(app)
    assert found.gates == ()
    assert found.distrust == [f"{url}/notyet.toml is not trusted; run: notyet trust {url}"]
    trust_there(warm_box, app)
    found = load_there(warm_box, app)
    assert places(found) == {"a": (url, str(app))}
    assert (found.untrusted, found.warnings, found.workspace) == ((), (), url)


@pytest.mark.rule("M5", "N5", "J6")
def test_a_table_there_counts_like_a_file(warm_box, app):
    write_there(app, "pyproject.toml", '[project]\n[tool.notyet.gates]\na = "x"\n')
    write_there(app.parent, "pyproject.toml", "[project]\n")
    url = warm_box.url(app)
    found = load_there(warm_box, app)
    assert [file.path for file in found.untrusted] == [f"{url}/pyproject.toml"]
    trust_there(warm_box, app, "pyproject.toml")
    assert places(load_there(warm_box, app)) == {"a": (url, str(app))}


@pytest.mark.rule("M5", "N5")
def test_the_same_path_here_is_neither_trusted_nor_read(warm_box, app):
    write_there(app, "notyet.toml", '[gates]\na = "x"\n')
    trust_there(warm_box, app)
    assert load_here(app).gates == ()
    write(app, "notyet.toml", '[gates]\na = "y"\n')  # trusted here
    found = load_there(warm_box, app)
    assert [gate.check.line for gate in found.gates] == ["x"]
    (warning,) = found.warnings
    assert warning.startswith(f"{warm_box.url(app)}/notyet.toml changed since it was trusted")


@pytest.mark.rule("J6", "M5")
def test_the_files_there_add_up_and_the_users_own_runs_here(warm_box, app):
    write_user_toml('[gates]\na = "user a"\nb = "user b"\n')
    write_there(app.parent, "notyet.toml", '[gates]\nb = "outer"\nc = "c"\n')
    trust_there(warm_box, app.parent)
    found = load_there(warm_box, app)
    outer = (warm_box.url(app.parent), str(app.parent))
    assert places(found)["b"] == places(found)["c"] == outer
    assert places(found)["a"][0] == "local"
    write_there(app, "notyet.toml", '[gates]\nd = "d"\n')
    assert [gate.name for gate in load_there(warm_box, app).gates] == ["a", "b", "c"]
    trust_there(warm_box, app)
    assert [gate.name for gate in load_there(warm_box, app).gates] == ["a", "b", "c", "d"]


@pytest.mark.rule("N5", "M5")
def test_a_file_there_that_was_changed_or_removed_stays_in_force_as_it_was_trusted(warm_box, app):
    path = write_there(app, "notyet.toml", '[gates]\na = "x"\n')
    trust_there(warm_box, app)
    path.write_text("[limits]\nmax_blocks = 0\n")
    found = load_there(warm_box, app)
    assert ([gate.check.line for gate in found.gates], dict(found.limits)) == (["x"], {})
    assert "changed since it was trusted" in found.warnings[0]
    path.unlink()
    found = load_there(warm_box, app)
    assert [gate.check.line for gate in found.gates] == ["x"]
    url = warm_box.url(app)
    assert found.warnings == (
        f"{url}/notyet.toml was removed since it was trusted; that version stays in force until "
        f"you run: notyet trust {url} --revoke",
    )


# -- a machine that cannot be reached


@pytest.mark.rule("M3", "N5", "M5")
def test_what_was_trusted_stays_in_force_when_the_machine_cannot_be_reached(
    warm_box, app, tmp_path, monkeypatch
):
    write_there(app, "notyet.toml", '[gates]\na = "x"\n')
    write_there(app, ".mux/settings.json", hooks("mux says"))
    write_there(app, ".mux/stop", "#!/usr/bin/python3\n", mode=0o755)
    trust_there(warm_box, app)
    for name in (".mux/settings.json", ".mux/stop"):
        trust_there(warm_box, app, name)
    (app / "sub").mkdir()
    assert len(load_there(warm_box, app / "sub", "mux").gates) == 3
    unreachable(monkeypatch, warm_box, tmp_path)
    found = load_there(warm_box, app / "sub", "mux")
    url = warm_box.url(app)
    assert [gate.check.line for gate in found.gates] == ["x", "mux says", f"{app}/.mux/stop"]
    (warning,) = found.warnings
    assert warning.startswith(f"the files of {url}/sub cannot be read: ")
    assert "box" in found.workspace_problem
    # The program itself could have changed.
    stays = "what was trusted of it stays in force"
    missed = f"but {url}/.mux/stop cannot be run without being looked at"
    assert warning.endswith(f"; {stays}, {missed}")
    assert found.offline == tuple(
        f"{url}/{name}" for name in ("notyet.toml", ".mux/settings.json", ".mux/stop")
    )
    assert (found.untrusted, found.unreadable) == ((), ())


def test_without_a_look_what_was_trusted_is_known_and_nothing_is_said(
    warm_box, app, tmp_path, monkeypatch
):
    write_there(app, "notyet.toml", '[gates]\na = "x"\n')
    trust_there(warm_box, app)
    monkeypatch.setenv("PATH", str(tmp_path))  # there is no ssh
    found = load_there(warm_box, app, patience=NO_LOOK)
    assert [gate.name for gate in found.gates] == ["a"]
    assert (found.warnings, found.untrusted, found.workspace_problem) == ((), (), "")


# -- a file here that names a workspace


@pytest.mark.rule("N5", "M5")
def test_an_untrusted_file_opens_no_connection(box, app, here):
    write_there(app, "notyet.toml", '[gates]\na = "x"\n')
    write(here, "notyet.toml", naming(box, app), trusted=False)
    assert until(lambda: not box.connections())  # of whoever looked whether it listens
    found = load_here(here)
    assert (found.gates, found.workspace, len(found.untrusted)) == ((), "", 1)
    assert box.connections() == []
    write(here, "notyet.toml", '[gates]\nlocal = "x"\n')
    write(here, "notyet.toml", naming(box, app), trusted=False)  # changed by somebody
    found = load_here(here)
    assert places(found) == {"local": ("", str(here))}
    assert (found.workspace, box.connections()) == ("", [])
    write(here, "notyet.toml", naming(box, app))
    assert load_here(here).workspace == box.url(app)
    assert box.connections()


@pytest.mark.rule("M5", "J6")
def test_a_trusted_file_that_names_a_workspace_lets_the_files_there_count_too(warm_box, app, here):
    write(here, "notyet.toml", naming(warm_box, app, 'both = "here"\n'))
    write_there(app, "notyet.toml", '[gates]\nboth = "there"\nmore = "y"\n')
    url = warm_box.url(app)
    found = load_here(here)
    assert places(found) == dict.fromkeys(("local", "both"), (url, str(app)))
    assert [file.path for file in found.untrusted] == [f"{url}/notyet.toml"]
    trust_there(warm_box, app)
    found = load_here(here)
    assert [(gate.name, gate.check.line) for gate in found.gates] == [
        ("local", "x"),
        ("both", "here"),
        (f"{app.name}:both", "there"),
        ("more", "y"),
    ]
    assert (found.workspace, found.untrusted) == (url, ())


@pytest.mark.rule("N5", "M5")
def test_gates_that_were_trusted_there_do_not_go_when_the_file_becomes_a_copy(warm_box, app, here):
    text = naming(warm_box, app)
    write(here, "notyet.toml", text)
    write_there(app, "notyet.toml", '[gates]\nmore = "y"\n')
    trust_there(warm_box, app)
    write_there(app, "notyet.toml", text)
    found = load_here(here)
    assert [gate.name for gate in found.gates] == ["local", "more"]
    assert "changed since it was trusted" in found.warnings[0]


# -- files of other hosts


@pytest.mark.rule("J2", "J3", "J8", "M5")
def test_muxs_files_there_are_read_for_mux_and_where_a_file_says_so(warm_box, app):
    write_own(".mux/settings.json", hooks("user", "both"))
    write_there(app, ".mux/settings.json", hooks("project", "both"))
    write_there(app, ".mux/settings.local.json", hooks("local"))
    write_there(app, ".mux/stop", "#!/bin/sh\nexit 2\n", mode=0o755)
    names = (".mux/settings.json", ".mux/settings.local.json", ".mux/stop")
    (app / "sub").mkdir()
    assert len(load_there(warm_box, app / "sub", "mux").untrusted) == 3
    for name in names:
        trust_there(warm_box, app, name)
    found = load_there(warm_box, app / "sub", "mux")
    url = warm_box.url(app)
    assert [(gate.check.line, gate.check.workspace) for gate in found.gates[:4]] == [
        ("user", "local"),
        ("both", url),
        ("project", url),
        ("local", url),
    ]
    assert found.gates[4].check.argv[:2] == ("sh", "-c")
    assert load_there(warm_box, app / "sub", "claude").gates == ()
    write_there(app, "notyet.toml", READS.format("mux"))
    trust_there(warm_box, app)
    assert len(load_there(warm_box, app / "sub", "claude").gates) == 5


@pytest.mark.rule("J1", "M5", "C4")
def test_a_supervised_agent_meets_the_hooks_of_every_host_there(warm_box, app):
    write_own(".claude/settings.json", hooks("user starts", event="SessionStart"))
    write_user_toml(READS.format("claude"))
    write_there(app, ".claude/settings.json", hooks("starts", event="SessionStart"))
    write_there(app, ".codex/hooks.json", hooks("codex stops"))
    for name in (".claude/settings.json", ".codex/hooks.json"):
        trust_there(warm_box, app, name)
    found = load_there(warm_box, app, agent="gemini")
    url = warm_box.url(app)
    assert [(one.check.line, one.check.workspace) for one in found.starters] == [
        ("user starts", "local"),
        ("starts", url),
    ]
    assert [(gate.check.line, gate.check.workspace) for gate in found.gates] == [
        ("codex stops", url)
    ]


@pytest.mark.rule("J1", "M5")
def test_of_the_same_command_here_and_there_the_one_there_is_kept(warm_box, app, here):
    write(here, "notyet.toml", naming(warm_box, app, READS.format("claude")))
    for folder in (here, app):
        write_there(folder, ".claude/settings.json", hooks("check"))
    write(here, ".claude/settings.json", hooks("check"))
    trust_there(warm_box, app, ".claude/settings.json")
    found = load_here(here, "codex")
    (gate,) = [gate for gate in found.gates if gate.check.line == "check"]
    assert gate.check.workspace == warm_box.url(app)
