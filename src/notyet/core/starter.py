"""`Starter`: who may add words for an agent that begins, before its first request (F13)."""

from __future__ import annotations

from notyet.core.command import Command
from notyet.core.event import SCOPES
from notyet.core.function import check_function
from notyet.core.gate import CODEX_DEFAULT, KINDS, check_timeout
from notyet.core.matcher import matches, pattern_error
from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.event import Scope, StartEvent
    from notyet.core.function import Function
    from notyet.core.gate import Source
    from notyet.core.matcher import Kind

SPEAKING = ("claude", "codex")  # hosts that have hooks for starts
_ALL = ("", "*")


class Starter(Record, kw_only=True):
    """A hook command of a host's settings, or a function, that an agent's start is told to.

    `matcher` is tried on a subagent's type, and on the `source` of a main agent's session. A
    function that speaks "notyet" is called with the event, one that speaks "openclaw" with
    `(event, ctx)`. A command runs here, unless it names a workspace.
    """

    name: str
    check: Function | Command
    scope: Scope = "agent"
    matcher: str = "*"
    kind: Kind = "claude"  # how the matcher is read (D4, D5)
    timeout: float | None = 30.0
    source: Source | None = None

    def _validate(self) -> None:
        if not isinstance(self.check, Command):
            check_function(self.check)
        if isinstance(self.check, Command) and self.check.speaks not in SPEAKING:
            said = f"not {self.check.speaks!r}"
            raise ValueError(f"a start hook speaks {' or '.join(SPEAKING)}, {said}")
        if self.scope not in SCOPES:
            raise ValueError(f"scope is one of {', '.join(SCOPES)}, not {self.scope!r}")
        if self.kind not in KINDS:
            raise ValueError(f"kind is one of {', '.join(KINDS)}, not {self.kind!r}")
        problem = "" if self.matcher in _ALL else pattern_error(self.kind, self.matcher)
        if problem:
            raise ValueError(problem)
        check_timeout(self.timeout)


def is_asked(starter: Starter, event: StartEvent) -> bool:
    """Tell whether a start is one that this starter is told of."""
    if starter.scope != event.scope:
        return False
    if event.scope == "agent":
        name = event.source or "startup"
    else:
        name = event.agent_type or (CODEX_DEFAULT if starter.kind == "codex" else "")
    return starter.matcher in _ALL or bool(name and matches(starter.kind, starter.matcher, name))
