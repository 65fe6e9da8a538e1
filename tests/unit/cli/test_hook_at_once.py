"""Many hooks at once on one ledger: none lets its agent go for lack of patience."""

import json
import sqlite3
import time

import pytest

from hook_runs import gate, ledger_path, new_project, payload, query, run_hook, start_hook
from notyet import Ledger

MANY = 12


def start_many(project, host="claude"):
    return [start_hook(payload(host, project, session_id=f"many {n}")) for n in range(MANY)]


def answers(hooks):
    return [json.loads(hook.communicate(timeout=120)[0]).get("decision") for hook in hooks]


@pytest.mark.rule("E9", "B3")
def test_every_one_of_many_hooks_is_answered(tmp_path):
    project = new_project(tmp_path / "p", gate("exit 1"))
    assert answers(start_many(project)) == ["block"] * MANY
    assert query("SELECT outcome, count(*) FROM stops GROUP BY 1") == [("blocked", MANY)]


@pytest.mark.rule("E9", "B3")
def test_a_ledger_that_is_locked_is_waited_for_as_long_as_the_host_waits(tmp_path):
    project = new_project(tmp_path / "p", gate("exit 1"))
    Ledger(ledger_path()).act("on", "", "")
    holder = sqlite3.connect(ledger_path(), isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    hooks = start_many(project)
    time.sleep(6)  # longer than a ledger waits by itself
    holder.execute("ROLLBACK")
    holder.close()
    assert answers(hooks) == ["block"] * MANY


@pytest.mark.rule("E9", "G5")
def test_a_ledger_that_stays_locked_is_waited_for_no_longer_than_the_host_waits(tmp_path):
    project = new_project(tmp_path / "p", gate("exit 1"))
    Ledger(ledger_path()).act("on", "", "")
    holder = sqlite3.connect(ledger_path(), isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    done = run_hook(payload("claude", project), "--timeout", "4")
    holder.close()
    assert done.returncode == 0
    said = json.loads(done.stdout)
    assert "decision" not in said
    assert "locked" in said["systemMessage"] or "no answer within" in said["systemMessage"]
