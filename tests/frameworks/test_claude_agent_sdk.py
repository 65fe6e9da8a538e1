"""claude-agent-sdk with `gate_hooks`: the program that it brings, and a scripted model.

The program runs with an empty environment, a scratch home, and the model on 127.0.0.1.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("claude_agent_sdk")

from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ResultError,
    ResultMessage,
    query,
)

from clients.model import anthropic
from clients.model.script import Fail, Run, Say, Spawn
from clients.model.server import ModelServer
from commands import running, until
from hook_runs import new_project
from notyet import Allow, Block, Command, Engine, Function, Gate, Halt, Ledger, Limits, Match
from notyet.frameworks.claude_agent_sdk import gate_hooks
from notyet.testing import Conversation, adapter_conformance

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "claude-agent-sdk.md"
ALL = Match(events=("agent", "subagent"))
SUBAGENTS = Match(events=("subagent",))
_KEPT = ("PATH", "LANG", "PYTEST_CURRENT_TEST", "HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")
_LONG = 3.0  # seconds of a turn, of which a tenth is enough to wait for the transcript
_VARIABLES = {
    "ANTHROPIC_API_KEY": "dummy",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "IS_SANDBOX": "1",  # else it refuses to skip permissions for root
}


@pytest.fixture(autouse=True)
def scratch(monkeypatch, tmp_path):
    """Leave nothing of the tester's own to the program, which gets our environment."""
    for name in [name for name in os.environ if name not in _KEPT]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)


class World:
    """An engine with one gate, and what became of it."""

    def __init__(self, *answers, match=Match(), **options):
        self.answers, self.events, self.outcomes, self.warnings = answers, [], [], []
        gate = Gate(name="gate", check=Function(self.gate), match=match)
        self.engine = Engine([gate], warn=self.warnings.append, **options)
        self.engine.on("decision", lambda event, made: self.outcomes.append(made.outcome))

    def gate(self, event):
        self.events.append(event)
        answer = self.answers[min(len(self.events), len(self.answers)) - 1]
        if isinstance(answer, BaseException):
            raise answer
        return answer


def options(engine, url, *, timeout=1800.0, env=None, **more):
    return ClaudeAgentOptions(
        hooks=None if engine is None else gate_hooks(engine, timeout=timeout),
        env=_VARIABLES | {"ANTHROPIC_BASE_URL": url} | (env or {}),
        permission_mode="bypassPermissions",
        setting_sources=[],
        **more,
    )


@contextmanager
def scripted(script):
    """Serve a script; it must foresee every request."""
    with ModelServer(anthropic, script) as model:
        yield model
    assert model.unexpected == []


async def results(prompt, chosen):
    return [
        one async for one in query(prompt=prompt, options=chosen) if isinstance(one, ResultMessage)
    ]


def run(engine, script, prompt="Write it.", **more):
    """Run an agent to its end; return its answer and the model that it asked."""
    with scripted(script) as model:
        found = asyncio.run(results(prompt, options(engine, model.url, **more)))
    return found[-1].result, model


def said(request):
    """Return all the text of a request's messages."""
    found = []
    for message in request.raw["messages"]:
        content = message["content"]
        blocks = [{"text": content}] if isinstance(content, str) else content
        found += [block["text"] for block in blocks if block.get("text")]
    return "\n".join(found)


class Trial:
    """How the conformance suite runs an agent of this framework; without an engine, ungated."""

    name = "claude-agent-sdk"
    delay = 0.0  # seconds that each call of the model takes

    def __init__(self):
        # In one home, sessions can be continued.
        self._home = tempfile.mkdtemp(dir=os.environ.get("TMPDIR"))
        self._known = set()

    async def run(self, engine, answers, *, session=None):
        def step(number, _request):
            text = answers[min(number, len(answers) - 1)]
            return Fail(400) if text.startswith("!") else Say(text, after=self.delay)

        more = {"env": {"HOME": self._home}}
        if session:
            more["resume" if session in self._known else "session_id"] = session
            self._known.add(session)
        with ModelServer(anthropic, {"main": step}) as model:
            found = await results("Write it.", options(engine, model.url, **more))
        return Conversation(found[-1].result, tuple(map(said, model.requests)))


@pytest.mark.holds("async run")
@pytest.mark.timeout(600)  # it starts the program thirty times
def test_it_keeps_the_promises_of_adapters():
    adapter_conformance(Trial())


@pytest.mark.holds("async run")
def test_a_blocked_agent_goes_on_with_the_reason_and_delivers_its_last_answer():
    found = World(Block("Write more."), Allow())
    answer, model = run(found.engine, [Say("Done."), Say("All of it.")])
    assert answer == "All of it."
    assert model.wire.prompts(model.requests[1].texts) == ["Write more."]
    assert [text for text in said(model.requests[1]).splitlines() if text in ("Write it.", "Done.")]
    assert found.outcomes == ["blocked", "passed"]


@pytest.mark.holds("stream")
def test_a_streamed_answer_is_gated_when_it_is_complete():
    found = World(Block("Write more."), Allow())
    script = [Say("Done."), Say("All of it.")]
    answer, _ = run(found.engine, script, include_partial_messages=True)
    assert (answer, found.outcomes) == ("All of it.", ["blocked", "passed"])


@pytest.mark.holds("sessions")
def test_each_prompt_of_a_conversation_is_a_turn():
    found = World(Block("Never."), limits=Limits(max_blocks=1, stuck_after=0))

    async def main(url):
        async with ClaudeSDKClient(options(found.engine, url)) as client:
            for prompt in ("First.", "Second."):
                await client.query(prompt)
                async for _ in client.receive_response():
                    pass

    with scripted([Say("One.", _LONG), Say("Two."), Say("Three.", _LONG), Say("Four.")]) as model:
        asyncio.run(main(model.url))
    assert found.outcomes == ["blocked", "capped"] * 2
    assert [event.task for event in found.events] == ["First."] * 2 + ["Second."] * 2
    assert len({event.session_id for event in found.events}) == 1
    assert len({event.turn_id for event in found.events}) == 2
    assert [event.turns for event in found.events] == [1] * 4


@pytest.mark.holds("events")
def test_an_event_says_all_that_the_framework_knows():
    found = World(Block("Write more."), Allow())
    run(found.engine, [Run("echo one"), Say("Done.", _LONG), Say("All of it.")])
    first, second = found.events
    assert (first.host, first.scope, first.ending) == ("claude-agent-sdk", "agent", "done")
    assert (first.task, first.last_message) == ("Write it.", "Done.")
    assert (first.turns, first.tool_calls, first.tools_used) == (2, 1, ("Bash",))
    assert (second.turns, second.tool_calls, second.tools_used) == (1, 0, ())
    assert (first.session_id, first.turn_id) == (first.raw["session_id"], first.raw["prompt_id"])
    assert Path(first.transcript_path).is_file()
    assert first.cwd == os.path.realpath(first.cwd)
    assert (first.permission_mode, first.host_cap) == ("bypassPermissions", 8)
    assert (first.stop_hook_active, second.stop_hook_active) == (False, True)
    assert first.model.startswith("claude")
    assert first.duration_ms > 0


@pytest.mark.holds("usage")
def test_usage_is_that_since_the_last_send_back_and_total_usage_that_of_the_turn():
    found = World(Block("Write more."), Allow())
    run(found.engine, [Run("echo one"), Say("Done.", _LONG), Say("All of it.")])
    spent = [(event.usage.total, event.total_usage.total) for event in found.events]
    assert spent == [(20, 20), (10, 30)]
    assert (found.events[1].usage.input, found.events[1].usage.output) == (7, 3)


@pytest.mark.holds("usage")
def test_an_answer_that_is_not_in_the_transcript_in_time_is_gated_without_figures(tmp_path):
    found = World(Block("Write more."))
    payload = {
        "hook_event_name": "Stop",
        "session_id": "session-1",
        "cwd": str(tmp_path),
        "transcript_path": str(tmp_path / "none.jsonl"),
        "stop_hook_active": False,
        "last_assistant_message": "Done.",
    }
    (matcher,) = gate_hooks(found.engine)["Stop"]
    for _ in range(2):
        reply = asyncio.run(matcher.hooks[0](payload, None, {"signal": None}))
        assert (reply["decision"], reply["reason"]) == ("block", "Write more.")
    assert [(event.usage, event.turns, event.tools_used) for event in found.events] == [
        (None, None, ())
    ] * 2


@pytest.mark.holds("subagents")
def test_a_subagent_is_sent_back_with_a_counter_of_its_own():
    found = World(Block("Write more."), Allow(), Block("Not yet."), Allow(), match=ALL)
    script = {
        "main": [Spawn("[actor: coder] Code it.", "coder"), Say("It is."), Say("All of it.")],
        "coder": [Run("true"), Say("Done.", _LONG), Say("The report.")],
    }
    coder = AgentDefinition(description="codes", prompt="Code.")
    answer, model = run(found.engine, script, agents={"coder": coder})
    assert answer == "All of it."
    assert [
        (event.scope, event.last_message, event.block_count, event.usage.total)
        for event in found.events
    ] == [
        ("subagent", "Done.", 0, 20),
        ("subagent", "The report.", 1, 10),
        ("agent", "It is.", 0, 20),
        ("agent", "All of it.", 1, 10),
    ]
    first, main = found.events[0], found.events[-1]
    assert (first.agent_type, first.agent_name) == ("coder", "coder")
    assert first.parent_session_id == main.session_id != first.session_id
    assert first.task == "[actor: coder] Code it."
    assert first.tools_used == ("Bash",)
    assert "The report." in model.asked()[1].results[-1]


@pytest.mark.holds("subagents")
def test_subagents_share_no_counter_and_a_new_turn_of_the_main_agent_refills_none():
    events, asked = {}, []

    def gate(event):
        events.setdefault(event.session_id, []).append(event)
        return None if event.block_count else Block("Write more.")

    def main(number, _request):
        asked.append(number)
        if number in (0, 1):
            return Spawn(f"[actor: {('one', 'two')[number]}] Go.", background=True)
        return Say("They are at work.")

    engine = Engine([Gate(name="gate", check=Function(gate), match=SUBAGENTS)])
    script = {
        "main": main,
        # "one" is sent back in a turn, and stops again in the next, which the end of "two" begins.
        "one": [Say("One."), Say("All of one.", once=lambda: len(asked) > 3)],
        "two": [Say("Two.", once=lambda: events), Say("All of two.")],
    }
    run(engine, script)
    assert [[event.block_count for event in stops] for stops in events.values()] == [[0, 1]] * 2
    first, last = next(iter(events.values()))
    assert (first.last_message, last.last_message) == ("One.", "All of one.")
    assert first.raw["prompt_id"] != last.raw["prompt_id"]
    assert first.turn_id == last.turn_id


@pytest.mark.rule("B10")
@pytest.mark.holds("subagents")
def test_the_main_agent_is_gated_only_when_its_background_subagent_is_done():
    found = World(Allow(), match=ALL)
    script = {
        "main": [
            Spawn("[actor: coder] Code it.", background=True),
            Say("It is under way."),
            Say("It is done."),
        ],
        "coder": [Say("The report.", once=lambda: found.outcomes == ["skipped"])],
    }
    why = []
    found.engine.on("decision", lambda event, made: why.append((event.last_message, made.why)))
    with ModelServer(anthropic, script) as model:
        asyncio.run(results("Go.", options(found.engine, model.url)))
    assert why[0] == ("It is under way.", "background")
    assert [event.last_message for event in found.events] == ["The report.", "It is done."]


@pytest.mark.holds("start words")
def test_words_of_a_starter_are_in_the_first_request_of_each_agent():
    found = World(Allow(), match=ALL)
    found.engine.on("session_start", lambda event, ctx: "These are the checks.")
    found.engine.on("subagent_start", lambda event, ctx: "These are a subagent's.")
    script = {
        "main": [Spawn("[actor: coder] Code it."), Say("It is.")],
        "coder": [Say("The report.")],
    }
    _, model = run(found.engine, script)
    assert "These are the checks." in said(model.asked()[0])
    assert "These are a subagent's." in said(model.asked("coder")[0])


@pytest.mark.holds("halt")
def test_a_halt_ends_the_turn():
    found = World(Block("Go on."), Halt("Enough."))
    run(found.engine, [Say("One."), Say("Two.")])
    assert found.outcomes == ["blocked", "halted"]


def test_the_limit_stays_below_the_cap_of_claude_code_which_would_cost_the_answer(monkeypatch):
    monkeypatch.setenv("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "3")
    found = World(Block("Never."), limits=Limits(max_blocks=20, stuck_after=0))
    answer, _ = run(found.engine, [Say("One."), Say("Two."), Say("Three.")])
    assert answer == "Three."
    assert found.outcomes == ["blocked", "blocked", "capped"]


def test_an_error_of_the_model_is_no_stop():
    found = World(Block("Go on."), Allow())
    with (
        ModelServer(anthropic, [Say("One."), Fail(400)]) as model,
        pytest.raises(ResultError, match="400"),
    ):
        asyncio.run(results("Go.", options(found.engine, model.url)))
    assert [event.last_message for event in found.events] == ["One."]


def test_a_turn_that_reaches_max_turns_is_no_stop():
    found = World(Allow())
    with (
        ModelServer(anthropic, [Run("true"), Say("Done.")]) as model,
        pytest.raises(ResultError, match="max"),
    ):
        asyncio.run(results("Go.", options(found.engine, model.url, max_turns=1)))
    assert found.events == []


def test_what_a_gate_raises_never_reaches_the_framework():
    found = World(Block("Go on."), RuntimeError("a fault of the gate"))
    answer, _ = run(found.engine, [Say("One."), Say("Two.")])
    assert (answer, found.outcomes) == ("Two.", ["blocked", "failed_open"])


def test_a_broken_ledger_never_reaches_the_framework(tmp_path):
    (tmp_path / "stops.db").mkdir()
    found = World(Block("Go on."), ledger=Ledger(tmp_path / "stops.db"))
    assert run(found.engine, [Say("One.")])[0] == "One."
    assert found.warnings


def test_a_payload_that_cannot_be_read_allows_the_stop():
    found = World(Block("Go on."))
    (matcher,) = gate_hooks(found.engine)["Stop"]
    assert asyncio.run(matcher.hooks[0]({}, None, {"signal": None})) == {}
    assert found.warnings == ["NOT CHECKED: claude-agent-sdk: KeyError: 'hook_event_name'"]


def test_a_gate_that_takes_longer_than_claude_code_waits_is_ended_and_not_checked():
    async def slow(_event):
        await asyncio.sleep(60)

    decisions = []
    engine = Engine([slow])
    engine.on("decision", lambda event, made: decisions.append(made))
    assert run(engine, [Say("One.")], timeout=2.0)[0] == "One."
    (decision,) = decisions
    assert (decision.outcome, decision.reports[0].answer.kind) == ("failed_open", "deadline")


@pytest.mark.holds("cancel ends gates")
@pytest.mark.parametrize("how", ["interrupt", "cancel"])
def test_ending_a_turn_ends_the_command_of_a_gate(tmp_path, how):
    file = tmp_path / "pid"
    script = f"echo $$ > {file}.part; mv {file}.part {file}; exec sleep 60"
    engine = Engine([Gate(name="slow", check=Command(script=script))])

    async def gated():
        while not file.exists():
            await asyncio.sleep(0.02)

    async def main(url):
        async with ClaudeSDKClient(options(engine, url)) as client:
            await client.query("Go.")
            if how == "interrupt":
                await gated()
                await client.interrupt()
            async for _ in client.receive_response():
                pass

    async def cancelled(url):
        task = asyncio.create_task(main(url))
        await gated()
        if how == "cancel":
            task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() == (how == "cancel")

    with scripted([Say("One.")]) as model:
        asyncio.run(cancelled(model.url))
    assert until(lambda: not running(int(file.read_text())), 20)


def test_two_agents_at_once_with_the_same_hooks_share_no_counter():
    found = World(Block("Go on."), limits=Limits(max_blocks=1, stuck_after=0))

    async def main(url):
        chosen = options(found.engine, url)
        return await asyncio.gather(results("Go.", chosen), results("Go.", chosen))

    def step(number, _request):
        return Say(f"Answer {number}.")

    with scripted({"main": step}) as model:
        asyncio.run(main(model.url))
    assert sorted(found.outcomes) == ["blocked"] * 2 + ["capped"] * 2
    assert len({event.session_id for event in found.events}) == 2


def test_the_gates_of_a_project_hold_an_agent(tmp_path):
    toml = '[gates.ready]\nrun = "test -e ready"\nwhen = "always"\n'
    project = str(new_project(tmp_path / "project", toml))
    script = [Say("Done."), Run("touch ready"), Say("Now it is.")]
    answer, model = run(Engine.from_project(project), script, cwd=project)
    assert answer == "Now it is."
    assert "FAILED ready (exit 1" in said(model.requests[1])


def test_the_example_of_the_page_runs(capsys, monkeypatch):
    (example,) = PAGE.read_text().split("```python\n")[1:]
    with scripted([Say("Done."), Run("touch report.md"), Say("It is written.")]) as model:
        for name, value in (_VARIABLES | {"ANTHROPIC_BASE_URL": model.url}).items():
            monkeypatch.setenv(name, value)
        exec(example.split("```")[0], {"__name__": "__main__"})
    assert capsys.readouterr().out.endswith("It is written.\n")
