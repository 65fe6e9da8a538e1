"""`Gate`: a named check, where it applies and what a failure means; and the two kinds of checks."""

from __future__ import annotations

from _imp import source_hash  # builtin: to load another hash costs 2 % of a stop

from notyet.core.event import SCOPES
from notyet.core.matcher import CODEX_DEFAULT, fits, matches, pattern_error, patterns_error
from notyet.core.record import Record, variant
from notyet.core.remote import remote_from
from notyet.light import LOCAL, dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal

    from notyet.core.event import Ending, Scope, StartEvent, StopEvent
    from notyet.core.matcher import Kind
    from notyet.core.remote import Remote
    from notyet.core.verdict import Decision

KINDS = ("glob", "claude", "codex")  # how patterns can be read
NATIVE = "notyet"
DIALECTS = (NATIVE, "openclaw")
# Hooks of these two are skipped at the limit, while other gates run once more without blocking
# (B1). Nothing is added to their prompts (K12).
MUX = "mux"
VERBATIM = frozenset({"openclaw", MUX})
IN_PROJECT = frozenset({"claude", MUX})  # hooks that run in the root of their project (E7)
EVERY_AGENT = ("*",)
GATE_TIMEOUT = 600.0  # seconds, of a gate that names none
WHEN = ("always", "changed")
GATED_ENDINGS: tuple[Ending, ...] = ("done", "error", "timeout")  # others were ended by people
START_DIALECTS = ("claude", "codex")  # hosts that have hooks for starts
_ALL = ("", "*")  # matchers of starters
# Who reads how a command ended (table F); each is a module of `notyet.hosts`.
COMMAND_DIALECTS = ("notyet", "claude", "codex", "mux", "conclaude")


class Command(Record, kw_only=True):
    """A check: run a script in a shell, or a program with its arguments (E8).

    `speaks` says what it is given and how its answer is read. `workspace` says on which machine it
    runs: `ssh://[user@]host[:port]/path`, "local", or nothing: where the agent's files are, unless
    it has a `dir`, which is then a folder here.
    """

    script: str = ""
    argv: tuple[str, ...] = ()
    dir: str = ""  # where it runs; empty: where the agent works (E7)
    workspace: str = ""  # on which machine (M1)
    shell: str = "/bin/sh"
    env: tuple[tuple[str, str], ...] = ()  # on top of what the dialect gives (H)
    speaks: str = "notyet"
    options: Mapping[str, Any] = {}  # what only its dialect knows; read, never changed

    def _validate(self) -> None:
        self.__dict__["argv"] = tuple(self.argv)
        self.__dict__["env"] = tuple((name, value) for name, value in self.env)
        if bool(self.script.strip()) == bool(self.argv):
            raise ValueError("a Command has either a script or an argv, and it is not blank")
        if self.speaks not in COMMAND_DIALECTS:
            known = ", ".join(COMMAND_DIALECTS)
            raise ValueError(f"speaks is one of {known}, not {self.speaks!r}")
        if self.workspace not in {"", LOCAL}:
            self.__dict__["workspace"] = remote_from(self.workspace).url
        if any("\0" in text for text in (self.script, self.dir, self.shell, *self.argv)):
            raise ValueError("a Command cannot contain a NUL character")

    @property
    def line(self) -> str:
        """The command as a person would write it down, for messages only."""
        return self.script.strip() or " ".join(self.argv)

    @property
    def first_line(self) -> str:
        """The function that it calls, or the first line of the command; for messages only."""
        from notyet.core.text import first_line  # a stop that passes needs no text

        return first_line(self.options.get("python") or self.line)


def where(command: Command, workspace: str = "") -> Remote | None:
    """Return where a command runs, for an agent whose files are in a workspace; None: here.

    One that has a folder and names no machine means a folder on this one.
    """
    chosen = command.workspace or ("" if command.dir else workspace)
    if chosen in {"", LOCAL}:
        return None

    return remote_from(chosen)


class Exit(Record, kw_only=True):
    """How a command ended: with a code, by a signal, out of time, or it never started."""

    code: int | None = None
    signal: int = 0
    timed_out: bool = False
    cancelled: bool = False
    problem: str = ""  # why it could not be started, or how its exit was lost
    lost: bool = False  # it started on another machine, and how it ended is unknown
    unreachable: bool = False  # the problem is the connection to its machine
    advice: str = ""  # what a person can do about that; nothing that an agent should try
    stdout: bytes = b""  # bounded: head, a mark, tail
    stderr: bytes = b""
    left_out: int = 0  # bytes of both that were not kept
    seconds: float = 0.0


class Function(Record):
    """A check: call this, plain or `async`. `speaks` says in which shape it is called."""

    call: Callable[..., Any]
    speaks: str = "notyet"

    def _validate(self) -> None:
        if not callable(self.call):
            raise TypeError(f"a Function calls a function, not {type(self.call).__name__}")
        if self.speaks not in DIALECTS:
            raise ValueError(f"speaks is one of {', '.join(DIALECTS)}, not {self.speaks!r}")


def check_function(check: object) -> None:
    """Refuse a check that is neither a Command nor a Function. Raises TypeError."""
    if not isinstance(check, Function):
        raise TypeError(f"check is a Function or Command, not {type(check).__name__}")


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
            problem = patterns_error(self)
            if problem:
                raise ValueError(problem)


class Gate(Record, kw_only=True):
    """A named rule. Gates with the same priority and step run together (A1)."""

    name: str
    check: Function | Command
    match: Match = Match()
    priority: int = 0
    step: int = 0
    timeout: float | None = GATE_TIMEOUT
    if_broken: Literal["allow", "block"] = "allow"
    unreachable_blocks: bool = True  # False: `if_broken` is not about an unreachable machine
    observe: bool = False
    always: bool = False  # runs although an earlier stage blocked (D3)
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
            check_function(self.check)
        for field in ("priority", "step"):
            if not isinstance(getattr(self, field), int):
                raise TypeError(f"{field} is a whole number, not {getattr(self, field)!r}")

    @property
    def native(self) -> bool:
        """Whether the gate is written for notyet, and not for some host's hooks."""
        return self.check.speaks == NATIVE


def can_skip(gate: Gate) -> bool:
    """Return True if unchanged files can make a gate needless (N1); a function always runs."""
    return gate.when == "changed" and isinstance(gate.check, Command)


def folder_of(named: Gate | Starter) -> str:
    """Return the folder of the file that names a gate or a starter; empty for one made in code."""
    folder, slash, _ = file_of(named).rpartition("/")
    return folder or slash


def file_of(named: Gate | Starter) -> str:
    """Return the file that names a gate or a starter; empty for one made in code."""
    return named.source.file if named.source is not None else ""


def project_of(named: Gate | Starter) -> str:
    """Return the project of a gate or a starter as its command is told it; may be empty (H)."""
    check = named.check
    if isinstance(check, Command) and check.speaks in IN_PROJECT:
        return check.dir
    return folder_of(named)


def machine_of(gate: Gate, workspace: str = "") -> Remote | None:
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
    """Return why a gate does not apply to an event; empty when it does."""
    match = gate.match
    if event.scope not in match.events:
        return f"it is not for {'subagents' if event.scope == 'subagent' else 'the main agent'}"
    if event.ending not in match.endings:
        return f"it does not apply when a turn ends as {event.ending!r}"
    if event.scope == "subagent" and (match.agents != EVERY_AGENT or match.never):
        excluded = fits("glob", match.never, event)
        if excluded:
            return f"never: {excluded}"
        if match.agents != EVERY_AGENT and not fits(match.kind, match.agents, event):
            return f"no pattern fits ({', '.join(match.agents)})"
    return ""


class Starter(Record, kw_only=True):
    """A hook command of a host's settings, or a function, that runs when an agent starts.

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
        if isinstance(self.check, Command) and self.check.speaks not in START_DIALECTS:
            spoken = " or ".join(START_DIALECTS)
            raise ValueError(f"a start hook speaks {spoken}, not {self.check.speaks!r}")
        if self.scope not in SCOPES:
            raise ValueError(f"scope is one of {', '.join(SCOPES)}, not {self.scope!r}")
        if self.kind not in KINDS:
            raise ValueError(f"kind is one of {', '.join(KINDS)}, not {self.kind!r}")
        if self.matcher not in _ALL:
            problem = pattern_error(self.kind, self.matcher)
            if problem:
                raise ValueError(problem)
        check_timeout(self.timeout)


def applies_to_start(starter: Starter, event: StartEvent) -> bool:
    """Return True if a starter runs at this start."""
    if starter.scope != event.scope:
        return False
    if starter.matcher in _ALL:
        return True
    if event.scope == "agent":
        name = event.source or "startup"
    else:
        name = event.agent_type or (CODEX_DEFAULT if starter.kind == "codex" else "")

    return bool(name and matches(starter.kind, starter.matcher, name))


# What a gate runs, as a digest: a pass is remembered for this very command (N1).

# Raise it when commands run in another way: then old passes do not count.
_FORM = 1
_WORDS_ONLY = frozenset({"hint"})  # only the agent reads it


def definition_of(gate: Gate) -> str:
    """Return a digest of what a gate runs, equal in every process; empty for a function.

    When a gate runs and what a failure means is no part of it.
    """
    check = gate.check
    if not isinstance(check, Command):
        return ""
    folder = gate.source.file.rpartition("/")[0] if gate.source is not None else ""
    options = sorted((k, v) for k, v in check.options.items() if k not in _WORDS_ONLY)
    runs = (
        _FORM,
        check.speaks,
        check.script,
        check.argv,
        check.shell,
        check.dir,
        check.workspace,
        check.env,
        options,
        folder,
        gate.paths,
    )
    try:
        text = dumps(_listed(runs))
    except ValueError:  # an option made in code that is no plain value
        return ""
    content = text.encode("utf-8", "surrogatepass")
    return (source_hash(1, content) + source_hash(2, content)).hex()


def defined(decision: Decision, gates: Sequence[Gate]) -> Decision:
    """Return a decision whose reports have the digest of each gate, and its `when`."""
    definitions = [*map(definition_of, gates)]
    if not any(definitions):
        return decision
    reports = tuple(
        variant(report, {"definition": definition, "when": gate.when}) if definition else report
        for report, definition, gate in zip(decision.reports, definitions, gates, strict=True)
    )
    return variant(decision, {"reports": reports})


def digest_of(text: str) -> str:
    """Return a short text that differs where this text does, even if it was made to collide."""
    try:
        from _blake2 import blake2b  # not hashlib: it loads OpenSSL
    except ImportError:
        from hashlib import blake2b
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _listed(value: object) -> object:
    """Return a value with its tuples, and what is in them, as lists."""
    return [*map(_listed, value)] if isinstance(value, tuple | list) else value
