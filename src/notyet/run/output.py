"""What came on one stream of a command, bounded while it is read (E4)."""

from __future__ import annotations

HEAD = 64 * 1024  # of each stream, bytes that are kept; as text they take many times as much
_TAIL = 192 * 1024


class Kept:
    """What came on one stream: its beginning and its end."""

    __slots__ = ("_head", "_room", "_tail", "_total")

    def __init__(self, room: int = HEAD) -> None:
        self._room = room
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._total += len(chunk)
        room = self._room - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        if len(self._tail) > 2 * _TAIL:
            del self._tail[:-_TAIL]

    @property
    def left_out(self) -> int:
        """How many bytes were not kept."""
        return max(0, self._total - self._room - _TAIL)

    def text(self) -> bytes:
        """Return what was kept, with a line that says how much is missing."""
        if not self.left_out:
            return bytes(self._head + self._tail)
        mark = b"\n... %d bytes left out ...\n" % self.left_out
        return bytes(self._head) + mark + bytes(self._tail[-_TAIL:])


_MOST_TOLD = 4096  # what is longer does not say how a command ended
_PREAMBLE = 4096  # what comes before the frame is only looked at when something is wrong


class Framed(Kept):
    """What came in a frame: others may print before it, and nothing after it counts.

    It is `MARK newline`, what the command prints, `newline MARK space`, a word on how it ended,
    `newline MARK newline`.
    """

    __slots__ = ("_mark", "_open", "has_begun", "is_complete", "preamble", "told")

    def __init__(self, mark: bytes, room: int = HEAD) -> None:
        super().__init__(room)
        self._mark = mark
        self._open = b""  # read, and not yet known what it is
        self.has_begun = self.is_complete = False
        self.preamble = b""
        self.told: bytes | None = None  # how it ended

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._open += chunk
        if not self.has_begun:
            self._find_begin()
        if self.has_begun and self.told is None:
            self._find_end()
        if self.told is not None and not self.is_complete:
            self._find_last()

    def text(self) -> bytes:
        """Return what was kept; also when the end never came."""
        if self.has_begun and self.told is None and self._open:
            super().add(self._open)
            self._open = b""
        return super().text()

    def _find_begin(self) -> None:
        before, found, after = self._open.partition(self._mark + b"\n")
        self.preamble = before[-_PREAMBLE:]
        self.has_begun = bool(found)
        self._open = after if found else self.preamble

    def _find_last(self) -> None:
        told, found, _ = self._open.partition(b"\n%s\n" % self._mark)
        if len(told) <= _MOST_TOLD:
            self.told, self.is_complete = told, bool(found)
            return
        super().add(b"\n%s %s" % (self._mark, self._open))  # it was output like all the rest
        self.told, self._open = None, b""

    def _find_end(self) -> None:
        mark = b"\n%s " % self._mark
        before, found, after = self._open.partition(mark)
        if found:
            self.told, self._open = b"", after
        else:
            sure = max(0, len(before) - len(mark) + 1)
            before, self._open = before[:sure], before[sure:]
        super().add(before)
