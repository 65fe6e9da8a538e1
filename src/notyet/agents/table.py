"""The command-line agents, one row each: how to start, how to continue, how to read.

All of them read a prompt from their stdin, so one that begins with a dash, or is a megabyte
long, arrives as it is.
"""

from __future__ import annotations

from notyet.agents import formats
from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.agents.formats import Read

ARGS, ID = "{args}", "{id}"  # stand for the user's arguments, and for the conversation


class CommandLine(Record, kw_only=True):
    """One agent: the words of its command line, and the format of its output."""

    program: str
    start: tuple[str, ...]
    resume: tuple[str, ...]
    read: Read
    install: str  # what to do where it is missing
    unknown: tuple[str, ...] = ()  # what it says of a conversation that it does not have
    taken: str = ""  # what it says when it has a conversation of this id already
    sums_up: bool = False  # its figures are those of the whole conversation
    takes_names: bool = False  # what is no UUID names a conversation, and begins it where it must

    @property
    def chooses(self) -> bool:
        """Whether we choose the id: then a first turn that was cut off can be continued."""
        return ID in self.start


_STREAM = ("-p", "--output-format", "stream-json", "--verbose")

TABLE: dict[str, CommandLine] = {
    "claude": CommandLine(
        program="claude",
        start=(ARGS, *_STREAM, "--session-id", ID),
        resume=(ARGS, *_STREAM, "--resume", ID),
        read=formats.read_claude,
        install="npm install -g @anthropic-ai/claude-code",
        unknown=("No conversation found",),
        taken="is already in use",
    ),
    "codex": CommandLine(
        program="codex",
        start=("exec", ARGS, "--json", "-"),
        resume=("exec", ARGS, "--json", "resume", ID, "-"),
        read=formats.read_codex,
        install="npm install -g @openai/codex",
        unknown=("no rollout found",),
        sums_up=True,
        takes_names=True,
    ),
    "gemini": CommandLine(
        program="gemini",
        start=(ARGS, "-o", "stream-json", "--session-id", ID),
        resume=(ARGS, "-o", "stream-json", "-r", ID),
        read=formats.read_gemini,
        install="npm install -g @google/gemini-cli",
        unknown=("No previous sessions found", "Invalid session identifier"),
        taken="already exists",
    ),
    "opencode": CommandLine(
        program="opencode",
        start=("run", ARGS, "--format", "json"),
        resume=("run", ARGS, "--format", "json", "-s", ID),
        read=formats.read_opencode,
        install="npm install -g opencode-ai",
        unknown=("Session not found",),
    ),
    "qwen": CommandLine(
        program="qwen",
        start=(ARGS, "-o", "stream-json", "--session-id", ID),
        resume=(ARGS, "-o", "stream-json", "--resume", ID),
        read=formats.read_qwen,
        install="npm install -g @qwen-code/qwen-code",
        unknown=("No saved session found",),
        taken="already in use",
    ),
    "copilot": CommandLine(  # which continues a conversation of this id where it has one
        program="copilot",
        start=(ARGS, "--output-format", "json", "--session-id", ID),
        resume=(ARGS, "--output-format", "json", "--session-id", ID),
        read=formats.read_copilot,
        install="npm install -g @github/copilot",
    ),
}


def words(form: Sequence[str], args: Sequence[str], session: str) -> list[str]:
    """Return the arguments of one turn."""
    out: list[str] = []
    for word in form:
        out += args if word == ARGS else [word.replace(ID, session)]
    return out
