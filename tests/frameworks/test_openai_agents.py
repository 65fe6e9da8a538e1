"""The adapter for the OpenAI Agents SDK, driven by the real SDK with its own scripted model."""

import asyncio
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("agents")

import agents
from agents import (
    Agent,
    AgentOutputSchema,
    GuardrailFunctionOutput,
    InputGuardrail,
    MaxTurnsExceeded,
    Runner,
    RunResultStreaming,
    SQLiteSession,
    function_tool,
    handoff,
)
from agents.run import get_default_agent_runner
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from pydantic import BaseModel

import hook_runs
from notyet import Block, Engine, Function, Gate, Halt, Ledger, Limits, Match, Usage
from notyet.core.gate import Command
from notyet.frameworks.openai_agents import GatedRunner
from notyet.testing import Conversation, adapter_conformance

agents.set_tracing_disabled(True)

PROMPT = "Fix the parser."
SOON = 30.0  # seconds for what should take none
ENOUGH = 20  # requests to a model


def scripted(*answers, wait=0.0):
    """Return a model that gives one answer after another, the last one again and again.

    An answer is text, a call of a tool as (name, arguments), or "!" and an error's text.
    """

    def step(number):
        async def respond(_call):
            await asyncio.sleep(wait)
            answer = answers[min(number, len(answers) - 1)]
            if isinstance(answer, str) and answer.startswith("!"):
                return RuntimeError(answer[1:])
            if isinstance(answer, str):
                return spending(assistant_message(answer, item_id=f"message-{number}"))
            name, arguments = answer
            return spending(function_call(name, arguments, call_id=f"call-{number}"))

        return ModelStep.respond(respond)

    return ScriptedModel(step(number) for number in range(ENOUGH))


def spending(output):
    details = {"cached_tokens": 3, "cache_write_tokens": 1}
    usage = agents.Usage(
        requests=1, input_tokens=10, output_tokens=2, total_tokens=12, input_tokens_details=details
    )
    return ModelStep(output=[output], usage=usage)


def seen_by(model):
    """Return the text of each request to a model."""
    return tuple("\n".join(texts(call.input)) for call in model.calls)


def texts(items):
    for item in [items] if isinstance(items, str) else items:
        if isinstance(item, str):
            yield item
            continue
        content = item.get("content") or item.get("output") or ""
        if isinstance(content, str):
            yield content
        else:
            yield from (part.get("text", "") for part in content)


class Trial:
    """One run of a new agent, for the conformance suite of adapters."""

    name = "openai-agents"
    delay = 0.0  # seconds for each call of the model

    def __init__(self):
        self.folder = tempfile.mkdtemp()
        weakref.finalize(self, shutil.rmtree, self.folder)

    async def run(self, engine, answers, *, session=None):
        agent = coder(*answers, wait=self.delay)
        runner = Runner if engine is None else GatedRunner(engine)
        with self._kept(session) as kept:
            result = await runner.run(agent, PROMPT, session=kept)
        return Conversation(result.final_output, seen_by(agent.model))

    def run_sync(self, engine, answers, *, session=None):
        agent = coder(*answers, wait=self.delay)
        runner = Runner if engine is None else GatedRunner(engine)
        with self._kept(session) as kept:
            result = run_sync(runner, agent, session=kept)
        return Conversation(result.final_output, seen_by(agent.model))

    @contextmanager
    def _kept(self, session):
        if session is None:
            yield None
            return
        kept = SQLiteSession(session, Path(self.folder) / "sessions.db")
        try:
            yield kept
        finally:
            kept.close()


def coder(*answers, wait=0.0, **more):
    more.setdefault("name", "coder")
    return Agent(model=scripted(*answers, wait=wait), **more)


class Asked:
    """A gate that blocks the first stops, and keeps the events."""

    __name__ = "tests_pass"

    def __init__(self, *, blocks=0, prompt="The tests fail."):
        self.events = []
        self.blocks = blocks
        self.prompt = prompt

    def __call__(self, event):
        self.events.append(event)
        return Block(self.prompt) if len(self.events) <= self.blocks else None


def for_children(gate):
    return Gate(name="children", check=Function(gate), match=Match(events=("subagent",)))


def told():
    """Return an engine's `warn`, with the list of what it was called with."""
    warnings = []
    return warnings, warnings.append


@function_tool
def edit(path: str) -> str:
    """Edit a file."""
    return f"edited {path}"


EDIT = ("edit", {"path": "src/parser.py"})


@contextmanager
def own_loop():
    """Give `run_sync` a loop of its own: the SDK leaves that of the thread open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def run_sync(runner, agent, given=PROMPT, **options):
    with own_loop():
        return runner.run_sync(agent, given, **options)


def run_async(runner, agent, given=PROMPT, **options):
    return asyncio.run(runner.run(agent, given, **options))


async def read(stream):
    return [event async for event in stream.stream_events()]


def run_stream(runner, agent, given=PROMPT, **options):
    async def run():
        stream = runner.run_streamed(agent, given, **options)
        await read(stream)
        return stream

    return asyncio.run(run())


EVERY_RUN = [
    pytest.param(run_sync, marks=pytest.mark.holds("sync run")),
    pytest.param(run_async, marks=pytest.mark.holds("async run")),
    pytest.param(run_stream, marks=pytest.mark.holds("stream")),
]
every_run = pytest.mark.parametrize("run", EVERY_RUN)


@every_run
def test_a_blocked_agent_goes_on_with_the_reason_and_its_whole_history(run):
    gate = Asked(blocks=1)
    agent = coder(EDIT, "Done.", "Now it works.", tools=[edit])
    result = run(GatedRunner(Engine([gate])), agent)
    assert result.final_output == "Now it works."
    assert len(gate.events) == 2
    last = agent.model.calls[-1].input
    kinds = [item.get("role") or item["type"] for item in last]
    assert kinds == ["user", "function_call", "function_call_output", "assistant", "user"]
    assert "The tests fail." in last[-1]["content"]
    for text in (PROMPT, "edited src/parser.py", "Done."):
        assert text in seen_by(agent.model)[-1]
    assert result.to_input_list()[: len(last)] == last
    assert result.context_wrapper.usage.requests == 3
    assert result.last_agent is agent


@every_run
@pytest.mark.holds("sessions")
def test_a_session_keeps_the_whole_conversation_once(run):
    gate = Asked(blocks=1)
    session = SQLiteSession("s-1")
    agent = coder("Done.", "Now it works.", "The lexer too.")
    runner = GatedRunner(Engine([gate]))
    run(runner, agent, session=session)
    run(runner, agent, "And the lexer.", session=session)
    items = asyncio.run(session.get_items())
    session.close()
    assert [item["role"] for item in items] == ["user", "assistant"] * 3
    assert "The tests fail." in items[2]["content"]
    assert seen_by(agent.model)[1].count(PROMPT) == 1
    assert {event.session_id for event in gate.events} == {"s-1"}
    assert [event.task for event in gate.events] == [PROMPT, PROMPT, "And the lexer."]
    first, second, third = gate.events
    assert first.turn_id == second.turn_id != third.turn_id


@pytest.mark.holds("sessions")
def test_where_the_server_keeps_the_conversation_only_the_reason_is_sent():
    agent = coder("Done.", "Fixed.")
    runner = GatedRunner(Engine([Asked(blocks=1)]))
    run_sync(runner, agent, auto_previous_response_id=True)
    second = agent.model.calls[1]
    assert (second.previous_response_id, len(second.input)) == ("resp-789", 1)
    gate = Asked(blocks=1)
    agent = coder("Done.", "Fixed.")
    run_sync(GatedRunner(Engine([gate])), agent, conversation_id="conv-1")
    second = agent.model.calls[1]
    assert (second.conversation_id, len(second.input)) == ("conv-1", 1)
    assert "The tests fail." in second.input[0]["content"]
    assert {event.session_id for event in gate.events} == {"conv-1"}


@every_run
@pytest.mark.holds("events")
@pytest.mark.holds("usage")
def test_an_event_has_all_that_the_sdk_knows(run, tmp_path):
    gate = Asked(blocks=1)
    runner = GatedRunner(Engine([gate]), cwd=str(tmp_path))
    agent = coder(EDIT, "Done.", EDIT, "Fixed.", tools=[edit])
    config = agents.RunConfig(group_id="thread-7")
    run(runner, agent, [{"role": "user", "content": PROMPT}], run_config=config)
    first, second = gate.events
    assert (first.scope, first.host, first.agent_name) == ("agent", "openai-agents", "coder")
    assert (first.last_message, second.last_message) == ("Done.", "Fixed.")
    assert (first.task, first.cwd, first.session_id) == (PROMPT, str(tmp_path), "thread-7")
    assert (first.turns, first.tool_calls, first.tools_used) == (2, 1, ("edit",))
    assert (second.turns, second.tool_calls, second.tools_used) == (2, 1, ("edit",))
    spent = Usage(input=20, output=4, cache_read=6, cache_write=2, total=24)
    assert first.usage == spent == second.usage
    assert second.total_usage == Usage(input=40, output=8, cache_read=12, cache_write=4, total=48)
    assert (first.stop_hook_active, second.stop_hook_active) == (False, True)
    assert first.turn_id == second.turn_id
    assert first.duration_ms > 0


class Named(ScriptedModel):
    model = "scripted-1"


class Answer(BaseModel):
    path: str


@pytest.mark.holds("structured output")
def test_an_event_has_the_model_and_the_structured_output():
    gate = Asked()
    model = Named([ModelStep(output=[assistant_message('{"path": "a.py"}')])])
    agent = Agent(name="coder", model=model, output_type=AgentOutputSchema(Answer))
    run_sync(GatedRunner(Engine([gate])), agent)
    (event,) = gate.events
    assert (event.model, event.result) == ("scripted-1", Answer(path="a.py"))
    assert event.last_message == '{"path": "a.py"}'


def test_an_agent_that_ends_with_the_result_of_a_tool_has_said_that():
    gate = Asked()
    agent = coder(EDIT, tools=[edit], tool_use_behavior="stop_on_first_tool")
    assert run_sync(GatedRunner(Engine([gate])), agent).final_output == "edited src/parser.py"
    assert gate.events[0].last_message == "edited src/parser.py"


@every_run
def test_an_agent_that_cannot_pass_is_sent_back_as_often_as_the_limit_says(run):
    decisions = []
    engine = Engine([Asked(blocks=100)], limits=Limits(max_blocks=2))
    engine.on("decision", lambda _event, decision: decisions.append(decision.outcome))
    agent = coder("Done.")
    assert run(GatedRunner(engine), agent).final_output == "Done."
    assert decisions == ["blocked", "blocked", "capped"]
    assert len(agent.model.calls) == 3


@every_run
@pytest.mark.holds("halt")
def test_a_halt_ends_the_run(run):
    engine = Engine([Gate(name="enough", check=Function(lambda _event: Halt("Enough.")))])
    agent = coder("Done.")
    assert run(GatedRunner(engine), agent).final_output == "Done."
    assert len(agent.model.calls) == 1


@every_run
@pytest.mark.holds("start words")
def test_words_of_a_start_are_read_before_the_first_request_and_once_in_a_session(run):
    starts = []
    engine = Engine()
    engine.on("session_start", lambda event, _ctx: starts.append(event) or "Tests are in tests/.")
    runner, agent, session = GatedRunner(engine), coder("Done."), SQLiteSession("s-1")
    run(runner, agent, session=session)
    run(runner, agent, "And the lexer.", session=session)
    session.close()
    assert len(starts) == 1
    first, second = seen_by(agent.model)
    assert first == f"Tests are in tests/.\n\n{PROMPT}"
    assert second.count("Tests are in tests/.") == 1
    run(runner, agent, [{"role": "user", "content": PROMPT}])
    assert seen_by(agent.model)[2] == f"Tests are in tests/.\n{PROMPT}"


def broken_gate(_event):
    raise RuntimeError("the gate is broken")


@every_run
def test_a_gate_that_raises_lets_the_agent_stop_and_is_said(run):
    warnings, warn = told()
    runner = GatedRunner(Engine([broken_gate], warn=warn))
    assert run(runner, coder("Done.")).final_output == "Done."
    assert any("the gate is broken" in warning for warning in warnings)


@every_run
def test_a_ledger_that_cannot_be_used_lets_the_agent_stop_and_is_said(run, tmp_path):
    warnings, warn = told()
    (tmp_path / "stops.db").write_text("not a database")
    engine = Engine([Asked(blocks=1)], ledger=Ledger(tmp_path / "stops.db"), warn=warn)
    assert run(GatedRunner(engine), coder("Done.")).final_output == "Done."
    assert any("stops.db" in warning for warning in warnings)


@every_run
@pytest.mark.parametrize("place", ["_model_of", "_user"])
def test_a_fault_of_the_adapter_never_reaches_the_caller(run, place, monkeypatch):
    def fail(*_args):
        raise RuntimeError("no such thing")

    warnings, warn = told()
    monkeypatch.setattr(f"notyet.frameworks.openai_agents.{place}", fail)
    runner = GatedRunner(Engine([Asked(blocks=1)], warn=warn))
    assert run(runner, coder("Done.")).final_output == "Done."
    assert any(
        warning.startswith("NOT CHECKED: openai-agents: ")
        and warning.endswith("RuntimeError: no such thing")
        for warning in warnings
    )


@every_run
def test_an_error_of_the_model_is_raised_and_not_gated(run):
    gate = Asked()
    with pytest.raises(RuntimeError, match="no such model"):
        run(GatedRunner(Engine([gate])), coder("!no such model"))
    assert gate.events == []


@every_run
def test_a_run_with_too_many_turns_is_not_gated(run):
    gate = Asked()
    runner = GatedRunner(Engine([gate]))
    with pytest.raises(MaxTurnsExceeded):
        run(runner, coder(EDIT, tools=[edit]), max_turns=2)
    handlers = {"max_turns": lambda _error: "I ran out of turns."}
    agent = coder(EDIT, tools=[edit])
    result = run(runner, agent, max_turns=2, error_handlers=handlers)
    assert result.final_output == "I ran out of turns."
    assert gate.events == []


@every_run
def test_a_guardrail_that_trips_is_raised_and_not_gated(run):
    gate = Asked()

    def refuse(_context, _agent, _input):
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    agent = coder("Done.", input_guardrails=[InputGuardrail(refuse)])
    with pytest.raises(agents.InputGuardrailTripwireTriggered):
        run(GatedRunner(Engine([gate])), agent)
    assert gate.events == []


@every_run
def test_turns_count_anew_after_a_send_back(run):
    agent = coder("Done.", "Fixed.")
    result = run(GatedRunner(Engine([Asked(blocks=1)])), agent, max_turns=1)
    assert result.final_output == "Fixed."


@every_run
def test_guardrails_of_the_agent_look_at_a_send_back_too(run):
    seen = []

    def look(_context, _agent, given):
        seen.append(given)
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)

    agent = coder("Done.", "Fixed.", input_guardrails=[InputGuardrail(look)])
    run(GatedRunner(Engine([Asked(blocks=1)])), agent)
    assert len(seen) == 2
    assert "The tests fail." in seen[1][-1]["content"]


@every_run
def test_a_run_that_waits_for_an_approval_is_no_stop(run):
    gate = Asked(blocks=1)

    @function_tool(needs_approval=True)
    def publish() -> str:
        """Publish it."""
        return "published"

    agent = coder(("publish", {}), "Done.", "Fixed.", tools=[publish])
    runner = GatedRunner(Engine([gate]))
    asked = run(runner, agent)
    assert len(asked.interruptions) == 1
    assert gate.events == []
    state = asked.to_state()
    state.approve(asked.interruptions[0])
    assert run(runner, agent, state).final_output == "Fixed."
    assert len(gate.events) == 2
    assert "published" in seen_by(agent.model)[-1]


def waiting_command(tmp_path):
    """Return a gate that writes its process id and waits, and the file."""
    file = tmp_path / "pid"
    command = f"echo $$ > {file}.new && mv {file}.new {file} && exec sleep 600"
    return Gate(name="slow", check=Command(script=command)), file


async def until(condition):
    ends = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < ends
        await asyncio.sleep(0.01)


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.holds("cancel ends gates")
@pytest.mark.parametrize("streamed", [False, True])
def test_cancelling_the_run_ends_a_gate_and_its_command(tmp_path, streamed):
    gate, file = waiting_command(tmp_path)

    async def main():
        runner, agent = GatedRunner(Engine([gate])), coder("Done.")
        if streamed:
            run = asyncio.create_task(read(runner.run_streamed(agent, PROMPT)))
        else:
            run = asyncio.create_task(runner.run(agent, PROMPT))
        await until(file.exists)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        await until(lambda: is_gone(int(file.read_text())))

    asyncio.run(main())


@pytest.mark.holds("cancel ends gates")
@pytest.mark.parametrize("mode", ["immediate", "after_turn"])
def test_a_stream_that_is_cancelled_while_a_gate_runs_ends_at_once(tmp_path, mode):
    gate, file = waiting_command(tmp_path)

    async def main():
        stream = GatedRunner(Engine([gate])).run_streamed(coder("Done."), PROMPT)
        reading = asyncio.create_task(read(stream))
        await until(file.exists)
        assert not stream.is_complete
        stream.cancel(mode)
        await asyncio.wait_for(reading, SOON)
        assert stream.is_complete
        assert stream.final_output == "Done."
        await until(lambda: is_gone(int(file.read_text())))

    asyncio.run(main())


def test_a_stream_that_is_cancelled_before_its_end_is_not_gated():
    gate = Asked()

    async def main():
        stream = GatedRunner(Engine([gate])).run_streamed(coder(EDIT, tools=[edit]), PROMPT)
        async for event in stream.stream_events():
            if event.type == "run_item_stream_event":
                stream.cancel("after_turn")
        assert stream.final_output is None

    asyncio.run(main())
    assert gate.events == []


@pytest.mark.holds("stream")
def test_a_gated_stream_is_a_stream_of_the_sdk_with_the_events_of_all_passes():
    async def main():
        agent = coder("Done.", EDIT, "Fixed.", tools=[edit])
        stream = GatedRunner(Engine([Asked(blocks=1)])).run_streamed(agent, PROMPT, None, 5)
        assert isinstance(stream, RunResultStreaming)
        assert not stream.is_complete
        assert stream.max_turns == 5
        events = await read(stream)
        names = [event.name for event in events if event.type == "run_item_stream_event"]
        assert names == [
            "message_output_created", "tool_called", "tool_output", "message_output_created",
        ]  # fmt: skip
        assert stream.is_complete
        assert stream.final_output_as(str) == "Fixed."
        assert "Final output" in str(stream)
        assert await read(stream) == []
        roles = [item.get("role") or item["type"] for item in stream.to_input_list()]
        assert roles[:3] == ["user", "assistant", "user"]
        assert roles[3:] == ["function_call", "function_call_output", "assistant"]

    asyncio.run(main())


@pytest.mark.cannot_hold("stream", "a stream that is not read to its end is not gated")
def test_a_stream_that_is_not_read_to_its_end_is_not_gated():
    gate = Asked()

    async def main():
        stream = GatedRunner(Engine([gate])).run_streamed(coder("Done."), PROMPT)
        await stream.run_loop_task
        assert stream.final_output == "Done."
        assert gate.events == []
        await read(stream)
        assert len(gate.events) == 1

    asyncio.run(main())


@every_run
def test_a_gate_that_never_ends_is_left_behind_within_the_given_time(run):
    warnings, warn = told()
    blocked = threading.Event()
    gate = Gate(name="stuck", check=Function(lambda _event: blocked.wait(SOON)))
    runner = GatedRunner(Engine([gate], warn=warn), within=0.2)
    try:
        assert run(runner, coder("Done.")).final_output == "Done."
    finally:
        blocked.set()
    assert any("stuck" in warning for warning in warnings)


CLOSED_LOOP = """
import asyncio, sys, threading
sys.path[:0] = {folders!r}
sys.path.insert(0, {here!r})
from test_openai_agents import Engine, GatedRunner, PROMPT, coder, read

never = threading.Event()
loop = asyncio.new_event_loop()

def gate(_event):
    loop.call_soon_threadsafe(loop.stop)
    never.wait({patience})

async def run():
    runner = GatedRunner(Engine([gate]))
    if {streamed}:
        await read(runner.run_streamed(coder("Done."), PROMPT))
    else:
        await runner.run(coder("Done."), PROMPT)

try:
    loop.run_until_complete(run())
except RuntimeError as error:
    print(error)
loop.close()
never.set()
"""


@pytest.mark.parametrize("streamed", [False, True])
def test_a_loop_that_is_closed_in_the_middle_ends_with_a_message_and_no_hang(streamed):
    here = str(Path(__file__).parent)
    code = CLOSED_LOOP.format(folders=sys.path, here=here, patience=SOON, streamed=streamed)
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=2 * SOON
    )
    assert (ran.returncode, ran.stdout) == (0, "Event loop stopped before Future completed.\n")


def test_agents_in_threads_and_tasks_share_no_counters():
    decisions = []
    engine = Engine([Asked(blocks=100)], limits=Limits(max_blocks=2))
    engine.on(
        "decision", lambda event, decision: decisions.append((event.session_id, decision.outcome))
    )
    runner, agent = GatedRunner(engine), coder("Done.", wait=0.01)

    async def main():
        await asyncio.gather(*(runner.run(agent, PROMPT) for _ in range(2)))

    threads = [threading.Thread(target=run_async, args=(runner, agent)) for _ in range(2)]
    for thread in threads:
        thread.start()
    asyncio.run(main())
    for thread in threads:
        thread.join()
    sessions = {session for session, _outcome in decisions}
    assert len(sessions) == 4
    for session in sessions:
        outcomes = [outcome for other, outcome in decisions if other == session]
        assert outcomes == ["blocked", "blocked", "capped"]


@every_run
@pytest.mark.holds("handoffs")
def test_the_agent_that_took_over_is_sent_back(run):
    gate = Asked(blocks=1)
    tester = coder("Tested.", "Tested again.", name="tester")
    first = coder(("transfer_to_tester", {}), handoffs=[handoff(tester)])
    result = run(GatedRunner(Engine([gate])), first)
    assert result.final_output == "Tested again."
    assert result.last_agent is tester
    assert [(event.scope, event.agent_name) for event in gate.events] == [("agent", "tester")] * 2
    assert PROMPT in seen_by(tester.model)[1]
    assert len(first.model.calls) == 1


def researcher_as_tool(researcher):
    return researcher.as_tool("research", "Find something out.")


def researcher_as_streamed_tool(researcher):
    return researcher.as_tool("research", "Find something out.", on_stream=lambda _event: None)


@every_run
@pytest.mark.holds("subagents")
@pytest.mark.parametrize("make", [researcher_as_tool, researcher_as_streamed_tool])
def test_an_agent_that_is_a_tool_is_a_subagent_with_counters_of_its_own(run, make):
    main_gate, child_gate = Asked(blocks=1), Asked(blocks=1, prompt="Name your source.")
    runner = GatedRunner(Engine([main_gate, for_children(child_gate)]))
    researcher = coder("It is 42.", "It is 42, says the manual.", name="researcher")
    call = ("research", {"input": "How much?"})
    agent = coder(call, "Done.", "Better.", tools=[make(researcher)])
    result = run(runner, agent, run_config=agents.RunConfig(group_id="thread-7"))
    assert result.final_output == "Better."
    events = child_gate.events
    assert [(event.scope, event.agent_type) for event in events] == [("subagent", "researcher")] * 2
    assert {event.parent_session_id for event in events} == {"thread-7"}
    assert events[0].session_id == events[1].session_id != "thread-7"
    assert (events[0].task, events[0].total_usage.input) == ("How much?", 10)
    assert "says the manual" in seen_by(agent.model)[1]
    assert [event.scope for event in main_gate.events] == ["agent", "agent"]
    assert main_gate.events[0].tools_used == ("research",)
    assert main_gate.events[0].usage.input == 20
    assert result.context_wrapper.usage.requests == 5  # as the SDK counts: with its subagents


@pytest.mark.holds("subagents")
def test_an_agent_that_a_tool_runs_with_the_gated_runner_is_a_subagent():
    gate = Asked()
    runner = GatedRunner(Engine([for_children(gate)]))

    @function_tool
    async def research(question: str) -> str:
        """Find something out."""
        return (await runner.run(coder("It is 42.", name="researcher"), question)).final_output

    call = ("research", {"question": "How much?"})
    run_sync(runner, coder(call, "Done.", tools=[research]))
    assert [(event.scope, event.agent_name) for event in gate.events] == [
        ("subagent", "researcher")
    ]


def test_agents_of_guardrails_and_of_ungated_runs_are_not_gated():
    gate = Asked(blocks=100)
    judge = coder("Fine.", name="judge")

    async def ask_judge(_context, _agent, given):
        await Runner.run(judge, given)
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)

    runner = GatedRunner(Engine([for_children(gate)]))
    run_sync(runner, coder("Done.", input_guardrails=[InputGuardrail(ask_judge)]))
    researcher = coder("It is 42.", name="researcher")
    tools = [researcher_as_tool(researcher)]
    asyncio.run(Runner.run(coder(("research", {"input": "?"}), "Done.", tools=tools), PROMPT))
    assert len(judge.model.calls) == len(researcher.model.calls) == 1
    assert gate.events == []


def test_the_runner_of_the_sdk_is_wrapped_once():
    run_sync(GatedRunner(Engine()), coder("Done."))
    first = get_default_agent_runner()
    run_sync(GatedRunner(Engine()), coder("Done."))
    assert get_default_agent_runner() is first


@pytest.mark.parametrize("name", ["run", "run_sync", "run_streamed"])
def test_a_gated_runner_takes_what_runner_takes(name):
    theirs = inspect.signature(getattr(Runner, name)).parameters
    options = {
        option: parameter.default
        for option, parameter in theirs.items()
        if parameter.default is not inspect.Parameter.empty
    }
    assert len(theirs) - len(options) == 2
    run = {"run": run_async, "run_sync": run_sync, "run_streamed": run_stream}[name]
    assert run(GatedRunner(Engine()), coder("Done."), **options).final_output == "Done."
    with pytest.raises(TypeError, match="no_such_option"):
        run(GatedRunner(Engine()), coder("Done."), no_such_option=1)


def test_the_gates_of_a_project_send_its_agents_back(tmp_path):
    project = hook_runs.new_project(
        tmp_path / "p", hook_runs.gate("test -e fixed || { echo not fixed; exit 1; }")
    )

    @function_tool
    def fix() -> str:
        """Fix it."""
        (project / "fixed").touch()
        return "fixed"

    runner = GatedRunner(Engine.from_project(str(project)), cwd=str(project))
    agent = coder("Done.", ("fix", {}), "Fixed.", tools=[fix])
    assert run_sync(runner, agent).final_output == "Fixed."
    assert "not fixed" in seen_by(agent.model)[1]


@pytest.mark.holds("sync run")
@pytest.mark.holds("async run")
def test_the_adapter_keeps_every_promise():
    adapter_conformance(Trial())


def test_only_an_engine_is_taken():
    with pytest.raises(TypeError, match="engine is an Engine"):
        GatedRunner([lambda _event: None])


def test_the_page_about_the_sdk_runs_as_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "openai-agents.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    names = {}
    for block in blocks:
        with own_loop():
            exec(block, names)
