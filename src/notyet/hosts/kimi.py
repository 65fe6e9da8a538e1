"""Kimi Code, measured on 2.1.0: `kimi -p` with a scripted model (docs/how-to/kimi.md).

It asks once a turn: the stop after a send-back has no event. So its `stop_hook_active`, which is
always false, is right: each stop that we see is the first of its turn. Subagents stop by the event
of main agents, in the same session; the files of the session tell whose stop it is.
"""

from __future__ import annotations

from notyet.hosts.host import ClaudeLike, CommandLine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.event import StartEvent, StopEvent

_ENDED = b'"type":"agent.turn.ended"'  # in the last line of the agent that stops
_MAIN = "main"
_LAG, _PAUSE = 1.0, 0.02  # seconds


class Kimi(ClaudeLike, kw_only=True):
    """Kimi Code, which says in its files which agent of a session stops."""

    def read_event(
        self, payload: Mapping[str, Any], environ: Mapping[str, str]
    ) -> StopEvent | StartEvent | None:
        """Read a payload, and of a stop find the files of the session's agents."""
        from notyet.core.event import StopEvent
        from notyet.core.record import replace
        from notyet.hosts.transcript import files_below

        event = super().read_event(payload, environ)
        if not isinstance(event, StopEvent) or "/" in event.session_id:
            return event
        home = environ.get(self.home_variable) or f"{environ.get('HOME', '')}/.kimi-code"
        found = files_below(f"{home}/sessions", f"{event.session_id}/agents")
        agents = files_below(found[0], "wire.jsonl") if found else []
        files = {path.split("/")[-2]: path for path in agents}
        event = replace(event, transcript_path=files.get(_MAIN))
        own = _stopping(files)
        if own == _MAIN:
            return event
        return replace(
            event,
            scope="subagent",
            agent_id=own,
            agent_type=_type_in(files[own]),
            agent_transcript_path=files[own],
        )


def _stopping(files: Mapping[str, str]) -> str:
    """Return the agent whose file ends with its turn, which may be written a moment after."""
    from time import monotonic, sleep

    ends = monotonic() + _LAG
    while True:
        for name in (_MAIN, *sorted(files)):
            if _has_ended(files.get(name)):
                return name
        if not files or monotonic() > ends:
            return _MAIN
        sleep(_PAUSE)


def _has_ended(path: str | None) -> bool:
    from notyet.hosts.transcript import ends_of

    return _ENDED in ends_of(path)[1].rstrip(b"\n").rpartition(b"\n")[2]


def _type_in(path: str) -> str | None:
    """Return the type of a subagent, from one of the first lines of its file."""
    from notyet.hosts.transcript import ends_of, entry_in
    from notyet.hosts.wire import text

    for line in ends_of(path)[0].split(b"\n"):
        if b'"profile.bind"' in line:
            return text(entry_in(line), "profileName")
    return None


HOST = Kimi(
    name="kimi",
    title="Kimi Code",
    program="kimi",
    proof="proven",
    tested="2.1.0",
    tested_on="2026-11-16",
    holds={"agent": "once a turn", "subagent": "once a turn"},
    signs=("client_type=kimi_code_cli",),
    stops={"Stop": "agent"},
    starts={"SessionStart": "agent"},
    ignored=("SubagentStart", "SubagentStop", "SessionEnd"),
    fields={
        **ClaudeLike.fields,
        "turn_id": (),
        "agent_id": (),
        "agent_type": (),
        "agent_name": (),
        "last_message": (),
        "transcript_path": (),
        "agent_transcript_path": (),
        "permission_mode": (),
        "error": ("error_message", "error_type"),
        "background_tasks": (),
    },
    project_variable="",
    cap=2,
    block={},  # only exit code 2 with stderr: `decision: block` is not understood
    halt={},
    context={},
    note="",
    settings={"user": ".kimi-code/config.toml"},
    layout="list",
    # Any other key makes it ignore all hooks, and so does a longer timeout.
    handler={"event": "{event}", "command": "{command}", "timeout": "{timeout}"},
    longest_timeout=600.0,
    home_variable="KIMI_CODE_HOME",
    timeout=30.0,
    command_line=CommandLine(
        start="{args} --output-format stream-json --prompt={prompt}",
        resume="{args} --output-format stream-json --session {id} --prompt={prompt}",
        output="kimi-stream",
        install="npm install -g @moonshot-ai/kimi-code",
        unknown=('" not found.',),
    ),
)
