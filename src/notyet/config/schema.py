"""Every key of the files we read: its type, its default and what it does.

First `notyet.toml`, then the hooks of Claude Code and others. A host with a format of its own has
its keys in its own folder.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from notyet.config.document import described
from notyet.config.shapes import (
    Address,
    Age,
    Choice,
    Either,
    Field,
    FileGlob,
    Flag,
    FolderGlob,
    Glob,
    ListOf,
    MapOf,
    Number,
    PathBelow,
    Seconds,
    Shape,
    ShapeError,
    Size,
    Table,
    Text,
    Whole,
    Workspace,
)
from notyet.core.gate import GATE_TIMEOUT, GATED_ENDINGS
from notyet.core.limits import Limits
from notyet.core.verdict import GROUPS, OUTCOMES
from notyet.gates.kinds import GROUPS_OF_GUARD, KINDS, PRESETS
from notyet.hosts import all_hosts, conclaude
from notyet.hosts.conclaude.schema import CONCLAUDE
from notyet.hosts.files import READABLE
from notyet.hosts.openclaw import OPENCLAW

MAIN, SUBAGENTS, ALL = "main", "subagents", "all"
_WHOM = (MAIN, SUBAGENTS, ALL)
_MANY = 1_000_000
_PATTERNS = ListOf(item=Glob())


class Kind(Glob):
    """A pattern in a list, where the words for all agents mean nothing."""

    def parse(self, value: str) -> str:
        if value in _WHOM:
            hint = 'write for = "main", "subagents" or "all", without a list'
            raise ShapeError(f"is {described(value)}, but a list names kinds of subagents", hint)
        return super().parse(value)


NAME = Text(most=80, line=True, words="a name")
_RUN = Field(
    Either((Text(), ListOf(item=Text(blank=True), least=1))),
    vital=True,
    also=("command", "cmd", "script", "exec", "commands"),
    doc="What to run: a string is a shell script of any length; a list is a program and its "
    "arguments, without a shell.",
)
_PYTHON = Field(
    Text(
        pattern=r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*"
        r":[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*",
        words='a string like "module:function"',
    ),
    vital=True,
    also=("function", "call"),
    doc="Instead of `run`: a Python function, called in its own process with the project on "
    "its path.",
)
_INTERPRETER = Field(
    Text(line=True),
    vital=True,
    doc="The Python that calls the function. Default: the project's `.venv/bin/python` if it "
    "exists, else the one that runs notyet; in a workspace `python3`.",
)
_DIR = Field(
    PathBelow(),
    vital=True,
    also=("cwd", "directory", "folder", "workdir"),
    doc="The folder it runs in, below the folder of this file. Default: that folder.",
)
_ENV = Field(
    MapOf(
        item=Text(blank=True),
        key=Text(pattern="[A-Za-z_][A-Za-z0-9_]*", words="the name of a variable"),
        whole=True,
    ),
    vital=True,
    also=("environment",),
    doc="Environment variables, in addition to those it inherits.",
)
_WHERE = ("remote", "host", "machine", "ssh", "where")  # other words for a workspace

# What only one kind of gate has; each kind is a module of `notyet.gates`.
_KIND_FIELDS = {
    "uses": Field(
        Choice(tuple(PRESETS)),
        vital=True,
        also=("preset", "use"),
        doc="Instead of `run`: a check that notyet brings along; `notyet gates NAME` explains it.",
    ),
    "guard": Field(
        Choice(("tests",)),
        vital=True,
        doc='Instead of `run`: `"tests"` sends an agent back that weakened tests or checks during '
        "its session and does not say so in its final message.",
    ),
    "strict": Field(
        Flag(),
        default=False,
        vital=True,
        doc="`true`: what the agent says does not count; what it weakened must be restored.",
    ),
    "block": Field(
        ListOf(item=Choice(GROUPS_OF_GUARD)),
        doc="Groups of findings that send the agent back. Default: see the page of the guard.",
    ),
    "tell": Field(
        ListOf(item=Choice(GROUPS_OF_GUARD)),
        doc="Groups of findings that only the user is told. Default: the others.",
    ),
    "allow": Field(
        ListOf(item=FileGlob()),
        default=[],
        also=("ignore",),
        doc="Globs of files that the guard does not look at.",
    ),
    "ran": Field(
        ListOf(item=Text(line=True), least=1),
        vital=True,
        also=("evidence",),
        doc="Instead of `run`: globs of commands. It passes if the agent's transcript shows that "
        "one of them succeeded after the last edit of a file in `paths`.",
    ),
    "judge": Field(
        Text(most=4000),
        vital=True,
        also=("review", "prompt", "criteria"),
        doc="Instead of `run`: criteria that a model judges, when every other gate passed.",
    ),
    "with": Field(
        Either((Text(), ListOf(item=Text(blank=True), least=1))),
        vital=True,
        also=("model", "using"),
        doc="The command that judges: it reads a prompt from stdin and prints an answer, like "
        "`claude -p --model haiku`.",
    ),
    "calls": Field(
        Whole(least=1, most=1000),
        default=5,
        doc="How often the judge is called in one session.",
    ),
    "fix": Field(
        Text(),
        vital=True,
        also=("fixer", "autofix"),
        doc="A script that runs before the check, on the files that the agent changed "
        "(`{files}`); the agent is told what it changed. Gates with `fix` run one after another, "
        "before others of their priority.",
    ),
    "new_failures_only": Field(
        Flag(),
        default=False,
        vital=True,
        doc="`true`: failures that were there when the session began do not count. Whatever "
        "cannot be compared blocks as usual.",
    ),
    "report": Field(
        PathBelow(words="a path below the gate's folder"),
        doc="A machine-readable report that the command writes, for `new_failures_only`: JUnit "
        "XML, SARIF, or JSON of ruff, eslint or mypy; may be a glob.",
    ),
    "baseline_timeout": Field(
        Seconds(),
        doc="How long the command may take on the files of the session's start. Default: twice as "
        "long as it took now, at least a minute.",
    ),
}
# Keys that mean nothing without another one.
_PARTS = {
    "python": ("interpreter",),
    "run": ("fix", "new_failures_only", "pass_codes"),
    "new_failures_only": ("report", "baseline_timeout"),
    "guard": ("strict", "block", "tell", "allow"),
    "judge": ("with", "calls"),
}

GATE = Table(
    one_of=("run", "python", *KINDS),
    needs=tuple((part, whole) for whole, parts in _PARTS.items() for part in parts),
    apart=(("slow", "priority"), ("slow", "judge"), ("priority", "judge")),
    fields={
        "run": replace(
            _RUN,
            doc=f"{_RUN.doc} `{{files}}` stands for the files that the agent changed, each quoted; "
            "without any, the gate passes.",
        ),
        "python": _PYTHON,
        "interpreter": _INTERPRETER,
        **_KIND_FIELDS,
        "slow": Field(Flag(), default=False, doc="`true`: runs only if all quick gates passed."),
        "priority": Field(
            Whole(least=-1000, most=1000),
            default=0,
            doc="Gates with a higher priority run first, those with the same at the same time. "
            "`slow` is -1.",
        ),
        "paths": Field(
            ListOf(item=FileGlob()),
            default=[],
            also=("files",),
            doc="Globs of the files that it depends on, below the folder of this file (in your own "
            "file: below the top of the repository that the agent works in); `**` stands for any "
            "folders. Default: all files of the repository. See `when`.",
        ),
        "when": Field(
            Choice(("changed", "always")),
            default="changed",
            doc='`"changed"`: runs only if a file that it depends on changed since the session '
            "began and since the gate last passed, as git sees it; outside of git it always "
            'runs. `"always"`: runs at every stop; the default of `python` without `paths`.',
        ),
        "timeout": Field(
            Seconds(),
            default=int(GATE_TIMEOUT),
            doc="How long it may take; then it is ended and counts as broken. Less, where the host "
            "waits less.",
        ),
        "pass_codes": Field(
            ListOf(item=Whole(least=0, most=255), least=1),
            default=[0],
            doc="Exit codes that mean passed.",
        ),
        "hint": Field(
            Text(blank=True, most=2000),
            default="",
            also=("message",),
            doc="A message for the agent when it is sent back, besides the output.",
        ),
        "if_broken": Field(
            Choice(("allow", "block")),
            default="block",
            doc='What happens if it cannot start, crashes or times out: `"block"` sends the agent '
            'back, `"allow"` lets it finish, which is told as NOT CHECKED. A machine that cannot '
            'be reached blocks only if you write `"block"`.',
        ),
        "for": Field(
            Either((Choice(_WHOM), Glob(unlike=_WHOM), ListOf(item=Kind(), least=1))),
            default=MAIN,
            vital=True,
            also=("agents", "matcher"),
            doc='Which agents it gates: `"main"`, `"subagents"`, `"all"`, or patterns for kinds of '
            "subagents.",
        ),
        "never": Field(
            _PATTERNS,
            default=[],
            vital=True,
            also=("except", "exclude"),
            doc="Patterns for subagents that it does not gate.",
        ),
        "dir": replace(
            _DIR,
            doc="The folder it runs in, below the folder of this file, or below the path of its "
            "workspace. Default: that folder.",
        ),
        "workspace": Field(
            Workspace(),
            vital=True,
            also=_WHERE,
            doc="The machine and folder it runs in, instead of that of the file: "
            '`"ssh://dev@box/srv/app"`, or `"local"` for the machine that this file is on.',
        ),
        "observe": Field(
            Flag(),
            default=False,
            vital=True,
            doc="`true`: it runs and is recorded, and never sends an agent back.",
        ),
        "endings": Field(
            ListOf(item=Choice(GATED_ENDINGS), least=1),
            default=["done"],
            doc="The endings of an agent's turn at which the gate runs.",
        ),
        "env": _ENV,
    },
)

OBSERVER = Table(
    one_of=("run", "python"),
    needs=(("interpreter", "python"),),
    fields={
        "run": _RUN,
        "python": _PYTHON,
        "interpreter": _INTERPRETER,
        "timeout": Field(Seconds(), default=10, doc="How long it may take."),
        "on": Field(
            ListOf(item=Choice((*OUTCOMES, *GROUPS)), least=1),
            vital=True,
            also=("outcomes",),
            doc="The outcomes it is run for. Default: all. `not_passed` stands for capped, stuck, "
            "handed_back and overridden; `not_checked` for failed_open and for stops that were "
            "skipped although there was something to check. For an overridden stop it runs at the "
            "next stop, with the event of that one.",
        ),
        "dir": _DIR,
        "env": _ENV,
    },
)

_GIVEN = Limits()
LIMITS = Table(
    fields={
        "max_blocks": Field(
            Whole(most=_MANY),
            default=_GIVEN.max_blocks,
            doc="How often an agent is sent back in one turn; a passing stop refills this.",
        ),
        "session_ceiling": Field(
            Whole(most=_MANY),
            default=_GIVEN.session_ceiling,
            doc="How often in one session, never refilled. 0: no ceiling.",
        ),
        "stuck_after": Field(
            Whole(most=_MANY, never=1, because="no agent would ever be sent back"),
            default=_GIVEN.stuck_after,
            doc="Allow the stop after this many equal failures in a row. 0: never.",
        ),
        "wait_for_background": Field(
            Flag(),
            default=_GIVEN.wait_for_background,
            doc="Whether the main agent is not gated while other agents of its session work.",
        ),
        "jobs": Field(
            Whole(least=1, most=_MANY),
            doc="How many commands of a stage run at a time; the rest wait, which does not count "
            "against their `timeout`. Default: the number of cores. A project's outermost file "
            "decides. A stage with gates on other machines runs all of its gates at once.",
        ),
    }
)
START = Table(
    fields={
        "tell": Field(
            Flag(), default=False, doc="Whether to list the gates for an agent when it starts."
        )
    }
)
LEDGER = Table(
    fields={
        "keep": Field(Age(), default="90d", doc="How long stops, tasks and logs are kept."),
        "max_size": Field(
            Size(least=1_000_000),
            default="256MB",
            doc="How large the ledger may become; agents without stops and the oldest stops are "
            "removed first.",
        ),
        "logs": Field(
            Size(),
            default="64MB",
            doc="How large the logs with the full output of gates may become; those of the newest "
            "stop are always kept.",
        ),
    }
)
SHARE = Table(
    fields={
        "to": Field(
            Address(
                schemes=("postgresql", "postgres"),
                words='an address like "postgresql://USER@HOST/DATABASE"',
            ),
            doc="The PostgreSQL database that gets your finished stops, at most once a minute.",
        ),
        "words": Field(
            Flag(),
            default=False,
            doc="`true`: with the words of agents and gates, and with folders. Else none of these "
            "leaves the machine.",
        ),
        "otel": Field(
            Address(
                schemes=("http", "https"),
                words='an address like "http://HOST:4318"',
            ),
            doc="The OpenTelemetry receiver (OTLP over HTTP) that gets spans and metrics of them.",
        ),
    }
)
READ = Table(
    fields={
        "hosts": Field(
            ListOf(item=Choice(READABLE)),
            default=[],
            doc="Hosts whose own files are read too: hooks written for these hosts become gates.",
        ),
        OPENCLAW: Field(
            Text(line=True),
            doc="Path of an `openclaw.json`: its "
            "`agents.defaults.subagents.maxSteerRestarts` sets `max_blocks`.",
        ),
    }
)
REPLY = Table(
    fields={
        host.name: Field(
            Choice(host.reply_styles),
            default=host.reply_styles[0],
            doc=f'How {host.title} is sent back: `"context"` with added context, which keeps its '
            'final answer, or `"block"` with a blocking decision.',
        )
        for host in all_hosts()
        if host.reply_styles
    }
)

NOTYET_TABLE = Table(
    fields={
        "$schema": Field(Text(), doc="Where editors find the schema of this file."),
        "workspace": Field(
            Workspace(),
            also=_WHERE,
            doc="Where the agents' files are, if on another machine: `ssh://dev@box/srv/app`. "
            "The gates run there, over SSH, and the project's own files there are read too. "
            "Observers run here.",
        ),
        "members": Field(
            ListOf(item=FolderGlob(), whole=False),
            default=[],
            also=("packages", "workspaces", "projects"),
            doc="Globs of folders below the folder of this file, as in a monorepo. The gates in "
            "their own `notyet.toml` apply when a file below them changed since the session "
            "began, wherever the agent works, and are called `folder:name`.",
        ),
        "root": Field(
            Flag(),
            default=False,
            doc="`true`: files in the folders above do not count here.",
        ),
        "limits": Field(
            LIMITS,
            doc="How often agents are sent back. A file in a folder below, or of a member, can "
            "only make the limits of an outer file stricter.",
        ),
        "gates": Field(
            MapOf(item=Either((Text(), GATE)), key=NAME),
            doc='The gates by name. `NAME = "script"` is short for a table with `run`.',
        ),
        "observers": Field(
            MapOf(item=OBSERVER, key=NAME),
            doc="Commands that get every decision and cannot change it, by name.",
        ),
        "ledger": Field(
            LEDGER,
            doc="How much history is kept. Only in your own `notyet.toml`, not in a project's.",
        ),
        "share": Field(
            SHARE,
            doc="Where your stops are copied to, for a team. Only in your own `notyet.toml`, not "
            "in a project's, which would name somebody else's address.",
        ),
        "start": Field(START, doc="What happens when an agent starts."),
        "read": Field(READ, doc="Which other files are read."),
        "reply": Field(REPLY, doc="How notyet replies to hosts."),
    }
)

HANDLER = Table(
    open=True,
    nulls=True,
    if_is=(("type", "command", "command"),),
    fields={
        "type": Field(Text(), required=True, doc='The kind of hook; `"command"` is run.'),
        "command": Field(Text(), vital=True, doc="The script, for one shell."),
        "args": Field(
            ListOf(item=Text(blank=True)),
            vital=True,
            doc="Arguments: `command` is then a program, and no shell is used.",
        ),
        "timeout": Field(Number(), doc="Seconds it may take."),
        "async": Field(Flag(), doc="Whether the host does not wait for it; then it cannot block."),
        "shell": Field(Text(), doc="Which shell runs it."),
        "statusMessage": Field(Text(blank=True), doc="Shown while it runs."),
    },
)
GROUP = Table(
    open=True,
    nulls=True,
    fields={
        "matcher": Field(
            Text(blank=True),
            vital=True,
            doc="Which subagents, or which sources of a session's start; empty or `*`: all.",
        ),
        "hooks": Field(ListOf(item=HANDLER, whole=False), default=[], doc="What is run."),
    },
)
_GROUPS = ListOf(item=GROUP, whole=False)
# The events whose hooks we read. Others, and whatever hosts keep beside them, are not ours.
EVENTS = {
    "Stop": "When the main agent stops.",
    "SubagentStop": "When a subagent stops.",
    "SubagentStart": "When a subagent starts.",
    "SessionStart": "When a session starts.",
}
HOOKS_BLOCK = Table(
    open=True, fields={name: Field(_GROUPS, doc=doc) for name, doc in EVENTS.items()}
)
HOOKS = Table(
    open=True,
    fields={
        "hooks": Field(HOOKS_BLOCK, doc="Groups of hooks by event."),
        "disableAllHooks": Field(Shape(), doc="Claude Code: `true` turns all off."),
    },
)


@dataclass(frozen=True, kw_only=True)
class Format:
    """A kind of file. `page` names its JSON Schema; two formats may share one."""

    shape: Table
    syntax: Literal["toml", "json", "yaml"]
    page: str
    title: str


FORMATS: dict[str, Format] = {
    "notyet": Format(shape=NOTYET_TABLE, syntax="toml", page="notyet.toml", title="notyet.toml"),
    conclaude.HOST.name: Format(
        shape=CONCLAUDE, syntax="yaml", page="conclaude.yaml", title=".conclaude.yaml"
    ),
    "hooks": Format(
        shape=HOOKS, syntax="json", page="hooks", title="hooks of Claude Code, Codex and Mux"
    ),
    "hooks-toml": Format(
        shape=HOOKS, syntax="toml", page="hooks", title="hooks of Claude Code, Codex and Mux"
    ),
}
