"""Globs that match no file: git is asked about many of them at once."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

from notyet.config.document import Mistake
from notyet.config.files import NAME, user_folder
from notyet.core.event import SCOPES
from notyet.core.gate import Command, place_of
from notyet.core.text import visible
from notyet.git.run import HARMLESS, QUIET, own_environ
from notyet.run.shell import commands
from notyet.status.gated import leaves_nobody
from notyet.status.waits import time_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from notyet.config.document import Document, Path
    from notyet.config.settings import Settings
    from notyet.core.gate import Gate
    from notyet.status.waits import Wait

NO_FILE = "matches no file that git looks at"
_OUTSIDE = "leads out of the repository, so that nobody can tell whether it changed"
_PATIENCE = 20.0  # seconds for git
_AT_ONCE = 200  # globs; together they must not be longer than arguments may be
_LISTED = ("ls-files", "--cached", "--others", "--exclude-standard", "--error-unmatch", "-z", "--")
_BEFORE, _AFTER = "error: pathspec ':(glob)", "' did not match any file(s) known to git"
_UNMATCHED, _FATAL = 1, 128  # how git exits


def unmatched(globs: Sequence[str], folder: str) -> dict[str, str]:
    """Say of globs why they match no file; nothing of those that do, or where git cannot tell."""
    found: dict[str, str] = {}
    for start in range(0, len(globs), _AT_ONCE):
        code, said = _ask(globs[start : start + _AT_ONCE], folder)
        if code == _UNMATCHED:
            found |= dict.fromkeys(_named(said), NO_FILE)
        elif code == _FATAL and "not a git repository" not in said:
            found |= _one_by_one(globs[start : start + _AT_ONCE], folder)
    return found


def _one_by_one(globs: Sequence[str], folder: str) -> dict[str, str]:
    """Ask about each glob alone, where one of them is nothing that git takes."""
    found = {}
    for glob in globs:
        code, said = _ask([glob], folder)
        if code == _UNMATCHED:
            found[glob] = NO_FILE
        elif "outside repository" in said:
            found[glob] = _OUTSIDE
    return found


def _named(said: str) -> list[str]:
    """Return the globs that git names; one with a line break in it is not among them."""
    return [
        line.removeprefix(_BEFORE).removesuffix(_AFTER)
        for line in said.split("\n")
        if line.startswith(_BEFORE) and line.endswith(_AFTER)
    ]


def _ask(globs: Sequence[str], folder: str) -> tuple[int, str]:
    """Return how git exits, and what it complains of; nothing where it does not answer."""
    argv = ["git", "-C", folder, *HARMLESS, *_LISTED, *(f":(glob){glob}" for glob in globs)]
    try:
        done = subprocess.run(  # noqa: S603  # git, with globs that cannot be options
            argv,
            env=own_environ() | QUIET | {"LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0, ""
    return done.returncode, done.stderr.decode("utf-8", "surrogateescape")


# They are part of every shell, and make no program that a later command could start.
_BUILT_IN = frozenset((
    ":", "cd", "echo", "exit", "export", "false", "printf", "pwd", "set", "shift", "trap", "true",
    "ulimit", "umask", "unset", "wait",
))  # fmt: skip
# What follows may depend on them: they look, decide, define or take in something.
_UNSURE = frozenset((
    ".", "[", "[[", "alias", "break", "builtin", "case", "command", "continue", "declare", "do",
    "done", "elif", "else", "esac", "eval", "exec", "fi", "for", "function", "hash", "if", "in",
    "let", "local", "read", "readonly", "return", "select", "shopt", "source", "test", "then",
    "time", "type", "typeset", "unalias", "until", "which", "while",
))  # fmt: skip
_BRINGS = frozenset(("add", "ci", "install", "sync"))  # words of programs that bring others
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_PLAIN = re.compile(r"[A-Za-z0-9_./~+@%-]+")
# Groups, functions and expansions; another way if something fails; another PATH.
_NOT_SIMPLE = re.compile(r"[{}()`]|\|\||\bPATH\b")


def programs_in(script: str) -> Iterator[str]:
    """Yield the programs of a simple script, up to the first command that is not understood.

    A program by its path counts only before any other, which may have made it or moved away.
    """
    if _NOT_SIMPLE.search(script):
        return
    is_first = True
    for words in commands(script):
        rest = _without_assignments(words)
        if not rest:
            continue
        word = rest[0]
        if word in _UNSURE or not _PLAIN.fullmatch(word):
            return
        if word not in _BUILT_IN and (is_first or "/" not in word):
            yield word
        if not _BRINGS.isdisjoint(rest):
            return
        is_first = is_first and word in _BUILT_IN and word != "cd"


def _without_assignments(words: list[str]) -> list[str]:
    """Return a command from the word on that names what is started."""
    for at, word in enumerate(words):
        if word != "!" and not _ASSIGNMENT.match(word):
            return words[at:]
    return []


# What is right in a file and probably not meant: told before an agent meets it.
#
# None of it is run. A program, a folder or a file that is missing here may be there elsewhere, so
# all of this is warnings.


_MOST_PROGRAMS = 50  # of one script; each is looked for on the PATH


def doubts(
    settings: Settings, document: Document | None, waits: Sequence[Wait], environ: Mapping[str, str]
) -> list[Mistake]:
    """Return what a person may want to look at again; `document` is that of a `notyet.toml`."""
    file = _File(settings, document, environ)
    file.look_for_paths()
    found = [doubt for gate in settings.gates for doubt in file.gate(gate)]
    found += file.waiting(waits)
    found += file.kept()
    return sorted(found, key=lambda doubt: (doubt.line, doubt.column))


class _File:
    """One file, and where in it each key stands."""

    def __init__(
        self, settings: Settings, document: Document | None, environ: Mapping[str, str]
    ) -> None:
        self._settings = settings
        self._document = document
        self._environ = environ
        self._folder = os.path.dirname(settings.file)
        self._unmatched: dict[str, str] = {}  # why a glob matches no file, by that glob

    def look_for_paths(self) -> None:
        """Find out which globs match no file, all at once."""
        gates = [gate for gate in self._settings.gates if _is_here(gate)]
        globs = list(dict.fromkeys(path for gate in gates for path in gate.paths))
        self._unmatched = unmatched(globs, self._folder)

    def gate(self, gate: Gate) -> Iterator[Mistake]:
        """Judge one gate."""
        yield from self._patterns(gate)
        if not _is_here(gate):
            return  # elsewhere, only elsewhere can tell
        assert isinstance(gate.check, Command)
        yield from self._program(gate, gate.check)
        yield from self._paths(gate)

    def waiting(self, waits: Sequence[Wait]) -> Iterator[Mistake]:
        """Say which gates may take longer than hosts wait for them."""
        gates = self._settings.gates if self._document is not None else ()
        stops = [[gate for gate in gates if scope in gate.match.events] for scope in SCOPES]
        stop = max(stops, key=time_of)
        took = time_of(stop)
        for wait in waits:
            if took > wait.seconds:
                yield self._doubt(
                    max(stop, key=lambda gate: gate.timeout or 0.0),
                    "timeout",
                    f"the gates may take {took:g} s at a stop, and {wait.title} waits "
                    f"{wait.seconds:g} s: what is not finished by then is let go unchecked",
                    f"give them less `timeout`, or let it wait longer with: {wait.longer(took)}",
                )

    def kept(self) -> Iterator[Mistake]:
        """Say that a project's file is not asked what the ledger keeps."""
        own = os.path.join(user_folder(self._environ), NAME)
        is_own = os.path.realpath(self._settings.file) == os.path.realpath(own)
        if self._settings.ledger and self._document is not None and not is_own:
            line, column = self._document.locate(("ledger",))
            yield Mistake(
                file=self._settings.file,
                line=line,
                column=column,
                message="[ledger] is obeyed in your own notyet.toml only",
                hint="move it to ~/.config/notyet/notyet.toml",
            )

    def _patterns(self, gate: Gate) -> Iterator[Mistake]:
        match = gate.match
        if match.kind != "glob" or not match.never:
            return
        if "subagent" not in match.events:
            why = "names subagents, and the gate is only for main agents"
            yield self._doubt(gate, "never", f"`never` {why}", 'write for = "all", or leave it out')
        elif "agent" not in match.events and leaves_nobody(match):
            why = "leaves out all that `for` names, so the gate is never asked"
            yield self._doubt(gate, "never", f"`never` {why}")

    def _program(self, gate: Gate, check: Command) -> Iterator[Mistake]:
        folder = check.dir or self._folder
        if check.dir and not os.path.isdir(folder):
            yield self._doubt(gate, "dir", f"there is no folder {visible(folder)}")
            return
        path = dict(check.env).get("PATH", self._environ.get("PATH", os.defpath))
        python = check.options.get("python")
        words = [str(check.options.get("interpreter", ""))] if python else list(check.argv[:1])
        named = dict.fromkeys(filter(None, words or programs_in(check.script)))
        for word in list(named)[:_MOST_PROGRAMS]:
            if not _is_there(os.path.expanduser(word), folder, path):
                where = f"in {visible(folder)}" if "/" in word else "on the PATH"
                key = "interpreter" if python else "run"
                yield self._doubt(gate, key, f"there is no program `{visible(word)}` {where}")

    def _paths(self, gate: Gate) -> Iterator[Mistake]:
        found = [self._unmatched.get(path, "") for path in gate.paths]
        for number, (path, why) in enumerate(zip(gate.paths, found, strict=True)):
            # One that is meant for whatever may come anywhere stands beside others that do match.
            is_open = why == NO_FILE and path.startswith("**/") and not all(found)
            if why and not is_open:
                yield self._doubt(gate, ("paths", number), f"`{visible(path)}` {why}")

    def _doubt(self, gate: Gate, key: str | Path, message: str, hint: str = "") -> Mistake:
        keys = (key,) if isinstance(key, str) else key
        line = gate.source.line if gate.source else 0
        column = 0
        if self._document is not None:
            line, column = self._document.locate(("gates", gate.name, *keys))
        words = f"{visible(gate.name)}: {message}"
        return Mistake(file=self._settings.file, line=line, column=column, message=words, hint=hint)


def _is_here(gate: Gate) -> bool:
    return isinstance(gate.check, Command) and place_of(gate) is None


def _is_there(word: str, folder: str, path: str) -> bool:
    if "/" not in word:
        return shutil.which(word, path=path) is not None
    place = os.path.join(folder, word)
    return os.path.isfile(place) and os.access(place, os.X_OK)
