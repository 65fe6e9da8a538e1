"""`notyet tasks`: list supervised agents, look at one, steer or end it."""

from __future__ import annotations

import json
import os
import sys
import time
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from notyet.cli.fleet_options import add_ledger, ledger_address, whole_number
from notyet.cli.fleet_tasks import define_or_show_queue, show_workers
from notyet.cli.person import refuse
from notyet.cli.progress import live_view
from notyet.cli.recovery import resume_command
from notyet.cli.streams import is_reader_gone, json_line, readable
from notyet.cli.terminal import (
    OUTCOME_COLOURS,
    Page,
    Style,
    is_terminal,
    one_line,
    outcome_cell,
    table,
    terminal_size,
)
from notyet.config.load import NO_LOOK, load
from notyet.core.remote import is_remote
from notyet.core.text import listed, visible
from notyet.core.verdict import outcome_words
from notyet.errors import LedgerBusy, NotyetError, Refused
from notyet.ledger.ledger import Ledger
from notyet.ledger.outbox import Outbox
from notyet.ledger.tasks import Tasks
from notyet.status.task_words import json_of, state_of, whole_json
from notyet.supervise.actions import act, end_orphans, name_of, remarks
from notyet.times import age

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from notyet.cli.terminal import Cell
    from notyet.core.task import Result, Run, Task, TaskView
    from notyet.ledger.tasks import Course

SUMMARY = "list supervised agents, look at one, steer or end it"
EXAMPLES = (
    ("notyet tasks", "tasks that run or ended recently"),
    ("notyet tasks -f", "tasks at work, as they change"),
    ("notyet tasks show tk3", "everything about one; the first letters of its id are enough"),
    ('notyet tasks steer tk3 "Use the new API."', "interrupt it, and continue with this prompt"),
    ("notyet tasks kill tk3", "end it; no gate runs"),
    ("notyet tasks retry tk3", "deliver a result again that could not be delivered"),
    ("notyet tasks dismiss tk3", "drop a result that is not needed"),
    ("notyet tasks --all --json | jq '.[].outcome'", "for programs"),
    ("notyet tasks workers --ledger postgresql://notyet@db/notyet", "the workers of a fleet"),
    (
        "notyet tasks queue agents --per-worker 8 --limit 'opus=50/min, 20 at once'",
        "define a queue, or replace all its limits; without these: list queues and limits",
    ),
)
NOTES = """\
A task of `notyet with` whose process is gone is ended as interrupted, with its agent,
by the next `notyet tasks`. A task of another program is left to that program.
"""
_ACTS = ("steer", "kill", "retry", "dismiss")
_FLEET = ("queue", "workers")
_OPTIONS = ("--all", "--json", "-f", "--follow")
_WITH_VALUE = ("--ledger", "--per-worker", "--limit")
_RECENT = 20  # tasks that are listed even if they have ended and are delivered


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.usage = (
        "notyet tasks [list | show ID | steer ID PROMPT | kill ID | queue | workers | ...] "
        "[--all] [-f] [--json] [--ledger URL]"
    )
    parser.add_argument(
        "verb", nargs="?", default="list", choices=("list", "show", *_ACTS, *_FLEET)
    )
    parser.add_argument("id", nargs="?", metavar="ID", help="a task, or the beginning of its id")
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="for steer; - reads stdin")
    parser.add_argument("--all", action="store_true", help="list old ones too")
    parser.add_argument(
        "-f", "--follow", action="store_true", help="show tasks at work, or one, as they change"
    )
    parser.add_argument(
        "--json", action="store_true", help="print JSON; with -f, one object per line and change"
    )
    add_ledger(parser)
    parser.add_argument(
        "--per-worker", metavar="N", type=whole_number(1), help="for queue: tasks on each worker"
    )
    parser.add_argument(
        "--limit",
        metavar="MODEL=LIMIT",
        action="append",
        default=[],
        help="for queue: like 'opus=50/min, 20 at once', or '*=200/min' for other models",
    )


def arranged(words: list[str]) -> list[str]:
    """Return the command line with its options first: argparse wants the places in a row."""
    end = words.index("--") if "--" in words else len(words)
    options: list[str] = []
    others: list[str] = []
    for before, word in pairwise(words[:end]):
        name = word.partition("=")[0]
        is_value = before in _WITH_VALUE
        is_option = is_value or word in _OPTIONS or name in _WITH_VALUE
        (options if is_option else others).append(word)
    return [words[0], *options, *others, *words[end:]]


def run(args: argparse.Namespace) -> int:
    """List, show or change tasks; exit 0 if it was done."""
    wrong = _wrong(args)
    if wrong:
        return refuse("tasks", wrong, 2)
    try:
        ledger = Ledger(_address(args), repair=args.verb in _ACTS)
    except NotyetError as error:
        return refuse("tasks", str(error))
    try:
        return _do(args, ledger)
    except NotyetError as error:
        return refuse("tasks", str(error))
    finally:
        ledger.close()
        for warning in ledger.connection.take_warnings():
            _say(warning)


def _address(args: argparse.Namespace) -> str | None:
    """Return where the ledger is. Raises Refused for the address of another database."""
    found = ledger_address(args.ledger)
    scheme, mark, _ = (found or "").partition("://")
    if mark and scheme not in {"postgresql", "postgres"}:
        expected = "a ledger is a file or postgresql://USER@HOST/DATABASE"
        raise Refused(f"{expected}, not {scheme}://…; correct --ledger or NOTYET_FLEET")
    return found


def _say(text: str) -> None:
    refuse("tasks", text)


def _wrong(args: argparse.Namespace) -> str:
    """Return what is wrong with the command line."""
    if args.verb == "workers" and args.id:
        return "workers takes no name"
    if args.verb == "queue" and not args.id and (args.limit or args.per_worker):
        return "no name of a queue; write: notyet tasks queue NAME --limit ..."
    if args.verb not in {"list", *_FLEET} and not args.id:
        return f"no task id; write: notyet tasks {args.verb} ID"
    if args.verb == "list" and args.id:
        return f"list takes no id; to show one, write: notyet tasks show {args.id}"
    if args.verb == "steer" and not (args.prompt or "").strip():
        return f'no prompt; write: notyet tasks steer {args.id} "..."'
    if args.json and args.verb in _ACTS:
        return f"--json is for list and show, not for {args.verb}"
    if args.follow and (args.all or args.verb in _ACTS):
        other = args.verb if args.verb in _ACTS else "--all"
        return f"--follow shows tasks at work; it does not go together with {other}"
    if args.verb != "steer" and args.prompt:
        return f"{args.verb} takes no prompt"
    return ""


def _do(args: argparse.Namespace, ledger: Ledger) -> int:
    if args.verb in _FLEET:
        show_fleet = define_or_show_queue if args.verb == "queue" else show_workers
        return show_fleet(args, ledger)
    if "://" not in ledger.path and not os.path.exists(ledger.path):
        if args.verb == "list":
            show = partial(follow, ledger) if args.follow else partial(show_list, [])
            return show(as_json=args.json)
        raise Refused('there are no tasks yet; start one with: notyet with claude "..."')
    if args.verb in {"list", "show"}:
        end_orphans(ledger, _say)
        if args.follow:
            only = _found(ledger, args.id) if args.verb == "show" else ""
            return follow(ledger, only, as_json=args.json)
        if args.verb == "show":
            return show_task(ledger, _found(ledger, args.id), as_json=args.json)
        views = _listed(ledger, all_of_them=args.all)
        waiting = Tasks(ledger).waiting() - sum(view.state == "queued" for view in views)
        return show_list(views, as_json=args.json, waiting=waiting)
    task = _found(ledger, args.id)
    prompt = args.prompt or ""
    if args.verb == "steer" and prompt == "-":
        prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    done = act(ledger, args.verb, task, _say, text=prompt)
    if not done.is_done:
        return refuse("tasks", done.text)
    print(done.text)
    return 0


def _found(ledger: Ledger, prefix: str) -> str:
    """Return the task whose id begins with the prefix. Raises Refused."""
    found = Tasks(ledger).starting_with(prefix)
    if not found:
        raise Refused(f"there is no task {visible(prefix)}; list them with: notyet tasks --all")
    if len(found) > 1 and prefix not in found:
        raise Refused(f"{prefix} could be {listed(found, 5)}; write more of it")
    return prefix if prefix in found else found[0]


def _listed(ledger: Ledger, *, all_of_them: bool) -> list[TaskView]:
    tasks = Tasks(ledger)
    if all_of_them:
        return tasks.views(most=-1)
    wanted = (*tasks.begun(), *tasks.undelivered(), *tasks.views(most=_RECENT))
    return sorted({view.task.id: view for view in wanted}.values(), key=lambda v: -v.created_at)


_HEAD = ("ID", "STATE", "OUTCOME", "AGENT", "RUNS", "AGE", "TASK")
_FLEET_HEAD = (*_HEAD[:-1], "QUEUE", "WORKER", _HEAD[-1])
_SOURCES = {
    "start": "task",
    "gate": "sent back",
    "manual": "steered",
    "user": "message",
    "children": "report",
}
_PROMPT = 100  # columns of a prompt


def show_list(views: Sequence[TaskView], *, as_json: bool, waiting: int = 0) -> int:
    """Print the tasks, the newest first, and how many more are `waiting` in queues."""
    if as_json:
        print(json.dumps(readable([json_of(view) for view in views]), indent=2))
        return 0
    if not views:
        print('no tasks yet; start one with: notyet with claude "..."')
        return 0
    has_fleet = any(view.queue for view in views)
    rows = [
        (
            view.task.id,
            state_of(view),
            outcome_cell(view.outcome or ""),
            visible(view.agent or view.task.agent_type or "-"),
            str(view.generation),
            age(time.time() - view.created_at),
            *((view.queue or "-", visible(view.worker) or "-") if has_fleet else ()),
            name_of(view, 400),
        )
        for view in views
    ]
    style = Style(sys.stdout)
    head, *lines = table(_FLEET_HEAD if has_fleet else _HEAD, rows, style)
    margin = " " * max(len(view.task.id) for view in views)
    print(head)
    for line, view in zip(lines, views, strict=True):
        print(line)
        for remark in remarks(view):
            print(style.paint(f"{margin}  {remark}", "yellow"))
    if waiting > 0:
        print(f"and {waiting:,} more in queues; see: notyet tasks queue")
    return 0


_POLL = 0.3  # seconds between two looks of --follow
_INTERRUPTED = 130  # the exit code that shells have for `tail -f`
_MAX_DOTS = 5
_FOLLOW_HEAD = ("ID", "NOW", "SENT BACK", "AGENT", "AGE", "TASK")
_NARROW = 60  # columns of a terminal that has room for the most important cells only
_NARROW_HEAD = ("ID", "NOW", "TASK")
_MIN_ID = 6
_NOW = {
    "queued": "queued",
    "running": "working",
    "settling": "stopping",
    "gating": "gates run",
    "steering": "being sent back",
}


def follow(ledger: Ledger, only: str = "", *, as_json: bool) -> int:
    """Show tasks as they change, until Ctrl-C; or only one, until it has ended.

    On a terminal that is a table, otherwise a line for each change.
    """
    following = Follow(ledger, only, as_json=as_json)
    draw = following.draw if not as_json else lambda _columns, _rows: []
    try:
        with live_view(sys.stdout, draw) as view:
            while not is_reader_gone():
                for changed in following.look():
                    if as_json or view is None:
                        print(following.line(changed), flush=True)
                if only and following.has_ended:
                    break
                time.sleep(_POLL)
    except KeyboardInterrupt:
        return _INTERRUPTED
    finally:
        if not as_json and following.views and is_terminal(sys.stdout):
            print(*following.draw(*terminal_size(sys.stdout)), sep="\n")
    return 0


class Follow:
    """The tasks at work, and those that ended since it began."""

    def __init__(self, ledger: Ledger, only: str = "", *, as_json: bool = False) -> None:
        self._ledger = ledger
        self._tasks = Tasks(ledger)
        self._only = only
        self._as_json = as_json
        self._style = Style(sys.stdout)
        self._began = time.time()
        self._state: object = None  # of the ledger at the last look
        self.views: dict[str, TaskView] = {}
        self._since: dict[str, float] = {}  # when a task was seen to change

    @property
    def has_ended(self) -> bool:
        """True if all tasks have ended."""
        return all(view.ended_at is not None for view in self.views.values())

    def look(self) -> list[TaskView]:
        """Return the tasks that changed since the last look. An idle ledger costs one PRAGMA."""
        try:
            state = self._ledger.connection.state()
            if state == self._state:
                return []
            found = self._read()
        except LedgerBusy:
            return []
        is_first, self._state = self._state is None, state
        changed = [
            view
            for task, view in found.items()
            if task not in self.views or _mark(view) != _mark(self.views[task])
        ]
        if not is_first:
            self._since |= {view.task.id: time.time() for view in changed}
        self.views = found
        return changed[::-1]

    def _read(self) -> dict[str, TaskView]:
        """Return the tasks to show, the newest first."""
        if self._only:
            return {view.task.id: view for view in self._tasks.views(self._only)}
        recent = self._tasks.views(most=_RECENT)
        wanted = [
            *self._tasks.begun(),
            *(view for view in recent if view.created_at >= self._began),
        ]
        found = {view.task.id: view for view in wanted}
        for task in self.views.keys() - found.keys():  # it has ended
            found |= {view.task.id: view for view in self._tasks.views(task)}
        return dict(sorted(found.items(), key=lambda item: -item[1].created_at))

    def line(self, view: TaskView) -> str:
        """Return a change as one line."""
        if self._as_json:
            return json_line(json_of(view))
        at = time.strftime("%H:%M:%S")
        words, colour = _now(view)
        back = f"sent back {view.steers}" if view.steers else ""
        shown = f"{self._style.paint(words, colour)}{' ' * max(0, 16 - len(words))}"
        return f"{at}  {view.task.id}  {shown}  {back:<12}  {name_of(view, 400)}".rstrip()

    def draw(self, columns: int, rows: int) -> list[str]:
        """Return the table of tasks. Called in another thread."""
        views, now = self.views, time.time()
        if not views:
            words = one_line("no supervised agent is at work; waiting for one ...", columns - 1)
            return [self._style.paint(words, "dim")]
        shown = [*views.values()][: max(1, rows - 3)]
        is_narrow = columns < _NARROW
        head = _NARROW_HEAD if is_narrow else _FOLLOW_HEAD
        cells = [self._cells(view, now, is_narrow=is_narrow) for view in shown]
        lines = table(head, cells, self._style, columns=columns - 1)
        if len(views) > len(shown):
            lines.append(self._style.paint(f"and {len(views) - len(shown)} more", "dim"))
        return lines

    def _cells(self, view: TaskView, now: float, *, is_narrow: bool) -> tuple[Cell, ...]:
        words, colour = _now(view)
        since = self._since.get(view.task.id)
        dots = "●" * view.steers if view.steers <= _MAX_DOTS else f"● {view.steers} times"
        name = name_of(view, 400)
        if is_narrow:  # the first letters of an id are enough
            return view.task.id[:_MIN_ID], (f"{words} {dots}".rstrip(), colour), name
        if since is not None and view.ended_at is None:
            words += f" {now - since:.0f} s"
        agent = visible(view.agent or view.task.agent_type or "-")
        old = age((view.ended_at or now) - view.created_at)
        return view.task.id, (words, colour), (dots, "yellow"), agent, old, name


def _mark(view: TaskView) -> tuple[object, ...]:
    """Return what makes a change of a task worth showing."""
    return (view.state, view.generation, view.steers, view.ending, view.outcome)


def _now(view: TaskView) -> tuple[str, str]:
    """Return in a word or two what a task does, or came to, and its colour."""
    if view.ended_at is None:
        gone = view.owner_pid and not view.owner_alive
        return ("its process is gone", "yellow") if gone else (_NOW.get(view.state, view.state), "")
    word = state_of(view)
    if word == "done" and view.outcome:
        words = outcome_words(view.outcome, view.stop_reason or "")
        return words, OUTCOME_COLOURS.get(view.outcome, "")
    return word, "yellow"


def show_task(ledger: Ledger, task: str, *, as_json: bool) -> int:
    """Print one task with its runs, its messages, its result and the command that resumes it."""
    tasks = Tasks(ledger)
    (view,) = tasks.views(task)
    seen = tasks.look(task)
    course = tasks.course(task)
    children = [child.task.id for child in tasks.below(task)]
    result = Outbox(ledger.connection).read(task)
    ref = seen.ref if seen else {}
    again = resume_command(ref, view.session_id, view.task.cwd, workspace=_workspace(view.task))
    if as_json:
        whole = whole_json(view, course, children, result) | {"resume": again}
        print(json.dumps(readable(whole), indent=2))
        return 0
    page = _Page()
    page.facts(view, children)
    page.course(course)
    if result is not None:
        page.result(view, result)
    # A prompt that was refused began no conversation.
    arrived = any(run.turn is None or run.turn.turns for run in course.runs)
    if again and view.ended_at is not None and arrived and ref.get("begun") is not False:
        page.fact("go on", again)
    return 0


def _workspace(task: Task) -> str:
    """Return the workspace that has to be named again: one that no file names."""
    if not is_remote(task.workspace):
        return task.workspace
    named = load(task.cwd, "notyet", os.environ, patience=NO_LOOK).workspace
    return "" if named == task.workspace else task.workspace


class _Page(Page):
    """Prints one task."""

    def facts(self, view: TaskView, children: list[str]) -> None:
        """Print what the task is, and its state."""
        task = view.task
        self.fact("task", f"{task.id}{f'  {visible(task.label)}' if task.label else ''}")
        outcome = f", {view.outcome}" if view.outcome else ""
        verb = "submitted" if view.state == "queued" else "begun"
        since = f"{verb} {age(time.time() - view.created_at)} ago"
        if view.ended_at is not None:
            since += f", took {age(view.ended_at - view.created_at)}"
        self.fact("state", f"{state_of(view)}{outcome} ({since})")
        for remark in remarks(view):
            self.fact("", self.paint(remark, "yellow"))
        agent = visible(view.agent or "-") + (f", a {task.agent_type}" if task.agent_type else "")
        self.fact("agent", f"{agent} in {visible(task.cwd)}" if task.cwd else agent)
        if is_remote(task.workspace):
            self.fact("workspace", visible(task.workspace))
        self.fact("session", visible(view.session_id) or "-")
        if view.queue:
            model = f", for {visible(view.model)}" if view.model else ""
            self.fact("queue", f"{view.queue}{model}")
        if view.worker:
            self.fact("worker", visible(view.worker))
        if view.ended_at is None and view.owner_pid:
            self.fact("process", f"{view.owner_pid} ({'alive' if view.owner_alive else 'gone'})")
        if task.parent or task.parent_session:
            self.fact("parent", task.parent or f"session {visible(task.parent_session)}")
        if children:
            self.fact("children", ", ".join(children))
        self.fact("steers", f"{view.steers} by gates")
        self.text("prompt", task.prompt)

    def course(self, course: Course) -> None:
        """Print each run, then the steers and messages that led to none."""
        for run in course.runs:
            self.fact(f"run {run.generation}", _run(run, course.ended_at[run.id]))
        for source, prompt, phase, error in course.steers:
            why = f" ({error})" if error else ""
            self.fact("steer", f"{phase}{why}, {source}: {one_line(prompt, _PROMPT)}")
        for kind, text, state in course.messages:
            self.fact("message", f"{state}, of a {kind}: {one_line(text, _PROMPT)}")

    def result(self, view: TaskView, result: Result) -> None:
        """Print the result, and whether it was delivered."""
        delivery = view.delivery + (f" after {view.attempts} tries" if view.attempts > 1 else "")
        self.fact("result", delivery or "-")
        if result.error:
            self.fact("error", self.paint(one_line(result.error, 1000), "red"))
        if result.stop_reason:
            self.fact("why", one_line(result.stop_reason, 1000))
        for text in result.unsent:
            self.text("unsent", text)
        self.text("rejected", result.rejected or "")
        self.text("answer", result.text)


def _run(run: Run, ended_at: float | None) -> str:
    at = time.strftime("%H:%M:%S", time.localtime(run.started_at))
    took = "" if ended_at is None else f", {age(ended_at - run.started_at)}"
    said = "" if run.source == "start" else f": {one_line(run.prompt, _PROMPT)}"
    return f"{at}{took}  {run.ending or run.state:<11}  {_SOURCES[run.source]}{said}"
