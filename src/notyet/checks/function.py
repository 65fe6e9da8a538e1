"""Calling a Python function as a gate: guarded, timed, and never trusted to come back.

`guarded` and `guarded_async` are the only calls into foreign code. They let nothing through but
a KeyboardInterrupt in the thread of somebody's event loop, which is a person's.
"""

from __future__ import annotations

from contextvars import ContextVar
from time import monotonic

from notyet.core.record import variant
from notyet.core.verdict import Problem, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from notyet.core.event import StopEvent
    from notyet.core.verdict import Answer

    # Turns a stop into what gives the arguments of a call, anew for each.
    Writer = Callable[[StopEvent], Callable[[], tuple[Any, ...]]]
    # Turns what foreign code returned into an answer and a warning for its author.
    Reader = Callable[[object], tuple[Answer, str]]

_FOREVER = 1e7  # seconds; clocks and locks overflow somewhere above
_COROUTINE = 0x80  # inspect.CO_COROUTINE, without importing inspect


# The engines that are asking here: what a gate itself starts is not gated by them again. Set by
# whoever starts a gate's task or thread, which inherits it.
asked_by: ContextVar[frozenset[int]] = ContextVar("notyet_asked_by", default=frozenset())


class Question:
    """How one gate or observer is asked; made once, and asked with new arguments at every stop."""

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
        self.write = write  # None where whoever asks has the arguments
        self.read = read
        self.timeout = timeout if timeout is not None and timeout < _FOREVER else None
        self.blank = Report(gate=name, observed=observed)
        self.is_async = is_async(call)
        self.engine = engine  # whose gate it is; 0 for nobody's


def is_async(call: Any) -> bool:
    """Tell whether calling this gives a coroutine: functions, methods, partials, objects."""
    while type(call).__name__ == "partial":
        call = call.func
    code = getattr(call, "__code__", None) or getattr(type(call).__call__, "__code__", None)
    flags = getattr(code, "co_flags", 0)
    # A mock makes up any attribute that it is asked for.
    return isinstance(flags, int) and bool(flags & _COROUTINE)


def takes(call: Any, count: int) -> bool:
    """Tell whether a function can be called with so many arguments, as far as can be seen."""
    import inspect

    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):  # a builtin, or a mock, that does not tell
        return True
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def guarded(question: Question, args: tuple[Any, ...]) -> Report:
    """Ask a question in this thread, whatever the function does."""
    started = monotonic()
    try:
        returned = question.call(*args)
        if hasattr(type(returned), "__await__"):
            returned = _finish(returned, question.timeout)
    except _TooLate:
        return timed_out(question)
    except BaseException as error:  # noqa: BLE001  # foreign code: SystemExit too is only its own
        return _report(question, crashed(error), monotonic() - started)
    return _answered(question, returned, started)


async def guarded_async(
    question: Question,
    args: tuple[Any, ...],
    deliver: Callable[[int, Report], None],
    place: int,
    started: float,
) -> None:
    """Ask a question whose function is a coroutine function, and deliver the report."""
    try:
        returned = await question.call(*args)
    except KeyboardInterrupt:
        raise  # a person pressed Ctrl-C in the loop's thread
    except BaseException as error:  # as above; CancelledError is the gate's own
        if isinstance(error, GeneratorExit) and not _in_a_task():
            raise  # not the gate's: the loop is gone, and we are being cleared away
        deliver(place, _report(question, crashed(error), monotonic() - started))
    else:
        deliver(place, _answered(question, returned, started))


def _answered(question: Question, returned: object, started: float) -> Report:
    seconds = monotonic() - started
    try:
        answer, warning = question.read(returned)
    except Exception as error:  # noqa: BLE001  # a foreign object that cannot even be looked at
        answer, warning = crashed(error), ""
    return _report(question, answer, seconds, warning)


def timed_out(question: Question) -> Report:
    """Write down that a gate gave no answer in time."""
    seconds = question.timeout or 0.0
    return _report(question, Problem("timeout", f"no answer after {seconds:g} s"), seconds)


def out_of_time(question: Question, seconds: float) -> Report:
    """Write down that the host waits no longer, whatever the gate may take."""
    waited = max(0.0, seconds)
    problem = Problem("deadline", f"the host waits no longer than {waited:.1f} s")
    return _report(question, problem, waited)


def ends_at(question: Question, began: float, deadline: float | None) -> float | None:
    """Return when a gate's own time, or the host's, is up; None when it may take for ever."""
    own = None if question.timeout is None else began + question.timeout
    if own is None or deadline is None:
        return deadline if own is None else own
    return min(own, deadline)


def too_late(question: Question, began: float, deadline: float | None) -> Report:
    """Write down that it was up."""
    if deadline is not None and ends_at(question, began, deadline) == deadline:
        return out_of_time(question, deadline - began)
    return timed_out(question)


def cannot_start(question: Question, error: BaseException) -> Report:
    """Write down that there was no thread to ask a gate in."""
    return _report(question, Problem("cannot_start", str(error)), 0.0)


def crashed(error: BaseException) -> Problem:
    """Describe an exception in one bounded line."""
    words = " ".join(_words_of(error).split())
    name = type(error).__name__
    return Problem("crashed", f"{name}: {words}"[:500] if words else name)


def _report(question: Question, answer: Answer, seconds: float, warning: str = "") -> Report:
    if not warning:
        return variant(question.blank, {"answer": answer, "seconds": seconds})
    return variant(question.blank, {"answer": answer, "seconds": seconds, "warning": warning})


def _words_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # an exception whose own __str__ raises
        return ""


def _in_a_task() -> bool:
    import asyncio

    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False


class _TooLate(Exception):  # noqa: N818  # never leaves this module
    """A coroutine that was run in a thread took too long."""


def _finish(awaitable: Awaitable[Any], timeout: float | None) -> Any:
    """Run a coroutine to its end on a loop of its own, and cancel it when its time is up."""
    import asyncio

    async def wait() -> Any:
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                return await awaitable
        except TimeoutError:
            if limit.expired():
                raise _TooLate from None
            raise

    return asyncio.run(wait())
