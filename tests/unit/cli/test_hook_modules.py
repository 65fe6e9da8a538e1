"""What a hook imports: every stop is a cold start, and imports are most of its cost.

Each case is a real run, without a pack. The modules of ours that it loads are exactly those of the
pack's groups for such a case: one more would have to be found, read and run one by one, and one
less would be read and run for nothing.
"""

import os
from pathlib import Path

import pytest

from conftest import git
from hook_runs import ENTRY, clean_environ, loaded, new_project, payload, stops
from notyet.hosts import DEFAULT, HOSTS
from notyet.install.pack import LIBRARIES, Package

GATE = '[gates.g]\nrun = "true"\n'
ALWAYS = GATE + 'when = "always"\n'
FOR_SUBAGENTS = ALWAYS + 'for = "subagents"\n'
# What a bare interpreter has not loaded: nothing else may be on a hook's way.
AT_THE_DOOR = {"__future__", "_json"}
ASKING = AT_THE_DOOR | {"_sqlite3", "errno", "_functools", "_ctypes", "select"}
SPARED = ASKING - {"_ctypes"} | {"_blake2"}  # by a digest of files, which an agent writes


def loaded_by(folder, *argv, host="claude", **fields):
    """Return the modules of a real run of the hook that answers nothing, ours and others."""
    environ = clean_environ(CLAUDE_PROJECT_DIR=str(folder))
    answer, modules = loaded(payload(host, folder, **fields), *argv, environ=environ)
    assert answer.strip() in {b"", b"{}"}
    ours = {name for name in modules if name.partition(".")[0] == "notyet"}
    return ours, modules - ours


def packed(*groups):
    """Return the modules of these groups of the pack."""
    members = Package(str(ENTRY.parent.parent)).members()
    return {name for group in groups for name in members.get(group, ())}


def assert_loads(folder, groups, others, **fields):
    ours, foreign = loaded_by(folder, "--host", "claude", **fields)
    expected = packed(*groups)
    assert (sorted(expected - ours), sorted(ours - expected)) == ([], [])  # unneeded; missing
    assert foreign == others


@pytest.mark.rule("A10")
@pytest.mark.parametrize("event", ["Stop", "SubagentStop", "SessionStart", "SubagentStart"])
def test_where_nothing_is_configured_the_door_is_all_that_is_loaded(tmp_path, event):
    assert_loads(tmp_path, ["door"], AT_THE_DOOR, hook_event_name=event)


def test_where_a_host_names_no_project_the_note_of_the_session_is_looked_for(tmp_path):
    ours, others = loaded_by(tmp_path, "--host", "codex", host="codex")
    assert ours == packed("door", "codex", "sessions") - {"notyet.hosts.claude"}
    assert others == AT_THE_DOOR


@pytest.mark.rule("A10")
def test_in_a_linked_work_tree_one_module_more_is_loaded(git_project, tmp_path):
    git(git_project, "worktree", "add", "--quiet", str(tmp_path / "tree"))
    assert_loads(tmp_path / "tree", ["door", "worktrees"], AT_THE_DOOR)


def test_to_find_out_who_calls_loads_one_table_and_not_the_data_of_all_hosts(tmp_path):
    ours, others = loaded_by(tmp_path)
    assert ours == packed("door", "detect")
    assert others == AT_THE_DOOR


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_is_one_module_and_loads_no_other(host):
    own = packed(host) - packed("door")
    assert own == ({f"notyet.hosts.{host}"} if host != DEFAULT else set())


@pytest.mark.rule("A10")
def test_where_no_gate_is_for_subagents_one_is_let_go_without_loading_any(tmp_path):
    project = new_project(tmp_path / "p", ALWAYS)
    assert_loads(project, ["door", "silent"], AT_THE_DOOR, hook_event_name="SubagentStop")


@pytest.mark.rule("A10")
def test_where_gates_are_for_subagents_only_the_main_agent_runs_no_gate(tmp_path):
    project = new_project(tmp_path / "p", FOR_SUBAGENTS)
    assert_loads(project, ["door", "silent", "setup", "sessions"], AT_THE_DOOR)


def test_one_gate_loads_what_asks_it_and_what_writes_it_down(tmp_path):
    project = new_project(tmp_path / "p", ALWAYS)
    loaded_by(project)  # which makes the ledger
    assert_loads(
        project,
        ["door", "silent", "setup", "gates", "commands", "notyet", "answers"],
        ASKING,
    )
    assert stops() == [("passed", "")] * 2


def test_to_share_stops_loads_nothing_more(tmp_path):
    project = new_project(tmp_path / "p", ALWAYS)
    users = Path(os.environ["XDG_CONFIG_HOME"], "notyet", "notyet.toml")
    users.parent.mkdir(parents=True)
    stamp = Path(os.environ["XDG_STATE_HOME"], "notyet", "ledger.db.ship")
    shared = '[share]\nto = "postgresql://127.0.0.1:1/x"\n'
    found = []
    for text in ("[limits]\nmax_blocks = 4\n", shared):
        users.write_text(text)
        loaded_by(project, "--host", "claude")  # which compiles the file
        found.append(loaded_by(project, "--host", "claude"))
    os.utime(stamp, (5, 5))
    found.append(loaded_by(project, "--host", "claude"))  # it starts a shipper
    assert stamp.stat().st_mtime > 5
    assert found[0] == found[1] == found[2]


def test_a_gate_that_depends_on_files_loads_what_looks_at_them(git_project):
    project = new_project(Path(git_project), GATE)
    git(project, "add", ".")
    git(project, "commit", "--quiet", "-m", "gated")
    loaded_by(project)  # which makes the ledger
    asked = ["door", "silent", "setup", "gates", "answers"]
    # It is spared, because it passed.
    assert_loads(project, [*asked, "worktrees", "files", "looking"], SPARED)
    assert stops() == [("passed", "")] * 2


@pytest.mark.rule("J6")
def test_members_that_did_not_change_load_what_finds_that_out(git_project):
    project = new_project(Path(git_project), f'members = ["packages/*"]\n{GATE}')
    new_project(project / "packages/a", GATE)
    git(project, "add", ".")
    git(project, "commit", "--quiet", "-m", "gated")
    loaded_by(project, hook_event_name="SessionStart", source="startup")
    (project / "new.txt").touch()
    loaded_by(project)
    asked = ["door", "silent", "setup", "gates", "answers", "worktrees", "files", "looking"]
    content = {"notyet.git.content"}  # of the new file
    ours, foreign = loaded_by(project, "--host", "claude")
    assert ours - content == packed(*asked, "members")
    assert foreign == SPARED
    assert stops() == [("passed", "")] * 2


def test_the_pack_says_where_all_libraries_lie_that_a_hook_loads():
    of_every_python = {"__future__", "_functools", "errno"}
    assert (ASKING | SPARED) - of_every_python == set(LIBRARIES)
