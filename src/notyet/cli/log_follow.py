"""`notyet log -f`: stops as they are decided, whichever process decides them."""

from __future__ import annotations

import os
import select
import sys
import time

from notyet.cli.lines import json_line
from notyet.cli.log_list import as_json_object, lines_of
from notyet.errors import LedgerBusy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.ledger.past import Past, Wish
    from notyet.ledger.sqlite import Ledger

_PAUSE = 0.3  # seconds between two looks
_MOST_WATCHED = 200  # stops that may still change; those that are being asked, whatever they are
_INTERRUPTED = 130  # as a shell has it for `tail -f`


def follow(ledger: Ledger, wish: Wish, *, as_json: bool) -> int:
    """Print the last stops, and then each new one; ends with Ctrl-C, or when nobody reads."""
    following = _Following(ledger, wish, as_json=as_json)
    try:
        following.begin()
        while not _is_deserted():
            if not following.look():
                time.sleep(_PAUSE)
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
        self._shown: dict[int, str] = {}  # outcomes that may change
        self._has_head = False

    def begin(self) -> None:
        """Print the last stops, as without `-f`."""
        from notyet.ledger.past_news import first_look

        if self._file is None:
            return
        news = first_look(self._ledger, self._wish)
        self._newest = news.newest
        for past in (*news.watched, *news.fresh):
            self._watch(past)
        self._show(news.fresh)

    def look(self) -> bool:
        """Print what happened since the last look; tell whether there is more at once."""
        from notyet.ledger.past_news import next_look

        file = _identity(self._ledger.path)
        if file != self._file:  # made only now, or replaced: its numbers begin anew
            self._file, self._newest = file, 0
            self._shown.clear()
        if file is None:
            return False
        try:
            news = next_look(self._ledger, self._wish, list(self._shown), self._newest)
        except LedgerBusy:  # it is asked again in a moment, from the same number on
            return False
        self._newest = news.newest
        changed = [past for past in news.watched if past.outcome != self._shown[past.id]]
        for past in (*news.watched, *news.fresh):
            self._watch(past)
        self._show(sorted((*changed, *news.fresh), key=lambda past: past.id))
        return not news.is_all

    def _watch(self, past: Past) -> None:
        """Keep in mind what may change: of those that are being asked all, of others the newest."""
        # The host overrides a send-back, if it does, before the next stop of that agent. Whether
        # one is lost we only see from here.
        may_change = past.outcome == "asking" or past.why == "lost"
        if may_change or (past.outcome == "blocked" and not past.followed):
            self._shown[past.id] = past.outcome
        else:
            self._shown.pop(past.id, None)
        if len(self._shown) > _MOST_WATCHED:
            decided = [number for number, known in self._shown.items() if known != "asking"]
            for number in sorted(decided)[: len(self._shown) - _MOST_WATCHED]:
                del self._shown[number]

    def _show(self, found: Sequence[Past]) -> None:
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
