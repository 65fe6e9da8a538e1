"""`notyet log`: the stops of agents, what was decided, and why."""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

from notyet.cli.log.stats import show_stats
from notyet.cli.log.stops import ELSEWHERE, show_stop, stop_table
from notyet.cli.person import refuse
from notyet.cli.progress import waiting
from notyet.cli.streams import is_reader_gone, json_line
from notyet.cli.terminal import folded, one_line
from notyet.cli.times import since_option, until_option
from notyet.config.find import FILE_NAME, above, real_folder, root_of
from notyet.config.load import retention
from notyet.core.record import replace
from notyet.core.text import bounded, visible
from notyet.core.verdict import GROUPS, OUTCOMES, group_of
from notyet.errors import LedgerBusy, LedgerError, NotyetError, Refused
from notyet.ledger.ledger import Ledger
from notyet.ledger.past_stops import (
    StopFilter,
    first_look,
    next_look,
    numbers,
    parts,
    read_stops,
    stops,
)
from notyet.ledger.prune import prune, shrink
from notyet.ledger.stats import stats as figures
from notyet.share import ShareError
from notyet.status.stop_words import json_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.ledger.past_stops import PastStop

SUMMARY = "list recorded stops, show one, and count what each gate costs"
EXAMPLES = (
    ("notyet log", "the last stops in this project, the newest last"),
    ("notyet log 41", "everything about one stop, with the output of its gates"),
    ("notyet log -f --all", "every stop everywhere, as it happens"),
    ("notyet log --outcome blocked --since 2d", "stops that were sent back in the last two days"),
    ("notyet log --outcome not_passed --since yesterday", "what did not pass overnight"),
    ("notyet log --stats --since 30d", "for each gate: runs, results, time"),
    ("notyet log --stats --ledger", "the same for your team, and its projects (see notyet ship)"),
    ("notyet log --json -n all", "one JSON object in each line, for programs"),
    ("notyet log --prune", "remove old stops, and shrink the file"),
)
_DEFAULT_COUNT = 20
_ALL = -1
_MAX_DIGITS = 40
_POLL = 0.3  # seconds between two looks of --follow
_MAX_WATCHED = 200  # decided stops that --follow looks at again
_INTERRUPTED = 130  # the exit code that shells have for `tail -f`
_SIZES = ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"))


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "id", nargs="?", type=stop_id, metavar="ID", help="show one stop with everything"
    )
    kind.add_argument("--stats", action="store_true", help="count runs and results for each gate")
    kind.add_argument("-f", "--follow", action="store_true", help="print new stops as they happen")
    kind.add_argument(
        "--prune", action="store_true", help="remove what is older than `[ledger] keep`"
    )
    parser.add_argument(
        "--session",
        default="",
        metavar="S",
        help="only of this session; its first letters are enough",
    )
    parser.add_argument(
        "--outcome",
        action="append",
        default=[],
        choices=(*OUTCOMES, *GROUPS, "asking"),
        metavar="O",
        help=f"only with this outcome; may be repeated: {', '.join((*OUTCOMES, *GROUPS))}, or "
        "asking",
    )
    parser.add_argument("--host", default="", metavar="H", help="only of this host")
    parser.add_argument(
        "--gate", default="", metavar="G", help="only stops with a report of this gate"
    )
    parser.add_argument(
        "--since",
        type=since_option,
        default=0.0,
        metavar="WHEN",
        help='since "2d", "90m", "today", "2026-11-01" or "2026-11-01T14:30"',
    )
    parser.add_argument(
        "--until",
        type=until_option,
        default=0.0,
        metavar="WHEN",
        help="until then; a date means its end",
    )
    parser.add_argument("--all", action="store_true", help="of all folders, not only this project")
    parser.add_argument(
        "-n", type=_count, dest="most", metavar="N", help=f"N, or all; default {_DEFAULT_COUNT}"
    )
    parser.add_argument(
        "--ledger",
        nargs="?",
        const="",
        metavar="URL",
        help="with --stats: the stops of a team on PostgreSQL, by default where `[share]` says",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")


def stop_id(text: str) -> int:
    """Read the number of a stop from the command line."""
    if not text.isascii() or not text.isdecimal() or len(text) > _MAX_DIGITS:
        wrong = visible(bounded(text, _MAX_DIGITS))
        raise argparse.ArgumentTypeError(
            f"a stop id is a number, not {wrong!r}; list them: notyet log"
        )
    return int(text)


def _count(text: str) -> int:
    if text == "all":
        return _ALL
    if not text.isascii() or not text.isdecimal() or not 0 < int(text[:10]) < 1 << 31:
        wrong = visible(bounded(text, _MAX_DIGITS))
        raise argparse.ArgumentTypeError(f"must be a number above 0, or all, not {wrong!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Show stops; exit 1 if there is no such stop, or the ledger cannot be read."""
    wrong = _wrong(args)
    if wrong:
        return refuse("log", wrong, 2)
    if args.ledger is not None:
        return _team_stats(args)
    ledger = Ledger(repair=False)
    try:
        if args.prune:
            return _prune(ledger)
        if args.id is not None:
            return show_stop(ledger, args.id, as_json=args.json)
        wish = _wish(args)
        if args.stats:
            where = f" in {one_line(wish.place, 200)}" if wish.place else ""
            return show_stats(figures(ledger, wish), where, as_json=args.json)
        if args.follow:
            return Follow(ledger, wish, as_json=args.json).run()
        return _list(ledger, wish, is_narrowed=bool(_narrowed(args)), as_json=args.json)
    except NotyetError as error:
        return refuse("log", str(error))
    finally:
        for warning in ledger.connection.take_warnings():
            refuse("log", warning)
        ledger.close()


def _team_stats(args: argparse.Namespace) -> int:
    """Show the figures of a team's tables, else of the ledger of a fleet at that address."""
    from notyet.share.settings import share_settings

    wish = replace(_wish(args), place="")
    here = real_folder(os.getcwd())
    try:
        url = args.ledger or share_settings(here, os.environ).to
        if not url.startswith(("postgresql://", "postgres://")):
            return refuse(
                "log", "--ledger takes an address like postgresql://USER@HOST/DATABASE", 2
            )
        from notyet.share.rows import Projects
        from notyet.share.team import Team
        from notyet.share.team_stats import team_stats

        found = team_stats(Team(url), wish)
        if found is not None:
            project = Projects().of_folder(here)
            return show_stats(found.stats, projects=found.projects, here=project, as_json=args.json)
        with closing(Ledger(url, repair=False)) as ledger:
            return show_stats(figures(ledger, wish), as_json=args.json)
    except Refused as error:
        return refuse("log", str(error), 2)
    except LedgerError as error:
        return refuse("log", f"{error.path}: {error.detail}")
    except ShareError as error:
        return refuse("log", str(error))


def _wrong(args: argparse.Namespace) -> str:
    """Return what is wrong with the command line."""
    narrowed = _narrowed(args)
    if narrowed and (args.id is not None or args.prune):
        kind = "--prune" if args.prune else "an ID"
        return f"{kind} does not go together with {narrowed[0]}"
    if args.ledger is not None and not args.stats:
        return "--ledger is for --stats"
    if args.prune and args.json:
        return "--prune does not go together with --json"
    if args.until and args.since and args.until <= args.since:
        return "--until is before --since"
    if args.until and args.follow:
        return "--follow does not go together with --until"
    return ""


def _narrowed(args: argparse.Namespace) -> list[str]:
    """Return the options that choose some of the stops."""
    options = ("session", "outcome", "host", "gate", "since", "until")
    chosen = [f"--{name}" for name in options if getattr(args, name)]
    return [*chosen, "-n"] if args.most else chosen


def _wish(args: argparse.Namespace) -> StopFilter:
    return StopFilter(
        session=args.session,
        outcomes=tuple(dict.fromkeys(args.outcome)),
        host=args.host,
        place="" if args.all else project_of(os.getcwd()),
        gate=args.gate.encode("utf-8", "replace").decode(),  # as it is stored
        since=args.since,
        until=args.until,
        most=args.most or (_ALL if args.stats else _DEFAULT_COUNT),
    )


def project_of(folder: str) -> str:
    """Return the project of a folder: that of the nearest notyet.toml, else its repository."""
    for place in above(folder):
        if os.path.isfile(os.path.join(place, FILE_NAME)):
            return place
    return root_of(folder)


def _list(ledger: Ledger, wish: StopFilter, *, is_narrowed: bool, as_json: bool) -> int:
    """Print stops, the newest last."""
    found = numbers(ledger, wish)[::-1]
    if not found and not as_json:
        print(folded(_nothing(ledger, wish, is_narrowed=is_narrowed), 0))
    # All of a large ledger would not fit into memory: print part by part.
    some = list(parts(found))
    for number, ids in enumerate(some):
        pasts = read_stops(ledger, ids)[::-1]
        if as_json:
            lines = [json_line(json_of(past)) for past in pasts]
        else:
            lines = stop_table(pasts, is_growing=len(some) > 1)[1 if number else 0 :]
        for line in lines:
            print(line)
    return 0


def _nothing(ledger: Ledger, wish: StopFilter, *, is_narrowed: bool) -> str:
    if not os.path.exists(ledger.path) or not stops(ledger, StopFilter(most=1)):
        check = "see whether agents are checked here with: notyet status"
        return f"no stops yet; {check}, or try: notyet demo"
    place = one_line(wish.place, 200)
    where = f" in {place}" if place else ""
    which = "matches these options" if is_narrowed else "is recorded"
    return f"no stop{where} {which}" + (f"; {ELSEWHERE}" if place else "")


class Follow:
    """`--follow`: print the last stops, then each new or changed one."""

    def __init__(self, ledger: Ledger, wish: StopFilter, *, as_json: bool) -> None:
        self._ledger = ledger
        self._wish = wish
        self._as_json = as_json
        self._file = _identity(ledger.path)
        self._newest = 0
        self._watched: dict[int, str] = {}  # outcomes that may change
        self._has_head = False

    def run(self) -> int:
        """Print until Ctrl-C, or until the reader is gone."""
        try:
            self.begin()
            while not is_reader_gone():
                if not self.look():
                    time.sleep(_POLL)
        except KeyboardInterrupt:
            return _INTERRUPTED
        return 0

    def begin(self) -> None:
        """Print the last stops, as without `--follow`."""
        if self._file is None:
            return
        news = first_look(self._ledger, self._wish)
        self._newest = news.newest
        self._watch((*news.watched, *news.fresh))
        self._print(news.fresh)

    def look(self) -> bool:
        """Print what happened since the last look; return True if there is more at once."""
        file = _identity(self._ledger.path)
        if file != self._file:  # made just now, or replaced: its numbers begin anew
            self._file, self._newest = file, 0
            self._watched.clear()
        if file is None:
            return False
        try:
            news = next_look(self._ledger, self._wish, list(self._watched), self._newest)
        except LedgerBusy:
            return False
        self._newest = news.newest
        changed = [past for past in news.watched if past.outcome != self._watched[past.id]]
        self._watch((*news.watched, *news.fresh))
        self._print(sorted((*changed, *news.fresh), key=lambda past: past.id))
        return not news.is_all

    def _watch(self, pasts: Sequence[PastStop]) -> None:
        """Remember the outcomes that may change: all that are asking, the newest of the others."""
        for past in pasts:
            if past.may_change:
                self._watched[past.id] = past.outcome
            else:
                self._watched.pop(past.id, None)
        decided = sorted(number for number, known in self._watched.items() if known != "asking")
        for number in decided[: max(0, len(self._watched) - _MAX_WATCHED)]:
            del self._watched[number]

    def _print(self, found: Sequence[PastStop]) -> None:
        outcomes, gate = self._wish.outcomes, self._wish.gate
        found = [
            past
            for past in found
            if past.outcome != "asking"
            and (not outcomes or {past.outcome, group_of(past.outcome, past.why)} & {*outcomes})
            and (not gate or any(report.gate == gate for report in past.reports))
        ]
        if not found:
            return
        if self._as_json:
            lines = [json_line(json_of(past)) for past in found]
        else:
            lines = stop_table(found, is_growing=True)[1 if self._has_head else 0 :]
            self._has_head = True
        for line in lines:
            print(line)
        sys.stdout.flush()


def _identity(path: str) -> tuple[int, int] | None:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino


def _prune(ledger: Ledger) -> int:
    """Remove what is too old or too much, and print what that was. Raises NotyetError."""
    wanted = retention(os.environ)
    if not os.path.exists(ledger.path):
        print("nothing to remove: there is no ledger yet")
        return 0
    with waiting("removing old stops ..."):
        removed = prune(ledger, wanted)
        freed = shrink(ledger)
    counts = {"stop": removed.stops, "task": removed.tasks}
    counts |= {"agent": removed.agents, "log": removed.logs}
    gone = [f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts.items() if count]
    done = f"removed {', '.join(gone)}" if gone else "nothing to remove"
    size = f"{ledger.path} has {size_of(os.path.getsize(ledger.path))}"
    if gone or freed:
        size += f" now, {size_of(freed)} less"
    print(f"{done}; {size}")
    return 0


def size_of(count: int) -> str:
    """Return a number of bytes in kB, MB or GB."""
    for unit, name in _SIZES:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"
