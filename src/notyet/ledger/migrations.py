"""The tables of a ledger: creating them, and bringing a file of an older version up to date."""

from __future__ import annotations

from notyet import light
from notyet.ledger.connection import (
    APPLICATION,
    FIRST_VERSION,
    VERSION,
    expect_readable,
    version_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from sqlite3 import Connection
    from typing import Literal

# Each step takes a file to the next version: the first one from FIRST_VERSION to the one after it.
# A new step raises VERSION in connection.py by one. Steps that were released are never edited.
_TO_2 = """
    DROP TABLE IF EXISTS intents;
    ALTER TABLE owners RENAME COLUMN space TO machine;
    ALTER TABLE stops ADD COLUMN machine TEXT NOT NULL DEFAULT '';
    ALTER TABLE tasks ADD COLUMN moved INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX tasks_moved ON tasks (owner) WHERE moved = 1;
    ALTER TABLE runs ADD COLUMN cut_off TEXT
"""


def _to_2(db: Connection) -> None:
    """Name machines, and let any process move a task.

    `machine` is where a process id means something. `moved` is 1 until a task's owner has noticed
    the move of another process. `cut_off` is JSON of a turn that a steer ended.
    """
    for statement in statements(_TO_2):
        db.execute(statement)


def _to_3(db: Connection) -> None:
    """Add to subagents the last stop that the user was told of, at a stop of the main agent."""
    db.execute("ALTER TABLE agents ADD COLUMN told INTEGER NOT NULL DEFAULT 0")
    db.execute("UPDATE agents SET told = last_stop")


def _to_4(db: Connection) -> None:
    """Add to agents the gates that sent them back and have not passed since, as JSON."""
    db.execute("ALTER TABLE agents ADD COLUMN sent_back_by TEXT NOT NULL DEFAULT '[]'")


def _to_5(db: Connection) -> None:
    """Index the reports that blocked, to say of a gate that it never did."""
    db.execute(
        "CREATE INDEX reports_blocked ON reports (gate, stop)"
        " WHERE status IN ('blocked', 'halted') AND observed = 0"
    )


def _to_6(db: Connection) -> None:
    """Index tasks that are active and results that may be undelivered, to list them in order."""
    db.execute("CREATE INDEX tasks_active ON tasks (created_at) WHERE ended_at IS NULL")
    db.execute(
        "CREATE INDEX outbox_undelivered ON outbox (created_at, task) WHERE"
        " status IN ('pending', 'leased', 'suspended') OR (told = 3 AND status <> 'dismissed')"
    )


_TO_7 = """
    ALTER TABLE owners ADD COLUMN worker TEXT NOT NULL DEFAULT '{}';
    ALTER TABLE tasks ADD COLUMN queue TEXT NOT NULL DEFAULT '';
    ALTER TABLE tasks ADD COLUMN model TEXT NOT NULL DEFAULT '';
    ALTER TABLE tasks ADD COLUMN ordered TEXT NOT NULL DEFAULT '{}';
    ALTER TABLE tasks ADD COLUMN retries INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE tasks ADD COLUMN placement TEXT NOT NULL DEFAULT '';
    ALTER TABLE tasks ADD COLUMN begun INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE tasks ADD COLUMN machine TEXT NOT NULL DEFAULT '';
    CREATE INDEX tasks_unplaced ON tasks (id)
      WHERE queue <> '' AND placement = '' AND ended_at IS NULL;
    CREATE INDEX tasks_begun ON tasks (queue, model)
      WHERE queue <> '' AND begun = 1 AND ended_at IS NULL;
    CREATE INDEX tasks_waiting ON tasks (queue, model)
      WHERE queue <> '' AND begun = 0 AND ended_at IS NULL;
    CREATE TABLE queues (name TEXT PRIMARY KEY, about TEXT NOT NULL);
    CREATE TABLE schedules (name TEXT PRIMARY KEY, cron TEXT NOT NULL, ordered TEXT NOT NULL);
    CREATE TABLE begins (queue TEXT NOT NULL, model TEXT NOT NULL, at REAL NOT NULL);
    CREATE INDEX begins_by_model ON begins (queue, model, at);
    CREATE INDEX begins_by_time ON begins (at)
"""


def _to_7(db: Connection) -> None:
    """Let tasks wait in queues for the workers of a fleet.

    `owners.worker` is JSON of a worker. `ordered` is JSON of a task's Order, `retries` are left,
    `placement` is its workflow in the queue ('' until it has one), `begun` is 1 while a worker has
    it, `machine` is where its conversation must stay. `begins` are counted for limits per model.
    """
    for statement in statements(_TO_7):
        db.execute(statement)


def _to_8(db: Connection) -> None:
    """Add to reports the tokens that a judge's model used."""
    db.execute("ALTER TABLE reports ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0")


STEPS: tuple[Callable[[Connection], None], ...] = (
    *(_to_2, _to_3, _to_4, _to_5, _to_6, _to_7, _to_8),
)


def prepare(db: Connection, path: str, version: int, journal: Literal["WAL", "DELETE"]) -> None:
    """Create the tables of a new file, or take the steps that an older one lacks."""
    if not version:  # lets the file shrink later without a copy
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.execute(f"PRAGMA journal_mode = {journal}")
    db.execute("BEGIN IMMEDIATE")
    expect_readable(path, version_of(db))  # a newer notyet may have been faster
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    migrate(db)
    db.execute("COMMIT")


def migrate(db: Connection) -> None:
    """Create the tables or take the missing steps, inside the caller's transaction."""
    version = version_of(db)
    if not version:
        for statement in statements(schema()):
            db.execute(statement)  # not executescript, which commits
        version = FIRST_VERSION
    for step in STEPS[version - FIRST_VERSION :]:
        step(db)
    db.execute(f"PRAGMA user_version = {VERSION}")


def schema() -> str:
    """Return the script of the first version."""
    path = light.join(light.dirname(__file__), "schema.sql")
    with open(path, encoding="utf-8") as file:
        return file.read()


def statements(script: str) -> list[str]:
    """Split a script of ours; without comments, which SQLite would parse at every start."""
    bare = "\n".join(line.partition("--")[0].rstrip() for line in script.splitlines())
    return [part.strip() for part in bare.split(";") if part.strip()]
