"""Taking trust back: by what is remembered of files, whether or not they can be looked at."""

from __future__ import annotations

import os

from notyet.cli.trusting import folder_there
from notyet.config.files import CONCLAUDE, NAME, READABLE, above, known_as
from notyet.config.files_hosts import looked_for
from notyet.config.store import has_record, read_record
from notyet.core.remote import is_remote


def trusted_paths(path: str, state: str) -> list[str]:
    """Return what a person trusted that counts for a folder, or is the file that is named.

    A machine that is connected to could hide it, and so could a file that nobody can read. Raises
    ValueError for what is no workspace.
    """
    if is_remote(path):
        folder, named = folder_there(path)
        found = [named] if named else _around(folder, state)
    elif os.path.isdir(path):
        # A folder may have been replaced by a link to another one since it was trusted.
        places = (os.path.realpath(path), os.path.abspath(path))
        found = [name for place in places for name in _around(place, state)]
    elif os.path.basename(path) == NAME:
        found = _around(os.path.dirname(known_as(path)), state)
    else:
        found = [known_as(path)]
    return [name for name in dict.fromkeys(found) if _was_trusted(state, name)]


def _around(place: str, state: str) -> list[str]:
    """Return the files that may count for a folder."""
    every, projects = looked_for(READABLE)
    # Of these the nearest one counts, and one further up belongs to another project.
    nearest = [_nearest(place, names, state) for names in ((NAME,), CONCLAUDE)]
    names = [name for name in (*every, *projects) if name not in (NAME, *CONCLAUDE)]
    others = [os.path.join(folder, name) for folder in above(place) for name in names]
    return [*filter(None, nearest), *others]


def _nearest(place: str, names: tuple[str, ...], state: str) -> str:
    for folder in above(place):
        for name in names:
            path = os.path.join(folder, name)
            is_here = not is_remote(path) and os.path.lexists(path)
            if is_here or _was_trusted(state, path):
                return path
    return ""


def _was_trusted(state: str, path: str) -> bool:
    """Tell whether a person trusted it; there is a record of the user's own file, too."""
    known = read_record(state, path)
    return has_record(state, path) if known is None else known.at > 0
