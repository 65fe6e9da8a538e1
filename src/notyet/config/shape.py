"""Shapes of lists and tables. Checks, JSON Schema and docs are made from shapes.

`check` finds every mistake at once, and drops what is broken so that its neighbours survive.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from notyet.config.document import name_of, nearest
from notyet.config.scalars import BROKEN, Shape, Text, Wrong

if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.config.document import Path
    from notyet.config.scalars import Found, Schema

_MOST_HINTS = 200  # a hint for each of many thousand unknown keys would take minutes
_MOST_LISTED = 12  # known keys in a hint


@dataclass(frozen=True, kw_only=True)
class ListOf(Shape):
    """A list. `whole`: one broken item breaks it, because the rest would mean something else."""

    types = (list,)
    item: Shape
    least: int = 0
    whole: bool = True

    def check(self, value: Any, path: Path, found: Found) -> Any:
        if super().check(value, path, found) is BROKEN:
            return BROKEN
        items = [self.item.check(item, (*path, at), found) for at, item in enumerate(value)]
        kept = [item for item in items if item is not BROKEN]
        return BROKEN if self.whole and len(kept) < len(items) else kept

    def parse(self, value: list[Any]) -> list[Any]:
        if len(value) < self.least:
            raise Wrong("must not be empty", "leave it out for the default")
        return value

    def schema(self) -> Schema:
        schema: Schema = {"type": "array", "items": self.item.schema()}
        return schema | ({"minItems": self.least} if self.least else {})

    @property
    def words(self) -> str:
        return f"a list of {self.item.plural}"

    @property
    def plural(self) -> str:
        return f"lists of {self.item.plural}"


@dataclass(frozen=True, kw_only=True)
class MapOf(Shape):
    """A table whose keys are names that people choose. `whole` as for lists."""

    types = (dict,)
    item: Shape
    key: Shape = field(default_factory=Text)
    whole: bool = False

    def check(self, value: Any, path: Path, found: Found) -> Any:
        if super().check(value, path, found) is BROKEN:
            return BROKEN
        kept = {}
        for key, item in value.items():
            is_good = self.key.check(key, (*path, key), found) is not BROKEN
            clean = self.item.check(item, (*path, key), found)
            if is_good and clean is not BROKEN:
                kept[key] = clean
        return BROKEN if self.whole and len(kept) < len(value) else kept

    def schema(self) -> Schema:
        return {
            "type": "object",
            "propertyNames": self.key.schema(),
            "additionalProperties": self.item.schema(),
        }

    @property
    def words(self) -> str:
        return f"a table of {self.item.plural}"

    @property
    def plural(self) -> str:
        return f"tables of {self.item.plural}"


@dataclass(frozen=True, kw_only=True)
class Field:
    """A key of a table. Without a good value for a `vital` one, the table is dropped whole."""

    shape: Shape
    doc: str = ""
    default: Any = None  # for docs and `Table.filled`; None: there is none
    required: bool = False
    vital: bool = False
    also: tuple[str, ...] = ()  # other names for it that people try


@dataclass(frozen=True, kw_only=True)
class Table(Shape):
    """A table with known keys; `open` ones may hold more, which is kept as it is."""

    types = (dict,)
    words = "a table"
    plural = "tables"
    fields: Mapping[str, Field] = field(default_factory=dict)
    open: bool = False
    nulls: bool = False  # null (YAML's `key:`) is the same as no key
    one_of: tuple[str, ...] = ()  # exactly one of these keys
    apart: tuple[tuple[str, str], ...] = ()  # pairs of keys that exclude each other
    needs: tuple[tuple[str, str], ...] = ()  # the first key means nothing without the second
    if_is: tuple[tuple[str, str, str], ...] = ()  # where this key is this word, that key is needed

    def check(self, value: Any, path: Path, found: Found) -> Any:
        if super().check(value, path, found) is BROKEN:
            return BROKEN
        if self.nulls:
            value = {key: item for key, item in value.items() if item is not None}
        is_broken = False
        clean = {}
        for key, item in value.items():
            known = self.fields.get(key)
            if known is not None:
                kept = known.shape.check(item, (*path, key), found)
                if kept is not BROKEN:
                    clean[key] = kept
                is_broken = is_broken or (kept is BROKEN and (known.vital or known.required))
            elif self.open:
                clean[key] = item
            else:
                hint = self._hint_for(key) if len(found) < _MOST_HINTS else ""
                message = f"{name_of((*path, key))} is not a known key"
                found.append(((*path, key), message, hint))
        return BROKEN if self._is_incomplete(value, path, found) or is_broken else clean

    def _meant(self, key: str) -> str:
        """Return the key that was probably meant by an unknown one; empty for none."""
        for name, known in self.fields.items():
            if key in known.also:
                return name
        return nearest(key, self.fields)

    def _hint_for(self, key: str) -> str:
        meant = self._meant(key)
        if meant:
            return f"did you mean `{meant}`?"
        is_short = 0 < len(self.fields) <= _MOST_LISTED
        return f"known keys: {', '.join(self.fields)}" if is_short else ""

    def _is_incomplete(self, value: dict[str, Any], path: Path, found: Found) -> bool:
        """Add what is wrong with keys that depend on each other; return True if that is fatal."""
        wanted = {key for key, known in self.fields.items() if known.required}
        wanted |= {need for key, word, need in self.if_is if value.get(key) == word}
        missing = [key for key in self.fields if key in wanted and key not in value]
        given = [key for key in value if key in self.one_of]
        # A misspelt key is not reported as missing too.
        unknown = () if self.open else [key for key in value if key not in self.fields]
        misspelt = {self._meant(key) for key in unknown}
        found += [
            (path, f"{name_of(path)} needs `{key}`", "") for key in missing if key not in misspelt
        ]
        if self.one_of and not given and misspelt.isdisjoint(self.one_of):
            names = " or ".join(f"`{key}`" for key in self.one_of)
            found.append((path, f"{name_of(path)} needs {names}", ""))
        for one, other in [(extra, given[0]) for extra in given[1:]] + list(self.apart):
            if one in value and other in value:
                message = f"{name_of(path)} has both `{other}` and `{one}`"
                found.append(((*path, one), message, "keep one of them"))
        found += [
            ((*path, key), f"{name_of((*path, key))} has no effect without `{need}`", "")
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
        for key, known in self.fields.items():
            entry = known.shape.schema()
            if self.nulls:
                entry = {"anyOf": [entry, {"type": "null"}]}
            if known.doc:
                entry["description"] = known.doc.replace("`", "")
            if known.default is not None:
                entry["default"] = known.default
            schema["properties"][key] = entry
        required = [key for key, known in self.fields.items() if known.required]
        rules: list[Schema] = [{"not": {"required": list(pair)}} for pair in self.apart]
        for key, word, need in self.if_is:
            condition = {"properties": {key: {"const": word}}, "required": [key]}
            rules.append({"if": condition, "then": {"required": [need]}})
        if required:
            schema["required"] = required
        if self.one_of:
            schema["oneOf"] = [{"required": [key]} for key in self.one_of]
        if self.needs:
            schema["dependentRequired"] = {key: [need] for key, need in self.needs}
        return schema | ({"allOf": rules} if rules else {})


@dataclass(frozen=True)
class Either(Shape):
    """One of several shapes; a value is checked against those of its own type."""

    shapes: tuple[Shape, ...]

    def accepts(self, value: object) -> bool:
        return any(shape.accepts(value) for shape in self.shapes)

    def check(self, value: Any, path: Path, found: Found) -> Any:
        clean: Any = BROKEN
        trial: Found = []
        for shape in filter(lambda shape: shape.accepts(value), self.shapes):
            trial = []
            clean = shape.check(value, path, trial)
            if not trial:
                return clean
        found += trial
        return clean if trial else super().check(value, path, found)

    def schema(self) -> Schema:
        return {"anyOf": [shape.schema() for shape in self.shapes]}

    @property
    def words(self) -> str:
        return " or ".join(shape.words for shape in self.shapes)

    @property
    def plural(self) -> str:
        return " or ".join(shape.plural for shape in self.shapes)


def check(value: Any, shape: Shape) -> tuple[Any, Found]:
    """Return what is right in a value, or None, and every mistake: its path, message and hint."""
    found: Found = []
    clean = shape.check(value, (), found)
    return (None if clean is BROKEN else clean), found
