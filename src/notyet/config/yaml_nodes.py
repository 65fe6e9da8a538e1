"""YAML's nodes as values with positions: the part of YAML 1.2 that has a meaning in JSON too.

PyYAML parses; the rules for plain words are those of YAML 1.2, as in the tools whose files we
read: `no` and `on` are texts, and `<<` is a key like any other.
"""

from __future__ import annotations

import re

from yaml import MappingNode, Node, SafeLoader, ScalarNode, SequenceNode

from notyet.config.document import DEEPEST, TOO_DEEP, BadSyntax, Document, Finding
from notyet.config.scalars import name_of, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.config.document import Path, Place

_MOST_NODES = 200_000  # aliases counted where they are used: a few lines can stand for billions
_LONGEST_NUMBER = 400
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_TAG = "tag:yaml.org,2002:"
_FLOAT = (
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)


class _Loader(SafeLoader):
    yaml_implicit_resolvers = {}  # noqa: RUF012  # not those of YAML 1.1, which the base has


for _kind, _pattern, _starts in (
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", "true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", "[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    ("float", _FLOAT, list("-+0123456789.")),
):
    _Loader.add_implicit_resolver(_TAG + _kind, re.compile(rf"(?:{_pattern})\Z"), _starts)


def compose(text: str) -> Node | None:
    """Return the root node of a text that holds at most one document."""
    loader = _Loader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


class NodeReader:
    """Turns nodes into values, and notes where they stand."""

    def __init__(self) -> None:
        self._places: dict[Path, Place] = {}
        self._findings: list[Finding] = []
        self._around: list[Node] = []
        self._nodes = 0

    def document(self, node: Node | None) -> Document:
        """Return what a document's root node says. Raises BadSyntax."""
        value = None if node is None else self._value(node, ())
        return Document(value=value, places=self._places, findings=tuple(self._findings))

    def _value(self, node: Node, path: Path) -> Any:
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            most = f"it stands for more than {_MOST_NODES} entries, aliases included"
            raise BadSyntax(most, *_start(node))
        if node in self._around:
            raise BadSyntax("an alias stands inside what it is an alias for", *_start(node))
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
        self._findings.append(Finding(*_start(node), message, hint))

    def _table(self, node: MappingNode, path: Path) -> dict[str, Any]:
        self._refuse_tag(node, path, "map")
        table: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag != f"{_TAG}str":
                shown = (
                    quoted(str(key_node.value)) if key_node.id == "scalar" else "a list or table"
                )
                self._find(key_node, f"a key of {name_of(path)} is text, not {shown}", "quote it")
                continue
            key = _joined(key_node.value)
            inner = (*path, key)
            if key in table:
                message = f"{name_of(inner)} is written twice; the first one counts"
                self._find(key_node, message, "remove one of them")
                continue
            self._places[inner] = _start(key_node)
            table[key] = self._value(value_node, inner)
        return table

    def _list(self, node: SequenceNode, path: Path) -> list[Any]:
        self._refuse_tag(node, path, "seq")
        items = []
        for number, item in enumerate(node.value):
            self._places[*path, number] = _start(item)
            items.append(self._value(item, (*path, number)))
        return items

    def _refuse_tag(self, node: Node, path: Path, usual: str) -> None:
        if node.tag != _TAG + usual:
            message = f"{name_of(path)} has the tag {quoted(node.tag)}, which is ignored"
            self._find(node, message, "only plain YAML is read")

    def _scalar(self, node: ScalarNode, path: Path) -> Any:
        kind = node.tag.removeprefix(_TAG)
        text = node.value
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        if kind in {"int", "float"}:
            return self._number(node, path)
        self._refuse_tag(node, path, "str")
        return _joined(text)

    def _number(self, node: ScalarNode, path: Path) -> int | float | None:
        text = node.value
        if len(text) <= _LONGEST_NUMBER:
            try:
                return _whole(text) if node.tag == f"{_TAG}int" else _float(text)
            except ValueError:
                pass  # a tag written by hand
        self._find(node, f"{name_of(path)} is no number that can be read: {quoted(text)}")
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
