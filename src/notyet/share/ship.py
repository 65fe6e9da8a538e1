"""`ship`: copy finished stops to where they are shared, once each, whatever breaks on the way.

A watermark says up to which stop they were copied; the few below it that may still change are
looked at again. It is written after the copy, so that a crash in between copies stops twice, which
is the same as once. Two files beside the ledger: `.ship` is locked by the process that copies, and
its time says when one was started; `.shipped` has the watermarks.
"""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import re
import time
import uuid
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Protocol

from notyet.config.compiled import write_private
from notyet.errors import LedgerError, NotyetError
from notyet.ledger.connection import SHIP_STAMP, SHIP_STATE
from notyet.ledger.past_stops import WHOLE_REPORTS, StopFilter, next_look, read_in
from notyet.run.proc import own_machine
from notyet.share import Unreachable
from notyet.share.rows import Projects, digest, rows_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import Any

    from notyet.ledger.ledger import Ledger
    from notyet.ledger.past_stops import PastStop
    from notyet.share.settings import Share

_AT_ONCE = 200  # stops in one message
_MOST_OPEN = 500  # decided stops below a watermark that are looked at again, the newest
_PAUSE = 0.2  # seconds between two tries
_USER = re.compile(r"//[^/?]*@")
_NEWEST = "SELECT max(id) FROM stops"
_OLDEST = "SELECT id, token FROM stops ORDER BY id LIMIT 1"
_TOKEN = "SELECT token FROM stops WHERE id = ?"  # noqa: S105  # a statement


class Target(Protocol):
    """Somewhere that stops are copied to."""

    def send(
        self, origin: Origin, stops: Sequence[PastStop], mark: Mark, copied: Collection[str]
    ) -> Mark:
        """Copy stops; some were `copied` with another outcome. Raises NotyetError."""

    def finish(self, origin: Origin, mark: Mark) -> Mark:
        """Copy what else there is, after the last stop. Raises NotyetError."""

    def close(self) -> None:
        """Close connections."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where stops come from: one ledger of a user on a machine."""

    id: str  # a UUID that only this ledger knows
    who: str
    machine: str


@dataclass(frozen=True, kw_only=True)
class Mark:
    """How far stops were copied to one place."""

    at: int = 0
    open: dict[str, str] = field(default_factory=dict)  # stop -> the outcome that was copied
    shipped: float = 0.0  # grows with every copy
    more: dict[str, Any] = field(default_factory=dict)  # what else a target keeps


@dataclass(frozen=True, kw_only=True)
class State:
    """What is remembered between two runs."""

    origin: str = ""
    machine: str = ""
    newest: int = 0  # a stop, by which the ledger is known again
    token: str = ""
    marks: dict[str, Mark] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)  # of the last run, for `notyet status`
    failing_since: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Shipped:
    """How many stops one run copied, to each place; None if another process was at work."""

    counts: dict[str, int] | None
    faults: tuple[str, ...] = ()


def ship(ledger: Ledger, share: Share, wait: float = 0.0, *, again: bool = False) -> Shipped:
    """Copy what is new. With `wait`, try for so many seconds where something is in the way.

    With `again`, all stops of the ledger are copied to PostgreSQL. Raises LedgerError.
    """
    ends = time.monotonic() + wait
    if "://" in ledger.path:
        raise LedgerError(ledger.path, "only a file can be shared; set NOTYET_LEDGER to one")
    ledger.connection.read(lambda _: None)  # before any file is made beside it
    with _locked(ledger.path + SHIP_STAMP, ends) as is_ours:
        if not is_ours:
            return Shipped(counts=None)
        counts: dict[str, int] = {}
        faults = []
        for name in ("to", "otel"):
            if getattr(share, name):
                try:
                    counts[name] = _copy(ledger, share, name, ends, again=again and name == "to")
                except NotyetError as error:
                    faults.append(_said(error))
        _note_faults(ledger.path + SHIP_STATE, faults)
        return Shipped(counts=counts, faults=tuple(faults))


def _said(error: NotyetError) -> str:
    return f"{error.path}: {error.detail}" if isinstance(error, LedgerError) else str(error)


@contextmanager
def _locked(path: str, ends: float) -> Iterator[bool]:
    """Lock a file for this process; give False if another one has it until the time is up."""
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= ends:
                    yield False
                    return
                time.sleep(_PAUSE)
            else:
                os.utime(descriptor)
                yield True
                return
    finally:
        os.close(descriptor)


def _copy(ledger: Ledger, share: Share, name: str, ends: float, *, again: bool) -> int:
    """Copy all new stops to one place; return how many. Raises NotyetError."""
    path = ledger.path + SHIP_STATE
    state = _known(ledger, _read(path))
    if not state.origin:  # there are no stops
        return 0
    origin = Origin(id=state.origin, who=_user(), machine=os.uname().nodename)
    target = _target(share, name, ledger)
    # Another place gets all stops from the first on; another password is the same place.
    key = f"{name} {digest(_USER.sub('//', getattr(share, name)))}"
    if again:  # under the same origin, so that what is there stays one row
        known = state.marks.get(key, Mark())
        state = replace(state, marks={**state.marks, key: Mark(shipped=known.shipped)})
    count = 0
    try:
        while True:
            mark = state.marks.get(key, Mark())
            stops, after, is_all = _new(ledger, mark)
            copied = {number for number, outcome in mark.open.items() if outcome != "asking"}
            try:
                for some in _parts(ledger, stops, whole=share.words):
                    after = target.send(origin, some, after, copied)
                after = target.finish(origin, after) if is_all else after
            except Unreachable:
                if time.monotonic() >= ends:
                    raise
                time.sleep(_PAUSE)
                continue
            count += len(stops)
            if after != mark:
                state = _with_mark(ledger, state, key, after)
                _write(path, state)
            if is_all:
                return count
    finally:
        target.close()


def _target(share: Share, name: str, ledger: Ledger) -> Target:
    if name == "to":
        return _Team(share)
    from notyet.share.otel import Receiver

    return Receiver(share, ledger)


class _Team:
    """The team's tables, as a target."""

    def __init__(self, share: Share) -> None:
        from notyet.share.team import Team

        self._team = Team(share.to)
        self._words = share.words
        self._projects = Projects()

    def send(
        self,
        origin: Origin,
        stops: Sequence[PastStop],
        mark: Mark,
        copied: Collection[str],  # noqa: ARG002  # a row replaces the one before
    ) -> Mark:
        shipped = max(time.time(), mark.shipped + 0.001)  # also after the clock was set back
        rows = rows_of(stops, self._projects, words=self._words)
        self._team.send((origin.id, origin.who, origin.machine), shipped, *rows)
        return replace(mark, shipped=shipped)

    def finish(self, origin: Origin, mark: Mark) -> Mark:  # noqa: ARG002  # stops are all
        return mark

    def close(self) -> None:
        self._team.close()


# What is new.


def _new(ledger: Ledger, mark: Mark) -> tuple[list[PastStop], Mark, bool]:
    """Return the stops to copy, the mark after that, and whether these are all."""
    news = next_look(ledger, StopFilter(most=-1), [int(number) for number in mark.open], mark.at)
    seen = (*news.watched, *news.fresh)
    stops = [
        past for past in seen if past.outcome not in {"asking", mark.open.get(str(past.id), "")}
    ]
    may_change = [past for past in seen if past.may_change]
    asking = [past for past in may_change if past.outcome == "asking"]
    decided = [past for past in may_change if past.outcome != "asking"][-_MOST_OPEN:]
    outcomes = {str(past.id): past.outcome for past in (*asking, *decided)}
    after = replace(mark, at=max(mark.at, news.newest), open=outcomes)
    return stops, after, news.is_all


def _parts(
    ledger: Ledger, stops: Sequence[PastStop], *, whole: bool
) -> Iterator[Sequence[PastStop]]:
    for at in range(0, len(stops), _AT_ONCE):
        some = stops[at : at + _AT_ONCE]
        if whole:  # with what gates printed
            numbers = [past.id for past in some]
            read = partial(read_in, ids=numbers, reports=WHOLE_REPORTS)
            some = ledger.connection.read(read)
        yield some


# What is remembered.


def _read(path: str) -> State:
    """Return what the last run left; nothing if that cannot be read: all is copied again then."""
    try:
        with open(path, encoding="utf-8") as file:
            known = json.load(file)
        marks = {name: Mark(**mark) for name, mark in known.pop("marks").items()}
        return State(**known, marks=marks)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return State()


def _known(ledger: Ledger, state: State) -> State:
    """Return a state that fits the ledger, with an origin; one without if there are no stops.

    The numbers of a ledger that was replaced begin anew, so it is another origin. On another
    machine, only what is new there is copied: a home can be moved, or cloned.
    """

    def look(db: Any) -> tuple[Any, ...]:
        token = db.execute(_TOKEN, (state.newest,)).fetchone()
        return db.execute(_NEWEST).fetchone()[0], db.execute(_OLDEST).fetchone(), token

    newest, oldest, token = ledger.connection.read(look)
    if not newest:
        return replace(state, origin="")
    is_replaced = newest < state.newest or (token and bytes(token[0]).hex() != state.token)
    is_here = state.machine == own_machine()
    if state.origin and is_here and not is_replaced:
        return state
    secret = f"{own_machine()} {os.getuid()}".encode() + bytes(oldest[1])
    new = uuid.UUID(bytes=blake2b(secret, digest_size=16).digest())
    kept = {} if is_replaced or not state.origin else state.marks
    kept = {name: replace(mark, open={}) for name, mark in kept.items()}
    return replace(state, origin=str(new), machine=own_machine(), marks=kept)


def _note_faults(path: str, faults: list[str]) -> None:
    """Remember what went wrong: who starts a shipper does not read what it prints."""
    state = _read(path)
    if faults != state.faults:
        since = (state.failing_since or time.time()) if faults else 0.0
        _write(path, replace(state, faults=faults, failing_since=since))


def _write(path: str, state: State) -> None:
    write_private(path, json.dumps(asdict(state)))


def _with_mark(ledger: Ledger, state: State, key: str, mark: Mark) -> State:
    token = ledger.connection.read(lambda db: db.execute(_TOKEN, (mark.at,)).fetchone())
    if token and mark.at >= state.newest:
        state = replace(state, newest=mark.at, token=bytes(token[0]).hex())
    return replace(state, marks={**state.marks, key: mark})


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())
