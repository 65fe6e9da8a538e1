"""OpenHands, measured on SDK 1.58.0 and command line 1.16.0 (docs/how-to/openhands.md).

It has no event for subagents, no cap, and no turn id; it shows no notes. `decision: block` does
not hold its agents and `continue: false` does: neither is written.
"""

from __future__ import annotations

from notyet import light
from notyet.core.record import variant
from notyet.hosts.host import ClaudeLike, CommandLine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.event import StartEvent, StopEvent

_MOST_FILES = 20  # events at the end of a conversation, one of which is the answer


class OpenHands(ClaudeLike, kw_only=True):
    """OpenHands, whose folder of a conversation has the answer that its payload lacks."""

    def read_event(
        self, payload: Mapping[str, Any], environ: Mapping[str, str]
    ) -> StopEvent | StartEvent | None:
        """Read a payload, and of a stop the answer."""
        event = super().read_event(payload, environ)
        if event is None or self.event_in(payload) in self.starts:
            return event
        answer = _answer_in(_folder(event.session_id, environ))
        return variant(event, {"last_message": answer}) if answer else event


HOST = OpenHands(
    name="openhands",
    title="OpenHands",
    program="openhands",
    proof="proven",
    tested="SDK 1.58.0",
    tested_on="2026-11-16",
    signs=("event_type working_dir metadata",),
    holds={"agent": "yes", "subagent": "no"},
    stops={"Stop": "agent"},
    starts={"SessionStart": "agent"},
    failures=(),  # a failed model call ends the run without an event
    ignored=("SessionEnd",),
    fields={
        "event": ("event_type",),
        "session_id": ("session_id",),
        "cwd": ("working_dir",),
        "source": (),
        "background_tasks": (),
    },
    flag_is_reliable=False,  # there is none
    project_variable="OPENHANDS_PROJECT_DIR",
    block={"decision": "deny", "reason": "{text}"},
    halt={},
    context={"additionalContext": "{text}"},
    note="",
    settings={"user": ".openhands/hooks.json", "project": ".openhands/hooks.json"},
    project_hides_user=True,
    project_wins=True,
    home_variable="OH_PERSISTENCE_DIR",
    timeout=60.0,
    command_line=CommandLine(  # begins the conversation of this id if there is none
        start="{args} --headless --json --resume {id} --task={prompt}",
        resume="{args} --headless --json --resume {id} --task={prompt}",
        output="openhands-json",
        install="pip install openhands",
        answers_early=True,
    ),
)


def _folder(session: str, environ: Mapping[str, str]) -> str:
    """Return the folder in which its command line keeps the events of a conversation."""
    name = session.replace("-", "")
    if not name.isalnum():
        return ""
    usual = light.join(environ.get("HOME", ""), ".openhands", "conversations")
    return light.join(environ.get("OPENHANDS_CONVERSATIONS_DIR") or usual, name, "events")


def _answer_in(folder: str) -> str:
    """Return what the agent said last: a message, or what it called the tool `finish` with."""
    from notyet.hosts.transcript import joined, table_in, values_in

    try:
        names = sorted(light.listdir(folder), reverse=True) if folder else []
    except (OSError, ValueError):
        return ""
    for name in names[:_MOST_FILES]:
        for event in values_in(light.join(folder, name), b'"source":"agent"'):
            said = table_in(table_in(event).get("llm_message"))
            done = table_in(table_in(event).get("action"))
            if said.get("role") == "assistant":
                return joined(said.get("content"))
            if done.get("kind") == "FinishAction":
                return joined(done.get("message"))
    return ""
