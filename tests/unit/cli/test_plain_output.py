"""Colours on a terminal, and none where its owner wants none; stories show that pipes are plain."""

import os
import re
import select
import subprocess
import time

import pytest

from stories import World

PREPARED = """\
printf '[gates.ready]\\nrun = "test -e ready"\\nwhen = "always"\\n' > notyet.toml
printf '[[turn]]\\nsay = "Done!"\\n' > agent.toml
echo '{"hook_event_name":"Stop","session_id":"s","cwd":"'$PROJECT'"}' > stop.json
notyet trust --yes && notyet install claude --yes
notyet hook --host claude < stop.json
"""
RUNS = (
    "notyet install codex --dry-run",
    "notyet check",
    "notyet status; notyet status --why",
    "echo >> notyet.toml; notyet trust --show",
    "notyet log; notyet log 1; notyet log --stats",
)
MOVED = re.compile(r"\x1b\[(\?25[lh]|\d*[AKG])")  # the cursor, by progress that is wiped


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    made.environ["TMPDIR"] = str(tmp_path)
    made.run(PREPARED)
    return made


def in_a_terminal(world, script, **environ):
    """Run a script where all it writes goes to a terminal; return that."""
    keys, screen = os.openpty()
    started = subprocess.Popen(
        [str(world.bin / "bash"), "--noprofile", "--norc", "-c", script],
        cwd=world.project,
        env=world.environ | {"TERM": "xterm"} | environ,
        stdin=subprocess.DEVNULL,
        stdout=screen,
        stderr=screen,
        start_new_session=True,
    )
    os.close(screen)
    said, ends = b"", time.monotonic() + 60
    while time.monotonic() < ends and select.select([keys], [], [], 60)[0]:
        try:
            said += os.read(keys, 65_536)
        except OSError:  # its other end is closed
            break
    started.wait(timeout=60)
    os.close(keys)
    return said.decode(errors="replace")


def test_a_terminal_shows_colours_unless_its_owner_wants_none(world):
    for script in RUNS:
        assert "\x1b[" in MOVED.sub("", in_a_terminal(world, script)), script
        assert "\x1b" not in MOVED.sub("", in_a_terminal(world, script, NO_COLOR="1")), script
        assert "\x1b" not in in_a_terminal(world, script, TERM="dumb"), script
