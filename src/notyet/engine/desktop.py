"""Desktop notifications, through the notifier that the platform brings along."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from time import monotonic

from notyet.core.text import bounded, clean
from notyet.hosts.conclaude.hooks import notifications

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.config.load import Setup
    from notyet.core.event import StopEvent
    from notyet.core.verdict import Decision

_PATIENCE = 2.0  # seconds for all notifications of one stop
_LEAST = 0.2  # seconds for one
_MOST_TITLE = 200  # characters
_MOST_BODY = 2_000
# The words come in as arguments. Nothing of them is ever part of a script.
_APPLESCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)


def notify_desktop(
    event: StopEvent, decision: Decision, setup: Setup, environ: Mapping[str, str], within: float
) -> list[str]:
    """Send conclaude's notifications of a decision; return what failed (003).

    Neither one that hangs nor many together take longer than `within` seconds.
    """
    ends = monotonic() + min(_PATIENCE, within)
    failed = []
    for settings in setup.notifications:
        for title, body in notifications(settings, event, decision, setup.gates):
            left = ends - monotonic()
            failed.append(notify(title, body, environ, left) if left > _LEAST else "no time")
    return [f"notification not sent: {why}" for why in failed if why]


def notify(title: str, body: str, environ: Mapping[str, str], patience: float = _PATIENCE) -> str:
    """Show a notification within `patience` seconds. Return why that failed, or nothing."""
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


def send(command: list[str], environ: Mapping[str, str], patience: float = _PATIENCE) -> str:
    """Run a notifier, and end it with its children when its time is up. Return why it failed."""
    name = command[0]
    # A relative folder would be looked up in whatever project the agent works in.
    folders = [f for f in environ.get("PATH", "").split(os.pathsep) if f.startswith("/")]
    program = shutil.which(name, path=os.pathsep.join(folders)) if folders else None
    if program is None:
        return f"{name} is not on the PATH; install it, or switch notifications off"
    nowhere = subprocess.DEVNULL
    try:
        process = subprocess.Popen(  # noqa: S603  # the platform's notifier
            [program, *command[1:]],
            env=dict(environ),
            stdin=nowhere,
            stdout=nowhere,
            stderr=nowhere,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return f"{name} cannot be run: {error}"
    try:
        code = process.wait(patience)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"{name} did not finish in {patience:.2g} s and was ended"
    return f"{name} failed with exit code {code}" if code else ""
