"""The kill switch: `NOTYET_DISABLE`, and `notyet off`, here or everywhere."""

from __future__ import annotations

import time

from notyet import light
from notyet.config.compiled import write_private
from notyet.config.find import OFF_VARIABLE, above, is_off_everywhere, state_folder, switches_folder
from notyet.core.record import Record
from notyet.core.text import visible
from notyet.light import dumps, loads, real_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MOST_SECONDS = 1e9  # a damaged file may hold any number


class Off(Record, kw_only=True):
    """A switch that is off: where, and until when (0: until it is switched on)."""

    place: str  # empty: everywhere
    until: float = 0.0
    by: str = ""  # who switched it off

    @property
    def undo(self) -> str:
        """The command that switches on again, in the folder of the switch."""
        return "notyet on" if self.place else "notyet on --global"

    def __str__(self) -> str:
        where = f"in {visible(self.place)}" if self.place else "everywhere"
        if not self.until:
            return f"off {where} until you run: {self.undo}"
        left = min(self.until - time.time(), _MOST_SECONDS)
        minutes = f"{max(1, round(left / 60))} min"
        return f"off {where} for another {minutes}, or until you run: {self.undo}"


def switched_off(cwd: str, environ: Mapping[str, str]) -> str:
    """Return why notyet is off here; empty if it is on."""
    if is_off_everywhere(environ):
        return f"off because {OFF_VARIABLE} is set"
    return next(map(str, switches(cwd, environ)), "")


def switches(cwd: str, environ: Mapping[str, str]) -> Iterator[Off]:
    """Yield the switches that are off for a folder: the nearest first, that for all last."""
    folder = switches_folder(state_folder(environ))
    if not folder:
        return
    here = real_folder(cwd)
    for place in (*(above(here) if here else ()), ""):
        off = _read(folder, place)
        if off is not None:
            yield off


def switch_off(place: str, until: float, environ: Mapping[str, str], by: str = "") -> Off:
    """Switch notyet off in a folder, or everywhere. Raises OSError."""
    off = Off(place=place, until=until, by=by)
    file = _file(light.join(state_folder(environ), "off"), place)
    write_private(file, dumps({"until": until, "by": by}))
    return off


def switch_on(place: str, environ: Mapping[str, str]) -> bool:
    """Remove the switch of a folder, or the one for all; False if it is not off. Raises OSError."""
    state = state_folder(environ)
    try:
        light.unlink(_file(light.join(state, "off"), place))
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _file(switches: str, place: str) -> str:
    if not place:
        return light.join(switches, "everywhere.json")
    return light.join(switches, "places", place.lstrip("/"), "off.json")


def _read(switches: str, place: str) -> Off | None:
    try:
        with open(_file(switches, place), "rb") as file:
            known = loads(file.read(1000).decode("utf-8", "replace"))
        until, by = float(known["until"]), str(known.get("by", ""))
    except OSError:
        return None
    except (ValueError, KeyError, TypeError):
        until, by = 0.0, ""  # damaged, and still a wish to be off
    if until and until < time.time():
        return None
    return Off(place=place, until=until, by=by)
