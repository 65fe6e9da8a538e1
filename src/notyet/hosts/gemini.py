"""Gemini CLI, measured on 0.61.0: `gemini -p` with a scripted model (docs/how-to/gemini.md).

It has no event for subagents, no cap, and no turn id.
"""

from __future__ import annotations

from notyet.hosts.host import Host

HOST = Host(
    name="gemini",
    title="Gemini CLI",
    program="gemini",
    tested="0.61.0",
    stops={"AfterAgent": "agent"},
    starts={},
    has_context=False,
    failures=(),  # a failed model call ends the turn without an event
    # `prompt_response` joins all answers of the turn: the transcript has the last one.
    fields={"turn_id": (), "last_message": ()},
    flag_is_reliable=False,  # false again as soon as the continuation used a tool
    project_variable="GEMINI_PROJECT_DIR",
    timeout_unit=0.001,
    settings={"user": ".gemini/settings.json", "project": ".gemini/settings.json"},
    inside=("GEMINI_CLI",),
    command_line={
        "start": "{args} -o stream-json --session-id {id}",
        "resume": "{args} -o stream-json -r {id}",
        "output": "gemini-stream",
        "install": "npm install -g @google/gemini-cli",
        "unknown": ("No previous sessions found", "Invalid session identifier"),
        "taken": "already exists",
    },
)
