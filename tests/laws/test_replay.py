"""Replaying what was recorded: compared with what really happens, by running it."""

import asyncio
import os
import random
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notyet import Command, Engine, Gate, Ledger, Limits, StopEvent
from notyet.core.event import BackgroundTask, StartEvent
from notyet.core.gate import Match, definition_of
from notyet.ledger import past_stops
from notyet.replay import Config, replay, turns_of

NAMES = ("lint", "tests", "docs")
# What a gate is made to say: by its exit code, or by what it prints.
SAID = {
    "allow": "exit 0",
    "block": "echo it fails; exit 1",
    "other": "echo it fails otherwise; exit 1",
    "problem": "exit 127",
    "halt": """echo '{"decision": "halt", "reason": "enough"}'""",
    "more": """echo '{"decision": "block", "reason": "try on", "extend": 5}'""",
    "fine": """echo '{"decision": "allow", "extend": 4}'""",
}
PLAIN = ("allow", "block", "other", "problem")
LIKELY = (8, 5, 2, 2, 1, 2, 1)
WHEN = ("always", "changed")


# Chance within a world is ours: what hypothesis likes best, a world without gates, proves little.
SEEDS = st.integers(0, 2**32).map(random.Random)
# Each plays whole sessions with real commands.
_EXAMPLES = 400 if os.environ.get("NOTYET_LAWS") == "deep" else 20


def often(chance, likely):
    return chance.random() < likely


def a_gate(chance, name):
    return {
        "name": name,
        "observe": often(chance, 0.2),
        "if_broken": chance.choice(("allow", "block")),
        "priority": chance.choice((0, 0, -1)),
        "when": chance.choice(WHEN),
        "never": ("coder",) if often(chance, 0.2) else (),
        "text": "",
    }


def a_policy(chance):
    """Return how the gates are set up, by what they ask; not all need be there."""
    return {name: a_gate(chance, name) for name in NAMES if often(chance, 0.8)}


def some_limits(chance):
    return Limits(
        max_blocks=chance.choice((1, 2, 3, 3, 4)),
        session_ceiling=chance.choice((0, 3, 50)),
        stuck_after=chance.choice((0, 2, 2, 3)),
        wait_for_background=often(chance, 0.5),
    )


def another(chance, policy):
    """Return a policy with a few changes."""
    policy = {name: dict(how) for name, how in policy.items()}
    for _ in range(chance.choice((0, 1, 2))):
        name = chance.choice(NAMES)
        what = chance.choice((*a_gate(chance, name), "when", "gone"))
        if name not in policy:
            policy[name] = a_gate(chance, name)
        elif what == "gone":
            del policy[name]
        elif what == "text":
            policy[name]["text"] = " "  # another command, which says the same
        else:
            policy[name][what] = a_gate(chance, f"new {name}")[what]
    return policy


def some_sessions(chance):
    """Return who stops, how often, and what the gates are made to say each time."""
    return [
        (chance.choice(("agent", "subagent")), often(chance, 0.5), some_stops(chance))
        for _ in range(chance.choice((1, 2, 3)))
    ]


def some_stops(chance):
    stops = []
    for _ in range(chance.choice((2, 3, 4, 5))):
        is_same = bool(stops) and often(chance, 0.5)
        said = chance.choices(tuple(SAID), LIKELY, k=len(NAMES))
        stops.append(
            {
                "answers": stops[-1]["answers"] if is_same else dict(zip(NAMES, said, strict=True)),
                "touched": not is_same and often(chance, 0.7),
                "message": "BLOCKED: help" if often(chance, 0.08) else "done",
                "busy": often(chance, 0.08),
            }
        )
    return stops


class World:
    """A project in which gates say what they are told to."""

    def __init__(self, folder):
        self.folder = Path(folder)
        subprocess.run(["git", "init", "--quiet", folder], check=True)
        (self.folder / ".git" / "info" / "exclude").write_text("said-*\n")
        self.touches = 0

    def gates(self, policy):
        return [
            Gate(
                name=how["name"],
                check=Command(script=f". ./said-{name}{how['text']}", dir=str(self.folder)),
                match=Match(events=("agent", "subagent"), never=how["never"]),
                observe=how["observe"],
                if_broken=how["if_broken"],
                priority=how["priority"],
                when=how["when"],
            )
            for name, how in policy.items()
        ]

    def stops(self, sessions, engine):
        """Let agents stop, one after another; return what came of each, by session."""
        found = []
        for number, (scope, is_begun, stops) in enumerate(sessions):
            found.append([])
            if is_begun:  # so that a gate can be spared because nothing changed since
                begun = StartEvent(host="claude", session_id=f"s{number}", cwd=str(self.folder))
                asyncio.run(engine.start(begun))
            for at, stop in enumerate(stops):
                for name, said in stop["answers"].items():
                    (self.folder / f"said-{name}").write_text(SAID[said])
                if stop["touched"]:
                    self.touches += 1
                    (self.folder / "file").write_text(str(self.touches))
                busy = BackgroundTask(id="b", type="subagent")
                event = StopEvent(
                    host="claude",
                    session_id=f"s{number}",
                    scope=scope,
                    agent_id="a1" if scope == "subagent" else None,
                    agent_type="coder" if scope == "subagent" else None,
                    cwd=str(self.folder),
                    last_message=stop["message"],
                    stop_hook_active=at > 0,
                    background_tasks=(busy,) if stop["busy"] else (),
                )
                decision = engine.check_sync(event)
                found[-1].append((decision.outcome, decision.why))
        return found


def today(gates, limits):
    definitions = {gate.name: definition_of(gate) for gate in gates}
    return Config(gates=tuple(gates), definitions=definitions, limits=limits)


def findings(ledger, now):
    """Return what is found of each recorded stop, in order."""
    return replay(
        turns_of(ledger, past_stops.stops(ledger, past_stops.StopFilter(most=-1))),
        lambda _past: now,
    )


@pytest.fixture(scope="module")
def scratch():
    """A function that makes folders, all of which go."""
    made = []

    def make():
        made.append(tempfile.mkdtemp(dir=os.environ.get("TMPDIR")))
        return made[-1]

    yield make
    for folder in made:
        shutil.rmtree(folder)


def recorded(world, name, policy, limits, sessions):
    ledger = Ledger(world.folder / ".git" / name)
    outcomes = world.stops(sessions, Engine(world.gates(policy), limits=limits, ledger=ledger))
    return ledger, outcomes


@settings(max_examples=_EXAMPLES, deadline=None)
@given(SEEDS)
def test_replaying_against_the_very_configuration_that_was_recorded_never_differs(scratch, chance):
    policy, limits = a_policy(chance), some_limits(chance)
    sessions = some_sessions(chance)
    world = World(scratch())
    ledger, _ = recorded(world, "ledger.db", policy, limits, sessions)

    found = findings(ledger, today(world.gates(policy), limits))

    ledger.close()
    assert {finding.result for finding in found} <= {"same"}


@settings(max_examples=_EXAMPLES, deadline=None)
@given(SEEDS)
def test_what_is_said_of_another_configuration_is_what_happens_with_it(scratch, chance):
    before, limits, sessions = a_policy(chance), some_limits(chance), some_sessions(chance)
    before = {name: how | {"when": "always"} for name, how in before.items()}
    after = {name: how | {"when": "always"} for name, how in another(chance, before).items()}
    for _, _, stops in sessions:  # what is left aside: a halt or a higher limit of another gate
        for stop in stops:
            kinds = {name: kind for name, kind in stop["answers"].items() if kind in PLAIN}
            stop["answers"] = dict.fromkeys(NAMES, "block") | kinds
    other_limits = limits if often(chance, 0.6) else some_limits(chance)
    world = World(scratch())
    ledger, was = recorded(world, "ledger.db", before, limits, sessions)
    said = iter(findings(ledger, today(world.gates(after), other_limits)))
    ledger.close()

    ledger, real = recorded(world, "other.db", after, other_limits, sessions)
    ledger.close()

    for then, now in zip(was, real, strict=True):
        is_as_recorded = True  # as long as no stop before it came to something else
        for (outcome, why), (happened, _) in zip(then, now, strict=True):
            if why != "no-gate":  # of which there is no record
                finding = next(said)
                assert finding.was == outcome
                is_said = finding.result in {"same", "differs"} and finding.outcome
                if is_said and is_as_recorded and not finding.follows:
                    assert happened == finding.outcome
            is_as_recorded = is_as_recorded and happened == outcome
