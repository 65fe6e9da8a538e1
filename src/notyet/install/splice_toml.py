"""Changes a TOML text and leaves every byte alone that does not have to change.

What is new goes to the end of the file under headers of its own; or into an inline table or
array, where the file has such a one in that place.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from notyet.config.readers import BYTE_ORDER_MARK
from notyet.config.readers import read_toml as read
from notyet.core.record import Record
from notyet.install.toml_locator import Locator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from notyet.config.document import Path
    from notyet.install.edit import Step

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_UNSAFE = re.compile(r'["\\\x00-\x1f\x7f]')
_LINE_END = re.compile(r"[ \t]*(,?)[ \t]*(?:#[^\n]*)?\n")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


class _Edit(Record):
    """Replace what stands between two places of a text whose line ends are single."""

    start: int
    end: int
    new: str = ""


def spliced(text: str, steps: Iterable[Step]) -> str:
    """Return the text after these steps. Raises BadSyntax for a text that is no TOML."""
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    text = text.removeprefix(mark)
    read(text)  # what follows relies on its being TOML
    for step in steps:
        if step.do == "drop":
            text = _applied(text, _drop(_look(text), step.path))
        elif step.do == "append":
            text = _appended(text, step.path, step.value)
        else:
            text = _put(text, step.path, step.value)
    return mark + text


class _Look:
    """A text with single line ends, and where everything in it stands."""

    def __init__(self, text: str) -> None:
        self.text = text
        locator = Locator(text)
        locator.places()
        self.headers = locator.headers
        self.assignments = locator.assignments
        self.spans = locator.spans

    def is_there(self, path: Path) -> bool:
        """Tell whether anything is said about a path, or about what lies in it."""
        said = (*(header[0] for header in self.headers), *self.assignments, *self.spans)
        return any(other[: len(path)] == path for other in said)

    def inside(self, path: Path) -> list[tuple[int, int]]:
        """Return what spans the members of an inline table or array."""
        own = [p for p in self.spans if len(p) > len(path) and p[: len(path)] == path]
        # A dotted key's member is deeper than one level, but nothing around it has a span.
        own = [p for p in own if not any(p[:n] in self.spans for n in range(len(path) + 1, len(p)))]
        return sorted((self.assignments.get(p, self.spans[p][0]), self.spans[p][1]) for p in own)

    def line_start(self, at: int) -> int:
        """Return where the line of a place begins."""
        return self.text.rfind("\n", 0, at) + 1

    def line_end(self, at: int) -> int:
        """Return where the next line begins."""
        end = self.text.find("\n", at)
        return len(self.text) if end < 0 else end + 1


def _look(text: str) -> _Look:
    return _Look(text.replace("\r\n", "\n"))


def _applied(text: str, edits: list[_Edit]) -> str:
    """Return the text with edits that were made for single line ends."""
    newline = "\r\n" if "\r\n" in text else "\n"
    returns = [match.start() - n for n, match in enumerate(re.finditer("\r\n", text))]
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        start, end = (at + bisect_left(returns, at) for at in (edit.start, edit.end))
        text = text[:start] + edit.new.replace("\n", newline) + text[end:]
    return text


def _put(text: str, path: Path, value: Any) -> str:
    look = _look(text)
    if path in look.spans:
        return _applied(text, [_Edit(*look.spans[path], _written(value))])
    if isinstance(value, dict) and look.is_there(path):
        return _put_members(text, path, value)
    for length in range(len(path) - 1, 0, -1):  # in an inline table, all must be inline
        if path[:length] in look.spans:
            for key in reversed(path[length + 1 :]):
                value = {key: value}
            return _applied(text, _inserted(look, path[:length], path[length], value))
    table = path[:-1]
    header = next((header for header in look.headers if header[0] == table), None)
    if header and not isinstance(value, list | dict):
        own = [p for p in look.assignments if p[:-1] == table and p in look.spans]
        at = look.line_end(max([header[2], *(look.spans[p][1] for p in own)]))
        line = f"{_key(path[-1])} = {_written(value)}"
        is_open = at == len(look.text) and not look.text.endswith("\n")
        return _applied(text, [_Edit(at, at, f"\n{line}" if is_open else f"{line}\n")])
    return _ended(text, _blocks(path, value))


def _put_members(text: str, path: Path, value: dict[str, Any]) -> str:
    """Change a table that has a header, member by member."""
    document: Any = read(text).value
    for key in path:
        document = document[key]
    for key in document:
        if key not in value:
            text = _applied(text, _drop(_look(text), (*path, key)))
    for key, wanted in value.items():
        if key not in document or document[key] != wanted:
            text = _put(text, (*path, key), wanted)
    return text


def _appended(text: str, path: Path, value: Any) -> str:
    look = _look(text)
    if any(path[:length] in look.spans for length in range(1, len(path) + 1)):
        return _applied(text, _inserted(look, path, None, value))
    return _ended(text, _blocks(path, [value]))


def _inserted(look: _Look, path: Path, key: str | int | None, value: Any) -> list[_Edit]:
    """Return the edits that give an inline table or array one more member, as the last."""
    member = _written(value) if key is None else f"{_key(key)} = {_written(value)}"
    inside = look.inside(path)
    if not inside:
        at = look.spans[path][0] + 1
        return [_Edit(at, at, member if key is None else f" {member} ")]
    start, end = inside[-1]
    indent = look.text[look.line_start(start) : start]
    rest = _LINE_END.match(look.text, end)
    if indent.strip() or key is not None or rest is None:
        return [_Edit(end, end, f", {member}")]
    after = rest.end()  # behind a comment, which is about the member before
    if rest[1]:
        return [_Edit(after, after, f"{indent}{member},\n")]
    return [_Edit(end, end, ","), _Edit(after, after, f"{indent}{member}\n")]


def _ended(text: str, block: str) -> str:
    """Return the text with a block at its end, after a blank line."""
    newline = "\r\n" if "\r\n" in text else "\n"
    block = block.replace("\n", newline)
    if not text:
        return block + newline
    return text + newline + (block + newline if text.endswith("\n") else newline + block)


def _blocks(path: Path, value: Any) -> str:
    """Write a value under headers: tables, arrays of tables, or else one assignment."""
    if isinstance(value, dict):
        simple = {k: v for k, v in value.items() if not isinstance(v, list | dict)}
        lines = [f"[{_dotted(path)}]"] if simple or not value else []
        lines += [f"{_key(k)} = {_written(v)}" for k, v in simple.items()]
        blocks = ["\n".join(lines)] if lines else []
        blocks += [_blocks((*path, k), v) for k, v in value.items() if k not in simple]
        return "\n\n".join(blocks)
    if isinstance(value, list):
        return "\n\n".join(_array_table(path, item) for item in value)
    return f"[{_dotted(path[:-1])}]\n{_key(path[-1])} = {_written(value)}"


def _array_table(path: Path, value: dict[str, Any]) -> str:
    lines = [f"[[{_dotted(path)}]]"]
    lines += [f"{_key(k)} = {_written(v)}" for k, v in value.items() if not isinstance(v, list)]
    lines += [_blocks((*path, k), v) for k, v in value.items() if isinstance(v, list)]
    return "\n".join(lines)


def _drop(look: _Look, path: Path) -> list[_Edit]:
    """Return the edits that take out all that is said about a path."""
    if path in look.spans and any(path[:n] in look.spans for n in range(1, len(path))):
        return _without_member(look, path)
    edits = [_without_lines(look, start, end) for start, end in _blocks_of(look, path)]
    for assigned, start in look.assignments.items():
        is_covered = any(edit.start <= start < edit.end for edit in edits)
        is_inline = any(assigned[:n] in look.spans for n in range(1, len(assigned)))
        if assigned[: len(path)] == path and not is_covered and not is_inline:
            edits.append(_Edit(look.line_start(start), look.line_end(look.spans[assigned][1])))
    return edits


def _blocks_of(look: _Look, path: Path) -> list[tuple[int, int]]:
    """Return the lines below headers of a path; without what stands after the last assignment."""
    found: list[tuple[int, int]] = []
    for at, (table, header, end) in enumerate(look.headers):
        if table[: len(path)] == path:
            follows = look.headers[at + 1][1] if look.headers[at + 1 :] else len(look.text)
            ends = [span[1] for span in look.spans.values() if end <= span[1] <= follows]
            begin = look.line_start(header)
            if _has_comment(look, header, end, max([end, *ends])):
                continue
            if found and not look.text[found[-1][1] : begin].strip():
                begin = found.pop()[0]
            found.append((begin, look.line_end(max([end, *ends]))))
    return found


def _has_comment(look: _Look, header: int, begin: int, end: int) -> bool:
    """Tell whether a comment stands at or below a table's header, which then stays."""
    if look.text.startswith("[[", header):  # an item of a list, which goes as a whole
        return False
    at = begin
    for start, stop in sorted(span for span in look.spans.values() if begin <= span[0] <= end):
        if "#" in look.text[at : look.line_start(start)]:
            return True
        at = max(at, look.line_end(stop))  # what is said beside a value goes with it
    return "#" in look.text[at : look.line_end(begin)]


def _without_lines(look: _Look, start: int, end: int) -> _Edit:
    """Return the edit that takes out lines, and the blank line before them."""
    if end == len(look.text) and not look.text.endswith("\n"):
        blanks = len(look.text[:start]) - len(look.text[:start].rstrip("\n"))
        return _Edit(start - min(2, blanks), end)
    if not start and look.text.startswith("\n", end):
        end += 1  # nothing stands before them, so the blank line after them goes
    return _Edit(start - 1 if look.text[:start].endswith("\n\n") else start, end)


def _without_member(look: _Look, path: Path) -> list[_Edit]:
    """Return the edits that take a member out of an inline table or array, with one comma."""
    own = (look.assignments.get(path, look.spans[path][0]), look.spans[path][1])
    around = next(path[:n] for n in range(len(path) - 1, 0, -1) if path[:n] in look.spans)
    inside = look.inside(around)
    at = inside.index(own)
    comma = re.compile(r"[ \t]*,[ \t]*").match(look.text, own[1])
    if at and look.text[inside[at - 1][1] : own[0]].strip() == ",":
        return [_Edit(inside[at - 1][1], own[1])]
    if inside[at + 1 :] and look.text[own[1] : inside[at + 1][0]].strip() == ",":
        return [_Edit(own[0], inside[at + 1][0])]
    end = comma.end() if comma else own[1]
    start = look.line_start(own[0])
    if not at or look.text[start : own[0]].strip() or not look.text.startswith("\n", end):
        return [_Edit(own[0], end)]
    before = inside[at - 1][1]
    is_last = not comma and look.text.startswith(",", before)
    return [_Edit(start, end + 1), *([_Edit(before, before + 1)] if is_last else [])]


def _written(value: Any) -> str:
    """Write a value on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {_written(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_written(item) for item in value) + "]"
    return _text(value) if isinstance(value, str) else str(value)


def _text(value: str) -> str:
    escaped = _UNSAFE.sub(lambda m: _ESCAPES.get(m[0], f"\\u{ord(m[0]):04x}"), value)
    return f'"{escaped}"'


def _key(key: str | int) -> str:
    word = str(key)
    return word if _BARE.fullmatch(word) else _text(word)


def _dotted(path: Path) -> str:
    """Write a header's name; positions in arrays are not part of it."""
    return ".".join(_key(key) for key in path if isinstance(key, str))
