"""The shapes of other tools' files: `.conclaude.yaml`, and the hooks of Claude Code and others."""

from __future__ import annotations

from notyet.config.scalars import Anything, Flag, Glob, Number, Text, Whole
from notyet.config.shape import Field, ListOf, MapOf, Table

_OUTPUT = "Whether the agent is shown what the command wrote to its standard"
_COMMAND = {
    "run": Field(
        shape=Text(), required=True, also=("command", "cmd"), doc="The script, for one shell."
    ),
    "message": Field(shape=Text(blank=True), doc="The message when it fails, instead of its name."),
    "showCommand": Field(shape=Flag(), default=True, doc="Whether the command itself is shown."),
    "showStdout": Field(shape=Flag(), default=False, doc=f"{_OUTPUT} output."),
    "showStderr": Field(shape=Flag(), default=False, doc=f"{_OUTPUT} error."),
    "maxOutputLines": Field(
        shape=Whole(least=1, most=10000), doc="How many lines of each are shown at most."
    ),
    "timeout": Field(
        shape=Whole(least=1, most=3600), doc="Seconds it may take; without it, any number."
    ),
    "notifyPerCommand": Field(
        shape=Flag(), default=False, doc="Whether a notification is sent for this command."
    ),
}
COMMAND = Table(nulls=True, fields=_COMMAND)
SUBAGENT_COMMAND = Table(
    nulls=True,
    fields=_COMMAND
    | {
        "block": Field(
            shape=Flag(),
            default=False,
            doc="Whether its failure sends the subagent back. An extension of notyet.",
        )
    },
)
_COMMANDS = Field(
    shape=ListOf(item=COMMAND, whole=False),
    default=[],
    doc="Run one after another, up to the first that fails.",
)
STOP = Table(
    nulls=True,
    fields={
        "commands": _COMMANDS,
        "infinite": Field(
            shape=Flag(),
            default=False,
            doc="Whether the agent is sent back even when everything passes, within the limits.",
        ),
        "infiniteMessage": Field(shape=Text(blank=True), doc="What it is then told."),
    },
)
STOP_FAILURE = Table(nulls=True, fields={"commands": _COMMANDS})
SUBAGENT_STOP = Table(
    nulls=True,
    fields={
        "commands": Field(
            shape=MapOf(item=ListOf(item=SUBAGENT_COMMAND, whole=False), key=Glob()),
            default={},
            doc="Lists of commands by pattern; `*` first, then every other that fits.",
        )
    },
)
NOTIFICATIONS = Table(
    nulls=True,
    fields={
        "enabled": Field(shape=Flag(), default=False, doc="Whether notifications are sent."),
        "hooks": Field(
            shape=ListOf(item=Text()), default=[], doc='For which events; `"*"` is all.'
        ),
        "showErrors": Field(shape=Flag(), default=False, doc="Whether failures are told."),
        "showSuccess": Field(shape=Flag(), default=False, doc="Whether passes are told."),
        "showSystemEvents": Field(
            shape=Flag(), default=True, doc="Whether starts and ends of sessions are told."
        ),
    },
)
_NOT_OURS = (
    "preToolUse",
    "permissionRequest",
    "userPromptSubmit",
    "skillStart",
    "teammateIdle",
    "taskCompleted",
    "taskCreated",
    "configChange",
    "worktreeCreate",
    "setup",
    "postCompact",
    "cwdChanged",
    "fileChanged",
    "instructionsLoaded",
    "postToolBatch",
    "permissionDenied",
    "userPromptExpansion",
    "elicitation",
    "elicitationResult",
    "messageDisplay",
)
CONCLAUDE = Table(
    nulls=True,
    fields={
        "stop": Field(shape=STOP, doc="Run when the main agent stops."),
        "stopFailure": Field(shape=STOP_FAILURE, doc="Run when the main agent failed."),
        "subagentStop": Field(shape=SUBAGENT_STOP, doc="Run when a subagent stops."),
        "notifications": Field(shape=NOTIFICATIONS, doc="Desktop notifications."),
    }
    | {
        key: Field(shape=Table(open=True), doc="Not about stopping; accepted as it is.")
        for key in _NOT_OURS
    },
)

HANDLER = Table(
    open=True,
    nulls=True,
    if_is=(("type", "command", "command"),),
    fields={
        "type": Field(shape=Text(), required=True, doc='The kind of hook; `"command"` is run.'),
        "command": Field(shape=Text(), vital=True, doc="The script, for one shell."),
        "args": Field(
            shape=ListOf(item=Text(blank=True)),
            vital=True,
            doc="Arguments: `command` is then a program, and no shell is used.",
        ),
        "timeout": Field(shape=Number(), doc="Seconds it may take."),
        "async": Field(
            shape=Flag(), doc="Whether the host does not wait for it; then it cannot block."
        ),
        "shell": Field(shape=Text(), doc="Which shell runs it."),
        "statusMessage": Field(shape=Text(blank=True), doc="Shown while it runs."),
    },
)
GROUP = Table(
    open=True,
    nulls=True,
    fields={
        "matcher": Field(
            shape=Text(blank=True),
            vital=True,
            doc="Which subagents, or which sources of a session's start; empty or `*`: all.",
        ),
        "hooks": Field(shape=ListOf(item=HANDLER, whole=False), default=[], doc="What is run."),
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
    open=True, fields={name: Field(shape=_GROUPS, doc=doc) for name, doc in EVENTS.items()}
)
HOOKS = Table(
    open=True,
    fields={
        "hooks": Field(shape=HOOKS_BLOCK, doc="Groups of hooks by event."),
        "disableAllHooks": Field(shape=Anything(), doc="Claude Code: `true` turns all off."),
    },
)
