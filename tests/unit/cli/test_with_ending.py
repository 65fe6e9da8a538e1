"""How `notyet with` is ended: by its user, by others, by force. Nothing stays behind."""

import json
import signal
import termios

import pytest

from commands import running, until
from hook_runs import trust
from with_runs import (
    HANGS,
    LEARNS,
    STUBBORN,
    Terminal,
    agent_pid,
    command_line,
    listed,
    project,
    start_with,
    tasks,
)

WITH = command_line("with", "scripted:agent.toml", "Make it ready.")
ESCAPE, CTRL_C = b"\x1b", b"\x03"


@pytest.mark.rule("C4")
@pytest.mark.parametrize("key", [ESCAPE, CTRL_C])
def test_escape_or_ctrl_c_interrupts_the_agent_and_asks_no_gate(tmp_path, key):
    folder = project(tmp_path / "p", HANGS)
    with Terminal(folder, *WITH) as terminal:
        before = termios.tcgetattr(terminal.fd)
        agent = agent_pid(folder)
        terminal.press(key)
        terminal.expect("interrupting the agent; press again to kill it")
        assert terminal.wait() == 130
        assert "\x1b[" in terminal.seen  # in colour
        assert "gates     asking" not in terminal.seen
        assert (
            "to go on with this session: notyet with scripted:agent.toml --resume" in terminal.seen
        )
        assert termios.tcgetattr(terminal.fd) == before
    assert not running(agent)
    assert [(task["ending"], task["outcome"]) for task in listed(folder)] == [
        ("interrupted", "skipped")
    ]


def test_a_second_press_kills_an_agent_that_does_not_want_to_end(tmp_path):
    folder = project(tmp_path / "p", STUBBORN)
    with Terminal(folder, *WITH) as terminal:
        agent = agent_pid(folder)
        terminal.press(ESCAPE)
        terminal.expect("interrupting")
        terminal.press_again(ESCAPE)
        terminal.expect("killing the agent")
        assert terminal.wait() == 130
    assert not running(agent)


def test_the_terminal_is_restored_when_the_third_press_ends_us(tmp_path):
    folder = project(tmp_path / "p", STUBBORN)
    with Terminal(folder, *WITH) as terminal:
        before = termios.tcgetattr(terminal.fd)
        agent = agent_pid(folder)
        for words in ("interrupting", "killing"):
            terminal.press_again(CTRL_C)
            terminal.expect(words)
        terminal.press_again(CTRL_C)
        assert terminal.wait() == 130
        assert termios.tcgetattr(terminal.fd) == before
    assert until(lambda: not running(agent))


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_signals_interrupt_too(tmp_path, number, code):
    folder = project(tmp_path / "p", HANGS)
    with start_with(folder, "--json") as started:
        agent = agent_pid(folder)
        started.send(number)
        assert started.wait() == code
        assert json.loads(started.out)["exit_code"] == code
    assert not running(agent)
    assert [task["ending"] for task in listed(folder)] == ["interrupted"]


def test_an_interrupt_before_the_agent_begins_starts_none(tmp_path):
    gates = '[start]\ntell = true\n[gates]\ng = "true"\n'
    folder = project(tmp_path / "p", HANGS, gates)
    settings = folder / ".claude" / "settings.json"
    settings.parent.mkdir()
    hook = {"type": "command", "command": "touch begun; sleep 1000"}
    settings.write_text(json.dumps({"hooks": {"SessionStart": [{"hooks": [hook]}]}}))
    trust(settings, "claude")
    with start_with(folder) as started:
        assert until((folder / "begun").exists)
        started.send(signal.SIGINT)
        assert started.wait() == 130
    assert not (folder / "agent.pid").exists()
    assert listed(folder) == []


@pytest.mark.rule("C4")
def test_an_interrupt_wins_against_a_gate_that_is_being_asked(tmp_path):
    gates = '[gates]\nslow = "echo $$ > gate.pid; sleep 1000"\n'
    folder = project(tmp_path / "p", LEARNS, gates)
    with start_with(folder) as started:
        path = folder / "gate.pid"
        assert until(lambda: path.exists() and path.read_text().strip())
        gate = int(path.read_text())
        started.send(signal.SIGINT)
        assert started.wait() == 130
    assert not running(gate)


@pytest.mark.rule("K18")
def test_after_kill_9_the_agent_is_gone_and_tasks_finds_it_interrupted(tmp_path):
    folder = project(tmp_path / "p", HANGS)
    with start_with(folder) as started:
        agent = agent_pid(folder)
        started.send(signal.SIGKILL)
        started.wait()
    assert until(lambda: not running(agent))
    done = tasks(folder)
    assert "was left by a dead process, and is interrupted" in done.stderr
    assert "interrupted" in done.stdout
    again = tasks(folder)
    assert (again.stderr, again.returncode) == ("", 0)
    (task,) = listed(folder)
    assert (task["ending"], task["outcome"]) == ("interrupted", "skipped")


@pytest.mark.rule("E2")
def test_ctrl_c_while_we_clean_up_leaves_nothing_behind(tmp_path):
    (tmp_path / "stays.sh").write_text(
        "trap 'touch told' TERM; echo $$ > stray.pid; while :; do sleep 0.02; done"
    )
    escapes = "setsid sh ../stays.sh >/dev/null 2>&1 & while [ ! -s stray.pid ]; do :; done"
    steps = f'{{ tool = "bash", run = "{escapes}" }}, {{ say = "Done." }}'
    folder = project(tmp_path / "p", f"[[turn]]\nsteps = [{steps}]\n", '[gates]\ng = "true"\n')
    with start_with(folder) as started:
        assert until((folder / "told").exists)
        started.send(signal.SIGINT)
        assert started.wait() == 130
    assert not running(int((folder / "stray.pid").read_text()))


def test_ctrl_backslash_ends_us_and_restores_the_terminal(tmp_path):
    folder = project(tmp_path / "p", HANGS)
    with Terminal(folder, *WITH) as terminal:
        before = termios.tcgetattr(terminal.fd)
        agent = agent_pid(folder)
        assert until(lambda: termios.tcgetattr(terminal.fd) != before)
        terminal.press(b"\x1c")
        assert terminal.wait() == -signal.SIGQUIT
        assert termios.tcgetattr(terminal.fd) == before
    assert until(lambda: not running(agent))


@pytest.mark.rule("E2")
def test_what_left_the_agents_group_is_ended_too(tmp_path):
    escapes = "setsid sh -c 'echo $$ > stray.pid; exec sleep 1000' >/dev/null 2>&1 &"
    escapes += " until [ -s stray.pid ]; do sleep 0.01; done"
    script = f'[[turn]]\nsteps = [{{ tool = "bash", run = "{escapes}" }}, {{ say = "Done." }}]\n'
    folder = project(tmp_path / "p", script, '[gates]\ng = "true"\n')
    with start_with(folder) as started:
        assert started.wait() == 0
    assert not running(int((folder / "stray.pid").read_text()))
