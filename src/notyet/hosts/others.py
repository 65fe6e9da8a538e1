"""Programs that run agents but do not call notyet: how to run and how to recognise them.

One that gets hooks moves into a module of its own and a row of `TABLE`.
"""

from __future__ import annotations

from notyet.core.record import Record
from notyet.hosts import all_hosts
from notyet.hosts.host import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class CommandLine(Record, kw_only=True):
    """How `notyet with` runs a host without its user interface; the prompt comes on stdin.

    `{args}` and `{id}` stand for the user's arguments and for the id of the conversation. `output`
    names the format of stdout, `unknown` what the host prints about a conversation it does not
    have, and `taken` what it prints if it already has one of this id.
    """

    start: str
    resume: str
    output: str
    install: str  # the command that installs the host
    unknown: tuple[str, ...] = ()
    taken: str = ""
    sums_up: bool = False  # its token counts are those of the whole conversation
    takes_names: bool = False  # an id that is not a UUID names a conversation

    @staticmethod
    def words(form: str, args: Sequence[str], session: str) -> list[str]:
        """Return the arguments of one turn; `form` is `start` or `resume`."""
        out: list[str] = []
        for word in form.split():
            out += args if word == "{args}" else [word.replace("{id}", session)]
        return out

    @property
    def chooses(self) -> bool:
        """Whether we choose the id: then a first turn that was interrupted can be continued."""
        return "{id}" in self.start


OTHERS = (
    Host(
        name="opencode",
        title="OpenCode",
        program="opencode",
        inside=("OPENCODE",),
        command_line={
            "start": "run {args} --format json",
            "resume": "run {args} --format json -s {id}",
            "output": "opencode-json",
            "install": "npm install -g opencode-ai",
            "unknown": ("Session not found",),
        },
    ),
    Host(
        name="qwen",
        title="Qwen Code",
        program="qwen",
        inside=("QWEN_CODE",),
        command_line={
            "start": "{args} -o stream-json --session-id {id}",
            "resume": "{args} -o stream-json --resume {id}",
            "output": "qwen-stream",
            "install": "npm install -g @qwen-code/qwen-code",
            "unknown": ("No saved session found",),
            "taken": "already in use",
        },
    ),
    Host(
        name="copilot",
        title="GitHub Copilot CLI",
        program="copilot",
        inside=("COPILOT_CLI",),
        command_line={  # continues the conversation of this id if there is one
            "start": "{args} --output-format json --session-id {id}",
            "resume": "{args} --output-format json --session-id {id}",
            "output": "copilot-json",
            "install": "npm install -g @github/copilot",
        },
    ),
    Host(name="amp", title="Amp", program="amp"),
    Host(name="crush", title="Crush", program="crush", inside=("CRUSH",)),
    Host(name="cursor", title="Cursor", program="cursor-agent", inside=("CURSOR_AGENT",)),
    Host(name="droid", title="Factory Droid", program="droid"),
    Host(name="goose", title="goose", program="goose"),
    Host(name="neovate", title="Neovate", program="neovate"),
    Host(name="xum", title="Xum", program="xum"),
)


def every_program() -> list[Host]:
    """Return all programs that are known to run agents."""
    return [*all_hosts(), *OTHERS]


def headless() -> dict[str, tuple[str, CommandLine]]:
    """Return the programs that `notyet with` can run: by name, the program and how to run it."""
    return {
        host.name: (host.program, CommandLine(**host.command_line))
        for host in every_program()
        if host.command_line
    }
