"""`Place`: a settings file of a host, and whom it is for."""

from __future__ import annotations

import os

from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal, TypeAlias

    Scope: TypeAlias = Literal["user", "project", "local", "managed"]
    Form: TypeAlias = Literal["json", "toml"]

WRITABLE: tuple[Scope, ...] = ("user", "project", "local")


class Place(Record, kw_only=True):
    """A file that a host would read, whether it is there or not."""

    scope: Scope
    path: str
    form: Form = "json"


def user_folder(environ: Mapping[str, str], variable: str, name: str) -> str:
    """Return a host's folder of the user; empty where there is none."""
    folder = environ.get(variable, "") or os.path.join(environ.get("HOME", ""), name)
    return folder if os.path.isabs(folder) else ""


def no_home(environ: Mapping[str, str], variable: str) -> str:
    """Say why there is no folder of the user."""
    if environ.get(variable):
        return (
            f"{variable} is no absolute path, so it depends on where a host is started; make it one"
        )
    return f"there is no home folder; set HOME, or {variable}"


def distinct(places: list[Place]) -> list[Place]:
    """Return the places without a file's second mention, as in a project that is the home."""
    first: dict[str, Place] = {}
    for place in places:
        first.setdefault(os.path.realpath(place.path), place)
    return list(first.values())


def is_inside(path: str, folder: str) -> bool:
    """Tell whether a file lies in a folder, maybe through a link."""
    return os.path.dirname(os.path.realpath(path)) == os.path.realpath(folder)


def is_same_file(one: Place, other: Place) -> bool:
    """Tell whether two places are one file."""
    return os.path.realpath(one.path) == os.path.realpath(other.path)
