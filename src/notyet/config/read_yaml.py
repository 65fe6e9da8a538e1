"""The reader of YAML: values and positions from PyYAML's nodes.

It reads the part of YAML 1.2 that has a meaning in JSON too. Plain words follow YAML 1.2, as in the
tools whose files we read: `no` and `on` are texts, and `<<` is a key like any other.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from notyet.config.document import (
    DEEPEST,
    TOO_DEEP,
    BadSyntax,
    Document,
    Finding,
    Path,
    Place,
    name_of,
    quoted,
)

_MOST_NODES = 200_000  # with aliases counted where they are used: a few lines can mean billions
_LONGEST_NUMBER = 400
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
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
        before = text[: error.position]
        place = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise BadSyntax(f"invalid YAML: {error.reason}", *place) from None
    except RecursionError:
        raise BadSyntax(TOO_DEEP) from None
    except BadSyntax:
        raise
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # PyYAML fails on a few texts, such as characters beyond the last one.
        raise BadSyntax(f"invalid YAML: {error}") from None
    return Document(value=value, places=reader.places, findings=tuple(reader.findings))


def _syntax(error: yaml.MarkedYAMLError) -> BadSyntax:
    mark = error.problem_mark or error.context_mark
    message = ", ".join(part for part in (error.context, error.problem) if part)
    line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    hint = "indent with spaces" if "\\t" in message else ""
    return BadSyntax(f"invalid YAML: {message}", line, column, hint)


class _NodeReader:
    """Converts nodes to values, and notes where they stand."""

    def __init__(self) -> None:
        self.places: dict[Path, Place] = {}
        self.findings: list[Finding] = []
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
        self.findings.append(Finding(*_start(node), message, hint))

    def _table(self, node: MappingNode, path: Path) -> dict[str, Any]:
        self._report_tag(node, path, "map")
        table: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag != f"{_TAG}str":
                is_scalar = isinstance(key_node, ScalarNode)
                shown = quoted(str(key_node.value)) if is_scalar else "a list or table"
                self._find(
                    key_node, f"a key of {name_of(path)} must be a string, not {shown}", "quote it"
                )
                continue
            key = _joined(key_node.value)
            inner = (*path, key)
            if key in table:
                message = f"{name_of(inner)} is written twice; the first one counts"
                self._find(key_node, message, "remove one of them")
                continue
            self.places[inner] = _start(key_node)
            table[key] = self.value(value_node, inner)
        return table

    def _list(self, node: SequenceNode, path: Path) -> list[Any]:
        self._report_tag(node, path, "seq")
        items = []
        for number, item in enumerate(node.value):
            self.places[*path, number] = _start(item)
            items.append(self.value(item, (*path, number)))
        return items

    def _report_tag(self, node: Node, path: Path, usual: str) -> None:
        if node.tag != _TAG + usual:
            message = f"{name_of(path)} has the tag {quoted(node.tag)}, which is ignored"
            self._find(node, message, "only plain YAML is read")

    def _scalar(self, node: ScalarNode, path: Path) -> Any:
        kind, text = node.tag.removeprefix(_TAG), node.value
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        if kind not in {"int", "float"}:
            self._report_tag(node, path, "str")
            return _joined(text)
        if len(text) <= _LONGEST_NUMBER:
            try:
                return _whole(text) if kind == "int" else _float(text)
            except ValueError:
                pass  # a tag written by hand
        self._find(node, f"{name_of(path)} is not a readable number: {quoted(text)}")
        return None


def _joined(text: Any) -> Any:
    """Return a text with its surrogate pairs as the characters that JSON writes that way."""
    if not isinstance(text, str) or not _SURROGATES.search(text):
        return text
    return _SURROGATES.sub(
        lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text
    )


def _whole(text: str) -> int:
    base = {"0x": 16, "0o": 8}.get(text[:2])
    return int(text[2:], base) if base else int(text)


def _float(text: str) -> float:
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


def _start(node: Node) -> Place:
    return node.start_mark.line + 1, node.start_mark.column + 1
