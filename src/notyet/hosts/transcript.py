"""The last message of an agent, from the JSONL transcript that its host writes (table L).

Each host's lines are recognised by their shape. The file is read backwards, so the cost depends on
how far back the answer is, and not on the size of the file. Another process may be writing it, and
it may be anything but a transcript: nothing here raises, waits, or keeps more than one line in
memory.
"""

from __future__ import annotations

from notyet import light
from notyet.core.text import bounded
from notyet.light import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

    from notyet.core.event import StopEvent

    T = TypeVar("T")

_BLOCK = 64 * 1024
_MOST_SCANNED = 64 * 1024 * 1024  # bytes from the end
_LONGEST_LINE = 8 * 1024 * 1024
_SHORTEST_LINE = len('{"role":"assistant","parts":"x"}')
_MOST_PARSED = 50_000  # lines that look like a message
_MOST_VALUES = 200  # lines with a hint
_LONGEST_MESSAGE = 1_000_000  # characters
_HEAD = 256 * 1024  # bytes in which the first message of a file begins
_HINTS = (
    b"assistant",
    b"agent_message",
    b'"gemini"',
)  # one of them stands in every line we look for
_WHOLE = (b"{}", b"[]")  # the ends of a whole line
_AROUND_JSON = b" \t\r\0"  # a crash can leave NULs where a line was never written
_TEXT_TYPES = ("text", "output_text")
_ROLES = ("assistant", "model")  # of Qwen Code, "model"
_READ = light.O_RDONLY | light.O_NONBLOCK | light.O_NOCTTY | light.O_CLOEXEC
_FILE_KINDS = 0o170000
_REGULAR_FILE = 0o100000


def last_message_of(event: StopEvent) -> str | None:
    """Return the last message of the stopping agent, from its payload or its transcript."""
    if event.last_message and event.last_message.strip():
        return event.last_message
    path = own_transcript(event)
    return last_message(path) if path else None


def own_transcript(event: StopEvent) -> str | None:
    """Return the path of the stopping agent's own transcript, or None if it is not known."""
    if event.scope != "subagent":
        return event.transcript_path
    # Everywhere but in Mux, `transcript_path` is the parent's file.
    return event.agent_transcript_path or (event.transcript_path if event.host == "mux" else None)


def last_message(path: str) -> str | None:
    """Return the text of the last assistant message that has text, or None."""
    return _read(path, _search)


def ends_of(path: str | None) -> tuple[bytes, bytes]:
    """Return the first and the last bytes of a file; none of one that cannot be read."""
    return (_read(path, _ends) if path else None) or (b"", b"")


def values_in(path: str, hint: bytes) -> list[Any]:
    """Return the last lines of a JSONL file that contain a hint, the last one first."""

    def read(handle: int, size: int) -> list[Any]:
        lines = zip(range(_MOST_VALUES), _lines(handle, size, (hint,)), strict=False)
        return [_value(line) for _, line in lines]

    return _read(path, read) or []


def files_below(folder: str, name: str) -> list[str]:
    """Return the paths `folder/*/name` that exist."""
    try:
        found = [f"{folder}/{middle}/{name}" for middle in light.listdir(folder)]
    except (OSError, ValueError):
        return []
    return [path for path in found if light.exists(path)]


def _ends(handle: int, size: int) -> tuple[bytes, bytes]:
    last = max(0, size - _BLOCK)
    return light.pread(handle, _BLOCK, 0), light.pread(handle, size - last, last)


def _read(path: str, read: Callable[[int, int], T]) -> T | None:
    """Return what a function reads from a file, given its handle and its size."""
    try:
        # Without O_NONBLOCK, opening a pipe would wait for a writer.
        handle = light.open(light.expanduser(path), _READ)
        try:
            about = light.fstat(handle)
            is_file = about.st_mode & _FILE_KINDS == _REGULAR_FILE
            return read(handle, about.st_size) if is_file else None
        finally:
            light.close(handle)
    except (OSError, ValueError):  # ValueError: a NUL or a lone surrogate in the path
        return None


def _search(handle: int, size: int) -> str | None:
    of_subagent: bool | None = None  # determined on demand
    for _, line in zip(range(_MOST_PARSED), _lines(handle, size), strict=False):
        entry = entry_in(line)
        text = _text_of(entry)
        if not text.strip():
            continue
        if entry.get("isSidechain") is True:
            if of_subagent is None:
                of_subagent = _is_of_subagent(light.pread(handle, _HEAD, 0))
            if not of_subagent:
                continue
        return _presentable(text)
    return None


def _lines(handle: int, size: int, hints: tuple[bytes, ...] = _HINTS) -> Iterator[bytes]:
    """Yield the lines that may hold a message, the last one first."""
    end = size
    floor = max(0, size - _MOST_SCANNED)
    later: list[bytes] = []  # the rest of the line at `end`, last piece first
    held = 0
    while end > floor:
        start = max(floor, end - _BLOCK)
        block = light.pread(handle, end - start, start)
        if len(block) < end - start:  # the file was truncated: drop what followed
            later, held = [], 0
        end = start
        last = block.rfind(b"\n")
        if last >= 0:
            tail = block[last + 1 :]
            if held + len(tail) <= _LONGEST_LINE:
                yield from _promising(b"".join([tail, *reversed(later)]), hints)
            first = block.find(b"\n")
            yield from _promising(block[first + 1 : last], hints)
            block = block[:first]
            later, held = [], 0
        held += len(block)
        later.append(block)
        if held > _LONGEST_LINE:
            later = []  # too long: only count its length from here on
    if end == 0 and held <= _LONGEST_LINE:
        yield from _promising(b"".join(reversed(later)), hints)


def _promising(lines: bytes, hints: tuple[bytes, ...]) -> Iterator[bytes]:
    """Yield the lines that are worth parsing, the last one first."""
    if not any(hint in lines for hint in hints):
        return  # most blocks; splitting them is expensive
    for line in reversed([line for line in lines.split(b"\n") if len(line) >= _SHORTEST_LINE]):
        bare = line.strip(_AROUND_JSON)
        # Sort out half-written lines without parsing them.
        if bare[:1] + bare[-1:] in _WHOLE and any(hint in bare for hint in hints):
            yield bare


def entry_in(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a line; an empty one if there is none."""
    return table_in(_value(line))


def _value(line: bytes) -> Any:
    try:
        return loads(line.decode("utf-8", "replace"))
    except ValueError:
        return None


def _text_of(entry: dict[str, Any]) -> str:
    """Return the text of an assistant's message in any host's shape; else an empty string (L4)."""
    kind = entry.get("type")
    if kind == "event_msg":  # Codex, what its user is shown
        shown = table_in(entry.get("payload"))
        return joined(shown.get("message")) if shown.get("type") == "agent_message" else ""
    if kind == "response_item":  # Codex, what its model said
        message = table_in(entry.get("payload"))
        if message.get("type") != "message":
            return ""
    elif kind == "agent.message.appended":  # Kimi Code
        message = table_in(table_in(entry.get("message")).get("message"))
    elif kind == "gemini":  # Gemini CLI
        return joined(entry.get("content"))
    elif kind == "assistant.message":  # GitHub Copilot CLI; subagents stand in their parent's file
        return "" if "agentId" in entry else joined(table_in(entry.get("data")).get("content"))
    elif kind in ("assistant", "message") and "message" in entry:  # Claude Code, Qwen; OpenClaw, Pi
        message = table_in(entry["message"])
        if entry.get("isApiErrorMessage") is True or message.get("model") == "<synthetic>":
            return ""  # written by Claude Code itself
    else:
        message = entry  # Mux, with `parts`; Codex of old, with `content`
    if message.get("role") not in _ROLES:
        return ""
    return joined(message["parts"] if "parts" in message else message.get("content"))


def table_in(value: object) -> dict[str, Any]:
    """Return a value if it is a table, else an empty one."""
    return value if isinstance(value, dict) else {}


def joined(content: object) -> str:
    """Return a message's text blocks, joined by newlines."""
    if isinstance(content, str):
        return content
    texts: list[str] = []
    was_piece = False
    for block in map(table_in, content if isinstance(content, list) else ()):
        # Parts of Qwen Code have no type; those that are thoughts say so.
        is_text = block.get("type", "text") in _TEXT_TYPES and block.get("thought") is not True
        text = block.get("text") if is_text else None
        if not isinstance(text, str) or not text:
            was_piece = False
            continue
        # Mux stores a text in the pieces in which it arrived, each with a timestamp.
        is_piece = "timestamp" in block
        if texts and not (is_piece and was_piece):
            texts.append("\n")
        texts.append(text)
        was_piece = is_piece
    return "".join(texts)


def _is_of_subagent(head: bytes) -> bool:
    """Return True if a file is a subagent's own: a side chain from its first line on.

    Older versions of Claude Code wrote subagents into the file of their parent.
    """
    # The quote keeps texts from matching: there, quotes are escaped.
    _, found, rest = head.partition(b'isSidechain":')
    return bool(found) and rest.lstrip()[:4] == b"true"


def _presentable(text: str) -> str:
    """Return a message without lone surrogates, and cut to a sensible size."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    return bounded(text, _LONGEST_MESSAGE)
