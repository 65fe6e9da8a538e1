"""Edit the text of a settings file, JSON or TOML, and keep the bytes that need not change.

In JSON only the values of changed top-level keys are written anew, in the style of the file;
tomlkit keeps the comments and the layout of TOML.
"""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import TYPE_CHECKING

import tomlkit
from tomlkit.exceptions import TOMLKitError

from notyet.config.document import BadSyntax
from notyet.config.readers import BYTE_ORDER_MARK, read_json, read_toml

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping
    from typing import Any

    from notyet.config.document import Document

    Edit = Callable[[MutableMapping[str, Any]], None]

_BLANK = re.compile(r"[ \t\r\n]*+")
_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)


class NotEditable(Exception):  # noqa: N818  # named after what happened
    """The text is written in a way that cannot be edited without risk."""


def read(text: str, form: str) -> Document:
    """Read a JSON, TOML or YAML text, or a plugin of ours. Raises BadSyntax."""
    if form == "yaml":
        from notyet.config.yaml_reader import read as read_yaml

        return read_yaml(text)
    if form == "plugin":
        from notyet.install.plugin_file import read_plugin

        return read_plugin(text)
    return read_toml(text) if form == "toml" else read_json(text)


def edited(text: str, form: str, edit: Edit) -> str:
    """Return the text after an edit, in which only what it changes is written anew.

    Raises BadSyntax, and NotEditable if the new text would not mean what the edit meant.
    """
    is_blank = not text.strip(f"{BYTE_ORDER_MARK} \t\r\n")
    before = {} if is_blank else read(text, form).value
    meant = deepcopy(before)
    edit(meant)
    if before == meant:
        return text
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    body = text.removeprefix(mark)
    if is_blank and form == "json":
        body = "{}" + (body or "\n")
    try:
        is_toml = form == "toml"
        if is_toml:
            body = _edited_toml(body, edit)
        for key in () if is_toml else (*meant, *(key for key in before if key not in meant)):
            if before.get(key) != meant.get(key):
                body = _with_member(body, key, meant.get(key))
        new = mark + body
        now = read(new, form).value
    except (BadSyntax, TOMLKitError, KeyError, IndexError, TypeError, AttributeError, ValueError):
        raise NotEditable from None
    if now != meant:
        raise NotEditable
    return new


def _edited_toml(text: str, edit: Edit) -> str:
    has_returns = "\r\n" in text
    text = text.replace("\r\n", "\n")
    if not text.endswith("\n") and "\n[" in f"\n{text}":
        text += "\n"  # tomlkit would go on in the last line of a table
    document = tomlkit.parse(text)
    edit(document)
    new = tomlkit.dumps(document)
    if new.endswith("\n\n"):  # it leaves the blank line before a table that was the last one
        new = new.rstrip("\n") + "\n"
    # A comment before a table belongs to the table before it, and would go with that one.
    lost = [line for line in text.split("\n") if line.lstrip().startswith("#") and line not in new]
    new += "".join(f"{line}\n" for line in lost)
    return new.replace("\n", "\r\n") if has_returns else new


def _with_member(text: str, key: str, value: Any) -> str:
    """Return a JSON object's text with another value of this key; None removes the member."""
    start = _skip(text, 0) + 1
    members = _members(text, start)
    at = next((at for at in reversed(range(len(members))) if members[at][0] == key), None)
    newline = "\r\n" if "\r\n" in text else "\n"
    if value is None:
        return text if at is None else _without_member(text, start, members, at)
    if at is None:
        written = json.dumps(key)
        if not members:
            end = text.index("}", start)
            unit = _unit(text)
            body = newline + unit + f"{written}: " + _written(text, value, unit)
            return text[:start] + body + newline + text[end:]
        (_, begin, _, last) = members[-1]
        indent = _indent_before(text, members[-2][3] if members[1:] else start, begin)
        comma = ", " if indent is None else f",{newline}{indent}"
        return text[:last] + comma + written + ": " + _written(text, value, indent) + text[last:]
    _, begin, value_start, end = members[at]
    indent = _indent_before(text, members[at - 1][3] if at else start, begin)
    old = text[value_start:end]
    if "\n" not in old and old.strip("{} \t"):
        indent = None
    return text[:value_start] + _written(text, value, indent) + text[end:]


def _members(text: str, at: int) -> list[tuple[str, int, int, int]]:
    """Return the members of an object: key, its position, and where the value starts and ends."""
    decode = json.JSONDecoder(strict=False).raw_decode
    found = []
    at = _skip(text, at)
    while text[at] != "}":
        key, after = decode(text, at)
        value_start = _skip(text, _skip(text, after) + 1)
        _, end = decode(text, value_start)
        found.append((key, at, value_start, end))
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at
    return found


def _without_member(
    text: str, start: int, members: list[tuple[str, int, int, int]], at: int
) -> str:
    if at:
        return text[: members[at - 1][3]] + text[members[at][3] :]
    if members[1:]:
        return text[: members[0][1]] + text[members[1][1] :]
    return text[:start] + text[_skip(text, members[0][3]) :]


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match
    return match.end()


def _indent_before(text: str, start: int, at: int) -> str | None:
    """Return the indentation of a member that starts a line; None if it does not."""
    _, newline, line = text[start:at].rpartition("\n")
    return line[: len(line) - len(line.lstrip(" \t"))] if newline else None


def _written(text: str, value: Any, indent: str | None) -> str:
    """Write a value in the style of the text; `indent` None: on one line."""
    if indent is None:
        return json.dumps(value, ensure_ascii=False)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = json.dumps(value, ensure_ascii=False, indent=_unit(text)).split("\n")
    return (newline + indent).join(lines)


def _unit(text: str) -> str:
    """Return one level of indentation; two spaces where the text does not show it."""
    match = _INDENT.search(text)
    return match[1] if match else "  "
