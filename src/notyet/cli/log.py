"""`notyet log`: the stops of agents, what was decided, and why."""

from __future__ import annotations

import argparse
import os
import select
import sys
import time

from notyet.cli.log_list import as_json_object, lines_of
from notyet.cli.moments import since_option, until_option
from notyet.cli.streams import json_line
from notyet.cli.terminal import one_line, waiting
from notyet.core.verdict import OUTCOMES
from notyet.errors import LedgerBusy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.ledger.ledger import Ledger
    from notyet.ledger.past import Past, Wish

SUMMARY = "look back: what stops came to, and which gates are worth their seconds"
EXAMPLES = (
    ("notyet log", "the last stops in this project, the newest at the bottom"),
    ("notyet log 41", "everything about one stop, with all that its gates printed"),
    ("notyet log -f --all", "every stop everywhere, as it happens"),
    ("notyet log --outcome blocked --since 2d", "who was sent back in the last two days"),
    ("notyet log --stats --since 30d", "gate by gate: how often asked, what came of it, how long"),
    ("notyet log --json -n all", "one JSON object in each line, for programs"),
    ("notyet log --prune", "remove now what is older than you keep, and give its space back"),
)
_MOST = 20
_ALL = -1
_MOST_DIGITS = 40


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("id", nargs="?", type=_number, metavar="ID", help="show one stop, whole")
    parser.add_argument("--session", default="", metavar="S", help="of it; its beginning is enough")
    parser.add_argument(
        "--outcome",
        action="append",
        default=[],
        choices=(*OUTCOMES, "asking"),
        metavar="O",
        help=f"of these; may be repeated: {', '.join(OUTCOMES)}, or asking",
    )
    parser.add_argument("--host", default="", metavar="H", help="of agents of this host")
    parser.add_argument("--gate", default="", metavar="G", help="in which this gate has a report")
    parser.add_argument(
        "--since",
        type=since_option,
        default=0.0,
        metavar="WHEN",
        help='since "2d", "90m", "today", "2026-11-01" or "2026-11-01T14:30"',
    )
    parser.add_argument(
        "--until", type=until_option, default=0.0, metavar="WHEN", help="until then; a day: its end"
    )
    parser.add_argument("--all", action="store_true", help="of every folder, not of this project")
    parser.add_argument(
        "-n", type=_most, dest="most", metavar="N", help=f"at most N, or all; default {_MOST}"
    )
    parser.add_argument("--stats", action="store_true", help="what they come to, gate by gate")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with those to come")
    parser.add_argument("--prune", action="store_true", help="remove what is older than you keep")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")


def run(args: argparse.Namespace) -> int:
    """Show what was asked for; 1 when there is no such stop, or no ledger that can be read."""
    wrong = _wrong(args)
    if wrong:
        print(f"notyet log: {wrong}", file=sys.stderr)
        return 2
    from notyet.errors import NotyetError
    from notyet.ledger.ledger import Ledger

    ledger = Ledger(mends=False)
    try:
        return _do(args, ledger)
    except NotyetError as error:
        print(f"notyet log: {error}", file=sys.stderr)
        return 1
    finally:
        for warning in ledger.file.take_warnings():
            print(f"notyet log: {warning}", file=sys.stderr)
        ledger.close()


def _wrong(args: argparse.Namespace) -> str:
    """Say what is wrong with the command line."""
    kinds = {"an ID": args.id is not None, "--stats": args.stats, "--follow": args.follow}
    kinds["--prune"] = args.prune
    chosen = [name for name, is_chosen in kinds.items() if is_chosen]
    if len(chosen) > 1:
        return f"{chosen[0]} and {chosen[1]} do not go together; choose one"
    narrowed = _narrowed(args)
    if narrowed and (args.id is not None or args.prune):
        return f"{chosen[0]} does not go together with {narrowed[0]}"
    if args.prune and args.json:
        return "--prune has no JSON"
    if args.until and args.since and args.until <= args.since:
        return "--until is before --since; nothing can lie between"
    if args.until and args.follow:
        return "--follow and --until do not go together: it has no end"
    return ""


def _narrowed(args: argparse.Namespace) -> list[str]:
    given = {
        "--session": args.session,
        "--outcome": args.outcome,
        "--host": args.host,
        "--gate": args.gate,
        "--since": args.since,
        "--until": args.until,
        "-n": args.most,
    }
    return [name for name, value in given.items() if value]


def _do(args: argparse.Namespace, ledger: Ledger) -> int:
    if args.prune:
        return prune(ledger)
    if args.id is not None:
        from notyet.cli.log_show import show_one

        return show_one(ledger, args.id, as_json=args.json)
    wish = _wish(args)
    if args.stats:
        from notyet.cli.log_list import show_stats

        return show_stats(ledger, wish, as_json=args.json)
    if args.follow:
        return follow(ledger, wish, as_json=args.json)
    from notyet.cli.log_list import show_list

    return show_list(ledger, wish, is_narrowed=bool(_narrowed(args)), as_json=args.json)


def _wish(args: argparse.Namespace) -> Wish:
    from notyet.ledger.past import Wish

    return Wish(
        session=args.session,
        outcomes=tuple(dict.fromkeys(args.outcome)),
        host=args.host,
        place="" if args.all else project_of(os.getcwd()),
        gate=args.gate.encode("utf-8", "replace").decode(),  # as it is stored
        since=args.since,
        until=args.until,
        most=args.most or (_ALL if args.stats else _MOST),
    )


def project_of(folder: str) -> str:
    """Return the project that a folder is in: of the nearest notyet.toml, else its repository."""
    from notyet.config.files import NAME, above, root_of

    for place in above(folder):
        if os.path.isfile(os.path.join(place, NAME)):
            return place
    return root_of(folder)


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise argparse.ArgumentTypeError(
            f"a stop has a number, not {one_line(text, _MOST_DIGITS)!r}; list them: notyet log"
        )
    return int(text)


def _most(text: str) -> int:
    if text == "all":
        return _ALL
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    if not is_number or not 0 < int(text) < 1 << 31:
        raise argparse.ArgumentTypeError(
            f"a number from 1 up, or all; not {one_line(text, _MOST_DIGITS)!r}"
        )
    return int(text)


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
        from notyet.ledger.find import first_look

        if self._file is None:
            return
        news = first_look(self._ledger, self._wish)
        self._newest = news.newest
        for past in (*news.watched, *news.fresh):
            self._watch(past)
        self._show(news.fresh)

    def look(self) -> bool:
        """Print what happened since the last look; tell whether there is more at once."""
        from notyet.ledger.find import next_look

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


_UNITS = ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"))


def prune(ledger: Ledger) -> int:
    """Remove what is too old or too much, and say what that was. Raises NotyetError."""
    from notyet.config.load import retention
    from notyet.ledger.prune import prune, shrink

    wanted = retention(os.environ)
    if not os.path.exists(ledger.path):
        print("nothing to remove: there is no ledger yet")
        return 0
    with waiting("removing what is old ..."):
        _bring_up_to_date(ledger)
        removed = prune(ledger, wanted)
        freed = shrink(ledger)
    counts = {
        "stop": removed.stops,
        "task": removed.tasks,
        "agent": removed.agents,
        "log": removed.logs,
    }
    parts = [
        f"{count} {name if count == 1 else name + 's'}" for name, count in counts.items() if count
    ]
    done = f"removed {', '.join(parts)}" if parts else "nothing to remove"
    size = f"{ledger.path} has {size_of(os.path.getsize(ledger.path))}"
    if parts or freed:
        size += f" now, {size_of(freed)} less"
    print(f"{done}; {size}")
    return 0


def _bring_up_to_date(ledger: Ledger) -> None:
    """Let a ledger of an older notyet become one of ours; a damaged one is left to a stop."""
    from notyet.errors import LedgerBusy, LedgerError, LedgerUnmended

    try:
        ledger.file.read(lambda _: None)
    except LedgerUnmended as unmended:
        newer = type(ledger)(ledger.path)
        try:
            newer.file.checkpoint()  # which opens it, and sets nothing aside
        except LedgerBusy:
            raise
        except LedgerError:
            raise unmended from None
        finally:
            newer.close()


def size_of(count: int) -> str:
    """Return a number of bytes as people say it."""
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"
