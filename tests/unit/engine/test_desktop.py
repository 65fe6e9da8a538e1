"""Notifications go through the platform's own notifier, and nothing they say can do harm."""

import os
import subprocess
import sys

import pytest

from commands import running, until
from notyet.engine.desktop import command_for, notify, send

HOSTILE = '"; do shell script "x" & \'$(touch pwned)\' `id` <b>&\n\x1b[31m\0\ud800'


@pytest.fixture
def notifier(tmp_path):
    """A notifier that writes down its arguments, one file each time."""

    def make(body='printf "%s\\0" "$@" > "$HEARD"', name="notify-send"):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
        path = os.pathsep.join(("relative", "", str(tmp_path / "none"), str(folder), "/bin"))
        return {"PATH": path, "HEARD": str(tmp_path / "heard")}

    return make


def heard(environ):
    with open(environ["HEARD"], encoding="utf-8") as file:
        return file.read().split("\0")[:-1]


linux = pytest.mark.skipif(sys.platform == "darwin", reason="another notifier")


@linux
def test_the_words_reach_the_notifier_as_arguments(notifier):
    environ = notifier()
    assert notify("-title", "body", environ) == ""
    assert heard(environ) == ["--app-name=notyet", "--", "-title", "body"]


@linux
def test_hostile_words_are_only_words(notifier, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    environ = notifier()
    assert notify(HOSTILE, HOSTILE, environ) == ""
    *_, title, body = heard(environ)
    assert title == '"; do shell script "x" & \'$(touch pwned)\' `id` <b>&'
    assert body == '"; do shell script "x" &amp; \'$(touch pwned)\' `id` &lt;b&gt;&amp;'
    assert not (tmp_path / "pwned").exists()


@linux
def test_endless_and_empty_words_are_fine(notifier):
    environ = notifier()
    assert notify("t" * 1_000_000, "b" * 1_000_000, environ) == ""
    *_, title, body = heard(environ)
    assert (len(title), len(body)) == (200, 2000)
    assert notify(" ", "", environ) == ""
    assert heard(environ)[-2:] == ["notyet", ""]


def test_on_a_mac_the_words_are_arguments_of_a_fixed_script(notifier):
    environ = notifier(name="osascript")
    command = command_for("darwin", HOSTILE, HOSTILE)
    assert send(command, environ) == ""
    *script, title, body = heard(environ)
    assert script == [
        "-e",
        "on run argv",
        "-e",
        "display notification (item 2 of argv) with title (item 1 of argv)",
        "-e",
        "end run",
    ]
    assert title == body == '"; do shell script "x" & \'$(touch pwned)\' `id` <b>&'
    assert command_for("darwin", "-e beep", "x")[-2:] == [" -e beep", "x"]


@linux
def test_a_missing_notifier_is_said_and_not_raised(tmp_path):
    for environ in ({}, {"PATH": ""}, {"PATH": str(tmp_path)}):
        assert "notify-send is not on the PATH" in notify("t", "b", environ)


@linux
def test_a_notifier_in_the_current_folder_is_not_run(notifier, tmp_path, monkeypatch):
    environ = notifier()
    monkeypatch.chdir(tmp_path / "bin")
    assert "not on the PATH" in notify("t", "b", environ | {"PATH": ".:"})


@linux
def test_a_notifier_that_fails_says_so(notifier, tmp_path):
    assert notify("t", "b", notifier("exit 3")) == "notify-send failed with exit code 3"
    assert notify("t", "b", notifier("kill -9 $$")) == "notify-send failed with exit code -9"
    environ = notifier()
    (tmp_path / "bin" / "notify-send").write_bytes(b"#!/no/such/interpreter\n")
    assert "notify-send cannot be run" in notify("t", "b", environ)
    assert "notify-send cannot be run" in notify("t", "b", environ | {"BAD": "a\0b"})


@linux
def test_a_notifier_that_hangs_is_ended_with_its_children(notifier, tmp_path):
    environ = notifier('sleep 60 & echo $! > "$HEARD.part"; mv "$HEARD.part" "$HEARD"; wait')
    assert notify("t", "b", environ, 2) == "notify-send did not finish in 2 s and was ended"
    child = int((tmp_path / "heard").read_text())
    assert until(lambda: not running(child))


@linux
def test_a_notifier_has_no_hold_on_our_streams_or_our_terminal(notifier):
    environ = notifier('echo noise; echo noise >&2; cat; cut -d" " -f1,6 /proc/$$/stat > "$HEARD"')
    environ["PATH"] += ":/usr/bin"
    assert notify("t", "b", environ) == ""
    with open(environ["HEARD"], encoding="ascii") as file:
        pid, session = file.read().split()
    assert pid == session


@linux
def test_a_host_that_lets_the_system_collect_children_is_fine(notifier):
    environ = notifier()
    script = (
        "import os, signal; from notyet.engine.desktop import notify;"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN);"
        "print(repr(notify('t', 'b', dict(os.environ))))"
    )
    done = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True)
    assert done.stdout == b"''\n", done.stderr
    assert heard(environ)[-2:] == ["t", "b"]
