"""The script that runs a command elsewhere, run here by any of the shells that it is made for."""

import os
import subprocess
import time
from contextlib import suppress
from glob import glob
from pathlib import Path
from select import select

from commands import running, until
from notyet.core.remote import Remote
from notyet.run.ssh_job import RemoteJob, new_token
from notyet.run.ssh_runner import Records, RemoteProcess
from notyet.run.ssh_script import conversation

PATIENCE = 30.0  # seconds for a script to end
SHELLS = {
    "dash": ["dash"],
    "bash": ["bash", "--posix"],
    "busybox": ["busybox", "ash"],
    "mksh": ["mksh"],
}


class There:
    """The script in a process of its own, as sshd would start it.

    `path` is where its programs are looked for first; of the files, only `sent` bytes arrive.
    """

    def __init__(self, shell, *argv, folder="/", token="", path="", sent=None, **fields):
        self.token, self.secret = token or new_token(), new_token()
        seconds = fields.pop("timeout", None)
        self.job = RemoteJob(
            argv=argv,
            dir=str(folder),
            token=self.token,
            remote=Remote(host="box", path="/"),
            **{"environ": {}, **fields},
        )
        line, script, files = conversation(self.secret, [self.job], seconds)
        # What the line for a login shell runs, but not by /bin/sh.
        words = ["-c", line.split("'")[1]] if files else []
        places = f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"]
        self.process = subprocess.Popen(
            [*shell, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
            env={**os.environ, "PATH": places},
        )
        self.process.stdin.write(script + b"".join(files)[:sent])
        self.records = Records(self.secret)

    def end(self):
        """Read until it has ended; returns the word on how it did, and both outputs."""
        pipe, ends = self.process.stdout, time.monotonic() + PATIENCE
        while select([pipe], [], [], max(0.0, ends - time.monotonic()))[0]:
            if not (chunk := pipe.read(65536)):
                break
            self.records.add(chunk)
            for _number, *record in self.records.take():
                self.record = record
                return tuple(record)
        return "?", b"", b""

    def stop(self):
        """Have the command ended, as when its time is up."""
        with suppress(BrokenPipeError):  # the script may have ended
            self.process.stdin.write(b"1\n")

    def ending(self):
        """Return what that is taken to mean: exit code, signal, problem."""
        process = RemoteProcess(self.job)
        process.take_record(*self.record)
        return process.code, process.signal, process.problem

    def hang_up(self):
        """Close everything, as sshd does when the connection is gone."""
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
        self.process.wait(PATIENCE)


def is_clean(token):
    """Tell whether soon nobody carries the mark, and no folder is left."""
    return until(lambda: not left(token) and not glob(f"/tmp/notyet-{token}*"))  # noqa: S108  # there


def left(token, files=("environ", "cmdline")):
    """Return the processes that have a word in their environment or command line."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal() and running(int(name)):
            try:
                texts = [Path("/proc", name, file).read_bytes() for file in files]
            except OSError:
                continue
            if any(token.encode() in text for text in texts):
                found.append(name)
    return found
