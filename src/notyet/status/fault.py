"""`Fault`: one thing that is wrong, where it is, and how to fix it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from notyet.core.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

LEVELS = ("fault", "warning", "note")
# Every fault and how bad it is: a fault keeps a gate from working, a warning may surprise, a note
# is for information. docs/reference/status.md explains each.
CODES = {
    # The entry in the host's settings.
    "not-registered": "fault",
    "partly-registered": "fault",
    "registered-twice": "warning",
    "entry-changed": "fault",
    "timeout-too-short": "fault",
    "gates-too-slow": "warning",
    # The settings around it.
    "file-invalid": "fault",
    "file-hidden": "fault",
    "hooks-disabled": "fault",
    "managed-hooks-only": "fault",
    # The command.
    "program-missing": "fault",
    "other-version": "warning",
    "no-reply": "fault",
    "asks-otherwise": "fault",
    "not-probed": "warning",
    # Trust of the host.
    "hook-untrusted": "fault",
    "hook-modified": "fault",
    "hook-disabled": "fault",
    "project-untrusted": "fault",
    "folder-not-accepted": "warning",
    "folder-not-trusted": "fault",
    # The host's program.
    "version-too-old": "fault",
    "version-old": "warning",
    # Our own side.
    "off-by-variable": "fault",
    "switched-off": "fault",
    "no-gates": "note",
    "gate-replaced": "note",
    "config-invalid": "fault",
    "config-untrusted": "fault",
    "config-changed": "fault",
    "ledger-unusable": "fault",
    "share-failing": "warning",
}


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Something that is wrong, or worth knowing."""

    code: str
    level: str
    host: str = ""  # empty: for every host
    what: str  # one sentence
    where: str = ""  # a file, with line and column where they are known
    fix: str = ""
    events: tuple[str, ...] = ()  # the host's events that it concerns; empty: all

    def plain(self) -> dict[str, str]:
        """Return the fault for `--json`."""
        names = ("code", "level", "host", "what", "where", "fix")
        return {name: getattr(self, name) for name in names}


def fault(code: str, what: str, *, level: str = "", **fields: str) -> Fault:
    """Return a fault, with the level of its code unless another one is given."""
    return Fault(code=code, level=level or CODES[code], what=what, **fields)  # type: ignore[arg-type]  # all text


def is_bad(faults: Iterable[Fault]) -> bool:
    """Return True if one of these keeps a gate from working."""
    return any(found.level == "fault" for found in faults)


def location(path: str, line: int = 0, column: int = 0) -> str:
    """Return a location in a file as editors write it."""
    return visible(path) + (f":{line}" if line else "") + (f":{column}" if line and column else "")
