"""Every key of the files we read: its type, its default and what it does.

First `notyet.toml`, whose gates and observers are in `gate_schema`, then the hooks of Claude Code
and others. A host with a format of its own has its keys in its own folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from notyet.config.gate_schema import GATE, OBSERVER, OTHER_WORKSPACE
from notyet.config.shapes import (
    Address,
    Age,
    Choice,
    Either,
    Field,
    Flag,
    FolderGlob,
    ListOf,
    MapOf,
    Number,
    Shape,
    Size,
    Table,
    Text,
    Whole,
    Workspace,
)
from notyet.core.limits import Limits
from notyet.hosts import all_hosts, conclaude
from notyet.hosts.conclaude.schema import CONCLAUDE
from notyet.hosts.files import READABLE
from notyet.hosts.openclaw import OPENCLAW

_MANY = 1_000_000
NAME = Text(most=80, line=True, words="a name")

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
            also=OTHER_WORKSPACE,
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
