"""Promises of an interface that others implement: each is tried alone, all that broke is reported.

A proof is a coroutine function that raises AssertionError if its promise is broken.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
Proof = TypeVar("Proof", bound=Callable[..., Any])

TIME_LIMIT = 60.0  # seconds for one promise: what hangs must not hang its author's tests
PROMPTLY = 15.0  # seconds for what should take a moment


class Promise(NamedTuple):
    """One promise."""

    name: str
    says: str  # the sentence
    needs: str  # without which it cannot be tried; "" for nothing
    proof: Callable[..., Any]


class Promises(list[Promise]):
    """The promises of an interface."""

    def add(self, says: str, *, name: str = "", needs: str = "") -> Callable[[Proof], Proof]:
        """Return a decorator that adds a function as the proof of a sentence."""

        def enter(proof: Proof) -> Proof:
            self.append(Promise(name, says, needs, proof))
            return proof

        return enter


def failure(proof: Callable[..., Any], *arguments: Any) -> str:
    """Try one promise in its own thread; return how it is broken, or ''."""
    raised: list[BaseException] = []

    def attempt() -> None:
        try:
            asyncio.run(proof(*arguments))
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


def raise_broken(who: str, failures: dict[str, str]) -> None:
    """Raise one AssertionError that lists the broken ones of the promises that were tried."""
    broken = [f"- {says}: {failed}" for says, failed in failures.items() if failed]
    if broken:
        listed = "\n".join(broken)
        raise AssertionError(f"{who} breaks {len(broken)} of {len(failures)} promises:\n{listed}")


def must(is_kept: object, otherwise: str) -> None:
    """Raise AssertionError, also under `python -O`, unless the promise is kept."""
    if not is_kept:
        raise AssertionError(otherwise)


async def within(what: str, call: Awaitable[T]) -> T:
    """Wait for a call, but not for long."""
    try:
        return await asyncio.wait_for(call, PROMPTLY)
    except TimeoutError:
        raise AssertionError(f"{what} did not come back within {PROMPTLY:g} s") from None


async def settle(*tasks: asyncio.Task[Any]) -> None:
    """Wait until tasks have ended, but not for long."""
    await asyncio.wait(tasks, timeout=PROMPTLY)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
