"""Shipped for people who add to notyet: conformance suites for what they write, and an agent
that follows a script, for the tests of what they build on it."""

from __future__ import annotations

from notyet.agents.script import (
    Fail,
    Garbage,
    Hang,
    Say,
    Scene,
    Script,
    Tool,
    Wait,
    Write,
    read_script,
)
from notyet.agents.scripted import ScriptedSession
from notyet.testing.ledgers import ledger_conformance
from notyet.testing.sessions import session_conformance

__all__ = [
    "Fail",
    "Garbage",
    "Hang",
    "Say",
    "Scene",
    "Script",
    "ScriptedSession",
    "Tool",
    "Wait",
    "Write",
    "ledger_conformance",
    "read_script",
    "session_conformance",
]
