"""Desktop notifications, through the notifier that the platform brings along."""

from __future__ import annotations

import os
import sys
import time

from notyet.core.text import bounded, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PATIENCE = 5.0  # seconds
_MOST_TITLE = 200  # characters
_MOST_BODY = 2_000
_KILL = 9
_NOWHERE = [
    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
]
# The words come in as arguments. Nothing of them is ever part of a script.
_APPLESCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)


def notify(title: str, body: str, environ: Mapping[str, str], patience: float = PATIENCE) -> str:
    """Show a notification. Return why that failed, or nothing; never raise.

    The notifier is ended when it does not finish within `patience` seconds.
    """
    return send(command_for(sys.platform, title, body), environ, patience)


def command_for(platform: str, title: str, body: str) -> list[str]:
    """Return the notifier's command line on a platform, with the words as arguments."""
    title = bounded(clean(title).strip(), _MOST_TITLE) or "notyet"
    body = bounded(clean(body).strip(), _MOST_BODY)
    if platform == "darwin":
        script = [part for line in _APPLESCRIPT for part in ("-e", line)]
        first = f" {title}" if title.startswith("-") else title  # or it reads as an option
        return ["osascript", *script, first, body]
    # Desktops read the body as markup.
    body = body.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return ["notify-send", "--app-name=notyet", "--", title, body]


def send(command: list[str], environ: Mapping[str, str], patience: float = PATIENCE) -> str:
    """Run a notifier for a few seconds at most. Return why it failed, or nothing."""
    name = command[0]
    program = _find(name, environ.get("PATH", ""))
    if not program:
        return f"{name} is not on the PATH; install it, or switch notifications off"
    try:
        pid = _spawn(program, command, dict(environ))
        status = _wait(pid, patience)
    except (OSError, ValueError) as error:
        return f"{name} cannot be run: {error}"
    if status is None:
        return f"{name} did not finish in {patience:.2g} s and was ended"
    code = os.waitstatus_to_exitcode(status)
    return f"{name} failed with exit code {code}" if code else ""


def _find(name: str, path: str) -> str:
    for folder in path.split(os.pathsep):
        program = os.path.join(folder, name)
        # A relative folder would be looked up in whatever project the agent works in.
        if folder.startswith("/") and os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    return ""


def _spawn(program: str, command: list[str], environ: dict[str, str]) -> int:
    try:
        return os.posix_spawn(program, command, environ, file_actions=_NOWHERE, setsid=True)
    except NotImplementedError:  # an older system: a group of its own will do
        return os.posix_spawn(program, command, environ, file_actions=_NOWHERE, setpgroup=0)


def _wait(pid: int, patience: float) -> int | None:
    """Return how a process ended; None when its time was up and it had to be ended."""
    deadline = time.monotonic() + patience
    pause = 0.001
    while True:
        try:
            done, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:  # our own host lets the system collect children
            return 0
        if done:
            return status
        if time.monotonic() >= deadline:
            os.killpg(pid, _KILL)
            os.waitpid(pid, 0)
            return None
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
