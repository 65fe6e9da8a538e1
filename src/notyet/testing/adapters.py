"""The conformance suite for adapters: what a framework's gated agents do, with a proof of each.

Its author says in a `Trial` how one agent is run, with a model that follows a script.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import uuid
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from notyet.core.gate import Command, Function, Gate, Starter
from notyet.core.limits import Limits
from notyet.core.verdict import Allow, Block, Decision, Halt
from notyet.engine.engine import Engine
from notyet.errors import LedgerError
from notyet.ledger.memory import MemoryLedger
from notyet.testing.promises import Promises, failure, must, raise_broken, settle, within

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from notyet.core.event import StartEvent, StopEvent

    Answer = Allow | Block | Halt | BaseException

T = TypeVar("T")
_PROMISES = Promises()
_POLL = 0.01  # seconds
_MEETING = 10.0  # seconds in which two runs must come to their gates at the same time
_TIMEOUT = 0.3  # seconds, of a gate that never answers
_LONG = 30.0  # seconds after which what a broken adapter left behind ends by itself
_ERROR = "!The model is out of order."


@dataclass(frozen=True)
class Conversation:
    """What came of one run of an agent."""

    answer: str  # what the caller of the framework got
    seen: tuple[str, ...]  # for each call of the model, all the text that it was given


def adapter_conformance(trial: Any, *, cannot: Mapping[str, str] = {}) -> None:
    """Raise one AssertionError that lists every promise of adapters that this one breaks.

    `trial` has a `name`, and one or both of

        async def run(self, engine, answers, *, session=None) -> Conversation
        def run_sync(self, engine, answers, *, session=None) -> Conversation

    A call is one run of a new agent of the framework, which `engine` gates, in the framework's
    session of that name if there is one. Its model gives the `answers` one after another, and the
    last one again and again; where an answer begins with "!", the model raises a RuntimeError.
    `cannot` names promises that the framework makes impossible, each with the reason; one that is
    kept all the same is reported, too. Everything is called in threads, while these run.
    """
    ways = [name for name in ("run", "run_sync") if hasattr(trial, name)]
    if not ways:
        raise TypeError(f"{type(trial).__name__} has neither `run` nor `run_sync`")
    if unknown := set(cannot) - {promise.name for promise in _PROMISES}:
        known = ", ".join(promise.name for promise in _PROMISES)
        raise ValueError(f"no promise is called {', '.join(sorted(unknown))}; there are: {known}")
    failures: dict[str, str] = {}
    for name, says, needs, proof in _PROMISES:
        tried = {way: failure(proof, _Runs(trial, way)) for way in ways if needs in ("", way)}
        if name not in cannot:
            failures |= {f"{name}: {says} ({way})": failed for way, failed in tried.items()}
        elif tried:
            is_kept = not any(tried.values())
            failures[f"{name}: {says}"] = f"it is kept, not: {cannot[name]}" if is_kept else ""
    raise_broken(f"the adapter for {trial.name}", failures)


class _Runs:
    """Runs agents of a trial in one of its two ways."""

    def __init__(self, trial: Any, way: str) -> None:
        self._run = getattr(trial, way)
        self._is_async = way == "run"

    async def __call__(
        self, engine: Engine, *answers: str, session: str | None = None
    ) -> Conversation:
        if self._is_async:
            came = await self._run(engine, answers, session=session)
        else:
            came = await _in_thread(partial(self._run, engine, answers, session=session))
        must(isinstance(came, Conversation), f"a run returned {came!r:.200}, no Conversation")
        conversation: Conversation = came
        return conversation


class _Watched:
    """An engine with one gate, which gives these answers in turn, the last one again and again."""

    def __init__(self, *answers: Answer, max_blocks: int = 3, **options: Any) -> None:
        self._answers = answers
        self.events: list[StopEvent] = []
        self.decisions: list[tuple[StopEvent, Decision]] = []
        self.warnings: list[str] = []
        self.engine = Engine(
            [self._gate],
            limits=Limits(max_blocks=max_blocks, stuck_after=0),
            warn=self.warnings.append,
            **options,
        )
        self.engine.on("decision", lambda event, decision: self.decisions.append((event, decision)))

    def _gate(self, event: StopEvent) -> Allow | Block | Halt:
        self.events.append(event)
        answer = self._answers[min(len(self.events), len(self._answers)) - 1]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def outcomes(self, session: str | None = None) -> list[str]:
        """Return how the stops ended, of all sessions or one."""
        return [d.outcome for e, d in self.decisions if session in (None, e.session_id)]

    def must_end(self, *outcomes: str) -> None:
        """Fail unless the stops ended like this."""
        ended = ", ".join(self.outcomes()) or "nothing"
        warned = f"; the first warning was: {self.warnings[0]}" if self.warnings else ""
        must(
            self.outcomes() == [*outcomes],
            f"its stops ended as {ended}, not as {', '.join(outcomes)}{warned}",
        )


@_PROMISES.add("an agent whose gate passes ends after one call of the model", name="pass")
async def _passes(run: _Runs) -> None:
    watched = _Watched(Allow())
    came = await run(watched.engine, "First answer.")
    watched.must_end("passed")
    _must_answer(came, "First answer.", calls=1)


@_PROMISES.add("a blocked agent goes on with the reason, with its whole history", name="send-back")
async def _sends_back(run: _Runs) -> None:
    watched = _Watched(Block("First reason."), Block("Second reason."), Allow())
    came = await run(watched.engine, "First answer.", "Second answer.", "Third answer.")
    watched.must_end("blocked", "blocked", "passed")
    _must_answer(came, "Third answer.", calls=3)
    said = ["First answer.", "First reason.", "Second answer.", "Second reason."]
    for number, text in enumerate(came.seen):
        lost = [line for line in came.seen[0].splitlines() if line not in text]
        must(not lost, f"call {number + 1} of its model lacks what the first one was given: {lost}")
        expected = said[: 2 * number]
        missing = [words for words in expected if words not in text]
        must(not missing, f"call {number + 1} of its model lacks {missing}")
        places = [text.rindex(words) for words in expected]
        must(places == sorted(places), f"call {number + 1} of its model has them in another order")


@_PROMISES.add("an agent that is always blocked ends at the limit, as capped", name="limit")
async def _is_limited(run: _Runs) -> None:
    watched = _Watched(Block("Never."), max_blocks=2)
    came = await run(watched.engine, "First answer.", "Second answer.", "Third answer.", "Fourth.")
    watched.must_end("blocked", "blocked", "capped")
    _must_answer(came, "Third answer.", calls=3)


@_PROMISES.add("a gate that halts ends the run", name="halt")
async def _is_halted(run: _Runs) -> None:
    watched = _Watched(Block("Go on."), Halt("It is enough."))
    came = await run(watched.engine, "First answer.", "Second answer.", "Third answer.")
    watched.must_end("blocked", "halted")
    _must_answer(came, "Second answer.", calls=2)


@_PROMISES.add("what a gate raises never reaches the framework", name="broken gate")
async def _survives_gates(run: _Runs) -> None:
    for error in (RuntimeError("a fault of the gate"), SystemExit(3)):
        watched = _Watched(Block("Go on."), error)
        came = await run(watched.engine, "First answer.", "Second answer.")
        watched.must_end("blocked", "failed_open")
        _must_answer(came, "Second answer.", calls=2)


@_PROMISES.add("a gate that never answers ends by its timeout", name="slow gate")
async def _outlives_gates(run: _Runs) -> None:
    for make in (_blocking, _waiting):
        watched = _Watched(Allow())
        with make() as gate:
            engine = Engine([Gate(name="slow", check=Function(gate), timeout=_TIMEOUT)])
            engine.on("decision", lambda event, made, w=watched: w.decisions.append((event, made)))
            came = await within("the run", run(engine, "First answer."))
        watched.must_end("failed_open")
        _must_answer(came, "First answer.", calls=1)


@_PROMISES.add("what a ledger raises never reaches the framework", name="broken ledger")
async def _survives_ledgers(run: _Runs) -> None:
    for method in ("begin", "record"):
        for error in (
            LedgerError("ledger.db", "the disk is full"),
            OSError("a fault of the ledger"),
        ):
            watched = _Watched(Block("Go on."), ledger=_broken_ledger(method, error))
            came = await run(watched.engine, "First answer.", "Second answer.")
            _must_answer(came, "First answer.", calls=1)
            must(watched.warnings, f"there was no warning that the ledger failed: {error}")


@_PROMISES.add("an event says who stops, with which answer, and how often before", name="events")
async def _describes(run: _Runs) -> None:
    watched = _Watched(Block("Go on."), Allow(), max_blocks=2)
    await run(watched.engine, "First answer.", "Second answer.")
    watched.must_end("blocked", "passed")
    first, second = watched.events
    for name, values in {
        "last_message": ("First answer.", "Second answer."),
        "stop_hook_active": (False, True),
        "block_count": (0, 1),
        "max_blocks": (2, 2),
        "scope": ("agent", "agent"),
        "ending": ("done", "done"),
    }.items():
        found = getattr(first, name), getattr(second, name)
        must(found == values, f"{name} was {found[0]!r}, then {found[1]!r}; not {values}")
    for name in ("host", "session_id", "cwd"):
        found = getattr(first, name), getattr(second, name)
        must(found[0] and found[0] == found[1], f"{name} was {found[0]!r}, then {found[1]!r}")


@_PROMISES.add("figures are those since the last send-back, totals those of the run", name="usage")
async def _counts(run: _Runs) -> None:
    watched = _Watched(Block("Go on."), Block("Go on again."), Allow())
    await run(watched.engine, "First answer.", "Second answer.", "Third answer.")
    watched.must_end("blocked", "blocked", "passed")
    for name, known in (("turns", 1), ("tool_calls", 0), ("tools_used", ())):
        found = [getattr(event, name) for event in watched.events]
        must(found in ([None] * 3, [known] * 3), f"{name} was {found}, not {[known] * 3}")
    spent = [event.usage for event in watched.events]
    totals = [event.total_usage for event in watched.events]
    must(len({usage is None for usage in (*spent, *totals)}) == 1, "usage is known now and then")
    sum_of = 0
    for usage, total in zip(spent, totals, strict=True):
        if usage is not None and total is not None:
            sum_of += usage.total
            must(usage.total > 0, "a call of the model was for nothing")
            must(total.total == sum_of, f"total_usage is {total.total}, and usage adds to {sum_of}")
    lasted = [event.duration_ms for event in watched.events]
    must(None not in lasted, f"duration_ms was {lasted}")


@_PROMISES.add("events have the framework's session; without one, each run its own", name="session")
async def _has_sessions(run: _Runs) -> None:
    watched, own = _Watched(Allow()), _new_session()
    for session in (own, None, None):
        await run(watched.engine, "First answer.", session=session)
    watched.must_end("passed", "passed", "passed")
    named, *others = (event.session_id for event in watched.events)
    must(named == own, f"the session was {named!r}, not {own!r}")
    must(len({named, *others}) == len(watched.events), f"others had these sessions: {others}")


@_PROMISES.add("a run is one turn, and the next one has a fresh budget", name="turns")
async def _has_turns(run: _Runs) -> None:
    watched = _Watched(Block("Never."), max_blocks=1)
    session = _new_session()
    for _ in range(2):
        await run(watched.engine, "First answer.", "Second answer.", session=session)
    watched.must_end("blocked", "capped", "blocked", "capped")
    turns = [event.turn_id for event in watched.events]
    must(all(turns), f"turn_id was {turns}")
    must(turns[0] == turns[1] and turns[2] == turns[3], f"the turn changed within a run: {turns}")
    must(turns[0] != turns[2], "two runs were one turn")


@_PROMISES.add("two runs at the same time have counters and histories of their own", name="two")
async def _keeps_apart(run: _Runs) -> None:
    both = threading.Barrier(2)

    class Meeting(_Watched):
        def _gate(self, event: StopEvent) -> Allow | Block | Halt:
            both.wait(_MEETING)
            is_last = event.block_count == event.max_blocks
            return Allow() if is_last else Block(f"Not {event.last_message}")

    watched = Meeting(max_blocks=2)
    texts = [[f"{who} {number}." for number in (1, 2, 3)] for who in ("One", "Two")]
    came = await asyncio.gather(*(run(watched.engine, *answers) for answers in texts))
    must(not both.broken, "one run did not come to its gate while the other was in it")
    sessions = {event.session_id for event, _ in watched.decisions}
    must(len(sessions) == len(texts), f"two runs had {len(sessions)} sessions")
    for session in sessions:
        ended = watched.outcomes(session)
        must(ended == ["blocked", "blocked", "passed"], f"the stops of one run ended as {ended}")
    for conversation, answers, others in zip(came, texts, reversed(texts), strict=True):
        _must_answer(conversation, answers[-1], calls=3)
        text = "\n".join(conversation.seen)
        must(not any(words in text for words in others), "one agent saw what the other one said")


@_PROMISES.add("an error of the model is no stop, and is raised as without gates", name="errors")
async def _passes_errors_on(run: _Runs) -> None:
    for blocks, answers in ((0, [_ERROR]), (1, ["First answer.", _ERROR])):
        watched = _Watched(Block("Go on."), Allow())
        bare = await _ending(run(Engine(), _ERROR))
        gated = await _ending(run(watched.engine, *answers))
        must(gated == bare, f"without gates it {bare}, with gates it {gated}")
        stops = len(watched.events)
        must(stops == blocks, f"{stops} stops were gated as done, not {blocks}")


@_PROMISES.add("words of a starter are in the first request of the model", name="start words")
async def _starts(run: _Runs) -> None:
    started: list[StartEvent] = []

    def words(event: StartEvent) -> str:
        started.append(event)
        return "Words of a starter."

    starter = Starter(name="words", check=Function(words))
    watched = _Watched(Block("Go on."), Allow(), starters=[starter])
    came = await run(watched.engine, "First answer.", "Second answer.")
    _must_answer(came, "Second answer.", calls=2)
    must(len(started) == 1, f"the starter ran {len(started)} times in one run")
    same = started[0].session_id == watched.events[0].session_id
    must(same, "the session that started is not the one that stopped")
    must("Words of a starter." in came.seen[0], "the model was not given them")


@_PROMISES.add("cancelling a run ends a gate that is a coroutine", name="cancel", needs="run")
async def _cancels(run: _Runs) -> None:
    begun, ended = threading.Event(), threading.Event()

    async def gate(_event: StopEvent) -> None:
        begun.set()
        try:
            await asyncio.sleep(_LONG)
        finally:
            ended.set()

    await _cancelled(run(Engine([gate]), "First answer."), begun.is_set)
    await _until(ended.is_set, "the gate still runs")


@_PROMISES.add("cancelling a run ends the command of a gate", name="cancel command", needs="run")
async def _cancels_commands(run: _Runs) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "pid")
        script = f'echo $$ > "$PID_FILE.part"; mv "$PID_FILE.part" "$PID_FILE"; exec sleep {_LONG}'
        check = Command(script=script, env=(("PID_FILE", str(path)),))
        engine = Engine([Gate(name="command", check=check)])
        await _cancelled(run(engine, "First answer."), path.exists)
        pid = int(path.read_text(encoding="ascii"))  # noqa: ASYNC240  # a line
        await _until(lambda: _is_gone(pid), f"its process {pid} still runs")


@_PROMISES.add("an event loop can end while a gate runs", name="ending loop", needs="run")
async def _leaves(run: _Runs) -> None:
    for make in (_blocking, _waiting):
        begun = threading.Event()
        with make(begun) as gate:
            await within("the loop", _in_thread(partial(_leave, run, Engine([gate]), begun)))
        must(begun.is_set(), "the run ended without its gate")


def _leave(run: _Runs, engine: Engine, begun: threading.Event) -> None:
    """Run an agent in a new event loop, which ends as soon as the gate has begun."""

    async def main() -> None:
        running = asyncio.ensure_future(run(engine, "First answer."))
        await _until(lambda: begun.is_set() or running.done(), "no gate ran")

    asyncio.run(main())


def _new_session() -> str:
    return str(uuid.uuid4())  # as some frameworks want it


def _must_answer(came: Conversation, answer: str, *, calls: int) -> None:
    """Fail unless a run ended with this answer, after so many calls of the model."""
    made = len(came.seen)
    must(made == calls, f"its model was called {made} times, not {calls}")
    must(came.answer.strip() == answer, f"its answer is {came.answer[:200]!r}, not {answer!r}")


async def _ending(running: Awaitable[Conversation]) -> str:
    """Return how a run ended, in words."""
    try:
        came = await running
    except Exception as error:  # noqa: BLE001  # whatever the framework makes of it
        return f"raised {type(error).__name__}"
    return f"answered {came.answer!r}"


async def _cancelled(running: Awaitable[Conversation], is_gating: Callable[[], bool]) -> None:
    """Cancel a run as soon as it is in its gate."""
    task = asyncio.ensure_future(running)
    await _until(lambda: is_gating() or task.done(), "its gate did not begin")
    must(not task.done(), "it ended without waiting for its gate")
    task.cancel()
    await settle(task)
    must(task.done(), "it did not end when it was cancelled")
    must(task.cancelled(), "it did not pass on that it was cancelled")


async def _until(is_so: Callable[[], bool], otherwise: str) -> None:
    """Wait until something is so, but not for long."""

    async def poll() -> None:
        while not is_so():  # noqa: ASYNC110  # another thread may make it so
            await asyncio.sleep(_POLL)

    try:
        await within("", poll())
    except AssertionError:
        raise AssertionError(otherwise) from None


async def _in_thread(call: Callable[[], T]) -> T:
    """Wait for a call in a daemon thread: one that never returns must not keep the program."""
    future: Future[T] = Future()

    def work() -> None:
        try:
            returned = call()
        except BaseException as error:  # noqa: BLE001  # carried over to the caller's thread
            future.set_exception(error)
        else:
            future.set_result(returned)

    future.set_running_or_notify_cancel()
    threading.Thread(target=work, daemon=True).start()
    return await asyncio.wrap_future(future)


@contextmanager
def _blocking(begun: threading.Event | None = None) -> Iterator[Callable[..., Any]]:
    """Give a gate that blocks its thread until the end."""
    end = threading.Event()

    def gate(_event: StopEvent) -> None:
        if begun:
            begun.set()
        end.wait(_LONG)

    try:
        yield gate
    finally:
        end.set()


@contextmanager
def _waiting(begun: threading.Event | None = None) -> Iterator[Callable[..., Any]]:
    """Give a gate that waits on its event loop."""

    async def gate(_event: StopEvent) -> None:
        if begun:
            begun.set()
        await asyncio.sleep(_LONG)

    yield gate


def _broken_ledger(method: str, error: Exception) -> MemoryLedger:
    """Return a ledger of which a method raises."""

    def fail(*_: Any, **__: Any) -> Any:
        raise error

    ledger = MemoryLedger()
    setattr(ledger, method, fail)
    return ledger


def _is_gone(pid: int) -> bool:
    with suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
    return False
