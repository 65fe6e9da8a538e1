"""Gemini CLI, measured on 0.61.0 with a scripted model (docs/how-to/gemini.md).

It has no cap and no turn id, and no event for the stop of a subagent. But a subagent can only end
by calling the tool `complete_task` with its report, and a `BeforeTool` hook can refuse that call.
"""

from __future__ import annotations

from notyet.core.record import replace
from notyet.hosts.host import ClaudeLike, CommandLine, FolderTrust, Plugin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.event import StartEvent, StopEvent
    from notyet.core.verdict import Allow, Block, Halt
    from notyet.hosts.host import Reply

_ENDS_SUBAGENT = "complete_task"
_OTHER_TOOL = "BeforeTool of another tool"
_NOT_SENT = (
    *("turn_id", "agent_id", "agent_type", "agent_name", "agent_transcript_path"),
    *("last_message", "permission_mode", "model", "background_tasks"),
)


class Gemini(ClaudeLike, kw_only=True):
    """Gemini CLI, whose subagents stop by a tool call."""

    def event_in(self, payload: Mapping[str, Any]) -> str:
        """Return the name of the event; other tools than the one that ends a subagent differ."""
        name = super().event_in(payload)
        is_other = name == "BeforeTool" and payload.get("tool_name") != _ENDS_SUBAGENT
        return _OTHER_TOOL if is_other else name

    def read_event(
        self, payload: Mapping[str, Any], environ: Mapping[str, str]
    ) -> StopEvent | StartEvent | None:
        """Read a payload; the subagents of a session are one agent, for they have no id or name."""
        event = super().read_event(payload, environ)
        if event is None or event.scope == "agent":
            return event
        name = f"{event.session_id}:{_ENDS_SUBAGENT}"
        report = _texts_in(payload.get("tool_input"))
        return replace(event, agent_id=name, agent_name="subagent", last_message=report)

    def write_event(
        self, event: StopEvent, folder: str = ""
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the payload and the variables of a stop; a subagent's is its tool call."""
        payload, variables = super().write_event(event, folder)
        if event.scope == "subagent":
            report = {"result": event.last_message or ""}
            payload |= {"tool_name": _ENDS_SUBAGENT, "tool_input": report}
        return payload, variables

    def write_reply(
        self,
        verdict: Allow | Block | Halt,
        note: str,
        event: StopEvent,
        settings: Mapping[str, str],
    ) -> Reply:
        """Return the answer to a stop; `continue: false` would send a subagent back, not end it."""
        from notyet.hosts import wire

        host = self
        if event.scope == "subagent":
            host = replace(self, block={"decision": "deny", "reason": "{text}"}, halt={})
        return wire.write_reply(host, verdict, note, event, settings)


def _texts_in(report: object) -> str | None:
    """Return all texts of a report, whose form the type of the subagent determines."""
    from notyet.hosts import wire

    found: list[str] = []
    rest = [report]
    while rest:
        value = rest.pop()
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict):
            rest += reversed(value.values())
        elif isinstance(value, list):
            rest += reversed(value)
    return wire.text({"report": "\n".join(found)}, "report")


HOST = Gemini(
    name="gemini",
    title="Gemini CLI",
    program="gemini",
    proof="proven",
    tested="0.61.0",
    tested_on="2026-11-16",
    # Its name for a transcript tells its starts from those of others.
    signs=(
        "hook_event_name=AfterAgent|AfterTool|BeforeTool",
        "hook_event_name=SessionStart|SessionEnd timestamp transcript_path~/chats/session-",
    ),
    stops={"AfterAgent": "agent", "BeforeTool": "subagent"},
    starts={"SessionStart": "agent"},
    failures=(),  # a failed model call ends the turn without an event
    ignored=(_OTHER_TOOL,),
    # `prompt_response` joins all answers of the turn: the transcript has the last one.
    fields={**ClaudeLike.fields, **dict.fromkeys(_NOT_SENT, ())},
    flag_is_reliable=False,  # false again as soon as the continuation used a tool
    project_variable="GEMINI_PROJECT_DIR",
    settings={"user": ".gemini/settings.json", "project": ".gemini/settings.json"},
    plugin=Plugin(
        folder=".gemini/extensions/notyet",
        key="",
        switches=".gemini/extensions/extension-enablement.json",
        is_on_by_itself=True,
        remove="run: gemini extensions uninstall notyet",
    ),
    home_variable="GEMINI_CLI_HOME",
    home_depth=0,
    # It shows its user the name of a hook, or else the whole command.
    handler={"name": "notyet", **ClaudeLike.handler},
    matchers={"BeforeTool": _ENDS_SUBAGENT},
    folder_trust=FolderTrust(
        file=".gemini/trustedFolders.json",
        values=("TRUST_FOLDER",),
        parents=("TRUST_PARENT",),
        refused=("DO_NOT_TRUST",),
        switch=(".gemini/settings.json", "security", "folderTrust", "enabled"),
        variable="GEMINI_CLI_TRUST_WORKSPACE",
        how="start gemini in this folder and trust it; where it runs without a terminal, set "
        "GEMINI_CLI_TRUST_WORKSPACE=true",
    ),
    switches={"hooksConfig.enabled": False},
    disabled="hooksConfig.disabled",
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
