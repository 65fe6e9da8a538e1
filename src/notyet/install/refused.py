"""Why a settings file is left as it is."""

from __future__ import annotations

from notyet.errors import NotyetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.config.document import Mistake


class CannotInstall(NotyetError):  # noqa: N818  # named after what happened
    """A file, or a place for one, cannot be changed as asked; nothing was written."""

    def __init__(self, why: str | Mistake) -> None:
        super().__init__(str(why))
