"""Why it cannot be told what files look like: in words that end a sentence."""

from __future__ import annotations

FILTERED = "the repository names filters of its own"
IGNORED = "git ignores this folder"
LINKED = "`paths` lead through a link"
LOST = "the machine did not tell"
NO_GIT = "there is no git outside of the project"
NOT_NAMED = "`paths` name no file"
ODD = "there are names or files that cannot be read"
OUTSIDE = "it is not in a git repository"
REFUSED = "git refuses this repository"
SLOW = "it took too long"
TOO_MUCH = "there is too much to look at"
UNREADABLE = "a folder cannot be read"


class Unknown(Exception):  # noqa: N818  # not an error of ours
    """What the files look like cannot be told, or not in time."""

    def __init__(self, reason: str = ODD) -> None:
        super().__init__(reason)
        self.reason = reason


def reason_of(error: Exception) -> str:
    """Return why a look failed."""
    return error.reason if isinstance(error, Unknown) else ODD
