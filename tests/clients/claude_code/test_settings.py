"""Where the hook is registered, and what takes it out of force."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import rich

import notyet
from clients.conftest import newest_claude
from clients.model.script import Run, Say
from clients.world import NOTYET

READY = '[gates.ready]\nrun = "test -e ready"\nwhen = "always"\n'
# Our package, and the libraries of its commands.
PYTHONPATH = os.pathsep.join(str(Path(module.__file__).parents[1]) for module in (notyet, rich))
STEPS = (Say("Done!"), Run("touch ready"), Say("Now it is."))


def with_notyet(claude):
    """Return a PATH on which notyet is found, as on the machine of somebody who has it."""
    return f"{NOTYET.parent}{os.pathsep}{claude.environ['PATH']}"


@pytest.mark.parametrize("scope", ["--project", "--local"])
def test_the_hook_gates_from_the_files_of_a_project_as_from_the_users(claude, scope):
    claude.gates(READY)
    claude.install(scope)
    ran = claude.run(list(STEPS), PATH=with_notyet(claude))
    assert ran.text == "Now it is."
    assert claude.outcomes() == ["blocked", "passed"]


@newest_claude
def test_the_line_that_people_commit_does_nothing_where_notyet_is_missing(claude):
    claude.gates(READY)
    claude.install("--project")
    claude.ungated = {"main"}
    ran = claude.run([Say("Done.")])
    assert (ran.code, ran.text) == (0, "Done.")
    assert claude.stops() == []
    assert claude.notes(ran) == []
    assert '"exit_code":127' not in ran.out.replace(" ", "")


def test_a_hook_that_is_registered_twice_with_the_same_line_is_run_once(claude):
    claude.gates(READY)
    claude.install("--user")
    claude.install("--local")
    ran = claude.run(list(STEPS))
    assert ran.text == "Now it is."
    assert claude.outcomes() == ["blocked", "passed"]
    assert len(claude.replies(ran)) == 2


def note_stops(path, replaced_by):
    """Let the hook of each stop write a line to `started` before its process becomes notyet."""
    settings = json.loads(path.read_text())
    (hook,) = settings["hooks"]["Stop"][0]["hooks"]
    hook["command"] = f"echo hook >> started; {replaced_by}{hook['command']}"
    path.write_text(json.dumps(settings))


@pytest.mark.rule("B12")
def test_two_hooks_with_different_lines_ask_once_and_say_the_same(claude):
    # A hook that starts after another's answer is another stop, so the gate runs until both have
    # started: a busy machine may take longer for that than a gate.
    both = "test $(wc -l < started) -ge $((2 * $(wc -l < ran)))"
    run = f"echo ran >> ran; until {both}; do sleep 0.05; done; sleep 0.1; exit 1"
    gate = f"[gates.never]\nrun = '{run}'\nwhen = \"always\"\n"
    claude.gates("[limits]\nmax_blocks = 2\nstuck_after = 0\n" + gate)
    claude.install("--user")
    claude.install("--project")
    note_stops(claude.settings, "")
    note_stops(claude.project / ".claude" / "settings.json", "exec ")
    ran = claude.run([Say("a"), Say("b"), Say("c")], PATH=with_notyet(claude))
    assert (ran.code, ran.text) == (0, "c")
    assert claude.outcomes() == ["blocked", "blocked", "capped"]
    assert [stop.count for stop in claude.stops()] == [1, 2, 2]
    assert (claude.project / "ran").read_text().split() == ["ran"] * 3
    replies = claude.replies(ran)
    assert len(replies) == 6
    assert replies[0::2] == replies[1::2]
    first, second = claude.WIRE.prompts(ran.model.asked()[1].news)  # in one reminder
    assert first == second == claude.stops()[0].prompt


@newest_claude
def test_the_line_of_a_python_without_our_program_gates(claude):
    """Started as a module of an environment that has no `notyet` in its bin folder."""
    bare = claude.folder / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    claude.gates(READY)
    done = subprocess.run(
        [str(bare / "bin" / "python"), "-m", "notyet", "install", "claude", "--yes"],
        cwd=claude.project,
        env=claude.environ | {"PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert f"exec {bare}/bin/python -I -S {claude.home}/" in claude.settings.read_text()
    ran = claude.run(list(STEPS))
    assert ran.text == "Now it is."
    assert claude.outcomes() == ["blocked", "passed"]


@pytest.mark.rule("B11")
def test_an_agent_that_switches_all_hooks_off_is_found_out_at_its_next_stop(claude):
    """Nobody can keep an agent that may edit its settings from it; but it is not forgotten."""
    claude.gates(READY)
    claude.install()
    log = claude.home / "tools.log"
    tool = {"type": "command", "command": f"echo ran >> {log}"}
    claude.change_settings(hooks={"PostToolUse": [{"hooks": [tool]}]})
    before = claude.settings.read_text()
    seen = []

    def step(n, _request):
        if n == 0:
            return Say("Done!")
        if n == 1:
            return Run(f"""sed -i '1s/{{/{{"disableAllHooks": true,/' {claude.settings}""")
        # The settings are read again after a while: when no hook answers a tool any more.
        seen.append(log.read_text().count("ran") if log.exists() else 0)
        still = len(seen) < 3 or seen[-1] != seen[-2]
        return Run("sleep 0.3") if still and n < 60 else Say("I am free.")

    first = claude.run({"main": step})
    assert first.text == "I am free."
    assert claude.outcomes() == ["blocked"]
    claude.settings.write_text(before)
    (claude.project / "ready").touch()
    session = claude.stops()[0].session_id
    second = claude.run([Say("Again.")], args=("--resume", session))
    assert second.text == "Again."
    assert claude.outcomes() == ["overridden", "passed"]
    first.model.asked()[-1].step = Run("")  # of that stop, no hook was told


@newest_claude
def test_hooks_that_others_registered_go_on_beside_ours(claude):
    claude.write_settings(
        hooks={"Stop": [{"hooks": [{"type": "command", "command": "touch theirs"}]}]}, model="opus"
    )
    claude.gates(READY)
    claude.install()
    ran = claude.run(list(STEPS))
    assert claude.outcomes() == ["blocked", "passed"]
    assert (claude.project / "theirs").exists()
    assert ran.text == "Now it is."
    (claude.project / "theirs").unlink()
    claude.uninstall()
    after = claude.run([Say("Done.")])
    assert (claude.project / "theirs").exists()
    claude.runs.remove(after)
