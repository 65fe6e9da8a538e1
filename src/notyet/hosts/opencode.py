"""OpenCode, measured on 1.18.33: `opencode run` with a scripted model (docs/how-to/opencode.md).

It has no hooks that are commands. `opencode.js`, which `notyet install` writes as a plugin, calls
ours: it waits at the end of the last text of a turn, and sends the agent back with a message. So
the payloads below are our own.
"""

from __future__ import annotations

from notyet.hosts.host import ClaudeLike, CommandLine

HOST = ClaudeLike(
    name="opencode",
    title="OpenCode",
    program="opencode",
    proof="proven",
    tested="1.18.33",
    tested_on="2026-11-16",
    signs=("host=opencode",),
    failures=(),  # a failed model call ends the turn without a text
    fields={
        **ClaudeLike.fields,
        "host_version": ("host_version",),
        "transcript_path": (),  # its messages are in a database
        "agent_transcript_path": (),
        "background_tasks": (),
    },
    project_variable="",
    halt={},
    context={},
    settings={
        "user": ".config/opencode/plugins/notyet.js",
        "project": ".opencode/plugins/notyet.js",
    },
    layout="file",
    handler={"command": "{command}", "timeout": "{timeout}"},
    looks_above=True,
    home_variable="XDG_CONFIG_HOME",
    inside=("OPENCODE",),
    command_line=CommandLine(
        start="run {args} --format json",
        resume="run {args} --format json -s {id}",
        output="opencode-json",
        install="npm install -g opencode-ai",
        unknown=("Session not found",),
    ),
)
