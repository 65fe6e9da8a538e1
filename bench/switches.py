"""How many modules one failing gate loads, and how often calls go from one module to another.

    python -m bench.switches [SRC]

SRC is the folder that has the package `notyet`; without it, this checkout's. It runs the hook of
one stop in a process of its own, without a pack, and counts the calls from one module of ours to
another: a reader who follows the stop makes as many jumps.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from bench.homes import Home
from bench.trees import grow

GATE = '[gates.bad]\nrun = "echo it is broken; exit 1"\n'
COUNT = """
import sys
source = sys.argv.pop(1)
sys.path.insert(0, source)
ours = source + "/notyet/"
calls = {}
say = lambda *words: print(*words, file=sys.stderr)

def count(frame, kind, _):
    if kind != "call" or frame.f_back is None:
        return
    callee, caller = frame.f_code.co_filename, frame.f_back.f_code.co_filename
    if callee != caller and callee.startswith(ours) and caller.startswith(ours):
        key = caller[len(ours):], callee[len(ours):], frame.f_code.co_name
        calls[key] = calls.get(key, 0) + 1

sys.argv = ["notyet", "hook", "--host", "claude"]
sys.setprofile(count)
try:
    DOOR
    code = serve(sys.argv[2:])
finally:
    sys.setprofile(None)
modules = sorted(name for name in sys.modules if name.split(".")[0] == "notyet")
say(f"exit {code}, {len(modules)} modules loaded, {sum(calls.values())} calls between modules")
for (caller, callee, name), times in sorted(calls.items(), key=lambda one: -one[1])[:40]:
    say(f"{times:5} {caller} -> {callee}: {name}")
say(*modules)
"""
DOORS = ("from notyet.hook.main import serve", "from notyet.cli.hook import serve")


def main(source: str) -> int:
    """Print the figures of a stop with one failing gate and a ledger that exists."""
    is_new = (Path(source) / "notyet" / "hook" / "main.py").exists()
    code = COUNT.replace("DOOR", DOORS[0] if is_new else DOORS[1])
    with tempfile.TemporaryDirectory(prefix="notyet-bench-") as folder:
        home = Home(folder)
        place = home.project("failing", GATE)
        grow(place, 10)
        home.hook(place)()  # which makes the ledger
        home.write_payload(place, "another session")
        with home.payload_of(place).open("rb") as payload:
            done = subprocess.run(
                [sys.executable, "-I", "-S", "-c", code, source],
                cwd=place,
                env=home.environ,
                stdin=payload,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        print(done.stderr)
        return done.returncode


if __name__ == "__main__":
    here = str(Path(__file__).resolve().parent.parent / "src")
    raise SystemExit(main(sys.argv[1] if len(sys.argv) > 1 else here))
