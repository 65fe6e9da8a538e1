"""Shapes of lists and tables, and what is made of a shape: checks, JSON Schema, docs.

`check` finds every mistake at once, and drops what is broken so that its neighbours survive.
"""

from __future__ import annotations

from notyet.config.document import nearest
from notyet.config.scalars import BROKEN, Shape, Text, name_of
from notyet.core.record import Record
from notyet.light import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.config.document import Path
    from notyet.config.scalars import Found, Schema

_HINTED = 200
_LISTED = 12  # more known keys than these would be no help


class ListOf(Shape, kw_only=True):
    """A list. `whole`: one broken item breaks it, because the rest would mean something else."""

    item: Shape
    least: int = 0
    whole: bool = True

    def takes(self, value: object) -> bool:
        return isinstance(value, list)

    def check(self, value: Any, path: Path, found: Found) -> Any:
        if not isinstance(value, list):
            return self.refuse(value, path, found)
        if len(value) < self.least:
            found.append((path, f"{name_of(path)} is empty", "leave it out for the default"))
            return BROKEN
        items = [self.item.check(item, (*path, at), found) for at, item in enumerate(value)]
        kept = [item for item in items if item is not BROKEN]
        return BROKEN if self.whole and len(kept) < len(items) else kept

    def schema(self) -> Schema:
        schema: Schema = {"type": "array", "items": self.item.schema()}
        return schema | ({"minItems": self.least} if self.least else {})

    def words(self) -> str:
        return f"a list of {self.item.many()}"

    def many(self) -> str:
        return f"lists of {self.item.many()}"


class MapOf(Shape, kw_only=True):
    """A table whose keys are names that people choose. `whole` as for lists."""

    item: Shape
    key: Shape = Text()
    whole: bool = False

    def takes(self, value: object) -> bool:
        return isinstance(value, dict)

    def check(self, value: Any, path: Path, found: Found) -> Any:
        if not isinstance(value, dict):
            return self.refuse(value, path, found)
        kept = {}
        for key, item in value.items():
            good = self.key.check(key, (*path, key), found) is not BROKEN
            clean = self.item.check(item, (*path, key), found)
            if good and clean is not BROKEN:
                kept[key] = clean
        return BROKEN if self.whole and len(kept) < len(value) else kept

    def schema(self) -> Schema:
        return {
            "type": "object",
            "propertyNames": self.key.schema(),
            "additionalProperties": self.item.schema(),
        }

    def words(self) -> str:
        return f"a table of {self.item.many()}"

    def many(self) -> str:
        return f"tables of {self.item.many()}"


class Field(Record, kw_only=True):
    """A key of a table. Without a good value for a `vital` one, the table is dropped whole."""

    shape: Shape
    doc: str = ""
    default: Any = None  # for docs and `Table.filled`; None: there is none
    required: bool = False
    vital: bool = False
    also: tuple[str, ...] = ()  # what people call it elsewhere


class Table(Shape, kw_only=True):
    """A table with known keys; `open` ones may hold more, which is kept as it is."""

    fields: Mapping[str, Field] = {}
    open: bool = False
    nulls: bool = False  # nothing (YAML's `key:`) is as good as no key
    one_of: tuple[str, ...] = ()  # exactly one of these keys
    apart: tuple[tuple[str, str], ...] = ()  # pairs of keys that exclude each other
    needs: tuple[tuple[str, str], ...] = ()  # the first key means nothing without the second
    if_is: tuple[tuple[str, str, str], ...] = ()  # where this key is this word, that key is needed

    def takes(self, value: object) -> bool:
        return isinstance(value, dict)

    def check(self, value: Any, path: Path, found: Found) -> Any:
        if not isinstance(value, dict):
            return self.refuse(value, path, found)
        if self.nulls:
            value = {key: item for key, item in value.items() if item is not None}
        broken = False
        clean = {}
        for key, item in value.items():
            field = self.fields.get(key)
            if field is None:
                if self.open:
                    clean[key] = item
                else:
                    # A hint for each of very many would take minutes, and nobody would read it.
                    known = self if len(found) < _HINTED else Table()
                    found.append(known._unknown(key, path))  # noqa: SLF001  # our own
                continue
            kept = field.shape.check(item, (*path, key), found)
            if kept is not BROKEN:
                clean[key] = kept
            elif field.vital or field.required:
                broken = True
        return BROKEN if self._incomplete(value, path, found) or broken else clean

    def _meant(self, key: str) -> str:
        """Return the key that was probably meant by an unknown one; empty for none."""
        for name, field in self.fields.items():
            if key in field.also:
                return name
        return nearest(key, self.fields)

    def _unknown(self, key: str, path: Path) -> tuple[Path, str, str]:
        meant = self._meant(key)
        hint = f"did you mean `{meant}`?" if meant else ""
        if not hint and 0 < len(self.fields) <= _LISTED:
            hint = f"known here: {', '.join(self.fields)}"
        return (*path, key), f"{name_of((*path, key))} is not a known key", hint

    def _incomplete(self, value: dict[str, Any], path: Path, found: Found) -> bool:
        """Add what is wrong with keys that depend on each other; tell whether that is fatal."""
        wanted = {key for key, field in self.fields.items() if field.required}
        wanted |= {need for key, word, need in self.if_is if value.get(key) == word}
        missing = [key for key in self.fields if key in wanted and key not in value]
        given = [key for key in value if key in self.one_of]
        # A key that is only misspelt is not missing as well: one mistake is told once.
        unknown = () if self.open else [key for key in value if key not in self.fields]
        misspelt = {self._meant(key) for key in unknown}
        found += [
            (path, f"{name_of(path)} has no `{key}`", "") for key in missing if key not in misspelt
        ]
        if self.one_of and not given and misspelt.isdisjoint(self.one_of):
            names = " nor ".join(f"`{key}`" for key in self.one_of)
            found.append((path, f"{name_of(path)} has neither {names}", ""))
        for one, other in [(extra, given[0]) for extra in given[1:]] + list(self.apart):
            if one in value and other in value:
                both = f"`{other}` and `{one}`"
                message = f"{name_of(path)} has both {both}"
                found.append(((*path, one), message, "keep one of them"))
        found += [
            ((*path, key), f"{name_of((*path, key))} means nothing without `{need}`", "")
            for key, need in self.needs
            if key in value and need not in value
        ]
        return bool(missing) or (bool(self.one_of) and len(given) != 1)

    def filled(self, clean: dict[str, Any]) -> dict[str, Any]:
        """Return a clean table with the defaults of the keys it does not have."""
        defaults = {k: f.default for k, f in self.fields.items() if f.default is not None}
        return defaults | clean

    def schema(self) -> Schema:
        schema: Schema = {"type": "object", "properties": {}, "additionalProperties": self.open}
        for key, field in self.fields.items():
            entry = field.shape.schema()
            if self.nulls:
                entry = {"anyOf": [entry, {"type": "null"}]}
            if field.doc:
                entry["description"] = field.doc.replace("`", "")
            if field.default is not None:
                entry["default"] = field.default
            schema["properties"][key] = entry
        required = [key for key, field in self.fields.items() if field.required]
        rules: list[Schema] = [{"not": {"required": list(pair)}} for pair in self.apart]
        rules += [
            {
                "if": {"properties": {key: {"const": word}}, "required": [key]},
                "then": {"required": [need]},
            }
            for key, word, need in self.if_is
        ]
        if required:
            schema["required"] = required
        if self.one_of:
            schema["oneOf"] = [{"required": [key]} for key in self.one_of]
        if self.needs:
            schema["dependentRequired"] = {key: [need] for key, need in self.needs}
        return schema | ({"allOf": rules} if rules else {})

    def words(self) -> str:
        return "a table"

    def many(self) -> str:
        return "tables"


class Either(Shape):
    """One of several shapes; a value is held against those of its own type."""

    shapes: tuple[Shape, ...]

    def takes(self, value: object) -> bool:
        return any(shape.takes(value) for shape in self.shapes)

    def check(self, value: Any, path: Path, found: Found) -> Any:
        clean: Any = BROKEN
        trial: Found | None = None
        for shape in self.shapes:
            if shape.takes(value):
                trial = []
                clean = shape.check(value, path, trial)
                if not trial:
                    return clean
        if trial is None:
            return self.refuse(value, path, found)
        found += trial
        return clean

    def schema(self) -> Schema:
        return {"anyOf": [shape.schema() for shape in self.shapes]}

    def words(self) -> str:
        return ", or ".join(shape.words() for shape in self.shapes)

    def many(self) -> str:
        return " or ".join(shape.many() for shape in self.shapes)


def check(value: Any, shape: Shape) -> tuple[Any, list[tuple[Path, str, str]]]:
    """Return what is right in a value, and every mistake: its path, a message and a hint.

    Where nothing is right, the clean value is None.
    """
    found: Found = []
    clean = shape.check(value, (), found)
    return (None if clean is BROKEN else clean), found


def json_schema(shape: Shape) -> Schema:
    """Return a shape as JSON Schema, draft 2020-12."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | shape.schema()


def rows(table: Table) -> list[str]:
    """Return a table's keys as rows of a Markdown table: key, type, default, what it does."""
    lines = ["| key | type | default | what it does |", "|---|---|---|---|"]
    for key, field in table.fields.items():
        default = "" if field.default is None else f"`{dumps(field.default)}`"
        if field.required:
            default = "required"
        cells = (f"`{key}`", field.shape.words(), default, field.doc)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return lines
