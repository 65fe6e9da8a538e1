"""What stands in a host's settings files, as far as it can be read."""

from __future__ import annotations

import os

from notyet.config import read_json, read_toml
from notyet.config.document import TOO_DEEP, BadSyntax, Document
from notyet.config.mistakes import Mistake
from notyet.config.read_file import read_file
from notyet.core.record import Record, replace
from notyet.install.hooks_file import mistake_of
from notyet.report.faults.fault import place as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from notyet.config.document import Path
    from notyet.install.place import Place


_NOT_UTF8 = "it is not UTF-8"


class Content(Record, kw_only=True):
    """A settings file: its text and what that says, or in `mistake` why neither is known."""

    place: Place
    text: str = ""
    document: Document | None = None  # None: there is no such file, or it cannot be read
    mistake: Mistake | None = None
    doubt: Mistake | None = None  # why we cannot be sure of it, though its host may be

    @property
    def is_there(self) -> bool:
        """Whether there is such a file."""
        return bool(self.document or self.mistake or self.doubt)

    @property
    def value(self) -> dict[str, Any]:
        """The settings; empty where there are none."""
        return self.document.value if self.document is not None else {}

    def get(self, *path: str) -> Any:
        """Return what stands under these keys; None for nothing."""
        value: Any = self.value
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def where(self, *path: str | int) -> str:
        """Return a key's place as people write it."""
        if self.document is None or not path:
            return at(self.place.path)
        return at(self.place.path, *self.document.locate(_path(path)))


def _path(path: tuple[str | int, ...]) -> Path:
    return path


def read_places(places: Iterable[Place]) -> tuple[Content, ...]:
    """Read every file that is there."""
    return tuple(_read(place) for place in places)


def _read(place: Place) -> Content:
    if not os.path.lexists(place.path):
        return Content(place=place)
    text, mistake = read_file(place.path)
    if text is not None:
        return _parsed(place, text)
    if mistake is not None and mistake.message.startswith(_NOT_UTF8) and place.form == "json":
        # Hosts put a sign in the place of such a byte, and read on.
        with open(place.path, encoding="utf-8", errors="replace") as file:
            return replace(_parsed(place, file.read()), doubt=mistake)
    return Content(place=place, mistake=mistake)


def _parsed(place: Place, text: str) -> Content:
    if not text.strip("\ufeff \t\r\n"):
        return Content(place=place, text=text, document=Document(value={}))
    try:
        document = (read_toml if place.form == "toml" else read_json).read(text)
    except BadSyntax as error:
        mistake = mistake_of(place, error)
        if TOO_DEEP in error.message:  # for us, and not for everybody
            return Content(place=place, text=text, doubt=mistake)
        return Content(place=place, text=text, mistake=mistake)
    if not isinstance(document.value, dict):
        kind = type(document.value).__name__
        mistake = Mistake(file=place.path, message=f"it holds a {kind}, not an object")
        return Content(place=place, text=text, mistake=mistake)
    return Content(place=place, text=text, document=document)
