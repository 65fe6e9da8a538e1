"""The errors that the check of a stop handles. `errors` has these too, and all others."""

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
