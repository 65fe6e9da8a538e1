"""The whole output of a gate that failed, in a file beside the ledger."""

import os
import stat
from pathlib import Path

import pytest

from hook_runs import ask, gate, new_project, payload, query
from notyet import Ledger, Report
from notyet.ledger.logs import keep
from support import stop


def test_a_log_holds_all_and_is_for_its_user_only(tmp_path):
    path = Path(keep(str(tmp_path / "state" / "ledger.db"), 7, "unit tests/é", "out\né\udc80"))
    assert path.name == "stop-7-unit-tests--.log"
    assert path.read_text() == "out\né?\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["../../evil", "/etc/passwd", "..", ".", "a\0b", "x" * 500])
def test_no_name_of_a_gate_leads_out_of_the_folder(tmp_path, name):
    path = keep(str(tmp_path / "ledger.db"), 1, name, "out")
    assert os.path.dirname(path) == str(tmp_path / "logs")
    assert os.listdir(tmp_path / "logs") == [os.path.basename(path)]


def test_old_logs_make_room_and_foreign_files_stay(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "mine.txt").touch()
    for number in range(105):
        path = keep(str(tmp_path / "ledger.db"), number, "g", "out")
        os.utime(path, (number, number))
    names = os.listdir(tmp_path / "logs")
    assert len(names) == 101
    assert "mine.txt" in names
    assert "stop-104-g.log" in names
    assert "stop-3-g.log" not in names


def test_a_log_that_cannot_be_written_is_none(tmp_path):
    (tmp_path / "logs").touch()
    assert keep(str(tmp_path / "ledger.db"), 1, "g", "out") == ""


def test_the_ledger_keeps_the_output_of_its_stop(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    begun = ledger.begin(stop())
    path = ledger.keep_output(begun, Report(gate="g", output="all of it"))
    assert Path(path).read_text() == "all of it\n"


def test_an_agent_is_told_where_the_whole_output_is(tmp_path):
    project = new_project(tmp_path / "p", gate("seq 1 2000; exit 1"))
    reply = ask(payload("claude", project))
    ((path,),) = query("SELECT log FROM reports")
    assert path in reply.stdout
    assert Path(path).read_text().split() == [str(n) for n in range(1, 2001)]


def test_a_short_output_gets_no_log(tmp_path):
    project = new_project(tmp_path / "p", gate("echo short; exit 1"))
    ask(payload("claude", project))
    assert query("SELECT log FROM reports") == [("",)]
