"""Claude Code: its payloads and replies, its settings files, its command line (W1, G1, B8)."""

from __future__ import annotations

import sys

from notyet.hosts.host import ClaudeLike, CommandLine, HookFiles, Plugin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.event import StartEvent, StopEvent

_CONTEXT_SINCE = (2, 1, 163)  # the first version that continues on `additionalContext`
_LONGEST_PART = 9  # digits of one part of a version
_STREAM = "-p --output-format stream-json --verbose"
_JUDGE = (
    "-p --model haiku --output-format json --tools '' --strict-mcp-config --no-session-persistence"
)


class Claude(ClaudeLike, kw_only=True):
    """Claude Code, whose version decides how a block is written."""

    def read_event(
        self, payload: Mapping[str, Any], environ: Mapping[str, str]
    ) -> StopEvent | StartEvent | None:
        """Read a payload, and the version from the environment."""
        from notyet.hosts import wire

        return wire.read_event(self, payload, environ, host_version=_version(environ))

    def block_reply(
        self, prompt: str, event: StopEvent, settings: Mapping[str, str]
    ) -> dict[str, Any]:
        """Prefer context: shown once, without our command line, and the answer survives the cap."""
        from notyet.hosts import wire

        if settings.get(self.name) == "block" or not _takes_context(event.host_version):
            return wire.filled(self.block, wire.prompt_for(prompt, self.longest_reason))
        return wire.added_context(self, prompt, self.event_name(event.scope))


def _version(environ: Mapping[str, str]) -> str | None:
    """Return the version from `AI_AGENT`, e.g. "claude-code_2-1-325_agent"."""
    name, _, rest = environ.get("AI_AGENT", "").partition("_")
    version = rest.partition("_")[0].replace("-", ".")
    return version if name == "claude-code" and version else None


def _takes_context(version: str | None) -> bool:
    parts = (version or "").split(".")
    if not all(part.isdecimal() and len(part) <= _LONGEST_PART for part in parts):
        return False
    return tuple(int(part) for part in parts) >= _CONTEXT_SINCE


HOST = Claude(
    name="claude",
    title="Claude Code",
    program="claude",
    proof="proven",
    tested="2.1.325",
    tested_on="2026-11-16",
    oldest=(2, 0, 42),  # SubagentStop names its agent
    advised=_CONTEXT_SINCE,
    foreign=("timestamp", "cursor_version", "conversation_id", "!transcript_path"),
    cap=8,
    cap_variable="CLAUDE_CODE_STOP_HOOK_BLOCK_CAP",
    measured_in="utf-16",  # longer context is replaced by a preview and a file
    reply_styles=("context", "block"),
    settings={
        "user": ".claude/settings.json",
        "project": ".claude/settings.json",
        "local": ".claude/settings.local.json",
    },
    plugin=Plugin(
        folder="plugins/cache/*/notyet/*", remove="run: claude plugin uninstall notyet@notyet"
    ),
    home_variable="CLAUDE_CONFIG_DIR",
    managed="/Library/Application Support/ClaudeCode"
    if sys.platform == "darwin"
    else "/etc/claude-code",
    hook_files=HookFiles(
        groups=(
            (("user", ".claude/settings.json", "claude"),),
            (("project", ".claude/settings.json", "claude"),),
            (("local", ".claude/settings.local.json", "claude"),),
        ),
        formats={"claude": "hooks"},
        others="not run by notyet: Claude Code runs it itself, other hosts run only commands",
        same_command="once",
    ),
    runs=("claude",),
    inside=("AI_AGENT", "CLAUDECODE", "CLAUDE_CODE_SESSION_ID"),
    command_line=CommandLine(
        start=f"{{args}} {_STREAM} --session-id {{id}}",
        resume=f"{{args}} {_STREAM} --resume {{id}}",
        output="claude-stream",
        install="npm install -g @anthropic-ai/claude-code",
        unknown=("No conversation found",),
        taken="is already in use",
        judge=_JUDGE,
    ),
)
