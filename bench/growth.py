"""Growth: the whole hook, as installed, while one thing around it gets larger and larger."""

from __future__ import annotations

import json
import os
import tempfile
from typing import TYPE_CHECKING

from bench.homes import ALWAYS, Home
from bench.log import filled
from bench.measure import Curve, Effort, Figure, Point, Result, interleaved
from bench.processes import starting, starting_at_once
from bench.progress import say
from bench.trees import STATUS, grow

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

GATES = (1, 10, 100, 1_000)
CONFIGURED = (10, 100, 1_000, 10_000)
STOPS = (1_000, 10_000, 100_000, 1_000_000)
MEGABYTES = (1, 10, 100, 1_000, 2_000)
FILES = (100, 1_000, 10_000, 100_000)
SHELL = ("/bin/sh", "-c", "true")
PASSED = ("passed", "allowed")


def measure(effort: Effort) -> list[Result]:
    """Measure the curves, each with projects of its own."""
    with tempfile.TemporaryDirectory(prefix="notyet-bench-") as folder:
        home = Home(folder)
        curves = (_gates, _configured, _ledger, _transcripts, _files)
        return [curve(home, effort) for curve in curves]


def _gates(home: Home, effort: Effort) -> Curve:
    """Ask more and more gates at one stop."""
    hooks, bare = {}, {}
    for count in effort.sizes(GATES):
        say(f"a stop, gates asked: {count:,}")
        text = "".join(f"[gates.g{n}]\n{ALWAYS}" for n in range(count))
        place = home.project(f"gates{count}", text)
        _expect(home.last_stop(place), ("passed", *["allowed"] * count))
        hooks[count] = home.hook(place)
        bare[count] = starting_at_once(SHELL, count, cwd=str(place), environ=home.environ)
    points = _points(hooks, effort, {1_000: 5}, bare)
    what = "a stop, by gates asked"
    return Curve(what, "gates", points, "growth.gates", "as many sh -c true, started at once")


def _configured(home: Home, effort: Effort) -> Curve:
    """Have more and more gates configured, of which one is for this agent."""
    hooks = {}
    for count in effort.sizes(CONFIGURED):
        say(f"a stop, gates configured: {count:,}")
        others = "".join(
            f'[gates.g{n}]\nrun = "true"\nfor = "subagents"\n' for n in range(1, count)
        )
        place = home.project(f"config{count}", f"[gates.g]\n{ALWAYS}{others}")
        _expect(home.last_stop(place), PASSED)
        hooks[count] = home.hook(place)
    points = _points(hooks, effort, {10_000: 7})
    return Curve("a stop with one gate, by gates configured", "gates", points, "growth.config")


def _ledger(base: Home, effort: Effort) -> Curve:
    """Stop once more after more and more stops."""
    hooks = {}
    for stops in effort.sizes(STOPS):
        say(f"a stop after {stops:,} others")
        home = Home(base.folder / f"ledger{stops}")
        place = home.project("one", f"[gates.g]\n{ALWAYS}")
        for old in home.ledger.parent.glob(f"{home.ledger.name}*"):
            old.unlink()
        filled(str(home.ledger), str(place), stops).close()
        _expect(home.last_stop(place), PASSED)
        hooks[stops] = home.hook(place)
    return Curve(
        "a stop with one gate, by stops recorded", "stops", _points(hooks, effort), "growth.ledger"
    )


def _transcripts(home: Home, effort: Effort) -> Curve:
    """Look for the last message in larger and larger transcripts."""
    hooks = {}
    for size in effort.sizes(MEGABYTES):
        say(f"a stop with a transcript of {size:,} MB")
        path = home.folder / f"{size}.jsonl"
        write_transcript(path, size)
        # The gate's words prove that the message was found.
        gates = f"[gates.g]\n{ALWAYS}".replace('"true"', """'grep -q "All tests pass"'""")
        place = home.project(
            f"transcript{size}", gates, transcript_path=str(path), last_assistant_message=""
        )
        _expect(home.last_stop(place), PASSED)
        hooks[size] = home.hook(place)
    return Curve(
        "a stop with one gate, by size of transcript",
        "MB",
        _points(hooks, effort),
        "growth.transcript",
    )


def write_transcript(path: Path, megabytes: int) -> None:
    """Write a megabyte of a session, and what is before it as a hole in the file."""
    line = json.dumps({"type": "user", "message": {"role": "user", "content": "x" * 900}}) + "\n"
    answer = {"role": "assistant", "content": [{"type": "text", "text": "All tests pass."}]}
    last = json.dumps({"type": "assistant", "message": answer}) + "\n"
    with open(path, "wb") as file:
        file.truncate((megabytes - 1) * 1_000_000)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + (line * (1_000_000 // len(line)) + last).encode())


def _files(home: Home, effort: Effort) -> Curve:
    """Remember a pass on larger and larger repositories."""
    hooks, looks = {}, {}
    for files in effort.sizes(FILES):
        say(f"a remembered pass on {files:,} files")
        place = home.project(f"tree{files}", '[gates.g]\nrun = "true"\n')
        grow(place, files)
        home.hook(place)()
        _expect(home.last_stop(place), ("passed", "remembered"))
        hooks[files] = home.hook(place)
        looks[files] = starting(STATUS, cwd=str(place), environ=home.environ)
    points = _points(hooks, effort, {10_000: 10, 100_000: 5}, looks)
    return Curve(
        "a remembered pass, by files in the repository",
        "files",
        points,
        "growth.files",
        "git status",
    )


def _points(
    hooks: dict[int, Callable[[], None]],
    effort: Effort,
    rounds: dict[int, int] | None = None,
    floors: dict[int, Callable[[], None]] | None = None,
) -> tuple[Point, ...]:
    """Measure all sizes in turns; the large ones, which take long, less often."""
    few = {size: effort.rounds((rounds or {}).get(size, 20)) for size in hooks}
    taken: dict[str, Figure] = {}
    for count in sorted(set(few.values())):
        group = [size for size in hooks if few[size] == count]
        subjects = {f"hook {size}": hooks[size] for size in group}
        subjects |= {f"floor {size}": (floors or {})[size] for size in group if floors}
        taken |= interleaved(count, 1, **subjects)
    return tuple(Point(size, taken[f"hook {size}"], taken.get(f"floor {size}")) for size in hooks)


def _expect(found: tuple[str, ...], expected: tuple[str, ...]) -> None:
    """What is measured has to be what was meant."""
    if found != expected:
        raise RuntimeError(f"a stop was recorded as {found[:3]}, not as {expected[:3]}")
