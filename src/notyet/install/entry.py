"""What is registered: one command for each event, and how such a command is read again."""

from __future__ import annotations

import os
import re
import shlex

from notyet.core.record import Record
from notyet.dialects import HOSTS
from notyet.dialects.own_command import at_verb, ours_in
from notyet.errors import NotyetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STOPS = ("Stop", "SubagentStop")
STARTS = ("SessionStart", "SubagentStart")
EVENTS = (*STOPS, *STARTS)
START_TIMEOUT = 30  # seconds; a start only tells the agent of its gates
_SHORTEST_LOOKUP = "command -v notyet >/dev/null 2>&1 || exit 0; exec "
# Folders that a tool makes for one run, and may clear at any time. Those of uv have usual names.
_OF_UV = re.compile(r"/(archive|environments|builds)-v\d+/")
_THROWN_AWAY = (
    (_OF_UV, "uvx", "uv tool install notyet"),
    (re.compile(r"/pipx/\.cache/|/(\.cache|Caches)/pipx/"), "pipx run", "pipx install notyet"),
)


class NoCommand(NotyetError):  # noqa: N818  # named after what happened
    """There is no command that would still work tomorrow; the message says what to do."""


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


class Start(Record, kw_only=True):
    """How notyet is started, up to `hook`; and what a person should know of that."""

    line: str
    note: str = ""


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
    )


def _options(words: list[str]) -> dict[str, str]:
    found = {}
    for at, word in enumerate(words):
        name, sign, value = word.partition("=")
        if name.startswith("--"):
            found[name] = value if sign else "".join(words[at + 1 : at + 2])
    return found


def absolute_start(argv0: str, prefix: str, python: str, main: str) -> Start:
    """Return a start that outlives upgrades of notyet and of Python. Raises NoCommand.

    That is the script by which notyet was called, with its symbolic links: pipx and uv keep
    theirs in one place, whatever lies behind it.
    """
    script = os.path.abspath(argv0)
    if os.path.basename(argv0) != "notyet" or not os.access(script, os.X_OK):
        script = os.path.join(prefix, "bin", "notyet")
    for part, tool, better in _THROWN_AWAY:
        if any(_is_within(part, path) for path in (f"{prefix}/", script)):
            raise NoCommand(
                f"this is {tool}'s throw-away copy of notyet ({prefix}), which will be gone; "
                f"run `{better}`, and then this command again"
            )
    if os.path.isfile(script) and os.access(script, os.X_OK):
        return Start(line=_quoted(script))
    if not os.path.isabs(python):
        raise NoCommand(
            f"there is no {script}, and this Python does not know where it is; "
            "start notyet with a Python by its whole path, or install it"
        )
    words = (python, "-I", "-S", os.path.abspath(main))
    note = f"there is no {script}, so hooks run {words[-1]} with {python}"
    return Start(line=" ".join(_quoted(word) for word in words), note=note)


def _is_within(part: re.Pattern[str], path: str) -> bool:
    found = part.search(path)
    if found is None or part is not _OF_UV:
        return found is not None
    cache = path[: found.start()]
    return os.path.basename(cache) == "uv" or os.path.exists(os.path.join(cache, "CACHEDIR.TAG"))


def _quoted(word: str) -> str:
    try:
        word.encode()
    except UnicodeEncodeError:
        raise NoCommand(
            f"the path {os.fsencode(word)!r} is not UTF-8, so it cannot stand in a settings file; "
            "install notyet in another folder"
        ) from None
    return shlex.quote(word)
