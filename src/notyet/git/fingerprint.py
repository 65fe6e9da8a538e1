"""Fingerprint the files of a repository, or some of them.

A fingerprint covers HEAD, the index, changed files and the content of untracked files. Changed
files come from `git status`, and are read here; the index comes from `git ls-files`, with the
entries that the status skips. A repository can name commands that git would run: all of them are
switched off (see `run`), or the files are unknown. Git is not run in nested repositories. Files
that git ignores are not covered; a file set in a folder that git ignores is unknown.
"""

from __future__ import annotations

from time import monotonic

from notyet import light
from notyet.core.record import Record
from notyet.git.repository import (
    Repository,
    RepositorySettings,
    commit_made_at,
    refuse_hidden_repository,
    top_of,
)
from notyet.git.run import (
    IGNORED,
    LINKED,
    NOT_NAMED,
    OUTSIDE,
    REFUSED,
    TOO_MUCH,
    GitCommand,
    GitRuns,
    Output,
    Unknown,
    reason_of,
    run,
)
from notyet.light import real_folder

try:
    from _blake2 import blake2b  # not hashlib: it loads OpenSSL
except ImportError:
    from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from notyet.git.content import FileReader

MOST_HIDDEN = 200_000  # entries that `git status` skips (skip-worktree, assume-unchanged)
LIST = ("ls-files", "--full-name", "-v", "--stage", "-z")
_MOST_LISTED = 512 * 1024 * 1024  # bytes; they are digested, not stored
_PLAIN = frozenset({b"H 100644 ", b"H 100755 ", b"H 120000 "})
_CONFLICT, _OTHER = b"M ", b"160000 "  # the status shows conflicts, but not inside submodules
_WILD = "*?[\\"
_KIND, _LINK = 0o170000, 0o120000  # S_IFMT and S_IFLNK
STATUS = (
    *("--porcelain=v2", "-z", "--untracked-files=all", "--no-renames"),
    # Otherwise git would run itself in submodules.
    "--ignore-submodules=dirty",
)
ANY = "any"  # a made-up file name
_MOST_STATUS = 32 * 1024 * 1024  # bytes
_NEW = b"? "  # before the path in porcelain v2
_FIELDS = {b"1": 8, b"u": 10}  # spaces before the path in porcelain v2
_HEAD = (b"# branch.oid ", b"# branch.head ")  # not how far it is ahead or behind
_NOT_IGNORED = 1  # exit code of `git check-ignore`


class Scan:
    """The git commands for one file set, and its fingerprint."""

    def __init__(self, repository: Repository, file_set: FileSet) -> None:
        self._repository = repository
        self._folder, self._paths = file_set.folder, file_set.paths
        self._globs = ("--", *(f":(glob){path}" for path in self._paths)) if self._paths else ()
        self._status = Output(_MOST_STATUS)
        # The folders of file sets, and their paths in the repository.
        self._begun: dict[str, bytes] = {}
        self._commands: list[GitCommand] = []
        self._index: Listing | None = None
        self._ignored: dict[str, GitCommand] = {}
        self._known = ""
        self._watched: dict[str, bytes] = {}
        self.head = b""
        self.changes: dict[bytes, bytes] = {}  # what git and the disk say of each changed path

    def watch(self, folders: Sequence[str]) -> None:
        """Look in the index for entries of folders, too; `untracked` returns those without any."""
        inside = f"{self._repository.root.rstrip('/')}/"
        self._watched = {one: light.fsencode(one.removeprefix(inside)) for one in folders}

    @property
    def top(self) -> str:
        """The top folder of the files, to which paths are relative."""
        return self._repository.root

    @property
    def settings(self) -> str:
        """A digest of the settings that affect what git sees."""
        return blake2b(self._repository.said, digest_size=12).hexdigest()

    def untracked(self) -> list[str]:
        """Return the watched folders without a file in the index."""
        unseen = self._index.unseen if self._index is not None else self._watched
        return [folder for folder in self._watched if folder in unseen]

    def add_folder(self, folder: str) -> None:
        """Add a folder that a file set names, to check that git does not ignore it."""
        if folder != self._repository.root:
            inside = f"{self._repository.root.rstrip('/')}/"
            self._begun[folder] = light.fsencode(folder.removeprefix(inside))

    def begin(self) -> Iterator[GitCommand]:
        """Yield the commands to run first."""
        # With paths, a commit that does not touch these files is no change.
        branch = () if self._paths else ("--branch",)
        yield self._command(("status", *STATUS, *branch), self._status.take)
        yield self._list()

    def _list(self) -> GitCommand:
        self._index = listing = Listing({**self._watched, **self._begun})
        more = exact_globs(self._folder, self._paths, self._repository.root)
        return self._command(LIST, listing.take_chunk, more)

    def _command(
        self, args: tuple[str, ...], take: Callable[[bytes], None], more: Sequence[str] = ()
    ) -> GitCommand:
        command = GitCommand(
            self._folder, (*args, *self._globs, *more), take, self._repository.root
        )
        self._commands.append(command)
        return command

    def ignore_checks(self) -> Iterator[GitCommand]:
        """Yield the commands that check whether git ignores folders without tracked files."""
        unseen = self._index.unseen if self._index is not None else {}
        for folder in [one for one in self._begun if one in unseen]:
            ask = ("check-ignore", "--quiet", "--", light.join(folder, ANY))
            root = self._repository.root
            self._ignored[folder] = GitCommand(root, ask, self._status.take, root)
            yield self._ignored[folder]

    def refuse_ignored(self, folder: str) -> None:
        """Raise Unknown if git ignores a folder: changes in it would be missed."""
        ignored = self._ignored.get(folder)
        if ignored is not None and ignored.code != _NOT_IGNORED:
            raise Unknown(IGNORED if ignored.code == 0 else _why(ignored))

    def fingerprint(self, read: Callable[[], FileReader]) -> str:
        """Return the fingerprint from the output of the commands. Raises Unknown if one failed.

        `read` is called if files must be read.
        """
        self._known = self._known or self._computed(read)
        return self._known

    def _computed(self, read: Callable[[], FileReader]) -> str:
        for command in self._commands:
            if command.code != 0:
                raise Unknown(_why(command))
        if self._repository.unknown:
            raise Unknown(self._repository.unknown)
        index = self._index
        assert index is not None  # set by `begin`
        entries, changed = _read_status(bytes(self._status))
        self.head = entries.partition(b"\0")[0].removeprefix(_HEAD[0])
        others = self._nested_repositories() if self._paths else []
        is_new = entries.startswith(_NEW) or b"\0" + _NEW in entries
        if self._paths and not (others or is_new or index.is_filled):
            raise Unknown(NOT_NAMED)
        seen = blake2b(digest_size=12)
        for part in (self._repository.said, entries, index.digest()):
            seen.update(b"%d " % len(part) + part)
        if changed or index.hidden or others:
            files, top = read(), light.fsencode(self._repository.root)
            files.begin_scan()
            hidden = dict.fromkeys(files.present(top, index.hidden))
            for path in dict.fromkeys((*changed, *hidden, *others)):
                content = files.content(top, path, is_listed=path not in hidden)
                self.changes[path] = changed.get(path, b"") + b"\0" + content
                seen.update(b"%d %b%d " % (len(path), path, len(content)) + content)
        return seen.hexdigest()

    def _nested_repositories(self) -> list[bytes]:
        return [*nested_repositories(self._folder, self._paths, self._repository.root)]


def _why(command: GitCommand) -> str:
    """Return why a command failed."""
    return command.reason if command.code is None else REFUSED


def _read_status(status: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    """Return the entries of files and HEAD, and those of paths whose content git has not hashed."""
    entries: list[bytes] = []
    changed: dict[bytes, bytes] = {}
    for entry in status.split(b"\0"):
        kind = entry[:1]
        if kind == b"?":
            changed[entry[2:]] = entry
        elif kind in _FIELDS:
            changed[entry.split(b" ", _FIELDS[kind])[-1]] = entry
        elif not entry.startswith(_HEAD):
            continue
        entries.append(entry)
    return b"\0".join(entries), changed


PATIENCE = 20.0  # seconds for git


class FileSet(Record):
    """Which files to fingerprint: the repository of a folder, or what `paths` match below it."""

    folder: str
    paths: tuple[str, ...] = ()  # git's globs, relative to the folder


def fingerprint(folder: str, patience: float = PATIENCE) -> str:
    """Return a short text that changes when the files of a repository do; empty if unknown."""
    return fingerprints((FileSet(folder),), patience)[0]


def fingerprints(
    file_sets: Sequence[FileSet],
    patience: float = PATIENCE,
    reasons: dict[FileSet, str] | None = None,
) -> list[str]:
    """Return the fingerprint of each file set, all within `patience` seconds; empty if unknown.

    `reasons` receives why, for each file set that is unknown.
    """
    return Fingerprinting(file_sets, patience).finish(reasons)


def normalized(file_set: FileSet) -> FileSet:
    """Return a file set with its paths sorted and without duplicates."""
    return FileSet(file_set.folder, tuple(sorted({*file_set.paths})))


class Fingerprinting:
    """Git at work on several file sets, in the background; equal file sets share their commands.

    The caller must call `finish` or `leave`.
    """

    def __init__(
        self,
        file_sets: Sequence[FileSet],
        patience: float,
        watched: Mapping[FileSet, Sequence[str]] = {},
    ) -> None:
        self._file_sets = file_sets
        self._watched = watched  # folders to look for in the index
        self._ends = monotonic() + patience
        self._failed: dict[FileSet, str] = {}
        self._folders: dict[FileSet, str] = {}  # real paths
        self._scans: dict[FileSet, Scan] = {}
        self._chosen: dict[FileSet, Scan] = {}
        self._unclear: list[RepositorySettings] = []
        self._files: FileReader | None = None
        self._runs: list[GitRuns] = []  # one, until `finish` or `leave` takes it
        try:
            self._begin()
        except (Unknown, OSError, ValueError) as error:
            self._fail(error)

    def finish(
        self, reasons: dict[FileSet, str] | None = None, ends: float | None = None
    ) -> list[str]:
        """Return the fingerprint of each file set; empty, with a reason in `reasons`, if unknown.

        `ends` replaces the time until which to wait.
        """
        seen: dict[FileSet, str] = {}
        if self._runs:
            runs = self._runs.pop()
            if ends is not None:
                self._ends = runs.ends = ends
            try:
                self._finish(runs)
                seen = self._seen()
            except (Unknown, OSError, ValueError) as error:
                self._fail(error)
            finally:
                runs.leave()
        if reasons is not None:
            reasons.update(self._failed)
        return [seen.get(file_set, "") for file_set in self._file_sets]

    def newest_change(self) -> float:
        """Return when the commit was made, or a file changed that differs from it, if later."""
        tops = dict.fromkeys(map(top_of, self._folders.values()))
        files = self._files.newest if self._files is not None else 0.0
        return max([files, *map(commit_made_at, tops)])

    def scan_of(self, file_set: FileSet) -> Scan | None:
        """Return what `finish` saw of a file set; None if it is unknown."""
        return None if file_set in self._failed else self._chosen.get(file_set)

    def leave(self) -> None:
        """End the git commands, unless `finish` has taken them."""
        if self._runs:
            self._runs.pop().leave()

    def _fail(self, error: Exception) -> None:
        self._failed = dict.fromkeys(self._file_sets, reason_of(error)) | self._failed

    def _begin(self) -> None:
        repositories: dict[str, Repository] = {}
        where: dict[FileSet, Repository] = {}
        for file_set in self._file_sets:
            try:
                folder = real_folder(file_set.folder)
                where[file_set] = _repository_of(folder, repositories)
                self._folders[file_set] = folder
            except (Unknown, OSError, ValueError) as error:
                self._failed[file_set] = reason_of(error)
        if not repositories:
            return
        runs = GitRuns(repositories, self._ends)
        self._runs.append(runs)
        unclear = [one for one in repositories.values() if not one.is_clear]
        if unclear:
            self._read_settings(unclear, runs)
        for file_set, repository in where.items():
            if repository.unknown:
                self._failed[file_set] = repository.unknown
                continue
            # The same for all file sets with the same files.
            folder = self._folders[file_set] if file_set.paths else repository.root
            what = normalized(FileSet(folder, file_set.paths))
            scan = self._scans[what] = self._scans.get(what) or Scan(repository, what)
            self._chosen[file_set] = scan
            scan.add_folder(self._folders[file_set])
            if file_set in self._watched:
                scan.watch(self._watched[file_set])
        runs.start([command for scan in self._scans.values() for command in scan.begin()])

    def _read_settings(self, repositories: list[Repository], runs: GitRuns) -> None:
        """Have git read settings: first those that may name a command, the others meanwhile."""
        first = [RepositorySettings(one) for one in repositories if not one.is_plain]
        if first:
            run([command for settings in first for command in settings.commands], self._ends)
        for settings in first:
            settings.apply()
        self._unclear = [RepositorySettings(one) for one in repositories if one.is_plain]
        runs.start([command for settings in self._unclear for command in settings.commands])

    def _finish(self, runs: GitRuns) -> None:
        runs.finish()
        for settings in self._unclear:
            settings.apply()
        unsure = [command for scan in self._scans.values() for command in scan.ignore_checks()]
        if unsure:
            run(unsure, self._ends)

    def _seen(self) -> dict[FileSet, str]:
        seen = {}
        for file_set, scan in self._chosen.items():
            try:
                scan.refuse_ignored(self._folders[file_set])
                seen[file_set] = scan.fingerprint(self._read)
            except (Unknown, OSError) as error:
                self._failed[file_set] = reason_of(error)
        return seen

    def _read(self) -> FileReader:
        """Return the digests that all file sets share."""
        if self._files is None:
            from notyet.git.content import FileReader

            self._files = FileReader(self._ends)
        return self._files


def _repository_of(folder: str, known: dict[str, Repository]) -> Repository:
    root = top_of(folder)
    if not root:
        raise Unknown(OUTSIDE)
    refuse_hidden_repository(folder)
    if root not in known:
        known[root] = Repository(root)
    return known[root]


# The index, as `git ls-files` prints it, and what `paths` name.


class Listing:
    """The entries that git prints, digested as they come; `hidden` are those that it skips."""

    def __init__(self, folders: Mapping[str, bytes]) -> None:
        self.hidden: list[bytes] = []
        self.unseen = {**folders}  # no entry of these was seen yet
        self.is_filled = False
        self._seen = blake2b(digest_size=16)
        self._left = _MOST_LISTED
        self._rest = b""

    def digest(self) -> bytes:
        """Return the digest of all entries."""
        return self._seen.digest()

    def take_chunk(self, chunk: bytes) -> None:
        """Parse the next bytes. Raises Unknown if there are too many."""
        self._left -= len(chunk)
        self.is_filled = True
        self._seen.update(chunk)
        text = self._rest + chunk
        *entries, self._rest = text.split(b"\0")
        for folder, name in [*self.unseen.items()]:
            if b"\t%b/" % name in text:
                del self.unseen[folder]
        plain = _PLAIN
        odd = [entry for entry in entries if entry[:9] not in plain]
        self.hidden += [
            entry.partition(b"\t")[2]
            for entry in odd
            if entry[:2] != _CONFLICT or entry[2:9] == _OTHER
        ]
        if self._left < 0 or len(self.hidden) > MOST_HIDDEN:
            raise Unknown(TOO_MUCH)


def nested_repositories(folder: str, paths: Sequence[str], top: str) -> Iterator[bytes]:
    """Yield the nested repositories that paths enter by name; git's globs do not match in them.

    Raises Unknown if a path leads through a symbolic link.
    """
    for place in _named(folder, paths, top):
        if _is_link(place):  # git's globs do not match behind it
            raise Unknown(LINKED)
        if light.lexists(light.join(place, ".git")):
            yield light.fsencode(_inside(place, top))


def exact_globs(folder: str, paths: Sequence[str], top: str) -> list[str]:
    """Return globs for the folders that paths lead through by name, without their content.

    The index may have a nested repository there, in which git lists nothing.
    """
    return [
        *dict.fromkeys(_exact_glob(_inside(place, top)) for place in _named(folder, paths, top))
    ]


def _exact_glob(name: str) -> str:
    """Return a glob for one name; a plain name would also match all that is in that folder."""
    plain = "".join(f"\\{sign}" if sign in _WILD else sign for sign in name[:-1])
    return f":(top,glob){plain}\\{name[-1]}"


def _named(folder: str, paths: Sequence[str], top: str) -> Iterator[str]:
    """Yield the places that paths lead to and through before their first wildcard."""
    for path in paths:
        wild = min((path.find(mark) for mark in _WILD if mark in path), default=len(path))
        named = path if wild == len(path) else path[:wild].rpartition("/")[0]
        place = light.normpath(light.join(folder, named))
        while _inside(place, top):
            yield place
            place = light.dirname(place)


def _inside(place: str, top: str) -> str:
    """Return the path of a place relative to the top; empty if it is not below it."""
    above = f"{top.rstrip('/')}/"
    return place[len(above) :] if place.startswith(above) else ""


def _is_link(path: str) -> bool:
    try:
        return light.lstat(path).st_mode & _KIND == _LINK
    except OSError:
        return False
