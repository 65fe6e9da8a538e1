"""Linked work trees: the git folder that they share, from the files in `.git`, without git."""

from __future__ import annotations

from notyet import light

_MOST = 64 * 1024  # bytes of a file that holds one path
_READ = light.O_RDONLY | light.O_CLOEXEC | light.O_NONBLOCK  # opening a pipe must not block
_FILE = b"gitdir: "  # how a `.git` file begins
_known: dict[str, tuple[str, object, str]] = {}  # by root, while these files are the same


def shared_folder(root: str) -> str:
    """Return the git folder that a linked work tree shares; empty if `root` is not one.

    Anyone can write a `.git` file, so the shared folder must name this work tree too.
    """
    try:
        back, signs, shared = _known.get(root, ("", None, ""))
        if signs is None or signs != (_sign(f"{root}/.git"), _sign(back)):
            own, shared = map(light.realpath, git_folders(root))
            back = light.join(own, "gitdir")  # missing in a submodule
            signs = _sign(f"{root}/.git"), _sign(back)
            named = light.realpath(light.join(own, _path(_read(back))))
            if light.dirname(own) != light.join(shared, "worktrees") or named != f"{root}/.git":
                return ""
            _known[root] = back, signs, shared
    except (OSError, ValueError):
        return ""
    return shared


def _sign(path: str) -> tuple[int, ...]:
    about = light.lstat(path)
    return about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


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


def seems_linked(root: str) -> bool:
    """Return True if a `.git` file names the git folder of a linked work tree, even a lost one."""
    try:
        said = _read(f"{root}/.git")
    except (OSError, ValueError):
        return False
    return said.startswith(_FILE) and b"/worktrees/" in said


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
