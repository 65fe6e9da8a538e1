"""`notyet acp`: stand between an editor and an agent that speaks ACP, and gate the agent."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from notyet.acp.gating import Gating
from notyet.acp.marks import Marks
from notyet.acp.relay import Relay, log
from notyet.cli.fleet_options import whole_number
from notyet.cli.person import refuse
from notyet.config.find import state_folder
from notyet.config.load import retention
from notyet.errors import NotyetError
from notyet.hosts.acp_agents import acp_agent
from notyet.ledger.ledger import Ledger
from notyet.run.cannot_start import CannotStart
from notyet.run.groups import end_marked
from notyet.run.spawn import MARK, new_stage_token

if TYPE_CHECKING:
    import argparse

SUMMARY = "gate an agent behind an editor that speaks ACP, like Zed"
EXAMPLES = (
    ("notyet acp -- gemini --acp", "in the editor's settings, in place of `gemini --acp`"),
    ("notyet acp --max-blocks 5 -- goose acp", "send it back five times at most"),
)
NOTES = """\
An editor starts this command and speaks ACP with it over stdin and stdout. Gates are those in
force in the folder of each session; what they come to is shown in the editor. Messages about the
gates go to stderr, where editors keep the logs of agents. The exit code is the agent's.
"""
# Added to errors of argparse that contain these words.
HINTS = {
    "unrecognized arguments: ": "the agent's command goes after --, as in: "
    "notyet acp -- gemini --acp"
}
CANNOT_START = 127
_CANNOT_WATCH = "an editor starts notyet acp, and speaks to it over pipes; stdin is {}"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.usage = "notyet acp [options] -- AGENT [ARGUMENTS]"
    parser.add_argument(
        "--max-blocks", metavar="N", type=whole_number(0), help="send an agent back at most N times"
    )


def run(args: argparse.Namespace) -> int:
    """Relay until one side ends; the exit code is the agent's."""
    if not args.rest:
        return refuse("acp", "name the agent after --, as in: notyet acp -- gemini --acp", 2)
    wrong = _wrong_stdin()
    if wrong:
        return refuse("acp", _CANNOT_WATCH.format(wrong), 2)
    ledger = Ledger()
    with suppress(NotyetError):  # what is wrong with the user's file is said at the first session
        ledger.retention = retention(os.environ)
    marks = Marks(state_folder(os.environ))
    environ = {**os.environ, "NOTYET_SUPERVISED": marks.variable}
    token = new_stage_token()  # of our gates, not of the agent
    os.environ[MARK] = f"{os.environ.get(MARK, '')} {token}".strip()
    gating = Gating(ledger, acp_agent(args.rest), log, marks=marks, max_blocks=args.max_blocks)
    try:
        return asyncio.run(Relay(args.rest, environ, gating).run())
    except CannotStart as error:
        return refuse("acp", f"{args.rest[0]} cannot be started: {error}", CANNOT_START)
    finally:
        end_marked(token)
        marks.remove()
        ledger.close()


def _wrong_stdin() -> str:
    """Return what stdin is, if it is no pipe or socket, whose lines can be waited for."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return "closed"
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        return ""
    if stat.S_ISREG(mode):
        return "a file"
    return "a terminal" if sys.stdin.isatty() else "closed, or a device"
