"""Agents of LangChain, LangGraph and deepagents with `GateMiddleware` and a scripted model."""

import asyncio
import threading
import time
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("deepagents")
pytest.importorskip("langchain")

from deepagents import create_deep_agent
from deepagents.middleware.subagents import GENERAL_PURPOSE_SUBAGENT
from langchain.agents import create_agent
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    SummarizationMiddleware,
    ToolCallLimitMiddleware,
)
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import tool
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send

from adapter_gates import Script, SlowCommand, run_page
from hook_runs import gate, new_project
from notyet import Engine, Ledger
from notyet.core.gate import Function, Starter
from notyet.frameworks.langchain import GateMiddleware
from notyet.testing import Conversation, adapter_conformance
from support import wait_for

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:google.*")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """Agents work in a folder without files, so that stops are quick to look at."""
    monkeypatch.chdir(tmp_path)


class Model(BaseChatModel):
    """Gives one answer after another, the last one again and again.

    A tuple is calls of tools, as `(name, arguments)`; text that starts with "!" is an error.
    """

    answers: list[Any]
    delay: float = 0.0
    seen: list[str] = []  # noqa: RUF012  # pydantic copies it

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **options):
        return self

    def _next(self, messages):
        answer = self.answers[min(len(self.seen), len(self.answers) - 1)]
        self.seen.append(text_of(messages))
        if isinstance(answer, str) and answer.startswith("!"):
            raise RuntimeError(answer[1:])
        calls = [] if isinstance(answer, str) else answer
        spent = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}
        message = AIMessage(
            answer if isinstance(answer, str) else "",
            tool_calls=[
                {"name": name, "args": arguments, "id": f"{len(self.seen)}-{index}"}
                for index, (name, arguments) in enumerate(calls)
            ],
            usage_metadata=spent | {"input_token_details": {"cache_read": 4}},
            response_metadata={"model_name": "scripted-1"},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(self, messages, stop=None, run_manager=None, **options):
        time.sleep(self.delay)
        return self._next(messages)

    async def _agenerate(self, messages, stop=None, run_manager=None, **options):
        await asyncio.sleep(self.delay)
        return self._next(messages)


def scripted(*answers, delay=0.0):
    return Model(answers=list(answers), delay=delay)


def text_of(messages):
    return "\n".join(message.text for message in messages)


def agent_of(script, *answers, tools=(), middleware=(), **options):
    """Return an agent that an engine gates, and its model."""
    model = scripted(*answers)
    gated = [*middleware, GateMiddleware(script.engine)]
    return create_agent(model, list(tools), middleware=gated, **options), model


def on(thread):
    return {"configurable": {"thread_id": thread}}


def said(result):
    return result["messages"][-1].text


@tool
def look() -> str:
    """Look around."""
    return "nothing"


class Trial:
    """One run of a new agent, for the conformance suite and the benchmark."""

    name = "langchain"
    delay = 0.0

    def _agent(self, engine, answers):
        model = scripted(*answers, delay=self.delay)
        middleware = [GateMiddleware(engine)] if engine else []
        return create_agent(model, middleware=middleware), model

    async def run(self, engine, answers, *, session=None):
        agent, model = self._agent(engine, answers)
        result = await agent.ainvoke({"messages": "The task."}, on(session) if session else None)
        return Conversation(said(result), tuple(model.seen))

    def run_sync(self, engine, answers, *, session=None):
        agent, model = self._agent(engine, answers)
        result = agent.invoke({"messages": "The task."}, on(session) if session else None)
        return Conversation(said(result), tuple(model.seen))


@pytest.mark.holds("sync run")
@pytest.mark.holds("async run")
@pytest.mark.holds("sessions")
@pytest.mark.holds("start words")
@pytest.mark.holds("cancel ends gates")
@pytest.mark.holds("halt")
def test_the_adapter_keeps_the_promises_of_all_adapters():
    adapter_conformance(Trial())


@pytest.mark.holds("stream")
def test_a_streamed_run_goes_on_after_the_answer_that_was_blocked():
    script = Script("Try again.")
    agent, _ = agent_of(script, "First.", "Second.")
    states = list(agent.stream({"messages": "Go."}, stream_mode="values"))
    assert said(states[-1]) == "Second."
    assert "notyet_run" not in agent.invoke({"messages": "Go."})
    assert script.outcomes[:2] == ["blocked", "passed"]


@pytest.mark.holds("events")
@pytest.mark.holds("usage")
@pytest.mark.parametrize("is_async", [False, True])
def test_a_stop_event_has_what_the_framework_knows(is_async):
    script = Script("Look once more.")
    call = ("look", {})
    agent, _ = agent_of(
        script, (call, call), "Done.", (call,), "Done again.", tools=[look], name="worker"
    )
    given = {"messages": "Find it."}
    if is_async:
        result = asyncio.run(agent.ainvoke(given, on("talk")))
    else:
        result = agent.invoke(given, on("talk"))
    first, second = script.events
    assert (first.host, first.session_id, first.agent_name) == ("langchain", "talk", "worker")
    assert (first.task, first.last_message) == ("Find it.", "Done.")
    assert (first.turns, first.tool_calls, first.tools_used) == (2, 2, ("look",))
    assert (first.usage.input, first.usage.cache_read, first.usage.output) == (12, 8, 6)
    assert first.usage.total == first.total_usage.total == 26
    assert (first.model, first.scope, first.parent_session_id) == ("scripted-1", "agent", None)
    assert (second.turns, second.tool_calls, second.tools_used) == (2, 1, ("look",))
    assert (second.usage.total, second.total_usage.total) == (26, 52)
    assert second.turn_id == first.turn_id
    assert (second.last_message, said(result)) == ("Done again.", "Done again.")


@pytest.mark.holds("sessions")
def test_a_thread_is_one_session_and_each_run_a_turn():
    script = Script("Try again.")
    agent, model = agent_of(script, "One.", "Two.", "Three.", "Four.", checkpointer=InMemorySaver())
    for task in ("Go.", "Go on."):
        agent.invoke({"messages": task}, on("talk"))
    assert script.outcomes == ["blocked", "passed"] * 2
    assert {event.session_id for event in script.events} == {"talk"}
    assert len({event.turn_id for event in script.events}) == 2
    assert model.seen[3] == "Go.\nOne.\nTry again.\nTwo.\nGo on.\nThree.\nTry again."


@pytest.mark.holds("sessions")
def test_a_run_that_another_process_resumes_is_the_same_turn(tmp_path):
    saver, ledger = InMemorySaver(), Ledger(tmp_path / "ledger.db")

    @tool
    def remove(name: str) -> str:
        """Remove a table."""
        return f"removed {name}"

    def process(*answers):
        script = Script("Again.", "And again.", ledger=ledger)
        asking = HumanInTheLoopMiddleware(interrupt_on={"remove": True})
        agent, _ = agent_of(
            script, *answers, tools=[remove], middleware=[asking], checkpointer=saver
        )
        return script, agent

    one, agent = process("First.", (("remove", {"name": "a"}),))
    assert "__interrupt__" in agent.invoke({"messages": "Go."}, on("talk"))
    assert one.outcomes == ["blocked"]
    two, agent = process("Second.", "Third.")
    approved = Command(resume={"decisions": [{"type": "approve"}]})
    assert said(agent.invoke(approved, on("talk"))) == "Third."
    assert two.outcomes == ["blocked", "passed"]
    assert {event.turn_id for event in two.events} == {one.events[0].turn_id}
    assert [event.block_count for event in two.events] == [1, 2]


def test_a_run_that_began_without_gates_is_limited_when_it_is_resumed():
    saver = InMemorySaver()
    asking = HumanInTheLoopMiddleware(interrupt_on={"look": True})
    begun = create_agent(scripted((("look", {}),)), [look], middleware=[asking], checkpointer=saver)
    begun.invoke({"messages": "Go."}, on("talk"))
    script = Script(*["Again."] * 9)
    agent, model = agent_of(script, "Done.", tools=[look], middleware=[asking], checkpointer=saver)
    agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), on("talk"))
    assert script.outcomes == ["blocked", "blocked", "blocked", "capped"]
    assert len(model.seen) == 4


@dataclass
class Verdict:
    """What the agent found."""

    ok: bool


def test_an_agent_with_structured_output_is_sent_back_and_answers_anew():
    script = Script("Look again.")
    answers = [(("Verdict", {"ok": ok}),) for ok in (False, True)]
    agent, model = agent_of(script, *answers, response_format=ToolStrategy(Verdict))
    result = agent.invoke({"messages": "Go."})
    assert result["structured_response"] == Verdict(ok=True)
    assert script.outcomes == ["blocked", "passed"]
    assert [event.result for event in script.events] == [Verdict(ok=False), Verdict(ok=True)]
    assert script.events[0].tool_calls == 0  # the framework's way to answer is no tool
    assert model.seen[1].endswith("Look again.")


def test_a_tool_that_answers_for_the_agent_is_a_stop():
    script = Script("Again.")

    @tool(return_direct=True)
    def report() -> str:
        """Report to the user."""
        return "The report."

    agent, _ = agent_of(script, (("report", {}),), tools=[report])
    assert said(agent.invoke({"messages": "Go."})) == "The report."
    assert script.outcomes == ["blocked", "passed"]
    assert script.events[0].last_message == "The report."


@pytest.mark.holds("subagents")
@pytest.mark.parametrize("is_async", [False, True])
def test_an_agent_that_a_tool_runs_is_a_subagent_with_a_counter_of_its_own(is_async):
    script = Script("Again.")
    child, _ = agent_of(script, "Draft.", "Report.", name="coder")

    def code() -> str:
        return said(child.invoke({"messages": "Write it."}))

    async def code_async() -> str:
        return said(await child.ainvoke({"messages": "Write it."}))

    write = tool("code", description="Write code.")(code_async if is_async else code)
    calls = (("code", {}), ("code", {}))
    parent, model = agent_of(
        script, calls, "Half.", "All.", tools=[write], name="boss", checkpointer=InMemorySaver()
    )
    if is_async:
        result = asyncio.run(parent.ainvoke({"messages": "Go."}, on("talk")))
    else:
        result = parent.invoke({"messages": "Go."}, on("talk"))
    assert said(result) == "All."
    assert [(event.session_id, event.block_count) for event in script.of("agent")] == [
        ("talk", 0),
        ("talk", 1),
    ]
    children = script.of("subagent")
    assert {event.parent_session_id for event in children} == {"talk"}
    assert {(event.agent_type, event.agent_name) for event in children} == {("coder", "coder")}
    sessions = {event.session_id for event in children}
    assert len(sessions) == 2
    assert "talk" not in sessions
    for session in sessions:
        counts = [event.block_count for event in children if event.session_id == session]
        assert counts == [0, 1]
    assert "Report." in model.seen[1]


def task(kind):
    return ("task", {"description": f"Work as {kind}.", "subagent_type": kind})


@pytest.mark.holds("subagents")
@pytest.mark.parametrize("kind", ["coder", "general-purpose"])
def test_a_subagent_of_deepagents_is_sent_back_before_its_caller_gets_the_report(kind):
    script = Script("Again.")
    gated = GateMiddleware(script.engine)
    child = scripted("Draft.", "Report.")
    specs = {
        "coder": {"name": "coder", "description": "Writes code.", "system_prompt": "Write."},
        "general-purpose": GENERAL_PURPOSE_SUBAGENT,
    }
    spec = specs[kind] | {"model": child, "middleware": [gated]}
    model = scripted((task(kind),), "Half.", "All.")
    agent = create_deep_agent(model, middleware=[gated], subagents=[spec])
    assert said(agent.invoke({"messages": "Go."}, on("talk"))) == "All."
    assert [(event.scope, event.agent_type) for event in script.events] == [
        ("subagent", kind),
        ("subagent", kind),
        ("agent", None),
        ("agent", None),
    ]
    assert [event.block_count for event in script.events] == [0, 1, 0, 1]
    assert {event.parent_session_id for event in script.of("subagent")} == {"talk"}
    assert script.events[0].task == f"Work as {kind}."
    assert "Report." in model.seen[1]
    assert "Draft." not in model.seen[1]
    assert script.warnings == []


@pytest.mark.cannot_hold(
    "subagents", "deepagents gives its own `general-purpose` no middleware unless it is declared"
)
def test_a_subagent_of_deepagents_without_gates_is_named_once():
    script = Script()
    both = (task("general-purpose"), task("general-purpose"))
    model = scripted((task("nobody"),), both, "Report.", "Report.", "All.")
    agent = create_deep_agent(model, middleware=[GateMiddleware(script.engine)])
    agent.invoke({"messages": "Go."})
    assert script.warnings == [
        "NOT CHECKED: the subagent general-purpose has no gates; add its spec to `subagents`, "
        "with this GateMiddleware in its `middleware`"
    ]
    assert [event.scope for event in script.events] == ["agent"]


@pytest.mark.holds("handoffs")
def test_agents_of_a_graph_are_main_agents_with_counters_of_their_own():
    script = Script("Again.")
    writer, _ = agent_of(script, "Draft.", "Text.", name="writer")
    editor, _ = agent_of(script, "Half.", "All.", name="editor")
    graph = StateGraph(MessagesState)
    graph.add_node("writer", writer)
    graph.add_node("editor", editor)
    graph.add_edge(START, "writer")
    graph.add_edge("writer", "editor")
    graph.add_edge("editor", END)
    app = graph.compile(checkpointer=InMemorySaver())
    assert said(app.invoke({"messages": "Go."}, on("talk"))) == "All."
    assert [(event.scope, event.agent_name) for event in script.events] == [
        ("agent", "writer"),
        ("agent", "writer"),
        ("agent", "editor"),
        ("agent", "editor"),
    ]
    assert [event.block_count for event in script.events] == [0, 1, 0, 1]
    sessions = {event.session_id for event in script.events}
    assert {session.rpartition("/")[0] for session in sessions} == {"talk"}
    assert len(sessions) == 2


def test_one_agent_in_parallel_branches_of_a_graph_is_counted_in_each():
    script = Script("Again.")
    worker, _ = agent_of(script, "Done.", name="worker")
    graph = StateGraph(MessagesState)
    graph.add_node("worker", worker)
    branches = [Send("worker", {"messages": f"Part {n}."}) for n in range(3)]
    graph.add_conditional_edges(START, lambda state: branches, ["worker"])
    app = graph.compile(checkpointer=InMemorySaver())
    app.invoke({"messages": "Go."}, on("talk"))
    assert sorted(script.outcomes) == ["blocked"] * 3 + ["passed"] * 3
    assert len({event.session_id for event in script.events}) == 3


@pytest.mark.parametrize(
    "limit",
    [
        ModelCallLimitMiddleware(run_limit=1),
        ToolCallLimitMiddleware(run_limit=0, exit_behavior="end"),
    ],
)
def test_a_run_that_a_limit_of_the_framework_ends_is_not_gated_as_done(limit):
    script = Script("Again.")
    ended = []
    script.engine.on("decision", lambda event, decision: ended.append(event))
    agent, _ = agent_of(script, (("look", {}),), tools=[look], middleware=[limit])
    assert "limit" in said(agent.invoke({"messages": "Go."}))
    assert script.events == []
    assert [event.ending for event in ended] == ["error"]
    assert "limit" in ended[0].error


def test_a_limit_that_keeps_a_sent_back_agent_from_going_on_ends_the_run():
    script = Script("Again.")
    agent, model = agent_of(script, "First.", middleware=[ModelCallLimitMiddleware(run_limit=1)])
    assert "limit" in said(agent.invoke({"messages": "Go."}))
    assert script.outcomes == ["blocked", "skipped"]
    assert len(model.seen) == 1


def test_a_run_that_ends_at_the_recursion_limit_is_no_stop():
    script = Script("Again.")
    agent, _ = agent_of(script, (("look", {}),), tools=[look])
    with pytest.raises(GraphRecursionError):
        agent.invoke({"messages": "Go."}, {"recursion_limit": 7})
    assert script.events == []


def test_figures_survive_a_summary_of_the_history():
    script = Script()
    summary = SummarizationMiddleware(
        scripted("Summary."), trigger=("messages", 3), keep=("messages", 1)
    )
    calls = (("look", {}),)
    agent, _ = agent_of(script, calls, calls, calls, "Done.", tools=[look], middleware=[summary])
    result = agent.invoke({"messages": "Go."})
    assert len([m for m in result["messages"] if isinstance(m, AIMessage)]) < 4
    (event,) = script.events
    assert (event.turns, event.tool_calls, event.total_usage.total) == (4, 3, 52)


@pytest.mark.holds("cancel ends gates")
def test_cancelling_a_run_ends_the_command_of_a_gate(tmp_path):
    slow = SlowCommand(tmp_path)
    agent, _ = agent_of(slow, "Done.")

    async def main():
        running = asyncio.create_task(agent.ainvoke({"messages": "Go."}))
        while not slow.has_begun:
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    wait_for(lambda: slow.is_gone)


def test_there_is_a_decision_within_the_seconds_that_the_adapter_has():
    release, decisions = threading.Event(), []
    engine = Engine([lambda event: release.wait(60)])
    engine.on("decision", lambda event, decision: decisions.append(decision))
    agent = create_agent(scripted("Done."), middleware=[GateMiddleware(engine, within=0.2)])
    assert said(agent.invoke({"messages": "Go."})) == "Done."
    assert [decision.outcome for decision in decisions] == ["failed_open"]
    release.set()


def test_a_fault_of_the_adapter_allows_the_stop_and_says_so(monkeypatch):
    script = Script("Again.")
    agent, _ = agent_of(script, "Done.")

    def broken(*_):
        raise KeyError("a fault")

    for name in ("get_config", "_usage"):
        monkeypatch.setattr(f"notyet.frameworks.langchain.{name}", broken)
    assert said(agent.invoke({"messages": "Go."})) == "Done."
    assert script.warnings == [
        "the agent is unknown: KeyError: 'a fault'",
        "NOT CHECKED: langchain: KeyError: 'a fault'",
    ]


@pytest.mark.holds("start words")
def test_words_of_a_starter_are_given_once_per_thread():
    starter = Starter(name="words", check=Function(lambda event: "Mind the tests."))
    script = Script(starters=[starter])
    agent, model = agent_of(script, "Done.", checkpointer=InMemorySaver())
    for task in ("Go.", "Go on."):
        agent.invoke({"messages": task}, on("talk"))
    assert [seen.count("Mind the tests.") for seen in model.seen] == [1, 1]


def test_the_gates_of_a_project_hold_an_agent(tmp_path):
    project = new_project(tmp_path / "p", gate("test -e fixed"))

    @tool
    def fix() -> str:
        """Fix it."""
        (project / "fixed").touch()
        return "fixed"

    middleware = GateMiddleware(Engine.from_project(str(project)), cwd=str(project))
    model = scripted("First.", (("fix", {}),), "Second.")
    agent = create_agent(model, [fix], middleware=[middleware])
    result = agent.invoke({"messages": "Go."})
    assert said(result) == "Second."
    assert sum(isinstance(message, HumanMessage) for message in result["messages"]) == 2


def test_the_example_of_the_page_runs():
    result = run_page("langchain.md")["result"]
    assert said(result) == "The changelog is written."
