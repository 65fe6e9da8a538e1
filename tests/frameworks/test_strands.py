"""The adapter for Strands, driven by the real framework with a scripted model."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from pathlib import Path

import pytest

pytest.importorskip("strands")

from pydantic import BaseModel
from strands import Agent, tool
from strands.hooks import AfterInvocationEvent, BeforeInvocationEvent, BeforeToolCallEvent
from strands.models import Model
from strands.multiagent import GraphBuilder, Swarm
from strands.session import FileSessionManager
from strands.types.agent import ConcurrentInvocationMode

import hook_runs
from notyet import Block, Engine, Function, Gate, Halt, Ledger, Limits, Match, Usage
from notyet.core.gate import Command
from notyet.frameworks.strands import GateHook
from notyet.testing import Conversation, adapter_conformance

PROMPT = "Fix the parser."
SOON = 30.0  # seconds for what should take none


class Scripted(Model):
    """Gives one answer after another, the last one again and again.

    An answer is text, a call of a tool as (name, input), or "!" and an error's text.
    """

    def __init__(self, *answers, wait=0.0):
        self.answers = answers
        self.wait = wait
        self.seen: list[str] = []  # the text of each request
        self.requests: list[list] = []

    def get_config(self):
        return {"model_id": "scripted-1"}

    def update_config(self, **_config):
        raise NotImplementedError

    async def structured_output(self, output_model, prompt, system_prompt=None, **_more):
        yield {"output": output_model(path="src/parser.py")}

    async def stream(self, messages, *_args, **_more):
        number = len(self.seen)
        self.requests.append([dict(message) for message in messages])
        self.seen.append("\n".join(texts(messages)))
        await asyncio.sleep(self.wait)
        answer = self.answers[min(number, len(self.answers) - 1)]
        if isinstance(answer, str) and answer.startswith("!"):
            raise RuntimeError(answer[1:])
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(answer, str):
            yield {"contentBlockDelta": {"delta": {"text": answer}}}
        else:
            name, given = answer
            call = {"name": name, "toolUseId": f"call-{number}"}
            yield {"contentBlockStart": {"start": {"toolUse": call}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": given}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(answer, str) else "tool_use"}}
        usage = {"inputTokens": 10, "outputTokens": 2, "totalTokens": 15, "cacheReadInputTokens": 3}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}


def texts(messages):
    for message in messages:
        for block in message["content"]:
            if "text" in block:
                yield block["text"]
            for part in block.get("toolResult", {}).get("content", ()):
                yield str(part)


def agent_with(hook, *answers, wait=0.0, **more):
    more.setdefault("callback_handler", None)
    hooks = [*more.pop("hooks", ()), hook] if hook else more.pop("hooks", [])
    return Agent(model=Scripted(*answers, wait=wait), hooks=hooks, **more)


class Trial:
    """One run of a new agent, for the conformance suite of adapters."""

    name = "strands"
    delay = 0.0  # seconds for each call of the model

    def __init__(self):
        self.folder = tempfile.mkdtemp()
        weakref.finalize(self, shutil.rmtree, self.folder)

    async def run(self, engine, answers, *, session=None):
        agent = self._agent(engine, answers, session)
        return Conversation(said(await agent.invoke_async(PROMPT)), tuple(agent.model.seen))

    def run_sync(self, engine, answers, *, session=None):
        agent = self._agent(engine, answers, session)
        return Conversation(said(agent(PROMPT)), tuple(agent.model.seen))

    def _agent(self, engine, answers, session):
        hook = GateHook(engine) if engine is not None else None
        manager = None
        if session:
            manager = FileSessionManager(session_id=session, storage_dir=self.folder)
        return agent_with(hook, *answers, wait=self.delay, session_manager=manager)


def said(result):
    return str(result).strip()


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


def everywhere(gate):
    """Return a gate that applies to subagents too."""
    return Gate(name="tests_pass", check=Function(gate), match=Match(events=("agent", "subagent")))


def told():
    """Return an engine's `warn`, with the list of what it was called with."""
    warnings = []
    return warnings, warnings.append


@tool
def edit(path: str) -> str:
    """Edit a file.

    Args:
        path: Its path.
    """
    return f"edited {path}"


EDIT = ("edit", '{"path": "src/parser.py"}')


@pytest.mark.holds("sync run")
@pytest.mark.holds("async run")
def test_the_adapter_keeps_every_promise():
    adapter_conformance(Trial())


def run_sync(agent):
    return said(agent(PROMPT))


def run_async(agent):
    async def run():
        return said(await agent.invoke_async(PROMPT))

    return asyncio.run(run())


def run_stream(agent):
    async def run():
        results = [event async for event in agent.stream_async(PROMPT) if "result" in event]
        assert len(results) == 1
        return said(results[0]["result"])

    return asyncio.run(run())


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(run_sync, marks=pytest.mark.holds("sync run")),
        pytest.param(run_async, marks=pytest.mark.holds("async run")),
        pytest.param(run_stream, marks=pytest.mark.holds("stream")),
    ],
)
def test_a_blocked_agent_goes_on_with_the_reason_and_its_whole_history(run):
    gate = Asked(blocks=1)
    agent = agent_with(GateHook(Engine([gate])), EDIT, "Done.", "Now it works.", tools=[edit])
    assert run(agent) == "Now it works."
    assert len(gate.events) == 2
    assert [message["role"] for message in agent.messages] == [
        "user", "assistant", "user", "assistant", "user", "assistant",
    ]  # fmt: skip
    last = agent.model.seen[-1]
    for text in (PROMPT, "edited src/parser.py", "Done.", "The tests fail."):
        assert text in last
    assert agent.messages[-2]["role"] == "user"
    assert "The tests fail." in agent.messages[-2]["content"][0]["text"]


@pytest.mark.holds("events")
@pytest.mark.holds("usage")
def test_an_event_has_all_that_strands_knows(tmp_path):
    gate = Asked(blocks=1)
    hook = GateHook(Engine([gate]), cwd=str(tmp_path))
    agent = agent_with(hook, EDIT, "Done.", EDIT, "Fixed.", tools=[edit], name="coder")
    agent(PROMPT)
    first, second = gate.events
    assert (first.scope, first.host, first.agent_name) == ("agent", "strands", "coder")
    assert (first.last_message, second.last_message) == ("Done.", "Fixed.")
    assert (first.task, first.model, first.cwd) == (PROMPT, "scripted-1", str(tmp_path))
    assert (first.turns, first.tool_calls, first.tools_used) == (2, 1, ("edit",))
    assert (second.turns, second.tool_calls, second.tools_used) == (2, 1, ("edit",))
    assert first.usage == Usage(input=20, output=4, cache_read=6, total=30) == second.usage
    assert second.total_usage == Usage(input=40, output=8, cache_read=12, total=60)
    assert (first.session_id, first.turn_id) == (second.session_id, second.turn_id)
    assert (first.stop_hook_active, second.stop_hook_active) == (False, True)
    assert first.duration_ms > 0
    assert first.session_id
    agent("And the lexer.")
    third = gate.events[2]
    assert (third.session_id, third.task) == (first.session_id, "And the lexer.")
    assert third.turn_id != first.turn_id
    assert (third.turns, third.tools_used, third.stop_hook_active) == (1, (), False)


@pytest.mark.holds("sessions")
def test_the_session_is_that_of_the_session_manager(tmp_path):
    gate = Asked()

    def run(agent_id=None):
        manager = FileSessionManager(session_id="s-1", storage_dir=str(tmp_path))
        agent_with(GateHook(Engine([gate])), "Done.", session_manager=manager, agent_id=agent_id)(
            PROMPT
        )

    run()
    run("reviewer")
    assert [event.session_id for event in gate.events] == ["s-1", "s-1/reviewer"]


@pytest.mark.holds("sessions")
def test_an_agent_whose_messages_were_cleared_begins_a_new_session():
    gate = Asked()
    agent = agent_with(GateHook(Engine([gate])), "Done.")
    agent(PROMPT)
    agent(PROMPT)
    agent.messages.clear()
    agent(PROMPT)
    first, second, third = (event.session_id for event in gate.events)
    assert first == second != third


def test_an_agent_that_cannot_pass_is_sent_back_as_often_as_the_limit_says():
    gate = Asked(blocks=100)
    decisions = []
    engine = Engine([gate], limits=Limits(max_blocks=2))
    engine.on("decision", lambda _event, decision: decisions.append(decision.outcome))
    agent = agent_with(GateHook(engine), "Done.")
    assert run_sync(agent) == "Done."
    assert decisions == ["blocked", "blocked", "capped"]
    assert len(agent.model.seen) == 3


@pytest.mark.holds("halt")
def test_a_halt_ends_the_run():
    agent = agent_with(
        GateHook(Engine([Gate(name="g", check=Function(lambda _: Halt("Enough.")))])), "Done."
    )
    assert run_sync(agent) == "Done."
    assert len(agent.model.seen) == 1


@pytest.mark.holds("start words")
def test_words_of_a_start_are_read_before_the_first_request_and_once_in_a_session():
    starts = []
    engine = Engine()
    engine.on("session_start", lambda event, _ctx: starts.append(event) or "Tests are in tests/.")
    agent = agent_with(GateHook(engine), "Done.")
    agent(PROMPT)
    agent("And the lexer.")
    assert len(starts) == 1
    first = agent.messages[0]
    assert [block["text"] for block in first["content"]] == ["Tests are in tests/.", PROMPT]
    assert agent.model.seen[1].count("Tests are in tests/.") == 1


def broken_gate(_event):
    raise RuntimeError("the gate is broken")


def test_a_gate_that_raises_lets_the_agent_stop_and_is_said():
    warnings, warn = told()
    agent = agent_with(GateHook(Engine([broken_gate], warn=warn)), "Done.")
    assert run_sync(agent) == "Done."
    assert any("the gate is broken" in warning for warning in warnings)


def test_a_ledger_that_cannot_be_used_lets_the_agent_stop_and_is_said(tmp_path):
    warnings, warn = told()
    (tmp_path / "stops.db").write_text("not a database")
    engine = Engine([Asked(blocks=1)], ledger=Ledger(tmp_path / "stops.db"), warn=warn)
    agent = agent_with(GateHook(engine), "Done.")
    assert run_sync(agent) == "Done."
    assert any("stops.db" in warning for warning in warnings)


@pytest.mark.parametrize("event", ["before", "tool", "after"])
def test_a_fault_of_the_adapter_never_reaches_strands(event, monkeypatch):
    warnings, warn = told()
    hook = GateHook(Engine([Asked()], warn=warn))

    class Broken(dict):
        def get(self, *_args):
            raise RuntimeError("no turn here")

        __getitem__ = get

    agent = agent_with(hook, EDIT, "Done.", tools=[edit])
    if event == "before":
        monkeypatch.setattr(hook, "_turns", Broken())
    elif event == "tool":
        monkeypatch.setattr(hook, "_turns", type("Half", (dict,), {"__getitem__": Broken.get})())
    else:
        monkeypatch.setattr(Scripted, "get_config", Broken.get)
    assert run_sync(agent) == "Done."
    assert any(
        warning.startswith("NOT CHECKED: strands: RuntimeError: no turn here")
        for warning in warnings
    )


def test_an_error_of_the_model_is_raised_and_not_gated():
    gate = Asked()
    agent = agent_with(GateHook(Engine([gate])), "!no such model")
    with pytest.raises(RuntimeError, match="no such model"):
        agent(PROMPT)
    assert gate.events == []
    agent.model.answers = ("Done.",)
    agent("Again.")  # is a turn of its own
    assert [event.task for event in gate.events] == ["Again."]


def test_a_limit_of_strands_is_not_a_stop():
    gate = Asked()
    agent = agent_with(GateHook(Engine([gate])), EDIT, tools=[edit])
    assert agent(PROMPT, limits={"turns": 2}).stop_reason == "limit_turns"
    assert gate.events == []


def test_the_limits_of_an_invocation_count_its_send_backs():
    gate = Asked(blocks=100)
    agent = agent_with(GateHook(Engine([gate])), "Done.")
    assert agent(PROMPT, limits={"turns": 2}).stop_reason == "limit_turns"
    assert len(gate.events) == len(agent.model.seen) == 2


def test_runs_of_one_agent_at_the_same_time_end_too():
    gate = Asked(blocks=100)
    mode = ConcurrentInvocationMode.UNSAFE_REENTRANT
    agent = agent_with(
        GateHook(Engine([gate])), "Done.", wait=0.01, concurrent_invocation_mode=mode
    )

    async def main():
        await asyncio.gather(*(agent.invoke_async(PROMPT) for _ in range(2)))

    asyncio.run(main())
    assert len(agent.model.seen) <= 2 * 4


def test_a_cancelled_agent_is_not_gated():
    gate = Asked()
    agent = agent_with(GateHook(Engine([gate])), EDIT, tools=[edit])
    signal = threading.Event()
    signal.set()
    assert agent(PROMPT, cancel_signal=signal).stop_reason == "cancelled"
    assert gate.events == []


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
def test_cancelling_the_run_ends_a_gate_and_its_command(tmp_path):
    gate, file = waiting_command(tmp_path)

    async def main():
        agent = agent_with(GateHook(Engine([gate])), "Done.")
        run = asyncio.create_task(agent.invoke_async(PROMPT))
        await until(file.exists)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        await until(lambda: is_gone(int(file.read_text())))

    asyncio.run(main())


@pytest.mark.holds("cancel ends gates")
def test_an_agent_that_is_cancelled_while_a_gate_runs_returns_at_once(tmp_path):
    gate, file = waiting_command(tmp_path)
    agent = agent_with(GateHook(Engine([gate])), "Done.")
    results = []
    thread = threading.Thread(target=lambda: results.append(agent(PROMPT)))
    thread.start()
    asyncio.run(until(file.exists))
    agent.cancel()
    thread.join(SOON)
    assert not thread.is_alive()
    assert said(results[0]) == "Done."
    asyncio.run(until(lambda: is_gone(int(file.read_text()))))


@pytest.mark.holds("sync run")
def test_a_gate_that_never_ends_is_left_behind_within_the_given_time():
    warnings, warn = told()
    blocked = threading.Event()
    gate = Gate(name="stuck", check=Function(lambda _event: blocked.wait(SOON)))
    agent = agent_with(GateHook(Engine([gate], warn=warn), within=0.2), "Done.")
    try:
        assert run_sync(agent) == "Done."
    finally:
        blocked.set()
    assert any("stuck" in warning for warning in warnings)


CLOSED_LOOP = """
import asyncio, sys, threading
sys.path[:0] = {folders!r}
sys.path.insert(0, {here!r})
from test_strands import Engine, GateHook, PROMPT, agent_with

asked, never = threading.Event(), threading.Event()
loop = asyncio.new_event_loop()

def gate(_event):
    loop.call_soon_threadsafe(loop.stop)
    never.wait({patience})

agent = agent_with(GateHook(Engine([gate])), "Done.")
try:
    loop.run_until_complete(agent.invoke_async(PROMPT))
except RuntimeError as error:
    print(error)
loop.close()
never.set()
"""


def test_a_loop_that_is_closed_in_the_middle_ends_with_a_message_and_no_hang():
    code = CLOSED_LOOP.format(folders=sys.path, here=str(Path(__file__).parent), patience=SOON)
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=2 * SOON
    )
    assert (ran.returncode, ran.stdout) == (0, "Event loop stopped before Future completed.\n")


def test_agents_in_threads_and_tasks_share_no_counters():
    gate = Asked(blocks=100)
    decisions = []
    engine = Engine([gate], limits=Limits(max_blocks=2))
    engine.on(
        "decision", lambda event, decision: decisions.append((event.session_id, decision.outcome))
    )
    hook = GateHook(engine)
    agents = [agent_with(hook, "Done.", wait=0.01) for _ in range(4)]

    async def main():
        await asyncio.gather(*(agent.invoke_async(PROMPT) for agent in agents[:2]))

    threads = [threading.Thread(target=run_sync, args=(agent,)) for agent in agents[2:]]
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


def ask_researcher(hook):
    """Return a tool that runs an agent of its own, as many programs have it."""

    @tool
    def research(question: str) -> str:
        """Find something out.

        Args:
            question: What.
        """
        return str(agent_with(hook, "It is 42.", name="researcher")(question))

    return research


def researcher_as_tool(hook):
    return agent_with(hook, "It is 42.", name="research", description="Finds out.").as_tool()


@pytest.mark.holds("subagents")
@pytest.mark.parametrize("make", [researcher_as_tool, ask_researcher])
@pytest.mark.parametrize("executor", ["concurrent", "sequential"])
def test_an_agent_in_a_tool_is_a_subagent_with_counters_of_its_own(make, executor):
    from strands.tools.executors import ConcurrentToolExecutor, SequentialToolExecutor

    executors = {"concurrent": ConcurrentToolExecutor, "sequential": SequentialToolExecutor}
    main_gate, child_gate = Asked(blocks=1), Asked(blocks=1, prompt="Name your source.")
    children = Gate(name="source", check=Function(child_gate), match=Match(events=("subagent",)))
    hook = GateHook(Engine([main_gate, children]))
    child = make(hook)
    name = child.tool_name
    given = '{"input": "How much?"}' if make is researcher_as_tool else '{"question": "How much?"}'
    agent = agent_with(
        hook, (name, given), "Done.", "Better.", tools=[child], tool_executor=executors[executor]()
    )
    assert run_sync(agent) == "Better."
    events = child_gate.events
    assert [event.scope for event in events] == ["subagent", "subagent"]
    assert {event.parent_session_id for event in events} == {main_gate.events[0].session_id}
    assert events[0].session_id != main_gate.events[0].session_id
    assert events[0].agent_type in {"research", "researcher"}
    assert events[0].task == "How much?"
    assert [event.scope for event in main_gate.events] == ["agent", "agent"]
    assert main_gate.events[0].tools_used == (name,)
    other = agent_with(hook, "Done.")
    other(PROMPT)  # afterwards, in the same thread: not a subagent
    assert main_gate.events[-1].scope == "agent"


def test_an_agent_that_runs_after_another_in_the_same_task_is_not_its_subagent():
    gate = Asked()
    hook = GateHook(Engine([everywhere(gate)]))

    async def main():
        async for event in agent_with(hook, EDIT, "Done.", tools=[edit]).stream_async(PROMPT):
            if "result" in event:
                break  # the stream is not read to its end
        await agent_with(hook, "Done.").invoke_async(PROMPT)

    asyncio.run(main())
    assert [event.scope for event in gate.events] == ["agent", "agent"]


@pytest.mark.holds("handoffs")
def test_each_agent_of_a_graph_is_gated():
    gate = Asked(blocks=1)
    hook = GateHook(Engine([gate]))
    writer = agent_with(hook, "Draft.", "Better draft.", name="writer")
    editor = agent_with(hook, "Edited.", name="editor")
    builder = GraphBuilder()
    builder.add_node(writer, "writer")
    builder.add_node(editor, "editor")
    builder.add_edge("writer", "editor")
    builder.set_max_node_executions(9)
    builder.build()(PROMPT)
    assert [event.agent_name for event in gate.events] == ["writer", "writer", "editor"]
    assert "Better draft." in editor.model.seen[0]
    assert gate.events[0].session_id != gate.events[2].session_id


@pytest.mark.holds("handoffs")
def test_a_swarm_is_gated_where_it_ends_and_not_at_a_handoff():
    gate = Asked(blocks=1)
    hook = GateHook(Engine([gate]))
    handoff = ("handoff_to_agent", '{"agent_name": "tester", "message": "Test it."}')
    coder = agent_with(hook, handoff, "Handed off.", name="coder")
    tester = agent_with(hook, "Tested.", "Tested again.", name="tester")
    Swarm([coder, tester])(PROMPT)
    assert [event.agent_name for event in gate.events] == ["tester", "tester"]
    assert len(tester.model.seen) == 2


def test_a_handoff_that_failed_is_no_way_out():
    gate = Asked()
    nobody = ("handoff_to_agent", '{"agent_name": "nobody", "message": "Test it."}')
    coder = agent_with(GateHook(Engine([gate])), nobody, "Handed off.", name="coder")
    Swarm([coder])(PROMPT)
    assert [event.agent_name for event in gate.events] == ["coder"]


def test_the_stop_tool_is_a_stop_like_any_other():
    stop = pytest.importorskip("strands.vended_tools.stop").stop  # since 1.62
    gate = Asked(blocks=1)
    stopping = ("stop", '{"message": "I am done."}')
    agent = agent_with(GateHook(Engine([gate])), stopping, EDIT, "Fixed.", tools=[stop, edit])
    assert run_sync(agent) == "Fixed."
    assert [event.last_message for event in gate.events] == ["I am done.", "Fixed."]
    assert gate.events[1].tools_used == ("edit",)


class Answer(BaseModel):
    path: str


@pytest.mark.holds("structured output")
def test_an_agent_with_structured_output_is_gated_and_its_result_is_in_the_event():
    gate = Asked(blocks=1)
    answers = [("Answer", '{"path": "a.py"}'), ("Answer", '{"path": "b.py"}')]
    agent = agent_with(GateHook(Engine([gate])), *answers, structured_output_model=Answer)
    assert agent(PROMPT).structured_output == Answer(path="b.py")
    assert [event.result for event in gate.events] == [Answer(path="a.py"), Answer(path="b.py")]
    assert gate.events[0].last_message == '{"path":"a.py"}'


@pytest.mark.cannot_hold("structured output", "hooks of `Agent.structured_output()` get no result")
def test_the_deprecated_structured_output_is_not_gated_and_this_is_said_once():
    warnings, warn = told()
    gate = Asked(blocks=1)
    agent = agent_with(GateHook(Engine([gate], warn=warn)), "Done.")
    for _ in range(2):
        with pytest.warns(DeprecationWarning, match="deprecated"):
            assert agent.structured_output(Answer, PROMPT) == Answer(path="src/parser.py")
    assert gate.events == []
    assert [warning for warning in warnings if "structured_output" in warning] == [
        "NOT CHECKED: strands: Agent.structured_output() cannot be sent back; "
        "pass structured_output_model to the agent instead"
    ]


def test_a_run_that_waits_for_its_user_is_no_stop_and_goes_on_as_the_same_turn():
    gate = Asked()

    def approve(event: BeforeToolCallEvent) -> None:
        event.interrupt("approval", reason="May I?")

    hook = GateHook(Engine([gate]))
    agent = agent_with(hook, EDIT, "Done.", tools=[edit], hooks=[approve])
    asked = agent(PROMPT)
    assert asked.stop_reason == "interrupt"
    assert gate.events == []
    answer = {"interruptResponse": {"interruptId": asked.interrupts[0].id, "response": "yes"}}
    assert said(agent([answer])) == "Done."
    (event,) = gate.events
    assert (event.task, event.turns) == (PROMPT, 3)
    assert event.total_usage == Usage(input=20, output=4, cache_read=6, total=30)


def test_an_agent_that_another_hook_sends_on_has_not_stopped():
    gate = Asked()
    passes = []

    def go_on(event: AfterInvocationEvent) -> None:
        passes.append(event)
        if len(passes) == 1:
            event.resume = "And the lexer."

    agent = agent_with(None, "Done.", "Both done.", hooks=[GateHook(Engine([gate])), go_on])
    assert run_sync(agent) == "Both done."
    assert [(event.task, event.last_message) for event in gate.events] == [(PROMPT, "Both done.")]


def test_an_agent_that_waits_for_background_tools_has_not_stopped():
    gate = Asked(blocks=1)

    @tool
    async def build() -> str:
        """Build it."""
        await asyncio.sleep(0.2)
        return "built"

    answers = [("build", "{}"), "It builds.", "It is built.", "And tested."]
    agent = agent_with(
        GateHook(Engine([gate])), *answers, tools=[build], background_tasks={"always": ["build"]}
    )
    assert run_sync(agent) == "And tested."
    assert [event.last_message for event in gate.events] == ["It is built.", "And tested."]


def test_an_invocation_that_another_hook_refuses_is_no_stop():
    gate = Asked()

    def refuse(event: BeforeInvocationEvent) -> None:
        event.cancel = "Not today."

    agent = agent_with(GateHook(Engine([gate])), "Done.", hooks=[refuse])
    assert run_sync(agent) == "Not today."
    assert gate.events == []


def test_the_gates_of_a_project_send_its_agents_back(tmp_path):
    project = hook_runs.new_project(
        tmp_path / "p", hook_runs.gate("test -e fixed || { echo not fixed; exit 1; }")
    )
    engine = Engine.from_project(str(project))

    @tool
    def fix() -> str:
        """Fix it."""
        (project / "fixed").touch()
        return "fixed"

    hook = GateHook(engine, cwd=str(project))
    agent = agent_with(hook, "Done.", ("fix", "{}"), "Fixed.", tools=[fix])
    assert run_sync(agent) == "Fixed."
    assert "not fixed" in agent.model.seen[1]


def test_only_an_engine_is_taken():
    with pytest.raises(TypeError, match="engine is an Engine"):
        GateHook([lambda _event: None])


def test_the_page_about_strands_runs_as_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "strands.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    names = {}
    for block in blocks:
        exec(block, names)
