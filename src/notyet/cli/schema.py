"""`notyet schema`: the JSON Schema of the files that notyet reads, for editors and checkers."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, TypeAlias

from notyet.cli.person import refuse
from notyet.config.document import HUGE
from notyet.config.schema import FORMATS
from notyet.config.shapes import (
    Age,
    Choice,
    Either,
    Flag,
    Glob,
    ListOf,
    MapOf,
    Measure,
    Number,
    Seconds,
    Shape,
    Size,
    Table,
    Text,
    Whole,
    Workspace,
)
from notyet.core.remote import LOCAL
from notyet.core.text import visible
from notyet.install.change import replace_file

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

Schema: TypeAlias = dict[str, Any]
DRAFT = "https://json-schema.org/draft/2020-12/schema"
SUMMARY = "print the JSON Schema of notyet.toml, or write it for editors"
EXAMPLES = (
    ("notyet schema", "all keys of notyet.toml, with what they do"),
    ("notyet schema conclaude", "of a .conclaude.yaml, as notyet reads it"),
    ("notyet schema --write", "into .notyet/ here, to commit it with notyet.toml"),
)
_FOLDER = ".notyet"
_NAMES = tuple(name for name in FORMATS if name != "hooks-toml")  # which shares a page


def _file(name: str) -> str:
    page = next(form.page for known, form in FORMATS.items() if known == name)
    return f"{page}.schema.json"


REFERENCE = f"./{_FOLDER}/{_file('notyet')}"  # what `#:schema` in a notyet.toml names


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "format",
        nargs="?",
        default="notyet",
        choices=_NAMES,
        metavar="FORMAT",
        help=f"{', '.join(_NAMES[:-1])} or {_NAMES[-1]} (default: notyet)",
    )
    parser.add_argument(
        "--write", action="store_true", help=f"write it to {_FOLDER}/ here, for editors"
    )


def run(args: argparse.Namespace) -> int:
    """Print or write one schema."""
    if not args.write:
        print(text_of(args.format), end="")
        return 0
    try:
        path = write_schema(os.getcwd(), args.format)
    except OSError as error:
        if error.filename is None:  # of a folder that is gone
            raise
        where = visible(os.fsdecode(error.filename))
        return refuse("schema", f"{where}: {error.strerror}; nothing was written")
    print(f"wrote {visible(path)}")
    if args.format == "notyet":
        print(f"commit it, and let notyet.toml begin with: #:schema {REFERENCE}")
    return 0


def text_of(name: str) -> str:
    """Return the text of a schema."""
    page = next(form.page for known, form in FORMATS.items() if known == name)
    return json.dumps(pages()[page], indent=2, ensure_ascii=False) + "\n"


def write_schema(folder: str, name: str = "notyet") -> str:
    """Write a schema for the editors of one project; return its path. Raises OSError."""
    place = os.path.join(folder, _FOLDER)
    if os.path.islink(place):  # it may lead anywhere
        raise FileExistsError(17, "it is a link, and links are not followed", place)
    os.makedirs(place, exist_ok=True)
    path = os.path.join(place, _file(name))
    replace_file(path, text_of(name).encode())
    return path


def pages() -> dict[str, Schema]:
    """Return every JSON Schema by its name."""
    return {
        form.page: {"$schema": DRAFT} | schema_of(form.shape) | {"title": form.title}
        for form in FORMATS.values()
    }


def schema_of(shape: Shape) -> Schema:
    """Return the JSON Schema of a shape."""
    for kind, make in _MAKERS.items():
        if isinstance(shape, kind):
            return make(shape)
    return {}


def _text(text: Text) -> Schema:
    schema: Schema = {"type": "string"}
    if text.pattern:
        schema["pattern"] = f"^(?:{text.pattern})$"
    elif not text.blank:
        schema["pattern"] = r"\S"
    return schema | ({"maxLength": text.most} if text.most else {})


def _whole(number: Whole) -> Schema:
    schema: Schema = {"type": "integer", "minimum": number.least}
    if number.most is not None:
        schema["maximum"] = number.most
    return schema | ({} if number.never is None else {"not": {"const": number.never}})


def _or_text(number: Schema, measure: Measure) -> Schema:
    return {"anyOf": [number, {"type": "string", "pattern": f"^{measure.pattern}$"}]}


def _seconds(span: Seconds) -> Schema:
    return _or_text({"type": "number", "exclusiveMinimum": 0, "maximum": span.most}, span)


def _size(size: Size) -> Schema:
    return _or_text({"type": "integer", "minimum": size.least, "maximum": size.most}, size)


def _list(items: ListOf) -> Schema:
    schema: Schema = {"type": "array", "items": schema_of(items.item)}
    return schema | ({"minItems": items.least} if items.least else {})


def _map(items: MapOf) -> Schema:
    names, values = schema_of(items.key), schema_of(items.item)
    return {"type": "object", "propertyNames": names, "additionalProperties": values}


def _table(table: Table) -> Schema:
    schema: Schema = {"type": "object", "properties": {}, "additionalProperties": table.open}
    for key, known in table.fields.items():
        entry = schema_of(known.shape)
        if table.nulls:
            entry = {"anyOf": [entry, {"type": "null"}]}
        if known.doc:
            entry["description"] = known.doc.replace("`", "")
        if known.default is not None:
            entry["default"] = known.default
        schema["properties"][key] = entry
    required = [key for key, known in table.fields.items() if known.required]
    if required:
        schema["required"] = required
    if table.one_of:
        schema["oneOf"] = [{"required": [key]} for key in table.one_of]
    if table.needs:
        schema["dependentRequired"] = {key: [need] for key, need in table.needs}
    rules: list[Schema] = [{"not": {"required": list(pair)}} for pair in table.apart]
    for key, word, need in table.if_is:
        condition = {"properties": {key: {"const": word}}, "required": [key]}
        rules.append({"if": condition, "then": {"required": [need]}})
    return schema | ({"allOf": rules} if rules else {})


_MAKERS: dict[type[Shape], Callable[[Any], Schema]] = {
    Workspace: lambda _: {"type": "string", "pattern": rf"^(?:{LOCAL}|ssh://[^/\s]+/.*)$"},
    Text: _text,
    Flag: lambda _: {"type": "boolean"},
    Choice: lambda choice: {"enum": list(choice.options)},
    Glob: lambda _: {"type": "string", "minLength": 1},
    Whole: _whole,
    Number: lambda _: {"type": "number", "minimum": 0, "maximum": HUGE},
    Seconds: _seconds,
    Age: lambda age: {"type": "string", "pattern": f"^{age.pattern}$"},
    Size: _size,
    ListOf: _list,
    MapOf: _map,
    Table: _table,
    Either: lambda either: {"anyOf": [schema_of(shape) for shape in either.shapes]},
}
