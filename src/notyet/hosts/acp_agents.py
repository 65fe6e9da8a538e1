"""Agents that speak ACP: what an editor starts, and what we know of each.

Hooks do not load this module. `notyet acp` gates any agent; a row here makes its events count under
the name of its host, tells its failed calls from finished turns, and names it in `notyet hosts`.
"""

from __future__ import annotations

from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class AcpAgent(Record, kw_only=True):
    """One agent that speaks ACP."""

    host: str  # the host whose agent it is; its hooks name sessions alike
    command: str  # the program and its arguments
    install: str = ""  # the command that installs it, if it is not the host's own program
    tested: str = ""  # the newest version that our tests drove through `notyet acp`
    tested_on: str = ""
    runs_hook: bool = False  # it runs its own stop hook too, which leaves the stop to the proxy
    sums_up: bool = False  # its token counts are those of the whole session
    failures: tuple[str, ...] = ()  # how its words begin after a failed call of its model

    @property
    def program(self) -> str:
        """The program that speaks."""
        return self.command.split()[0]


ACP_AGENTS = (
    AcpAgent(
        host="claude",
        command="claude-agent-acp",
        install="npm install -g @agentclientprotocol/claude-agent-acp",
        tested="0.99.1",
        tested_on="2026-11-18",
        runs_hook=True,
    ),
    AcpAgent(
        host="codex",
        command="codex-acp",
        install="npm install -g @agentclientprotocol/codex-acp",
        tested="2.6.0",
        tested_on="2026-11-18",
        runs_hook=True,
    ),
    AcpAgent(
        host="copilot",
        command="copilot --acp",
        tested="1.0.102",
        tested_on="2026-11-18",
        runs_hook=True,
        sums_up=True,
        failures=("Error: ",),
    ),
    AcpAgent(
        host="droid",
        command="droid exec --output-format acp",
        tested="0.225.2",
        tested_on="2026-11-18",
        runs_hook=True,
    ),
    AcpAgent(
        host="gemini",
        command="gemini --acp",
        tested="0.61.0",
        tested_on="2026-11-18",
        runs_hook=True,
    ),
    AcpAgent(
        host="goose",
        command="goose acp",
        tested="1.52.0",
        tested_on="2026-11-18",
        runs_hook=True,
        failures=("Ran into this error",),
    ),
    AcpAgent(
        host="kimi",
        command="kimi acp",
        tested="2.1.0",
        tested_on="2026-11-18",
        runs_hook=True,
    ),
    AcpAgent(
        host="opencode",
        command="opencode acp",
        tested="1.18.33",
        tested_on="2026-11-18",
    ),
    AcpAgent(
        host="pi",
        command="pi-acp",
        install="npm install -g pi-acp",
        tested="0.0.34",
        tested_on="2026-11-18",
        runs_hook=True,
    ),
    AcpAgent(
        host="qwen",
        command="qwen --acp",
        tested="0.24.4",
        tested_on="2026-11-18",
        runs_hook=True,
    ),
    AcpAgent(
        host="vibe",
        command="vibe-acp",
        tested="3.0.2",
        tested_on="2026-11-18",
        runs_hook=True,
    ),
)


def acp_agent(argv: Sequence[str]) -> AcpAgent | None:
    """Return the agent that a command line starts; None for one that is not known.

    The program may be started by another one, as in `npx @agentclientprotocol/codex-acp`.
    """
    names = {word.rpartition("/")[2].partition("@")[0] for word in argv}
    return next((agent for agent in ACP_AGENTS if agent.program in names), None)


def acp_of(host: str) -> AcpAgent | None:
    """Return a host's agent; None for a host that has none."""
    return next((agent for agent in ACP_AGENTS if agent.host == host), None)
