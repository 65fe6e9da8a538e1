"""What is in force at a place: which files count, in which order, and how they are merged (J)."""

import json
import os
from pathlib import Path

import pytest

from config_places import READS, commands, hooks, setup, write, write_own, write_user_toml
from notyet.config.files import host_files
from notyet.config.load import load
from notyet.core.event import StopEvent

WAIT = "wait_for_background"


@pytest.mark.rule("J6")
def test_the_project_wins_over_the_user_for_a_gate_of_the_same_name(tmp_path):
    write_user_toml('[gates]\na = "user a"\nb = "user b"\n[limits]\nmax_blocks = 7\n')
    write(tmp_path, "notyet.toml", '[gates]\nb = "project b"\nc = "project c"\n')
    assert commands(tmp_path) == ["user a", "project b", "project c"]
    assert setup(tmp_path).limits["max_blocks"] == 7


@pytest.mark.rule("J6")
def test_settings_are_layered_one_by_one(tmp_path):
    own = '[limits]\nmax_blocks = 7\nstuck_after = 9\n[reply]\nclaude = "block"\n'
    own += "[start]\ntell = true\n"
    write_user_toml(own + '[observers.o]\nrun = "user"\n[observers.p]\nrun = "p"\n')
    project = '[limits]\nmax_blocks = 2\n[start]\ntell = false\n[observers.o]\nrun = "project"\n'
    write(tmp_path, "notyet.toml", project)
    found = setup(tmp_path)
    assert dict(found.limits) == {"max_blocks": 2, "stuck_after": 9}
    assert (dict(found.reply), found.start_tell) == ({"claude": "block"}, False)
    assert [observer.check.line for observer in found.observers] == ["project", "p"]


@pytest.mark.rule("J6")
def test_files_add_up_from_the_outermost_folder_to_the_innermost(tmp_path):
    write(tmp_path, "notyet.toml", '[gates]\na = "outer"\n')
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert commands(deep) == ["outer"]
    write(tmp_path / "a", "notyet.toml", '[gates]\na = "inner"\n')
    assert commands(deep) == ["outer", "inner"]
    assert [gate.name for gate in setup(deep).gates] == ["a", "a:a"]
    assert commands(tmp_path) == ["outer"]


@pytest.mark.rule("J6")
def test_an_inner_gate_of_the_same_name_is_named_after_its_folder_in_the_repository(tmp_path):
    (tmp_path / ".git").mkdir()
    deep = tmp_path / "packages" / "a"
    write(tmp_path / "packages", "notyet.toml", '[gates]\nt = "outer"\nlint = "x"\n')
    write(deep, "notyet.toml", '[gates]\nt = "inner"\n[observers.t]\nrun = "o"\n')
    found = setup(deep)
    assert [(gate.name, gate.check.line) for gate in found.gates] == [
        ("t", "outer"),
        ("lint", "x"),
        ("packages/a:t", "inner"),
    ]
    assert [observer.name for observer in found.observers] == ["packages/a:t"]


@pytest.mark.rule("J6")
def test_a_gate_keeps_its_name_where_the_outer_one_is_for_other_agents(tmp_path):
    write(tmp_path, "notyet.toml", '[gates.t]\nrun = "outer"\nfor = "subagents"\n')
    write(tmp_path / "a", "notyet.toml", '[gates]\nt = "inner"\n')
    event = StopEvent(host="claude", session_id="s", cwd=str(tmp_path / "a"))
    found = load(str(tmp_path / "a"), "claude", os.environ, event=event)
    assert [gate.name for gate in found.gates] == ["a:t"]


@pytest.mark.rule("J6")
def test_a_repository_that_begins_in_a_folder_removes_no_outer_gate(tmp_path):
    write(tmp_path, "notyet.toml", '[gates]\na = "outer"\n')
    write(tmp_path / "sub", "notyet.toml", '[gates]\nb = "inner"\n')
    (tmp_path / "sub" / ".git").mkdir()
    assert commands(tmp_path / "sub") == ["outer", "inner"]


@pytest.mark.rule("J6", "N5")
def test_every_untrusted_file_of_the_repository_is_reported_and_none_hides_another(tmp_path):
    (tmp_path / "p" / ".git").mkdir(parents=True)
    deep = tmp_path / "p" / "a"
    for folder in (tmp_path, tmp_path / "p", deep):
        write(folder, "notyet.toml", '[gates]\na = "x"\n', trusted=False)
    assert [file.path for file in setup(deep).untrusted] == [
        f"{deep}/notyet.toml",
        f"{tmp_path}/p/notyet.toml",
    ]
    write(deep, "notyet.toml", '[gates]\na = "x"\n')
    assert [file.path for file in setup(deep).untrusted] == [f"{tmp_path}/p/notyet.toml"]


@pytest.mark.rule("J6", "N5")
def test_files_above_a_root_do_not_count_if_the_root_is_trusted(tmp_path):
    write(tmp_path, "notyet.toml", '[gates]\na = "outer"\n')
    inner = 'root = true\n[gates]\nb = "inner"\n'
    write(tmp_path / "a", "notyet.toml", inner, trusted=False)
    assert commands(tmp_path / "a") == ["outer"]
    write(tmp_path / "a", "notyet.toml", inner)
    assert commands(tmp_path / "a") == ["inner"]


@pytest.mark.rule("J6")
@pytest.mark.parametrize(
    ("outer", "inner", "limits"),
    [
        ("max_blocks = 3", "max_blocks = 1", {"max_blocks": 3}),
        ("max_blocks = 3", "max_blocks = 5", {"max_blocks": 5}),
        ("", "max_blocks = 0", {}),
        ("session_ceiling = 9", "session_ceiling = 0", {"session_ceiling": 0}),
        ("stuck_after = 0", "stuck_after = 2", {"stuck_after": 0}),
        ("stuck_after = 2", "stuck_after = 4", {"stuck_after": 4}),
        ("", f"{WAIT} = false", {WAIT: False}),
        (
            "wait_for_background = false",
            "wait_for_background = true",
            {"wait_for_background": False},
        ),
    ],
)
def test_an_inner_file_can_only_make_limits_stricter(tmp_path, outer, inner, limits):
    write(tmp_path, "notyet.toml", f"[limits]\n{outer}\n")
    write(tmp_path / "a", "notyet.toml", f"[limits]\n{inner}\n")
    assert dict(setup(tmp_path / "a").limits) == limits


def test_a_record_of_the_users_own_file_is_no_trust_elsewhere(tmp_path, monkeypatch):
    path = write_user_toml('[gates]\na = "user"\n')
    assert commands(path.parent) == ["user"]
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    found = setup(path.parent)
    assert (found.gates, [file.path for file in found.untrusted]) == ((), [str(path)])


@pytest.mark.rule("J1", "J8")
def test_claudes_files_add_up_and_the_same_command_counts_once(tmp_path):
    write_own(".claude/settings.json", hooks("user", "both"))
    write(tmp_path, ".claude/settings.json", hooks("project", "both"))
    write(tmp_path, ".claude/settings.local.json", hooks("local", "project"))
    assert commands(tmp_path) == []
    write(tmp_path, "notyet.toml", READS.format("claude"))
    assert commands(tmp_path) == ["user", "both", "project", "local"]


@pytest.mark.rule("J2", "J8")
def test_muxs_files_add_up_and_a_later_entry_replaces_the_same_command(tmp_path):
    write_own(".mux/settings.json", hooks("user", "both", timeout=1))
    write(tmp_path, ".mux/settings.json", hooks("project", "both", timeout=2))
    write(tmp_path, ".mux/settings.local.json", hooks("local", "both", timeout=3))
    assert commands(tmp_path, "claude") == []
    found = {gate.check.line: gate.timeout for gate in setup(tmp_path, "mux").gates}
    assert found == {"user": 1, "both": 3, "project": 2, "local": 3}


@pytest.mark.rule("J2")
def test_a_settings_file_of_muxs_new_name_comes_before_the_old_one(tmp_path):
    write(tmp_path, ".mux/settings.json", hooks("old"))
    assert commands(tmp_path, "mux") == ["old"]
    write(tmp_path, ".xum/settings.json", hooks("new"))
    assert commands(tmp_path, "mux") == ["new"]


@pytest.mark.rule("J3")
def test_muxs_executables_are_found_project_first_and_new_name_first(tmp_path):
    home = Path(os.environ["HOME"])
    own = write_own(".mux/stop", "#!/bin/sh\n")
    old = tmp_path / ".mux" / "stop"
    new = tmp_path / ".xum" / "stop"
    assert commands(tmp_path, "mux") == [f"sh -c #!/bin/sh\n {own}"]
    write(tmp_path, ".mux/stop", "#!/bin/sh\n")
    assert commands(tmp_path, "mux") == [f"sh -c #!/bin/sh\n {old}"]
    write(tmp_path, ".xum/stop", "#!/bin/sh\n")
    assert commands(tmp_path, "mux") == [f"sh -c #!/bin/sh\n {new}"]
    write(tmp_path, ".mux/subagent_stop", "#!/bin/sh\n")
    scopes = [gate.match.events for gate in setup(tmp_path, "mux").gates]
    assert scopes == [("agent",), ("subagent",)]
    assert setup(home, "mux").gates[0].check.line.endswith(str(own))
    assert setup(home, "mux").untrusted == ()


@pytest.mark.rule("J3", "N5")
def test_a_script_that_changed_since_it_was_trusted_is_run_as_it_was(tmp_path):
    path = write(tmp_path, ".mux/stop", "#!/bin/sh\n")
    path.write_text("#!/bin/sh\nrm -rf .\n")
    found = setup(tmp_path, "mux")
    assert [gate.check.argv[2] for gate in found.gates] == ["#!/bin/sh\n"]
    assert "that version stays in force until you run: notyet trust --read mux" in found.warnings[0]
    path.unlink()
    assert [gate.check.argv[2] for gate in setup(tmp_path, "mux").gates] == ["#!/bin/sh\n"]


@pytest.mark.rule("J3", "N5")
def test_another_program_that_changed_since_it_was_trusted_is_not_run(tmp_path):
    path = write(tmp_path, ".mux/stop", "#!/usr/bin/env python3\n")
    path.write_text("#!/usr/bin/env python3\nprint()\n")
    found = setup(tmp_path, "mux")
    (gate,) = found.gates  # which cannot start: an agent cannot shed it by changing it
    assert gate.check.options["refused"] == f"{path} changed since it was trusted"
    (warning,) = found.warnings
    assert warning.endswith("it is not run until you run: notyet trust --read mux")


@pytest.mark.rule("N5")
@pytest.mark.parametrize("name", [".mux/stop", ".conclaude.yml"])
def test_an_untrusted_file_does_not_hide_a_trusted_one(tmp_path, name):
    host = "mux" if "mux" in name else "conclaude"
    text = "#!/bin/sh\n" if host == "mux" else "stop: {commands: [{run: kept}]}\n"
    write(tmp_path, name, text)
    nearer = tmp_path / (".xum/stop" if host == "mux" else ".conclaude.yaml")
    nearer.parent.mkdir(exist_ok=True)
    nearer.write_text("# nothing\n")
    nearer.chmod(0o755)
    found = setup(tmp_path, host)
    assert len(found.gates) == 1
    assert [file.path for file in found.untrusted] == [str(nearer)]


@pytest.mark.rule("N5")
def test_another_folder_under_the_same_name_does_not_inherit_trust(tmp_path):
    path = write(tmp_path / "p", "notyet.toml", '[gates]\na = "make test"\n')
    assert commands(path.parent) == ["make test"]
    path.parent.rename(tmp_path / "old")
    path.parent.mkdir()
    assert commands(path.parent) == []
    path.write_text('[gates]\na = "make test"\n')  # the same text is what was trusted
    assert commands(path.parent) == ["make test"]


@pytest.mark.rule("J8")
def test_a_subfolder_and_the_hosts_project_lead_to_the_same_files(tmp_path):
    project = tmp_path / "p"
    write(project, ".claude/settings.json", hooks("hook"))
    write(project, "notyet.toml", READS.format("claude"))
    (project / "sub").mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert commands(project / "sub") == ["hook"]
    assert commands(elsewhere) == []
    found = load(str(elsewhere), "codex", os.environ, project=str(project))
    assert [gate.check.line for gate in found.gates] == ["hook"]


@pytest.mark.rule("N5")
def test_a_project_replaced_by_a_link_to_an_empty_folder_keeps_its_gates(tmp_path):
    write(tmp_path / "p", "notyet.toml", '[gates]\na = "kept"\n')
    (tmp_path / "empty").mkdir()
    (tmp_path / "p").rename(tmp_path / "q")
    (tmp_path / "p").symlink_to(tmp_path / "empty")
    found = setup(tmp_path / "p")
    path = f"{tmp_path}/p/notyet.toml"
    said = f"the folder was replaced since you trusted it; run: notyet trust --revoke {path}"
    assert found.distrust == [f"{path}: {said}"]
    assert found.unchecked == (f"{path}: {said}",)


@pytest.mark.rule("N5")
def test_a_file_that_a_variable_puts_into_the_project_is_not_the_users(tmp_path, monkeypatch):
    project = tmp_path / "p"
    (project / ".config" / "notyet").mkdir(parents=True)
    (project / ".config" / "notyet" / "notyet.toml").write_text('[gates]\na = "evil"\n')
    for name, value in (("HOME", project), ("XDG_CONFIG_HOME", project / ".config")):
        monkeypatch.setenv(name, str(value))
        assert commands(project) == []
    monkeypatch.setenv("CODEX_HOME", ".codex")
    assert [file.path for file in host_files("codex", str(project), os.environ)] == []


@pytest.mark.rule("J3")
def test_a_hook_that_is_no_command_is_a_warning_and_its_neighbours_count(tmp_path):
    handlers = [{"type": "prompt", "prompt": "x"}, {"type": "command", "command": "good"}]
    write_own(".mux/settings.json", json.dumps({"hooks": {"Stop": [{"hooks": handlers}]}}))
    found = setup(tmp_path, "mux")
    assert [gate.check.line for gate in found.gates] == ["good"]
    assert "settings.json:1:" in found.warnings[0]


@pytest.mark.rule("J4", "J8")
def test_codexs_files_add_up_and_duplicates_all_run(tmp_path):
    toml = '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "{}"\n'
    write_own(".codex/hooks.json", hooks("both"))
    write_own(".codex/config.toml", toml.format("user toml"))
    write(tmp_path, ".codex/hooks.json", hooks("both"))
    write(tmp_path, ".codex/config.toml", toml.format("project toml"))
    write(tmp_path, "notyet.toml", READS.format("codex"))
    assert commands(tmp_path) == ["both", "user toml", "both", "project toml"]
    names = [gate.name for gate in setup(tmp_path).gates]
    assert len(set(names)) == 4


@pytest.mark.rule("J5", "J8")
def test_the_nearest_conclaude_file_is_the_only_one_within_twelve_levels(tmp_path):
    pytest.importorskip("yaml")
    yaml = "stop:\n  commands:\n    - run: {}\n"
    write(tmp_path, ".conclaude.yml", yaml.format("outer"))
    deep = tmp_path
    for _ in range(13):
        deep = deep / "d"
    deep.mkdir(parents=True)
    assert commands(deep.parent, "conclaude") == ["outer"]
    assert commands(deep, "conclaude") == []
    assert commands(deep.parent, "claude") == []
    write(tmp_path / "d", ".conclaude.yaml", yaml.format("inner"))
    assert commands(deep, "conclaude") == ["inner"]
    write(tmp_path / "d", ".conclaude.yml", yaml.format("not this"))
    assert commands(deep, "conclaude") == ["inner"]


@pytest.mark.rule("J8")
@pytest.mark.parametrize("host", ["claude", "codex"])
def test_the_files_of_a_host_that_runs_them_itself_are_never_read(tmp_path, host):
    write(tmp_path, ".claude/settings.json", hooks("claude's"))
    write(tmp_path, ".codex/hooks.json", hooks("codex's"))
    write(tmp_path, "notyet.toml", '[read]\nhosts = ["claude", "codex"]\n')
    other = {"claude": "codex's", "codex": "claude's"}[host]
    assert commands(tmp_path, host) == [other]
    assert commands(tmp_path, "mux") == ["claude's", "codex's"]


@pytest.mark.rule("J8")
@pytest.mark.parametrize(
    "ours",
    [
        "notyet hook",
        '"/opt/a b/notyet" hook --host claude',
        "/usr/bin/python3 -I -S /x/notyet/__main__.py hook",
        "uvx notyet hook",
    ],
)
def test_our_own_entries_are_dropped(tmp_path, ours):
    write(tmp_path, ".claude/settings.json", hooks(ours, "other"))
    write(tmp_path, "notyet.toml", READS.format("claude"))
    assert commands(tmp_path, "codex") == ["other"]


@pytest.mark.rule("J7")
def test_a_broken_entry_does_not_take_its_neighbours_down(tmp_path):
    write_user_toml('[gates]\ngood = "true"\nbad = 5\n[gates.odd]\nrun = "x"\ntimeuot = 3\n')
    found = setup(tmp_path)
    assert [gate.name for gate in found.gates] == ["good", "odd"]
    assert len(found.warnings) == 2
    assert "notyet.toml:3:1: " in found.warnings[0]


@pytest.mark.rule("J9")
def test_openclaws_limit_is_taken_where_its_file_is_given(tmp_path):
    inner = {"agents": {"defaults": {"subagents": {"maxSteerRestarts": 5}}}}
    (tmp_path / "openclaw.json").write_text(json.dumps(inner))
    write(tmp_path, "notyet.toml", '[read]\nopenclaw = "openclaw.json"\n')
    assert setup(tmp_path).limits == {"max_blocks": 5}
    text = '[read]\nopenclaw = "openclaw.json"\n[limits]\nmax_blocks = 2\n'
    write(tmp_path, "notyet.toml", text)
    assert setup(tmp_path).limits == {"max_blocks": 2}


@pytest.mark.rule("N5")
def test_an_untrusted_file_does_not_hide_the_hosts_project(tmp_path):
    write(tmp_path / "p", "notyet.toml", '[gates]\na = "kept"\n')
    write(tmp_path / "else", "notyet.toml", "", trusted=False)
    found = load(str(tmp_path / "else"), "claude", os.environ, project=str(tmp_path / "p"))
    assert [gate.check.line for gate in found.gates] == ["kept"]
