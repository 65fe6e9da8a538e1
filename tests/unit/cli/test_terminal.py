"""Tables and colours: aligned, safe for hostile text, plain where no terminal is."""

import fcntl
import io
import os
import pty
import struct
import sys
import termios
from contextlib import suppress

import pytest

from notyet.cli.terminal import (
    Style,
    cut,
    folded,
    one_line,
    outcome_cell,
    shorten_middle,
    table,
    table_or_list,
)

PLAIN = Style(io.StringIO())


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _environ(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize(
    ("stream", "environ", "is_painted"),
    [
        (Terminal(), {}, True),
        (io.StringIO(), {}, False),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True),
        (io.StringIO(), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colours_are_for_terminals_unless_a_variable_says_otherwise(
    stream, environ, is_painted, monkeypatch
):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert Style(stream).paint("x", "red") == ("\x1b[31mx\x1b[0m" if is_painted else "x")


def test_columns_are_as_wide_as_their_widest_cell_and_lines_end_without_blanks():
    lines = table(("ID", "NAME", "WHY"), [("1", "lint", "x"), ("12", "a", "")], PLAIN)
    assert lines == ["ID  NAME  WHY", "1   lint  x", "12  a"]


def test_numbers_can_be_aligned_to_the_right():
    lines = table(("GATE", "N", "X"), [("a", "5", "x"), ("b", "500", "x")], PLAIN, right=("N",))
    assert lines == ["GATE    N  X", "a       5  x", "b     500  x"]


def test_the_last_column_is_cut_to_the_terminal_and_never_to_nothing():
    row = [("1", "w" * 200)]
    assert len(table(("ID", "WHY"), row, PLAIN, columns=60)[1]) == 60
    assert table(("ID", "WHY"), row, PLAIN, columns=1)[1] == "1   " + "w" * 12 + " ..."


def test_a_narrow_terminal_shortens_the_widest_columns_first():
    row = [("a-long-name-of-a-gate", "passed", "because of it")]
    lines = table(("GATE", "RESULT", "WHY"), row, PLAIN, columns=42)
    assert lines[1] == "a-long-n...f-a-gate  passed  because of it"
    assert max(map(len, table(("GATE", "RESULT", "WHY"), row, PLAIN, columns=40))) <= 40


def test_a_table_that_does_not_fit_is_a_list(monkeypatch):
    head = ("gate", "for", "when", "runs")
    rows = [("lint", "main", ("always", "red"), "make lint"), ("測試", "main", "", "make " * 9)]
    monkeypatch.setattr("notyet.cli.terminal.width", lambda _: 36)
    assert table_or_list(head, rows, PLAIN) == table(head, rows, PLAIN, columns=36)
    monkeypatch.setattr("notyet.cli.terminal.width", lambda _: 32)
    assert table_or_list(head, rows, PLAIN) == [
        "gate lint",
        "  for   main",
        "  when  always",
        "  runs  make lint",
        "gate 測試",
        "  for   main",
        "  runs  make make make make make",
        "        make make make make",
    ]
    painted = table_or_list(head, rows, Style(Terminal()))
    assert "\x1b[2m  when  \x1b[0m\x1b[31malways\x1b[0m" in painted


def test_the_last_column_can_be_wrapped():
    lines = table(("ID", "WHY"), [("1", "one two three four")], PLAIN, columns=20, wrap=True)
    assert lines == ["ID  WHY", "1   one two three", "    four"]


def test_long_names_keep_their_end():
    lines = table(("NAME", "WHY"), [("a" * 50 + "/test_pay.py", "x")], PLAIN)
    assert lines[1] == "a" * 19 + "..." + "aaaaaa/test_pay.py  x"
    assert shorten_middle("測試" * 9, 11) == "測試...測試"


def test_colours_stand_around_the_words_and_not_around_the_blanks():
    rows = [(outcome_cell("passed"), "x"), (outcome_cell("failed_open"), "y")]
    lines = table(("OUTCOME", "X"), rows, Style(Terminal()))
    assert lines[1] == "\x1b[32mpassed\x1b[0m       x"
    assert outcome_cell("") == ("-", "")


@pytest.mark.parametrize("hostile", ["\x1b[31mred\x1b[0m", "a\nb", "\ud800x", "x" * 1_000_000])
def test_hostile_text_stays_on_its_line_in_every_column(hostile):
    lines = table(("A", "B", "C"), [(hostile, "b", hostile)], PLAIN, columns=100)
    assert len(lines) == 2
    assert len(lines[1]) <= 100
    assert lines[1].isprintable()
    lines[1].encode()


def test_wide_letters_are_counted_by_their_columns():
    lines = table(("NAME", "N", "WHY"), [("測試", "5", "x"), ("lint", "6", "y" * 9)], PLAIN)
    assert lines == ["NAME  N  WHY", "測試  5  x", "lint  6  yyyyyyyyy"]
    assert one_line("測" * 10, 20) == "測" * 10
    assert one_line("測" * 10, 19) == "測" * 7 + " ..."
    assert [cut("測試a", 3), cut("測試a", 5), cut("測", -1)] == ["測", "測試a", ""]


def shown(columns, code, **environ):
    """Run code on a terminal of so many columns and 10 rows; return what it shows."""
    pid, terminal = pty.fork()
    if not pid:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 10, columns, 0, 0))
        program = f"from notyet.cli.terminal import *\n{code}"
        os.execve(sys.executable, [sys.executable, "-c", program], {**os.environ, **environ})  # noqa: S606  # no shell is wanted
    said = b""
    with suppress(OSError):  # the other end is closed
        while part := os.read(terminal, 4096):
            said += part
    os.waitpid(pid, 0)
    os.close(terminal)
    return said.decode().replace("\r", "")


def test_a_long_text_goes_on_below_its_beginning_on_a_terminal():
    said = shown(30, "print('fix:', folded('word ' * 8, 5))")
    assert said == "fix: word word word word word\n     word word word\n"
    assert folded("word " * 80, 5) == "word " * 80


@pytest.mark.parametrize(
    ("lines", "pager", "said"),
    [
        (20, "sed -n '$='", "20\n"),
        (5, "sed -n '$='", "x\n" * 5),
        (20, "", "x\n" * 20),
        (20, "no-such-pager", "x\n" * 20),
    ],
)
def test_more_than_a_terminal_has_rows_goes_to_the_pager(lines, pager, said):
    code = f"with paged(): print(*['x'] * {lines}, sep=chr(10))"
    assert shown(30, code, PAGER=pager) == said
