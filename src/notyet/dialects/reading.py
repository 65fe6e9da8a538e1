"""`Reading`: what a hook command answered."""

from __future__ import annotations

from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.verdict import Allow, Block, Halt, Problem


class Reading(Record, kw_only=True):
    """What a hook command answered."""

    answer: Allow | Block | Halt | Problem
    warning: str = ""  # for the command's author
    tell_user: str = ""  # its `systemMessage` (F14)
    hidden: bool = False  # its `suppressOutput` (F12)
    context: str = ""  # its `additionalContext`, at a start event (F13)
