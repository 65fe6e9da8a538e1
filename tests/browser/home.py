"""A person's home with projects, agents and a ledger, filled by real runs."""

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

from commands import until
from conftest import git
from hook_runs import ENTRY, command_line, in_bytes, payload
from notyet.config.files import ConfigFile
from notyet.config.trust import candidate, grant

# What a project's tools say while a file of their name is in its folder `.broken`.
_TOOL = """\
#!/bin/sh
if [ -s ".broken/${0##*/}" ]; then cat ".broken/${0##*/}"; exit 1; fi
echo "${0##*/}: ok"
"""
TOOLS = ("mypy", "no-todo", "pytest", "review", "ruff")


class Home:
    """A home folder; every program that it starts reads and writes below it only."""

    def __init__(self, folder):
        self.folder = folder
        self.ledger = folder / "ledger.db"
        self.environ = {
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / ".local" / "state"),
            "XDG_CONFIG_HOME": str(folder / ".config"),
            "NOTYET_LEDGER": str(self.ledger),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_SYSTEM": "/dev/null",
            "LANG": "C.UTF-8",
        }
        (folder / "bin").mkdir()
        for name in TOOLS:
            (folder / "bin" / name).write_text(_TOOL)
            (folder / "bin" / name).chmod(0o755)
        self._started = []

    def project(self, name, gates):
        """Make a project with trusted gates and one commit; return its folder."""
        folder = self.folder / name
        (folder / ".broken").mkdir(parents=True)
        (folder / "notyet.toml").write_text(gates)
        (folder / ".gitignore").write_text("agent.toml\n*.pid\n")
        git(folder, "init", "--quiet")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", "one")
        file = ConfigFile(path=str(folder / "notyet.toml"), kind="notyet")
        grant(candidate(file, self.environ), self.environ)
        return folder

    def stop(self, host, folder, session, said="Done.", *, broken=None, **fields):
        """Let an agent stop under a real hook; `broken` is what each tool finds then."""
        found = broken or {}
        for tool in TOOLS:
            (folder / ".broken" / tool).write_text(found.get(tool, ""))
        (folder / "work.txt").write_text(f"{session} {said} {found}\n")
        known = {"session_id": session, "last_assistant_message": said, "turn_id": f"{session}-1"}
        done = subprocess.run(
            command_line("--host", host),
            input=in_bytes(payload(host, folder, **(known | fields))),
            capture_output=True,
            timeout=60,
            env=self.environ,
        )
        assert done.returncode in {0, 2}, done.stderr
        return done

    def install(self, host, version, folder):
        """Have a host's program here that knows its version only, and register notyet with it."""
        program = self.folder / "bin" / host
        program.write_text(f"#!/bin/sh\necho '{version}'\n")
        program.chmod(0o755)
        done = self.start(folder, "install", host, "--yes")
        said = done.communicate(timeout=60)
        assert done.returncode == 0, said

    def start(self, folder, *argv):
        """Start a command of notyet; `end` ends it."""
        process = subprocess.Popen(
            [sys.executable, str(ENTRY), *argv],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environ,
        )
        self._started.append(process)
        return process

    def run_with(self, folder, script, prompt, *argv):
        """Run a supervised agent to its end."""
        process = self.start_with(folder, script, prompt, *argv)
        process.communicate(timeout=60)

    def start_with(self, folder, script, prompt, *argv):
        """Start a supervised agent with a script."""
        (folder / "agent.toml").write_text(script)
        return self.start(folder, "with", "scripted:agent.toml", prompt, *argv)

    def rows(self, sql, *values):
        """Read from the ledger, or change it."""
        with closing(sqlite3.connect(self.ledger, timeout=30)) as db, db:
            return db.execute(sql, values).fetchall()

    def wait_for_rows(self, sql, *values):
        """Wait until the ledger has such rows; return them."""
        assert until(lambda: self._has_tables() and self.rows(sql, *values), 30.0), sql
        return self.rows(sql, *values)

    def _has_tables(self):
        return self.ledger.exists() and self.rows("PRAGMA user_version") != [(0,)]

    def end(self, process=None):
        """End a process, or all that are left."""
        for each in [process] if process else self._started:
            if each.poll() is None:
                each.terminate()
            try:
                each.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                each.kill()
                each.communicate()


GATES = """\
[gates.lint]
run = "ruff check ."

[gates.types]
run = "mypy src"

[gates.tests]
run = "pytest -q"
hint = "Fix the cause, not the test."
for = "all"
"""
REVIEWED = f"""\
{GATES}
[gates.review]
run = "review --staged"

[gates.no-todo]
run = "no-todo"
observe = true
"""
LATE = """\
[gates.links]
run = "sleep 60"
timeout = 0.2
if_broken = "allow"
"""
UNICODE = """\
FAILED tests/test_parser.py::test_unicode - AssertionError: 'é' != 'e'
2 failed, 118 passed in 12.4s
"""
REFUND = """\
FAILED tests/test_pay.py::test_refund - AssertionError: 3 != 2
1 failed, 119 passed in 9.8s
"""
RECEIPT = """\
src/shop/pay.py:41: error: Incompatible return value type (got "None", expected "Receipt")
Found 1 error in 1 file (checked 38 source files)
"""
IMPORT = "src/api/routes.py:3:8: F401 `json` imported but unused\nFound 1 error.\n"
TODO = "You left 3 TODOs in files that you changed.\n"
# An agent that says done too early, and does the work when it is sent back.
LEARNS = """\
[[turn]]
usage = { input = 12400, output = 830 }
steps = [
  { tool = "bash", run = "echo 'FAILED tests/test_cli.py::test_help' > .broken/pytest" },
  { say = "Done! The command line uses argparse now." },
]

[[turn]]
usage = { input = 15100, output = 640 }
steps = [
  { tool = "bash", input = { script = "pytest -q" }, run = ": > .broken/pytest" },
  { say = "The help text was missing; all tests pass now." },
]
"""
# An agent that is sent back once and then works on until it is ended.
WORKS_ON = """\
[[turn]]
steps = [
  { tool = "bash", run = "echo 'E   assert cache is None' > .broken/pytest" },
  { say = "Done. The legacy cache is gone." },
]

[[turn]]
steps = [
  { say = "I look at the test that fails." },
  { hang = true },
]
"""


def fill(home):
    """Fill a ledger with the stops of a working day: under hooks first, then supervised agents."""
    shop, api = home.project("shop", GATES), home.project("api", REVIEWED)
    docs = home.project("docs", LATE)
    home.install("claude", "2.1.325 (Claude Code)", shop)
    back = {"stop_hook_active": True}
    home.stop("claude", shop, "4a232a7e", "The totals are right now.", broken={"pytest": UNICODE})
    home.stop("claude", shop, "4a232a7e", "Accents are kept.", broken={"mypy": RECEIPT}, **back)
    home.stop("claude", shop, "4a232a7e", "Types are right, too.", **back)
    home.stop("codex", api, "e0a066c1", "The route is there.", broken={"ruff": IMPORT})
    home.stop("codex", api, "e0a066c1", "Removed the import.", broken={"no-todo": TODO}, **back)
    home.stop("claude", shop, "118803bd", "Nothing to do: it works already.")
    coder = {"hook_event_name": "SubagentStop", "agent_id": "a1", "agent_type": "coder"}
    mine = coder | {"transcript_path": f"{shop}/.claude/sessions/t.jsonl"}
    home.stop("claude", shop, "07efb1d2", "Refunds work.", broken={"pytest": REFUND}, **mine)
    home.stop("claude", shop, "07efb1d2", "Refunds really work.", **(mine | back))
    home.stop("claude", shop, "07efb1d2", "My coder finished the refunds.")
    gemini = {"hook_event_name": "AfterAgent", "prompt_response": "Docs are written."}
    home.stop("gemini", api, "343f01aa", **gemini)
    home.stop("codex", api, "ac0812f0", "Nightly build is green.", broken={"pytest": REFUND})
    for said in ("I checked again: green.", "It is green.", "Green, I am sure."):
        home.stop("codex", api, "ac0812f0", said, broken={"pytest": REFUND}, **back)
    home.stop("claude", docs, "4805dd19", "Every link is checked.")
    home.stop("claude", shop, "4805dd20", "Ported the importer.", broken={"pytest": UNICODE})
    home.run_with(shop, LEARNS, "Port the command line to argparse.", "--label", "argparse")
    worker = home.start_with(shop, WORKS_ON, "Remove the legacy cache.", "--label", "cache")
    home.wait_for_rows(
        "SELECT 1 FROM steers JOIN tasks ON tasks.id = task AND ended_at IS NULL"
        " WHERE phase = 'accepted'"
    )
    return worker


# Seconds that such gates take, where people use them.
_SECONDS = {"lint": 0.3, "types": 2.4, "tests": 9.6, "review": 21.0, "no-todo": 0.1, "links": 60.0}


def set_times(home):
    """Spread the stops over the last hours; give each gate the seconds that such a gate takes."""
    now = time.time()
    stops = home.rows("SELECT id, agent FROM stops ORDER BY id DESC")
    with closing(sqlite3.connect(home.ledger, timeout=30)) as db, db:
        for place, (number, _) in enumerate(stops):
            db.executemany(
                "UPDATE reports SET seconds = ? WHERE gate = ? AND stop = ? AND seconds > 0",
                [
                    (each * (1 + number * 7 % 5 / 10), gate, number)
                    for gate, each in _SECONDS.items()
                ],
            )
            ended = now - 40 - 85 * place * (1 + place)
            db.execute(
                "UPDATE stops SET ended_at = ?1, begun_at = ?1 -"
                " (SELECT max(seconds) FROM reports WHERE stop = id) WHERE id = ?2",
                (ended, number),
            )
        db.execute(
            "UPDATE agents SET seen_at = (SELECT ended_at FROM stops WHERE id = last_stop)"
            " WHERE last_stop > 0"
        )
        for task, session in db.execute("SELECT id, session_id FROM tasks").fetchall():
            _set_times_of_task(db, task, session)


def _set_times_of_task(db, task, session):
    """Have a task's runs lie between its stops."""
    stops = db.execute(
        "SELECT begun_at, ended_at FROM stops JOIN agents ON agents.id = agent"
        " WHERE session_id = ? ORDER BY stops.id",
        (session,),
    ).fetchall()
    begins = stops[0][0] - 35
    db.execute("UPDATE tasks SET created_at = ? WHERE id = ?", (begins, task))
    for number, (begun, ended) in enumerate(stops, start=1):
        db.execute(
            "UPDATE runs SET started_at = ?, finished_at = ?, ended_at = ?"
            " WHERE task = ? AND generation = ?",
            (begins, begun, ended, task, number),
        )
        db.execute(
            "UPDATE tasks SET ended_at = ? WHERE id = ? AND ended_at IS NOT NULL", (ended, task)
        )
        begins = ended
    db.execute(
        "UPDATE runs SET started_at = ? WHERE task = ? AND generation > ?",
        (begins, task, len(stops)),
    )
    db.execute(
        "UPDATE steers SET reserved_at = (SELECT ended_at FROM stops WHERE id = stop)"
        " WHERE task = ? AND stop > 0",
        (task,),
    )
