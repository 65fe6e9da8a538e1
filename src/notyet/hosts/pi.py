"""Pi, measured on 0.87.1: `pi -p` with a scripted model (docs/how-to/pi.md).

It has no hooks that are commands, and no subagents. `pi.ts`, which `notyet install` writes as an
extension, calls ours at the end of a turn without tool calls, and sends the agent back with a
message. So the payloads below are our own.
"""

from __future__ import annotations

from notyet.hosts.host import ClaudeLike, CommandLine, FolderTrust

HOST = ClaudeLike(
    name="pi",
    title="Pi",
    program="pi",
    proof="proven",
    tested="0.87.1",
    tested_on="2026-11-16",
    holds={"agent": "yes"},
    signs=("host=pi",),
    stops={"Stop": "agent"},
    starts={"SessionStart": "agent"},
    failures=(),  # a turn that ended with an error calls no hook
    fields={**ClaudeLike.fields, "background_tasks": ()},
    project_variable="",
    halt={},
    context={},
    settings={
        "user": ".pi/agent/extensions/notyet.ts",
        "project": ".pi/extensions/notyet.ts",
    },
    layout="file",
    handler={"command": "{command}", "timeout": "{timeout}"},
    home_variable="PI_CODING_AGENT_DIR",
    home_depth=2,
    folder_trust=FolderTrust(
        file=".pi/agent/trust.json",
        values=(True,),
        refused=(False,),
        how="start pi here and run /trust (without a terminal: start it with --approve)",
    ),
    inside=("PI_CODING_AGENT",),
    command_line=CommandLine(
        start="-p --mode json {args} --session-id {id}",
        resume="-p --mode json {args} --session-id {id}",
        output="pi-json",
        install="npm install -g @earendil-works/pi-coding-agent",
    ),
)
