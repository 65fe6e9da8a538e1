"""Claude Code: `settings.json` of the user and of the project, and `settings.local.json`."""

from __future__ import annotations

import os
import sys

from notyet.config.files import real_folder, root_of
from notyet.install import hooks_file
from notyet.install.place import Place, distinct, is_inside, no_home, user_folder
from notyet.install.refused import CannotInstall
from notyet.install.worktree import main_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.config.document import Mistake
    from notyet.install.change import Change
    from notyet.install.entry import Entry
    from notyet.install.place import Scope
    from notyet.install.registered import Registration

NAME = "claude"
TITLE = "Claude Code"
PROGRAM = "claude"
SCOPES: tuple[Scope, ...] = ("user", "project", "local")
TRUSTS = False
APPROVE = ""
MANAGED = (
    "/Library/Application Support/ClaudeCode" if sys.platform == "darwin" else "/etc/claude-code"
)
_FILES: dict[Scope, str] = {"project": "settings.json", "local": "settings.local.json"}


def places(cwd: str, environ: Mapping[str, str]) -> list[Place]:
    """Return the files that Claude Code would read in a folder; they add up."""
    found = []
    user = user_folder(environ, "CLAUDE_CONFIG_DIR", ".claude")
    if user:
        found.append(Place(scope="user", path=os.path.join(user, "settings.json")))
    # It reads the project's settings where it is started and nowhere above, but for the local
    # ones of the repository and of its main work tree, which newer versions find too.
    here = real_folder(cwd)
    for scope, name in _FILES.items():
        found.append(Place(scope=scope, path=os.path.join(here, ".claude", name)))
    for root in filter(None, (root_of(here), main_root(here))):
        path = os.path.join(root, ".claude", _FILES["local"])
        found.append(Place(scope="local", path=path))
    found.append(Place(scope="managed", path=os.path.join(MANAGED, "managed-settings.json")))
    try:
        more = sorted(os.listdir(os.path.join(MANAGED, "managed-settings.d")))
    except OSError:
        more = []
    for name in more:
        if name.endswith(".json") and not name.startswith("."):
            path = os.path.join(MANAGED, "managed-settings.d", name)
            found.append(Place(scope="managed", path=path))
    return distinct(found)


def target(scope: Scope, cwd: str, environ: Mapping[str, str]) -> Place:
    """Return the file that is for these. Raises CannotInstall."""
    user = user_folder(environ, "CLAUDE_CONFIG_DIR", ".claude")
    if scope == "user":
        if not user:
            raise CannotInstall(no_home(environ, "CLAUDE_CONFIG_DIR"))
        return Place(scope=scope, path=os.path.join(user, "settings.json"))
    path = os.path.join(root_of(real_folder(cwd)), ".claude", _FILES[scope])
    if scope == "project" and user and is_inside(path, user):
        raise CannotInstall("this folder's settings are your own; use --user, or go to a project")
    return Place(scope=scope, path=path)


def added(text: str, place: Place, entries: Sequence[Entry]) -> str:
    """Return the file's text with our entries. Raises CannotInstall."""
    return hooks_file.added(NAME, text, place, entries)


def removed(text: str, place: Place) -> str:
    """Return the file's text without our entries. Raises CannotInstall."""
    return hooks_file.removed(NAME, text, place)


def found(cwd: str, environ: Mapping[str, str]) -> tuple[list[Registration], list[Mistake]]:
    """Return our entries in all places, and what is wrong with files."""
    return hooks_file.found_in(NAME, places(cwd, environ))


def approval(place: Place, text: str, environ: Mapping[str, str]) -> Change | None:
    """Return nothing: whoever may write settings is trusted."""
    del place, text, environ
    return None


def disapproval(place: Place, before: str, after: str, environ: Mapping[str, str]) -> Change | None:
    """Return nothing either."""
    del place, before, after, environ
    return None


def advice(place: Place, cwd: str) -> list[str]:
    """Return what a person still has to do; settings are read again at every event."""
    lines = []
    root = os.path.dirname(os.path.dirname(place.path))
    if place.scope != "user" and root != real_folder(cwd):
        lines.append(f"start claude in {root}: it does not look for settings above its folder")
    if place.scope == "project":
        lines.append(f"commit {place.path}, for everybody who works here")
    return lines
