"""VS Code, by its documentation and source, never run here (docs/how-to/vscode.md).

It runs the hooks of GitHub Copilot CLI and of Claude Code, with payloads of its own.
"""

from __future__ import annotations

from notyet.hosts.host import ClaudeLike

_AT_STOPS = "hook_event_name=Stop|SubagentStop"
_NOT_OF_OTHERS = "!prompt_id !crons !stop_reason !last_assistant_message"

HOST = ClaudeLike(
    name="vscode",
    title="VS Code",
    program="code",
    proof="source",
    derived_from="code.visualstudio.com (hooks reference, July 2026) and hookTypes.ts",
    signs=(
        "hookEventName sessionId",
        f"{_AT_STOPS} timestamp stop_hook_active {_NOT_OF_OTHERS}",
    ),
    failures=(),
    fields={
        **ClaudeLike.fields,
        "event": ("hookEventName", "hook_event_name"),
        "session_id": ("sessionId", "session_id"),
        "turn_id": (),
    },
    flag_is_reliable=False,  # not known after a tool call
    # It documents the inner form for Stop and the outer one for SubagentStop.
    block={
        "decision": "block",
        "reason": "{text}",
        "hookSpecificOutput": {
            "hookEventName": "{event}",
            "decision": "block",
            "reason": "{text}",
        },
    },
    timeout=30.0,
    runs_files_of=("copilot", "claude"),
    installed_as="copilot",
)
