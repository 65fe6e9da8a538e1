"""Recognise notyet's own command line in settings, by the mark that every such line carries.

The mark is our program followed by `hook` or `conclaude`. A line with the mark is ours; a line that
is nothing but our call (`is_plain`) may also be replaced and removed by `install`.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notyet.hosts import HOSTS, all_hosts

if TYPE_CHECKING:
    from notyet.hosts.host import Host

LAUNCHER = "launch.py"  # the file name of the launcher that `install` writes
LOOKUP = "command -v notyet >/dev/null 2>&1 || exit 0; exec "  # starts the portable line
ISOLATED = ("-I", "-S")  # Python's options without which it imports modules from elsewhere
# What every host shows its user, if the launcher or its Python is missing. Codex shows no stderr.
_GONE = (
    """ || echo '{"%s": "notyet: NOT CHECKED: notyet was removed or moved; """
    """install it, then run: notyet install %s"}'"""
)
_GUARDED = re.compile(
    r"test -[rf] (?P<file>.+?) && (?:test -x (?P<python>.+?) && )?exec (?P<call>.+ (?P=file) .*?)"
    + re.escape(_GONE).replace("%s", r"[A-Za-z_]+").join(("(?:", ")?"))
)
_IN_COPILOT = 'test -n "$COPILOT_PROJECT_DIR" && '
# The line of a plugin, which says so where notyet is missing. Claude Code shows it to the agent
# when it blocks, so it is short.
_OF_PLUGIN = re.compile(
    r"command -v notyet >/dev/null && exec (?P<call>notyet [^|;&]*?) \|\| "
    rf"(?:{re.escape(_IN_COPILOT)}echo '[^']*' \|\| )?echo '[^']*'"
)
_MISSING = "notyet: NOT CHECKED: the program notyet is not on your PATH; install it"
_IN_SHELL = re.compile(rf"sh -c '{re.escape(LOOKUP)}([^']*)'")
_VERBS = ("hook", *(host.name for host in all_hosts() if host.is_command))
# A version may follow the name (`uvx notyet@1.2 hook`), and a lookup may surround it.
_LAUNCH = r"/notyet/(?:[0-9a-f]{12}/)?launch\.py"
_OURS = rf"""(?<![\w.-])notyet(?:[@=\[<>~!][^\s'"]*)?|/notyet/__main__\.py|{_LAUNCH}"""
_MARK = re.compile(rf"""(?:{_OURS})['"`)]*\s+(?P<verb>{"|".join(_VERBS)})(?![\w./-])""")
_PROGRAM = re.compile(rf".*(?:{_OURS})", re.DOTALL)
_PYTHON = re.compile(r"(?:.*/)?(?:python|pypy|py)[\d.]*")
_LAUNCHER = re.compile(f".*{_LAUNCH}", re.DOTALL)
# Words that a shell only splits and unquotes, or replaces by the value of a variable.
_WORD = r"""(?:'[^']*'|"[^"`\\(]*"|[^\s'"\\`;&|<>()#])+"""
_WORDS = re.compile(rf"{_WORD}(?:[ \t]+{_WORD})*")
_EXPANDED = re.compile(r"[$`~*?]")
_END = re.compile(r"[;&|<>()\n]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_RUNNERS = ("exec", "env", "uv", "uvx", "pipx", "run", "tool", "nice", "nohup")


@dataclass(frozen=True, kw_only=True)
class NotyetLine:
    """What a command line of ours says."""

    verb: str  # `hook`, or the name of a host that is a command
    start: tuple[str, ...] = ()  # the words before the verb; empty unless `is_plain`
    host: str = ""
    timeout: float | None = None
    config: str | None = ""  # the file of `--config`; None if only a shell can tell
    via: str = ""  # "plugin": it stands aside where settings register notyet too (B12)
    is_portable: bool = False  # does nothing where notyet is missing
    is_plain: bool = False  # the line does nothing but call us

    @property
    def program(self) -> str:
        """The program that the line starts, as written; empty if only a shell can tell."""
        words = [word for word in self.start if not _ASSIGNMENT.fullmatch(word)]
        first = words[0] if words else ""
        return "" if _EXPANDED.search(first) or first in _RUNNERS else first

    @property
    def launcher(self) -> str:
        """The launcher that a Python runs; empty if the line has none."""
        return self.start[-1] if self.start and _LAUNCHER.fullmatch(self.start[-1]) else ""


def notyet_line(command: str) -> NotyetLine | None:
    """Read a command line of ours; None if it does not carry our mark."""
    mark = _MARK.search(command)
    if mark is None:
        return None
    is_portable = LOOKUP in command
    inner = _IN_SHELL.fullmatch(command)
    guarded = _GUARDED.fullmatch(_unwrapped(command)) or _OF_PLUGIN.fullmatch(command)
    words = _words(inner[1] if inner else guarded["call"] if guarded else command)
    verb = next((at for at, word in enumerate(words) if word in _VERBS and _is_call(words[:at])), 0)
    rest = words[verb + 1 :] if verb else _words(_END.split(command[mark.end() :])[0])
    options = _options(rest)
    config = options.get("--config", "")
    return NotyetLine(
        verb=mark["verb"],
        start=tuple(words[:verb]),
        host=options["--host"] if options.get("--host") in HOSTS else "",
        timeout=_seconds(options.get("--timeout", "")),
        config=None if _EXPANDED.search(config) else config,
        via=options.get("--via", ""),
        is_portable=is_portable,
        is_plain=bool(verb),
    )


def is_notyets(command: str) -> bool:
    """Return True if a command line carries our mark."""
    return _MARK.search(command) is not None


def is_notyets_hook(command: str) -> bool:
    """Return True if a line does nothing but call `notyet hook`, so it may be replaced."""
    line = notyet_line(command)
    return line is not None and line.is_plain and line.verb == "hook"


def or_gone(command: str, host: Host) -> str:
    """Return a command that says so if the launcher or the Python that it starts is gone."""
    gone = _GONE % (host.note or "systemMessage", host.name)
    return command + gone if _GUARDED.fullmatch(command) else command


def one_command(line: str) -> str:
    """Return a line as one plain command, all of which gets what is on stdin."""
    return f"sh -c {shlex.quote(line)}" if _GUARDED.fullmatch(line) else line


def _unwrapped(command: str) -> str:
    """Return the line that `one_command` made a command of; any other line as it is."""
    if not command.startswith("sh -c '"):
        return command
    try:
        words = shlex.split(command)
    except ValueError:  # an open quote
        return command
    return words[2] if len(words) == 3 else command  # noqa: PLR2004  # sh, -c and the line


def portable_line(rest: str) -> str:
    """Return a command for every shell, which does nothing where notyet is missing."""
    return f"sh -c {shlex.quote(f'{LOOKUP}notyet {rest}')}"


def plugin_line(rest: str, start: str = "") -> str:
    """Return the command of a plugin, which tells the user where notyet is missing.

    At `start`, the event of a session's start, the agent is told, too: some hosts show users
    nothing. Copilot wants that under a key that Codex refuses.
    """
    reply: dict[str, object] = {"systemMessage": _MISSING}
    between = ""
    if start:
        told = f"{_MISSING}. Tell your user that nothing checks your work."
        reply["hookSpecificOutput"] = {"hookEventName": start, "additionalContext": told}
        between = f"{_IN_COPILOT}echo '{json.dumps({'additionalContext': told})}' || "
    last = f"echo '{json.dumps(reply)}'"
    return f"command -v notyet >/dev/null && exec notyet {rest} || {between}{last}"


def _words(line: str) -> list[str]:
    """Split a line that has no shell operators; an empty list for every other line."""
    line = line.strip()
    return shlex.split(line) if _WORDS.fullmatch(line) else []


def _is_call(words: list[str]) -> bool:
    """Return True if these words start notyet, and nothing else."""
    while words and (_ASSIGNMENT.fullmatch(words[0]) or words[0] in _RUNNERS):
        words = words[1:]
    if len(words) == 1:
        return _PROGRAM.fullmatch(words[0]) is not None
    if not words or not _PYTHON.fullmatch(words[0]) or not _PROGRAM.fullmatch(words[-1]):
        return False
    return all(word.startswith("-") for word in words[1:-1])


def _options(words: list[str]) -> dict[str, str]:
    found = {}
    for at, word in enumerate(words):
        name, sign, value = word.partition("=")
        if name.startswith("--"):
            found[name] = value if sign else "".join(words[at + 1 : at + 2])
    return found


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if seconds > 0 else None
