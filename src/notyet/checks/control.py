"""What is said to the process that holds a connection of ssh, on its socket.

A message is its length, its kind, and then numbers and texts; OpenSSH describes them in its file
PROTOCOL.mux.
"""

from __future__ import annotations

WORD = 4  # bytes of a number
NEW_SESSION, IS_ALIVE = 0x10000002, 0x10000004
DENIED, FAILED, ALIVE, OPENED = 0x80000002, 0x80000003, 0x80000005, 0x80000006
NO_ESCAPE = 0xFFFFFFFF


def message(*content: bytes) -> bytes:
    """Return a message as it is sent."""
    return text(b"".join(content))


def numbers(*values: int) -> bytes:
    """Return numbers as they stand in a message."""
    return b"".join(value.to_bytes(WORD, "big") for value in values)


def text(content: bytes) -> bytes:
    """Return a text as it stands in a message."""
    return numbers(len(content)) + content


HELLO = message(numbers(1, 4))  # in the fourth version, which is fifteen years old


def first(heard: bytes) -> tuple[list[int] | None, bytes]:
    """Return the numbers of the first message, or None if it has not all come; and the rest."""
    length = int.from_bytes(heard[:WORD], "big")
    if len(heard) < WORD + length or len(heard) < WORD:
        return None, heard
    content = heard[WORD : WORD + length]
    values = [int.from_bytes(content[i : i + WORD], "big") for i in range(0, length, WORD)]
    return values, heard[WORD + length :]
