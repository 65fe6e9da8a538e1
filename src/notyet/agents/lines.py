"""Lines out of a stream of bytes, none of them longer than we can bear."""

from __future__ import annotations

_LONGEST = 8 * 1024 * 1024  # a picture that an agent looked at, and more


class Lines:
    """Cuts what is read into lines; of one that is too long, only that it came is kept."""

    __slots__ = ("_held", "_is_skipping", "too_long")

    def __init__(self) -> None:
        self._held = bytearray()
        self._is_skipping = False
        self.too_long = 0

    def add(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes and return the lines that are whole now."""
        first, *rest = chunk.split(b"\n")
        self._hold(first)
        if not rest:
            return []
        lines = [self._take(), *rest[:-1]]
        self._hold(rest[-1])
        return [line for line in lines if line.strip()]

    def end(self) -> list[bytes]:
        """Return the last line, if it has no end."""
        last = self._take()
        return [last] if last.strip() else []

    def _hold(self, piece: bytes) -> None:
        if not self._is_skipping and len(self._held) + len(piece) > _LONGEST:
            self._held = bytearray()
            self._is_skipping = True
            self.too_long += 1
        if not self._is_skipping:
            self._held += piece

    def _take(self) -> bytes:
        line, self._held, self._is_skipping = bytes(self._held), bytearray(), False
        return line
