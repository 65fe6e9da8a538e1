"""Terminals for tests: what a person sees of what a program wrote."""

import codecs
import fcntl
import os
import pty
import re
import struct
import termios
import threading

from rich.cells import cell_len

_ESCAPE = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])")


def shown(written, columns=80):
    """Return the lines on a terminal of so many columns, and as many rows as it takes."""
    grid = _Grid(columns)
    at = 0
    while at < len(written):
        escape = _ESCAPE.match(written, at)
        if escape:
            grid.obey(*escape.groups())
        elif written[at] == "\x1b":
            assert len(written) - at < 10, written[at : at + 10]  # else the rest is on its way
            break
        else:
            grid.put(written[at])
        at = escape.end() if escape else at + 1
    return ["".join(line).rstrip() for line in grid.rows]


class _Grid:
    def __init__(self, columns):
        self._columns = columns
        self.rows = [[]]
        self._row = self._column = 0
        self._wraps = True

    def obey(self, private, number, kind):
        rows, row = self.rows, self._row
        if private:
            assert number == "7", f"the cursor is hidden, or another mode is set: {number}"
            self._wraps = kind == "h"
        elif kind == "A":
            self._row = max(0, row - int(number or 1))
        elif kind == "K":
            del rows[row][self._column :]
        elif kind == "J":
            del rows[row][self._column :], rows[row + 1 :]
        else:
            assert kind == "m", kind

    def put(self, letter):
        if letter == "\r":
            self._column = 0
        elif letter == "\n":
            self._down()
        else:
            assert letter.isprintable(), repr(letter)
            wide = cell_len(letter)
            if self._column + wide > self._columns:
                self._column = 0 if self._wraps else self._columns - wide
                if self._wraps:
                    self._down()
            line = self.rows[self._row]
            line += " " * (self._column + wide - len(line))
            line[self._column : self._column + wide] = [letter, *[""] * (wide - 1)]
            self._column += wide

    def _down(self):
        self._row += 1
        self.rows += [[] for _ in range(self._row + 1 - len(self.rows))]


def decoder():
    """Return what decodes blocks of bytes, of which one may end within a letter."""
    return codecs.getincrementaldecoder("utf-8")("replace")


def resize(fd, columns, rows=24):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class HeldTerminal:
    """A terminal that a test holds, with a stream for what it tests."""

    def __init__(self, columns=80, rows=24, encoding="utf-8"):
        self.columns = columns
        self._ours, theirs = pty.openpty()
        resize(theirs, columns, rows)
        self.stream = os.fdopen(theirs, "w", encoding=encoding)
        self.seen = ""
        self._decoder = decoder()
        self._more = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        try:
            while block := os.read(self._ours, 65536):
                with self._more:
                    self.seen += self._decoder.decode(block)
                    self._more.notify()
        except OSError:  # the other end is closed
            return

    @property
    def screen(self):
        return "\n".join(shown(self.seen, self.columns)).rstrip()

    def until(self, pattern):
        """Wait until the screen shows it; return the screen."""
        with self._more:
            assert self._more.wait_for(lambda: re.search(pattern, self.screen), 30), self.screen
            return self.screen

    def end(self):
        """Return what is left on the screen at the end."""
        self.stream.close()
        self._thread.join(30)
        os.close(self._ours)
        return self.screen
