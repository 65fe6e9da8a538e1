"""Everything that notyet raises, and the guards around foreign code."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

__all__ = [
    "LedgerBusy",
    "LedgerError",
    "LedgerNeedsRepair",
    "LedgerNewer",
    "LifecycleError",
    "NotyetError",
    "Refused",
    "SendError",
    "Undeliverable",
]


class NotyetError(Exception):
    """Base of the errors a caller may want to handle."""


class LedgerError(NotyetError):
    """The ledger file cannot be used."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(path, detail)
        self.path = path
        self.detail = detail

    def __str__(self) -> str:
        return f"ledger {self.path}: {self.detail}"


# NotyetError                 something outside our code is wrong; the message says what to do
# ├─ LedgerError              the ledger cannot be used; a stop is then allowed, with a warning
# │  ├─ LedgerBusy            other processes held it for too long
# │  ├─ LedgerNewer           it was written by a newer notyet, and is left alone
# │  └─ LedgerNeedsRepair     it is damaged or of an older notyet; the next stop repairs it
# ├─ Refused                  a request is refused; the message says why
# ├─ SendError                a session could not hand its agent a prompt, which did not arrive
# └─ Undeliverable            raised by a consumer: trying to deliver this result again is hopeless
#
# LifecycleError and the ValueErrors of constructors are mistakes in code that uses notyet,
# so they are deliberately not NotyetErrors.


class LedgerBusy(LedgerError):  # noqa: N818  # named after what happened, like BlockingIOError
    """Other processes kept the ledger locked until our patience ended."""


class LedgerNewer(LedgerError):  # noqa: N818  # named after what happened
    """The file was written by a newer version of notyet."""


class LedgerNeedsRepair(LedgerError):  # noqa: N818  # named after what happened
    """A reader found a file that must be repaired first, which the next stop does."""


class Refused(NotyetError):  # noqa: N818  # named after what happened
    """The supervisor does not do what it was asked."""


class SendError(NotyetError):
    """The prompt certainly did not reach the agent."""


class Undeliverable(NotyetError):  # noqa: N818  # named after what happened
    """A consumer will never take this result; it is suspended until a person looks."""


class LifecycleError(Exception):
    """A run was moved in a way its lifecycle does not know."""


def attempt(call: Callable[..., Any], *args: object) -> tuple[Any, Exception | None]:
    """Call foreign code; return its result and None, or None and the exception that it raised."""
    try:
        return call(*args), None
    except Exception as error:  # noqa: BLE001  # foreign code
        return None, error


async def attempt_async(work: Awaitable[Any]) -> tuple[Any, Exception | None]:
    """Await foreign code; return its result and None, or None and the exception that it raised."""
    try:
        return await work, None
    except Exception as error:  # noqa: BLE001  # foreign code
        return None, error
