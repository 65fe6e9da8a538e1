"""The output of a command, limited in size while it is read (E4)."""

from __future__ import annotations

HEAD = 64 * 1024  # bytes kept of each stream; as text they take many times as much
TAIL = 192 * 1024


class Kept:
    """The beginning and the end of one stream."""

    __slots__ = ("_head", "_room", "_tail", "_total")

    def __init__(self, room: int = HEAD) -> None:
        self._room = room
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def add(self, chunk: bytes) -> None:
        """Add the next bytes."""
        self._total += len(chunk)
        room = self._room - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        if len(self._tail) > 2 * TAIL:
            del self._tail[:-TAIL]

    @property
    def left_out(self) -> int:
        """How many bytes were not kept."""
        return max(0, self._total - self._room - TAIL)

    def text(self) -> bytes:
        """Return what was kept, with a line that says how much is missing."""
        if not self.left_out:
            return bytes(self._head + self._tail)
        mark = b"\n... %d bytes left out ...\n" % self.left_out
        return bytes(self._head) + mark + bytes(self._tail[-TAIL:])
