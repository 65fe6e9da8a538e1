"""Agents of pydantic-ai with `Gated`, driven by its own scripted model."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai")

from pydantic_ai import (
    Agent,
    AgentRunResultEvent,
    CancellationToken,
    DeferredToolRequests,
    RunContext,
    UsageLimitExceeded,
    UsageLimits,
)
from pydantic_ai.exceptions import RunCancelled
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

from adapter_gates import EVERY_AGENT, Script, SlowCommand, run_page
from hook_runs import gate, new_project
from notyet import Block, Engine, Gate, Halt, Ledger
from notyet.core.gate import Function, Starter
from notyet.frameworks import pydantic_ai as adapter
from notyet.frameworks.pydantic_ai import Gated
from notyet.testing import Conversation, adapter_conformance
from support import wait_for

EXAMPLES = Path(__file__).parents[2] / "examples"


@contextmanager
def loop_of_thread():
    """Give `run_sync` an event loop of this thread, and close it: it leaves its own one open."""
    with closing(asyncio.new_event_loop()) as loop:
        asyncio.set_event_loop(loop)
        yield
    asyncio.set_event_loop(None)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """Agents work in a folder without files, so that stops are quick to look at."""
    monkeypatch.chdir(tmp_path)
    with loop_of_thread():
        yield


class Model(FunctionModel):
    """Gives one answer after another, the last one again and again.

    A tuple is calls of tools, as `(name, arguments)`; text that starts with "!" is an error.
    """

    def __init__(self, *answers, delay=0.0):
        super().__init__(self._answer, stream_function=self._stream, model_name="scripted")
        self.answers = answers
        self.delay = delay
        self.seen = []

    def _next(self, messages):
        answer = self.answers[min(len(self.seen), len(self.answers) - 1)]
        self.seen.append(text_of(messages))
        if isinstance(answer, str) and answer.startswith("!"):
            raise RuntimeError(answer[1:])
        return answer

    async def _answer(self, messages, _info):
        await asyncio.sleep(self.delay)
        answer = self._next(messages)
        parts = [TextPart(answer)] if isinstance(answer, str) else []
        if isinstance(answer, tuple):
            parts = [ToolCallPart(name, arguments) for name, arguments in answer]
        usage = RequestUsage(input_tokens=10, cache_read_tokens=4, output_tokens=3)
        return ModelResponse(parts, usage=usage)

    async def _stream(self, messages, _info):
        yield self._next(messages)


def gate_for_all(call):
    return Gate(name="all", check=Function(call), match=EVERY_AGENT)


def text_of(messages):
    """Return all that a model was given, in order."""
    parts = [part for message in messages for part in message.parts]
    return "\n".join(str(getattr(part, "content", part)) for part in parts)


def agent_of(script, *answers, name="worker", **options):
    """Return an agent that an engine gates, and its model."""
    model = Model(*answers)
    return Agent(model, name=name, capabilities=[Gated(script.engine)], **options), model


class Trial:
    """One run of a new agent, for the conformance suite and the benchmark."""

    name = "pydantic-ai"
    delay = 0.0

    def _agent(self, engine, answers):
        model = Model(*answers, delay=self.delay)
        return Agent(model, capabilities=[Gated(engine)] if engine else []), model

    async def run(self, engine, answers, *, session=None):
        agent, model = self._agent(engine, answers)
        result = await agent.run("The task.", conversation_id=session)
        return Conversation(result.output, tuple(model.seen))

    def run_sync(self, engine, answers, *, session=None):
        agent, model = self._agent(engine, answers)
        with loop_of_thread():
            result = agent.run_sync("The task.", conversation_id=session)
        return Conversation(result.output, tuple(model.seen))


@pytest.mark.holds("sync run")
@pytest.mark.holds("async run")
@pytest.mark.holds("sessions")
@pytest.mark.holds("start words")
@pytest.mark.holds("cancel ends gates")
@pytest.mark.holds("halt")
def test_the_adapter_keeps_the_promises_of_all_adapters():
    adapter_conformance(Trial())


@pytest.mark.holds("stream")
def test_run_stream_events_ends_with_the_answer_that_passed():
    script = Script("Try again.")
    agent, model = agent_of(script, "First.", "Second.")

    async def main():
        async with agent.run_stream_events("Go.") as events:
            return [event async for event in events]

    *_, last = asyncio.run(main())
    assert isinstance(last, AgentRunResultEvent)
    assert last.result.output == "Second."
    assert script.outcomes == ["blocked", "passed"]
    assert "First.\nTry again." in model.seen[1]


@pytest.mark.holds("async run")
def test_iter_goes_on_with_another_request_instead_of_ending():
    script = Script("Try again.")
    agent, _ = agent_of(script, "First.", "Second.")

    async def main():
        async with agent.iter("Go.") as run:
            nodes = [type(node).__name__ async for node in run]
        return nodes, run.result.output

    nodes, output = asyncio.run(main())
    assert nodes.count("ModelRequestNode") == 2
    assert nodes[-1] == "End"
    assert output == "Second."
    assert script.outcomes == ["blocked", "passed"]


@pytest.mark.cannot_hold(
    "stream", "`run_stream` hands out the answer before the run ends; `run_stream_events` is held"
)
def test_run_stream_is_observed_and_says_once_that_it_is_not_held():
    script = Script("Try again.")
    agent, model = agent_of(script, "First.", "Second.")
    ended = []
    script.engine.on("stop", lambda event, ctx: ended.append(event))

    async def main():
        async with agent.run_stream("Go.") as stream:
            return await stream.get_output()

    assert [asyncio.run(main()), len(model.seen)] == ["First.", 1]
    asyncio.run(main())
    assert script.outcomes == ["capped", "capped"]
    assert script.events[0].last_message == "First."
    assert script.events[0].total_usage is None  # the last answer is not counted yet
    assert len(ended) == 2
    said = [line for line in script.warnings if "only observe" in line]
    assert said == [
        "gates only observe here: run_stream hands out the answer before the run ends; "
        "use run, iter or run_stream_events to have the agent sent back"
    ]


@pytest.mark.holds("events")
@pytest.mark.holds("usage")
def test_a_stop_event_has_what_the_framework_knows():
    script = Script("Look once more.")
    look, answer = ("look", {}), "Done."
    agent, _ = agent_of(script, (look, look), answer, (look,), "Done again.")
    agent.tool_plain(name="look")(lambda: "nothing")
    result = agent.run_sync("Find it.", conversation_id="talk", run_id="run-1")
    first, second = script.events
    assert first.host == "pydantic-ai"
    assert (first.session_id, first.run_id, first.agent_name) == ("talk", "run-1", "worker")
    assert (first.task, first.last_message, first.result) == ("Find it.", "Done.", "Done.")
    assert (first.turns, first.tool_calls, first.tools_used) == (2, 2, ("look",))
    assert (first.usage.input, first.usage.cache_read, first.usage.output) == (12, 8, 6)
    assert first.usage.total == first.total_usage.total == 26
    assert (first.model, first.scope, first.parent_session_id) == ("scripted", "agent", None)
    assert (second.turns, second.tool_calls, second.tools_used) == (2, 1, ("look",))
    assert (second.usage.total, second.total_usage.total) == (26, 52)
    assert second.turn_id == first.turn_id
    assert (second.last_message, result.output) == ("Done again.", "Done again.")


@pytest.mark.holds("sessions")
def test_a_conversation_that_goes_on_is_one_session_and_each_run_a_turn():
    script = Script("Try again.")
    agent, model = agent_of(script, "One.", "Two.", "Three.", "Four.")
    first = agent.run_sync("Go.")
    stored = ModelMessagesTypeAdapter.validate_json(first.all_messages_json())
    agent.run_sync("Go on.", message_history=stored)
    assert script.outcomes == ["blocked", "passed"] * 2
    assert len({event.session_id for event in script.events}) == 1
    assert len({event.turn_id for event in script.events}) == 2
    assert model.seen[3] == "Go.\nOne.\nTry again.\nTwo.\nGo on.\nThree.\nTry again."


@dataclass
class Verdict:
    ok: bool


def test_an_agent_with_structured_output_is_sent_back_and_answers_anew(tmp_path):
    script = Script("Look again.", ledger=Ledger(tmp_path / "ledger.db"))
    answers = [("final_result", {"ok": False})], [("final_result", {"ok": True})]
    agent, model = agent_of(script, *map(tuple, answers), output_type=Verdict)
    assert agent.run_sync("Go.").output == Verdict(ok=True)
    assert script.outcomes == ["blocked", "passed"]
    assert [event.last_message for event in script.events] == ['{"ok":false}', '{"ok":true}']
    assert script.events[1].result == Verdict(ok=True)
    assert script.events[1].tool_calls == 0  # the framework's way to answer is no tool
    assert model.seen[1].endswith("Look again.")


@pytest.mark.holds("subagents")
@pytest.mark.parametrize("is_sync", [False, True])
def test_an_agent_that_a_tool_runs_is_a_subagent_with_a_counter_of_its_own(is_sync):
    script = Script("Again.")
    child, _ = agent_of(script, "Draft.", "Report.", name="coder")
    parent, model = agent_of(script, (("code", {}), ("code", {})), "Half.", "All.", name="boss")

    async def code() -> str:
        return (await child.run("Write it.")).output

    def code_sync() -> str:
        return asyncio.run(child.run("Write it.")).output

    parent.tool_plain(name="code")(code_sync if is_sync else code)
    assert parent.run_sync("Go.").output == "All."
    (session,) = {event.session_id for event in script.of("agent")}
    assert [event.block_count for event in script.of("agent")] == [0, 1]
    children = script.of("subagent")
    assert {event.parent_session_id for event in children} == {session}
    assert {(event.agent_type, event.agent_name) for event in children} == {("coder", "coder")}
    runs = {event.session_id for event in children}
    assert len(runs) == 2
    assert session not in runs
    for run in runs:
        counts = [event.block_count for event in children if event.session_id == run]
        assert counts in ([0, 1], [0])  # its model had no draft left for the second one
    assert "Report." in model.seen[1]


def test_a_subagent_counts_only_what_it_spent_of_a_shared_usage():
    script = Script()
    child, _ = agent_of(script, "Report.", name="coder")
    parent, _ = agent_of(script, (("code", {}),), "All.", name="boss")

    @parent.tool
    async def code(ctx) -> str:
        return (await child.run("Write it.", usage=ctx.usage)).output

    parent.run_sync("Go.")
    ((reported,), (all_of_it,)) = script.of("subagent"), script.of("agent")
    assert (reported.total_usage.total, all_of_it.total_usage.total) == (13, 39)


@pytest.mark.holds("handoffs")
def test_an_agent_that_an_output_function_hands_over_to_is_a_subagent():
    script = Script("Again.")
    child, _ = agent_of(script, "Draft.", "Report.", name="coder")

    async def hand_over(task: str) -> str:
        return (await child.run(task)).output

    answer = (("final_result", {"task": "Write it."}),)
    parent, _ = agent_of(script, answer, answer, name="router", output_type=hand_over)
    assert parent.run_sync("Go.").output == "Report."
    assert [event.agent_name for event in script.events][:3] == ["coder", "coder", "router"]
    assert script.events[2].last_message == "Report."
    assert {event.parent_session_id for event in script.of("subagent")} == {
        script.of("agent")[0].session_id
    }


def test_a_run_that_waits_for_an_approval_is_no_stop():
    script = Script("Again.")
    agent, _ = agent_of(script, (("drop", {}),), output_type=[str, DeferredToolRequests])
    agent.tool_plain(name="drop", requires_approval=True)(lambda: "dropped")
    assert isinstance(agent.run_sync("Go.").output, DeferredToolRequests)
    assert script.events == []


def test_a_run_without_requests_left_keeps_its_answer():
    script = Script("Again.")
    agent, _ = agent_of(script, "First.", "Second.")
    limits = UsageLimits(request_limit=1)
    assert agent.run_sync("Go.", usage_limits=limits).output == "First."
    assert script.outcomes == ["capped"]
    assert "request_limit" in script.warnings[0]


def test_a_run_that_ends_at_a_limit_of_the_framework_is_no_stop():
    script = Script("Again.")
    agent, _ = agent_of(script, (("look", {}),))
    agent.tool_plain(name="look")(lambda: "nothing")
    with pytest.raises(UsageLimitExceeded):
        agent.run_sync("Go.", usage_limits=UsageLimits(request_limit=2))
    assert script.events == []


@pytest.mark.holds("cancel ends gates")
def test_a_cancellation_token_ends_the_command_of_a_gate(tmp_path):
    slow, token = SlowCommand(tmp_path), CancellationToken()
    agent, _ = agent_of(slow, "Done.")

    def cancel():
        wait_for(lambda: slow.has_begun)
        token.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(RunCancelled):
        agent.run_sync("Go.", cancellation_token=token)
    thread.join()
    wait_for(lambda: slow.is_gone)


def test_there_is_a_decision_within_the_seconds_that_the_adapter_has():
    release, decisions = threading.Event(), []
    engine = Engine([lambda event: release.wait(60)])
    engine.on("decision", lambda event, decision: decisions.append(decision))
    agent = Agent(Model("Done."), capabilities=[Gated(engine, within=0.2)])
    assert agent.run_sync("Go.").output == "Done."
    assert [decision.outcome for decision in decisions] == ["failed_open"]
    release.set()


def broken(*_args, **_options):
    raise KeyError("a fault")


@pytest.mark.parametrize(
    "place", [(adapter, "_last_message"), (adapter, "_usage"), (RunContext, "enqueue")]
)
def test_a_fault_of_the_adapter_allows_the_stop_and_says_so(monkeypatch, place):
    script = Script("Again.")
    agent, _ = agent_of(script, "Done.")
    monkeypatch.setattr(*place, broken)
    assert agent.run_sync("Go.").output == "Done."
    assert script.warnings == ["NOT CHECKED: pydantic-ai: KeyError: 'a fault'"]


def test_an_agent_with_two_engines_is_sent_back_by_one_after_the_other():
    told = []

    def once(prompt):
        def gate(event):
            told.append(prompt)
            return Block(prompt) if told.count(prompt) == 1 else None

        return Gated(Engine([gate]))

    model = Model("First.", "Second.", "Third.")
    agent = Agent(model, capabilities=[once("One.")])
    assert agent.run_sync("Go.", capabilities=[once("Two.")]).output == "Third."
    assert sorted(model.seen[2].splitlines()) == ["First.", "Go.", "One.", "Second.", "Two."]


def test_an_agent_that_goes_on_for_another_reason_is_asked_when_it_stops():
    script = Script()
    agent, _ = agent_of(script, (("look", {}),), "First.", "Second.")

    @agent.tool
    def look(ctx) -> str:
        ctx.enqueue("And one more thing.", priority="when_idle")
        return "nothing"

    assert agent.run_sync("Go.").output == "Second."
    assert [event.last_message for event in script.events] == ["Second."]


@pytest.mark.holds("halt")
def test_a_subagent_that_is_halted_ends_and_its_parent_goes_on():
    def enough(event):
        return Halt("Enough.") if event.scope == "subagent" else None

    script = Script()
    engine = Engine([gate_for_all(enough)])
    script.engine = engine
    child, _ = agent_of(script, "Draft.", "Report.", name="coder")
    parent, _ = agent_of(script, (("code", {}),), "All.", name="boss")
    parent.tool_plain(name="code")(lambda: asyncio.run(child.run("Write it.")).output)
    result = parent.run_sync("Go.")
    assert result.output == "All."
    assert "Draft." in text_of(result.all_messages())


@pytest.mark.holds("start words")
def test_words_of_a_starter_are_given_once_per_conversation():
    starter = Starter(name="words", check=Function(lambda event: "Mind the tests."))
    script = Script(starters=[starter])
    agent, model = agent_of(script, "Done.")
    first = agent.run_sync("Go.")
    agent.run_sync("Go on.", message_history=first.all_messages())
    assert [seen.count("Mind the tests.") for seen in model.seen] == [1, 1]


def test_the_gates_of_a_project_hold_an_agent(tmp_path):
    project = new_project(tmp_path / "p", gate("test -e fixed"))
    agent = Agent(
        Model("First.", (("fix", {}),), "Second."),
        capabilities=[Gated(Engine.from_project(str(project)), cwd=str(project))],
    )
    agent.tool_plain(name="fix")(lambda: str((project / "fixed").touch()))
    result = agent.run_sync("Go.")
    assert result.output == "Second."
    assert "g" in text_of(result.new_messages())
    assert (project / "fixed").exists()


def test_the_example_of_the_page_runs():
    assert run_page("pydantic-ai.md")["result"].output == "The changelog is written."


@contextmanager
def serving(folder):
    """Run the service of an example; yield its address."""
    command = [sys.executable, "-m", "uvicorn", "--port", "0", "app:app"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            lines = iter(process.stderr.readline, "")
            line = next(line for line in lines if "running on" in line)
            yield re.search(r"http://127\.0\.0\.1:\d+", line).group()
        finally:
            process.terminate()


def test_the_service_of_the_examples_answers_each_of_two_questions_at_once(tmp_path):
    folder = tmp_path / "service"
    shutil.copytree(EXAMPLES / "fastapi-service", folder)
    with serving(folder) as address, ThreadPoolExecutor(2) as pool:

        def asked(question):
            body = json.dumps({"question": question}).encode()
            head = {"content-type": "application/json"}
            request = urllib.request.Request(f"{address}/answers", body, head)  # noqa: S310
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                return json.load(answer)

        answers = list(pool.map(asked, ["When do you open?", "And when do you close?"]))
    for answer in answers:
        assert answer["answer"].endswith("Source: the page of our shop")
        assert answer["passed"] is True
