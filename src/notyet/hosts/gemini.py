"""Gemini CLI, measured on 0.61.0: `gemini -p` with a scripted model (docs/how-to/gemini.md).

It has no event for subagents, no cap, and no turn id.
"""

from __future__ import annotations

from notyet.hosts.host import ClaudeLike, CommandLine

HOST = ClaudeLike(
    name="gemini",
    title="Gemini CLI",
    program="gemini",
    tested="0.61.0",
    signs=("hook_event_name=AfterAgent|AfterTool|BeforeTool",),
    stops={"AfterAgent": "agent"},
    starts={},
    failures=(),  # a failed model call ends the turn without an event
    # `prompt_response` joins all answers of the turn: the transcript has the last one.
    fields={**ClaudeLike.fields, "turn_id": (), "last_message": (), "model": ()},
    flag_is_reliable=False,  # false again as soon as the continuation used a tool
    project_variable="GEMINI_PROJECT_DIR",
    context={},
    settings={"user": ".gemini/settings.json", "project": ".gemini/settings.json"},
    timeout=60.0,
    timeout_unit=0.001,
    inside=("GEMINI_CLI",),
    command_line=CommandLine(
        start="{args} -o stream-json --session-id {id}",
        resume="{args} -o stream-json -r {id}",
        output="gemini-stream",
        install="npm install -g @google/gemini-cli",
        unknown=("No previous sessions found", "Invalid session identifier"),
        taken="already exists",
    ),
)
