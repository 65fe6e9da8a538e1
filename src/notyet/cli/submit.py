"""`notyet submit`: queue a task for the workers of a fleet."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from notyet.cli.fleet_options import add_ledger, fleet_at, whole_number
from notyet.cli.person import refuse
from notyet.cli.streams import json_line
from notyet.core.record import as_dict
from notyet.core.text import clean
from notyet.core.verdict import UNCHECKED, UNPASSED, group_of, outcome_words
from notyet.errors import NotyetError

if TYPE_CHECKING:
    import argparse

    from notyet.core.task import Result

SUMMARY = "queue a task for the workers of a fleet"
EXAMPLES = (
    (
        'notyet submit "Fix #482" --queue agents --agent claude --cwd git@host:shop.git',
        "in a clone of its own; prints the id of the task",
    ),
    (
        'notyet submit "Fix #482" --queue agents --agent codex --key pr-482 --wait',
        "once, however often it runs; waits for the answer",
    ),
)
NOTES = """\
The exit code with --wait is that of `notyet with`: 0 passed, 1 failed or NOT CHECKED, 3 capped,
4 stuck, 5 handed back, 6 halted by a gate, 130 interrupted, 137 killed.
"""
HINTS = {"required: ": 'as in: notyet submit "Fix the build." --queue agents --agent claude'}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("prompt", metavar="PROMPT", help="what to do; - reads it from stdin")
    add_ledger(parser)
    parser.add_argument("--queue", metavar="NAME", required=True, help="the queue")
    parser.add_argument("--agent", metavar="AGENT", required=True, help="as in `notyet with`")
    parser.add_argument(
        "--cwd",
        metavar="PLACE",
        default="",
        help="a git address (with #branch), ssh://host/path, or a folder of the workers",
    )
    parser.add_argument("--model", metavar="NAME", default="", help="whose limits count")
    parser.add_argument(
        "--priority", metavar="N", type=whole_number(1), help="smaller numbers begin first"
    )
    parser.add_argument("--key", metavar="KEY", default="", help="submit it once for each key")
    parser.add_argument("--timeout", metavar="T", help="for each of its runs, like 90s or 2h")
    parser.add_argument(
        "--retries",
        metavar="N",
        type=whole_number(0),
        default=0,
        help="new runs if it ends as interrupted or with an error",
    )
    parser.add_argument("--label", metavar="NAME", help="a name for this task")
    parser.add_argument("--wait", action="store_true", help="wait for the result, and print it")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("args", nargs="*", metavar="-- ARGUMENT", help="for the agent's program")


def run(args: argparse.Namespace) -> int:
    """Queue a task; exit 0 if it is queued."""
    prompt = args.prompt
    if prompt == "-":
        prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        return asyncio.run(_submit(args, prompt))
    except (NotyetError, ValueError) as error:
        return refuse("submit", str(error))


async def _submit(args: argparse.Namespace, prompt: str) -> int:
    async with fleet_at(args.ledger) as fleet:
        task = await fleet.submit(
            prompt,
            agent=args.agent,
            queue=args.queue,
            cwd=args.cwd,
            args=args.args,
            model=args.model,
            priority=args.priority,
            key=args.key,
            timeout=args.timeout,
            retries=args.retries,
            label=args.label,
        )
        if not args.wait:
            print(json_line({"task": task}) if args.json else task)
            return 0
        if not args.json:
            print(f"{task} is submitted; waiting for its result ...", file=sys.stderr)
        return _print(await fleet.result(task), as_json=args.json)


def _print(result: Result, *, as_json: bool) -> int:
    from notyet.cli.with_agent import FAILED, exit_code

    is_unchecked = group_of(result.outcome, result.stop_reason or "") == "not_checked"
    code = FAILED if is_unchecked and result.ending == "done" else exit_code(result)
    if as_json:
        print(json_line(as_dict(result) | {"exit_code": code}))
    elif result.ending == "done":
        print(clean(result.text) if sys.stdout.isatty() else result.text)
        words = outcome_words(result.outcome, result.stop_reason or "")
        if words == UNPASSED:
            refuse("submit", f"{UNPASSED}; see: notyet tasks show {result.task_id}")
        elif is_unchecked:
            refuse("submit", f"{UNCHECKED}: {'; '.join(result.warnings) or result.stop_reason}")
    else:
        refuse("submit", f"{result.task_id} ended as {result.ending}: {clean(result.error or '-')}")
    return code
