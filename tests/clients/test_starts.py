"""What the user of a real program reads when a session begins: what keeps it from being checked.

Claude Code without a terminal shows nothing of a start; its stream has what our hook answered.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import termios
import time

import pytest

from clients.conftest import newest_claude
from clients.model.script import Say
from clients.model.server import ModelServer

pytestmark = pytest.mark.rule("N3", "N5")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # of a terminal
PASSING = '[gates.good]\nrun = "true"\n'


def untrusted(client):
    """Write gates that are not trusted."""
    client.install()
    client.gates(PASSING)
    return f"notyet: {client.project}/notyet.toml is not trusted; run: notyet trust"


def changed(client):
    """Change gates that were trusted."""
    client.gates(PASSING)
    client.install()
    client.gates(PASSING + '[gates.more]\nrun = "true"\n')
    return "since it was trusted"


def unregistered(client):
    """Take the stop out of the settings of the program."""
    client.gates(PASSING)
    client.install()
    path = client.settings if client.HOST == "claude" else client.hooks
    settings = json.loads(path.read_text())
    del settings["hooks"]["Stop"]
    path.write_text(json.dumps(settings))
    client.ungated = {"main"}
    run = f"run: notyet install {client.HOST}"
    return f"notyet: Stop is not registered in {path}: agents are not checked; {run}"


CASES = (untrusted, changed, unregistered)


@pytest.mark.parametrize("case", CASES)
@newest_claude
def test_claude_code_is_given_at_the_start_what_is_not_checked(claude, case):
    told = case(claude)
    ran = claude.run([Say("Done.")])
    assert (ran.code, ran.text) == (0, "Done.")
    (reply,) = claude.replies(ran, "SessionStart")
    assert told in reply["systemMessage"]
    assert not any(told in words for words in ran.told())  # it is not for the agent to fix


@newest_claude
def test_claude_code_shows_in_its_terminal_what_is_not_checked(claude):
    told = untrusted(claude)
    known = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    settings = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["dummy"], "rejected": []},
        "projects": {str(claude.project): known},
    }
    (claude.home / ".claude.json").write_text(json.dumps(settings))
    shown = ""
    with ModelServer(claude.WIRE, []) as model:
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(claude.project)
            environ = claude.environ | claude.variables(model.url) | {"TERM": "xterm"}
            os.execve(claude.program, [str(claude.program)], environ)  # noqa: S606
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 500, 0, 0))
        try:
            ends = time.monotonic() + 60
            while told not in shown and time.monotonic() < ends:
                if select.select([terminal], [], [], 1)[0]:
                    shown += os.read(terminal, 65_536).decode("utf-8", "replace")
                    # A terminal moves its cursor where a text has a space.
                    shown = " ".join(_CONTROL.sub(" ", shown).split())
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(terminal)
    assert f"SessionStart:startup says: {told}" in shown


@pytest.mark.parametrize("case", CASES)
def test_codex_shows_at_the_start_what_is_not_checked(codex, case):
    told = case(codex)
    with codex.serving([Say("Done.")]) as (server, thread, _):
        server.ended(server.begin(thread, "do it"))
        ((_, status, entries),) = server.hook_runs("sessionStart")
    assert status == "completed"
    ((kind, note),) = entries
    assert kind == "warning"
    assert told in note
