"""Snapshots: the files of a work tree as a git tree, without touching the user's repository.

The index is copied, brought up to date from `git status`, and written as a tree. New objects go to
a folder of the snapshot (a quarantine), which names the repository's objects as its alternates: no
ref, object, hook or index of the user changes. Files that git ignores are not in a snapshot; only
their names are.

A snapshot is whole or `Unknown`: tests that fail at the start because a file is missing from the
snapshot would excuse failures of the agent.
"""

from __future__ import annotations

from time import monotonic, time

from notyet import light
from notyet.core.record import Record
from notyet.git.fingerprint import LIST, MOST_HIDDEN, STATUS
from notyet.git.repository import (
    Repository,
    RepositorySettings,
    read_small_file,
    refuse_hidden_repository,
    top_of,
)
from notyet.git.run import (
    FILTERED,
    ODD,
    OUTSIDE,
    REFUSED,
    TOO_MUCH,
    GitCommand,
    GitRuns,
    Output,
    Unknown,
)
from notyet.git.worktrees import git_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MOST_UNTRACKED = 2_000
MOST_IGNORED = 20_000  # names; git names folders that are ignored as a whole once
MOST_LISTED = 20_000  # names in ignored folders
MOST_BYTES = 512 * 1024 * 1024  # of changed and untracked files
MOST_TEXT = 5 * 1024 * 1024
PATIENCE = 20.0  # seconds for one git command of a child process

DISK_FULL = "the disk is full"
FAILED = "git could not store the files: one cannot be read, or a filter of git failed"
LOST = "the snapshot is damaged: git no longer has all of its objects"
NESTED = "the repository has other repositories among its files"
SUBMODULES = "the repository has submodules"
TOO_MANY_IGNORED = "more than 20,000 ignored files outside of ignored folders"
TOO_LARGE = "more than 512 MB of its files are changed or untracked"
UNTRACKED = "more than 2,000 untracked files; ignore some of them (.gitignore)"

OBJECTS = "objects"  # the folder of new objects
_IGNORED = "ignored"  # the file with the names of what git ignored
_LISTED = "listed"  # the file with the names in ignored folders
_MOST_STATUS = 32 * 1024 * 1024
_MOST_INDEX = 256 * 1024 * 1024
_MOST_DIFF = 32 * 1024 * 1024
_CHUNK = 1024 * 1024
_NEARLY_FULL = 16 * 1024 * 1024  # bytes left
_NO_SPACE = 28  # ENOSPC, without importing `errno`
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600
_KIND, _REGULAR = 0o170000, 0o100000  # S_IFMT and S_IFREG
_PLAIN = frozenset({b"H 100644 ", b"H 100755 ", b"H 120000 "})
_CONFLICT, _LINKED = b"M", b"160000"
_NUMBER = {b"1": 8, b"u": 10}  # fields before the path in porcelain v2
_MODE_NOW = {b"1": 5, b"u": 6}  # the field with the mode in the work tree
_HASH = 7  # a field with a hash, for both kinds
_GONE = b"000000"
_HEAD = b"# branch.oid "
_PLAINLY = (
    *("-c", "core.splitIndex=false", "-c", "index.sparse=false", "-c", "core.fsync=none"),
    *("-c", "core.safecrlf=false", "-c", "index.threads=1"),
)
_FILTERS = r"^filter\..*\.(clean|smudge|process)$"
_ASK_FILTERS = ("config", "--show-scope", "--includes", "-z", "--get-regexp", _FILTERS)
_ASK_DIFF = ("diff-tree", "-r", "-M40%", "-l1000", "--no-ext-diff", "--no-textconv", "-O/dev/null")
_ASK_CHANGES = (*_ASK_DIFF, "--name-status", "-z")
_ASK_PATCH = (
    *(*_ASK_DIFF, "--patch", "-U3", "--no-color", "--no-relative", "--submodule=short"),
    *("--src-prefix=a/", "--dst-prefix=b/"),
)
_ASK_HEAD = ("rev-list", "--max-count=1", "--format=%T", "HEAD")
# In repositories with SHA-1 and with SHA-256.
_EMPTY_TREES = frozenset(
    {
        "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
    }
)
_OF_THE_USER = frozenset({b"system", b"global"})
_NOTHING_FOUND = 1  # exit code of `git config` without a match
_HEX = frozenset("0123456789abcdef")


class Change(Record):
    """A file that differs between two snapshots."""

    status: str  # A, D, M, T or R
    old: str  # its path before; empty if it was added
    new: str  # its path now; empty if it was deleted


class Snapshot(Record, kw_only=True):
    """The files of a work tree at one time."""

    root: str
    tree: str  # its id in git
    head: str = ""  # the commit that was checked out; empty if there was none
    at: float = 0.0  # when it was begun
    objects: str  # the folder of its new objects

    def git(
        self,
        *args: str,
        others: Sequence[Snapshot] = (),
        environ: Mapping[str, str] = {},
        most: int = _MOST_DIFF,
        patience: float = PATIENCE,
        stdin: str = light.devnull,
    ) -> bytes:
        """Return the output of a git command that can read this snapshot. Raises Unknown."""
        output = Output(most)
        more = {"GIT_OBJECT_DIRECTORY": self.objects, **environ}
        if others:
            more["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = ":".join(
                quoted_path(s.objects) for s in others
            )
        command = GitCommand(
            self.root, (*_PLAINLY, *args), output.take, self.root, environ=more, stdin=stdin
        )
        runs = GitRuns((self.root,), monotonic() + patience)
        runs.start([command])
        runs.finish()
        if command.code is None:
            raise Unknown(command.reason)
        if command.code:
            raise Unknown(LOST)
        return bytes(output)

    def diff(self, later: Snapshot) -> list[Change]:
        """Return what differs in a later snapshot, with renames. Raises Unknown."""
        told = self.git(*_ASK_CHANGES, self.tree, later.tree, others=(later,))
        words = iter(map(light.fsdecode, told.split(b"\0")[:-1]))
        changes = []
        for status in words:
            path, kind = next(words), status[:1]
            if kind in "RC":
                changes.append(Change(kind, path, next(words)))
            else:
                changes.append(
                    Change(kind, "" if kind == "A" else path, "" if kind == "D" else path)
                )
        return changes

    def patch(self, later: Snapshot, most: int = _MOST_DIFF) -> str:
        """Return what differs in a later snapshot as a diff that people read. Raises Unknown."""
        told = self.git(*_ASK_PATCH, self.tree, later.tree, others=(later,), most=most)
        return told.decode("utf-8", "replace")

    def text(self, path: str, most: int = MOST_TEXT) -> str | None:
        """Return the text of a file; None if there is no such file, or it is too large or binary.

        Raises Unknown if git gives no answer in time.
        """
        try:
            content = self.git("cat-file", "blob", f"{self.tree}:{path}", most=most)
        except Unknown as unknown:
            if unknown.reason in {LOST, TOO_MUCH}:
                return None
            raise
        return None if b"\0" in content else content.decode("utf-8", "surrogateescape")

    def ignored(self) -> list[str]:
        """Return the paths that git ignored; those of folders end with a slash. Raises Unknown."""
        try:
            told = read_small_file(f"{light.dirname(self.objects)}/{_IGNORED}", _MOST_STATUS)
        except OSError as error:
            raise Unknown(LOST) from error
        return [light.fsdecode(path) for path in told.split(b"\0") if path]

    def listed(self) -> dict[str, frozenset[str]]:
        """Return the names in ignored folders, by folder; some folders are left out."""
        try:
            told = read_small_file(f"{light.dirname(self.objects)}/{_LISTED}", _MOST_STATUS)
        except OSError:
            return {}
        lists = [list(map(light.fsdecode, part.split(b"\0"))) for part in told.split(b"\0\0")]
        return {folder: frozenset(names) for folder, *names in lists}

    def checkout(self, into: str, patience: float = 120.0) -> None:
        """Write all files below a new, empty folder. Raises Unknown; hooks do not run.

        The agent may have named filters meanwhile, so the settings are read again.
        """
        ends = monotonic() + patience
        _refuse_filters(self.root, ends)
        index = f"{into.rstrip('/')}.index"
        where = {"GIT_INDEX_FILE": index, "GIT_DIR": light.realpath(git_folders(self.root)[0])}
        # With the new folder as work tree, `.gitattributes` is the one of the snapshot.
        where["GIT_WORK_TREE"] = into
        sparse = ("-c", "core.sparseCheckout=false", "-c", "core.bare=false")
        try:
            for args in (("read-tree", self.tree), ("checkout-index", "--all", "--force")):
                left = ends - monotonic()
                self.git(*sparse, *args, environ=where, patience=left)
        except Unknown as unknown:
            raise Unknown(_reason(unknown.reason, into)) from None
        finally:
            _unlink(index, f"{index}.lock")


def take(root: str, folder: str, patience: float) -> Snapshot:
    """Take a snapshot of a work tree into a new folder. Raises Unknown, and then removes it."""
    try:
        try:
            return _Taking(root, folder, monotonic() + patience).snapshot()
        except OSError as error:
            raise Unknown(DISK_FULL if error.errno == _NO_SPACE else ODD) from error
        except ValueError as error:  # a NUL, or a lone surrogate
            raise Unknown from error
        except Unknown as unknown:
            raise Unknown(_reason(unknown.reason, folder)) from None
    except BaseException:
        remove(folder)
        raise


def remove(folder: str) -> None:
    """Remove a folder with all that is in it, as far as possible."""
    if light.lexists(folder):
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


class _Taking:
    """One snapshot while it is taken."""

    def __init__(self, root: str, folder: str, ends: float) -> None:
        self._at = time()
        self._root, self._ends = light.realpath(root), ends
        self._folder, self._index = folder, f"{folder}/index"
        self._objects = f"{folder}/{OBJECTS}"
        self._environ = {"GIT_INDEX_FILE": self._index, "GIT_OBJECT_DIRECTORY": self._objects}

    def snapshot(self) -> Snapshot:
        if top_of(self._root) != self._root:
            raise Unknown(OUTSIDE)
        refuse_hidden_repository(self._root)
        own, shared = git_folders(self._root)
        _refuse_filters(self._root, self._ends)
        self._prepare(own, light.realpath(f"{shared}/objects"))
        status, index, told = _Status(), _Index(), Output(1024)
        self._run(
            self._command(("status", "--branch", "--ignored=matching", *STATUS), status.take),
            self._command(LIST, index.take),
            reason=REFUSED,
            beside=self._command(_ASK_HEAD, told.take),
        )
        updates = self._updates(status, index)
        tree = _tree_of(status.head, bytes(told)) if updates.is_empty else ""
        if not tree:
            self._update(updates)
            tree = self._write_tree()
        if tree in _EMPTY_TREES and len(updates.removed) < index.count:
            raise Unknown(FAILED)
        _unlink(self._index)
        _write(f"{self._folder}/{_IGNORED}", b"\0".join(status.ignored))
        _write(f"{self._folder}/{_LISTED}", self._listed(status.ignored))
        return Snapshot(
            root=self._root, tree=tree, head=status.head, at=self._at, objects=self._objects
        )

    def _prepare(self, own: str, objects: str) -> None:
        """Copy the index; make the folder of new objects."""
        if "\n" in objects:
            raise Unknown(ODD)
        light.mkdir(self._folder, _PRIVATE_FOLDER)
        for name in ("", "/info", "/pack"):
            light.mkdir(f"{self._objects}{name}", _PRIVATE_FOLDER)
        _write(f"{self._objects}/info/alternates", light.fsencode(objects) + b"\n")
        _copy_index(light.join(own, "index"), self._index)

    def _updates(self, status: _Status, index: _Index) -> _Updates:
        """Return how the files differ from the index. Raises Unknown."""
        top = light.fsencode(self._root) + b"/"
        updates = _Updates([], [*status.gone], [*status.changed])
        for entry in index.odd:
            about, _, path = entry.partition(b"\t")
            tag, mode, name, _stage = about.split(b" ")
            if mode == _LINKED:
                if _has_content(top + path):
                    raise Unknown(SUBMODULES)
            elif tag == _CONFLICT:  # the status has it
                continue
            elif _is_there(top + path):  # the index says not to look at it
                updates.reset.append(b"%b %b\t%b" % (mode, name, path))
                updates.added.append(path)
            else:  # outside of a sparse checkout
                updates.removed.append(b"0 %b\t%b" % (b"0" * len(name), path))
        _refuse_size([top + path for path in updates.added])
        return updates

    def _update(self, updates: _Updates) -> None:
        """Bring the copy of the index up to date with the files."""
        if updates.reset or updates.removed:
            lines = [*updates.removed, *updates.reset]
            self._feed(("update-index", "-z", "--index-info"), lines)
        if updates.added:
            ask = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
            self._feed(ask, updates.added)

    def _listed(self, ignored: Sequence[bytes]) -> bytes:
        """Return the names in ignored folders, by which a file that is gone later is missed."""
        top, left, lists = light.fsencode(self._root) + b"/", MOST_LISTED, []
        for path in ignored:
            if not path.endswith(b"/"):
                continue
            try:
                names = light.listdir(top + path)
            except OSError:  # it cannot be read, or was deleted meanwhile
                continue
            left -= len(names)
            if left < 0:
                break
            lists.append(b"\0".join((path, *names)))
        return b"\0\0".join(lists)

    def _write_tree(self) -> str:
        """Write the copy of the index as a tree; return its id."""
        told = Output(1024)
        # Without --missing-ok git looks for every file of a changed folder among the objects. A
        # missing object is found by `checkout`, in unchanged folders too.
        self._run(self._command(("write-tree", "--missing-ok"), told.take))
        tree = light.fsdecode(bytes(told)).strip()
        if not tree or not _HEX.issuperset(tree):
            raise Unknown(FAILED)
        return tree

    def _feed(self, args: Sequence[str], lines: Sequence[bytes]) -> None:
        path = f"{self._folder}/lines"
        _write(path, b"\0".join((*lines, b"")))
        self._run(self._command(args, Output(_CHUNK).take, path))
        _unlink(path)

    def _command(
        self, args: Sequence[str], take: Callable[[bytes], None], stdin: str = ""
    ) -> GitCommand:
        argv, given = (*_PLAINLY, *args), stdin or light.devnull
        return GitCommand(self._root, argv, take, self._root, environ=self._environ, stdin=given)

    def _run(
        self, *commands: GitCommand, reason: str = FAILED, beside: GitCommand | None = None
    ) -> None:
        """Run commands together. Raises Unknown if one fails, except for the one `beside` them."""
        runs = GitRuns((self._root,), self._ends)
        runs.start((*commands, beside) if beside else commands)
        runs.finish()
        for command in commands:
            if command.code is None:
                raise Unknown(command.reason)
            if command.code:
                raise Unknown(reason)


class _Updates(Record):
    """How the files differ from the index."""

    reset: list[bytes]  # entries that git must compare, as lines for `update-index --index-info`
    removed: list[bytes]  # such lines for deleted files
    added: list[bytes]  # paths of changed and untracked files

    @property
    def is_empty(self) -> bool:
        return not (self.reset or self.removed or self.added)


class _Status:
    """The output of `git status`: changed, untracked and deleted files."""

    def __init__(self) -> None:
        self.head = ""
        self.changed: list[bytes] = []
        self.ignored: list[bytes] = []
        self.gone: list[bytes] = []  # lines for `update-index --index-info`
        self._untracked, self._left = 0, _MOST_STATUS
        self._rest = b""

    def take(self, chunk: bytes) -> None:
        """Parse the next bytes. Raises Unknown if there are too many files."""
        self._left -= len(chunk)
        if self._left < 0:
            raise Unknown(TOO_MUCH)
        *entries, self._rest = (self._rest + chunk).split(b"\0")
        for entry in entries:
            kind = entry[:1]
            if kind == b"?":
                self._add_untracked(entry[2:])
            elif kind == b"!":
                self.ignored.append(entry[2:])
            elif kind in _NUMBER:
                fields = entry.split(b" ", _NUMBER[kind])
                if fields[_MODE_NOW[kind]] == _GONE:
                    self.gone.append(b"0 %b\t%b" % (b"0" * len(fields[_HASH]), fields[-1]))
                else:
                    self.changed.append(fields[-1])
            elif entry.startswith(_HEAD):
                name = light.fsdecode(entry[len(_HEAD) :])
                self.head = name if _HEX.issuperset(name) else ""
        if len(self.ignored) > MOST_IGNORED:
            raise Unknown(TOO_MANY_IGNORED)

    def _add_untracked(self, path: bytes) -> None:
        self._untracked += 1
        if self._untracked > MOST_UNTRACKED:
            raise Unknown(UNTRACKED)
        if path.endswith(b"/"):  # git lists the files of folders, except of repositories
            raise Unknown(NESTED)
        self.changed.append(path)


class _Index:
    """The entries of the index that `git status` does not tell all about."""

    def __init__(self) -> None:
        self.odd: list[bytes] = []
        self.count = 0
        self._rest = b""

    def take(self, chunk: bytes) -> None:
        """Parse the next bytes. Raises Unknown if there are too many odd entries."""
        *entries, self._rest = (self._rest + chunk).split(b"\0")
        self.count += len(entries)
        plain = _PLAIN
        self.odd += [entry for entry in entries if entry[:9] not in plain]
        if len(self.odd) > MOST_HIDDEN:
            raise Unknown(TOO_MUCH)


def _tree_of(head: str, told: bytes) -> str:
    """Return the tree of the commit `head`; empty if git told about another commit, or none."""
    word, _, rest = light.fsdecode(told).partition(" ")
    commit, _, tree = rest.strip().partition("\n")
    is_known = head and (word, commit) == ("commit", head) and len(tree) == len(head)
    return tree if is_known and _HEX.issuperset(tree) else ""


def _refuse_filters(root: str, ends: float) -> None:
    """Raise Unknown if the repository names commands that git would run, or another work tree."""
    repository = Repository(root)
    if repository.is_plain:
        return
    settings, told = RepositorySettings(repository), Output(_CHUNK)
    ask = GitCommand(root, _ASK_FILTERS, told.take, root)
    runs = GitRuns((root,), ends)
    runs.start([*settings.commands, ask])
    runs.finish()
    settings.apply()
    if repository.unknown:
        raise Unknown(repository.unknown)
    if ask.code not in {0, _NOTHING_FOUND}:
        raise Unknown(REFUSED if ask.code else ask.reason)
    if not _OF_THE_USER.issuperset(bytes(told).split(b"\0")[:-1:2]):
        raise Unknown(FILTERED)


def _reason(reason: str, folder: str) -> str:
    """Return the disk as the reason if it has no room left."""
    if reason not in {FAILED, LOST}:
        return reason
    try:
        disk = light.statvfs(light.dirname(folder))
    except OSError:
        return reason
    return DISK_FULL if disk.f_bavail * disk.f_frsize < _NEARLY_FULL else reason


def _refuse_size(paths: Sequence[bytes]) -> None:
    left = MOST_BYTES
    for path in paths:
        try:
            about = light.lstat(path)
        except OSError:  # deleted meanwhile
            continue
        left -= about.st_size if about.st_mode & _KIND == _REGULAR else 0
        if left < 0:
            raise Unknown(TOO_LARGE)


def _copy_index(path: str, into: str) -> None:
    """Copy an index with its time, by which git knows which of its entries to compare again.

    A repository without a commit may have none.
    """
    try:
        source = light.open(path, light.O_RDONLY | light.O_CLOEXEC | light.O_NONBLOCK)
    except FileNotFoundError:
        return
    try:
        about = light.fstat(source)
        if about.st_size > _MOST_INDEX:
            raise Unknown(TOO_MUCH)
        target = light.open(
            into, light.O_WRONLY | light.O_CREAT | light.O_EXCL | light.O_CLOEXEC, _PRIVATE_FILE
        )
        try:
            while chunk := light.read(source, _CHUNK):
                _write_all(target, chunk)
        finally:
            light.close(target)
        light.utime(into, ns=(about.st_atime_ns, about.st_mtime_ns))
    finally:
        light.close(source)


def _write(path: str, content: bytes) -> None:
    fd = light.open(path, light.O_WRONLY | light.O_CREAT | light.O_CLOEXEC, _PRIVATE_FILE)
    try:
        _write_all(fd, content)
    finally:
        light.close(fd)


def _write_all(fd: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[light.write(fd, left) :]


def _unlink(*paths: str) -> None:
    for path in paths:
        try:
            light.unlink(path)
        except OSError:  # it was never written
            continue


def _has_content(folder: bytes) -> bool:
    """Return True if something is checked out where the index has a submodule."""
    try:
        return bool(light.listdir(folder))
    except FileNotFoundError:
        return False
    except OSError:  # a file is there instead, or it cannot be read
        return True


def _is_there(path: bytes) -> bool:
    try:
        light.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def quoted_path(path: str) -> str:
    """Return a path as git reads it from a list that colons separate."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
