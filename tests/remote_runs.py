"""What the tests of gates on another machine share."""

import os
import sys
import threading
from contextlib import contextmanager

from commands import run
from notyet.core.remote import remote_from
from notyet.run.command_runner import run_together
from notyet.run.ssh_job import new_token, remote_job
from notyet.run.ssh_script import Upload, upload_path
from sshd import is_gone

__all__ = [
    "Upload",
    "new_token",
    "nothing_is_left",
    "run",
    "run_together",
    "shells",
    "there",
    "upload_path",
]

# Does what it can to stay: deaf, with children in its group, in its session and out of both.
CLINGING = """
trap '' TERM HUP INT PIPE
sleep 1000 &
(setsid sleep 1001 &)
(trap '' TERM HUP; setsid sh -c 'sleep 1002; sleep 1003' </dev/null >/dev/null 2>&1 &)
echo up
while :; do sleep 1004; done
"""

shells = {
    "fish": ("fish", ".config/fish/config.fish"),
    "tcsh": ("tcsh", ".tcshrc"),
    "csh": ("csh", ".cshrc"),
    "zsh": ("zsh", ".zshenv"),
    "bash": ("bash", ".bashrc"),
    "dash": ("dash", ""),
    "busybox": ("busybox ash", ""),
    "ksh": ("ksh", ""),
    "mksh": ("mksh", ""),
}


def there(box, *argv, folder=None, **fields):
    """Make a job that runs there: a script when it is one text, else a program."""
    remote = remote_from(box.url(folder or box.folder))
    words = ("/bin/sh", "-c", *argv) if len(argv) == 1 else argv
    fields = {"environ": {}, "timeout": 60.0, **fields}
    return remote_job(remote, argv=words, dir=fields.pop("dir", remote.path), **fields)


def nothing_is_left(box, *tokens):
    """Tell whether soon nothing runs there any more, nor for it here, and no folder is left."""

    def look():
        found = [str(path) for token in tokens for path in box.tmp().glob(f"notyet-{token}*")]
        return found or box.processes() or box.sessions()

    if not is_gone(look):
        raise AssertionError(f"left: {look()}")
    return True


class Background:
    """Jobs that run in a thread, so that a test can do something to them."""

    def __init__(self, *jobs, **options):
        self._jobs, self._options = jobs, options
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.ended = None
        self._thread.start()

    def _run(self):
        self.ended = run_together(self._jobs, **self._options)

    def ends_within(self, seconds):
        """Wait for a while, and tell whether they ended."""
        self._thread.join(seconds)
        return self.ended is not None

    def wait(self, seconds=50.0):
        """Return how they ended; that they end is the point."""
        assert self.ends_within(seconds), "it hangs"
        return self.ended


@contextmanager
def cancelling():
    """Give a descriptor to cancel with, and what makes it so."""
    reader, writer = os.pipe()
    try:
        yield reader, lambda: os.write(writer, b"x")
    finally:
        os.close(writer)
        os.close(reader)


# A process of ours that asks for one gate there; its arguments: paths of ours, url, token, script.
ASKING = """
import sys
url, token, script, *paths = sys.argv[1:]
sys.path[:0] = paths
from notyet.run.command_runner import run_together
from notyet.run.groups import adopt_orphans, sweep
from notyet.run.ssh_script import Upload; from notyet.run.ssh_job import remote_job
from notyet.core.remote import remote_from
adopt_orphans()
place = remote_from(url)
job = remote_job(
    place, argv=("/bin/sh", "-c", script), dir=place.path, environ={}, timeout=60.0, token=token,
    uploads=[Upload(name="transcript.jsonl", content=bytes(100_000))],
)
(ended,) = run_together([job])
sweep()
print(ended.code, ended.problem)
"""


def asking(box, token, script):
    """Return the command line of a process that does what `notyet hook` does for such a gate."""
    paths = [path for path in sys.path if path]
    return [sys.executable, "-c", ASKING, box.url(), token, script, *paths]
