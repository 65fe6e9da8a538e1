"""`notyet` alone: are agents checked here, what happened last, and what to do next."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from notyet import __version__
from notyet.cli.progress import waiting
from notyet.cli.signals import ended_in_order
from notyet.cli.status.screen import print_answer
from notyet.cli.terminal import OUTCOME_COLOURS, Style, folded
from notyet.core.text import visible
from notyet.ledger.connection import default_path
from notyet.status.overview import near
from notyet.status.report import report_on
from notyet.status.words import fix_of
from notyet.times import age

if TYPE_CHECKING:
    from notyet.status.report import StatusReport

ALL = "All commands, with examples: notyet --help"
_FIRST = (
    ("notyet demo", "watch scripted agents meet the gates; nothing is changed"),
    ("notyet init", "detect tests, linters and agents, review them, write notyet.toml"),
    ("notyet status", "what is in force here, and what is wrong"),
)
_DAILY = (
    ("notyet check", "run the gates now, as a stop would"),
    ("notyet log", "what happened"),
    ("notyet status", "what is in force here, from which file, and what is wrong"),
)


def show() -> int:
    """Print the page; exit 0, whatever it says."""
    cwd, style = os.getcwd(), Style(sys.stdout)
    with ended_in_order(), waiting("looking at the hosts and gates of this folder ..."):
        found = report_on(cwd, os.environ, default_path(os.environ))
    print(f"{style.paint(f'notyet {__version__}', 'bold')} · {visible(near(cwd, ''))}")
    print_answer(found.answer, style)
    _last(found, style)
    commands = _DAILY if found.gates else _FIRST
    widest = max(len(name) for name, _ in commands)
    print()
    for name, words in commands:
        print(f"  {name:<{widest}}  {folded(words, widest + 4)}")
    print(f"\n{ALL}")
    if not found.is_well:
        print(f"{style.paint('next:', 'bold')} {folded(visible(fix_of(found)), len('next: '))}")
    return 0


def _last(found: StatusReport, style: Style) -> None:
    recent = found.recent
    if not recent.decisions:
        return
    stop, words = recent.decisions[0], recent.words[0]
    outcome = style.paint(words, OUTCOME_COLOURS.get(stop["outcome"], ""))
    why = f": {visible(stop['why'])}" if stop["why"] and stop["outcome"] != "passed" else ""
    said = f"last stop {age(time.time() - stop['at'])} ago: {outcome}{why}"
    print(folded(said, 0))
