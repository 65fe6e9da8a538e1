"""Tables for people: aligned, coloured on a terminal only, safe for whatever is in a cell."""

import io
import os

import pytest

from notyet.cli.terminal import Style, outcome_cell, table, width

PLAIN = Style(io.StringIO())


class Terminal(io.StringIO):
    def isatty(self):
        return True


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


def test_colours_stand_around_the_words_and_not_around_the_blanks(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    rows = [(outcome_cell("passed"), "x"), (outcome_cell("failed_open"), "y")]
    lines = table(("OUTCOME", "X"), rows, Style(Terminal()))
    assert lines[1] == "\x1b[32mpassed\x1b[0m       x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert table(("OUTCOME", "X"), rows, Style(Terminal()))[1] == "passed       x"
    assert outcome_cell("") == ("-", "")


@pytest.mark.parametrize("hostile", ["\x1b[31mred\x1b[0m", "a\nb", "\ud800x", "x" * 1_000_000])
def test_hostile_text_stays_on_its_line_in_every_column(hostile):
    lines = table(("A", "B", "C"), [(hostile, "b", hostile)], PLAIN, columns=100)
    assert len(lines) == 2
    assert len(lines[1]) <= 100
    assert lines[1].isprintable()
    lines[1].encode()


def test_a_stream_that_is_no_terminal_has_a_width_of_its_own(tmp_path):
    assert width(io.StringIO()) == 120
    with open(tmp_path / "f", "w") as file:
        assert width(file) == 120


def test_a_terminal_tells_its_width():
    import fcntl
    import struct
    import termios

    master, slave = os.openpty()
    try:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 77, 0, 0))
        with open(slave, "w", closefd=False) as terminal:
            assert width(terminal) == 77
    finally:
        os.close(master)
        os.close(slave)


def test_wide_letters_are_counted_by_their_columns():
    lines = table(("NAME", "N", "WHY"), [("測試", "5", "x"), ("lint", "6", "y" * 9)], PLAIN)
    assert lines == ["NAME  N  WHY", "測試  5  x", "lint  6  yyyyyyyyy"]
    cut = table(("ID", "WHY"), [("測", "試" * 50)], PLAIN, columns=30)[1]
    assert cut == "測  " + "試" * 11 + " ..."
