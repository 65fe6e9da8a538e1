"""A subagent that did not pass is named to the user at the next stop of the main agent (N3)."""

import json
import os

import pytest

from hook_runs import PASSING, ask, new_project, payload, stops
from notyet import Allow, Block, Engine, Ledger
from notyet.cli.main import main
from notyet.config.sessions import has_untold, mark_untold
from notyet.core.message import note
from support import gate, stop

pytestmark = pytest.mark.rule("N3")

ONE = "[limits]\nmax_blocks = 1\n"
FOR_CODER = '[gates.tests]\nrun = "exit 1"\nwhen = "always"\nfor = ["coder"]\n'
FAILS = "subagent coder: NOT PASSED: tests failed (notyet log 2)"


def subagent(host, folder, number, **fields):
    kind = {"hook_event_name": "SubagentStop", "agent_id": "a1", "agent_type": "coder"}
    said = {"last_assistant_message": f"report {number}", "stop_hook_active": number > 1}
    return ask(payload(host, folder, **kind | said | fields), "--host", host)


def main_stop(host, folder, message="done", **fields):
    return ask(payload(host, folder, last_assistant_message=message, **fields), "--host", host)


def line_of(reply):
    return json.loads(reply.stdout or "{}").get("systemMessage", "")


@pytest.mark.parametrize("own", ["", PASSING], ids=["no gate of its own", "a gate of its own"])
@pytest.mark.parametrize("host", ["claude", "codex"])
def test_the_next_main_stop_names_a_capped_subagent_once(tmp_path, host, own):
    folder = new_project(tmp_path / "p", ONE + FOR_CODER + own)
    assert json.loads(subagent(host, folder, 1).stdout)["decision"] == "block"
    subagent(host, folder, 2)
    assert [outcome for outcome, _ in stops()] == ["blocked", "capped"]
    assert line_of(main_stop(host, folder, "one")) == f"notyet: {FAILS}"
    assert FAILS not in line_of(main_stop(host, folder, "two", turn_id="t2"))


def test_other_sessions_are_not_told(tmp_path):
    folder = new_project(tmp_path / "p", ONE + FOR_CODER)
    subagent("claude", folder, 1)
    subagent("claude", folder, 2)
    assert line_of(main_stop("claude", folder, session_id="other")) == ""
    assert FAILS in line_of(main_stop("claude", folder))


def test_a_subagent_that_goes_on_or_passes_at_last_is_not_named(tmp_path):
    file = 'run = "test -e fixed"'
    folder = new_project(tmp_path / "p", FOR_CODER.replace('run = "exit 1"', file))
    subagent("claude", folder, 1)
    assert line_of(main_stop("claude", folder, "one")) == ""
    (folder / "fixed").touch()
    subagent("claude", folder, 2)
    assert [outcome for outcome, _ in stops()] == ["blocked", "passed"]
    assert line_of(main_stop("claude", folder, "two")) == ""


def test_a_subagent_that_was_not_checked_is_named_too(tmp_path):
    broken = FOR_CODER.replace("exit 1", "kill -9 $$") + 'if_broken = "allow"\n'
    folder = new_project(tmp_path / "p", broken)
    subagent("claude", folder, 1)
    line = line_of(main_stop("claude", folder))
    assert line.startswith("notyet: subagent coder: NOT CHECKED: tests ")
    assert line.endswith(" (notyet log 1)")


def test_check_tells_of_no_subagent_so_that_the_stop_does(tmp_path, monkeypatch, capsys):
    folder = new_project(tmp_path / "p", ONE + FOR_CODER)
    subagent("claude", folder, 1)
    subagent("claude", folder, 2)
    file = tmp_path / "stop.json"
    file.write_text(json.dumps(payload("claude", folder)))
    monkeypatch.chdir(folder)
    main(["check", "--payload", str(file), "--as", "claude"])
    assert FAILS not in capsys.readouterr().out
    assert FAILS in line_of(main_stop("claude", folder))


def test_a_ledger_that_cannot_be_read_is_a_warning(tmp_path, monkeypatch):
    folder = new_project(tmp_path / "p", FOR_CODER)
    mark_untold(os.environ, "claude", payload("claude", folder)["session_id"])
    monkeypatch.setenv("NOTYET_LEDGER", str(tmp_path))
    reply = main_stop("claude", folder)
    assert "which subagents did not pass is unknown" in reply.stderr
    assert reply.code == 0
    assert has_untold(os.environ, "claude", payload("claude", folder)["session_id"])


def test_where_nothing_applies_no_ledger_is_opened(tmp_path, monkeypatch):
    monkeypatch.setenv("NOTYET_LEDGER", str(tmp_path))
    assert main_stop("claude", tmp_path).stderr == ""


def test_of_many_the_first_are_named_and_the_others_counted(tmp_path):
    def blocks(event):
        return Block("no") if event.scope == "subagent" else Allow()

    ledger = Ledger(tmp_path / "ledger.db")
    engine = Engine(
        [gate("g", blocks, scopes=("agent", "subagent"))], ledger=ledger, warn=lambda _: None
    )
    for number in range(8):
        for message in "abcd":
            event = stop(
                last_message=message, agent_id=f"a{number}", scope="subagent", label=f"n{number}"
            )
            last = engine.check_sync(event)
        assert last.outcome in {"capped", "stuck"}
    decision = engine.check_sync(stop(last_message="end"))
    assert len(decision.subagents) == 6
    assert decision.subagents[0].startswith("subagent n0: NOT PASSED: g failed (notyet log ")
    assert note(decision).endswith("notyet: 3 more subagents did not pass (notyet log)")
    assert engine.check_sync(stop(last_message="again", turn_id="t2")).subagents == ()
