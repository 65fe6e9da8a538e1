"""How what an agent started ends with it, and with us: by its group, politely at first."""

import asyncio
import json
import os

import pytest

from commands import running, until
from notyet.agents import open_session, reopen
from notyet.run.groups import send

pytestmark = pytest.mark.rule("E2")


def agent(tmp_path, script):
    """A program that is an agent with a child in its group."""
    path = tmp_path / "agent"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return open_session("claude", cwd=str(tmp_path), program=str(path))


def test_what_is_left_of_a_group_may_end_politely_before_it_is_killed(tmp_path, run):
    (tmp_path / "child.sh").write_text(
        "trap 'sleep 0.05; : > goodbye; exit' TERM\n: > ready\nwhile :; do sleep 0.01; done\n"
    )
    session = agent(
        tmp_path,
        "sh child.sh > /dev/null 2>&1 &\nwhile ! [ -e ready ]; do :; done\n"
        """echo '{"type": "result", "result": "done"}'""",
    )
    assert run(session.send("x", "k")).text == "done"
    assert (tmp_path / "goodbye").exists()


def test_what_is_left_of_a_group_and_does_not_listen_is_gone_when_the_turn_is(tmp_path, run):
    (tmp_path / "child.sh").write_text("trap '' TERM\necho $$ > pid\nwhile :; do sleep 0.1; done\n")
    session = agent(
        tmp_path,
        "sh child.sh > /dev/null 2>&1 &\nwhile ! [ -s pid ]; do :; done\n"
        """echo '{"type": "result", "result": "done"}'""",
    )
    run(session.send("x", "k"))
    assert until(lambda: not running(int((tmp_path / "pid").read_text())))


@pytest.mark.rule("K7")
def test_a_child_that_ignores_term_and_has_no_mark_ends_when_this_process_is_killed(tmp_path):
    (tmp_path / "child.sh").write_text("trap '' TERM\necho $$ > pid\nwhile :; do sleep 0.1; done\n")
    # Without an environment nothing but its group tells whose it is.
    script = 'env -i PATH="$PATH" sh child.sh > /dev/null 2>&1 &\nsleep 60'
    ref = json.loads(json.dumps(agent(tmp_path, script).ref()))
    driver = os.fork()
    if driver == 0:
        asyncio.run(reopen(ref).send("x", "k"))
        os._exit(0)
    assert until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    child = int((tmp_path / "pid").read_text())
    assert running(child)
    os.kill(driver, 9)
    os.waitpid(driver, 0)
    try:
        assert until(lambda: not running(child))
    finally:
        send(child, 9)
