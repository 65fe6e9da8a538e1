"""Checking a contract promise by promise, so that one look shows all that is broken."""

from __future__ import annotations

import threading
import time

from notyet.core.record import Record
from notyet.core.text import bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeVar

    T = TypeVar("T")
    Keeps = TypeVar("Keeps", bound=Callable[..., Any])

_LONGEST = 300  # characters of a value in a message
TIME_LIMIT = 60.0  # seconds for one promise: what hangs must not hang its author's tests


class Promise(Record):
    """One sentence of a contract, and the function that raises AssertionError if it is broken."""

    says: str
    keeps: Callable[..., Any]  # may be a coroutine function


def into(promises: list[Promise]) -> Callable[[str], Callable[[Keeps], Keeps]]:
    """Return a decorator that enters a function as the proof of a sentence."""

    def promise(says: str) -> Callable[[Keeps], Keeps]:
        def enter(keeps: Keeps) -> Keeps:
            promises.append(Promise(says, keeps))
            return keeps

        return enter

    return promise


def expect(what: str, got: object, wanted: object) -> None:
    """Raise AssertionError, which also tells under `python -O`."""
    if got == wanted:
        return
    if isinstance(got, Record) and type(got) is type(wanted):
        mine, theirs = vars(got), vars(wanted)  # of a long record, only what differs
        got = {name: mine[name] for name in mine if mine[name] != theirs[name]}
        wanted = {name: theirs[name] for name in got}
    raise AssertionError(f"{what}: {_shown(got)}, not {_shown(wanted)}")


def must(is_kept: object, otherwise: str) -> None:
    """Raise AssertionError with a sentence about what is wrong, unless it is not."""
    if not is_kept:
        raise AssertionError(otherwise)


def check_all(what: str, proofs: Iterable[tuple[str, Callable[[], None]]]) -> None:
    """Try every proof, each in a thread of its own; raise one error that lists what is broken."""
    broken, tried = [], 0
    for says, proof in proofs:
        tried += 1
        failure = _failure(proof)
        if failure:
            broken.append(f"- {says}: {failure}")
    if broken:
        listed = "\n".join(broken)
        raise AssertionError(f"{what} breaks {len(broken)} of {tried} promises:\n{listed}")


def _failure(proof: Callable[[], None]) -> str:
    raised: list[BaseException] = []

    def attempt() -> None:
        try:
            proof()
        except BaseException as error:  # noqa: BLE001  # carried over to the caller's thread
            raised.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(TIME_LIMIT)
    if thread.is_alive():
        return f"it did not come back within {TIME_LIMIT:g} s"
    if not raised:
        return ""
    (error,) = raised
    if isinstance(error, AssertionError):
        return _line(error) or "an assertion failed"
    if not isinstance(error, Exception):
        raise error  # a test framework's own, such as a skip
    says = _line(error)
    return f"it raised {type(error).__name__}" + (f": {says}" if says else ", which says no more")


def _shown(value: object) -> str:
    return bounded(repr(value), _LONGEST)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def at_once(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Start all jobs together in threads; return their results in order, or raise an error."""
    together = threading.Barrier(len(jobs))
    results: dict[int, T] = {}
    raised: list[BaseException] = []

    def work(number: int, job: Callable[[], T]) -> None:
        together.wait()
        try:
            results[number] = job()
        except BaseException as error:  # noqa: BLE001  # carried over to the caller's thread
            raised.append(error)

    threads = [
        threading.Thread(target=work, args=numbered, daemon=True) for numbered in enumerate(jobs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]
    return [results[number] for number in range(len(jobs))]


def later(call: Callable[..., T], *args: Any) -> Callable[[], T]:
    """Return a job that gives the others a moment to begin waiting."""

    def job() -> T:
        time.sleep(0.05)
        return call(*args)

    return job
