"""For people who write a session: its conformance suite, and a scripted agent for their tests."""

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
    "read_script",
    "session_conformance",
]
