"""`notyet hook` as hosts start it: whole processes, in multiples of a bare interpreter."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import notyet
from bench.measure import Row, interleaved
from notyet.config.files import ConfigFile
from notyet.config.trust import candidate, grant
from notyet.dialects.transcript import last_message

PYTHON = os.path.realpath(sys.executable)
HOOK = [PYTHON, "-I", "-S", str(Path(notyet.__file__).with_name("__main__.py")), "hook"]
FLOOR = [PYTHON, "-I", "-S", "-c", "pass"]
ALWAYS = 'run = "true"\nwhen = "always"\n'
FILES = 10_000
GIGABYTE = 1_000_000_000


def measure() -> list[Row]:
    """Start hooks in turns with a bare interpreter, each in a project of its own."""
    with tempfile.TemporaryDirectory(prefix="notyet-bench-") as folder:
        home = Path(folder, "home")
        environ = {"HOME": str(home), "PATH": os.environ["PATH"]}
        places = {
            "nothing": _project(folder, "nothing", "", environ),
            "one": _project(folder, "one", f"[gates.g]\n{ALWAYS}", environ),
            "five": _project(
                folder, "five", "".join(f"[gates.g{n}]\n{ALWAYS}" for n in range(5)), environ
            ),
        }
        subjects = {name: _hook(place, environ) for name, place in places.items()}
        figures = interleaved(60, 1, floor=_process(FLOOR, folder, environ), **subjects)
        floor = figures["floor"]
        bare = "python -I -S -c pass"
        rows = [
            Row("hook, nothing applies", bare, floor, figures["nothing"], 2.0),
            Row("hook, one gate, recorded", bare, floor, figures["one"], 3.0),
            Row("hook, five gates, recorded", bare, floor, figures["five"], 4.0),
        ]
        return [*rows, *_remembered(folder, environ), *_transcripts(folder)]


def _remembered(folder: str, environ: dict[str, str]) -> list[Row]:
    """Spare a gate of half a minute on many files that did not change (N1)."""
    place = _project(folder, "tree", '[gates.slow]\nrun = "sleep 30"\n', environ)
    _tree(place, environ)
    _hook(place, environ)()  # the one time that it is asked
    status = ["git", "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all"]
    bare, look = _process(FLOOR, folder, environ), _process(status, str(place), environ)

    def floor() -> None:
        bare()
        look()

    figures = interleaved(20, 1, floor=floor, spared=_hook(place, environ))
    return [
        Row(
            f"hook, a gate of 30 s that passed on these {FILES:,} files",
            "python -I -S -c pass; git status",
            figures["floor"],
            figures["spared"],
            2.5,
        )
    ]


def _tree(place: Path, environ: dict[str, str]) -> None:
    """Make a repository of a project, with many files in it."""
    for n in range(FILES):
        file = place / f"folder{n % 100}" / f"file{n}.txt"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{n}\n")
    author = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    for command in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "-m", "all")):
        subprocess.run(["git", *author, *command], cwd=place, env=environ, check=True)


def peak_memory() -> float:
    """Return the megabytes that a hook needs at most while a gate prints a gigabyte."""
    with tempfile.TemporaryDirectory(prefix="notyet-bench-") as folder:
        environ = {"HOME": str(Path(folder, "home")), "PATH": os.environ["PATH"]}
        text = f'[gates.loud]\nrun = "head -c {GIGABYTE} /dev/zero; exit 1"\n'
        place = _project(folder, "loud", text, environ)
        _hook(place, environ)()
        # Of all children so far; the others are much smaller.
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def _project(folder: str, name: str, text: str, environ: dict[str, str]) -> Path:
    place = Path(folder, name)
    place.mkdir()
    if text:
        (place / "notyet.toml").write_text(text)
        file = ConfigFile(path=str(place / "notyet.toml"), kind="notyet")
        # The state folder is found through the home of this process.
        home, os.environ["HOME"] = os.environ["HOME"], environ["HOME"]
        try:
            grant(candidate(file, environ), environ)
        finally:
            os.environ["HOME"] = home
    payload = {
        "session_id": name,
        "hook_event_name": "Stop",
        "cwd": str(place),
        "stop_hook_active": False,
        "last_assistant_message": "Done.",
        "transcript_path": "/nowhere.jsonl",
    }
    (place / "payload.json").write_text(json.dumps(payload))
    return place


def _hook(place: Path, environ: dict[str, str]):
    return _process(HOOK, str(place), environ, place / "payload.json")


def _process(command: list[str], cwd: str, environ: dict[str, str], stdin: Path | None = None):
    def run() -> None:
        with open(stdin or os.devnull, "rb") as payload:
            subprocess.run(
                command, cwd=cwd, env=environ, stdin=payload, stdout=subprocess.DEVNULL, check=True
            )

    return run


def _transcripts(folder: str) -> list[Row]:
    line = json.dumps({"type": "user", "message": {"role": "user", "content": "x" * 900}}) + "\n"
    answer = {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}
    last = json.dumps({"type": "assistant", "message": answer}) + "\n"
    small, big = Path(folder, "small.jsonl"), Path(folder, "big.jsonl")
    small.write_text(line * 1000 + last)
    with open(big, "wb") as file:
        file.truncate(2 * 1024**3)  # sparse: a line of zeros, and then the same as the other
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + (line * 1000 + last).encode())
    figures = interleaved(
        200, 10, small=lambda: last_message(str(small)), big=lambda: last_message(str(big))
    )
    return [
        Row("last message of 2 GB", "last message of 1 MB", figures["small"], figures["big"], 1.5)
    ]
