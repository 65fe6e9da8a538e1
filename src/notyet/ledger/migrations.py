"""Bringing a ledger file to the version this code reads; one numbered step after another."""

from __future__ import annotations

from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from sqlite3 import Connection

VERSION = 1


def _create(db: Connection) -> None:
    schema = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
    for statement in statements(schema):
        db.execute(statement)  # not executescript, which would commit under our feet


def statements(script: str) -> list[str]:
    """Split a script of ours, whose comments and values hold no semicolon."""
    return [part for part in script.split(";") if part.strip()]


# The step at place n takes a file from version n to version n + 1.
STEPS: tuple[Callable[[Connection], None], ...] = (_create,)


def version_of(db: Connection) -> int:
    """Return the version of a file; 0 for an empty one."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def migrate(db: Connection) -> None:
    """Take the missing steps, inside the caller's transaction."""
    for version in range(version_of(db), VERSION):
        STEPS[version](db)
    db.execute(f"PRAGMA user_version = {VERSION}")
