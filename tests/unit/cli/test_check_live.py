"""The lines that `notyet check` paints while gates are asked, on a terminal that a test holds."""

import fcntl
import os
import pty
import re
import struct
import termios
import threading

import pytest

from notyet.cli.check_show import Live
from notyet.cli.terminal import columns_of
from notyet.core.verdict import Allow, Block, Halt, Problem, Report


class Screen:
    """A terminal, and what was painted on it."""

    def __init__(self, rows=24, columns=80):
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.stream = os.fdopen(theirs, "w")
        self.seen = ""
        self._more = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        try:
            while block := os.read(self._ours, 65536):
                with self._more:
                    self.seen += block.decode()
                    self._more.notify()
        except OSError:  # the other end is closed
            return

    def until(self, pattern):
        with self._more:
            assert self._more.wait_for(lambda: re.search(pattern, self.seen), 30), self.seen

    def end(self):
        """Return what is seen at last."""
        self.stream.close()
        self._thread.join(30)
        os.close(self._ours)
        return self.seen.rpartition("\x1b[J")[2]


@pytest.fixture
def screen(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    return Screen()


def test_each_gate_has_a_line_that_says_what_became_of_it(screen):
    with Live(screen.stream) as live:
        answers = {
            "a": Allow(),
            "b": Block("no"),
            "c": Halt(),
            "d": Problem("crashed", "x"),
        }
        for name, answer in answers.items():
            live.hear(name, None)
            live.hear(name, Report(gate=name, answer=answer, seconds=2.25))
        live.hear("e", None)
        screen.until(r"  e  \d+ s\r\n")
        for line in ("  a  passed  2.2 s", "  b  failed  2.2 s", "  c  halted", "  d  broken"):
            assert line in screen.seen
    assert screen.end() == ""


def test_what_was_painted_is_gone_at_the_end_even_after_an_error(screen):
    def fail():
        with Live(screen.stream) as live:
            live.hear("a", None)
            screen.until(r"  a  \d+ s")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert screen.end() == ""


def test_names_are_made_harmless_and_cut(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen(columns=34)
    with Live(screen.stream) as live:
        live.hear("\x1b[31mred\nname that is much too long for this terminal", None)
        screen.until(r" s\r\n")
    screen.end()
    assert "\x1b[31m" not in screen.seen
    assert "  red name t" in screen.seen.splitlines()[0]
    assert len(screen.seen.splitlines()[0]) < 34


@pytest.mark.parametrize("columns", [6, 10, 20, 40])
@pytest.mark.parametrize("name", ["a name that is much too long for it", "測試" * 12, "é" * 30])
def test_no_line_takes_a_second_row(monkeypatch, name, columns):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen(columns=columns)
    answer = Report(gate=name, answer=Block("no"), warning="w", seconds=12345.0)
    with Live(screen.stream) as live:
        live.hear(name, None)
        live.hear("b" + name, None)
        live.hear("b" + name, answer)
        screen.until(r"(\r\n.*){2}")
    screen.end()
    shown = [line for line in re.split(r"\r\n|\x1b\[\d+A\r\x1b\[J", screen.seen) if line]
    assert len(shown) >= 2
    assert all(columns_of(line) < columns for line in shown)


def test_where_lines_are_few_those_that_run_are_shown(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen(rows=5)
    with Live(screen.stream) as live:
        for number in range(4):
            live.hear(f"over{number}", None)
            live.hear(f"over{number}", Report(gate=f"over{number}", answer=Allow()))
        for number in range(5):
            live.hear(f"runs{number}", None)
        screen.until(r"  runs0  \d+ s\r\n  runs1  \d+ s\r\n  runs2  \d+ s\r\n  and 2 more\r\n")
    assert screen.end() == ""


def test_whoever_waits_for_the_first_gate_is_told_for_what(screen):
    with Live(screen.stream) as live:
        screen.until("  looking at the files ...")
        live.hear("a", None)
        screen.until(r"\x1b\[J  a  \d+ s")
    assert screen.end() == ""


def test_a_terminal_that_is_gone_is_no_error(screen):
    with Live(screen.stream) as live:
        screen.stream.close()
        live.hear("a", None)
        live._thread.join(30)
        assert not live._thread.is_alive()


def test_nothing_is_painted_where_nobody_looks(tmp_path, monkeypatch):
    with (tmp_path / "out").open("w") as stream, Live(stream) as live:
        live.hear("a", None)
        assert live._thread is None
    monkeypatch.setenv("TERM", "dumb")
    screen = Screen()
    with Live(screen.stream) as live:
        assert live._thread is None
    assert screen.end() == ""
