"""Hosts that we gate by a plugin: whatever happens to it or to its hook, the agent goes on."""

import json
from dataclasses import replace

import pytest

from clients.conftest import only
from clients.model import anthropic
from clients.model.chat import Chat
from clients.model.script import Run, Say
from commands import until
from notyet.install.settings import settings_of

READY = '[gates.ready]\nrun = "test -e ready"\nhint = "Make it ready."\n'
LONG = '[gates.long]\nrun = "touch begun; sleep 1000 & sleep 1000"\n'
BROKEN = {
    "hangs": ("sleep 1000 & sleep 1000", "no answer in 2 s"),
    "nonsense": ("cat > /dev/null; echo '{\"decision\": '", "JSON"),
    "killed": ("kill -9 $$", "the hook ended with SIGKILL"),
    "ended": ("kill $$", "the hook ended with SIGTERM"),
    "fails": ("exit 3", "the hook ended with 3"),
    "missing": ("/nowhere/notyet hook", "the hook ended with 127"),
}


class Messages:
    """Anthropic's protocol, with a model that says what it does before it calls a tool."""

    is_asked, read = staticmethod(anthropic.is_asked), staticmethod(anthropic.read)
    aside, other = staticmethod(anthropic.aside), staticmethod(anthropic.other)
    prompts = staticmethod(anthropic.prompts)

    @staticmethod
    def write(step, request):
        """Return the stream of one answer; a text ends before the call begins."""
        if isinstance(step, Say):
            return anthropic.write(step, request)
        *text, _, _ = anthropic.write(Say("Let me see."), request)
        _, start, *call, end, last = anthropic.write(step, request)
        block = start["content_block"] | {"name": "bash"}
        blocks = [start | {"content_block": block}, *call]
        return [*text, *[event | {"index": 1} for event in blocks], end, last]


class CutOff(Chat):
    """A model whose text ends at the limit of tokens, if it is `HALF`."""

    HALF = Say("Half of")

    def write(self, step, request):
        """Return the answer, with another reason of its end."""
        answer = super().write(step, request)
        cut = json.dumps(answer).replace('"stop"', '"length"')
        return json.loads(cut) if step == self.HALF else answer


@only("opencode")
@pytest.mark.parametrize("provider", ["fake", "opencode-fake"])  # whose requests differ in headers
def test_a_text_before_a_tool_call_is_no_stop(host, provider):
    host.WIRE, host.SDK, host.PROVIDER = Messages(), "@ai-sdk/anthropic", provider
    host.gates(READY)
    host.install()
    ran = host.run([Run("true"), Say("Done!"), Run("touch ready"), Say("Now it is.")])
    assert (ran.code, ran.text) == (0, "Now it is."), ran.err
    assert host.outcomes() == ["blocked", "passed"]


@only("opencode")
@pytest.mark.rule("E2")
def test_the_user_is_told_of_a_turn_that_ends_without_a_text(host):
    host.gates(READY)
    host.install()
    host.ungated = {"main"}
    ran = host.run([Run("true"), Say("")])
    assert ran.code == 0, ran.err
    (note,) = host.notes(ran)
    assert note.startswith("notyet: NOT CHECKED: OpenCode ended the turn without a text")
    assert host.outcomes() == []


@only("opencode", "pi")
def test_an_agent_that_is_cut_off_at_the_limit_of_tokens_is_sent_back(host):
    host.WIRE = CutOff(run=host.WIRE.run)
    host.gates(READY)
    host.install()
    ran = host.run([CutOff.HALF, Run("touch ready"), Say("Now it is.")])
    assert (ran.code, ran.text) == (0, "Now it is."), ran.err
    assert host.outcomes() == ["blocked", "passed"]


@only("opencode", "pi")
@pytest.mark.rule("E2")
@pytest.mark.parametrize("how", BROKEN)
def test_an_agent_whose_hook_does_not_answer_goes_on_and_the_user_is_told(host, how):
    command, why = BROKEN[how]
    settings = settings_of(host.HOST)
    file = settings.target("user", str(host.project), host.environ)
    entries = settings.entries("notyet", 2)
    stop = next(entry for entry in entries if entry.event == "Stop")
    host.install()
    with open(file.path, "w", encoding="utf-8") as plugin:
        plugin.write(settings.text_with("", file, [replace(stop, command=command)]))
    host.ungated = {"main"}
    ran = host.run([Say("Done.")])
    assert (ran.code, ran.text) == (0, "Done."), ran.err
    assert len(ran.model.requests) == 1
    (note,) = host.notes(ran)
    assert note.startswith("notyet: NOT CHECKED: ")
    assert why in note


@only("opencode", "pi")
@pytest.mark.full
def test_a_plugin_of_the_user_and_one_of_the_project_ask_once(host):
    host.gates(READY)
    host.install()
    host.install("--project")
    args = ()
    if host.HOST == "opencode":
        host.spare_npm(host.project / ".opencode")
    else:
        args = ("--approve",)
    ran = host.run([Say("Done!"), Run("touch ready"), Say("Now it is.")], args=args)
    assert (ran.code, ran.text) == (0, "Now it is."), ran.err
    assert host.outcomes() == ["blocked", "passed"]


@only("opencode", "pi")
@pytest.mark.full
@pytest.mark.rule("C4")
def test_a_user_who_interrupts_during_a_gate_ends_the_gate(host):
    host.gates(LONG)
    host.install()
    with host.start([Say("Done!")]) as under_way:
        assert until((host.project / "begun").exists, host.LONGEST_RUN)
        under_way.interrupt()
        ran = under_way.wait()
    assert len(ran.model.requests) == 1
    assert host.outcomes() in (["skipped"], ["asking"])  # as the hook was given time, or not
