"""What the tests of `notyet hook` share: projects, payloads, runs and a look at the ledger."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from notyet.config.files import ConfigFile
from notyet.config.trust import candidate, grant
from notyet.hook import main as hook
from notyet.hook.payload import HostCall, Options

ENTRY = Path(hook.__file__).parent.parent / "__main__.py"
HOSTS = ("claude", "codex", "mux", "conclaude", "notyet")
PASSING = '[gates.ok]\nrun = "echo ran >> ran"\nwhen = "always"\n'
FAILING = '[gates.bad]\nrun = "echo it is broken; exit 1"\nwhen = "always"\n'


def new_project(folder, text=PASSING, *, trusted=True):
    """Make a project with a notyet.toml; return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "notyet.toml").write_text(text)
    if trusted:
        trust(folder / "notyet.toml")
    return folder


def gate(command, **fields):
    """Write a notyet.toml with one gate."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in fields.items()]
    return "\n".join(["[gates.g]", f"run = {json.dumps(command)}", 'when = "always"', *lines])


def trust(path, kind="notyet"):
    """Trust a file, as a person would."""
    grant(candidate(ConfigFile(path=str(path), kind=kind), os.environ), os.environ)


def payload(host, folder, /, **fields):
    """Return a stop as a host would send it."""
    if host == "notyet":
        return {"scope": "agent", "host": "notyet", "session_id": "s1", "cwd": str(folder)} | fields
    known = {
        "session_id": "s1",
        "transcript_path": f"{folder}/.{host}/sessions/t.jsonl",
        "cwd": str(folder),
        "hook_event_name": "Stop",
        "stop_hook_active": False,
        "last_assistant_message": "done",
    }
    if host == "codex":
        known |= {"turn_id": "t1", "model": "m", "permission_mode": "default"}
    return known | fields


def in_bytes(content):
    """Return what goes to stdin: bytes as they are, all else as JSON."""
    return content if isinstance(content, bytes) else json.dumps(content).encode()


def ask(content, *argv, environ=None):
    """Run the hook in this process; return its reply."""
    environ = os.environ if environ is None else environ
    return hook.reply_to(HostCall(Options(argv), environ, lambda: in_bytes(content)))


def told(reply):
    """Return what the user is told, wherever the host has a place for it."""
    return reply.stderr + (
        json.loads(reply.stdout).get("systemMessage", "") if reply.stdout else ""
    )


def begin(host, project, **fields):
    """Let a session begin; return what its user reads, and what its agent reads."""
    known = {"hook_event_name": "SessionStart", "source": "startup"} | fields
    reply = ask(payload(host, project, **known), "--host", host)
    said = json.loads(reply.stdout or "{}")
    assert (reply.code, reply.stderr) == (0, "")
    context = said.pop("hookSpecificOutput", {}).get("additionalContext", "")
    told = said.pop("systemMessage", "")
    assert said == {}
    return told, context


def clean_environ(**more):
    """Return the least environment that a hook needs not to touch the user's files."""
    names = ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "PATH")
    return {name: os.environ[name] for name in names} | more


def command_line(*argv):
    """Return how an installed hook is run."""
    return [sys.executable, "-I", "-S", str(ENTRY), "hook", *argv]


def run_hook(content, *argv, environ=None, **options):
    """Run the hook as hosts do; return the finished process."""
    return subprocess.run(
        command_line(*argv),
        input=in_bytes(content),
        capture_output=True,
        timeout=60,
        env=clean_environ() if environ is None else environ,
        **options,
    )


def run_changed_hook(content, change, *argv):
    """Run the hook in a process that first runs some code of a test; a number is its stdin."""
    code = (
        f"import sys\nsys.path.insert(0, {str(ENTRY.parent.parent)!r})\n{change}\n"
        f"from notyet.hook.main import serve\nsys.exit(serve({argv!r}))\n"
    )
    stdin = {"stdin": content} if isinstance(content, int) else {"input": in_bytes(content)}
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        capture_output=True,
        timeout=60,
        env=clean_environ(),
        **stdin,
    )


def loaded(content, *argv, environ=None):
    """Run the hook; return what it answered, and what it loaded beyond a bare interpreter."""
    code = (
        "import sys\nbare = set(sys.modules)\n"
        f"sys.path.insert(0, {str(ENTRY.parent.parent)!r})\n"
        f"from notyet.hook.main import serve\nserve({argv!r})\n"
        "loaded = sorted(set(sys.modules) - bare)\n"
        "import os; os.write(2, ('modules: ' + ' '.join(loaded)).encode())\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        input=in_bytes(content),
        capture_output=True,
        check=True,
        timeout=60,
        env=clean_environ() if environ is None else environ,
    )
    said, _, names = done.stderr.partition(b"modules: ")
    return done.stdout + said, set(names.decode().split())


def run_late_hook(content, there):
    """Run the hook; the time of gates and observers is up once this file is there."""
    change = f"""
import os, time
from notyet.engine import stop as deadline
from notyet.run import command_runner as command, process
def late():
    return time.monotonic() + (10_000 if os.path.exists({str(there)!r}) else 0)
for module in (deadline, command, process):
    module.monotonic = late
command._LONGEST = 0.05"""
    return run_changed_hook(content, change)


def start_hook(content, *argv, environ=None, **options):
    """Start the hook and give it its payload; `environ` has more variables."""
    started = subprocess.Popen(
        command_line(*argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environ(**environ or {}),
        **options,
    )
    started.stdin.write(in_bytes(content))
    started.stdin.close()
    started.stdin = None
    return started


def ledger_path():
    return os.path.join(os.environ["XDG_STATE_HOME"], "notyet", "ledger.db")


def query(sql):
    if not os.path.exists(ledger_path()):
        return []
    with closing(sqlite3.connect(ledger_path())) as db:
        return db.execute(sql).fetchall()


def stops():
    """Return the outcome and the cause of every recorded stop."""
    return query("SELECT outcome, why FROM stops ORDER BY id")


def assert_allows(host, code, stdout):
    """Check that a reply lets the agent go, in words that this host takes."""
    assert code == 0
    if isinstance(stdout, bytes):
        stdout = stdout.decode("ascii")
    said = json.loads(stdout) if stdout.strip() else {}
    json.dumps(said, ensure_ascii=False).encode()  # strict readers refuse halves of characters
    if host in {"claude", "codex"}:
        assert set(said) <= {"systemMessage"}
    elif host == "notyet":
        assert said["decision"] == "allow"
    else:
        assert not stdout
