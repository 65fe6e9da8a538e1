"""What the tests of `notyet with` and `notyet tasks` share: projects, scripts, processes, a pty."""

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

from commands import until
from hook_runs import ENTRY, clean_environ, new_project
from screens import decoder, resize, shown

GATED = '[gates]\nready = "test -e ready"\n'
ANSWERS = '[[turn]]\nsay = "Done!"\n'
# The agent says done too early, and does the work when it is sent back.
LEARNS = """\
[[turn]]
usage = { input = 100, output = 10 }
say = "Done!"

[[turn]]
usage = { input = 200, output = 20 }
steps = [
  { tool = "bash", input = { script = "touch ready" }, run = "touch ready" },
  { say = "Now it is." },
]
"""
HANGS = '[[turn]]\nsteps = [{ tool = "bash", run = "echo $$ > agent.pid; exec sleep 1000" }]\n'
STUBBORN = HANGS.replace("exec sleep 1000", "trap '' INT TERM; while :; do sleep 1; done")


def project(folder, script=ANSWERS, gates=GATED, *, trusted=True):
    """Make a project with gates and a script."""
    new_project(folder, gates, trusted=trusted)
    (folder / "agent.toml").write_text(script)
    return folder


def command_line(*argv):
    return [sys.executable, str(ENTRY), *argv]


def run(*argv, cwd, stdin="", environ=None, **options):
    """Run a command to its end; return the finished process."""
    return subprocess.run(
        command_line(*argv),
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        env=clean_environ() | (environ or {}),
        **options,
    )


def run_with(folder, *argv, agent="scripted:agent.toml", prompt="Make it ready.", **options):
    """Run `notyet with` in a project."""
    return run("with", agent, prompt, *argv, cwd=folder, **options)


def tasks(folder, *argv, **options):
    return run("tasks", *argv, cwd=folder, **options)


def listed(folder):
    """Return the tasks as JSON."""
    done = tasks(folder, "--json", "--all")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def agent_pid(folder):
    """Wait until the agent is at work; return its process id."""
    path = Path(folder) / "agent.pid"
    assert until(lambda: path.exists() and path.read_text().strip())
    return int(path.read_text())


class Started:
    """A command that runs, with its output in files."""

    def __init__(self, folder, *argv, environ=None):
        self._out = open(folder / f"out-{os.urandom(4).hex()}", "w+")  # noqa: SIM115  # closed below
        self._err = open(folder / f"err-{os.urandom(4).hex()}", "w+")  # noqa: SIM115  # as above
        self.process = subprocess.Popen(
            command_line(*argv),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
            env=clean_environ() | (environ or {}),
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._out.close()
        self._err.close()

    def send(self, number):
        self.process.send_signal(number)

    def wait(self):
        return self.process.wait(timeout=60)

    @property
    def out(self):
        return Path(self._out.name).read_text()

    @property
    def err(self):
        return Path(self._err.name).read_text()


def start_with(folder, *argv, agent="scripted:agent.toml", prompt="Make it ready.", **options):
    return Started(folder, "with", agent, prompt, *argv, **options)


# A new session whose terminal is stdin, as a terminal window makes one.
_AT_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """A program at a terminal, with somebody who reads and types."""

    def __init__(self, folder, *argv, columns=80, **environ):
        self.columns = columns
        self.fd, theirs = pty.openpty()
        resize(theirs, columns)
        self.process = subprocess.Popen(
            [sys.executable, "-c", _AT_TERMINAL, *argv],
            cwd=folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=clean_environ(**{"TERM": "xterm", **environ}),
            start_new_session=True,
        )
        os.close(theirs)
        self.seen = ""
        self._decoder = decoder()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.fd)

    def read(self, seconds=0.05):
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if ready:
            try:
                self.seen += self._decoder.decode(os.read(self.fd, 65536))
            except OSError:  # the other side is closed
                time.sleep(seconds)

    def expect(self, words, seconds=30.0):
        def there():
            self.read()
            return words in self.seen

        assert until(there, seconds), self.seen

    @property
    def screen(self):
        """The lines on the screen, joined."""
        return "\n".join(shown(self.seen, self.columns)).rstrip()

    def until(self, pattern):
        """Wait until the screen shows it; return the screen."""

        def there():
            self.read()
            return re.search(pattern, self.screen)

        assert until(there, 30.0), self.screen
        return self.screen

    def press(self, keys):
        os.write(self.fd, keys)

    def press_again(self, keys):
        """Press after a while: what comes at once counts as one press."""
        time.sleep(0.4)
        self.press(keys)

    def wait(self):
        def gone():
            self.read()
            return self.process.poll() is not None

        assert until(gone, 60.0), self.seen
        self.read()
        return self.process.returncode
