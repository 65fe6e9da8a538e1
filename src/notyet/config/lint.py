"""Lint: what is right in a file and probably not meant, found before an agent meets it.

Nothing is run. A program, folder or file that is missing here may exist elsewhere, so all of this
is warnings.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

from notyet.config.document import Mistake
from notyet.config.find import FILE_NAME, user_folder
from notyet.config.members import folders
from notyet.config.shell import commands
from notyet.core.event import SCOPES
from notyet.core.gate import EVERY_AGENT, Command, machine_of
from notyet.core.matcher import glob_matches
from notyet.core.text import visible
from notyet.gates.failures.commands import warnings
from notyet.gates.kinds import WITH_FILES
from notyet.git.run import HARMLESS, QUIET, own_environ

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Protocol

    from notyet.config.compiled import FileSettings
    from notyet.config.document import Document, Path
    from notyet.core.gate import Gate, Match

    class Wait(Protocol):
        """A host, and how many seconds it waits for the gates."""

        @property
        def title(self) -> str: ...

        @property
        def seconds(self) -> float: ...

        def longer(self, seconds: float) -> str:
            """Return the command that makes it wait for so long."""


_GIT_TIMEOUT = 20.0
_MOST_GLOBS = 1000  # more may be too long for one command line
_MOST_FOLDERS = 20_000
_UNMATCHED = 1  # the exit code of git
_LIST = ("ls-files", "--cached", "--others", "--exclude-standard", "--error-unmatch", "-z", "--")
# Words that a shell knows without a program.
_SHELL_WORDS = frozenset((
    "!", ".", ":", "[", "[[", "alias", "break", "builtin", "case", "cd", "command", "continue",
    "declare", "echo", "eval", "exec", "exit", "export", "false", "for", "function", "hash", "if",
    "let", "local", "printf", "pwd", "read", "readonly", "return", "select", "set", "shift",
    "shopt", "source", "test", "time", "trap", "true", "type", "typeset", "ulimit", "umask",
    "unalias", "unset", "until", "wait", "while",
))  # fmt: skip
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_PLAIN = re.compile(r"[A-Za-z0-9_./~+@%-]+")
# Groups, functions and expansions; another way if something fails; another PATH.
_NOT_SIMPLE = re.compile(r"[{}()`]|\|\||\bPATH\b")


def lint(
    settings: FileSettings,
    document: Document | None,
    waits: Sequence[Wait],
    environ: Mapping[str, str],
) -> list[Mistake]:
    """Return what a person may want to change; `document` is that of a `notyet.toml`."""
    file = _File(settings, document, environ)
    found = [warning for gate in settings.gates for warning in file.lint_gate(gate)]
    if document is not None:
        found += file.lint_time(waits)
        found += file.lint_ledger(document)
        found += file.lint_members(document)
    return sorted(found, key=lambda warning: (warning.line, warning.column))


def linked_members(settings: FileSettings, document: Document) -> Iterator[Mistake]:
    """Yield a mistake for each link that a glob of members matches: it may leave the project."""
    for number, glob in enumerate(settings.members):
        links: list[str] = []
        folders(os.path.dirname(settings.file), [glob], [_MOST_FOLDERS], links)
        for link in links:
            words = f"`{visible(link)}` is a link, so it is not a member"
            yield _of_member(settings, document, number, words)


def _of_member(settings: FileSettings, document: Document, number: int, words: str) -> Mistake:
    line, column = document.locate(("members", number))
    return Mistake(file=settings.file, line=line, column=column, message=words)


class _File:
    """One file, and where in it each key stands."""

    def __init__(
        self, settings: FileSettings, document: Document | None, environ: Mapping[str, str]
    ) -> None:
        self._settings = settings
        self._document = document
        self._environ = environ
        self._folder = os.path.dirname(settings.file)
        gates = [gate for gate in settings.gates if _is_here(gate)]
        globs = dict.fromkeys(path for gate in gates for path in gate.paths)
        self._unmatched = unmatched(list(globs)[:_MOST_GLOBS], self._folder) if globs else set()

    def lint_gate(self, gate: Gate) -> Iterator[Mistake]:
        yield from self._patterns(gate)
        if _is_here(gate):
            assert isinstance(gate.check, Command)
            yield from self._program(gate, gate.check)
            yield from self._paths(gate)
            yield from self._failures(gate, gate.check)

    def _failures(self, gate: Gate, check: Command) -> Iterator[Mistake]:
        """Yield a warning for each way in which a command may hide failures from the comparison."""
        if check.options.get("new_failures_only"):
            for advice in warnings(check.script or shlex.join(check.argv)):
                yield self._warning(gate, "run", advice, "")

    def lint_time(self, waits: Sequence[Wait]) -> Iterator[Mistake]:
        """Yield a warning for each host that waits for less time than the gates may take."""
        gates = self._settings.gates
        stops = [[gate for gate in gates if scope in gate.match.events] for scope in SCOPES]
        stop = max(stops, key=time_of)
        took = time_of(stop)
        for wait in waits:
            if took > wait.seconds:
                yield self._warning(
                    max(stop, key=lambda gate: gate.timeout or 0.0),
                    "timeout",
                    f"the gates may take {took:g} s at a stop, and {wait.title} waits "
                    f"{wait.seconds:g} s: a gate that has not finished by then is NOT CHECKED",
                    f"lower `timeout`, or make the host wait longer: {wait.longer(took)}",
                )

    def lint_ledger(self, document: Document) -> Iterator[Mistake]:
        """Yield a warning for `[ledger]` in a project's file."""
        users = os.path.join(user_folder(self._environ), FILE_NAME)
        is_users = os.path.realpath(self._settings.file) == os.path.realpath(users)
        if self._settings.ledger and not is_users:
            line, column = document.locate(("ledger",))
            yield Mistake(
                file=self._settings.file,
                line=line,
                column=column,
                message="[ledger] has an effect only in your own notyet.toml",
                hint="move it to ~/.config/notyet/notyet.toml",
            )

    def lint_members(self, document: Document) -> Iterator[Mistake]:
        """Yield a warning for each glob of members that matches nothing."""
        for number, glob in enumerate(self._settings.members):
            links: list[str] = []
            if not folders(self._folder, [glob], [_MOST_FOLDERS], links) and not links:
                words = f"`{visible(glob)}` matches no folder"
                yield _of_member(self._settings, document, number, words)

    def _patterns(self, gate: Gate) -> Iterator[Mistake]:
        match = gate.match
        if match.kind != "glob" or not match.never:
            return
        if "subagent" not in match.events:
            why = "names subagents, but the gate is only for main agents"
            hint = 'write for = "all", or remove it'
            yield self._warning(gate, "never", f"`never` {why}", hint)
        elif "agent" not in match.events and excludes_all(match):
            why = "excludes all that `for` includes, so the gate never runs"
            yield self._warning(gate, "never", f"`never` {why}")

    def _program(self, gate: Gate, check: Command) -> Iterator[Mistake]:
        folder = check.dir or self._folder
        if check.dir and not os.path.isdir(folder):
            yield self._warning(gate, "dir", f"there is no folder {visible(folder)}")
            return
        if check.options.get("kind", WITH_FILES) != WITH_FILES:  # notyet itself is the program
            return
        path = dict(check.env).get("PATH", self._environ.get("PATH", os.defpath))
        is_python = bool(check.options.get("python"))
        interpreter = str(check.options.get("interpreter", ""))
        named = check.argv[0] if check.argv else first_program(check.script)
        word = interpreter if is_python else named
        if word and not _is_program(os.path.expanduser(word), folder, path):
            where = f"in {visible(folder)}" if "/" in word else "on the PATH"
            key = "interpreter" if is_python else "run"
            yield self._warning(gate, key, f"there is no program `{visible(word)}` {where}")

    def _paths(self, gate: Gate) -> Iterator[Mistake]:
        is_dead = self._unmatched.issuperset(gate.paths)
        for number, path in enumerate(gate.paths):
            # `**/*.pyi` beside globs that match something is meant for files that may come.
            if path in self._unmatched and (is_dead or not path.startswith("**/")):
                message = f"`{visible(path)}` matches no file that git tracks or would add"
                yield self._warning(gate, ("paths", number), message)

    def _warning(self, gate: Gate, key: str | Path, message: str, hint: str = "") -> Mistake:
        keys = (key,) if isinstance(key, str) else key
        line, column = (gate.source.line if gate.source else 0), 0
        if self._document is not None:
            line, column = self._document.locate(("gates", gate.name, *keys))
        words = f"{visible(gate.name)}: {message}"
        return Mistake(file=self._settings.file, line=line, column=column, message=words, hint=hint)


def _is_here(gate: Gate) -> bool:
    return isinstance(gate.check, Command) and machine_of(gate) is None


def _is_program(word: str, folder: str, path: str) -> bool:
    if "/" not in word:
        return shutil.which(word, path=path) is not None
    place = os.path.join(folder, word)
    return os.path.isfile(place) and os.access(place, os.X_OK)


def time_of(gates: Iterable[Gate]) -> float:
    """Return the seconds that gates may take at one stop: stages follow each other."""
    stages: dict[tuple[int, int], float] = {}
    for gate in gates:
        key = (gate.priority, gate.step)
        longest = float("inf") if gate.timeout is None else gate.timeout
        stages[key] = max(stages.get(key, 0.0), longest)
    return sum(stages.values())


def excludes_all(match: Match) -> bool:
    """Return True if `never` certainly excludes all subagents that a gate is for."""
    if "*" in match.never:
        return True
    if match.kind != "glob" or match.agents == EVERY_AGENT:
        return False
    return all(
        name in match.never
        or (
            not any(sign in name for sign in "*?[")
            and any(glob_matches(pattern, name) for pattern in match.never)
        )
        for name in match.agents
    )


def first_program(script: str) -> str:
    """Return the program that a script starts first; empty if that is not certain."""
    if _NOT_SIMPLE.search(script):
        return ""
    words = next(iter(commands(script)), [])
    word = next((word for word in words if not _ASSIGNMENT.match(word)), "")
    return word if _PLAIN.fullmatch(word) and word not in _SHELL_WORDS else ""


def unmatched(globs: Sequence[str], folder: str) -> set[str]:
    """Return the globs for which git finds no file; none if git cannot say."""
    argv = ["git", "-C", folder, *HARMLESS, *_LIST, *(f":(glob){glob}" for glob in globs)]
    try:
        done = subprocess.run(  # noqa: S603  # git, with globs that cannot be options
            argv,
            env=own_environ() | QUIET | {"LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_GIT_TIMEOUT,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return set()
    output = done.stderr.decode("utf-8", "surrogateescape") if done.returncode == _UNMATCHED else ""
    return {glob for glob in globs if f"error: pathspec ':(glob){glob}' did not match" in output}
