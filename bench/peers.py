"""The same job done by others: read the payload of a stop, run the gate `true`, let the agent go.

What each of them leaves out stands beside it. A peer that is not there, or whose gate does not run,
is named with the reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, NamedTuple

from bench.cchooks_venv import python_with_cchooks
from bench.homes import ALWAYS, BARE_WORDS, Home
from bench.measure import Effort, Missing, Result, Row, interleaved
from bench.processes import starting
from bench.progress import say

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BARELY = "no time limit, no trust, no count of blocks, no record"
BASH = """#!/bin/bash
input=$(cat)
[ "$(jq -r .stop_hook_active <<<"$input")" = true ] && exit 0
if ! said=$(sh -c 'GATE' 2>&1 </dev/null); then
  jq -n --arg reason "$said" '{decision: "block", reason: $reason}'
fi
"""
NODE = """
const {readFileSync} = require("node:fs");
const {spawnSync} = require("node:child_process");
const payload = JSON.parse(readFileSync(0, "utf8"));
if (!payload.stop_hook_active) {
  const done = spawnSync("sh", ["-c", "GATE"], {encoding: "utf8"});
  if (done.status !== 0) {
    console.log(JSON.stringify({decision: "block", reason: done.stdout + done.stderr}));
  }
}
"""
PYTHON = """
import argparse, json, subprocess, sys
parser = argparse.ArgumentParser()
parser.add_argument("--timeout", type=float, default=600)
args = parser.parse_args()
payload = json.load(sys.stdin)
if not payload["stop_hook_active"]:
    done = subprocess.run(
        ["sh", "-c", "GATE"], capture_output=True, text=True, timeout=args.timeout
    )
    if done.returncode:
        print(json.dumps({"decision": "block", "reason": done.stdout + done.stderr}))
"""
CCHOOKS = """
import subprocess
from cchooks import StopContext, create_context
context = create_context()
assert isinstance(context, StopContext)
if not context.stop_hook_active:
    done = subprocess.run(["sh", "-c", "GATE"], capture_output=True, text=True)
    if done.returncode:
        context.output.prevent(done.stdout + done.stderr)
"""
CONCLAUDE = 'stop:\n  commands:\n    - run: "GATE"\n'
HK = """amends "package://github.com/jdx/hk/releases/download/vVERSION/hk@VERSION#/Config.pkl"
hooks { ["check"] { steps { ["gate"] { check = "GATE" } } } }
"""


class Peer(NamedTuple):
    """A program that does the job: its command line, its file with GATE in it, what it leaves out."""

    name: str
    argv: tuple[str, ...]
    file: str
    text: str
    without: str


def measure(effort: Effort) -> list[Result]:
    """Start peers in turns with ours and a bare interpreter."""
    with tempfile.TemporaryDirectory(prefix="notyet-bench-") as folder:
        home = Home(folder)
        place = home.project("ours", f"[gates.g]\n{ALWAYS}")
        home.hook(place)()
        subjects: dict[str, Callable[[], None]] = {}
        results: list[Result] = []
        said: dict[str, str] = {}
        for peer in found(effort):
            if isinstance(peer, Missing):
                results.append(peer)
                continue
            problem = prepare(peer, home)
            if problem:
                results.append(Missing(peer.name, problem))
                continue
            subjects[peer.name], said[peer.name] = _job(peer, home), peer.without
        say(f"the same job by {', '.join(subjects) or 'nobody else'}")
        ours = "notyet: one gate `true`"
        everything = {ours: home.hook(place)} | subjects
        figures = interleaved(effort.rounds(40), 1, floor=home.bare(), **everything)
    rows: list[Result] = [
        Row(name, BARE_WORDS, figures["floor"], figures[name], note=said.get(name, ""))
        for name in everything
    ]
    return [*rows, *results]


def found(effort: Effort) -> list[Peer | Missing]:
    """Return the peers that can be had here, and why others cannot."""
    python, why = python_with_cchooks() if effort.name != "tiny" else ("", "not tried in a test")
    return [
        _program("bash + jq", "jq", ("bash", "hook.sh"), "hook.sh", BASH),
        _program("node", "node", ("node", "hook.js"), "hook.js", NODE),
        Peer(
            "Python: argparse, json, subprocess",
            (sys.executable, "hook.py"),
            "hook.py",
            PYTHON,
            "no trust, no count of blocks, no record; at its time limit children survive",
        ),
        Peer("cchooks 0.1.5", (python, "hook.py"), "hook.py", CCHOOKS, BARELY)
        if python
        else Missing("cchooks 0.1.5", why),
        _given("conclaude", "CONCLAUDE_BIN", ("Hooks", "Stop"), ".conclaude.yaml", CONCLAUDE),
        _given("hk", "HK_BIN", ("agent", "stop-hook"), "hk.pkl", HK),
    ]


def _program(
    name: str, program: str, argv: tuple[str, ...], file: str, text: str
) -> Peer | Missing:
    if not shutil.which(program):
        return Missing(name, f"{program} is not installed")
    return Peer(name, argv, file, text, BARELY)


def _given(
    name: str, variable: str, words: tuple[str, ...], file: str, text: str
) -> Peer | Missing:
    """Return a compiled peer that the caller names with a variable."""
    program = os.environ.get(variable, "")
    if not program:
        return Missing(name, f"{variable} is not set")
    if not shutil.which(program):
        return Missing(name, f"{variable} names no program: {program}")
    if "VERSION" in text:
        told = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
        text = text.replace("VERSION", (told.stdout.split() or ["?"])[-1])
    return Peer(name, (program, *words), file, text, "no trust, no count of blocks, no record")


def prepare(peer: Peer, home: Home) -> str:
    """Write the peer's files; return what is wrong if its gate does not run, or "" when all is well."""
    place = _place(peer, home)
    place.mkdir(parents=True)
    mark = place.with_suffix(".ran")
    subprocess.run(["git", "init", "--quiet"], cwd=place, check=True)
    (place / peer.file).write_text(peer.text.replace("GATE", f"touch {mark}"))
    home.write_payload(place, "s")
    try:
        _job(peer, home)()
    except (RuntimeError, OSError) as error:
        return f"it failed: {error}"
    if not mark.exists():
        return "it did not run its gate"
    (place / peer.file).write_text(peer.text.replace("GATE", "true"))
    return ""


def _job(peer: Peer, home: Home) -> Callable[[], None]:
    place = _place(peer, home)
    return starting(
        peer.argv, cwd=str(place), environ=home.environ, stdin=str(home.payload_of(place))
    )


def _place(peer: Peer, home: Home) -> Path:
    return home.folder / "peers" / peer.name.split()[0].strip(":")
