"""Where the records of trust are: by the path of a file, and by its place in a repository.

The same place in every linked work tree of a repository has one record: that of the main work tree,
or of the folder of a bare repository. Other clones have their own.
"""

from __future__ import annotations

from notyet import light
from notyet.light import is_remote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_KIND, _REGULAR = 0o170000, 0o100000  # S_IFMT and S_IFREG, without importing `stat`


def placed(folders: Iterable[str]) -> list[tuple[str, str]]:
    """Return folders with the places that their records have; nearest first, as they are given.

    Of each repository only the nearest work tree counts: an agent in a linked work tree inside the
    main one does not work on the files of the main one.
    """
    found: list[tuple[str, str]] = []
    nearest: dict[str, str] = {}  # root of the nearest work tree, by repository
    inside: list[str] = []
    for folder in folders:
        inside.append(folder)
        main = _repository_at(folder)
        if not main:
            continue
        if nearest.setdefault(main, folder) == folder:
            found += [(one, main + one[len(folder) :]) for one in inside]
        inside = []
    return found + [(one, one) for one in inside]


def _repository_at(root: str) -> str:
    """Return the main root of a repository with a work tree at `root`; empty if it has none."""
    if is_remote(root):
        return ""
    try:
        kind = light.lstat(f"{root.rstrip('/')}/.git").st_mode & _KIND
    except (OSError, ValueError):
        return ""
    if kind != _REGULAR:
        return root
    from notyet.git.worktrees import main_of

    return main_of(root) or root


def work_tree(path: str) -> tuple[str, str]:
    """Return the root of the work tree around a path, and the main root of its repository."""
    root = path
    while root and not is_remote(path):
        main = _repository_at(root)
        if main:
            return root, main
        root = root.rpartition("/")[0]
    return "", ""


def place_of(path: str) -> str:
    """Return the place that a file or folder has in its repository; its path outside of one."""
    root, main = work_tree(light.dirname(path))
    return main + path[len(root) :] if root != main else path


def in_work_tree_of(cwd: str, folder: str) -> str:
    """Return a folder, or the same place in the linked work tree that an agent works in.

    A session may have begun in another work tree of that repository.
    """
    if not folder or folder == cwd:
        return folder
    root, main = work_tree(cwd)
    if root == main:
        return folder
    other, its_main = work_tree(folder)
    return root + folder[len(other) :] if its_main == main else folder


def has_record(state: str, place: str) -> bool:
    """Return True if there is a record about a file, which itself may be gone.

    Without a home there is none: a record in the current folder could be anybody's.
    """
    return bool(state) and light.exists(record_path(state, place))


def record_path(state: str, place: str) -> str:
    """Return the path of the record about a file; files of other machines have their own folder."""
    if is_remote(place):
        from notyet.core.remote import remote_from

        there = remote_from(place)
        machine = there.machine.replace("//", "")  # ssh:dev@box, so that no host is named ".."
        return light.join(state, "trust-there", machine, there.path.lstrip("/")) + ".json"
    return f"{state}/trust/{place.lstrip('/')}.json"
