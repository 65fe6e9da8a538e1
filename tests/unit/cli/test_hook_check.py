"""What the hook does beside its gates: a fault of that is not theirs."""

import json

from hook_runs import gate, new_project, payload, run_changed_hook, stops
from notyet.hook import check as hook_check


def test_a_fault_in_what_is_done_while_gates_are_at_work_does_not_end_them(tmp_path):
    project = new_project(tmp_path / "p", gate("exit 1"))
    change = """
from notyet.ledger.stops import Ledger
def fails(_):
    raise OSError("disk I/O error")
Ledger.write_back = fails"""
    done = run_changed_hook(payload("claude", project), change, "--host", "claude")
    assert json.loads(done.stdout)["decision"] == "block"
    assert stops() == [("blocked", "g")]


def test_getting_ready_keeps_every_fault_to_itself(monkeypatch):
    class Broken:
        def write_back(self):
            raise OSError("disk I/O error")

    monkeypatch.setattr(hook_check, "_ledger", Broken())
    assert hook_check._get_ready() is None
