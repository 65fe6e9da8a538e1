"""Claude Code, run without a terminal against our model."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, ClassVar

from clients.model import anthropic
from clients.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from clients.model.script import Request
    from clients.runs import Ran

_NOTE = re.compile(r"(?:Subagent)?Stop says: (.*)", re.DOTALL)


class ClaudeCode(World):
    """The real program in a scratch home."""

    HOST: ClassVar[str] = "claude"
    WIRE: ClassVar[Any] = anthropic
    NAMES_THREADS: ClassVar[bool] = True
    SHOWS_NOTES: ClassVar[bool] = True
    ITS_FILES: ClassVar[tuple[str, ...]] = ("claude-*", "cc-socks*")

    def line(self, prompt: str, args: tuple[str, ...], url: str) -> list[str]:
        return [
            str(self.program),
            "-p",
            prompt,
            "--output-format",
            "stream-json",
            "--verbose",
            "--include-hook-events",
            "--dangerously-skip-permissions",
            *args,
        ]

    def variables(self, url: str) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "dummy",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "IS_SANDBOX": "1",  # else it refuses to skip permissions for root
        }

    def answer(self, out: str) -> str:
        results = [event for event in events(out) if event.get("type") == "result"]
        return str(results[-1].get("result", "")) if results else ""

    def thread(self, request: Request) -> str:
        """Every request names its session, and its agent unless that is the main one."""
        headers = request.headers
        return headers.get("x-claude-code-agent-id") or headers["x-claude-code-session-id"]

    def write_settings(self, **settings: Any) -> None:
        """Write the user's settings anew."""
        self.settings.parent.mkdir(exist_ok=True)
        self.settings.write_text(json.dumps(settings, indent=2))

    def change_settings(self, **more: dict[str, Any]) -> None:
        """Add to the user's settings."""
        known = json.loads(self.settings.read_text())
        self.write_settings(**known | {key: known.get(key, {}) | more[key] for key in more})

    @property
    def settings(self) -> Path:
        """The user's settings."""
        return self.home / ".claude" / "settings.json"

    def define_agent(self, name: str) -> None:
        folder = self.project / ".claude" / "agents"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.md").write_text(
            f"---\nname: {name}\ndescription: does what it is told\n---\nDo what you are told.\n"
        )

    def replies(self, ran: Ran, event_name: str = "Stop") -> list[dict[str, Any]]:
        """Return what our hook answered to each event of a kind, as the program read it."""
        heard = [event for event in events(ran.out) if event.get("subtype") == "hook_response"]
        own = [event for event in heard if event["hook_event"] == event_name]
        return [json.loads(event["stdout"] or "{}") for event in own]

    def notes(self, ran: Ran) -> list[str]:
        """Return what the stream shows; of the older version's, only what the hook answered."""
        if self.version == "2.1.197":
            said = [*self.replies(ran), *self.replies(ran, "SubagentStop")]
            return [reply["systemMessage"] for reply in said if "systemMessage" in reply]
        shown = [_NOTE.fullmatch(str(event.get("content", ""))) for event in events(ran.out)]
        return [note[1] for note in shown if note]


def events(out: str) -> list[dict[str, Any]]:
    """Return what a run said in its stream."""
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]
