"""The files on which gates passed, and those that agents started with (N1).

A pass counts only in the environment in which the gate passed: another PATH finds other programs.

A failure is never stored; it deletes a pass on the same files. Old passes, and those beyond a
maximum, are deleted: then a gate runs again. The start of an agent that has stopped is kept as long
as the agent itself, so that a later start cannot replace it.
"""

from __future__ import annotations

import time

from notyet import light
from notyet.core.gate import digest_of
from notyet.core.plan import skip_causes
from notyet.core.record import variant
from notyet.ledger.stop_rows import key_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from notyet.core.event import StartEvent, StopEvent
    from notyet.core.plan import Wanted
    from notyet.core.verdict import Report

    Agent = tuple[str, str, str]

# Variables that choose programs, libraries and the options of both.
CHOOSING = frozenset({
    *("PATH", "HOME", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS"),
    *("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH"),
    *("MAKEFLAGS", "MAKEFILES", "GNUMAKEFLAGS", "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE"),
    *("PYTHONOPTIMIZE", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "VIRTUAL_ENV", "CONDA_PREFIX"),
    *("UV_PROJECT_ENVIRONMENT", "UV_PYTHON", "NODE_PATH", "NODE_OPTIONS", "NODE_ENV"),
    *("RUBYLIB", "RUBYOPT", "GEM_HOME", "GEM_PATH", "BUNDLE_GEMFILE", "BUNDLE_PATH"),
    *("PERL5LIB", "PERL5OPT", "JAVA_HOME", "JAVA_TOOL_OPTIONS", "CLASSPATH", "MAVEN_OPTS"),
    *("GRADLE_OPTS", "GOPATH", "GOROOT", "GOFLAGS", "GOENV", "CARGO_HOME", "RUSTFLAGS"),
    *("RUSTC_WRAPPER", "RUSTUP_TOOLCHAIN"),
})  # fmt: skip
_CHOOSING_ALL = ("BASH_FUNC_", "npm_config_", "NPM_CONFIG_")  # how other names begin
_OF_CODEX = "/codex-arg0"  # each process puts a new folder with its own commands first
_OLDEST = 30 * 86_400.0  # seconds
_MOST = 20_000  # passes; and so many starts, of which an agent has one for each of its scopes
_BOUNDED_EVERY = 50  # stops that remember a pass

_START_OF = "SELECT scope, tree FROM starts WHERE host = ? AND session_id = ? AND agent_id = ?"
_NEW_START = (
    "INSERT INTO starts (host, session_id, agent_id, scope, tree, at) VALUES (?, ?, ?, ?, ?, ?)"
)
_HAS_STOPPED = "SELECT 1 FROM agents WHERE host = ? AND session_id = ? AND agent_id = ?"
_OF_SESSION = tuple(
    f"SELECT 1 FROM {table} WHERE host = ? AND session_id = ?" for table in ("starts", "agents")
)
_WITHOUT_STOP = (
    "NOT EXISTS (SELECT 1 FROM agents WHERE agents.host = starts.host"
    " AND agents.session_id = starts.session_id AND agents.agent_id = starts.agent_id)"
)
_HAS_PASSED = "SELECT 1 FROM passes WHERE definition = ? AND tree = ?"
_PASSED_AT = "SELECT at, stop FROM passes WHERE definition = ? AND tree = ?"
_EVER_PASSED = "SELECT tree FROM passes WHERE definition = ?"
_ENTER = (
    "INSERT INTO passes (definition, tree, at, stop) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (definition, tree) DO UPDATE SET at = excluded.at, stop = excluded.stop"
)
_TAKE_BACK = "DELETE FROM passes WHERE definition = ? AND tree > ? AND tree < ?"


def agents_of(event: StopEvent) -> list[Agent]:
    """Return the agents whose start counts for an event, its own first.

    A subagent without a known start began with its session, or later. An agent with a task was
    asked to do something, so unchanged files are no reason to skip its gates.
    """
    if event.task_id:
        return []
    own = event.agent_id or ""
    agents = [(event.host, event.session_id, own)]
    if own:
        sessions = (event.session_id, event.parent_session_id)
        agents += [(event.host, session, "") for session in sessions if session]
    return agents


def here(tree: str) -> str:
    """Return a tree in the environment of this process, which its gates inherit.

    Only a digest of the values is stored.
    """
    chosen = {
        name: value
        for name, value in light.variables().items()
        if name in CHOOSING or name.startswith(_CHOOSING_ALL)
    }
    chosen["PATH"] = ":".join(map(_place, chosen.get("PATH", "").split(":")))
    return f"{tree} {digest_of(repr(sorted(chosen.items())))}"


def _place(folder: str) -> str:
    """Return a folder of PATH by its path, or by what it holds if every Codex has another one."""
    if _OF_CODEX not in folder:
        return folder
    try:
        return repr(sorted(light.listdir(folder)))
    except OSError:
        return folder


def passes_in(reports: Sequence[Report]) -> list[tuple[str, str]]:
    """Return the passes in reports: definition and tree."""
    return [(r.definition, here(r.passed_on)) for r in reports if r.definition and r.passed_on]


def failures_in(reports: Sequence[Report]) -> list[tuple[str, str]]:
    """Return the failures in reports that delete passes, in whatever environment."""
    return [(r.definition, r.failed_on) for r in reports if r.definition and r.failed_on]


def recall(db: sqlite3.Connection, event: StopEvent, wanted: Sequence[Wanted]) -> dict[str, str]:
    """Return why gates can be skipped."""
    start = start_of(db, event)
    passed = [db.execute(_HAS_PASSED, _pass_of(one)).fetchone() is not None for one in wanted]
    return skip_causes([*map(_storable, wanted)], start, passed)


def start_of(db: sqlite3.Connection, event: StopEvent) -> dict[str, str]:
    """Return the files that the agent of an event started with: scope -> tree."""
    for agent in agents_of(event):
        start = dict(db.execute(_START_OF, tuple(map(key_text, agent))).fetchall())
        if start:
            return start
    return {}


def passed_at(db: sqlite3.Connection, one: Wanted) -> tuple[float, int]:
    """Return when a gate passed on these files, and at which stop (0: by hand)."""
    return db.execute(_PASSED_AT, _pass_of(one)).fetchone() or (0.0, 0)


def passed_where(db: sqlite3.Connection, one: Wanted) -> str:
    """Return how a stored pass of a gate differs: in "files" or "environment"; "" for none."""
    trees = [tree for (tree,) in db.execute(_EVER_PASSED, (key_text(one.definition),))]
    if any(tree.startswith(f"{one.tree} ") for tree in trees):
        return "environment"
    return "files" if trees else ""


def _pass_of(one: Wanted) -> tuple[str, str]:
    return key_text(one.definition), key_text(here(one.tree))


def _storable(wanted: Wanted) -> Wanted:
    words = ("definition", "scope", "tree")
    return variant(wanted, {name: key_text(getattr(wanted, name)) for name in words})


def remember(db: sqlite3.Connection, reports: Sequence[Report], stop: int = 0) -> None:
    """Store the passes among reports, and delete those that failures refute."""
    now = time.time()
    new = [(*map(key_text, known), now, stop) for known in passes_in(reports)]
    db.executemany(_ENTER, new)
    failed = [(*map(key_text, known),) for known in failures_in(reports)]
    db.executemany(_TAKE_BACK, [(gate, f"{tree} ", f"{tree}!") for gate, tree in failed])
    if not new:
        return
    if stop % _BOUNDED_EVERY == 0:
        forget(db, now - _OLDEST)


def remember_start(db: sqlite3.Connection, event: StartEvent, trees: Mapping[str, str]) -> bool:
    """Store the files that an agent starts with, and return True if this is its first start.

    A session starts before everything else in it: a later start can be planted, after edits.
    """
    agent = (key_text(event.host), key_text(event.session_id), key_text(event.agent_id or ""))
    seen: Sequence[str] = (_START_OF, _HAS_STOPPED)
    whose: Sequence[str] = agent
    if not agent[-1]:
        seen, whose = _OF_SESSION, agent[:-1]
    if any(db.execute(known, whose).fetchone() for known in seen):
        return False  # its context was compacted, or it resumed
    now = time.time()
    new = [(*agent, key_text(scope), key_text(tree), now) for scope, tree in trees.items()]
    db.executemany(_NEW_START, new)
    forget(db, now - _OLDEST)
    return True


def forget(db: sqlite3.Connection, cutoff: float) -> None:
    """Delete passes and starts before `cutoff`, and the oldest beyond the maximum."""
    for table, which in (("passes", ""), ("starts", f" AND {_WITHOUT_STOP}")):
        oldest = db.execute(
            f"SELECT at FROM {table} ORDER BY at DESC LIMIT 1 OFFSET ?", (_MOST - 1,)
        ).fetchone()
        before = max(cutoff, oldest[0]) if oldest else cutoff
        db.execute(f"DELETE FROM {table} WHERE at < ?{which}", (before,))
