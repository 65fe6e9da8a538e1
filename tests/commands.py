"""What the tests of the runner share."""

import os
import sys
import time

from notyet.run import command_runner as command
from notyet.run import process, ssh_runner
from notyet.run.command_runner import run_together
from notyet.run.spawn import Job, shell_argv

ENVIRON = {"PATH": os.environ["PATH"], "LANG": "C"}


def job(argv, folder, environ, fields):
    """Make a job."""
    return Job(argv=argv, dir=str(folder), environ=ENVIRON | environ, **fields)


def script(text, folder=".", **fields):
    """Make a job that runs a script in a shell."""
    return job(shell_argv(text, "/bin/sh"), folder, fields.pop("environ", {}), fields)


def program(*argv, folder=".", **fields):
    """Make a job that runs a program without a shell."""
    return job(argv, folder, fields.pop("environ", {}), fields)


def python(code, *args, **fields):
    """Make a job that runs this interpreter."""
    return program(sys.executable, "-I", "-S", "-c", code, *args, **fields)


def run(job, **options):
    """Run one job."""
    (ended,) = run_together([job], **options)
    return ended


def running(pid):
    """Tell whether a process exists and is not only waiting to be collected."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def until(condition, seconds=20.0):
    """Wait for something that happens soon; False when it does not."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if condition():
            return True
        time.sleep(0.01)
    return False


class Clock:
    """The clock of the runner, which a test holds: a busy machine is not out of time."""

    def __init__(self, monkeypatch):
        self._until = None  # what must come true before time goes on
        self._at = 0.0  # where it stands as long as it is held
        self._ahead = 0.0  # of the real one
        for module in (command, process, ssh_runner):
            monkeypatch.setattr(module, "monotonic", self)

    def __call__(self):
        if self._until is not None:
            if not self._until():
                return self._at
            self._until, self._ahead = None, self._at - time.monotonic()
        return time.monotonic() + self._ahead

    def hold_until(self, condition):
        """Let no time pass before this is true."""
        self._at, self._until = self(), condition

    def skip(self, seconds):
        """Let so much time pass at once."""
        self._at += seconds
        self._ahead += seconds


def pids_in(folder):
    """Return the process ids that commands wrote into files named *.pid."""
    texts = [path.read_text().strip() for path in folder.glob("*.pid")]
    return [int(text) for text in texts if text]
