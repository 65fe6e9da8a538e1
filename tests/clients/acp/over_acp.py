"""The programs as agents behind `notyet acp`."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from clients.acp.editor import Editor
from clients.claude_code.driver import ClaudeCode
from clients.codex.driver import Codex
from clients.copilot.driver import CopilotCli
from clients.droid.driver import Droid
from clients.gemini.driver import GeminiCli
from clients.goose.driver import Goose
from clients.kimi.driver import KimiCode
from clients.model.script import Say
from clients.model.server import ModelServer
from clients.opencode.driver import OpenCode
from clients.pi.driver import Pi
from clients.qwen.driver import Qwen
from clients.runs import Ran
from clients.vibe.driver import Vibe
from clients.world import NOTYET, plain
from commands import until
from notyet.hosts.acp_agents import ACP_AGENTS

if TYPE_CHECKING:
    from pathlib import Path

    from clients.stops import Stop
    from notyet.hosts.acp_agents import AcpAgent

HELD = "(an answer that comes after the turn was cancelled)"
_OURS = re.compile(r"notyet: .*?(?=\n<turn-context>|$)", re.DOTALL)  # goose adds the time


class OverAcp:
    """What differs where an editor starts a program; its own class is the next one."""

    NAMES_THREADS: ClassVar[bool] = False
    TELLS_ANSWERS: ClassVar[bool] = True
    ARGS: ClassVar[tuple[str, ...]] = ()  # more arguments of the agent
    LOGIN: ClassVar[str] = ""  # the method that its client must choose
    VERSION: ClassVar[int] = 1  # of the protocol

    HIDES_FAILURES: ClassVar[bool] = False  # it says end_turn after a failed call of its model
    WAITS_FOR_MODEL: ClassVar[bool] = False  # a cancelled turn ends when the model has answered

    adapter: Path | None = None  # the program that speaks ACP, where it is another one

    @property
    def row(self) -> AcpAgent:
        """What notyet knows of the agent."""
        return next(agent for agent in ACP_AGENTS if agent.host == self.HOST)  # type: ignore[attr-defined]

    def agent(self, url: str) -> list[str]:
        """Return the agent's command line, as people write it."""
        del url
        return [*self.row.command.split(), *self.ARGS]

    @property
    def environ(self) -> dict[str, str]:
        environ: dict[str, str] = super().environ  # type: ignore[misc]  # of the program's class
        folder = self.folder / "bin"  # type: ignore[attr-defined]
        if not folder.exists():
            folder.mkdir()
            program = self.adapter or self.program  # type: ignore[attr-defined]
            (folder / self.row.program).symlink_to(program)
        return environ | {"PATH": f"{folder}:{NOTYET.parent}:{environ['PATH']}"}

    @contextmanager
    def serving(self, script: Any, *options: str):
        """Start the agent behind the proxy, in a session; yield the client's side and the model."""
        world: Any = self
        with ModelServer(world.WIRE, script) as model:
            world.point_at(model.url)
            line = [str(NOTYET), "acp", *options, "--", *self.agent(model.url)]
            environ = self.environ | world.variables(model.url)
            editor = Editor(line, world.project, environ, world.logs, self.VERSION)
            try:
                editor.begin(self.LOGIN)
                yield editor, model
            finally:
                code = editor.close()
                world.runs.append(Ran(editor.text(), code, "", editor.errors(), model))
                until(lambda: not world.processes(), 10.0)

    def answer(self, out: str) -> str:
        """Return what a client printed, where it is a program of its own."""
        return out

    def decided(self) -> list[Stop]:
        """Return the stops, without those that the agent's own hook left to the proxy."""
        return [stop for stop in self.stops() if stop.why != "supervised"]  # type: ignore[attr-defined]

    def story(self) -> dict[str, list[tuple[str, str]]]:
        """Return what each session's agent said at its stops, and the words that sent it back."""
        stories = {}
        for number, ran in enumerate(self.runs):  # type: ignore[attr-defined]
            asked = ran.model.asked()
            following = [sent_back(request.last) for request in asked[1:]]
            steps = zip((request.step for request in asked), [*following, ""], strict=True)
            stories[str(number)] = [(step.text, words) for step, words in steps if _is_told(step)]
        return {name: self._told(story) for name, story in stories.items() if story}

    def told_by_ledger(self) -> dict[str, list[tuple[str, str]]]:
        """Return the same from the ledger."""
        stories: dict[str, list[tuple[str, str]]] = {}
        for stop in self.decided():
            if stop.why != "model-error":
                words = stop.prompt if stop.verdict == "block" else ""
                stories.setdefault(stop.session_id, []).append((stop.last_message, words))
        return {name: self._told(story) for name, story in stories.items()}

    def _told(self, story: list[tuple[str, str]]) -> list[tuple[str, str]]:
        return [(self._answer_told(said), plain(words)) for said, words in story]  # type: ignore[attr-defined]


def _is_told(step: Any) -> bool:
    return isinstance(step, Say) and step.text != HELD


def sent_back(text: str) -> str:
    """Return our words in what was news to the agent."""
    found = _OURS.search(text)
    return found[0] if found else ""


class ClaudeAcp(OverAcp, ClaudeCode):
    """claude-agent-acp, with the pinned Claude Code in place of the one that it carries."""

    def variables(self, url: str) -> dict[str, str]:
        return super().variables(url) | {
            "CLAUDE_CODE_EXECUTABLE": str(self.program),
            "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "false",  # which asks the model after a turn
        }


class ClaudeAcp2(ClaudeAcp):
    """The same in version 2 of the protocol."""

    VERSION: ClassVar[int] = 2


class CodexAcp(OverAcp, Codex):
    """codex-acp, with the pinned Codex in place of the one that it carries."""

    HIDES_FAILURES: ClassVar[bool] = True

    def variables(self, url: str) -> dict[str, str]:
        return super().variables(url) | {
            "CODEX_PATH": str(self.program),
            "CODEX_ACP_PROMPT_SUGGESTIONS": "false",  # which asks the model after a turn
            "INITIAL_AGENT_MODE": "agent-full-access",  # a sandbox is not to be had everywhere
        }

    def point_at(self, url: str) -> None:
        config = re.sub(r'base_url = "[^"]*"', f'base_url = "{url}/v1"', self.config.read_text())
        self.config.write_text(config)


class CodexAcp2(CodexAcp):
    """The same in version 2 of the protocol."""

    HIDES_FAILURES: ClassVar[bool] = False
    VERSION: ClassVar[int] = 2


class CodexZed(OverAcp, Codex):
    """Zed's own adapter, which has Codex built in."""

    TELLS_ANSWERS: ClassVar[bool] = False  # its warnings are told as words of the agent

    point_at = CodexAcp.point_at


class CopilotAcp(OverAcp, CopilotCli):
    """Copilot CLI."""

    HIDES_FAILURES: ClassVar[bool] = True


class DroidAcp(OverAcp, Droid):
    """Factory Droid."""

    def agent(self, url: str) -> list[str]:
        return [*super().agent(url), *self.where(url)]

    def point_at(self, url: str) -> None:
        """Do nothing: the command line says it."""


class GeminiAcp(OverAcp, GeminiCli):
    """Gemini CLI."""

    LOGIN: ClassVar[str] = "gemini-api-key"


class GooseAcp(OverAcp, Goose):
    """goose."""

    HIDES_FAILURES: ClassVar[bool] = True
    WAITS_FOR_MODEL: ClassVar[bool] = True


class KimiAcp(OverAcp, KimiCode):
    """Kimi Code."""

    HIDES_FAILURES: ClassVar[bool] = True


class OpenCodeAcp(OverAcp, OpenCode):
    """OpenCode."""


class PiAcp(OverAcp, Pi):
    """pi-acp, which starts Pi."""

    HIDES_FAILURES: ClassVar[bool] = True

    @property
    def environ(self) -> dict[str, str]:
        environ = super().environ
        program = self.folder / "bin" / "pi"
        if not program.exists():
            program.symlink_to(self.program)
        return environ

    def point_at(self, url: str) -> None:
        """Let it also say nothing of itself, which may come after the first prompt."""
        super().point_at(url)
        path = self.models.with_name("settings.json")
        settings = json.loads(path.read_text()) | {"quietStartup": True}
        path.write_text(json.dumps(settings))


class QwenAcp(OverAcp, Qwen):
    """Qwen Code."""

    ARGS: ClassVar[tuple[str, ...]] = ("--yolo",)  # else it asks the model about each command
    ITS_FILES: ClassVar[tuple[str, ...]] = ("qwen-socks-*",)

    def settle_in(self) -> None:
        """Let it not ask the model after a turn what the user may say next."""
        super().settle_in()
        path = self.home / ".qwen" / "settings.json"
        settings = json.loads(path.read_text()) | {"ui": {"enableFollowupSuggestions": False}}
        path.write_text(json.dumps(settings, indent=2) + "\n")


class VibeAcp(OverAcp, Vibe):
    """Mistral Vibe."""

    @property
    def adapter(self) -> Path:
        """The program that speaks ACP, which lies beside the other."""
        return self.program.with_name("vibe-acp")
