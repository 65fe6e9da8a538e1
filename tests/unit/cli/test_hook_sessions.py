"""A session keeps the gates of the project that it was started in, wherever its agent goes (W1)."""

import json
import os
import shutil
import time

import pytest

from conftest import git
from hook_runs import (
    FAILING,
    PASSING,
    ask,
    begin,
    gate,
    new_project,
    payload,
    query,
    run_hook,
    stops,
)
from notyet.config import sessions
from notyet.config.find import state_folder

pytestmark = pytest.mark.rule("J6")
HOSTS = ("claude", "codex")
both = pytest.mark.parametrize("host", HOSTS)


def stop(host, folder, environ=None, **fields):
    """Stop; return what becomes of the agent, and what its user reads."""
    reply = ask(payload(host, folder, **fields), "--host", host, environ=environ)
    said = json.loads(reply.stdout or "{}")
    return said.get("decision", "allow"), said.get("systemMessage", "")


def notes():
    folder = os.path.join(state_folder(os.environ), "sessions")
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def gates():
    return [name for (name,) in query("SELECT gate FROM reports ORDER BY stop, position")]


@pytest.fixture
def two(tmp_path):
    """Two projects side by side: the gate of the first fails, that of the second passes."""
    return new_project(tmp_path / "a", FAILING), new_project(tmp_path / "b", PASSING)


@both
def test_an_agent_that_goes_to_a_sibling_keeps_its_gates_and_its_user_is_told_once(two, host):
    first, second = two
    begin(host, first)
    told = f"the agent works in {second}, was started in {first}: the gates of both run"
    for number in range(2):
        verdict, said = stop(host, second, last_assistant_message=f"{number}")
        assert (verdict, told in said) == ("block", number == 0)
    assert gates() == ["ok", "bad"] * 2


@both
def test_without_a_start_the_first_stop_with_gates_counts(two, host):
    first, second = two
    nowhere = first.parent
    assert stop(host, nowhere) == ("allow", "")
    assert notes() == []
    assert stop(host, first)[0] == "block"
    assert stop(host, second)[0] == "block"
    assert stop(host, nowhere)[0] == "block"
    assert stop(host, second, session_id="s2")[0] == "allow"


@both
@pytest.mark.parametrize("way", ["moved", "removed", "replaced"])
def test_a_folder_that_is_moved_away_takes_no_gates_along(two, host, way):
    first, second = two
    begin(host, first)
    if way == "removed":
        shutil.rmtree(first)
    else:
        first.rename(first.parent / "moved")
    if way == "replaced":
        first.mkdir()
    told = f"{first}, where this session was started, was moved or replaced"
    assert told in stop(host, second)[1]
    assert [outcome for outcome, _ in stops()] == ["failed_open"]


def test_the_project_that_the_host_names_counts_without_a_note(two):
    first, second = two
    environ = os.environ | {"CLAUDE_PROJECT_DIR": str(first)}
    verdict, said = stop("claude", second, environ)
    assert (verdict, "the gates of both run" in said) == ("block", True)
    assert "the gates of both run" not in stop("claude", second, environ)[1]


@both
def test_subagents_are_of_their_session(two, host):
    first, second = two
    for folder in two:
        text = (folder / "notyet.toml").read_text() + 'for = "all"\n'
        new_project(folder, text)
    begin(host, first)
    child = {"hook_event_name": "SubagentStop", "agent_id": "a1", "agent_type": "coder"}
    verdict, said = stop(host, second, **child)
    assert (verdict, "the gates of both run" in said) == ("block", False)
    assert len(notes()) == 1
    assert "the gates of both run" in stop(host, second)[1]


@both
def test_a_folder_below_adds_nothing_twice(tmp_path, host):
    outer = new_project(tmp_path / "a", FAILING)
    inner = new_project(outer / "inner", PASSING)
    begin(host, outer)
    assert "the gates of both run" not in stop(host, inner)[1]
    assert gates() == ["bad", "ok"]


@both
def test_the_same_name_in_both_is_two_gates(tmp_path, host):
    first = new_project(tmp_path / "a", gate("exit 1"))
    second = new_project(tmp_path / "b", gate("true"))
    begin(host, first)
    assert stop(host, second)[0] == "block"
    assert len(set(gates())) == 2


@both
def test_a_linked_work_tree_replaces_the_main_one(tmp_path, host):
    main = new_project(tmp_path / "main", gate("test ! -e bad"))
    git(main, "init", "--quiet")
    git(main, "add", ".")
    git(main, "commit", "--quiet", "-m", "one")
    git(main, "worktree", "add", "--quiet", "../tree")
    (main / "bad").write_text("of another session")
    begin(host, main)
    words = f"works in {tmp_path}/tree, was started in {main}: only the former is checked"
    assert stop(host, tmp_path / "tree") == ("allow", f"notyet: the agent {words}")
    assert stop(host, tmp_path / "tree") == ("allow", "")
    assert {*gates()} == {"g"}


@both
def test_gates_that_are_off_elsewhere_are_not_off_for_this_session(two, host):
    from notyet.config.off import switch_off

    first, second = two
    begin(host, first)
    switch_off(str(second), 0.0, os.environ)
    assert stop(host, second)[0] == "block"
    assert gates() == ["bad"]
    assert stop(host, second, session_id="s2")[0] == "allow"
    switch_off(str(first), 0.0, os.environ)
    assert stop(host, second)[0] == "allow"
    assert stops()[-1][:2] == ("skipped", "off")


def test_only_the_first_start_of_a_session_is_noted(two):
    first, second = two
    begin("codex", first)
    begin("codex", second, source="resume")
    assert sessions.started_in(os.environ, "codex", "s1") == str(first)
    assert sessions.started_in(os.environ, "claude", "s1") == ""


@pytest.mark.parametrize("session", ["../../x", "a" * 300, "ü", "a b", "\ud800"])
def test_any_id_has_a_note_in_its_folder(two, session):
    known = (os.environ, "codex", session)
    sessions.note_start(*known, str(two[0]))
    assert sessions.started_in(*known) == str(two[0])
    assert len(notes()) == 1


@pytest.mark.parametrize("session", ["", " ", None, 5])
def test_without_an_id_there_is_no_note(two, session):
    sessions.note_start(os.environ, "codex", session, str(two[0]))
    assert sessions.started_in(os.environ, "codex", session) == ""
    assert sessions.is_first_time(os.environ, "codex", session, "/x")
    assert notes() == []


def test_a_note_is_for_its_user_only_and_a_damaged_one_is_none(two):
    first, second = two
    begin("codex", first)
    (name,) = notes()
    path = os.path.join(state_folder(os.environ), "sessions", name)
    modes = [os.stat(one).st_mode & 0o777 for one in (path, os.path.dirname(path))]
    assert modes == [0o600, 0o700]
    with open(path, "wb") as file:
        file.write(b"\xff not a path")
    assert stop("codex", second)[0] == "allow"
    os.unlink(path)
    os.mkdir(path)
    assert stop("codex", second, session_id="s1", last_assistant_message="x")[0] == "allow"


def test_a_note_that_cannot_be_written_is_said_and_costs_nothing_else(two):
    folder = os.path.join(state_folder(os.environ), "sessions")
    with open(folder, "w", encoding="utf-8") as file:
        file.write("in the way")
    reply = ask(payload("codex", two[0]), "--host", "codex")
    assert json.loads(reply.stdout)["decision"] == "block"
    assert "where this session was started was not recorded" in reply.stderr


def test_old_notes_are_deleted_when_a_session_starts(two):
    begin("codex", two[0], session_id="old")
    (name,) = notes()
    path = os.path.join(state_folder(os.environ), "sessions", name)
    long_ago = time.time() - 31 * 86_400
    os.utime(path, (long_ago, long_ago))
    begin("codex", two[0], session_id="new")
    assert notes() == ["codex-new"]


def test_a_stop_of_a_process_reads_the_note_of_another(two):
    first, second = two
    known = {"hook_event_name": "SessionStart", "source": "startup"}
    assert run_hook(payload("codex", first, **known), "--host", "codex").returncode == 0
    done = run_hook(payload("codex", second), "--host", "codex")
    assert json.loads(done.stdout)["decision"] == "block"


def test_a_check_notes_nothing(two, monkeypatch):
    from notyet.cli.main import main

    monkeypatch.chdir(two[1])
    assert main(["check", "--as", "codex"]) == 0
    assert notes() == []


AGAIN = {"stop_hook_active": True, "last_assistant_message": "again"}
LEFT = "sent the agent back, and does not apply where it works now, so it was not run"


@pytest.fixture
def nested(tmp_path):
    """A project whose gate passes, and a folder in it whose gate fails until `good` is there."""
    outer = new_project(tmp_path / "p", PASSING)
    inner = new_project(outer / "packages/a", gate("test -e good"))
    return outer, inner


@both
@pytest.mark.rule("A8")
def test_a_stop_does_not_pass_without_the_gate_that_sent_the_agent_back(nested, host):
    outer, inner = nested
    begin(host, outer)
    assert stop(host, inner)[0] == "block"
    for message in ("again", "and again"):
        verdict, said = stop(host, outer, **AGAIN | {"last_assistant_message": message})
        assert verdict == "allow"
        assert f"NOT CHECKED: g {LEFT}" in said
    (inner / "good").touch()
    verdict, said = stop(host, inner, **AGAIN)
    assert (verdict, "passed after 1 send-back" in said) == ("allow", True)
    assert "NOT CHECKED" not in stop(host, outer, **AGAIN)[1]
    assert [outcome for outcome, _ in stops()] == [
        "blocked",
        "failed_open",
        "failed_open",
        "passed",
        "passed",
    ]


@both
@pytest.mark.rule("A8")
def test_a_gate_that_was_left_behind_is_not_forgotten_when_another_blocks(nested, host):
    outer, inner = nested
    new_project(outer, gate("test -e fine").replace("gates.g", "gates.top"))
    (outer / "fine").touch()
    begin(host, outer)
    assert stop(host, inner)[0] == "block"
    (outer / "fine").unlink()
    assert stop(host, outer, **AGAIN)[0] == "block"
    (outer / "fine").touch()
    assert f"NOT CHECKED: g {LEFT}" in stop(host, outer, **AGAIN)[1]


@both
@pytest.mark.rule("A8")
def test_a_gate_of_the_same_name_in_another_project_is_another_gate(tmp_path, host):
    first = new_project(tmp_path / "q", gate("true"))
    second = new_project(tmp_path / "p", gate("exit 1"))
    begin(host, first)
    assert stop(host, second)[0] == "block"
    verdict, said = stop(host, first, **AGAIN)
    assert (verdict, LEFT in said) == ("allow", True)
    assert [outcome for outcome, _ in stops()] == ["blocked", "failed_open"]


@both
@pytest.mark.rule("A8")
def test_a_gate_that_gets_a_label_is_the_same_gate(tmp_path, host):
    first = new_project(tmp_path / "x/first", gate("test -e good"))
    second = new_project(tmp_path / "second", gate("true"))
    assert stop(host, first)[0] == "block"
    (first / "good").touch()
    assert "passed after 1 send-back" in stop(host, second, **AGAIN)[1]
    assert gates() == ["g", "g", "first:g"]


@both
@pytest.mark.rule("A8")
def test_a_gate_that_is_edited_and_trusted_anew_is_the_same_gate(nested, host):
    _, inner = nested
    assert stop(host, inner)[0] == "block"
    new_project(inner, gate("true"))
    assert "passed after 1 send-back" in stop(host, inner, **AGAIN)[1]


@both
@pytest.mark.rule("A8")
def test_in_a_new_turn_the_gates_of_the_last_one_do_not_count(nested, host):
    outer, inner = nested
    begin(host, outer)
    assert stop(host, inner)[0] == "block"
    new = {"turn_id": "t2"} if host == "codex" else {}
    assert LEFT not in stop(host, outer, last_assistant_message="new", **new)[1]
    assert [outcome for outcome, _ in stops()] == ["overridden", "passed"]


@pytest.mark.rule("A8")
def test_a_check_tells_what_was_left_behind(nested, monkeypatch, capsys):
    from notyet.cli.main import main

    outer, inner = nested
    begin("codex", outer)
    assert stop("codex", inner)[0] == "block"
    monkeypatch.chdir(outer)
    sent = outer / "sent.json"
    sent.write_text(json.dumps(payload("codex", outer, **AGAIN)))
    main(["check", "--as", "codex", "--payload", str(sent)])
    assert LEFT in capsys.readouterr().out
