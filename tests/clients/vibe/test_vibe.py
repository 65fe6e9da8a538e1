"""What only Mistral Vibe does."""

import json

import pytest

from clients.conftest import only
from clients.model.script import Run, Say, Spawn
from clients.vibe.driver import WAIT
from clients.world import NOTYET

READY = '[gates.ready]\nrun = "test -e ready"\n'


@only("vibe")
@pytest.mark.full
@pytest.mark.rule("C8", "K12")
def test_a_subagent_is_sent_back_with_its_own_task(host):
    host.gates(READY + 'for = "subagents"\n')
    host.install()
    host.ungated = {"main"}
    task = "[actor: writer] Write it."
    ran = host.run(
        {
            "main": [Spawn(task), Run(WAIT), Say("It is written.")],
            "writer": [Say("Done."), Run("touch ready"), Say("Report: it is written.")],
        }
    )
    assert (ran.code, ran.text) == (0, "It is written."), ran.err
    sent_back = ran.model.asked("writer")[1]
    (prompt,) = host.WIRE.prompts(sent_back.news)
    assert prompt.startswith(f"Your task: {task}\n\nYour previous answer was not kept")
    assert "Done." not in json.dumps(sent_back.raw["messages"])
    assert "Report: it is written." in str(ran.model.asked()[-1].raw["messages"])
    assert [stop.scope for stop in host.stops()] == ["subagent", "subagent"]
    assert host.outcomes() == ["blocked", "passed"]


@only("vibe")
@pytest.mark.full
def test_hooks_of_a_project_run_only_where_the_folder_is_trusted(host):
    path = f"{NOTYET.parent}:{host.environ['PATH']}"
    host.gates(READY)
    host.install("--project")
    faults = json.loads(host.notyet("status", "vibe", "--json", PATH=path).stdout)
    found = [fault["code"] for part in faults["hosts"] for fault in part["faults"]]
    assert found == ["folder-not-trusted"]
    ungated = host.run([Say("Done.")], PATH=path)
    assert (ungated.text, host.outcomes()) == ("Done.", [])
    host.runs.remove(ungated)
    ran = host.run([Say("Done!"), Run("touch ready"), Say("Well.")], args=("--trust",), PATH=path)
    assert (ran.text, host.outcomes()) == ("Well.", ["blocked", "passed"])
    trusted = host.home / ".vibe" / "trusted_folders.toml"
    trusted.write_text(f"trusted = [{json.dumps(str(host.project))}]\nuntrusted = []\n")
    assert host.notyet("status", "vibe", PATH=path).returncode == 0
    assert host.run([Say("Again.")], PATH=path).text == "Again."
    assert host.outcomes() == ["blocked", "passed", "passed"]
