"""Where the hook is registered, and what takes it out of force."""

import os

import pytest

from clients.model.script import Run, Say
from clients.world import NOTYET

READY = '[gates.ready]\nrun = "test -e ready"\nwhen = "always"\n'
STEPS = (Say("Done!"), Run("touch ready"), Say("Now it is."))


@pytest.mark.parametrize("scope", ["--user", "--project", "--local"])
def test_the_hook_gates_from_each_of_the_settings_files(claude, scope):
    claude.gates(READY)
    claude.install(scope)
    path = f"{NOTYET.parent}{os.pathsep}{claude.environ['PATH']}"
    ran = claude.run(list(STEPS), PATH=path)
    assert ran.text == "Now it is."
    assert claude.outcomes() == ["blocked", "passed"]


def test_the_line_that_people_commit_does_nothing_where_notyet_is_missing(claude):
    claude.gates(READY)
    claude.install("--project")
    claude.ungated = {"main"}
    ran = claude.run([Say("Done.")])
    assert (ran.code, ran.text) == (0, "Done.")
    assert claude.stops() == []
    assert claude.notes(ran) == []
    assert '"exit_code":127' not in ran.out.replace(" ", "")


def test_a_hook_that_is_registered_for_user_and_project_asks_every_gate_only_for_itself(claude):
    claude.gates(READY)
    claude.install("--user")
    claude.install("--local")
    ran = claude.run(list(STEPS))
    assert ran.text == "Now it is."
    assert claude.outcomes() == ["blocked", "passed"]  # the same line is run once


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
