"""The formats we read: for each its shape, its reader, and its page of JSON Schema."""

from __future__ import annotations

from notyet.config import read_json, read_toml, read_yaml
from notyet.config.document import BadSyntax, Document, Mistake
from notyet.config.schema_hosts import CONCLAUDE, HOOKS
from notyet.config.schema_native import NATIVE
from notyet.config.shape import Table, check, json_schema
from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    FormatName = Literal["notyet", "conclaude", "hooks", "hooks-toml"]


_MOST_MISTAKES = 200


class Format(Record, kw_only=True):
    """A kind of file. `page` names its JSON Schema; two formats may share one."""

    shape: Table
    syntax: Literal["toml", "json", "yaml"]
    page: str
    title: str


FORMATS: dict[FormatName, Format] = {
    "notyet": Format(shape=NATIVE, syntax="toml", page="notyet.toml", title="notyet.toml"),
    "conclaude": Format(
        shape=CONCLAUDE, syntax="yaml", page="conclaude.yaml", title=".conclaude.yaml"
    ),
    "hooks": Format(
        shape=HOOKS, syntax="json", page="hooks", title="hooks of Claude Code, Codex and Mux"
    ),
    "hooks-toml": Format(
        shape=HOOKS, syntax="toml", page="hooks", title="hooks of Claude Code, Codex and Mux"
    ),
}


class Examined(Record, kw_only=True):
    """What is right in a file, where it stands, and everything that is wrong."""

    value: dict[str, Any]
    document: Document | None
    mistakes: tuple[Mistake, ...]


def examine(text: str, file: str, format_name: FormatName) -> Examined:
    """Read and check a file's text. Whatever is wrong becomes a mistake; nothing is raised."""
    form = FORMATS[format_name]
    try:
        document = _read(text, file, form.syntax)
    except BadSyntax as bad:
        mistake = Mistake(
            file=file, line=bad.line, column=bad.column, message=bad.message, hint=bad.hint
        )
        return Examined(value={}, document=None, mistakes=(mistake,))
    value = {} if document.value is None else document.value  # an empty YAML file
    clean, found = check(value, form.shape)
    mistakes = [
        Mistake(file=file, line=f.line, column=f.column, message=f.message, hint=f.hint)
        for f in document.findings
    ]
    for path, message, hint in found:
        line, column = document.locate(path)
        mistakes.append(Mistake(file=file, line=line, column=column, message=message, hint=hint))
    mistakes.sort(key=lambda mistake: (mistake.line, mistake.column))
    if len(mistakes) > _MOST_MISTAKES:
        more = f"and {len(mistakes) - _MOST_MISTAKES} more mistakes"
        mistakes[_MOST_MISTAKES:] = [Mistake(file=file, message=more)]
    return Examined(value=clean or {}, document=document, mistakes=tuple(mistakes))


def _read(text: str, file: str, syntax: str) -> Document:
    if syntax == "yaml":
        return read_yaml.read(text, file)
    return read_toml.read(text) if syntax == "toml" else read_json.read(text)


def pages() -> dict[str, dict[str, Any]]:
    """Return every JSON Schema by its name."""
    return {form.page: json_schema(form.shape) | {"title": form.title} for form in FORMATS.values()}
