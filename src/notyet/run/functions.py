"""Call Python functions as gates, in reusable daemon threads, since they may never return.

Not a ThreadPoolExecutor: the interpreter joins its threads at exit, so one hung gate would
hang the whole program; and a bounded pool would fill up with abandoned calls.
"""

from __future__ import annotations

import os
import threading
from _thread import allocate_lock
from contextvars import ContextVar, copy_context
from functools import partial
from queue import SimpleQueue
from time import monotonic

from notyet.core.record import variant
from notyet.core.verdict import Problem, Report
from notyet.errors import attempt
from notyet.run.drive import run_stage_commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Awaitable, Callable
    from typing import Any

    from notyet.core.event import StopEvent
    from notyet.core.verdict import Answer
    from notyet.run.drive import FunctionCall, Stage

    Job = Callable[[], None]
    # Returns, for a stop, a function that makes new arguments for each call.
    Writer = Callable[[StopEvent], Callable[[], tuple[Any, ...]]]
    # Parses what a gate returned: the answer, and a warning for the gate's author.
    Reader = Callable[[object], tuple[Answer, str]]

_MOST_IDLE = 32


class _Worker:
    """A thread that runs jobs; it ends when enough others are idle."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[Job] = SimpleQueue()
        threading.Thread(target=self._work, name="notyet-gate", daemon=True).start()

    def _work(self) -> None:
        while True:
            self.jobs.get()()
            with _lock:
                if len(_idle) >= _MOST_IDLE:
                    return
                _idle.append(self)


_lock = threading.Lock()
_idle: list[_Worker] = []


def run_in_thread(job: Job) -> None:
    """Run a job that never raises in a daemon thread. Raises RuntimeError if there is none left."""
    with _lock:
        worker = _idle.pop() if _idle else None
    if worker is None:
        worker = _Worker()
    # The job sees the caller's context variables, as with asyncio.to_thread.
    worker.jobs.put(partial(copy_context().run, job))


def run_in_thread_or_here(job: Job) -> None:
    """Run a job in a thread; in this one if the system has no thread left."""
    try:
        run_in_thread(job)
    except RuntimeError:
        job()


def call_in_loop(loop: AbstractEventLoop, callback: Callable[..., None], *args: object) -> bool:
    """Call a function in a loop's thread; return False if the loop is closed."""
    try:
        loop.call_soon_threadsafe(callback, *args)
    except RuntimeError:
        return False
    return True


def _forget_in_child() -> None:
    global _lock  # noqa: PLW0603  # a lock another thread held at the fork stays locked for ever
    _lock = threading.Lock()
    _idle.clear()


os.register_at_fork(after_in_child=_forget_in_child)


# Call a Python function as a gate, with a timeout.
#
# `guarded` and `guarded_async` are the only calls into foreign code. They catch everything except
# a KeyboardInterrupt in an event loop's thread, which comes from a person.


_FOREVER = 1e7  # seconds; clocks and locks overflow somewhere above
_COROUTINE = 0x80  # inspect.CO_COROUTINE, without importing inspect


# The engines that run a gate in this context: agents that the gate starts are not gated by them
# again. Set before a gate's task or thread starts, which inherits it.
calling_engines: ContextVar[frozenset[int]] = ContextVar(
    "notyet_calling_engines", default=frozenset()
)


class GateFunction:
    """A gate or observer function; made once, called with new arguments at every stop."""

    __slots__ = ("blank", "call", "engine", "is_async", "name", "read", "timeout", "write")

    def __init__(
        self,
        name: str,
        call: Callable[..., Any],
        read: Reader,
        *,
        timeout: float | None,
        observed: bool = False,
        engine: int = 0,
        write: Writer | None = None,
    ) -> None:
        self.name = name
        self.call = call
        self.write = write  # None if the caller has the arguments
        self.read = read
        self.timeout = timeout if timeout is not None and timeout < _FOREVER else None
        self.blank = Report(gate=name, observed=observed)
        self.is_async = is_async(call)
        self.engine = engine  # 0 for none


def is_async(call: Any) -> bool:
    """Return True if a function, method, partial or callable object returns a coroutine."""
    while type(call).__name__ == "partial":
        call = call.func
    code = getattr(call, "__code__", None) or getattr(type(call).__call__, "__code__", None)
    flags = getattr(code, "co_flags", 0)
    # A mock has every attribute.
    return isinstance(flags, int) and bool(flags & _COROUTINE)


def accepts(call: Any, count: int) -> bool:
    """Return True if a function accepts so many arguments, or hides its signature."""
    import inspect

    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):  # a builtin, or a mock
        return True
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def guarded(function: GateFunction, args: tuple[Any, ...]) -> Report:
    """Call a function in this thread, and return its report whatever it raises."""
    started = monotonic()
    try:
        returned = function.call(*args)
        if hasattr(type(returned), "__await__"):
            returned = _run_coroutine(returned, function.timeout)
    except _TimedOut:
        return _timed_out(function)
    except BaseException as error:  # noqa: BLE001  # foreign code, which may raise SystemExit
        return _report(function, crashed(error), monotonic() - started)
    return _answered(function, returned, started)


async def guarded_async(
    function: GateFunction,
    args: tuple[Any, ...],
    deliver: Callable[[int, Report], None],
    index: int,
    started: float,
) -> None:
    """Call a coroutine function, and deliver its report whatever it raises."""
    try:
        returned = await function.call(*args)
    except KeyboardInterrupt:
        raise  # a person pressed Ctrl-C in the loop's thread
    except BaseException as error:  # foreign code, which may raise SystemExit or CancelledError
        if isinstance(error, GeneratorExit):
            from asyncio import _get_running_loop

            if _get_running_loop() is None:
                raise  # not the gate's: the loop is gone, and the coroutine is collected
        deliver(index, _report(function, crashed(error), monotonic() - started))
    else:
        deliver(index, _answered(function, returned, started))


def _answered(function: GateFunction, returned: object, started: float) -> Report:
    seconds = monotonic() - started
    read, error = attempt(function.read, returned)  # an object's attributes may raise
    if error is not None:
        return _report(function, crashed(error), seconds)
    return _report(function, read[0], seconds, read[1])


def ends_at(function: GateFunction, began: float, deadline: float | None) -> float | None:
    """Return when a gate times out or the deadline is reached; None for never."""
    own = None if function.timeout is None else began + function.timeout
    if own is None or deadline is None:
        return deadline if own is None else own
    return min(own, deadline)


def too_late(function: GateFunction, began: float, deadline: float | None) -> Report:
    """Return the report of a gate that timed out, or reached the host's deadline first."""
    if deadline is not None and ends_at(function, began, deadline) == deadline:
        waited = max(0.0, deadline - began)
        problem = Problem("deadline", f"the host waits no longer than {waited:.1f} s")
        return _report(function, problem, waited)
    return _timed_out(function)


def _timed_out(function: GateFunction) -> Report:
    seconds = function.timeout or 0.0
    return _report(function, Problem("timeout", f"did not finish within {seconds:g} s"), seconds)


def crashed(error: BaseException) -> Problem:
    """Describe an exception in one bounded line."""
    text, _ = attempt(str, error)  # its own __str__ may raise
    words = " ".join((text or "").split())
    name = type(error).__name__
    return Problem("crashed", f"{name}: {words}"[:500] if words else name)


def _report(function: GateFunction, answer: Answer, seconds: float, warning: str = "") -> Report:
    if not warning:
        return variant(function.blank, {"answer": answer, "seconds": seconds})
    return variant(function.blank, {"answer": answer, "seconds": seconds, "warning": warning})


class _TimedOut(Exception):  # noqa: N818  # never leaves this module
    """A coroutine in a thread timed out."""


def _run_coroutine(awaitable: Awaitable[Any], timeout: float | None) -> Any:
    """Run a coroutine on a new event loop, and cancel it after the timeout."""
    import asyncio

    async def wait() -> Any:
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                return await awaitable
        except TimeoutError:
            if limit.expired():
                raise _TimedOut from None
            raise

    return asyncio.run(wait())


# Call functions in threads, so that one that never returns does not block the stop.
#
# Waking a thread takes longer than most functions, so one thread calls one after another. If they
# may run together and some have not been called after a moment, each of those gets its own thread.
# The driving thread only watches the clock.


_LONGEST = 3600.0  # seconds; locks overflow somewhere above
_MOMENT = 0.001  # seconds; much longer than a function that does not wait takes


def run_functions(stage: Stage) -> list[Report]:
    """Run a stage that has functions; abandon those that time out."""
    for function, _ in stage.functions.values():
        stage.report_progress(function.name)
    answered = allocate_lock()  # locked until a report arrives
    answered.acquire()

    def wake() -> None:
        if answered.locked():
            answered.release()

    threads = FunctionThreads(stage, stage.functions, wake)
    told: set[int] = set()

    def meanwhile() -> None:
        if stage.progress is None:
            return
        for index in [index for index in threads.reports if index not in told]:
            told.add(index)
            stage.report_progress(stage.functions[index][0].name, threads.reports[index])

    threads.start()
    reports: dict[int, Report] = {}
    if stage.commands:
        threads.spread()
        reports |= zip(stage.commands, run_stage_commands(stage, meanwhile), strict=True)
    while threads.missing:
        patience = threads.patience()
        answered.acquire(timeout=-1 if patience is None else patience)
        threads.look()
        meanwhile()
    meanwhile()
    reports |= threads.reports
    return [reports[index] for index in sorted(reports)]


class FunctionThreads:
    """Functions of a stage, and the threads that call them.

    `on_report` is called, in any of the threads, when all functions have answered; if the stage
    reports progress, whenever one has.
    """

    def __init__(
        self, stage: Stage, functions: dict[int, FunctionCall], on_report: Callable[[], None]
    ) -> None:
        self.reports: dict[int, Report] = {}
        self.missing = len(functions)
        self._stage = stage
        self._functions = functions
        self._on_report = on_report
        self._waiting = [*functions][::-1]  # the next one is the last
        self._engine = next(iter(functions.values()))[0].engine  # the same for all
        self._begun: dict[int, float] = {}
        self._lock = allocate_lock()
        self._started = monotonic()  # in order: when the next one could start
        self._spreads = self._started + _MOMENT if stage.ends is None else None

    def start(self) -> None:
        """Start a thread that calls functions, with `calling_engines` set to the engine."""
        outside = calling_engines.set(calling_engines.get() | {self._engine})
        try:
            run_in_thread(self._call_in_turn)
        except RuntimeError as error:  # the system has no thread left
            self._fail_waiting(error)
        finally:
            calling_engines.reset(outside)

    def spread(self) -> None:
        """Start a thread for each function that has not been called."""
        self._spreads = None
        for _ in tuple(self._waiting):
            self.start()

    def patience(self) -> float | None:
        """Return the seconds until `look` must be called; None for never."""
        now = monotonic()
        ends = [now + _LONGEST]
        if self._waiting:
            if self._spreads is not None:
                ends.append(self._spreads)
            if self._stage.ends is not None:  # any of them may start while we wait
                ends += [end for index in (*self._waiting,) if (end := self._end(index, now))]
        ends += [end for index in self._called() if (end := self._end(index)) is not None]
        return max(0.0, min(ends) - now) if len(ends) > 1 else None

    def look(self) -> None:
        """Abandon functions that timed out, and start threads for the others if needed."""
        now = monotonic()
        if self._spreads is not None and now >= self._spreads:
            self.spread()
        for index in self._called():
            end = self._end(index)
            if end is None or end > now or not self._take(index, self._late(index)):
                continue
            if self._waiting and self._stage.ends is not None:
                self.start()  # the thread that would call the next one is stuck

    def _called(self) -> list[int]:
        """Return the indexes of functions that run or are due; with `ends`, one at a time."""
        if self._stage.ends is None:
            return [index for index in self._functions if index not in self.reports]
        begun = [index for index in (*self._begun,) if index not in self.reports]
        return begun or [*self._waiting[-1:]]

    def _call_in_turn(self) -> None:
        """Call one function after another, until the threads no longer waits for their reports."""
        while True:
            with self._lock:
                if not self._waiting:
                    return
                index = self._waiting.pop()
                self._begun[index] = monotonic()
            # Each function has its own context.
            report = copy_context().run(guarded, *self._functions[index])
            if not self._take(index, report):
                return

    def _take(self, index: int, report: Report) -> bool:
        """Store a report; return False if the function was abandoned before."""
        with self._lock:
            if index in self.reports:
                return False
            end = self._end(index)
            if end is not None and monotonic() > end:  # a late answer is dropped (A9)
                report = self._late(index)
            self.reports[index] = report
            self.missing -= 1
            if index not in self._begun and index in self._waiting:
                self._waiting.remove(index)  # not called yet, and must not be
            if self._stage.ends is not None:
                self._started = monotonic()
                if self._stage.ends(index, report):
                    self._waiting.clear()
                    self.missing = 0
            if not self.missing or self._stage.progress is not None:
                self._on_report()
        return True

    def _fail_waiting(self, error: RuntimeError) -> None:
        with self._lock:
            indexes = self._waiting[::-1]
            self._waiting.clear()
        for index in indexes:
            if not self.missing:  # one of them ended the stage
                return
            problem = Problem("cannot_start", str(error))
            self._take(index, _report(self._functions[index][0], problem, 0.0))

    def _end(self, index: int, began: float | None = None) -> float | None:
        began = self._begun.get(index, began or self._started)
        return ends_at(self._functions[index][0], began, self._stage.deadline)

    def _late(self, index: int) -> Report:
        began = self._begun.get(index, self._started)
        return too_late(self._functions[index][0], began, self._stage.deadline)
