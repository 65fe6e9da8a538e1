"""A `notyet.toml` that is not in force: what would be, if it were."""

from __future__ import annotations

from notyet import system
from notyet.config.differing import add_draft
from notyet.config.files import NAME, NATIVE, ConfigFile, native_files, real_folder
from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.config.layers import Loaded


class Draft(Record, kw_only=True):
    """A `notyet.toml` that is not in force, as somebody would have it."""

    text: str
    path: str = ""  # where it lies, by its one name


def add_with_draft(loaded: Loaded, cwd: str, environ: Mapping[str, str], draft: Draft) -> None:
    """Add the user's file, and the draft as if it stood where the project's file is."""
    place = real_folder(cwd)
    stands_for = []
    for file in native_files(place, environ, loaded.is_trusted):
        if file.own:
            loaded.add(file)
        else:
            stands_for.append(file.path)
    in_force = [path for path in stands_for if loaded.is_trusted(path)]
    if draft.path in stands_for:
        path = draft.path
    else:
        path = (*in_force, *stands_for, system.path.join(place, NAME))[0]
    add_draft(loaded, ConfigFile(path=path, kind=NATIVE), draft.text)
