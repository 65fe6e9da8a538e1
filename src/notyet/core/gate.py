"""`Gate`: a named rule, where it applies (`Match`), what it asks (a check) and its policy."""

from __future__ import annotations

from notyet.core.command import Command, where
from notyet.core.event import SCOPES
from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    from notyet.core.event import Ending, Scope, StopEvent
    from notyet.core.function import Function as Function  # noqa: PLC0414  # imported from here
    from notyet.core.matcher import Kind
    from notyet.core.remote import Remote

KINDS = ("glob", "claude", "codex")  # how patterns can be read
NATIVE = "notyet"
DIALECTS = (NATIVE, "openclaw")
# Seeds of these two say that a hook is skipped at its limit; every other gate is asked once
# more, unable to block: we give up on bouncing, never on checking (B1).
NOT_ASKED_AT_LIMIT = frozenset({"openclaw", "mux"})
EVERY_AGENT = ("*",)
WHEN = ("always", "changed")
CODEX_DEFAULT = "default"  # the type of a child that was spawned without one (D5)
GATED_ENDINGS: tuple[Ending, ...] = ("done", "error", "timeout")  # others were ended by people


def __getattr__(name: str) -> Any:
    if name != "Function":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from notyet.core.function import Function  # which no gate of a file is

    globals()[name] = Function
    return Function


class Source(Record):
    """Where a gate was written down."""

    file: str
    line: int = 0


class Match(Record, kw_only=True):
    """Where a gate applies. Patterns are tried on a subagent's type, id and name (D1, D2)."""

    events: tuple[Scope, ...] = ("agent",)
    agents: tuple[str, ...] = EVERY_AGENT
    kind: Kind = "glob"  # or how Claude Code or Codex read the patterns in `agents` (D4, D5)
    never: tuple[str, ...] = ()
    endings: tuple[Ending, ...] = ("done",)

    def _validate(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind is one of {', '.join(KINDS)}, not {self.kind!r}")
        for field in ("events", "agents", "never", "endings"):
            value = getattr(self, field)  # one text stands for a tuple of one
            self.__dict__[field] = (value,) if isinstance(value, str) else tuple(value)
        for field, known in (("events", SCOPES), ("endings", GATED_ENDINGS)):
            strange = [name for name in getattr(self, field) if name not in known]
            if strange or not getattr(self, field):
                raise ValueError(f"{field} are some of {', '.join(known)}, not {strange or ()!r}")
        if self.agents != EVERY_AGENT or self.never:
            from notyet.core.matcher import patterns_error

            problem = patterns_error(self)
            if problem:
                raise ValueError(problem)


class Gate(Record, kw_only=True):
    """A named rule. Gates with the same priority and step are asked together (A1)."""

    name: str
    check: Function | Command
    match: Match = Match()
    priority: int = 0
    step: int = 0
    timeout: float | None = 600.0
    if_broken: Literal["allow", "block"] = "allow"
    observe: bool = False
    always: bool = False  # asked although an earlier stage blocked (D3)
    when: Literal["always", "changed"] = "always"  # "changed": only if files did (N1)
    paths: tuple[str, ...] = ()  # globs of the files that it depends on; none: all of them
    source: Source | None = None

    def _validate(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError("a gate needs a name")
        if self.if_broken not in {"allow", "block"}:
            raise ValueError(f"if_broken is 'allow' or 'block', not {self.if_broken!r}")
        if self.when not in WHEN:
            raise ValueError(f"when is 'always' or 'changed', not {self.when!r}")
        given = self.__dict__["paths"]  # one text stands for a tuple of one
        self.__dict__["paths"] = (given,) if isinstance(given, str) else tuple(given)
        if not all(isinstance(path, str) and path.strip() for path in self.paths):
            raise ValueError(f"paths are globs of files, not {self.paths!r}")
        check_timeout(self.timeout)
        if not isinstance(self.check, Command):
            from notyet.core.function import check_function

            check_function(self.check)
        for field in ("priority", "step"):
            if not isinstance(getattr(self, field), int):
                raise TypeError(f"{field} is a whole number, not {getattr(self, field)!r}")

    @property
    def native(self) -> bool:
        """Whether the gate is written for notyet, and not for some host's hooks."""
        return self.check.speaks == NATIVE


def place_of(gate: Gate, workspace: str = "") -> Remote | None:
    """Return where a gate runs, for an agent whose files are in a workspace; None: here (M1)."""
    return where(gate.check, workspace) if isinstance(gate.check, Command) else None


def name_of(call: Callable[..., Any]) -> str:
    """Return what to call a function, or a callable object, in a report."""
    return getattr(call, "__qualname__", None) or type(call).__qualname__


def check_timeout(timeout: float | None) -> None:
    """Refuse what cannot be a number of seconds."""
    if timeout is None:
        return
    if not isinstance(timeout, int | float) or not timeout > 0:
        raise ValueError(f"timeout is a number of seconds above 0, or None, not {timeout!r}")


def why_not(gate: Gate, event: StopEvent) -> str:
    """Say why a gate does not apply to an event; empty when it does."""
    match = gate.match
    if event.scope not in match.events:
        return f"it is not for {'subagents' if event.scope == 'subagent' else 'the main agent'}"
    if event.ending not in match.endings:
        return f"it is not for an ending by {event.ending}"
    if event.scope == "subagent" and (match.agents != EVERY_AGENT or match.never):
        from notyet.core.matcher import fits

        excluded = fits("glob", match.never, event)
        if excluded:
            return f"never: {excluded}"
        if match.agents != EVERY_AGENT and not fits(match.kind, match.agents, event):
            return f"no pattern fits ({', '.join(match.agents)})"
    return ""
