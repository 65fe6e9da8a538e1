"""GitHub Copilot CLI, measured on 1.0.102 with a scripted model (docs/how-to/copilot.md).

It shows its user nothing that a hook says, and cannot be made to end a turn. Hooks that are
registered as `agentStop` get keys in camel case and no name of the event; those registered as
`Stop`, also in a project's `.claude/settings.json`, get the keys of Claude Code.
"""

from __future__ import annotations

from notyet.hosts.host import ClaudeLike, CommandLine, FolderTrust, Plugin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.event import StopEvent

_NAMES = {"Stop": "agentStop", "SubagentStop": "subagentStop", "SessionStart": "sessionStart"}
_INSIDE = "agentStop of a subagent"  # comes before its subagentStop; a block is not honoured
_LAG = 1000  # milliseconds after a stop in which the transcript is complete; mostly it is in 100
_PAUSE = 0.02  # seconds


class Copilot(ClaudeLike, kw_only=True):
    """Copilot, whose payloads may not name their event, and whose transcript lags."""

    def event_in(self, payload: Mapping[str, Any]) -> str:
        """Return the name of a payload's event, which its other keys may have to tell."""
        named = super().event_in(payload)
        name = _NAMES.get(named, named)
        if not name and "stopReason" in payload:
            of_subagent = "response" in payload or "agentName" in payload
            name = "subagentStop" if of_subagent else "agentStop"
        elif not name and "agentName" in payload:  # also where it is registered as SubagentStart
            name = "subagentStart"
        elif not name and "initialPrompt" in payload:
            name = "sessionStart"
        is_inside = name == "agentStop" and self.value(payload, "agent_id") is not None
        return _INSIDE if is_inside else name

    def is_repeated(self, payload: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
        """Return True for the user's hook where the project's runs too: one after the other."""
        hooks, project = (environ.get(f"COPILOT_{name}_DIR", "") for name in ("HOOK", "PROJECT"))
        path = f"{project}/{self.settings['project']}"
        if not project or path.startswith(f"{hooks}/"):
            return False
        from notyet.hosts.registered import events_in

        if self.event_in(payload) not in events_in(path, self):
            return False
        from notyet.hosts.faults import is_trusted

        return is_trusted(self, project, environ)

    def last_message(self, event: StopEvent) -> str | None:
        """Return the last message: a main agent's once its transcript has come to this stop.

        Until then, the transcript ends with the stop before, and so with an older message.
        """
        path, stopped = event.transcript_path, _milliseconds((event.raw or {}).get("timestamp"))
        if event.last_message or event.scope == "subagent" or not path or not stopped:
            return event.last_message
        from time import sleep, time

        from notyet.hosts.transcript import ends_of, last_message

        ends = min(stopped, time() * 1000) + _LAG
        mark = str(stopped).encode()  # of the entry with this stop's payload
        while mark not in ends_of(path)[1]:
            if time() * 1000 > ends:
                return None
            sleep(_PAUSE)
        return last_message(path)


def _milliseconds(timestamp: object) -> int:
    """Return a payload's time since 1970; 0 if it has none. Claude Code's keys have it as text."""
    if isinstance(timestamp, str):
        from datetime import datetime

        try:
            return round(datetime.fromisoformat(timestamp).timestamp() * 1000)
        except (ValueError, OverflowError):
            return 0
    is_number = isinstance(timestamp, int) and not isinstance(timestamp, bool)
    return timestamp if is_number else 0  # type: ignore[return-value]


HOST = Copilot(
    name="copilot",
    title="GitHub Copilot CLI",
    program="copilot",
    proof="proven",
    tested="1.0.102",
    tested_on="2026-11-16",
    version_variable="COPILOT_CLI_BINARY_VERSION",
    signs=(
        "stopReason sessionId !hook_event_name",
        "stop_reason timestamp",
        "agentName sessionId !hook_event_name",
        "initialPrompt sessionId !hook_event_name",
        "initial_prompt timestamp",
    ),
    # VS Code runs its files. Our entries there are for events that Copilot does not name.
    foreign=("hookEventName", "hook_event_name"),
    stops={"agentStop": "agent", "subagentStop": "subagent"},
    starts={"sessionStart": "agent", "subagentStart": "subagent"},
    failures=(),  # a failed model call ends the turn without a stop
    ignored=(_INSIDE,),
    fields={
        **ClaudeLike.fields,
        "session_id": ("sessionId", "session_id"),
        "turn_id": (),
        "agent_id": ("agentId", "agent_id"),
        "agent_type": ("agentType", "agent_type"),
        "agent_name": ("agentName", "agent_name"),
        "last_message": ("response", "last_assistant_message"),
        "transcript_path": ("transcriptPath", "transcript_path"),
        "agent_transcript_path": (),
        "permission_mode": (),
        "model": (),
        "error": (),
        "background_tasks": (),
    },
    project_variable="COPILOT_PROJECT_DIR",
    cap=9,
    caps_subagents=False,
    halt={},  # `continue: false` has no effect
    context={"additionalContext": "{text}"},
    note="",  # `systemMessage` is never shown
    settings={"user": ".copilot/hooks/notyet.json", "project": ".github/hooks/notyet.json"},
    layout="flat",
    handler={"type": "command", "bash": "{command}", "timeoutSec": "{timeout}"},
    beside={"version": 1},
    plugin=Plugin(
        folder="installed-plugins/*/notyet",
        switches="settings.json",
        remove="run: copilot plugin uninstall notyet@notyet",
    ),
    looks_above=True,
    home_variable="COPILOT_HOME",
    folder_trust=FolderTrust(
        file=".copilot/config.json",
        keys=("trustedFolders",),
        variable="COPILOT_ALLOW_ALL",
        how="start copilot here and trust the folder, or set COPILOT_ALLOW_ALL=true",
    ),
    runs_files_of=("claude",),  # a project's, not the user's
    timeout=30.0,
    inside=("COPILOT_CLI",),
    command_line=CommandLine(  # continues the conversation of this id if there is one
        start="{args} --output-format json --session-id {id}",
        resume="{args} --output-format json --session-id {id}",
        output="copilot-json",
        install="npm install -g @github/copilot",
    ),
)
