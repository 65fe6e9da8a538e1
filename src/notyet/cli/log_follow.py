"""`notyet log -f`: stops as they are decided, whichever process decides them."""

from __future__ import annotations

import os
import select
import sys
import time

from notyet.cli.lines import json_line
from notyet.cli.log_list import as_json_object, lines_of
from notyet.core.record import replace
from notyet.errors import LedgerBusy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.ledger.past import Past, Wish
    from notyet.ledger.sqlite import Ledger

_PAUSE = 0.3  # seconds between two looks
_MOST_WATCHED = 200  # stops that may still change
_AT_ONCE = 1_000
_INTERRUPTED = 130  # as a shell has it for `tail -f`


def follow(ledger: Ledger, wish: Wish, *, as_json: bool) -> int:
    """Print the last stops, and then each new one; ends with Ctrl-C, or when nobody reads."""
    following = _Following(ledger, wish, as_json=as_json)
    try:
        following.begin()
        while not _is_deserted():
            time.sleep(_PAUSE)
            following.look()
    except KeyboardInterrupt:
        return _INTERRUPTED
    return 0


class _Following:
    """What was shown, and what of it may still change."""

    def __init__(self, ledger: Ledger, wish: Wish, *, as_json: bool) -> None:
        self._ledger = ledger
        self._wish = wish
        self._as_json = as_json
        self._file = _identity(ledger.path)
        self._newest = 0
        self._shown: dict[int, str] = {}  # outcomes that may change: asking and blocked
        self._has_head = False

    def begin(self) -> None:
        """Print the last stops, as without `-f`."""
        from notyet.ledger.past import Wish, stops

        found = stops(self._ledger, self._wish)[::-1]
        newest = stops(self._ledger, Wish(most=1))
        self._newest = newest[0].id if newest else 0
        self._show(found)
        # What is wished for may come true of these when they are decided.
        asking = replace(self._wish, outcomes=("asking",), gate="", most=_MOST_WATCHED)
        for past in (*stops(self._ledger, asking), *found):
            self._watch(past)

    def look(self) -> None:
        """Print what happened since the last look."""
        from notyet.ledger.past import these

        file = _identity(self._ledger.path)
        if file != self._file:  # made only now, or replaced: its numbers begin anew
            self._file, self._newest = file, 0
            self._shown.clear()
        if file is None:
            return
        try:
            changed = [
                past
                for past in these(self._ledger, list(self._shown))
                if past.outcome != self._shown[past.id]
            ]
            fresh = self._fresh()
        except LedgerBusy:  # it is asked again in a moment
            return
        for past in (*changed, *fresh):
            self._watch(past)
        self._show(sorted((*changed, *fresh), key=lambda past: past.id))

    def _fresh(self) -> list[Past]:
        """Return the new ones; those that are still being asked are told of when they are not."""
        from notyet.ledger.past import Wish, stops

        newest = stops(self._ledger, Wish(after=self._newest, most=1))
        if not newest:
            return []
        # What is wished may be an outcome, or a report, that a stop gets only later.
        wish = replace(self._wish, after=self._newest, outcomes=(), gate="", most=_AT_ONCE)
        self._newest = newest[0].id
        return stops(self._ledger, wish)

    def _watch(self, past: Past) -> None:
        self._shown.pop(past.id, None)
        if past.outcome in {"asking", "blocked"}:
            self._shown[past.id] = past.outcome
        while len(self._shown) > _MOST_WATCHED:
            del self._shown[min(self._shown)]

    def _show(self, found: list[Past]) -> None:
        found = [past for past in found if self._is_wanted(past)]
        if not found:
            return
        if self._as_json:
            lines = [json_line(as_json_object(past)) for past in found]
        else:
            head, *lines = lines_of(found, is_growing=True)
            if not self._has_head:
                lines.insert(0, head)
                self._has_head = True
        for line in lines:
            print(line)
        sys.stdout.flush()

    def _is_wanted(self, past: Past) -> bool:
        outcomes, gate = self._wish.outcomes, self._wish.gate
        return (
            past.outcome != "asking"
            and (not outcomes or past.outcome in outcomes)
            and (not gate or any(report.gate == gate for report in past.reports))
        )


def _identity(path: str) -> tuple[int, int] | None:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino


def _is_deserted() -> bool:
    """Tell whether the reader of our output is gone, before we have anything to write."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    except (OSError, ValueError):
        return False
