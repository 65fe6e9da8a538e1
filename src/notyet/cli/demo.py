"""`notyet demo`: three scripted agents meet real gates in a throw-away git project."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import subprocess
import sys
import tempfile

from notyet.cli.demo_cast import CONFIG, STORIES, ScriptedSession, make_project
from notyet.cli.demo_timeline import Timeline
from notyet.config.files import NAME, NATIVE, ConfigFile
from notyet.config.load import load_vouched
from notyet.core.event import StopEvent
from notyet.core.limits import Limits
from notyet.core.verdict import Block
from notyet.engine import Engine
from notyet.ledger.sqlite import Ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from notyet.cli.demo_cast import Story

SUMMARY = "watch three scripted agents meet the gates, in a throw-away project"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--keep", action="store_true", help="do not delete the project afterwards")


def run(args: argparse.Namespace) -> int:
    """Tell the three stories; exit 0 only if each went as it must."""
    if shutil.which("git") is None:
        print("notyet demo: git is not installed; install it and try again", file=sys.stderr)
        return 1
    log = logging.getLogger("notyet")
    level = log.level
    log.setLevel(logging.ERROR)  # the timeline says it in its own words
    folder = tempfile.mkdtemp(prefix="notyet-demo-")
    try:
        return asyncio.run(_tell_all(folder))
    except subprocess.CalledProcessError as error:
        print(f"notyet demo: git failed: {error.stderr.strip()}", file=sys.stderr)
        return 1
    finally:
        log.setLevel(level)
        if args.keep:
            print(f"the project is kept in {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


async def _tell_all(folder: str) -> int:
    show = Timeline()
    show.opening(CONFIG)
    ledger = Ledger(os.path.join(folder, "ledger.db"))
    told = {}
    for story in STORIES:
        project = os.path.join(folder, story.name)
        make_project(project)
        # The demo wrote this file itself; a project's own is obeyed only when you trust it.
        setup = load_vouched([ConfigFile(path=os.path.join(project, NAME), kind=NATIVE)])
        engine = Engine(setup.gates, limits=Limits(**setup.limits), ledger=ledger)
        show.story(story)
        told[story] = await _tell(story, project, engine, show)
    ledger.close()
    return 1 if show.closing(told) else 0


async def _tell(story: Story, project: str, engine: Engine, show: Timeline) -> tuple[str, ...]:
    session = ScriptedSession(story, project)
    prompt = "Make total() work for every basket."
    outcomes: list[str] = []
    while True:
        turn = await session.send(prompt, key=f"{story.name}-{len(outcomes)}")
        show.said(story.name, turn.text)
        decision = await engine.check(
            StopEvent(
                host="demo",
                session_id=session.id or "",
                cwd=project,
                last_message=turn.text,
                tools_used=turn.tools,
            )
        )
        outcomes.append(decision.outcome)
        show.decided(decision)
        if not isinstance(decision.verdict, Block):
            return tuple(outcomes)
        prompt = decision.verdict.prompt
