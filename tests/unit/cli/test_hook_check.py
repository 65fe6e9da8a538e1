"""What the hook does beside its gates: a fault of that is not theirs."""

import json

from hook_runs import gate, new_project, payload, run_changed_hook, stops


def test_a_fault_in_what_is_done_while_gates_are_at_work_does_not_end_them(tmp_path):
    project = new_project(tmp_path / "p", gate("exit 1"))
    change = """
from notyet.ledger.connection import Connection
def fails(_):
    raise OSError("disk I/O error")
Connection.write_back = fails"""
    done = run_changed_hook(payload("claude", project), change, "--host", "claude")
    assert json.loads(done.stdout)["decision"] == "block"
    assert stops() == [("blocked", "g")]
