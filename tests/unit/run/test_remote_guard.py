"""Whoever is killed there, and however silent we are: nothing stays. Under every shell."""

import os
import subprocess
from pathlib import Path

import pytest

from commands import running, until
from notyet.run import ssh_script as remote_script
from notyet.run.remote import new_token
from notyet.run.ssh_script import Part, Upload, conversation, upload_path
from scripts_there import PATIENCE, There, is_clean

pytestmark = pytest.mark.rule("M2")

UPLOADS = [Upload(name="one", content=b"x" * 5000), Upload(name="two", content=b"y" * 5000)]
# Kills all that its parent has started, but not itself.
ALONE = "for p in $(cat /proc/$PPID/task/$PPID/children); do [ $p = $$ ] || kill -9 $p; done;"


def receiving(shell, **fields):
    """Return a script that waits for the rest of what it is sent."""
    there = There(shell, "true", uploads=UPLOADS, sent=7000, **fields)
    assert until(lambda: Path(f"/tmp/notyet-{there.token}.all").exists())  # noqa: S108  # there
    return there


def test_a_script_that_is_killed_while_it_receives_leaves_no_folder(shell):
    there = receiving(shell)
    there.process.kill()
    there.hang_up()
    assert is_clean(there.token)


def test_a_connection_that_falls_silent_while_it_sends_leaves_nothing(shell, monkeypatch):
    monkeypatch.setattr(remote_script, "_SPARE", 0)
    there = receiving(shell, timeout=0.0)
    there.process.wait(PATIENCE)  # nobody has hung up
    assert until(lambda: not Path(upload_path(there.token, "")).exists())
    there.hang_up()
    assert is_clean(there.token)


def test_a_command_that_ends_who_watches_over_it_leaves_nothing(shell):
    text = f'{ALONE} (trap "" TERM HUP; setsid sleep 1000 >/dev/null 2>&1 </dev/null &); exit 3'
    there = There(shell, "/bin/sh", "-c", text, uploads=UPLOADS)
    assert there.end()[0] == "3"
    there.hang_up()
    assert is_clean(there.token)


def test_a_command_that_ends_all_around_it_is_ended_itself(shell):
    text = f"{ALONE} kill -9 $PPID; exec sleep 1000"
    there = There(shell, "/bin/sh", "-c", text)
    there.hang_up()
    assert is_clean(there.token)


def test_readers_that_were_stopped_go_too(shell):
    are_there = "[ $(wc -w </proc/$PPID/task/$PPID/children) -ge 3 ]"  # with itself
    text = f"until {are_there}; do sleep 0.05; done; {ALONE.replace('-9', '-STOP')} exit 3"
    there = There(shell, "/bin/sh", "-c", text)
    assert there.end()[0] == "3"
    there.hang_up()
    group = there.process.pid
    assert until(lambda: not _in_group(group))


def _in_group(group):
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdecimal() and os.getpgid(int(name)) == group and running(int(name)):
                found.append(name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("program", ["tail", "head"])
def test_a_file_that_is_not_whole_is_a_problem(shell, tmp_path, program):
    real = f'exec /usr/bin/{program} "$@"'
    # It works when it is tried, and fails when it counts.
    (tmp_path / program).write_text(f"#!/bin/sh\ncase $* in */dev/null) {real};; esac\nexit 9\n")
    (tmp_path / program).chmod(0o755)
    there = There(shell, "cat", stdin=b"z" * 50_000, uploads=UPLOADS, path=tmp_path)
    assert there.end() == ("room", b"", b"")
    there.hang_up()
    assert is_clean(there.token)


def test_a_script_that_arrives_in_part_is_not_run_in_part(shell):
    secret, token = new_token(), new_token()
    part = Part(argv=("true",), folder="/", environ={}, token=token, head=1, tail=1)
    _, script, _ = conversation(token, secret, [part], None)
    command = {"args": shell, "capture_output": True, "timeout": PATIENCE}
    half = script[: script.rindex(b"kill $ny_w")]
    assert secret.encode() not in subprocess.run(input=half, **command).stdout
    assert secret.encode() in subprocess.run(input=script, **command).stdout
    assert is_clean(token)
