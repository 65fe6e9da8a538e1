"""Commands that only a person may run (N5): refuse agents, ask for a yes, record the act."""

from __future__ import annotations

import os
import sys

from notyet.config.caller import inside_agent
from notyet.config.find import state_folder
from notyet.errors import LedgerError
from notyet.ledger.ledger import Ledger


def why_refused() -> str:
    """Return why this command must not run here; empty if it may."""
    who = inside_agent(os.environ)
    if who:
        return f"an agent may not do this ({who}); run it yourself in a terminal"
    if not state_folder(os.environ):
        return "there is no home folder to store this in; set XDG_STATE_HOME"
    return ""


def refuse(command: str, why: str, code: int = 1) -> int:
    """Print why a command does not run, and return its exit code."""
    sys.stdout.flush()  # keeps the order if both go to one file
    print(f"notyet {command}: {why}", file=sys.stderr)
    return code


def agreed(question: str, command: str, purpose: str, *, default: bool = False) -> bool:
    """Ask a person, if there is a terminal; Enter alone gives the default."""
    if not sys.stdin.isatty():
        refuse(command, f"not a terminal; add --yes {purpose}")
        return False
    try:
        # Not on stdout, which may lead into a pager.
        choice = "[Y/n]" if default else "[y/N]"
        print(f"{question} {choice} ", end="", file=sys.stderr, flush=True)
        answer = input().strip().lower()
    except EOFError:
        return False
    return answer in {"y", "yes"} or (default and not answer)


def record_act(what: str, place: str, detail: str) -> None:
    """Record what a person did in the ledger, if there is a usable one."""
    ledger = Ledger(repair=False)
    try:
        ledger.act(what, place, detail)
    except LedgerError as error:
        print(f"notyet: {error} (that was not recorded)", file=sys.stderr)
    finally:
        ledger.close()
