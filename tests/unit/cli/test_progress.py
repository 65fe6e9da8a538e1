"""The live view: what runs, what waits, what came of others; safe for hostile text."""

import io
import os
import threading

import pytest
from rich.cells import cell_len

from notyet import Block, Report
from notyet.cli.progress import Progress, Writer, last_line, waiting
from screens import HeldTerminal, resize, shown


@pytest.fixture(autouse=True)
def _environ(monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")


def test_jobs_wait_run_and_end_and_are_counted():
    terminal = HeldTerminal()
    with Progress(stream=terminal.stream) as progress:
        progress.jobs.planned(["lint", "\x1b[31mtests\n", "types"])
        progress.jobs("lint", None)
        progress.jobs("lint", Report(gate="lint", answer=Block("x"), exit="exit 1", seconds=2.25))
        progress.jobs("\x1b[31mtests\n", None)
        progress.jobs.printed("\x1b[31mtests\n", b"\x1b[31mone\x1b[0m")
        terminal.until(
            r"\A  ✗ lint    2.2 s  exit 1\n  \S tests   \d\.\d s  one\n"
            r"  · types          waiting\n  1 of 3 done  ━{10}─{20}\Z"
        )
    assert terminal.end() == ""
    assert "\x1b[31m" not in terminal.seen


def test_jobs_that_have_ended_are_counted_and_not_shown_where_their_results_are_printed():
    terminal = HeldTerminal()
    with Progress(stream=terminal.stream, keeps_ended=False) as progress:
        progress.jobs.planned(["a", "b"])
        terminal.until("0 of 2 done")
        progress.jobs.end("a", 1.0)
        with progress.hidden():
            terminal.until(r"\A\Z")
            terminal.stream.write("a passed\n")
            terminal.stream.flush()
        terminal.until(r"\Aa passed\n  · b +waiting\n  1 of 2 done")
    assert terminal.end() == "a passed"


def test_of_more_jobs_than_rows_those_that_run_are_shown():
    terminal = HeldTerminal(rows=6)
    with Progress(stream=terminal.stream) as progress:
        progress.jobs.planned([f"job {n}" for n in range(20)])
        progress.jobs.end("job 0", 1.0, "✓")
        for n in range(10, 16):
            progress.jobs.begin(f"job {n}")
        seen = terminal.until(r"\A(  \S job 1[0-3] .*\n){4}  1 of 20 done, 6 running  ")
        assert len(seen.splitlines()) == 5
    terminal.end()


@pytest.mark.parametrize("columns", [6, 10, 20, 40, 200])
@pytest.mark.parametrize("name", ["a name that is much too long for it", "測試" * 12, "é" * 30])
def test_no_line_takes_a_second_row(name, columns):
    terminal = HeldTerminal(columns)
    with Progress(stream=terminal.stream) as progress:
        progress.jobs.begin(name)
        progress.jobs.printed(name, "測試 ".encode() * 200)
        progress.jobs.end("b" + name, 12345.0, "!", "yellow", "broken")
        seen = terminal.until(r"(\n.*){2}")
    assert len(seen.splitlines()) == 3
    assert all(cell_len(line) < columns for line in seen.splitlines())
    assert terminal.end() == ""


def test_a_view_that_a_narrower_terminal_has_wrapped_is_wiped_whole():
    terminal = HeldTerminal(columns=80)
    with Progress(stream=terminal.stream) as progress:
        progress.jobs.begin("tests")
        progress.jobs.printed("tests", b"x" * 50)
        terminal.until("x{50}")
        resize(terminal.stream.fileno(), 30)
        # Of its 70 columns, such a terminal has made three rows.
        terminal.until(r"x \.\.\.")
        assert "\r\x1b[3A" in terminal.seen
    terminal.end()


def test_a_view_that_does_not_change_is_painted_once():
    terminal = HeldTerminal()
    writer = Writer(terminal.stream, lambda _columns, _rows: ["the same"])
    writer.show()
    for number in range(3):
        writer.write(f"line {number}")
        terminal.until(f"line {number}\nthe same")
        for _ in range(5):
            writer.flush()
    writer.close()
    assert terminal.end() == "line 0\nline 1\nline 2"
    assert terminal.seen.count("the same") <= 4  # at first, and after each line


@pytest.mark.parametrize(
    ("printed", "line"),
    [
        (b"", ""),
        (b"one\ntwo\n\n  \n", "two"),
        (b"one\nhal", "hal"),
        (b" 10%\r 20%\r 30%\r", " 30%"),
        (b"\x1b[1;32mgreen\x1b[0m\n\x1b[2K\x1b[", "green"),
        ("漢字".encode()[:-1], "漢"),
        (b"a\xff\xfeb", "a��b"),
        (b"a\x08\x00\x07b\xe2\x80\xaec", "abc"),
        (b"x" * 5_000, "x" * 5_000),
    ],
)
def test_the_last_line_is_the_last_that_shows_something(printed, line):
    assert last_line(printed) == line


def test_only_the_end_of_what_a_job_prints_is_kept():
    terminal = HeldTerminal()
    with Progress(stream=terminal.stream) as progress:
        progress.jobs.begin("tests")
        for _ in range(1000):
            progress.jobs.printed("tests", b"y\n" * 50_000)
        progress.jobs.printed("tests", b"the end of it, ")
        progress.jobs.printed("tests", b"in two parts")
        terminal.until("s  the end of it, in two parts")
    terminal.end()


def test_a_terminal_that_is_gone_is_no_error(monkeypatch):
    failed = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    terminal = HeldTerminal()
    with Progress(stream=terminal.stream) as progress:
        progress.jobs.begin("lint")
        terminal.until("lint")
        os.close(terminal.stream.fileno())
        progress.jobs.begin("tests")
    with pytest.raises(OSError):
        terminal.stream.close()
    assert failed == []


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_nothing_is_painted_where_it_could_not_be_wiped(monkeypatch, term):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", term)
    stream = Terminal() if term == "dumb" else io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    with waiting("removing ..."), Progress() as progress:
        progress.jobs.begin("lint")
    assert stream.getvalue() == ""


def test_words_are_shown_while_a_block_runs(monkeypatch):
    terminal = HeldTerminal()
    monkeypatch.setattr("sys.stderr", terminal.stream)
    with waiting("removing\nold stops ..."):
        terminal.until(r"\A\S removing old stops \.\.\.\Z")
    assert terminal.end() == ""


def test_screens_are_read_as_terminals_show_them():
    assert shown("ab\r\nc\x1b[1A\rX\x1b[K", 80) == ["X", "c"]
    assert shown("abcd", 3) == ["abc", "d"]
    assert shown("\x1b[?7labcd\x1b[?7h", 3) == ["abd"]
