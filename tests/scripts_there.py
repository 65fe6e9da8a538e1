"""The script that runs a command elsewhere, run here by any of the shells that it is made for."""

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

from commands import running, until
from notyet.run.output import Framed
from notyet.run.remote import ending, new_token
from notyet.run.ssh_script import conversation

SHELLS = {
    "dash": ["dash"],
    "bash": ["bash", "--posix"],
    "busybox": ["busybox", "ash"],
    "mksh": ["mksh"],
    "ksh": ["ksh"],
    "zsh": ["zsh", "--emulate", "sh"],
}


class There:
    """The script in a process of its own, as sshd would start it.

    `path` is where its programs are looked for first; of the files, only `sent` bytes arrive.
    """

    def __init__(self, shell, *argv, folder="/", token="", path="", sent=None, **fields):
        self.token, self.secret = token or new_token(), new_token()
        self.program = argv[0]
        fields = {"environ": {}, "stdin": b"", "uploads": (), **fields}
        line, script, files = conversation(
            self.token, self.secret, argv=argv, folder=str(folder), **fields
        )
        # What the line for a login shell runs, but not by /bin/sh.
        _, text, _ = line.split("'")
        places = f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"]
        self.process = subprocess.Popen(
            [*shell, "-c", text],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
            env={**os.environ, "PATH": places},
        )
        self.process.stdin.write(script + b"".join(files)[:sent])
        self.streams = [Framed(self.secret.encode()), Framed(self.secret.encode())]

    def end(self):
        """Read all that it says; returns the word on how it ended, and both outputs."""
        pipes = (self.process.stdout, self.process.stderr)
        for pipe, stream in zip(pipes, self.streams, strict=True):
            while not stream.is_complete:
                chunk = pipe.read(65536)
                if not chunk:
                    break
                stream.add(chunk)
        out, err = self.streams
        return (out.told or b"?").split()[0].decode(), out.text(), err.text()

    def ending(self):
        """Return what that is taken to mean."""
        remote = SimpleNamespace(host="box")
        job = SimpleNamespace(remote=remote, program=self.program, folder="/")
        return ending(job, self.streams[0].told)

    def hang_up(self):
        """Close everything, as sshd does when the connection is gone."""
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
        self.process.wait(20)


def is_clean(token):
    """Tell whether soon nobody carries the mark, and no folder is left."""
    return until(lambda: not left(token) and not os.path.exists(f"/tmp/notyet-{token}"))  # noqa: S108  # it is about that folder


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
