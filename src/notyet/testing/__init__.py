"""Shipped for people who add to notyet: conformance suites for what they write."""

from __future__ import annotations

from notyet.testing.ledgers import ledger_conformance

__all__ = ["ledger_conformance"]
