"""Which installed lines may be run to see their answer: never what nobody has approved.

A line of ours may stand in a repository that was just cloned, and run anything besides us.
"""

from __future__ import annotations

import os
import shlex

from notyet.config.files import real_folder, root_of
from notyet.dialects.own_command import at_verb, is_only_hook, ours_of
from notyet.install.entry import parsed, portable
from notyet.install.start import unguarded
from notyet.install.worktree import main_root
from notyet.report.faults.claude_folder import is_accepted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from notyet.install.registered import Registration
    from notyet.report.faults.fault import Fault
    from notyet.report.faults.look import Look

_OF_PROJECTS = ("project", "local")
# Variables that a project's settings may set without changing which program is run.
_HARMLESS = ("NOTYET_", "CLAUDE_CODE_")
_ISOLATED = ["-I", "-S"]


def is_skipped(look: Look, entry: Registration) -> bool:
    """Tell whether the host itself would not run an entry, of which it is told elsewhere."""
    return entry.where in look.skipped


def why_not_sent(look: Look, entry: Registration) -> str:
    """Say why no stop is sent through a line; empty when one is."""
    if not _is_only_ours(entry.command):
        return "it also runs other commands"
    if look.host == "codex" or is_accepted(look):  # then the host runs it whenever it stops
        return ""
    if entry.place.scope in _OF_PROJECTS and not _is_plain(look, entry.command):
        return "it stands in a project that you have not accepted"
    names = ", ".join(_added(look))
    return f"a project that you have not accepted sets {names} for it" if names else ""


def not_probed(look: Look, entry: Registration, why: str) -> Fault:
    """Return that a line was not tried."""
    fix = "start claude here once, and accept the folder"
    if not _is_only_ours(entry.command):
        fix = "look whether it answers, or keep notyet in a line of its own"
    what = f"The installed command was not tried, because {why}."
    return look.fault("not-probed", what, where=entry.where, fix=fix)


def _is_only_ours(command: str) -> bool:
    ours = parsed(command)
    if ours is not None and ours.verb == "conclaude":
        words = _words(command)
        return bool(words) and ours_of(words) == words
    return is_only_hook(command)


def _is_plain(look: Look, command: str) -> bool:
    """Tell whether a line names a notyet that is none of the project's, and does nothing else."""
    words = _words(unguarded(command))
    if words[:2] == ["sh", "-c"]:
        called = _words(words[-1].rpartition("; exec ")[2])
        return called[:1] == ["notyet"] and command == portable(shlex.join(called[1:]))
    if not words or ours_of(words) != words:
        return False
    start = words[: at_verb(words)]
    if start == ["notyet"]:
        return True
    is_script = len(start) == 1
    if not is_script and (start[1:-1] != _ISOLATED):  # else it may find its modules here
        return False
    return all(_is_outside(look, path) for path in {start[0], start[-1]})


def _words(command: str) -> list[str]:
    """Return a line's words; none where a shell would do more than part them."""
    try:
        words = shlex.split(command)
    except ValueError:
        return []
    return words if shlex.join(words) == command else []


def _is_outside(look: Look, path: str) -> bool:
    here = real_folder(look.cwd)
    roots = [os.path.realpath(root) for root in (root_of(here), main_root(here)) if root]
    names = (os.path.normpath(path), os.path.realpath(path))
    return os.path.isabs(path) and not any(
        os.path.commonpath([name, root]) == root for name in names for root in roots
    )


def _added(look: Look) -> Iterator[str]:
    for content in look.contents:
        said = content.get("env")
        if content.place.scope in _OF_PROJECTS and isinstance(said, dict):
            yield from (name for name in said if not name.startswith(_HARMLESS))
