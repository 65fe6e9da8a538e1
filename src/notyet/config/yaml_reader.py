"""The reader of YAML: values and positions from PyYAML's nodes.

It reads the part of YAML 1.2 that JSON has too. Plain words follow YAML 1.2, as in the tools whose
files we read: `no` and `on` are strings, and `<<` is a key like any other.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from notyet.config.document import BadSyntax, Document, Path, Position, name_of, quoted
from notyet.config.readers import DEEPEST, TOO_DEEP, Lines

_MOST_NODES = 200_000  # with aliases counted where they are used: a few lines can mean billions
_TAG = "tag:yaml.org,2002:"
_FLOAT = (
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = {}  # noqa: RUF012  # not those of YAML 1.1, which the base has


for _kind, _pattern, _starts in (
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", "true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", "[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    ("float", _FLOAT, list("-+0123456789.")),
):
    _Loader.add_implicit_resolver(_TAG + _kind, re.compile(rf"(?:{_pattern})\Z"), _starts)


def read(text: str) -> Document:
    """Return what a YAML text says, and where. Raises BadSyntax."""
    reader = _NodeReader()
    try:
        node = yaml.compose(text, Loader=_Loader)
        value = None if node is None else reader.value(node, ())
    except yaml.MarkedYAMLError as error:
        raise _syntax(error) from None
    except yaml.reader.ReaderError as error:
        position = Lines(text).position(error.position)
        raise BadSyntax(f"invalid YAML: {error.reason}", *position) from None
    except RecursionError:
        raise BadSyntax(TOO_DEEP) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        if isinstance(error, BadSyntax):
            raise
        # PyYAML fails on a few texts, such as characters beyond the last one.
        raise BadSyntax(f"invalid YAML: {str(error).partition(chr(10))[0]}") from None
    return Document(value=value, positions=reader.positions, findings=tuple(reader.findings))


def _syntax(error: yaml.MarkedYAMLError) -> BadSyntax:
    mark = error.problem_mark or error.context_mark
    message = ", ".join(part for part in (error.context, error.problem) if part)
    line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    hint = "indent with spaces" if "\\t" in message else ""
    return BadSyntax(f"invalid YAML: {message}", line, column, hint)


class _NodeReader:
    """Converts nodes to values, and notes their positions."""

    def __init__(self) -> None:
        self.positions: dict[Path, Position] = {}
        self.findings: list[BadSyntax] = []
        self._around: list[Node] = []
        self._nodes = 0

    def value(self, node: Node, path: Path) -> Any:
        """Return the value of a node. Raises BadSyntax."""
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            most = f"it has more than {_MOST_NODES} entries, aliases included"
            raise BadSyntax(most, *_start(node))
        if node in self._around:
            raise BadSyntax("an alias is inside its own anchor", *_start(node))
        if len(self._around) > DEEPEST:
            raise BadSyntax(TOO_DEEP, *_start(node))
        self._around.append(node)
        if isinstance(node, MappingNode):
            value: Any = self._table(node, path)
        elif isinstance(node, SequenceNode):
            value = self._list(node, path)
        else:
            assert isinstance(node, ScalarNode)
            value = self._scalar(node, path)
        self._around.pop()
        return value

    def _find(self, node: Node, message: str, hint: str = "") -> None:
        self.findings.append(BadSyntax(message, *_start(node), hint))

    def _table(self, node: MappingNode, path: Path) -> dict[str, Any]:
        table: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            inner = (*path, key)
            if key_node.tag != f"{_TAG}str":
                shown = quoted(key) if isinstance(key, str) else "a list or table"
                message = f"a key of {name_of(path)} must be a string, not {shown}"
                self._find(key_node, message, "quote it")
            elif key in table:
                message = f"{name_of(inner)} is written twice; the first one counts"
                self._find(key_node, message, "remove one of them")
            else:
                self.positions[inner] = _start(key_node)
                table[key] = self.value(value_node, inner)
        return table

    def _list(self, node: SequenceNode, path: Path) -> list[Any]:
        items = []
        for number, item in enumerate(node.value):
            self.positions[*path, number] = _start(item)
            items.append(self.value(item, (*path, number)))
        return items

    def _scalar(self, node: ScalarNode, path: Path) -> Any:
        kind, text = node.tag.removeprefix(_TAG), node.value
        try:
            if kind == "int":
                return _whole(text)
            if kind == "float":
                return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        except ValueError:  # a tag written by hand, or too many digits
            self._find(node, f"{name_of(path)} is not a readable number: {quoted(text)}")
            return None
        if kind == "null":
            return None
        return text.lower() == "true" if kind == "bool" else text


def _whole(text: str) -> int:
    base = {"0x": 16, "0o": 8}.get(text[:2])
    return int(text[2:], base) if base else int(text)


def _start(node: Node) -> Position:
    return node.start_mark.line + 1, node.start_mark.column + 1
