"""Real programs whose agents change no file, or make up a start after they did (N1)."""

from __future__ import annotations

import json

import pytest

from clients.conftest import newest, newest_claude
from clients.model.script import Run, Say
from clients.world import NOTYET

pytestmark = pytest.mark.rule("N1")
GATE = '[gates.tests]\nrun = "test ! -e bad"\nwhen = "changed"\n'
NOT_CHECKED = "not checked: no file changed since this session began (tests)"


@newest
def test_an_agent_that_changes_nothing_is_not_checked_and_its_user_is_told(client):
    client.gates(GATE)
    (client.project / "bad").write_text("of yesterday\n")
    client.install()
    ran = client.run([Say("It is a project.")])
    assert (ran.code, ran.text) == (0, "It is a project.")
    assert client.outcomes() == ["skipped"]
    assert client.stops()[0].why == "unchanged"
    assert client.tells_user(ran, NOT_CHECKED)


@newest_claude
def test_a_start_that_an_agent_makes_up_after_its_edits_does_not_count(claude):
    claude.gates(GATE)
    claude.install()
    settings = json.loads(claude.settings.read_text())
    del settings["hooks"]["SessionStart"]
    claude.settings.write_text(json.dumps(settings))
    event = {"hook_event_name": "SessionStart", "source": "startup", "session_id": "'$ID'"}
    event |= {"cwd": str(claude.project), "transcript_path": "/x"}
    forged = f"ID=$CLAUDE_CODE_SESSION_ID; echo '{json.dumps(event)}' | {NOTYET} hook --host claude"
    script = [Run(f"touch bad; {forged}"), Say("Done."), Run("rm bad"), Say("Now.")]
    ran = claude.run(script)
    assert (ran.code, ran.text) == (0, "Now.")
    assert claude.outcomes() == ["blocked", "passed"]
