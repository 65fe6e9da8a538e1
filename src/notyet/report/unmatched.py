"""Globs that match no file: git is asked about many of them at once."""

from __future__ import annotations

import subprocess

from notyet.workspace.git import HARMLESS, QUIET, own_environ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

NO_FILE = "matches no file that git looks at"
_OUTSIDE = "leads out of the repository, so that nobody can tell whether it changed"
_PATIENCE = 20.0  # seconds for git
_AT_ONCE = 200  # globs; together they must not be longer than arguments may be
_LISTED = ("ls-files", "--cached", "--others", "--exclude-standard", "--error-unmatch", "-z", "--")
_BEFORE, _AFTER = "error: pathspec ':(glob)", "' did not match any file(s) known to git"
_UNMATCHED, _FATAL = 1, 128  # how git exits


def unmatched(globs: Sequence[str], folder: str) -> dict[str, str]:
    """Say of globs why they match no file; nothing of those that do, or where git cannot tell."""
    found: dict[str, str] = {}
    for start in range(0, len(globs), _AT_ONCE):
        code, said = _ask(globs[start : start + _AT_ONCE], folder)
        if code == _UNMATCHED:
            found |= dict.fromkeys(_named(said), NO_FILE)
        elif code == _FATAL and "not a git repository" not in said:
            found |= _one_by_one(globs[start : start + _AT_ONCE], folder)
    return found


def _one_by_one(globs: Sequence[str], folder: str) -> dict[str, str]:
    """Ask about each glob alone, where one of them is nothing that git takes."""
    found = {}
    for glob in globs:
        code, said = _ask([glob], folder)
        if code == _UNMATCHED:
            found[glob] = NO_FILE
        elif "outside repository" in said:
            found[glob] = _OUTSIDE
    return found


def _named(said: str) -> list[str]:
    """Return the globs that git names; one with a line break in it is not among them."""
    return [
        line.removeprefix(_BEFORE).removesuffix(_AFTER)
        for line in said.split("\n")
        if line.startswith(_BEFORE) and line.endswith(_AFTER)
    ]


def _ask(globs: Sequence[str], folder: str) -> tuple[int, str]:
    """Return how git exits, and what it complains of; nothing where it does not answer."""
    argv = ["git", "-C", folder, *HARMLESS, *_LISTED, *(f":(glob){glob}" for glob in globs)]
    try:
        done = subprocess.run(  # noqa: S603  # git, with globs that cannot be options
            argv,
            env=own_environ() | QUIET | {"LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0, ""
    return done.returncode, done.stderr.decode("utf-8", "surrogateescape")
