"""A `.conclaude.yaml` under the real Claude Code: in conclaude's place, and beside our gates."""

from __future__ import annotations

import json
import shlex

import pytest

from clients.conftest import newest_claude
from clients.model.script import Run, Say, Spawn
from clients.world import NOTYET

PATTERNS = """\
subagentStop:
  commands:
    "coder":
      - run: "echo lint >> $CONCLAUDE_CWD/log"
        message: "Running linter after coder"
      - run: "echo types >> $CONCLAUDE_CWD/log"
    "test*":
      - run: "echo tested >> $CONCLAUDE_CWD/log"
    "*coder":
      - run: "echo staged >> $CONCLAUDE_CWD/log"
    "*":
      - run: "echo completed >> $CONCLAUDE_CWD/log"
        message: "Logging subagent completion"
"""
VARIABLES = """\
subagentStop:
  commands:
    "*":
      - run: "env | grep '^CONCLAUDE_' | sort >> variables"
"""
BLOCKING = """\
subagentStop:
  commands:
    "*coder":
      - run: "test -e report"
        message: "There is no report."
        block: true
"""


def in_conclaudes_place(world):
    """Register us as `conclaude init` registers conclaude."""
    hooks = {
        event: [{"hooks": [{"type": "command", "command": f"{shlex.quote(str(NOTYET))} {words}"}]}]
        for event, words in {
            "Stop": "conclaude Hooks Stop",
            "SubagentStop": "conclaude Hooks SubagentStop",
        }.items()
    }
    settings = world.project / ".claude" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"hooks": hooks}))
    done = world.notyet("trust", "--yes", "--read", "conclaude")
    assert done.returncode == 0, done.stdout + done.stderr


def beside_our_gates(world):
    """Install our own hook, and let it read conclaude's file."""
    world.gates('[read]\nhosts = ["conclaude"]\n')
    world.install()


@pytest.fixture(params=[in_conclaudes_place, beside_our_gates], ids=lambda way: way.__name__)
def configured(request, claude):
    """Claude Code with a `.conclaude.yaml`, either way."""

    def configure(text):
        (claude.project / ".conclaude.yaml").write_text(text)
        for name in ("coder", "auto-coder", "tester", "writer"):
            claude.define_agent(name)
        claude.ungated = {"main"}
        request.param(claude)
        return claude

    return configure


def delegating(name, *steps):
    """Return a script: the main agent gives its task to a subagent of this type."""
    main = [Spawn(f"[actor: {name}] Do it.", agent_type=name), Say("Delegated.")]
    return {"main": main, name: list(steps)}


@pytest.mark.rule("D2", "D3", "J5")
@newest_claude
def test_the_star_runs_first_and_then_every_pattern_that_fits(configured):
    world = configured(PATTERNS)
    expected = {
        "coder": "completed staged lint types",
        "auto-coder": "completed staged",
        "tester": "completed tested",
        "writer": "completed",
    }
    steps = [Spawn(f"[actor: {name}] Do it.", agent_type=name) for name in expected]
    reports = {name: [Say(f"Report of the {name}.")] for name in expected}
    ran = world.run({"main": [*steps, Say("Delegated.")], **reports})
    assert ran.text == "Delegated."
    assert (world.project / "log").read_text().split() == " ".join(expected.values()).split()
    assert [stop.agent_type for stop in world.stops()] == list(expected)
    assert world.outcomes() == ["passed"] * 4


@pytest.mark.rule("H3")
@newest_claude
def test_commands_find_out_about_the_subagent(configured):
    world = configured(VARIABLES)
    ran = world.run(delegating("coder", Say("My report.")))
    lines = (world.project / "variables").read_text().splitlines()
    variables = {name: value for name, _, value in (line.partition("=") for line in lines)}
    (stop,) = world.stops()
    assert variables["CONCLAUDE_HOOK_EVENT"] == "SubagentStop"
    assert variables["CONCLAUDE_SESSION_ID"] == stop.session_id
    assert variables["CONCLAUDE_AGENT_ID"] == stop.agent_id
    assert variables["CONCLAUDE_CWD"] == str(world.project)
    assert stop.agent_id in variables["CONCLAUDE_AGENT_TRANSCRIPT_PATH"]
    assert stop.session_id in variables["CONCLAUDE_TRANSCRIPT_PATH"]
    payload = json.loads(variables["CONCLAUDE_PAYLOAD_JSON"])
    assert (payload["agent_type"], payload["last_assistant_message"]) == ("coder", "My report.")
    assert "My report." in ran.model.asked()[-1].results[-1]


@pytest.mark.rule("G4")
@newest_claude
def test_a_blocking_command_sends_the_subagent_back(configured):
    world = configured(BLOCKING)
    ran = world.run(delegating("coder", Say("Done."), Run("touch report"), Say("Written.")))
    assert ran.text == "Delegated."
    assert world.outcomes() == ["blocked", "passed"]
    assert "There is no report." in ran.told("coder")[1]
    assert "Written." in ran.model.asked()[-1].results[-1]


@pytest.mark.rule("G4")
@newest_claude
def test_a_command_that_only_fails_is_observed_and_sends_no_agent_back(configured):
    world = configured(BLOCKING.replace("        block: true\n", ""))
    ran = world.run(delegating("coder", Say("Done.")))
    assert ran.model.said("coder") == ["Done."]
    (stop,) = world.stops()
    assert stop.outcome == "observed"
    (failed,) = [report for report in stop.reports if report.status == "blocked"]
    assert "There is no report." in failed.said
