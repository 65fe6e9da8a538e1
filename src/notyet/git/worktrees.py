"""Linked work trees: the git folder that they share, from the files in `.git`, without git."""

from __future__ import annotations

from notyet import light

_MOST = 64 * 1024  # bytes of a file that holds one path
_READ = light.O_RDONLY | light.O_CLOEXEC | light.O_NONBLOCK  # opening a pipe must not block
_FILE = b"gitdir: "  # how a `.git` file begins
_known: dict[tuple[object, ...], str] = {}


def shared_folder(root: str) -> str:
    """Return the git folder that a linked work tree shares; empty if `root` is not one.

    Anyone can write a `.git` file, so the shared folder must name this work tree too.
    """
    try:
        about = light.lstat(f"{root}/.git")
        version = (root, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
        if version in _known:
            return _known[version]
        shared = _shared(root)
    except (OSError, ValueError):
        return ""
    if shared:  # `git worktree repair` may make it one without a change here
        _known[version] = shared
    return shared


def _shared(root: str) -> str:
    own, shared = map(light.realpath, git_folders(root))
    if own == shared:  # a submodule, say
        return ""
    named = light.realpath(light.join(own, _path(_read(f"{own}/gitdir"))))
    is_listed = light.dirname(own) == light.join(shared, "worktrees")
    return shared if is_listed and named == f"{root}/.git" else ""


def git_folders(root: str) -> tuple[str, str]:
    """Return the git folder of a work tree, and the one that all its work trees share.

    Raises OSError, and ValueError if its `.git` is a file that names no folder.
    """
    own = light.join(root, ".git")
    if not light.isdir(own):
        said = _read(own)
        if not said.startswith(_FILE):
            raise ValueError(f"{own} does not begin with gitdir:")
        own = light.join(root, _path(said[len(_FILE) :]))
    try:
        shared = _path(_read(light.join(own, "commondir")))
    except (FileNotFoundError, NotADirectoryError):
        shared = ""
    return own, light.join(own, shared) if shared else own


def main_of(root: str) -> str:
    """Return the root of the main work tree of a linked one; of a bare repository, its folder.

    Empty if `root` is not a linked work tree.
    """
    shared = shared_folder(root)
    return light.dirname(shared) if light.basename(shared) == ".git" else shared


def main_worktree(folder: str) -> str:
    """Return the root of the main work tree if a folder is in a linked one; else empty."""
    shared = shared_folder(_root_of(folder))
    return light.dirname(shared) if light.basename(shared) == ".git" else ""


def in_main_worktree(folder: str) -> str:
    """Return the same folder in the main work tree; itself if it is not in a linked one."""
    main = main_worktree(folder)
    return light.normpath(main + folder[len(_root_of(folder)) :]) if main else folder


def _root_of(folder: str) -> str:
    """Return the nearest folder around a folder that has a `.git`; empty if there is none."""
    while folder and not light.lexists(f"{folder}/.git"):
        folder = folder.rpartition("/")[0]
    return folder


def _path(line: bytes) -> str:
    return light.fsdecode(line.rstrip(b"\r\n"))


def _read(path: str) -> bytes:
    descriptor = light.open(path, _READ)
    try:
        return light.read(descriptor, _MOST)
    finally:
        light.close(descriptor)
