"""Everything notyet raises.

NotyetError                 something outside our code is wrong; the message says what to do
└─ LedgerError              the ledger cannot be used; a stop is then allowed, with a warning
   ├─ LedgerBusy            other processes held it for too long
   └─ LedgerNewer           it was written by a newer notyet, and is left alone

LifecycleError and the ValueErrors of constructors are mistakes in code that uses notyet,
so they are deliberately not NotyetErrors.
"""

from __future__ import annotations


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


class LedgerBusy(LedgerError):  # noqa: N818  # named after what happened, like BlockingIOError
    """Other processes kept the ledger locked until our patience ended."""


class LedgerNewer(LedgerError):  # noqa: N818  # as above
    """The file was written by a newer version of notyet."""


class LifecycleError(Exception):
    """A run was moved in a way its lifecycle does not know."""
