"""For people who write a session or an adapter: conformance suites, and a scripted agent.

    def test_my_session():
        session_conformance(MySession, slow=lambda: MySession(prompt_that_takes_long))

    def test_my_adapter():
        adapter_conformance(MyTrial())

The suites need no test framework, and report every broken promise at once.
"""

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
from notyet.testing.adapters import Conversation, adapter_conformance
from notyet.testing.sessions import session_conformance

__all__ = [
    "Conversation",
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
    "adapter_conformance",
    "read_script",
    "session_conformance",
]
