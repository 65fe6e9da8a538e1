"""Codex (rules W2, G2). It drops an answer that has a key it does not know."""

from __future__ import annotations

from notyet.core.record import replace
from notyet.hosts.host import ClaudeLike, CommandLine, HookFiles, Plugin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.event import StartEvent, StopEvent

_AT_SESSIONS = "hook_event_name=SessionStart|SessionEnd"


class Codex(ClaudeLike, kw_only=True):
    """Codex, whose subagents have a type by default."""

    def read_event(
        self, payload: Mapping[str, Any], environ: Mapping[str, str]
    ) -> StopEvent | StartEvent | None:
        """Read a payload; a subagent without a type has the default one."""
        from notyet.core.matcher import CODEX_DEFAULT

        event = super().read_event(payload, environ)
        if event is None or event.scope == "agent" or event.agent_type is not None:
            return event
        return replace(event, agent_type=CODEX_DEFAULT)


HOST = Codex(
    name="codex",
    title="Codex",
    program="codex",
    proof="proven",
    tested="0.166.0",
    tested_on="2026-11-16",
    oldest=(0, 124, 0),  # hooks are on without a setting
    advised=(0, 140, 0),  # `codex exec` runs them as the terminal does
    # Start events have Claude Code's keys, but always a model.
    signs=(
        "turn_id !scope",
        f"{_AT_SESSIONS} transcript_path~/rollout-",
        f"{_AT_SESSIONS} model permission_mode source !timestamp",
    ),
    failures=(),
    # `session_id` is that of the root, also in a child's events.
    fields={
        **ClaudeLike.fields,
        "turn_id": ("turn_id",),
        "agent_type": ("agent_type",),
        "agent_name": (),
        "background_tasks": (),
    },
    project_variable="",
    silence="{}",
    halt={"continue": False, "stopReason": "{text?}"},
    longest_reason=9_000,  # from 10,000 bytes on, Codex shows a preview and a file
    measured_in="utf-8",
    settings={"user": ".codex/hooks.json", "project": ".codex/hooks.json"},
    plugin=Plugin(
        folder="plugins/cache/*/notyet/*",
        key="plugins",
        trust_name="notyet@notyet:hooks/hooks.json",
        remove="run: codex plugin remove notyet@notyet",
    ),
    home_variable="CODEX_HOME",
    managed="/etc/codex",
    hook_files=HookFiles(
        groups=(
            (("user", ".codex/hooks.json", "codex"),),
            (("user", ".codex/config.toml", "codex-toml"),),
            (("project", ".codex/hooks.json", "codex"),),
            (("project", ".codex/config.toml", "codex-toml"),),
        ),
        formats={"codex": "hooks", "codex-toml": "hooks-toml"},
        matchers="codex",
        hook_shell="bash",
        least_timeout=1.0,
        take_args=False,
    ),
    runs=("codex",),
    inside=("CODEX_SANDBOX", "CODEX_THREAD_ID"),
    command_line=CommandLine(
        start="exec {args} --json -",
        resume="exec {args} --json resume {id} -",
        output="codex-json",
        install="npm install -g @openai/codex",
        unknown=("no rollout found",),
        judge="exec --json --skip-git-repo-check --sandbox read-only --ephemeral -",
        sums_up=True,
        takes_names=True,
    ),
)
