"""`notyet with`: run an agent, and send it back until the gates of its folder pass."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from typing import TYPE_CHECKING

from notyet.agents import ACP, AGENTS
from notyet.cli.person import refuse
from notyet.cli.streams import give_up, json_line
from notyet.cli.times import duration
from notyet.cli.with_agent.agent_run import With
from notyet.config.document import did_you_mean
from notyet.config.find import real_folder
from notyet.config.shapes import meant_workspace
from notyet.core.remote import LOCAL, remote_from
from notyet.core.text import clean
from notyet.errors import NotyetError
from notyet.hook.main import start_shipper
from notyet.hosts.acp_agents import acp_agent
from notyet.hosts.known_programs import headless
from notyet.ledger.connection import default_path
from notyet.share.settings import is_shared

if TYPE_CHECKING:
    from notyet.core.task import Result

SUMMARY = "run an agent, and send it back until its work passes"
EXAMPLES = (
    ('notyet with claude "Make the tests pass."', "with the gates of this folder"),
    (
        'notyet with codex "Fix issue 12." --max-blocks 5 --timeout 20m',
        "send it back five times at most, and give each run 20 minutes",
    ),
    ('notyet with claude "Go on." --resume SESSION', "go on with a session of the agent"),
    ('notyet with claude "Add a test." -- --model opus', "what follows -- is for the agent"),
    (
        'notyet with acp:"goose acp" "Fix the build." --permit allow',
        "any agent that speaks ACP; it may do what it asks for",
    ),
    (
        'notyet with claude "Fix the build." --workspace ssh://dev@box/srv/app',
        "gates run on that machine",
    ),
    (
        "git diff | notyet with gemini - --json | jq .outcome",
        "in a script; the prompt is read from stdin",
    ),
)
NOTES = """\
Gates are those in force in the folder: write a notyet.toml and run `notyet trust`. Ctrl-C or
Escape interrupts the agent; press again to kill it. Progress goes to stderr, the answer to stdout.
The exit code is 0 passed, 1 failed, 3 capped, 4 stuck, 5 handed back, 6 halted by a gate,
127 no such program, 130 interrupted, 137 killed.
"""
# Added to errors of argparse that contain these words.
HINTS = {
    "required: PROMPT": "a prompt that begins with a dash is read from stdin, with a prompt of -",
    "unrecognized arguments: ": "the agent's own arguments go after --, as in: "
    'notyet with claude "Add a test." -- --model opus',
}
# docs/reference/exit-codes.md explains them.
FAILED, CANNOT_START, INTERRUPTED, KILLED = 1, 127, 130, 137
_OUTCOMES = {
    "passed": 0,
    "skipped": 0,
    "observed": 0,
    "overridden": 0,
    "failed_open": FAILED,
    "capped": 3,
    "stuck": 4,
    "handed_back": 5,
    "halted": 6,
}
_ENDINGS = {
    "error": FAILED,
    "timeout": FAILED,
    "reset": FAILED,
    "killed": KILLED,
    "interrupted": INTERRUPTED,
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.usage = "notyet with AGENT PROMPT [options] [-- AGENT'S OWN ARGUMENTS]"
    parser.add_argument(
        "agent",
        metavar="AGENT",
        type=_agent,
        help=f"{', '.join(headless())}; acp:'COMMAND', for any agent that speaks ACP; "
        "or scripted:FILE, to try things out",
    )
    parser.add_argument("prompt", metavar="PROMPT", help="what it should do; - reads it from stdin")
    parser.add_argument("--cwd", metavar="DIR", default=".", help="the folder to work in")
    parser.add_argument(
        "--workspace",
        metavar="URL",
        type=_workspace,
        help="where the files are that it works on: ssh://host/path, or local. Gates run there",
    )
    parser.add_argument("--label", metavar="NAME", help="a name for this task")
    parser.add_argument(
        "--max-blocks", metavar="N", type=_count, help="send it back at most N times"
    )
    parser.add_argument(
        "--timeout", metavar="T", type=_seconds, help="for each of its runs, like 90s or 20m"
    )
    parser.add_argument(
        "--permit",
        choices=("ask", "allow", "deny"),
        default="ask",
        help="what an agent that speaks ACP may do when it asks; "
        "without a terminal, `ask` denies (default: ask)",
    )
    parser.add_argument(
        "--resume", metavar="SESSION", type=_session, help="go on with this session of the agent"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")


_FORMS = {"scripted": "scripted:FILE", ACP: "acp:'COMMAND'"}  # those that take an argument


def _agent(text: str) -> str:
    name, _, script = text.partition(":")
    if name not in AGENTS:
        hint = did_you_mean(name, AGENTS) or "choose one"
        raise argparse.ArgumentTypeError(
            f"there is no agent {name!r}; {hint} ({', '.join(AGENTS)})"
        )
    form = _FORMS.get(name, name)
    if bool(script) != (name in _FORMS):
        raise argparse.ArgumentTypeError(f"write {form}, not {text!r}")
    return text


def _workspace(text: str) -> str:
    if text == LOCAL:
        return LOCAL
    try:
        return remote_from(text).url
    except ValueError as error:
        why = meant_workspace(text) or error
        raise argparse.ArgumentTypeError(f"{text!r}: {why}") from None


def _session(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError(
            "the session is empty; `notyet tasks show ID` prints the session of a task"
        )
    return text


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number, 0 or more")
    return int(text)


def _seconds(text: str) -> float:
    try:
        return duration(text, 30 * 86_400)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(args: argparse.Namespace) -> int:
    """Run the agent; the exit code says what came of it."""
    args.workspace = args.workspace or ""
    prompt = args.prompt
    if prompt == "-":
        prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    cwd = os.path.abspath(args.cwd)
    wrong = _wrong(args, prompt, cwd)
    if wrong:
        return refuse("with", wrong, 2)
    missing = _missing(args.agent)
    if missing:
        return refuse("with", missing, CANNOT_START)
    work = With(args, prompt, cwd)
    try:
        return _run(args, work)
    except NotyetError as error:
        work.screen.complain(str(error))
        return FAILED
    finally:
        work.screen.close()
        if is_shared(real_folder(cwd), os.environ):
            start_shipper(default_path(os.environ), os.environ)


def _run(args: argparse.Namespace, work: With) -> int:
    try:
        result = work.run()
    finally:
        work.screen.close()  # what follows is printed to the same terminal
    if result is None:
        return work.signalled or INTERRUPTED
    code = exit_code(result)
    code = work.signalled if code == INTERRUPTED and work.signalled else code
    try:
        if args.json:
            print(json_line(work.summary(result, code)), flush=True)
        elif result.text.strip() and result.ending == "done":  # else it is not an answer
            known = sys.stdout.encoding or "utf-8"
            text = clean(result.text) if sys.stdout.isatty() else result.text
            print(text.encode(known, "replace").decode(known).rstrip("\n"), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        give_up(sys.stdout)
        why = f"the answer could not be written: {error.strerror or error}"
        work.screen.complain(f"{why}; read it with: notyet tasks show {result.task_id}")
        return FAILED
    return code


def exit_code(result: Result) -> int:
    """Return the exit code for how a task ended."""
    if result.ending != "done":
        return _ENDINGS[result.ending]
    return _OUTCOMES.get(result.outcome, FAILED)


def _wrong(args: argparse.Namespace, prompt: str, cwd: str) -> str:
    """Return what is wrong with the command line."""
    if args.agent.startswith(f"{ACP}:"):
        try:
            words = shlex.split(args.agent)
        except ValueError as error:
            return f"the command {args.agent} cannot be read: {error}"
        if len(words) < 1 or not args.agent.partition(":")[2].strip():
            return f"write {_FORMS[ACP]}"
    if not prompt.strip():
        where = "stdin" if args.prompt == "-" else "the prompt"
        return f"{where} is empty; write what the agent should do"
    if not os.path.isdir(cwd):
        there = "is not a folder" if os.path.exists(cwd) else "does not exist"
        return f"--cwd {cwd} {there}"
    name, _, script = args.agent.partition(":")
    if name != ACP and script and not os.path.isfile(os.path.join(cwd, script)):
        return f"there is no script {os.path.join(cwd, script)}"
    return ""


def _missing(agent: str) -> str:
    """Return what to install if the program of an agent is not there."""
    name, _, words = agent.partition(":")
    if name == ACP:
        program = next(iter(shlex.split(words)), "")
        known = acp_agent([program])
        install = known.install if known is not None else ""
    elif name in headless():
        program, line = headless()[name]
        install = line.install
    else:
        return ""
    if shutil.which(program) is not None:
        return ""
    how = f"; install it with: {install}" if install else ""
    return f"{program} is not installed, or not on the PATH{how}"
