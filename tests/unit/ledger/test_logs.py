"""The whole output of a gate that failed, in a file beside the ledger."""

import os
import stat
from pathlib import Path
from zlib import crc32

import pytest

from hook_runs import ask, gate, new_project, payload, query, run_hook
from notyet import Ledger, Report
from notyet.ledger import Begun
from notyet.ledger.logs import keep

pytestmark = pytest.mark.file_only("its logs")


def test_a_log_holds_all_and_is_for_its_user_only(tmp_path):
    ledger = str(tmp_path / "state" / "ledger.db")
    path = Path(keep(ledger, 7, "unit tests/é", "out\né\udc80"))
    whose = crc32(f"{ledger}\nunit tests/é".encode())
    assert path.name == f"stop-7-unit-tests---{whose:08x}.log"
    assert path.read_text() == "out\né?\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["../../evil", "/etc/passwd", "..", ".", "a\0b", "x" * 500])
def test_no_name_of_a_gate_leads_out_of_the_folder(tmp_path, name):
    path = keep(str(tmp_path / "ledger.db"), 1, name, "out")
    assert os.path.dirname(path) == str(tmp_path / "logs")
    assert os.listdir(tmp_path / "logs") == [os.path.basename(path)]


def test_gates_whose_names_differ_only_in_odd_letters_have_logs_of_their_own(tmp_path):
    names = ["a b", "a/b", "x" * 70 + "1", "x" * 70 + "2", "\udc80", "\udc81"]
    paths = [keep(str(tmp_path / "ledger.db"), 1, name, name[-1]) for name in names]
    assert len(set(paths)) == len(names)


FOREIGN = [
    "mine.txt",
    "stop-1-g.log",
    "stop-1-g-0123456.log",
    "stop-x-g-01234567.log",
    "stop-1-01234567.log",
    "stop-1-g-01234567.log.gz",
    "stop-1-g-01234567",
    "halt-1-g-01234567.log",
    "stop-²-g-01234567.log",
]


def write(ledger, number, *gates):
    """Keep the output of some gates of a stop."""
    return [ledger.keep_output(Begun(stop=number), Report(gate=g, output="out")) for g in gates]


def test_older_logs_make_room_and_foreign_files_stay(tmp_path, monkeypatch):
    monkeypatch.setattr("notyet.ledger.logs._KEPT", 100)
    ledger = Ledger(tmp_path / "ledger.db")
    (tmp_path / "logs").mkdir()
    for name in FOREIGN:
        (tmp_path / "logs" / name).touch()
    for number in range(1, 106):
        (path,) = write(ledger, number, "g")
        os.utime(path, (1000 + number, 1000 + number))
    names = set(os.listdir(tmp_path / "logs")) - set(FOREIGN)
    assert {int(name.split("-")[1]) for name in names} == set(range(6, 106))
    assert set(FOREIGN) <= set(os.listdir(tmp_path / "logs"))


def test_the_logs_of_this_stop_stay_whatever_the_clock_and_the_numbers_say(tmp_path, monkeypatch):
    monkeypatch.setattr("notyet.ledger.logs._KEPT", 100)
    for number in range(1000, 1100):
        path = keep(str(tmp_path / "ledger.db"), number, "g", "out")
        os.utime(path, (4_000_000_000, 4_000_000_000))  # the clock went back since
    mine = write(Ledger(tmp_path / "ledger.db"), 1, "a", "b")
    assert all(map(os.path.exists, mine))
    assert len(os.listdir(tmp_path / "logs")) == 101


def test_a_log_that_an_agent_was_just_told_of_stays_however_small_the_limit_is(tmp_path):
    folder = Path(os.environ["HOME"]) / ".config" / "notyet"
    folder.mkdir(parents=True)
    (folder / "notyet.toml").write_text('[ledger]\nlogs = "1kB"\n')
    project = new_project(tmp_path / "p", gate("seq 1 2000; exit 1"))
    told = []
    for turn in ("one", "two"):
        reply = run_hook(payload("claude", project, last_assistant_message=turn))
        assert reply.returncode == 0
        told.append(Path(query("SELECT log FROM reports ORDER BY stop DESC")[0][0]))
        assert str(told[-1]) in reply.stdout.decode()
        assert told[-1].exists()
    assert not told[0].exists()  # an older one makes room


@pytest.mark.parametrize("kind", ["link", "broken link", "pipe", "folder"])
def test_a_log_is_written_to_a_file_and_nowhere_else(tmp_path, kind):
    path = Path(keep(str(tmp_path / "ledger.db"), 1, "g", "out"))
    path.unlink()
    elsewhere = tmp_path / "elsewhere"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(elsewhere)
    if kind == "link":
        elsewhere.write_text("precious")
    assert keep(str(tmp_path / "ledger.db"), 1, "g", "out") == ""
    assert not elsewhere.exists() or elsewhere.read_text() == "precious"


def test_a_log_that_cannot_be_written_is_none(tmp_path):
    (tmp_path / "logs").touch()
    assert keep(str(tmp_path / "ledger.db"), 1, "g", "out") == ""


def test_an_agent_is_told_where_the_whole_output_is(tmp_path):
    project = new_project(tmp_path / "p", gate("seq 1 2000; exit 1"))
    reply = ask(payload("claude", project))
    ((path,),) = query("SELECT log FROM reports")
    assert path in reply.stdout
    assert Path(path).read_text().split() == [str(n) for n in range(1, 2001)]


@pytest.mark.rule("N2")
@pytest.mark.parametrize("line", ["é" * 30, "word " * 30])
def test_lines_are_never_left_out_without_saying_where_the_rest_is(tmp_path, line):
    for number in (1, 4):
        names = "".join(
            f'[gates.g{n}]\nrun = """yes "{line}" | head -{n * 12 + 3}; exit 1"""\n'
            f'hint = "{"h" * 40 * n}"\n'
            for n in range(number)
        )
        project = new_project(tmp_path / f"p{number}", names)
        ask(payload("claude", project, session_id=f"s{number}"))
        ((prompt,),) = query("SELECT prompt FROM stops ORDER BY id DESC LIMIT 1")
        for section in prompt.split("FAILED ")[1:]:
            assert ("lines left out" not in section) or "Full output: " in section
        assert len(prompt.encode()) < 3_000
