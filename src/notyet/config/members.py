"""Members: folders of a project whose own files add gates, as in a monorepo (J6).

A file names them by globs. At a stop, only the files of members that changed are loaded: which ones
did is found out without listing folders, since the paths of changed files are enough.
"""

from __future__ import annotations

from notyet import light
from notyet.config.compiled import read_record
from notyet.config.files import ConfigFile
from notyet.config.find import (
    FILE_NAME,
    KIND_NOTYET,
    LOCAL_SOURCE,
    PYPROJECT,
    exists,
    has_table,
    parent,
    tomls_in,
)
from notyet.config.load import is_projects, with_checks
from notyet.config.records import place_of, work_tree
from notyet.core.matcher import glob_matches
from notyet.core.record import replace
from notyet.core.text import visible
from notyet.light import is_remote, realpath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from notyet.config.load import Choose, Layers
    from notyet.core.gate import Command

MOST = 1000  # members that are not trusted; more are not listed
_MOST_LISTED = 20_000  # folders


def add_members(layers: Layers, choose: Choose | None) -> None:
    """Add the files of members; `choose` returns which of them count."""
    before = layers.has_root, layers.read_hosts, layers.is_placed
    for file, settings in layers.layers:  # members may have members
        if settings.members and is_projects(file) and not is_remote(file.path):
            layers.is_placed = True  # a member moves no other gate to its workspace
            _add_members_of(layers, file, settings.members, choose)
    layers.has_root, layers.read_hosts, layers.is_placed = before


def _add_members_of(
    layers: Layers, file: ConfigFile, globs: Sequence[str], choose: Choose | None
) -> None:
    root = parent(file.path)
    known = _in_place(layers, root, trusted_members(layers.state, root, globs))
    chosen = choose(root, globs, known) if choose is not None else None
    if chosen is None:
        found = untrusted_members(root, globs, known, layers.warnings.append)
        chosen = [*known, *found]
    layers.members.update(
        one.path for one, _ in layers.layers if is_member(parent(one.path), root, globs)
    )
    for folder in sorted({*chosen}):
        for member in member_files(f"{root}/{folder}", layers.is_recorded):
            if _is_in_other_work_tree(layers.state, member, root):
                continue
            layers.members.add(member.path)
            _add(layers, member)


def _in_place(layers: Layers, root: str, known: Sequence[str]) -> list[str]:
    """Return trusted members, without those whose folder became another work tree or repository.

    No stop passes then: what was trusted of them cannot run.
    """
    around = {one for folder in known for one in _folders_to(folder)}
    if not any(exists(f"{root}/{folder}/.git") for folder in around):
        return list(known)
    expected = parent(place_of(f"{root}/{FILE_NAME}"))
    found = []
    for folder in known:
        place = f"{expected}/{folder}/{FILE_NAME}"
        is_moved = place_of(f"{root}/{folder}/{FILE_NAME}") != place
        if exists(f"{root}/{folder}") and is_moved and _is_trusted(layers.state, place):
            layers.add_unchecked(
                f"{visible(f'{root}/{folder}')} is in another work tree or repository since its "
                "gates were trusted; put it back, or run: notyet trust"
            )
        else:
            found.append(folder)
    return found


def _is_trusted(state: str, place: str) -> bool:
    """Return True if a person trusted the file of a member; of a work tree there may be a note."""
    places = (place, place.removesuffix(FILE_NAME) + PYPROJECT)
    known = [read_record(state, one, one) for one in places]
    return any(record is not None and record.at for record in known)


def _is_in_other_work_tree(state: str, member: ConfigFile, root: str) -> bool:
    """Return True for a file of another work tree inside this one, or of one that was removed."""
    folder = parent(member.path)
    if not exists(folder):
        known = read_record(state, member.place, member.place)
        return known is not None and bool(known.work_tree_of)
    tree, repository = work_tree(root)
    return repository == work_tree(folder)[1] != "" and tree != work_tree(folder)[0]


def _add(layers: Layers, member: ConfigFile) -> None:
    """Add the file of a member; its gates cannot start if its folder became a link."""
    folder = parent(member.path)
    if not exists(folder):
        from shlex import quote

        layers.add_unchecked(
            f"{visible(folder)} was removed since its gates were trusted; "
            f"if that is right, run: notyet trust --revoke {visible(quote(member.path))}"
        )
        return
    before = len(layers.layers)
    layers.add(member)
    if realpath(folder) == folder:
        return
    refused = {"refused": f"{visible(folder)} is a link, not a folder of the project"}

    def refuse(check: Command) -> Command:
        return replace(check, options={**check.options, **refused})

    layers.layers[before:] = [
        (file, with_checks(settings, refuse)) for file, settings in layers.layers[before:]
    ]


def member_files(folder: str, is_recorded: Callable[[str], bool]) -> Iterator[ConfigFile]:
    """Yield the files of a member that may count."""
    for path, place, is_there, is_known in tomls_in(
        folder, parent(place_of(f"{folder}/{FILE_NAME}")), is_recorded, LOCAL_SOURCE
    ):
        if is_there or is_known:
            yield ConfigFile(
                path=path, kind=KIND_NOTYET, place=place, is_gone=not is_there, is_member=True
            )


def is_member(folder: str, root: str, globs: Sequence[str]) -> bool:
    """Return True if a folder is a member of a project."""
    inside = f"{root.rstrip('/')}/"
    return folder.startswith(inside) and _matches(folder[len(inside) :].split("/"), globs)


def members_around(folder: str, globs: Sequence[str]) -> list[str]:
    """Return the members that a folder is in, or is; all paths are relative to the project."""
    return [one for one in _folders_to(folder) if _matches(one.split("/"), globs)]


def _folders_to(folder: str) -> list[str]:
    """Return the folders on the way to a folder, and itself."""
    parts = folder.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]


def _matches(parts: Sequence[str], globs: Sequence[str]) -> bool:
    return any(_fits(parts, glob.split("/")) for glob in globs)


def _fits(parts: Sequence[str], glob: Sequence[str]) -> bool:
    if not glob:
        return not parts
    if glob[0] == "**":
        return _fits(parts, glob[1:]) or (
            bool(parts) and not _is_hidden(parts[0]) and _fits(parts[1:], glob)
        )
    return bool(parts) and _fits_name(parts[0], glob[0]) and _fits(parts[1:], glob[1:])


def _fits_name(name: str, glob: str) -> bool:
    """Return True if a name matches; a hidden one does only if the glob begins with a dot too."""
    is_match = glob == "*" or glob_matches(glob, name)
    return is_match and (not _is_hidden(name) or glob.startswith("."))


def _is_hidden(name: str) -> bool:
    return name.startswith(".")


# Listing members.


def trusted_members(state: str, root: str, globs: Sequence[str]) -> list[str]:
    """Return the members of which a file was trusted, even if their folders are gone.

    Records are kept by place, so that they can be listed like folders.
    """
    if not state:
        return []
    records = f"{state}/trust{parent(place_of(f'{root}/{FILE_NAME}'))}"
    names = [f"{name}.json" for name in (FILE_NAME, PYPROJECT)]
    return [
        folder
        for folder in folders(records, globs, [_MOST_LISTED])
        if any(exists(f"{records}/{folder}/{name}") for name in names)
    ]


def untrusted_members(
    root: str, globs: Sequence[str], known: Iterable[str], warn: Callable[[str], None]
) -> list[str]:
    """Return the other members that have a file, the first of very many.

    Folders without a file do not count: an agent could make as many as it likes.
    """
    left = [_MOST_LISTED]
    trusted = frozenset(known)
    found: list[str] = []
    links: list[str] = []
    matching = folders(root, globs, left, links)
    for link in links:
        if link not in trusted and _has_file(f"{root}/{link}"):
            warn(f"{visible(f'{root}/{link}')} is a link, so it is not a member")
    for folder in matching:
        if folder not in trusted and _has_file(f"{root}/{folder}"):
            if len(found) == MOST:
                warn(
                    f"{visible(root)}: `members` match more than {MOST:,} folders that are not "
                    f"trusted; the first {MOST:,} count"
                )
                return found
            found.append(folder)
    if left[0] < 0:
        warn(
            f"{visible(root)}: `members` match too much: only {_MOST_LISTED:,} folders were "
            "looked at, and members that you trusted"
        )
    return found


def _has_file(folder: str) -> bool:
    path = f"{folder}/{PYPROJECT}"
    return exists(f"{folder}/{FILE_NAME}") or (exists(path) and has_table(path, LOCAL_SOURCE))


def folders(
    root: str, globs: Sequence[str], left: list[int], links: list[str] | None = None
) -> list[str]:
    """Return the folders that match, relative to the root; links to folders go to `links`.

    `left` is how many folders may be looked at; below 0 some are missing.
    """
    found: dict[str, None] = {}
    others: dict[str, None] = {}
    for glob in globs:
        for folder, is_link in _below(root, "", glob.split("/"), left):
            (others if is_link else found).setdefault(folder.lstrip("/"))
    found.pop("", None)
    if links is not None:
        links += others
    return [*found]


def _below(
    root: str, folder: str, glob: Sequence[str], left: list[int]
) -> Iterator[tuple[str, bool]]:
    if not glob:
        yield folder, False
        return
    if glob[0] == "**":
        yield from _below(root, folder, glob[1:], left)
    for name, is_link in _folders_in(f"{root}{folder}", left):
        inner = f"{folder}/{name}"
        if glob[0] == "**":
            if not is_link and not _is_hidden(name):
                yield from _below(root, inner, glob, left)
        elif not _fits_name(name, glob[0]):
            continue
        elif not is_link:
            yield from _below(root, inner, glob[1:], left)
        elif not glob[1:]:
            yield inner, True


def _folders_in(folder: str, left: list[int]) -> list[tuple[str, bool]]:
    """Return the folders in a folder, and which of them are links."""
    if left[0] < 0:
        return []
    try:
        with light.scandir(folder) as entries:
            found = sorted((one.name, one.is_symlink()) for one in entries if one.is_dir())
    except OSError:
        return []
    left[0] -= len(found)
    return found
