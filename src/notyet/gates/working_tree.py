"""The repository that an agent works in, and its state, as git says.

Git runs with hooks and the file system monitor off, takes no lock, and does not reach the network.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from shlex import quote
from time import monotonic
from typing import IO, TYPE_CHECKING

from notyet.core.text import clean, first_line, shortened, visible
from notyet.git.repository import repository_of
from notyet.git.run import HARMLESS, QUIET, own_environ
from notyet.git.worktrees import git_folders

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from notyet.gates.question import Question

_MOST_OUTPUT = 64 * 1024 * 1024  # bytes of an output that is read
_MOST_ERRORS = 64 * 1024
_MOST_ARGUMENTS = 64 * 1024  # bytes of quoted names in one command; the system allows 128 KiB
_LONGEST_NAME = 200  # bytes of a file name in a message
_MOST_NAMED = 10  # files in a message
_RESERVE = 0.95  # of the gate's time, so that there is an answer before the gate is killed
# In the git folder of a work tree, and what git calls it.
_IN_PROGRESS = (
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
)
_FIELDS = {"1": 8, "u": 10}  # before the path, by the kind of an entry
_ONLY_UNTRACKED = "S..U"  # a submodule with untracked files and no other change


class Unclear(Exception):  # noqa: N818  # named after what happened
    """A gate cannot say whether the agent may finish; the message says why."""


@dataclass(frozen=True)
class Finished:
    """A program that exited."""

    code: int
    out: bytes
    err: bytes


def run_program(
    argv: Sequence[str],
    folder: str,
    environ: Mapping[str, str],
    ends: float,
    *,
    given: bytes = b"",
    is_merged: bool = False,
) -> Finished:
    """Run a program until a deadline; `is_merged` puts its errors among its output.

    Raises Unclear if it cannot start, is killed or does not finish. Output goes to files: a pipe
    that a grandchild keeps open would make us wait for it.
    """
    name = os.path.basename(argv[0])
    with (
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        stdin.write(given)
        stdin.seek(0)
        try:
            process = subprocess.Popen(  # noqa: S603  # no shell
                argv,
                cwd=folder,
                env=environ,
                stdin=stdin,
                stdout=out,
                stderr=subprocess.STDOUT if is_merged else err,
            )
        except (OSError, ValueError) as error:
            raise Unclear(f"{name} cannot be started: {error}") from None
        began = monotonic()
        try:
            code = process.wait(max(0.0, ends - began))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise Unclear(f"{name} did not finish in {monotonic() - began:.0f} s") from None
        if code < 0:
            raise Unclear(f"{name} was killed by {signal.Signals(-code).name}")
        return Finished(code, _tail(out, _MOST_OUTPUT), _tail(err, _MOST_ERRORS))


def _tail(file: IO[bytes], most: int) -> bytes:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - most))
    return file.read(most)


@dataclass
class Status:
    """What `git status` says: paths below the root, and the branch."""

    changed: list[str] = field(default_factory=list)  # tracked, and not as in the last commit
    untracked: list[str] = field(default_factory=list)  # and not ignored
    unmerged: list[str] = field(default_factory=list)  # both sides of a merge changed them
    commit: str = ""  # that is checked out; empty before the first
    branch: str = ""  # empty if HEAD is detached


class WorkingTree:
    """The repository of one agent, until a deadline."""

    def __init__(self, root: str, seconds: float) -> None:
        self.root = root
        self.ends = monotonic() + seconds * _RESERVE
        self._environ = own_environ() | QUIET
        self._environ["GIT_CEILING_DIRECTORIES"] = os.path.dirname(root)

    def git(self, *args: str, environ: Mapping[str, str] = {}) -> bytes:
        """Return the output of a git command. Raises Unclear if it fails."""
        done = self.git_exit(*args, environ=environ)
        if done.code:
            said = first_line(clean(done.err.decode("utf-8", "replace")))
            what = next(word for word in args if word[:1] != "-")
            raise Unclear(f"git {what} failed in {visible(self.root)}: {said}")
        return done.out

    def git_exit(self, *args: str, environ: Mapping[str, str] = {}) -> Finished:
        """Run a git command whose exit code is an answer."""
        argv = ["git", "-C", self.root, *HARMLESS, *args]
        return run_program(argv, self.root, {**self._environ, **environ}, self.ends)

    def has(self, name: str) -> bool:
        """Return True if there is an object of this name."""
        return self.git_exit("cat-file", "-e", name).code == 0

    def status(self, untracked: str = "all") -> Status:
        """Return the state of the files; "normal" names an untracked folder and not its files."""
        options = ["--porcelain=v2", "-z", "--branch", "--no-ahead-behind", "--no-renames"]
        submodules = "--ignore-submodules=none"
        said = self.git("status", *options, submodules, f"--untracked-files={untracked}")
        return _status(os.fsdecode(said))

    def in_progress(self) -> list[str]:
        """Return what was begun and not finished: a merge, a rebase, ..."""
        try:
            folder, _ = git_folders(self.root)
        except (OSError, ValueError) as error:
            raise Unclear(f"{visible(self.root)}/.git cannot be read: {error}") from None
        found = [what for name, what in _IN_PROGRESS if os.path.lexists(f"{folder}/{name}")]
        return list(dict.fromkeys(found))


def tree_of(question: Question) -> WorkingTree:
    """Return the repository that the agent works in, else that of the file with the gate."""
    root = repository_of(question.event.cwd) if question.event.cwd else ""
    root = root or (repository_of(question.folder) if question.folder else "")
    if not root:
        place = question.event.cwd or question.folder
        raise Unclear(f"{visible(place) or 'the folder of the agent'} is not in a git repository")
    return WorkingTree(root, question.seconds)


def _status(said: str) -> Status:
    status = Status()
    for entry in said.split("\0"):
        kind, _, rest = entry.partition(" ")
        if kind == "?":
            status.untracked.append(rest)
        elif kind == "#":
            name, _, value = rest.partition(" ")
            if name == "branch.oid":
                status.commit = "" if value == "(initial)" else value
            elif name == "branch.head":
                status.branch = "" if value == "(detached)" else value
        elif kind in _FIELDS:
            *_, path = fields = entry.split(" ", _FIELDS[kind])
            is_untracked = kind == "1" and fields[2] == _ONLY_UNTRACKED
            entries = status.unmerged if kind == "u" else status.changed
            (status.untracked if is_untracked else entries).append(path)
    return status


def split_by_length(names: Sequence[str]) -> Iterator[list[str]]:
    """Yield names in lists that fit on a command line, none of which looks like an option."""
    part: list[str] = []
    length = 0
    for name in names:
        argument = f"./{name}" if name.startswith("-") else name
        size = len(os.fsencode(quote(argument))) + 9  # with a NUL, and a pointer to it
        if part and length + size > _MOST_ARGUMENTS:
            yield part
            part, length = [], 0
        part.append(argument)
        length += size
    if part:
        yield part


def lines_of_names(names: Sequence[str]) -> str:
    """Return the first names, one on a line, and how many more there are."""
    lines = [f"  {shortened(visible(name), _LONGEST_NAME)}" for name in names[:_MOST_NAMED]]
    if len(names) > _MOST_NAMED:
        lines.append(f"  ... and {len(names) - _MOST_NAMED} more")
    return "\n".join(lines)
