"""Run a command on a snapshot: what a gate said when the session began.

On Linux it runs in a mount namespace of its own, in which the files of the snapshot lie at the
original path (see `enter`). Where that is not possible they lie in another folder; then a run that
used the files as they are now must be noticed, and is refused. A run that is not comparable says
why in `refused`; a wrong baseline would excuse what the agent broke.
"""

from __future__ import annotations

import errno
import fcntl
import glob
import json
import os
import re
import shutil
import stat
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from notyet.core.record import replace
from notyet.gates import enter
from notyet.gates.shared_files import MOST_COPIED, Changed, Shared, shared_files
from notyet.git.run import Unknown
from notyet.git.snapshot import DISK_FULL
from notyet.git.worktrees import git_folders
from notyet.run.command_runner import run_together
from notyet.run.groups import end_marked
from notyet.run.spawn import MARK, Job, new_stage_token

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from notyet.core.gate import Exit
    from notyet.git.snapshot import Snapshot

ORIGINAL_PATH, ANOTHER_FOLDER = "the original path", "another folder"
HEAD = 2 * 1024 * 1024  # bytes kept from the beginning of each stream
MOST_REPORTS, MOST_REPORT_BYTES = 200, 64 * 1024 * 1024
_MARKS = {"NOTYET_INSIDE": "1", "NOTYET_BASELINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
_COLOURS = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b]*+(?:\x07|\x1b\\)?|[@-Z\\-_])")
_PYTHON_PROJECT = ("pyproject.toml", "setup.py", "setup.cfg")
_KEPT_AS_THEY_ARE = frozenset({"PATH", "VIRTUAL_ENV", "NODE_PATH", "PWD", "OLDPWD"})
_LOCK = "lock"


@dataclass(frozen=True, kw_only=True)
class BaselineRun:
    """How a command ended on a snapshot."""

    code: int | None = None
    signal: int = 0
    timed_out: bool = False
    stdout: str = ""  # both bounded, without colours, with the original path
    stderr: str = ""
    seconds: float = 0.0
    place: str = ""
    reports: Mapping[str, bytes] = field(default_factory=dict)  # by path, relative to `dir`
    refused: str = ""  # why the run cannot be compared

    @property
    def output(self) -> str:
        """What it printed."""
        return "\n".join(text for text in (self.stdout, self.stderr) if text)


def run_on(
    snapshot: Snapshot,
    argv: Sequence[str],
    *,
    dir: str,  # noqa: A002  # as gates call it
    environ: Mapping[str, str],
    timeout: float,
    scratch: str,
    reports: Sequence[str] = (),
    stdin: bytes = b"",
    is_elsewhere: bool = False,
) -> BaselineRun:
    """Run a command on a snapshot, in a folder inside its root; leave nothing behind.

    `scratch` is a folder for temporary folders, `reports` are globs, relative to `dir`, of files to
    read before these are removed. `is_elsewhere` chooses another folder even where the original
    path is possible. Raises OSError if `scratch` cannot be written.
    """
    folder = os.path.relpath(os.path.realpath(dir), snapshot.root)
    if folder.split("/", 1)[0] == "..":
        return BaselineRun(refused=f"{dir} is not in the repository")
    with _work_folder(scratch) as work:
        try:
            below = [os.path.normpath(os.path.join(folder, pattern)) for pattern in reports]
            shared = shared_files(snapshot, below)
            _lay_out(snapshot, work, shared)
            _remove_reports(os.path.join(work, "tree"), below)
        except Changed as changed:
            return BaselineRun(refused=str(changed))
        except Unknown as unknown:
            return BaselineRun(refused=unknown.reason)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            return BaselineRun(refused=DISK_FULL)
        if not os.path.isdir(os.path.join(work, "tree", folder)):
            return BaselineRun(refused=f"{folder} was not there when the session began")
        run = _Run(snapshot, shared, work, folder, reports)
        job = Job(
            argv=tuple(argv), dir=dir, environ={**environ}, stdin=stdin, timeout=timeout, head=HEAD
        )
        if sys.platform == "linux" and not is_elsewhere:
            found = run.at_original_path(job)
            if found is not None:
                return found
        return run.elsewhere(job)


def remove_leftovers(scratch: str) -> None:
    """Remove the folders of runs that were killed."""
    try:
        names = os.listdir(scratch)
    except OSError:
        return
    for name in names:
        folder = os.path.join(scratch, name)
        try:
            lock = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CLOEXEC)
        except OSError:  # not ours, or not yet locked
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # it runs
            continue
        else:
            _remove(folder)
        finally:
            os.close(lock)


@contextmanager
def _work_folder(scratch: str) -> Iterator[str]:
    """Make a folder that is removed afterwards: by the next run, if this process is killed."""
    os.makedirs(scratch, 0o700, exist_ok=True)
    remove_leftovers(scratch)
    work = tempfile.mkdtemp(prefix="run-", dir=os.path.realpath(scratch))
    lock = os.open(os.path.join(work, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield work
    finally:
        _remove(work)
        os.close(lock)


def _remove(folder: str) -> None:
    """Remove a folder, even with folders in it that have no permissions."""
    for around, inside, _ in os.walk(folder):
        for name in inside:
            path = os.path.join(around, name)
            if not os.path.islink(path):
                _make_writable(path)
    shutil.rmtree(folder, ignore_errors=True)


def _make_writable(folder: str) -> None:
    try:
        mode = stat.S_IMODE(os.lstat(folder).st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(folder, mode | stat.S_IRWXU)
    except OSError:  # of another user
        return


def _lay_out(snapshot: Snapshot, work: str, shared: Shared) -> None:
    """Write the files of the snapshot, and the places of what it shares. Raises Unknown, Changed.

    Small files are copied, so that writing to them does not change the user's.
    """
    tree = os.path.join(work, "tree")
    for name in ("tree", "original", "low", "up", "temporary"):
        os.mkdir(os.path.join(work, name), 0o700)
    os.chmod(tree, stat.S_IMODE(os.stat(snapshot.root).st_mode) | stat.S_IRWXU)
    snapshot.checkout(tree)
    for name in shared.emptied:
        os.makedirs(os.path.join(tree, name), exist_ok=True)
    for name in shared.files:
        source, target = os.path.join(snapshot.root, name), os.path.join(tree, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.islink(source) or os.path.getsize(source) <= MOST_COPIED:
            try:
                shutil.copy2(source, target, follow_symlinks=False)
            except OSError as error:
                if error.errno == errno.ENOSPC:
                    raise
                raise Changed(f"{name} cannot be read: {error.strerror}") from error


def _remove_reports(tree: str, patterns: Sequence[str]) -> None:
    """Remove reports of earlier runs, which a run that writes none would seem to have written."""
    for pattern in patterns:
        for name in glob.glob(pattern, root_dir=tree, recursive=True):
            path = os.path.join(tree, name)
            if os.path.islink(path) or os.path.isfile(path):
                os.unlink(path)


class _Run:
    """One run: where its files are, and what it shares."""

    def __init__(
        self, snapshot: Snapshot, shared: Shared, work: str, folder: str, reports: Sequence[str]
    ) -> None:
        self._root, self._shared, self._work = snapshot.root, shared, work
        self._tree = os.path.join(work, "tree")
        self._folder, self._reports = folder, reports
        self._large = [name for name in shared.files if not os.path.lexists(self._at(name))]

    def _at(self, name: str) -> str:
        return os.path.join(self._tree, name)

    def at_original_path(self, job: Job) -> BaselineRun | None:
        """Run it in a mount namespace; return None if the system does not allow one."""
        plan = self._plan(job)
        for name in self._shared.folders:
            os.makedirs(self._at(name), exist_ok=True)
        for name in self._large:
            _touch(self._at(name))
        if os.path.isdir(os.path.join(self._root, ".git")):
            os.mkdir(self._at(".git"))
        else:
            _touch(self._at(".git"))
        with open(os.path.join(self._work, "plan.json"), "w", encoding="ascii") as file:
            json.dump(plan, file)
        argv = (sys.executable, "-I", "-S", enter.__file__, self._work)
        environ = {**job.environ, **_MARKS}
        ended = self._ended(job, argv, environ, self._work)
        if os.path.exists(os.path.join(self._work, enter.FAILED)):
            self._undo_places()
            return None
        return self._answer(ended, ORIGINAL_PATH)

    def _plan(self, job: Job) -> dict[str, object]:
        own, common = map(os.path.realpath, git_folders(self._root))
        inside = os.path.join(self._root, "")
        return {
            "root": self._root,
            "dir": os.path.normpath(os.path.join(self._root, self._folder)),
            "argv": list(job.argv),
            "folders": self._shared.folders,
            "files": self._large,
            "git": [path for path in dict.fromkeys((common, own)) if not path.startswith(inside)],
        }

    def _undo_places(self) -> None:
        for name in self._shared.folders:
            os.rmdir(self._at(name))
        for name in self._large:
            os.unlink(self._at(name))
        git = self._at(".git")
        os.rmdir(git) if os.path.isdir(git) else os.unlink(git)

    def elsewhere(self, job: Job) -> BaselineRun:
        """Run it in another folder, unless something there would lead back to the root."""
        ours = [os.path.join(self._root, name) for name in self._shared.folders]
        for link, end in self._shared.links:
            if _is_in(end, [self._root]) and not _is_in(end, ours):
                name = os.path.relpath(link, self._root)
                return BaselineRun(refused=f"{name} links to the files as they are now")
        for name in self._shared.files:
            path = os.path.join(self._root, name)
            if os.path.islink(path) and _is_in(os.path.realpath(path), [self._root]):
                return BaselineRun(refused=f"{name} links to the files as they are now")
        for name in [*self._shared.folders, *self._large]:
            os.makedirs(os.path.dirname(self._at(name)), exist_ok=True)
            os.symlink(os.path.join(self._root, name), self._at(name))
        folder = os.path.normpath(self._at(self._folder))
        ended = self._ended(job, job.argv, self._environ(job.environ), folder)
        run = self._answer(ended, ANOTHER_FOLDER)
        leak = self._leak(ended.stdout + b"\n" + ended.stderr)
        if leak:
            return BaselineRun(refused=f"the run used the files as they are now: {leak}")
        return run

    def _environ(self, given: Mapping[str, str]) -> dict[str, str]:
        environ = {
            name: value if name in _KEPT_AS_THEY_ARE else _with_root(value, self._root, self._tree)
            for name, value in given.items()
        }
        if any(os.path.exists(self._at(name)) for name in _PYTHON_PROJECT):
            # Before the paths of editable installs, which lead to the original files.
            paths = [path for path in (self._at("src"), self._tree) if os.path.isdir(path)]
            more = [environ["PYTHONPATH"]] if environ.get("PYTHONPATH") else []
            environ["PYTHONPATH"] = os.pathsep.join([*paths, *more])
        environ["GIT_CEILING_DIRECTORIES"] = self._work  # there is no repository in this folder
        environ["CARGO_TARGET_DIR"] = os.path.join(self._work, "target")
        return {**environ, **_MARKS}

    def _leak(self, output: bytes) -> str:
        """Return a path of the original files in the output, if it is not one of the shared."""
        text = output.decode("utf-8", "replace")
        shared = "|".join(map(re.escape, self._shared.paths()))
        is_shared = re.compile(rf"(?:{shared})(?![\w.-])" if shared else "(?!)").match
        base = os.path.normpath(self._at(self._folder))
        for start in (self._root + "/", os.path.relpath(self._root, base) + "/"):
            place = text.find(start)
            while place >= 0:
                rest = text[place + len(start) : place + len(start) + 400]
                if not is_shared(rest):
                    return (start + rest).split("\n", 1)[0].split(maxsplit=1)[0][:200]
                place = text.find(start, place + 1)
        return ""

    def _ended(
        self, job: Job, argv: Sequence[str], environ: Mapping[str, str], folder: str
    ) -> Exit:
        token = new_stage_token()
        marked = {**environ, MARK: f"{environ.get(MARK, '')} {token}".strip()}
        given = replace(job, argv=tuple(argv), dir=folder, environ=marked)
        try:
            (ended,) = run_together([given])
        finally:
            end_marked(token)  # they would keep the namespace, and write to what is removed
        return ended

    def _answer(self, ended: Exit, place: str) -> BaselineRun:
        reports, too_many = self._read_reports()
        return BaselineRun(
            code=ended.code,
            signal=ended.signal,
            timed_out=ended.timed_out,
            stdout=self._text(ended.stdout),
            stderr=self._text(ended.stderr),
            seconds=ended.seconds,
            place=place,
            reports=reports,
            refused=ended.problem or ("it was cancelled" if ended.cancelled else too_many),
        )

    def _text(self, output: bytes) -> str:
        text = _COLOURS.sub("", output.decode("utf-8", "replace"))
        return text.replace(self._tree, self._root)

    def _read_reports(self) -> tuple[dict[str, bytes], str]:
        """Return the reports it wrote, which are regular files inside its folder.

        And, if it wrote more than are read, a refusal that says so.
        """
        most = f"{MOST_REPORTS} files or {MOST_REPORT_BYTES >> 20} MiB"
        base, left = self._at(self._folder), MOST_REPORT_BYTES
        found: dict[str, bytes] = {}
        for pattern in self._reports:
            names = glob.glob(pattern, root_dir=base, recursive=True)
            for name in sorted(names):
                path = os.path.join(base, name)
                if not _is_in(os.path.realpath(path), [os.path.realpath(self._tree)]):
                    continue
                try:
                    about = os.stat(path)
                    if not stat.S_ISREG(about.st_mode):
                        continue
                    if about.st_size > left or len(found) >= MOST_REPORTS:
                        return {}, f"its reports are more than {most}"
                    with open(path, "rb") as file:
                        content = file.read(about.st_size)
                except OSError:
                    continue
                left -= len(content)
                old, new = os.fsencode(self._tree), os.fsencode(self._root)
                found[name] = content.replace(old, new)
        return found, ""


def _touch(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _is_in(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def _with_root(value: str, root: str, tree: str) -> str:
    """Replace the root in a variable, where it ends as a path does."""
    return re.sub(re.escape(root) + r"(?=[/:;,\s]|$)", lambda _: tree, value)
