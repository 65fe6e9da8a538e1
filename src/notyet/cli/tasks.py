"""`notyet tasks`: what supervised agents are doing, and a word in it for people."""

from __future__ import annotations

import os
import sys
import time

from notyet.cli.moments import age
from notyet.cli.streams import readable
from notyet.cli.supervising import name_of
from notyet.cli.terminal import Style, one_line, outcome_cell, table
from notyet.core.record import as_dict
from notyet.core.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any

    from notyet.cli.terminal import Cell
    from notyet.core.task import TaskView
    from notyet.ledger.ledger import Ledger
    from notyet.supervise import Supervisor

SUMMARY = "list supervised agents, look at one, steer or end it"
EXAMPLES = (
    ("notyet tasks", "what is at work, and what has ended lately"),
    ("notyet tasks show tk3", "all about one; the first letters of its id are enough"),
    ('notyet tasks steer tk3 "Use the new API."', "stop what it does, and let it go on with this"),
    ("notyet tasks kill tk3", "end it; no gate is asked"),
    ("notyet tasks retry tk3", "deliver a result again that could not be delivered"),
    ("notyet tasks dismiss tk3", "say that nobody needs that result"),
    ("notyet tasks --all --json | jq '.[].outcome'", "for programs"),
)
NOTES = """\
A task of `notyet with` whose process is gone is ended as interrupted, together with its agent,
whenever you look. One of another program is left to that program.
"""
_WAIT_FOR_DELIVERY = 5.0  # seconds
_OPTIONS = ("--all", "--json")
_RECENT = 20  # tasks that are listed also when nothing is to be said about them


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.usage = (
        "notyet tasks [list | show ID | steer ID PROMPT | kill ID | ...] [--all] [--json]"
    )
    parser.add_argument("verb", nargs="?", default="list", choices=("list", "show", *_ACTS))
    parser.add_argument("id", nargs="?", metavar="ID", help="a task, or the beginning of its id")
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="for steer; - reads stdin")
    parser.add_argument("--all", action="store_true", help="list old ones too")
    parser.add_argument("--json", action="store_true", help="print JSON")


def arranged(words: list[str]) -> list[str]:
    """Return the command line with its options first: argparse wants all of the rest together."""
    end = words.index("--") if "--" in words else len(words)
    options = [word for word in words[1:end] if word in _OPTIONS]
    others = [word for word in words[1:end] if word not in _OPTIONS]
    return [words[0], *options, *others, *words[end:]]


def run(args: argparse.Namespace) -> int:
    """Do what was asked; 0 when it was done."""
    wrong = _wrong(args)
    if wrong:
        print(f"notyet tasks: {wrong}", file=sys.stderr)
        return 2
    from notyet.errors import NotyetError
    from notyet.ledger.ledger import Ledger

    ledger = Ledger(mends=args.verb not in {"list", "show"})
    try:
        return _do(args, ledger)
    except NotyetError as error:
        print(f"notyet tasks: {error}", file=sys.stderr)
        return 1
    finally:
        ledger.close()
        for mended in ledger.file.take_warnings():
            print(f"notyet tasks: {mended}", file=sys.stderr)


def _wrong(args: argparse.Namespace) -> str:
    """Say what is wrong with the command line."""
    if args.verb != "list" and not args.id:
        return f"which task? write: notyet tasks {args.verb} ID"
    if args.verb == "list" and args.id:
        return f"list takes no id; to look at one, write: notyet tasks show {args.id}"
    if args.verb == "steer" and not (args.prompt or "").strip():
        return f'with which words? write: notyet tasks steer {args.id} "..."'
    if args.json and args.verb in _ACTS:
        return f"--json is for list and show, not for {args.verb}"
    if args.verb != "steer" and args.prompt:
        return f"{args.verb} takes no prompt"
    return ""


def _do(args: argparse.Namespace, ledger: Ledger) -> int:
    from notyet.cli.supervising import orphaned
    from notyet.cli.tasks_show import show_one
    from notyet.errors import Refused

    if not os.path.exists(ledger.path):
        if args.verb == "list":
            return show_list([], as_json=args.json)
        raise Refused('there are no tasks yet; start one with: notyet with claude "..."')
    if args.verb in {"list", "show"}:
        if orphaned(ledger):  # else there is no need to write anything
            _supervised(ledger, None)
        if args.verb == "show":
            return show_one(ledger, _found(ledger, args.id), as_json=args.json)
        return show_list(_listed(ledger, args), as_json=args.json)
    task = _found(ledger, args.id)
    _check_owner(ledger, task, args.verb)
    prompt = _prompt(args.prompt) if args.verb == "steer" else ""
    return _supervised(ledger, lambda supervisor: _ACTS[args.verb](supervisor, task, prompt))


def _is_ours(view: TaskView) -> bool:
    from notyet.cli.supervising import PROGRAM

    return view.program == PROGRAM


def _check_owner(ledger: Ledger, task: str, verb: str) -> None:
    """Refuse to ask a process that is stopped: it could not answer. Raises Refused."""
    from notyet.errors import Refused
    from notyet.ledger.tasks import Tasks
    from notyet.run.groups import status

    (view,) = Tasks(ledger).views(task)
    if verb == "steer" and view.ended_at is None and not view.owner_alive and not _is_ours(view):
        raise Refused(
            f"the process that has task {task} is gone; its program goes on with it when it runs "
            f"again, or end it with: notyet tasks kill {task}"
        )
    if view.ended_at is None and view.owner_alive and status(view.owner_pid)[:1] == [b"T"]:
        raise Refused(
            f"process {view.owner_pid}, which has task {task}, is stopped; continue it with fg in "
            f"its terminal, or with: kill -CONT {view.owner_pid}"
        )


def _prompt(text: str) -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace") if text == "-" else text


def _found(ledger: Ledger, prefix: str) -> str:
    """Return the task whose id begins like this. Raises Refused."""
    from notyet.core.text import listed, visible
    from notyet.errors import Refused
    from notyet.ledger.tasks import Tasks

    found = Tasks(ledger).starting_with(prefix)
    if not found:
        raise Refused(f"there is no task {visible(prefix)}; list them with: notyet tasks --all")
    if len(found) > 1 and prefix not in found:
        raise Refused(f"{prefix} could be {listed(found, 5)}; write more of it")
    return prefix if prefix in found else found[0]


def _listed(ledger: Ledger, args: argparse.Namespace) -> list[TaskView]:
    from notyet.ledger.tasks import Tasks

    tasks = Tasks(ledger)
    if args.all:
        return tasks.views(most=-1)
    wanted = {view.task.id: view for view in (*tasks.active(), *tasks.undelivered())}
    wanted |= {view.task.id: view for view in tasks.views(most=_RECENT)}
    return sorted(wanted.values(), key=lambda view: -view.created_at)


def _supervised(ledger: Ledger, act: Callable[[Supervisor], Awaitable[int]] | None) -> int:
    """Recover what dead processes left, and then act."""
    import asyncio

    from notyet.agents import reopen
    from notyet.cli.supervising import PROGRAM, recover
    from notyet.engine.engine import Engine
    from notyet.supervise import Supervisor

    def warn(text: str) -> None:
        print(f"notyet tasks: {text}", file=sys.stderr)

    async def work() -> int:
        engine = Engine(ledger=ledger, warn=warn)
        async with Supervisor(engine, ledger, reopen, program=PROGRAM) as supervisor:
            for found in await recover(supervisor, ledger):
                print(f"notyet tasks: {found}", file=sys.stderr)
            return 0 if act is None else await act(supervisor)

    return asyncio.run(work())


async def _steer(supervisor: Supervisor, task: str, prompt: str) -> int:
    await supervisor.steer(task, prompt)
    print(f"{task} goes on with your words")
    return 0


async def _kill(supervisor: Supervisor, task: str, _prompt: str) -> int:
    left = await supervisor.recover(unfinished="end", only=task)
    if left:
        result = await left[0].result()
        print(f"{task} was left by a process that is gone, and is {result.ending} now")
        return 0
    if await supervisor.kill(task):
        print(f"{task} is killed")
        return 0
    view = await supervisor.task(task)
    print(f"notyet tasks: {task} had ended before ({view.ending or 'done'})", file=sys.stderr)
    return 1


async def _retry(supervisor: Supervisor, task: str, _prompt: str) -> int:
    """Hand a result to whoever delivers it; a supervised parent gets it from here."""
    import asyncio

    view = await supervisor.task(task)
    if view.task.scope == "agent" and view.delivery in {"delivered", "dismissed"}:
        was = f"notyet tasks: its result was {view.delivery}"
        print(f"{was}; read it with: notyet tasks show {task}", file=sys.stderr)
        return 1
    await supervisor.retry(task)
    view = await supervisor.task(task)
    if view.task.parent and not view.owner_alive:  # its parent may still be at work elsewhere
        supervisor.deliver = supervisor.tell_parent
    ends = asyncio.get_running_loop().time() + _WAIT_FOR_DELIVERY
    while view.delivery in {"pending", "leased"} and asyncio.get_running_loop().time() < ends:
        await asyncio.sleep(0.1)
        view = await supervisor.task(task)
    if view.delivery == "delivered":
        print(f"the result of {task} is delivered")
        return 0
    if view.delivery == "suspended":
        print(f"notyet tasks: still undelivered: {view.delivery_error}", file=sys.stderr)
        return 1
    print(f"the result of {task} waits for the program that takes it; it is delivered then")
    return 0


async def _dismiss(supervisor: Supervisor, task: str, _prompt: str) -> int:
    if (await supervisor.task(task)).delivery == "delivered":
        was = "notyet tasks: its result was delivered"
        print(f"{was}; read it with: notyet tasks show {task}", file=sys.stderr)
        return 1
    await supervisor.dismiss(task)
    print(f"the result of {task} is dismissed; it can still be read with: notyet tasks show {task}")
    return 0


_ACTS = {"steer": _steer, "kill": _kill, "retry": _retry, "dismiss": _dismiss}


_HEAD = ("ID", "STATE", "OUTCOME", "AGENT", "RUNS", "AGE", "TASK")


def show_list(views: Sequence[TaskView], *, as_json: bool) -> int:
    """Print the tasks, the newest first."""
    if as_json:
        import json

        print(json.dumps(readable([plain(view) for view in views]), indent=2))
        return 0
    if not views:
        print('no tasks yet; start one with: notyet with claude "..."')
        return 0
    style = Style(sys.stdout)
    head, *lines = table(_HEAD, [_row(view) for view in views], style)
    margin = " " * max(len(view.task.id) for view in views)
    print(head)
    for line, view in zip(lines, views, strict=True):
        print(line)
        for remark in remarks(view):
            print(style.paint(f"{margin}  {remark}", "yellow"))
    return 0


def plain(view: TaskView) -> dict[str, Any]:
    """Return a task as JSON has it: what it was asked, beside what became of it."""
    known = as_dict(view)
    task = known.pop("task")
    return {**task, **known}


def remarks(view: TaskView) -> list[str]:
    """Say what a person may have to do something about."""
    if view.ended_at is None:
        if view.owner_alive:
            return []
        end = f"notyet tasks kill {view.task.id}"
        return [f"its process is gone; its program goes on with it when it runs again, or: {end}"]
    said = []
    if view.delivery == "suspended":
        error = one_line(view.delivery_error, 200)
        said.append(f"undelivered: {error}; try again with: notyet tasks retry {view.task.id}")
    elif view.delivery in {"pending", "leased"} and not view.owner_alive:
        said.append("undelivered: the program that takes its result is not running")
    return said


def _row(view: TaskView) -> tuple[Cell, ...]:
    return (
        view.task.id,
        state_of(view),
        outcome_cell(view.outcome or ""),
        visible(view.agent or view.task.agent_type or "-"),
        str(view.generation),
        age(time.time() - view.created_at),
        name_of(view, 400),
    )


def state_of(view: TaskView) -> str:
    """Return what a task is doing, or how it ended."""
    return view.state if view.ended_at is None else (view.ending or "ended")
