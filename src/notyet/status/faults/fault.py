"""`Fault`: one thing that is wrong between a host and us, where, and what to do about it."""

from __future__ import annotations

from types import MappingProxyType

from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Literal

    Level = Literal["fault", "warning", "note"]

LEVELS = ("fault", "warning", "note")
# Everything that `notyet status` can find, and how bad it is. A fault keeps a gate from gating;
# a warning may surprise somebody; a note is for your information. Each has its place on the page
# docs/reference/status.md.
CODES: Mapping[str, Level] = MappingProxyType(
    {
        # The entry in the host's settings.
        "not-registered": "fault",
        "partly-registered": "fault",
        "starts-not-registered": "warning",
        "registered-twice": "warning",
        "event-misspelt": "fault",
        "entry-conditional": "fault",
        "entry-async": "fault",
        "entry-refused": "fault",
        "matcher-broken": "fault",
        "matcher-restricts": "warning",
        "wrong-host": "fault",
        # The settings around it.
        "file-invalid": "fault",
        "file-dropped": "fault",
        "file-unread": "warning",
        "settings-not-asked": "warning",
        "hooks-disabled": "fault",
        "managed-hooks-only": "fault",
        "off-by-variable": "fault",
        "other-folder": "fault",
        # The command.
        "program-missing": "fault",
        "program-not-executable": "fault",
        "interpreter-missing": "fault",
        "no-reply": "fault",
        "asks-otherwise": "fault",
        "other-version": "warning",
        "launcher-other": "warning",
        "pack-outdated": "note",
        "not-probed": "warning",
        # Trust.
        "hook-untrusted": "fault",
        "hook-modified": "fault",
        "hook-disabled": "fault",
        "hook-not-loaded": "fault",
        "project-untrusted": "fault",
        "folder-not-accepted": "warning",
        "trust-not-asked": "warning",
        # Time and counts.
        "timeout-too-short": "fault",
        "gates-too-slow": "warning",
        "limit-above-cap": "warning",
        # The host's program.
        "program-not-found": "note",
        "version-too-old": "fault",
        "version-old": "warning",
        "version-unknown": "warning",
        # Our own side.
        "no-gates": "note",
        "config-invalid": "fault",
        "config-untrusted": "fault",
        "config-changed": "fault",
        "config-removed": "warning",
        "config-unreadable": "fault",
        "gate-may-not-start": "warning",
        "workspace-not-asked": "note",
        "switched-off": "fault",
        "ledger-unusable": "fault",
        "ledger-at-risk": "warning",
    }
)


class Fault(Record, kw_only=True):
    """Something that is wrong, or worth knowing."""

    code: str
    level: Level
    host: str = ""  # empty: whatever the host
    what: str  # one sentence
    where: str = ""  # a file, with line and column where they are known
    fix: str = ""  # what to do


def fault(code: str, what: str, *, host: str = "", where: str = "", fix: str = "") -> Fault:
    """Return a fault of a known kind."""
    return Fault(code=code, level=CODES[code], host=host, what=what, where=where, fix=fix)


def is_bad(faults: Iterable[Fault]) -> bool:
    """Tell whether something keeps a gate from gating."""
    return any(found.level == "fault" for found in faults)


def place(path: str, line: int = 0, column: int = 0) -> str:
    """Return a place in a file as editors and people write it."""
    from notyet.core.text import visible

    return visible(path) + (f":{line}" if line else "") + (f":{column}" if line and column else "")
