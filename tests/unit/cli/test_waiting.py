"""What is said while somebody waits."""

import fcntl
import os
import struct
import termios

import installs
from notyet.cli.terminal import waiting


def test_on_a_terminal_status_says_what_it_waits_for_and_takes_it_back(tmp_path, home):
    (home / ".claude").mkdir()
    _, shown = installs.converse(tmp_path, ["status"], [])
    assert shown.startswith("looking at Claude Code ...\rlooking at Codex ...\rno: ")


def test_elsewhere_it_says_nothing_of_it(tmp_path, home):
    with installs.start(tmp_path, "status") as process:
        _, said = process.communicate(timeout=60)
    assert said in {"", b""}


def test_on_a_narrow_terminal_it_takes_one_row(monkeypatch):
    keys, screen = os.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 12, 0, 0))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    with os.fdopen(screen, "w") as stream:
        monkeypatch.setattr("sys.stderr", stream)
        with waiting("looking at 測試 ..."):
            assert os.read(keys, 999) == b"looking at "
        assert os.read(keys, 999) == b"\r\x1b[K"
    os.close(keys)
