"""Programs that use claude-agent-sdk: its bundled Claude Code reads the settings-file hook."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from clients.claude_code.driver import ClaudeCode
from clients.fetching import Unavailable
from clients.model.script import Run, Say, Spawn
from clients.programs import CLAUDE, folder_of

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "claude-code.md"
SESSION = Path(__file__).with_name("sdk_session.py")
READY = '[gates]\nready = "test -e ready"\n'
LEARNS = [Say("Done."), Run("touch ready"), Say("Now it is.")]


class AgentSdk(ClaudeCode):
    """A program with the SDK in it; `args` are options of the SDK as JSON, then more prompts."""

    def line(self, prompt, args, url):
        options, *more = args or ("{}",)
        return [sys.executable, str(SESSION), options, prompt, *more]

    def variables(self, url):
        return super().variables(url) | {"PYTHONPATH": str(self.program)}

    def answer(self, out):
        return json.loads(out.splitlines()[-1])["result"] if out.startswith("{") else out.strip()


@pytest.fixture
def sdk(tmp_path):
    """The SDK, with the program that it brings."""
    try:
        folder = folder_of(CLAUDE)
    except Unavailable as why:
        pytest.skip(str(why))
    with AgentSdk(folder, CLAUDE.version, tmp_path).scenario() as world:
        yield world


@pytest.mark.parametrize("options", ["{}", '{"setting_sources": ["user"]}'])
def test_a_session_is_sent_back_and_delivers_its_last_answer(sdk, options):
    sdk.gates(READY)
    sdk.install("--user")
    ran = sdk.run(LEARNS, args=(options,))
    assert (ran.code, ran.text) == (0, "Now it is."), ran.err
    assert sdk.outcomes() == ["blocked", "passed"]
    assert "FAILED ready (exit 1" in ran.told()[1]


def test_each_turn_of_a_conversation_is_gated(sdk):
    sdk.gates(READY)
    sdk.install("--user")
    again = [Run("rm ready"), Say("Undone."), Run("touch ready"), Say("Done again.")]
    ran = sdk.run([*LEARNS, *again], args=("{}", "and now undo it"))
    assert [json.loads(line)["result"] for line in ran.out.splitlines()] == [
        "Now it is.",
        "Done again.",
    ]
    assert sdk.outcomes() == ["blocked", "passed"] * 2
    assert {stop.turn for stop in sdk.stops()} == {1, 2}


def test_a_subagent_is_sent_back_and_its_report_delivered(sdk):
    sdk.gates('[gates.report]\nrun = "test -e report"\nfor = "subagents"\n')
    sdk.install("--user")
    sdk.ungated = {"main"}
    script = {
        "main": [Spawn("[actor: coder] Write the report."), Say("The coder is done.")],
        "coder": [Say("Done."), Run("touch report"), Say("The report is written.")],
    }
    ran = sdk.run(script)
    assert (ran.code, ran.text) == (0, "The coder is done."), ran.err
    assert [(stop.scope, stop.outcome) for stop in sdk.stops()] == [
        ("subagent", "blocked"),
        ("subagent", "passed"),
    ]
    assert "FAILED report (exit 1" in ran.told("coder")[1]
    assert "The report is written." in ran.model.asked()[-1].results[-1]


def test_a_session_without_the_users_settings_is_not_gated(sdk):
    sdk.gates(READY)
    sdk.install("--user")
    sdk.ungated = {"main"}
    ran = sdk.run([Say("Done.")], args=('{"setting_sources": []}',))
    assert ran.text == "Done."
    assert sdk.stops() == []


def test_the_example_of_the_page_is_gated(sdk):
    (example,) = PAGE.read_text().split("```python\n")[1:]
    sdk.gates(READY)
    sdk.install()
    ran = sdk.run(LEARNS, line=[sys.executable, "-c", example.split("```")[0]])
    assert (ran.code, ran.text) == (0, "Now it is."), ran.err
    assert sdk.outcomes() == ["blocked", "passed"]
