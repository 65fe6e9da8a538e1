"""A home of its own in which notyet is installed and projects are trusted, as its user does it."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bench.processes import starting

if TYPE_CHECKING:
    from collections.abc import Callable

ALWAYS = 'run = "true"\nwhen = "always"\n'
BARE = (sys.executable, "-I", "-S", "-c", "pass")
BARE_WORDS = "python -I -S -c pass"
BARE_LINE = f"exec {shlex.join(BARE)}"


class Home:
    """What `notyet install claude` leaves behind, in a folder that is nobody's home."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.environ = {"HOME": str(self.folder), "PATH": os.environ["PATH"]}
        self.notyet("install", "claude", "--yes", cwd=self.folder)
        settings = json.loads((self.folder / ".claude" / "settings.json").read_text())
        self.line: str = settings["hooks"]["Stop"][0]["hooks"][0]["command"]
        # Hosts start the line through a shell, which then becomes what stands behind `exec`.
        # What stands behind `||` is for a notyet that is gone.
        words = shlex.split(self.line)
        words = words[: words.index("||")] if "||" in words else words
        self.command = words[words.index("exec") + 1 :] if "exec" in words else words

    @property
    def ledger(self) -> Path:
        """Where its stops are recorded."""
        return self.folder / ".local" / "state" / "notyet" / "ledger.db"

    def notyet(self, *words: str, cwd: Path) -> None:
        """Run a command of notyet."""
        done = subprocess.run(
            [sys.executable, "-m", "notyet", *words],
            cwd=cwd,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"notyet {' '.join(words)}: {done.stderr or done.stdout}")

    def project(self, name: str, gates: str, **fields: object) -> Path:
        """Make a project with these gates, trusted, and the payload of a stop in it."""
        place = self.folder / "projects" / name
        place.mkdir(parents=True)
        if gates:
            (place / "notyet.toml").write_text(gates)
            self.notyet("trust", "--yes", cwd=place)
        self.write_payload(place, name, **fields)
        return place

    def write_payload(self, place: Path, session: str, **fields: object) -> None:
        """Write what a host says when an agent stops there."""
        payload = {
            "session_id": session,
            "transcript_path": "/nowhere.jsonl",
            "cwd": str(place),
            "permission_mode": "default",
            "hook_event_name": "Stop",
            "stop_hook_active": False,
            "last_assistant_message": "Done.",
        } | fields
        self.payload_of(place).write_text(json.dumps(payload))

    def payload_of(self, place: Path) -> Path:
        """Return the file with a project's payload: beside it, so that nothing in it is new."""
        return place.with_suffix(".payload.json")

    def start(self, place: Path, session: str) -> None:
        """Begin the session of a project."""
        self.write_payload(place, session, hook_event_name="SessionStart", source="startup")
        self.hook(place)()
        self.write_payload(place, session)

    def hook(self, place: Path) -> Callable[[], None]:
        """Return what runs the hook once in a project, as installed."""
        payload = str(self.payload_of(place))
        return starting(self.command, cwd=str(place), environ=self.environ, stdin=payload)

    def line_hook(self, place: Path) -> Callable[[], None]:
        """Return what runs the hook once as a host does: the line of its settings, by a shell."""
        shell = ["/bin/sh", "-c", self.line]
        payload = str(self.payload_of(place))
        return starting(shell, cwd=str(place), environ=self.environ, stdin=payload)

    def bare(self) -> Callable[[], None]:
        """Return what starts and ends an interpreter with nothing to do."""
        return starting(BARE, cwd=str(self.folder), environ=self.environ)

    def last_stop(self, place: Path) -> tuple[str, ...]:
        """Run a project's hook and return the outcome, then what became of each gate.

        It is () where no stop was recorded: what is measured has to be what was meant.
        """
        before = self._newest()
        self.hook(place)()
        after = self._newest()
        if after == before:
            return ()
        outcome, *statuses = self._rows(
            "SELECT outcome FROM (SELECT outcome FROM stops ORDER BY id DESC LIMIT 1) UNION ALL"
            " SELECT status FROM reports WHERE stop = (SELECT max(id) FROM stops)"
        )
        return (outcome, *statuses)

    def _newest(self) -> int:
        return int(self._rows("SELECT max(id) FROM stops")[0] or 0) if self.ledger.exists() else 0

    def _rows(self, query: str) -> list[str]:
        db = sqlite3.connect(f"file:{self.ledger}?mode=ro", uri=True)
        try:
            return [row[0] for row in db.execute(query)]
        finally:
            db.close()
