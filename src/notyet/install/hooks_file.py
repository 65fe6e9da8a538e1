"""Settings files with a block of hooks in the form that Claude Code began, as JSON or as TOML."""

from __future__ import annotations

import os

from notyet.config.document import BadSyntax, Document, Mistake, name_of
from notyet.config.readers import read_file, read_json, read_toml
from notyet.install import splice_json, splice_toml
from notyet.install.edit import carried_out, steps_to_add, steps_to_remove
from notyet.install.refused import CannotInstall
from notyet.install.registered import registrations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from notyet.config.document import Path
    from notyet.install.edit import Step
    from notyet.install.entry import Entry
    from notyet.install.place import Place
    from notyet.install.registered import Registration

_READERS = {"json": read_json, "toml": read_toml}
_SPLICERS = {"json": splice_json.spliced, "toml": splice_toml.spliced}


def added(host: str, text: str, place: Place, entries: Sequence[Entry]) -> str:
    """Return a file's text with exactly these entries of ours. Raises CannotInstall."""
    document = document_of(text, place)
    _check_shape(document, place, [entry.event for entry in entries])
    ours = registrations(host, place, document)
    return changed(text, place, document, steps_to_add(document.value, ours, entries))


def removed(host: str, text: str, place: Place) -> str:
    """Return a file's text without our entries. Raises CannotInstall."""
    document = document_of(text, place)
    ours = registrations(host, place, document)
    return changed(text, place, document, steps_to_remove(document.value, ours) if ours else [])


def changed(text: str, place: Place, document: Document, steps: Sequence[Step]) -> str:
    """Return the text after these steps, once it is sure to mean what it should."""
    if not steps:
        return text
    new = _SPLICERS[place.form](text, steps)
    meant = carried_out(document.value, steps)
    try:
        now = _READERS[place.form](new).value
    except BadSyntax:
        now = None
    if place.form == "toml":  # where a table without members need not stand anywhere
        now, meant = _without_empty(now), _without_empty(meant)
    if not _is_same(now, meant):  # a form of writing that our splicers do not know
        message = "it is written in a way that cannot be changed without risk"
        hint = (
            "add or remove the hooks yourself; `--dry-run` of a new file shows what they look like"
        )
        raise CannotInstall(Mistake(file=place.path, message=message, hint=hint))
    return new


def _is_same(one: Any, other: Any) -> bool:
    """Compare what two texts say; NaN, which TOML has, is not even equal to itself."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return repr(one) == repr(other)
    return type(one) is type(other) and bool(one == other)


def _without_empty(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {key: _without_empty(inner) for key, inner in value.items()}
    return {key: inner for key, inner in inner.items() if inner != {}}


def document_of(text: str, place: Place) -> Document:
    """Read a file's text; an empty one says nothing. Raises CannotInstall."""
    if not text.removeprefix("\ufeff").strip(" \t\r\n"):
        return Document(value={})
    try:
        document = _READERS[place.form](text)
    except BadSyntax as error:
        raise CannotInstall(mistake_of(place, error)) from None
    if not isinstance(document.value, dict):
        message = f"a table should stand here, not {type(document.value).__name__}"
        raise CannotInstall(Mistake(file=place.path, line=1, column=1, message=message))
    return document


def text_of(place: Place) -> str | None:
    """Return a file's text; None when there is no file. Raises CannotInstall."""
    if not os.path.lexists(place.path):
        return None
    if os.path.islink(place.path) and not os.path.exists(place.path) and _leads_somewhere(place):
        return None  # a link to a file that is not there yet
    text, mistake = read_file(place.path)
    if mistake is not None:
        raise CannotInstall(mistake)
    return text


def _leads_somewhere(place: Place) -> bool:
    return not os.path.islink(os.path.realpath(place.path))  # a loop ends in a link


def found_in(host: str, places: Iterable[Place]) -> tuple[list[Registration], list[Mistake]]:
    """Return our entries in these files, and what is wrong with those that cannot be read."""
    ours: list[Registration] = []
    mistakes: list[Mistake] = []
    for place in places:
        if not os.path.lexists(place.path):
            continue
        text, mistake = read_file(place.path)
        if text is None:
            mistakes.append(mistake or Mistake(file=place.path, message="it cannot be read"))
            continue
        if not text.removeprefix("\ufeff").strip(" \t\r\n"):
            continue
        try:
            ours += registrations(host, place, _READERS[place.form](text))
        except BadSyntax as error:
            mistakes.append(mistake_of(place, error))
    return ours, mistakes


def mistake_of(place: Place, error: BadSyntax) -> Mistake:
    """Return what is wrong with a file, at its place."""
    return Mistake(
        file=place.path,
        line=error.line,
        column=error.column,
        message=error.message,
        hint=error.hint,
    )


def _check_shape(document: Document, place: Place, events: Sequence[str]) -> None:
    """Refuse a file in which something else stands where our entries would go."""
    check_tables(document, place, ("hooks",))
    for event in events:
        if not isinstance(document.value.get("hooks", {}).get(event, []), list):
            raise _in_the_way(document, place, ("hooks", event), "a list")


def check_tables(document: Document, place: Place, path: Path) -> None:
    """Refuse a file in which something on this path is no table. Raises CannotInstall."""
    value = document.value
    for at, key in enumerate(path, 1):
        if key not in value:
            return
        value = value[key]
        if not isinstance(value, dict):
            raise _in_the_way(document, place, path[:at], "a table")


def _in_the_way(document: Document, place: Place, path: Path, wanted: str) -> CannotInstall:
    line, column = document.locate(path)
    message = f"{name_of(path)} is not {wanted}, so nothing can be added to it"
    return CannotInstall(
        Mistake(
            file=place.path, line=line, column=column, message=message, hint="correct that first"
        )
    )
