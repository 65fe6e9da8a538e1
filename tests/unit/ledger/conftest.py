"""Ledgers for the contract that all of them keep."""

import pytest

from notyet import Ledger
from notyet.ledger.memory import MemoryLedger


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    """Return a new ledger of each kind."""
    return Ledger(tmp_path / "ledger.db") if request.param == "file" else MemoryLedger()


@pytest.fixture
def durable(tmp_path):
    """Return a new ledger that outlives its process."""
    return Ledger(tmp_path / "ledger.db")


@pytest.fixture
def reopen():
    """Open a ledger's file a second time."""
    return lambda ledger: Ledger(ledger.path)


@pytest.fixture
def unusable(tmp_path):
    """Return a ledger whose place is a folder."""
    return Ledger(tmp_path)
