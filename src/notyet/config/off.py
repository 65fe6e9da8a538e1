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
    from collections.abc import Mapping

_MOST_SECONDS = 1e9  # a damaged file may hold any number


class Off(Record, kw_only=True):
    """A switch that is off: where, and until when (0: until it is switched on)."""

    place: str  # empty: everywhere
    until: float = 0.0

    def __str__(self) -> str:
        where = f"in {visible(self.place)}" if self.place else "everywhere"
        if not self.until:
            return f"off {where} until you run: notyet on"
        left = min(self.until - time.time(), _MOST_SECONDS)
        return f"off {where} for another {max(1, round(left / 60))} min"


def switched_off(cwd: str, environ: Mapping[str, str]) -> str:
    """Return why notyet is off here; empty if it is on."""
    if is_off_everywhere(environ):
        return f"off because {OFF_VARIABLE} is set"
    switches = switches_folder(state_folder(environ))
    if not switches:
        return ""
    folder = real_folder(cwd)
    for place in (*(above(folder) if folder else ()), ""):
        off = _read(switches, place)
        if off is not None:
            return str(off)
    return ""


def switch_off(place: str, until: float, environ: Mapping[str, str]) -> Off:
    """Switch notyet off in a folder, or everywhere. Raises OSError."""
    off = Off(place=place, until=until)
    file = _file(light.join(state_folder(environ), "off"), place)
    write_private(file, dumps({"until": until}))
    return off


def switch_on(place: str, environ: Mapping[str, str]) -> list[str]:
    """Remove all switches that apply to a folder; return their places. Raises OSError."""
    state = state_folder(environ)
    if not state:
        return []
    switches = light.join(state, "off")
    found = []
    for folder in (*(above(place) if place else ()), ""):
        try:
            light.unlink(_file(switches, folder))
        except (FileNotFoundError, NotADirectoryError):
            continue
        found.append(folder)
    return found


def _file(switches: str, place: str) -> str:
    if not place:
        return light.join(switches, "everywhere.json")
    return light.join(switches, "places", place.lstrip("/"), "off.json")


def _read(switches: str, place: str) -> Off | None:
    try:
        with open(_file(switches, place), "rb") as file:
            until = loads(file.read(1000).decode("ascii", "replace"))["until"]
        until = float(until)
    except OSError:
        return None
    except (ValueError, KeyError, TypeError):
        until = 0.0  # damaged, and still a wish to be off
    if until and until < time.time():
        return None
    return Off(place=place, until=until)
