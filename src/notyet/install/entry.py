"""What is registered: one command for each event, and how such a command is read again."""

from __future__ import annotations

import shlex

from notyet.core.record import Record
from notyet.hosts import HOSTS
from notyet.hosts.own_command import at_verb, is_launcher, ours_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STOPS = ("Stop", "SubagentStop")
STARTS = ("SessionStart", "SubagentStart")
EVENTS = (*STOPS, *STARTS)
START_TIMEOUT = 30  # seconds; a start only tells the agent of its gates
_SHORTEST_LOOKUP = "command -v notyet >/dev/null 2>&1 || exit 0; exec "


class Entry(Record, kw_only=True):
    """One registration: at this event, run this command, and wait so many seconds for it."""

    event: str
    command: str
    timeout: int

    @property
    def handler(self) -> dict[str, Any]:
        """What stands in a settings file."""
        return {"type": "command", "command": self.command, "timeout": self.timeout}


class Ours(Record, kw_only=True):
    """What a command of ours says. `program` is as it was written: a path, or a name to look up;
    empty where only a shell could tell, as for `$HOME/bin/notyet`.
    """

    program: str = ""
    verb: str = "hook"  # or "conclaude"
    host: str = ""
    timeout: float | None = None
    is_portable: bool = False  # does nothing where notyet is missing
    launcher: str = ""  # the file that a Python is to run, if it is our launcher


def entries(host: str, start: str, timeout: int) -> tuple[Entry, ...]:
    """Return what is registered with a host; `start` empty: the line that works everywhere."""
    made = []
    for event in EVENTS:
        seconds = timeout if event in STOPS else min(timeout, START_TIMEOUT)
        rest = f"hook --host {host} --timeout {seconds}"
        command = f"{start} {rest}" if start else portable(rest)
        made.append(Entry(event=event, command=command, timeout=seconds))
    return tuple(made)


def portable(rest: str) -> str:
    """Return a command for every shell, which does nothing where notyet is missing."""
    return f"sh -c {shlex.quote(f'{_SHORTEST_LOOKUP}notyet {rest}')}"


def parsed(command: str) -> Ours | None:
    """Read a command of ours; None when it is not ours."""
    words = ours_in(command)
    if words is None:
        return None
    verb = at_verb(words)
    script = words[verb - 1]
    options = _options(words[verb + 1 :])
    host = options.get("--host", "")
    try:
        timeout = float(options.get("--timeout", ""))
    except ValueError:
        timeout = 0.0
    return Ours(
        program="" if any(sign in words[0] for sign in "$`~*?") else words[0],
        verb=words[verb],
        host=host if host in HOSTS else "",
        timeout=timeout if timeout > 0 else None,
        is_portable=_SHORTEST_LOOKUP in command,
        launcher=script if is_launcher(script) else "",
    )


def _options(words: list[str]) -> dict[str, str]:
    found = {}
    for at, word in enumerate(words):
        name, sign, value = word.partition("=")
        if name.startswith("--"):
            found[name] = value if sign else "".join(words[at + 1 : at + 2])
    return found
