"""One look at the files of a repository, or at some of them: what git is asked and tells."""

from __future__ import annotations

from notyet import system
from notyet.workspace.git import Command, Output
from notyet.workspace.unknown import IGNORED, NOT_NAMED, REFUSED, Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from notyet.workspace.content import Contents
    from notyet.workspace.index import Entries
    from notyet.workspace.look import Scope
    from notyet.workspace.place import Place

STATUS = (
    *("--porcelain=v2", "-z", "--untracked-files=all", "--no-renames"),
    # What submodules look like inside, git would find out by running itself in them.
    "--ignore-submodules=dirty",
)
ANY = "any"  # stands for whatever is in a folder
_MOST_STATUS = 32 * 1024 * 1024  # bytes
_NEW = b"? "  # before the path in porcelain v2
_FIELDS = {b"1": 8, b"u": 10}  # spaces before the path in porcelain v2
_HEAD = (b"# branch.oid ", b"# branch.head ")  # how far the others are is no matter of the files
_NOT_IGNORED = 1  # how `git check-ignore` exits


class OneLook:
    """One look at the files of a place, or at some of them."""

    def __init__(self, place: Place, scope: Scope) -> None:
        self._place = place
        self._folder, self._paths = scope.folder, scope.paths
        self._globs = ("--", *(f":(glob){path}" for path in scope.paths)) if scope.paths else ()
        self._status = Output(_MOST_STATUS)
        self._begun: dict[str, bytes] = {}  # where somebody works who wants to know
        self._commands: list[Command] = []
        self._index: Entries | None = None
        self._unread = ""  # why it cannot be told what is in it
        self._ignored: dict[str, Command] = {}
        self._known = ""

    def begin_in(self, folder: str) -> None:
        """Say in which folder somebody works who wants to know: it must not be ignored."""
        if folder != self._place.root:
            inside = f"{self._place.top.rstrip('/')}/"
            self._begun[folder] = system.fsencode(folder.removeprefix(inside))

    def begin(self) -> Iterator[Command]:
        """Yield what git is asked at once."""
        # Narrowed, a commit that leaves these files alone is no change.
        branch = () if self._paths else ("--branch",)
        yield self._command(("status", *STATUS, *branch), self._status.take)
        if self._paths or not self._place.index:
            yield self._list()

    def read_index(self, ends: float) -> Iterator[Command]:
        """Read the index, unless git lists it; yield what has git do so where we cannot."""
        if self._index is None:
            from notyet.workspace.index import read_index

            try:
                self._index = read_index(self._place.index, self._begun, ends)
            except Unknown as unknown:  # which says nothing of other repositories
                self._unread = unknown.reason
                return
            if self._index is None:
                yield self._list()

    def _list(self) -> Command:
        from notyet.workspace.listing import LIST, Listing, exact

        self._index = listing = Listing(self._begun)
        more = exact(self._folder, self._paths, self._place.top)
        return self._command(LIST, listing.take_chunk, more)

    def _command(
        self, args: tuple[str, ...], take: Callable[[bytes], None], more: Sequence[str] = ()
    ) -> Command:
        command = Command(self._folder, (*args, *self._globs, *more), take, self._place.root)
        self._commands.append(command)
        return command

    def doubts(self) -> Iterator[Command]:
        """Yield what asks whether git ignores the folders in which it knows no file."""
        for folder in self._index.unmet if self._index is not None else ():
            ask = ("check-ignore", "--quiet", "--", system.path.join(folder, ANY))
            root = self._place.root
            self._ignored[folder] = Command(root, ask, self._status.take, root)
            yield self._ignored[folder]

    def expect_seen(self, folder: str) -> None:
        """Raise Unknown if git ignores a folder: then all in it could change unseen."""
        ignored = self._ignored.get(folder)
        if ignored is not None and ignored.code != _NOT_IGNORED:
            raise Unknown(IGNORED if ignored.code == 0 else _why(ignored))

    def fingerprint(self, read: Callable[[], Contents]) -> str:
        """Return what the files come to, once git has told; raises Unknown if it has not.

        `read` is asked for what reads files, where there is something to be read.
        """
        self._known = self._known or self._taken(read)
        return self._known

    def _taken(self, read: Callable[[], Contents]) -> str:
        from notyet.workspace.index import blake2b

        for command in self._commands:
            if command.code != 0:
                raise Unknown(_why(command))
        if self._unread or self._place.unknown:
            raise Unknown(self._unread or self._place.unknown)
        index = self._index
        assert index is not None  # it is read, or listed
        entries, changed = _read_status(bytes(self._status))
        others = self._led_into() if self._paths else []
        is_new = entries.startswith(_NEW) or b"\0" + _NEW in entries
        if self._paths and not (others or is_new or index.is_filled):
            raise Unknown(NOT_NAMED)
        seen = blake2b(digest_size=12)
        for part in (self._place.said, entries, index.digest()):
            seen.update(b"%d " % len(part) + part)
        if changed or index.hidden or others:
            from notyet.workspace.content import Reading

            reading = Reading(read(), system.fsencode(self._place.top))
            hidden = dict.fromkeys(reading.present(index.hidden))
            for path in dict.fromkeys((*changed, *hidden, *others)):
                content = reading.content(path, is_listed=path not in hidden)
                seen.update(b"%d %b%d " % (len(path), path, len(content)) + content)
        return seen.hexdigest()

    def _led_into(self) -> list[bytes]:
        from notyet.workspace.listing import led_into

        return [*led_into(self._folder, self._paths, self._place.top)]


def _why(command: Command) -> str:
    """Return why a command has not told what it should."""
    return command.reason if command.code is None else REFUSED


def _read_status(status: bytes) -> tuple[bytes, list[bytes]]:
    """Return the entries that count, and the paths whose content git has not hashed for us."""
    entries, changed = [], []
    for entry in status.split(b"\0"):
        kind = entry[:1]
        if kind == b"?":
            changed.append(entry[2:])
        elif kind in _FIELDS:
            changed.append(entry.split(b" ", _FIELDS[kind])[-1])
        elif not entry.startswith(_HEAD):
            continue
        entries.append(entry)
    return b"\0".join(entries), changed
