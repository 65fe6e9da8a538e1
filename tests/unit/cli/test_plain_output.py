"""What goes to a pipe is plain, and so is a terminal whose owner wants no colours."""

import os
import re
import select
import subprocess
import time

import pytest

from notyet.cli.main import COMMANDS
from stories import World

PREPARED = """\
printf '[gates.ready]\\nrun = "test -e ready"\\nwhen = "always"\\n' > notyet.toml
printf '[[turn]]\\nsay = "Done!"\\n' > agent.toml
echo '{"hook_event_name":"Stop","session_id":"s","cwd":"'$PROJECT'"}' > stop.json
notyet trust --yes && notyet install claude --yes
notyet hook --host claude < stop.json
"""
# Each in a way that has something to show, and would have colours for it.
RUNS = {
    "init": "rm notyet.toml; notyet init --dry-run",
    "install": "notyet install codex --dry-run",
    "uninstall": "notyet uninstall claude --dry-run",
    "check": "notyet check",
    "status": "notyet status; notyet status --why",
    "trust": "echo >> notyet.toml; notyet trust --show",
    "off": "notyet off 5m",
    "on": "notyet on",
    "replay": "notyet replay",
    "with": "notyet with scripted:agent.toml Go. --max-blocks 0",
    "tasks": "notyet tasks",
    "log": "notyet log; notyet log 1; notyet log --stats",
    "hook": "notyet hook --host claude < stop.json",
    "conclaude": "notyet conclaude Stop < stop.json",
    "validate": "echo 'lint = 5' >> notyet.toml; notyet validate",
    "schema": "notyet schema",
    "completion": "notyet completion bash",
    "demo": "notyet demo",
}
MOVED = re.compile(r"\x1b\[(\?25[lh]|\d*[AKG])")  # the cursor, by progress that is wiped
PAINTED = ("check", "status", "log", "trust", "install")  # a terminal shows colours for these


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


def test_every_command_has_its_run():
    assert sorted(RUNS) == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_neither_a_pipe_nor_somebody_who_minds_gets_colours(world, name):
    said = world.run(f"export TERM=xterm; {RUNS[name]}")
    assert said
    assert "\x1b" not in said
    assert "\r" not in said
    assert "notyet/cli" not in said  # as a traceback of ours would have it
    assert "\x1b" not in MOVED.sub("", in_a_terminal(world, RUNS[name], NO_COLOR="1"))
    assert "\x1b" not in in_a_terminal(world, RUNS[name], TERM="dumb")


@pytest.mark.parametrize("name", PAINTED)
def test_other_terminals_show_colours(world, name):
    assert "\x1b[" in in_a_terminal(world, RUNS[name])


@pytest.mark.parametrize("words", ["", "--help", "nonsense", "status --help"])
def test_the_pages_of_help_are_plain_in_a_pipe(world, words):
    assert "\x1b" not in world.run(f"notyet {words}")
