"""Find the repository of a folder, and read the settings that affect its fingerprint."""

from __future__ import annotations

from notyet import light
from notyet.git.run import (
    FILTERED,
    REDIRECTED,
    REFUSED,
    TOO_MUCH,
    GitCommand,
    Output,
    Unknown,
    reason_of,
)
from notyet.git.worktrees import git_folders
from notyet.light import real_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def repository_of(folder: str) -> str:
    """Return the top folder of the repository that a folder is in; empty if it is in none."""
    return top_of(real_folder(folder))


def top_of(real: str) -> str:
    """Return the same as `repository_of` for a real path, which may be empty."""
    for place in with_parents(real) if real else ():
        if light.lexists(f"{place}/.git"):
            return place
    return ""


def with_parents(folder: str) -> Iterator[str]:
    """Yield a folder and all its parents."""
    yield folder
    while folder != (around := light.dirname(folder)):
        folder = around
        yield folder


_MOST_CONFIG = 1024 * 1024
_MOST_PACKED = 64 * 1024 * 1024
_PIECE = 64 * 1024
# Words that a config must contain to have such a setting; then git reads the settings.
_SETTING_WORDS = (b"filter", b"include", b"worktree")
_EXCLUDES_WORDS = (b"excludesfile", b"include")
_OF_ALL_USERS = "/etc/gitconfig"
_READ = light.O_RDONLY | light.O_CLOEXEC | light.O_NONBLOCK  # opening a pipe must not block


class Repository:
    """A repository: its top folder, and the settings that affect its fingerprint."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.unknown = ""  # why there is no fingerprint
        kept, common = git_folders(root)
        folders = [*dict.fromkeys((common, kept))]
        config = _read_all(folders, ("config", "config.worktree"))
        self.said = config + _read_all(folders, ("info/exclude", "info/attributes"))
        is_plain = not _has_word(config, _SETTING_WORDS)
        self.is_plain = is_plain and ":" not in light.dirname(root)
        users, ignore = user_config()
        self.is_clear = self.is_plain and not _has_word(config + users, _EXCLUDES_WORDS)
        if self.is_clear:  # else git says which file it is
            self.excluded(ignore)

    def excluded(self, path: str) -> None:
        """Include the user's ignore file, which is outside the repository."""
        self.said += _read_all((self.root,), (path,)) if path else b""


def user_config() -> tuple[bytes, str]:
    """Return the user's git config, and the ignore file that git uses by default."""
    environ = light.variables()
    home = environ.get("HOME", "")
    folder = environ.get("XDG_CONFIG_HOME", "") or (home and f"{home}/.config")
    files = [_OF_ALL_USERS]
    files += [f"{home}/.gitconfig"] if home else []
    files += [f"{folder}/git/config"] if folder else []
    return b"".join(map(read_small_file, files)), f"{folder}/git/ignore" if folder else ""


def _has_word(config: bytes, words: Sequence[bytes]) -> bool:
    config = config.lower()
    return any(word in config for word in words)


def refuse_hidden_repository(folder: str) -> None:
    """Raise Unknown if git could find another repository on its way up than we do.

    Git takes any folder that looks like a `.git` folder for a repository.
    """
    for place in with_parents(folder):
        if light.lexists(f"{place}/.git"):
            return
        if all(light.exists(f"{place}/{name}") for name in ("HEAD", "objects", "refs")):
            raise Unknown


def commit_made_at(root: str) -> float:
    """Return when the commit that is checked out came into this repository; 0 without a commit.

    Infinite if unknown. The date in a commit is anybody's choice; the ctime of its file is not.
    """
    try:
        kept, common = git_folders(root)
        name = _commit(kept, common)
        objects = light.join(common, "objects")
        loose = light.join(objects, name[:2], name[2:])
        if not name or light.exists(loose):
            return light.stat(loose).st_ctime if name else 0.0
        packs = light.join(objects, "pack")  # in one of these; or in another repository
        made = [light.stat(light.join(packs, pack)).st_ctime for pack in light.listdir(packs)]
        return max(made, default=0.0)
    except (Unknown, OSError, ValueError):
        return float("inf")


def _commit(kept: str, common: str) -> str:
    """Return the id of the commit that is checked out; empty if there is none. Raises Unknown."""
    head = light.fsdecode(read_small_file(light.join(kept, "HEAD"))).strip()
    name = head.removeprefix("ref: ")
    if name == head:
        return head
    if name == "refs/heads/.invalid":  # git keeps its references in another format
        raise Unknown
    found = light.fsdecode(read_small_file(light.join(common, name))).strip()
    if found:
        return found
    packed = light.fsdecode(read_small_file(light.join(common, "packed-refs"), _MOST_PACKED))
    return next(
        (line[: -len(name) - 1] for line in packed.splitlines() if line.endswith(f" {name}")), ""
    )


def _read_all(folders: Sequence[str], names: Sequence[str]) -> bytes:
    files = (light.join(folder, name) for folder in folders for name in names)
    return b"".join(b"%d " % len(content) + content for content in map(read_small_file, files))


def read_small_file(path: str, most: int = _MOST_CONFIG) -> bytes:
    """Return the content of a file; empty if it is missing. Raises Unknown if it is too big."""
    try:
        fd = light.open(path, _READ)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    try:
        pieces, left = [], most
        size = light.fstat(fd).st_size
        if size > most:
            raise Unknown(TOO_MUCH)
        while piece := light.read(fd, max(_PIECE, size + 1)):
            left -= len(piece)
            if left < 0:
                raise Unknown(TOO_MUCH)
            pieces.append(piece)
    finally:
        light.close(fd)
    return b"".join(pieces)


FILTERS = r"^filter\..*\.(clean|process)$"
# The settings that matter: filters, and the user's ignore file.
_SETTINGS = FILTERS.replace("^", "^(").replace("$", r"|core\.excludesfile)$")
_READ_SETTINGS = (
    "config",
    "--show-scope",
    "--includes",
    "--type=path",
    "-z",
    "--get-regexp",
    _SETTINGS,
)
_FIND = ("rev-parse", "--show-toplevel")
_EXCLUDES = b"core.excludesfile"
_OF_THE_REPOSITORY = frozenset({b"local", b"worktree"})
_NOTHING_FOUND = 1  # exit code of `git config` without a match
_MOST_PRINTED = 1024 * 1024


class RepositorySettings:
    """The git commands that read the settings of a repository.

    Filters of the user may run; a repository with its own filters is unknown.
    """

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        root = repository.root
        self._told, self._top = Output(_MOST_PRINTED), Output(_MOST_PRINTED)
        self.commands = [GitCommand(root, _READ_SETTINGS, self._told.take, root)]
        if not repository.is_plain:
            self.commands.append(GitCommand(root, _FIND, self._top.take, root))

    def apply(self) -> None:
        """Update the repository from the output of the commands."""
        repository, (read, *found) = self._repository, self.commands
        repository.unknown = next((c.reason for c in self.commands if c.code is None), "")
        if read.code not in {0, _NOTHING_FOUND} or any(command.code for command in found):
            repository.unknown = repository.unknown or REFUSED
        elif not repository.unknown:
            top = light.fsdecode(bytes(self._top).removesuffix(b"\n"))
            if found and top != repository.root:
                repository.unknown = REDIRECTED
                return
            self._read(bytes(self._told).split(b"\0"))

    def _read(self, told: list[bytes]) -> None:
        excludes = user_config()[1]
        for scope, setting in zip(told[::2], told[1::2], strict=False):
            name, _, value = setting.partition(b"\n")
            if name == _EXCLUDES:
                excludes = light.fsdecode(value)  # the last one counts
            elif scope in _OF_THE_REPOSITORY:
                self._repository.unknown = FILTERED
        try:
            self._repository.excluded(excludes)
        except (OSError, ValueError, Unknown) as error:
            self._repository.unknown = reason_of(error)
