"""Whoever is killed, at whatever moment: nothing is left on the other side, and nobody hangs."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hook_runs import ENTRY, gate, new_project, payload
from process_table import kill, read
from remote_runs import (
    CLINGING,
    Background,
    Upload,
    asking,
    cancelling,
    new_token,
    nothing_is_left,
    run,
    there,
)
from sshd import is_gone

pytestmark = pytest.mark.rule("M2")

# Seconds after the first sight of something; `make soak` kills at any moment, again and again.
LATEST = 0.3


@pytest.mark.parametrize("who", ["master", "sshd", "remote"])
def test_killing_one_of_those_between_leaves_nothing(new_box, who):
    box = new_box()
    look = {
        "master": box.masters,
        "sshd": box.connections,
        "remote": box.victims,
    }[who]
    upload = Upload(name="transcript.jsonl", content=bytes(100_000))
    tokens = [new_token(), new_token()]
    # They have much time: what guards them must not stay for so long.
    fields = {"uploads": [upload], "timeout": 600.0}
    jobs = [there(box, CLINGING, token=token, **fields) for token in tokens]
    with cancelling() as (reader, cancel):
        runs = Background(*jobs, cancel=reader)
        _kill_one(look)
        if not runs.ends_within(0.5):  # the other one goes on, or it was only a child
            cancel()
        ended = runs.wait()
    assert all(one.code is None for one in ended), ended
    assert all(one.problem or one.signal or one.cancelled for one in ended)
    assert nothing_is_left(box, *tokens)
    assert run(there(box, "exit 3")).code == 3  # and the next one works


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killing_us_leaves_nothing(new_box, number):
    box = new_box()
    token = new_token()
    with _asking(box, token, CLINGING) as us:
        _wait_for(box.processes)
        os.kill(us.pid, number)
        us.communicate(timeout=30)
    assert nothing_is_left(box, token)


def test_killing_a_hook_leaves_nothing(new_box, tmp_path):
    box = new_box()
    text = f'workspace = "{box.url()}"\n{gate(CLINGING, timeout=300)}\n'
    place = new_project(tmp_path / "here", text)
    (place / "t.jsonl").write_text('{"said": "much"}\n' * 1000)
    stop = payload("claude", place, transcript_path=str(place / "t.jsonl"))
    command = [sys.executable, "-I", "-S", str(ENTRY), "hook"]
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "cwd": place}
    with subprocess.Popen(command, env=os.environ | box.environ, **options) as hook:
        hook.stdin.write(json.dumps(stop).encode())
        hook.stdin.close()
        _wait_for(box.processes)
        (folder,) = _folders(box) or [None]
        hook.kill()
        hook.wait(30)
    assert nothing_is_left(box)
    assert folder is None or is_gone(folder.exists)


def _folders(box):
    """Return the folders of gates there, which their environment names."""
    variable = b"NOTYET_TRANSCRIPT_PATH="
    words = [word for pid in box.processes() for word in read(pid, "environ").split(b"\0")]
    paths = {word.removeprefix(variable) for word in words if word.startswith(variable)}
    return {Path(path.decode()).parent for path in paths}


def test_killing_our_whole_group_leaves_nothing(new_box):
    box = new_box()
    token = new_token()
    with _asking(box, token, CLINGING, start_new_session=True) as us:
        _wait_for(box.processes)
        os.killpg(us.pid, signal.SIGKILL)
        us.communicate(timeout=30)
    assert nothing_is_left(box, token)


def test_a_connection_that_dies_without_a_word_ends_the_gate_there(new_box):
    """Nobody tells the other side: its packets just stop, as when a laptop is closed."""
    box = new_box(options=["ClientAliveInterval 1", "ClientAliveCountMax 1"])
    token = new_token()
    runs = Background(there(box, CLINGING, token=token, timeout=2.0))
    assert is_gone(lambda: not box.processes())
    (master,) = box.masters()
    os.kill(master, signal.SIGSTOP)
    try:
        (ended,) = runs.wait()
        assert ended.code is None
        assert is_gone(box.processes, 40)
    finally:
        os.kill(master, signal.SIGKILL)
    assert nothing_is_left(box, token)


def _wait_for(look):
    assert is_gone(lambda: not look()), "there is none"
    time.sleep(random.uniform(0.0, LATEST))


def _kill_one(look):
    _wait_for(look)
    found = list(look())
    if found:
        kill(random.choice(found))


def _asking(box, token, script, **options):
    command = asking(box, token, script)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environ = os.environ | box.environ
    return subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, **pipes, **options)
