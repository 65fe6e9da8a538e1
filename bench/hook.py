"""A stop as a host sees it: the whole process that `notyet install` registers, beside a bare interpreter."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from bench.homes import ALWAYS, BARE_LINE, BARE_WORDS, Home
from bench.measure import Effort, Result, Row, interleaved
from bench.processes import starting
from bench.progress import say
from bench.trees import STATUS, grow

if TYPE_CHECKING:
    from collections.abc import Callable

SUBAGENT = {"hook_event_name": "SubagentStop", "agent_id": "a1", "agent_type": "Explore"}
FILES = (100, 1_000, 10_000)
MEMBERS = 100


def measure(effort: Effort) -> list[Result]:
    """Start hooks in turns with a bare interpreter, each in a project of its own."""
    with tempfile.TemporaryDirectory(prefix="notyet-bench-") as folder:
        home = Home(folder)
        return [*_stops(home, effort), *_remembered(home, effort), *_members(home, effort)]


def _stops(home: Home, effort: Effort) -> list[Result]:
    say("a stop: nothing, none for this agent, one gate, five gates")
    five = "".join(f"[gates.g{n}]\n{ALWAYS}" for n in range(5))
    one = f"[gates.g]\n{ALWAYS}"
    places = {
        "nothing": (home.project("nothing", ""), ()),
        "other": (home.project("other", one, **SUBAGENT), ()),
        "one": (home.project("one", one), ("passed", "allowed")),
        "five": (home.project("five", five), ("passed", *["allowed"] * 5)),
    }
    hooks: dict[str, Callable[[], None]] = {}
    for name, (place, expected) in places.items():
        found = home.last_stop(place)
        if found != expected:
            raise RuntimeError(f"the stop of {name!r} was recorded as {found}, not {expected}")
        hooks[name] = home.hook(place)
    figures = interleaved(
        effort.rounds(150),
        1,
        floor=home.bare(),
        **hooks,
        shell=starting(["/bin/sh", "-c", BARE_LINE], cwd=str(home.folder), environ=home.environ),
        line=home.line_hook(places["one"][0]),
    )
    words = {
        "nothing": ("nothing applies: no gates here", "hook.nothing"),
        "other": ("nothing applies: no gate is for this agent", "hook.other"),
        "one": ("one gate `true`, recorded", "hook.one"),
        "five": ("five gates `true`, recorded", "hook.five"),
    }
    floor = figures["floor"]
    return [
        *(
            Row(what, BARE_WORDS, floor, figures[name], goal)
            for name, (what, goal) in words.items()
        ),
        Row(
            "  one gate, with the host's shell around it",
            "the same around the floor",
            figures["shell"],
            figures["line"],
        ),
    ]


def _remembered(home: Home, effort: Effort) -> list[Result]:
    """Spare a gate that passed on files that did not change since (N1)."""
    files = effort.largest(FILES)
    say(f"a remembered pass on {files:,} files")
    place = home.project("tree", '[gates.slow]\nrun = "true"\n')
    grow(place, files)
    home.hook(place)()  # the one time that it is asked
    found = home.last_stop(place)
    if found != ("passed", "remembered"):
        raise RuntimeError(f"the pass on {files:,} files was recorded as {found}")
    bare, look = home.bare(), starting(STATUS, cwd=str(place), environ=home.environ)

    def floor() -> None:
        bare()
        bare()
        look()

    figures = interleaved(
        effort.rounds(40), 1, floor=floor, spared=home.hook(place), bare=bare, look=look
    )
    what = f"a remembered pass, {files:,} unchanged files"
    return [
        Row(
            what,
            "2 bare starts + git status",
            figures["floor"],
            figures["spared"],
            "hook.remembered",
        ),
        Row("  the same, in bare starts", BARE_WORDS, figures["bare"], figures["spared"]),
        Row("  for scale: git status alone", BARE_WORDS, figures["bare"], figures["look"]),
    ]


def _members(home: Home, effort: Effort) -> list[Result]:
    """Skip a gate in a project with many members, of which none changed since the session began."""
    say(f"a project with {MEMBERS} members")
    places = {}
    for name, more in (("alone", ""), ("members", 'members = ["packages/*"]\n')):
        place = home.project(name, "")
        (place / "notyet.toml").write_text(f'{more}[gates.g]\nrun = "true"\n')
        for number in range(MEMBERS):
            folder = place / "packages" / f"p{number}"
            folder.mkdir(parents=True)
            (folder / "notyet.toml").write_text('[gates.t]\nrun = "true"\n')
        grow(place, FILES[0])
        home.notyet("trust", "--yes", cwd=place)
        home.start(place, name)
        (place / "changed.txt").write_text("since the session began\n")
        home.hook(place)()  # the one time that the gate runs
        found = home.last_stop(place)
        if found != ("passed", "remembered"):
            raise RuntimeError(f"the stop of {name!r} was recorded as {found}")
        places[name] = home.hook(place)
    figures = interleaved(effort.rounds(60), 1, **places)
    return [
        Row(
            f"a remembered pass in a project with {MEMBERS} members",
            "the same without members",
            figures["alone"],
            figures["members"],
            "hook.members",
        )
    ]
