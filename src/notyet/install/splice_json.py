"""Changes a JSON text and leaves every byte alone that does not have to change.

New parts are written as those around them: on lines of their own with the file's indentation, or
all on one line.
"""

from __future__ import annotations

import json
import re

from notyet.config.readers import read_json as read
from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from notyet.config.document import Path
    from notyet.install.edit import Step

_BLANK = re.compile(r"[ \t\r\n]*+")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*+"')
_SCALAR = re.compile(r"[^\s,\]}]++")
_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_BYTE_ORDER_MARK = "\ufeff"


def spliced(text: str, steps: Iterable[Step]) -> str:
    """Return the text after these steps. Raises BadSyntax for a text that is no JSON."""
    mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
    text = text.removeprefix(mark)
    if not text.strip(" \t\r\n"):
        text = "{}" + _newline(text)
    read(text)  # what follows relies on its being JSON
    for step in steps:
        if step.do == "drop":
            text = _dropped(text, step.path)
        elif step.do == "append":
            text = _grown(text, _at(_parsed(text), step.path), None, step.value)
        else:
            text = _put(text, step.path, step.value)
    return mark + text


class _Node(Record, kw_only=True):
    """A value in the text: what it spans, and what stands in it by key or position."""

    start: int
    end: int
    keys: tuple[str, ...] | None = None  # of a table
    starts: tuple[int, ...] = ()  # of members, where their keys begin
    inside: tuple[_Node, ...] = ()


def _parsed(text: str) -> _Node:
    return _node(text, _skip(text, 0))


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match
    return match.end()


def _node(text: str, start: int) -> _Node:
    """Read a value that the reader has accepted."""
    if text[start] not in "{[":
        match = (_TEXT if text[start] == '"' else _SCALAR).match(text, start)
        assert match
        return _Node(start=start, end=match.end())
    is_table = text[start] == "{"
    keys, starts, inside = [], [], []
    at = _skip(text, start + 1)
    while text[at] not in "}]":
        starts.append(at)
        if is_table:
            match = _TEXT.match(text, at)
            assert match
            keys.append(json.loads(match[0], strict=False))
            at = _skip(text, _skip(text, match.end()) + 1)
        node = _node(text, at)
        inside.append(node)
        at = _skip(text, node.end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return _Node(
        start=start,
        end=at + 1,
        keys=tuple(keys) if is_table else None,
        starts=tuple(starts),
        inside=tuple(inside),
    )


def _at(node: _Node, path: Path) -> _Node:
    for key in path:
        node = node.inside[_position(node, key)]
    return node


def _position(node: _Node, key: str | int) -> int:
    """Return which member is meant; of keys that are written twice, the last one counts."""
    if isinstance(key, int):
        return key
    assert node.keys is not None
    return len(node.keys) - 1 - node.keys[::-1].index(key)


def _put(text: str, path: Path, value: Any) -> str:
    table = _at(_parsed(text), path[:-1])
    key = path[-1]
    if isinstance(key, int) or key in (table.keys or ()):
        old = table.inside[_position(table, key)]
        is_spread = "\n" in text[old.start : old.end]
        new = _written(text, value, _indent_of(text, old.start) if is_spread else None)
        return text[: old.start] + new + text[old.end :]
    return _grown(text, table, key, value)


def _grown(text: str, node: _Node, key: str | None, value: Any) -> str:
    """Return the text with a new last member of a table, or item of a list."""
    newline = _newline(text)
    if node.inside:
        last = node.starts[-1]
        before = text[(node.inside[-2].end if node.inside[1:] else node.start + 1) : last]
        is_spread = "\n" in before
        indent = _indent_of(text, last) if is_spread else None
        comma = "," + (newline + indent if indent is not None else _space(text))
        at = node.inside[-1].end
        return text[:at] + comma + _member(text, key, value, indent) + text[at:]
    at = node.start + 1
    within = text[at : node.end - 1]
    if "\n" not in text.strip() and len(text.strip()) > len("{}") + len(within):
        return text[:at] + _member(text, key, value, None) + text[at:]
    base = _indent_of(text, node.start)
    indent = base + _unit(text)
    closing = "" if "\n" in within else newline + base
    member = _member(text, key, value, indent)
    return text[:at] + newline + indent + member + closing + text[at:]


def _dropped(text: str, path: Path) -> str:
    node = _at(_parsed(text), path[:-1])
    at = _position(node, path[-1])
    if at:
        start, end = node.inside[at - 1].end, node.inside[at].end
    elif node.inside[1:]:
        start, end = node.starts[0], node.starts[1]
    else:
        start, end = node.start + 1, node.end - 1
    return text[:start] + text[end:]


def _member(text: str, key: str | None, value: Any, indent: str | None) -> str:
    written = _written(text, value, indent)
    if key is None:
        return written
    colon = ": " if indent is not None else f":{_space(text)}"
    return json.dumps(key, ensure_ascii=False) + colon + written


def _written(text: str, value: Any, indent: str | None) -> str:
    """Write a value on lines that begin with this indentation; None: all on one line."""
    if indent is None:
        space = _space(text)
        return json.dumps(value, ensure_ascii=False, separators=("," + space, ":" + space))
    lines = json.dumps(value, ensure_ascii=False, indent=_unit(text)).split("\n")
    return (_newline(text) + indent).join(lines)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _space(text: str) -> str:
    """Return what follows commas and colons in texts of one line."""
    return "" if re.search(r'"[:,]["\[{\d]', text) and not re.search(r'"[:,] ', text) else " "


def _unit(text: str) -> str:
    """Return what one level of indentation is; two spaces where the text does not tell."""
    match = _INDENT.search(text)
    return match[1] if match else "  "


def _indent_of(text: str, at: int) -> str:
    """Return the blanks with which the line of this place begins."""
    start = text.rfind("\n", 0, at) + 1
    line = text[start:at]
    return line[: len(line) - len(line.lstrip(" \t"))]
