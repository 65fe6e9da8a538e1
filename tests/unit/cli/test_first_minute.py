"""What a stranger's terminal shows, also one without colours, or with few columns."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from rich.cells import cell_len

from installs import command_line
from with_runs import Terminal

GATES = "[gates.tests]\nrun = 'echo all is well, and this line is much too long for it; false'\n"


@pytest.fixture
def shop(home):
    """A project with a short name, so that lines are not long because of its path."""
    (home / ".claude").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="n") as folder:
        subprocess.run(["git", "init", "-q", folder], check=True)
        Path(folder, "Makefile").write_text(".PHONY: test\ntest:\n\t@echo fine\n")
        yield folder


def written(folder, *argv, keys=(), **options):
    """Run a command at a terminal; return all that it wrote."""
    data = os.environ.get("XDG_DATA_HOME", "")
    with Terminal(
        folder, *command_line(*argv), PAGER="", XDG_DATA_HOME=data, **options
    ) as terminal:
        for key in keys:
            terminal.until(r"\n>\Z")
            terminal.press(key)
        terminal.wait()
        return terminal.seen


@pytest.mark.parametrize("plain", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {}])
def test_who_wants_no_colours_gets_none(shop, plain):
    seen = written(shop, "init", keys=[b"\n"], **plain)
    Path(shop, "notyet.toml").write_text(GATES)
    written(shop, "trust", "--yes", **plain)
    seen += written(shop, **plain) + written(shop, "status", **plain)
    assert ("\x1b[3" in seen or "\x1b[1m" in seen) is (not plain)
    if plain.get("TERM") == "dumb":
        assert "\x1b" not in seen + written(shop, "check", **plain)


def test_sixty_columns_are_enough(shop):
    seen = written(shop, "init", columns=60, keys=[b"1\n", b"1\n", b"\n"], NO_COLOR="1")
    Path(shop, "notyet.toml").write_text(GATES)
    written(shop, "trust", "--yes")
    for argv in [(), ("status",), ("log",), ("--help",), ("hosts",)]:
        seen += written(shop, *argv, columns=60, NO_COLOR="1", TERM="xterm")
    long = [line for line in seen.replace("\r", "").splitlines() if cell_len(line) > 60]
    assert not long, "\n".join(long)
