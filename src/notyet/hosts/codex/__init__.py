"""Codex (rules W2, G2). It drops an answer that has a key it does not know."""

from __future__ import annotations

from notyet.core.gate import CODEX_DEFAULT
from notyet.hosts.host import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Codex(Host):
    """Codex, which halts without a reason too."""

    def halt(self, reason: str) -> dict[str, Any]:
        """Return the JSON that ends an agent's turn."""
        return super().halt(reason) if reason.strip() else {"continue": False}


HOST = Codex(
    name="codex",
    title="Codex",
    program="codex",
    tested="0.154.0",
    oldest=(0, 124, 0),  # hooks are on without a setting
    advised=(0, 140, 0),  # `codex exec` runs them as the terminal does
    failures=(),
    # `session_id` is that of the root, also in a child's events.
    fields={
        "turn_id": ("turn_id",),
        "agent_type": ("agent_type",),
        "agent_name": (),
        "model": ("model",),
        "background_tasks": (),
    },
    subagent_type=CODEX_DEFAULT,
    project_variable="",
    longest_reason=9_000,  # from 10,000 bytes on, Codex shows a preview and a file
    measured_in="utf-8",
    home_variable="CODEX_HOME",
    settings={"user": ".codex/hooks.json", "project": ".codex/hooks.json"},
    settings_module="notyet.hosts.codex.settings",
    files=(
        (("user", ".codex/hooks.json", "codex"),),
        (("user", ".codex/config.toml", "codex-toml"),),
        (("project", ".codex/hooks.json", "codex"),),
        (("project", ".codex/config.toml", "codex-toml"),),
    ),
    formats={"codex": "hooks", "codex-toml": "hooks-toml"},
    matchers="codex",
    hook_shell="bash",
    least_timeout=1.0,
    hooks_take_args=False,
    runs=("codex",),
    inside=("CODEX_SANDBOX", "CODEX_THREAD_ID"),
    command_line={
        "start": "exec {args} --json -",
        "resume": "exec {args} --json resume {id} -",
        "output": "codex-json",
        "install": "npm install -g @openai/codex",
        "unknown": ("no rollout found",),
        "sums_up": True,
        "takes_names": True,
    },
)
