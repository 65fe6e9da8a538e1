"""Run notyet as a program in a folder of its own, and compare the answers with golden files.

Only the command line is used, so that these tests survive every change inside of the package.
`GOLDEN=write pytest tests/golden` writes the golden files again.
"""

import contextlib
import difflib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GOLDEN = Path(__file__).parent / "recorded"
VECTORS = Path(__file__).parent.parent / "vectors"
PACKAGE = Path(importlib.util.find_spec("notyet").origin).parent
PROGRAMS = "bash sh git cat echo env false grep kill printf sleep test touch true"
VARYING = (
    (re.compile(r'("(?:seconds|p50|p95|at|\w+_at|size|\w*pid|duration\w*)": )[\d.e-]+'), r"\1*"),
    (re.compile(r'("\w*over_time": )\[[^]]*\]'), r"\1[*]"),
    (re.compile(r"\b\d+\.\d+ ?s\b"), "* s"),
    (re.compile(r"\b[0-9a-f]{32,64}\b"), "DIGEST"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r"-[0-9a-f]{8}\.log\b"), "-*.log"),
    (re.compile(r"\. [\w.-]+ switched it off"), ". USER switched it off"),
    (re.compile(r'("notyet": )"[\d.]+\w*"'), r'\1"VERSION"'),
    (re.compile(r"(one JSON object: )[^(\"\n]*\(char \d+\)"), r"\1..."),  # words of Python's parser
)


class World:
    """A project, a home and a PATH with few programs."""

    def __init__(self, folder):
        folder = folder.resolve()
        self.project, self.home, self.bin = (folder / name for name in ("project", "home", "bin"))
        for made in (self.project, self.home, self.bin):
            made.mkdir(parents=True)
        for name in PROGRAMS.split():
            (self.bin / name).symlink_to(shutil.which(name))
        self.environ = {
            "PATH": str(self.bin),
            "HOME": str(self.home),
            "XDG_STATE_HOME": str(self.home / "state"),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_SYSTEM": "/dev/null",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
        }
        self.stops = 0
        self.names = {
            str(self.project): "$PROJECT",
            str(self.home): "$HOME",
            str(self.bin): "$BIN",
            str(folder): "$FOLDER",
            str(PACKAGE): "$PACKAGE",
            sys.executable: "$PYTHON",
        }

    def write(self, name, text):
        """Write a file of the project."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, bytes):
            path.write_bytes(text)
        else:
            path.write_text(text, encoding="utf-8")

    def git(self, *args):
        """Run git in the project."""
        author = ("-c", "user.name=t", "-c", "user.email=t@localhost")
        subprocess.run(["git", *author, *args], cwd=self.project, env=self.environ, check=True)

    def run(self, *argv, payload=None, **environ):
        """Run a command of notyet; return its exit code and what it printed."""
        content = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        done = subprocess.run(
            [*_python(argv), *argv],
            input=b"" if payload is None else content,
            capture_output=True,
            cwd=self.project,
            env=self.environ | environ,
            timeout=60,
            check=False,
        )
        return {
            "exit": done.returncode,
            "stdout": self.normal(done.stdout),
            "stderr": self.normal(done.stderr),
        }

    def run_as_person(self, *argv):
        """Run a command that agents may not run, as a child of no agent."""
        code = self.home / "exit"
        code.unlink(missing_ok=True)
        script = f'(cd "{self.project}"; "$@" > "{self.home}/said" 2>&1; echo $? > "{code}.new"; '
        script += f'mv "{code}.new" "{code}") < /dev/null > /dev/null 2>&1 &'
        command = ["/bin/sh", "-c", script, "sh", *_python(argv), *argv]
        path = {"PATH": f"{self.bin}:/usr/bin:/bin"}
        subprocess.run(command, env=self.environ | path, check=True)
        ends = time.monotonic() + 60
        while not code.exists():
            assert time.monotonic() < ends, f"notyet {' '.join(argv)} did not end"
            time.sleep(0.005)
        assert code.read_text() == "0\n", (self.home / "said").read_text()

    def trust(self, text, *argv):
        """Write the project's notyet.toml and trust it."""
        self.write("notyet.toml", text)
        self.run_as_person("trust", "--yes", *argv)

    def normal(self, output):
        """Return an output as text, without what differs from run to run."""
        text = output.decode("utf-8", "backslashreplace")
        for path, name in self.names.items():
            text = text.replace(path, name)
        for pattern, instead in VARYING:
            text = pattern.sub(instead, text)
        return text


def _python(argv):
    if argv[0] == "hook":  # as hosts run it
        return [sys.executable, "-I", "-S", str(PACKAGE / "__main__.py")]
    return [sys.executable, "-I", "-m", "notyet"]


def compare(name, answers):
    """Compare answers with a golden file: JSON, or plain text."""
    is_text = isinstance(answers, str)
    text = answers if is_text else json.dumps(answers, indent=1, ensure_ascii=False) + "\n"
    path = GOLDEN / name
    if os.environ.get("GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    known = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = difflib.unified_diff(
        known.splitlines(), text.splitlines(), str(path), "now", lineterm=""
    )
    assert text == known, "\n".join([*lines, "(if it is meant: GOLDEN=write pytest tests/golden)"])


@contextlib.contextmanager
def short_folder():
    """Make a folder whose name is as long on every machine: a message has room for so much."""
    with tempfile.TemporaryDirectory(prefix="notyet-golden-", dir="/tmp") as folder:  # the system's
        yield Path(folder) / "world"


def vectors(*parts):
    """Return the vectors of a file."""
    return json.loads(VECTORS.joinpath(*parts).read_text(encoding="utf-8"))


def stop(host, world, session, **fields):
    """Return the payload of a stop as a host sends it."""
    agent = fields.pop("agent", "")
    world.stops += 1  # two stops that are alike within seconds count as one
    message = fields.pop("message", f"Done {world.stops}.")
    active = fields.pop("active", False)
    if host == "notyet":
        known = {
            "scope": "subagent" if agent else "agent",
            "host": "notyet",
            "session_id": session,
            "cwd": str(world.project),
            "last_message": message,
            "stop_hook_active": active,
        }
        return known | ({"agent_id": "a1", "agent_type": agent} if agent else {}) | fields
    known = {
        "session_id": session,
        "transcript_path": f"{world.home}/.{host}/sessions/{session}.jsonl",
        "cwd": str(world.project),
        "hook_event_name": "SubagentStop" if agent else "Stop",
        "stop_hook_active": active,
        "last_assistant_message": message,
    }
    if host == "codex":
        known |= {"turn_id": "t1", "model": "m", "permission_mode": "default"}
    if agent:
        known |= {"agent_id": "a1", "agent_type": agent}
    return known | fields
