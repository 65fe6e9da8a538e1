"""Bringing a ledger file to the version this code reads; one numbered step after another."""

from __future__ import annotations

from notyet import system
from notyet.ledger.file import APPLICATION, VERSION, expect_ours, version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from sqlite3 import Connection
    from typing import Literal


def _create(db: Connection) -> None:
    _run(db, "schema.sql")


def _add_commands(db: Connection) -> None:
    """Version 2: how commands ended, and what people did (trust, off, on)."""
    _run(db, "version_2.sql")


def _add_holding(db: Connection) -> None:
    """Version 3: problems that hold an agent, and which process asks."""
    _run(db, "version_3.sql")


def _add_tasks(db: Connection) -> None:
    """Version 4: supervised agents, their runs and what is told of them."""
    _run(db, "version_4.sql")


def _add_places(db: Connection) -> None:
    """Version 5: on which machine a command ran."""
    _run(db, "version_5.sql")


def _add_passes(db: Connection) -> None:
    """Version 6: passes and starts, so that gates are asked only when it matters; places."""
    _run(db, "version_6.sql")


def _run(db: Connection, name: str) -> None:
    with open(system.path.join(system.path.dirname(__file__), name), encoding="utf-8") as file:
        script = file.read()
    for statement in statements(script):
        db.execute(statement)  # not executescript, which would commit under our feet


def statements(script: str) -> list[str]:
    """Split a script of ours, whose comments and values hold no semicolon."""
    return [part for part in script.split(";") if part.strip()]


# The step at place n takes a file from version n to version n + 1.
STEPS: tuple[Callable[[Connection], None], ...] = (
    _create,
    _add_commands,
    _add_holding,
    _add_tasks,
    _add_places,
    _add_passes,
)


def bring_up(db: Connection, path: str, version: int, journal: Literal["WAL", "DELETE"]) -> None:
    """Bring a file of an older version up, or one that is new."""
    if not version:  # so that the file can be made smaller later without a copy of it
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.execute(f"PRAGMA journal_mode = {journal}")
    db.execute("BEGIN IMMEDIATE")
    expect_ours(path, version_of(db))  # a newer notyet may have been faster
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    migrate(db)
    db.execute("COMMIT")


def migrate(db: Connection) -> None:
    """Take the missing steps, inside the caller's transaction."""
    for version in range(version_of(db), VERSION):
        STEPS[version](db)
    db.execute(f"PRAGMA user_version = {VERSION}")
