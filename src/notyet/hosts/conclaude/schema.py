"""Every key of `.conclaude.yaml`: its type, its default and what it does."""

from __future__ import annotations

from notyet.config.shapes import Field, Flag, Glob, ListOf, MapOf, Table, Text, Whole

_OUTPUT = "Whether the agent is shown what the command wrote to its standard"
_COMMAND = {
    "run": Field(Text(), required=True, also=("command", "cmd"), doc="The script, for one shell."),
    "message": Field(Text(blank=True), doc="The message when it fails, instead of its name."),
    "showCommand": Field(Flag(), default=True, doc="Whether the command itself is shown."),
    "showStdout": Field(Flag(), default=False, doc=f"{_OUTPUT} output."),
    "showStderr": Field(Flag(), default=False, doc=f"{_OUTPUT} error."),
    "maxOutputLines": Field(
        Whole(least=1, most=10000), doc="How many lines of each are shown at most."
    ),
    "timeout": Field(Whole(least=1, most=3600), doc="Seconds it may take; without it, any number."),
    "notifyPerCommand": Field(
        Flag(), default=False, doc="Whether a notification is sent for this command."
    ),
}
COMMAND = Table(nulls=True, fields=_COMMAND)
SUBAGENT_COMMAND = Table(
    nulls=True,
    fields=_COMMAND
    | {
        "block": Field(
            Flag(),
            default=False,
            doc="Whether its failure sends the subagent back. An extension of notyet.",
        )
    },
)
_COMMANDS = Field(
    ListOf(item=COMMAND, whole=False),
    default=[],
    doc="Run one after another, up to the first that fails.",
)
STOP = Table(
    nulls=True,
    fields={
        "commands": _COMMANDS,
        "infinite": Field(
            Flag(),
            default=False,
            doc="Whether the agent is sent back even when everything passes, within the limits.",
        ),
        "infiniteMessage": Field(Text(blank=True), doc="The message for it then."),
    },
)
STOP_FAILURE = Table(nulls=True, fields={"commands": _COMMANDS})
SUBAGENT_STOP = Table(
    nulls=True,
    fields={
        "commands": Field(
            MapOf(item=ListOf(item=SUBAGENT_COMMAND, whole=False), key=Glob()),
            default={},
            doc="Lists of commands by pattern; `*` first, then every other that fits.",
        )
    },
)
NOTIFICATIONS = Table(
    nulls=True,
    fields={
        "enabled": Field(Flag(), default=False, doc="Whether notifications are sent."),
        "hooks": Field(ListOf(item=Text()), default=[], doc='For which events; `"*"` is all.'),
        "showErrors": Field(Flag(), default=False, doc="Whether failures are notified."),
        "showSuccess": Field(Flag(), default=False, doc="Whether passes are notified."),
        "showSystemEvents": Field(
            Flag(), default=True, doc="Whether starts and ends of sessions are notified."
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
        "stop": Field(STOP, doc="Run when the main agent stops."),
        "stopFailure": Field(STOP_FAILURE, doc="Run when the main agent failed."),
        "subagentStop": Field(SUBAGENT_STOP, doc="Run when a subagent stops."),
        "notifications": Field(NOTIFICATIONS, doc="Desktop notifications."),
    }
    | {
        key: Field(Table(open=True), doc="Not about stopping; accepted as it is.")
        for key in _NOT_OURS
    },
)
