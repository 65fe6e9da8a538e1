"""google-adk with `GatePlugin`: real runners and agents, and a model that follows a script."""

from __future__ import annotations

import asyncio
import threading
import uuid
from inspect import signature
from pathlib import Path

import pytest

pytest.importorskip("google.adk")

from google.adk.agents.invocation_context import LlmCallsLimitExceededError
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.apps import App
from google.adk.code_executors.unsafe_local_code_executor import UnsafeLocalCodeExecutor
from google.adk.models.base_llm import BaseLlm
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.workflow import START, Workflow
from google.genai import types
from pydantic import BaseModel

from commands import running, until
from hook_runs import new_project
from notyet import (
    Allow,
    Block,
    Command,
    Engine,
    Function,
    Gate,
    Halt,
    Ledger,
    Limits,
    Match,
)
from notyet.frameworks.google_adk import GatePlugin
from notyet.testing import Conversation, adapter_conformance

pytestmark = pytest.mark.filterwarnings("default")  # those of the framework are its own
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "google-adk.md"


class Model(BaseLlm):
    """Gives its answers in turn, the last one again and again; keeps what it was given."""

    model: str = "scripted"
    answers: list
    seen: list
    live: object = None
    delay: float = 0.0

    def __init__(self, *answers, **more):
        super().__init__(answers=list(answers), seen=[], **more)

    async def generate_content_async(self, llm_request, stream=False):  # noqa: FBT002  # as ADK has it
        system = str(llm_request.config.system_instruction or "")
        self.seen.append([("system", system), *map(plain, llm_request.contents)])
        await asyncio.sleep(self.delay)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, str) and answer.startswith("!"):
            raise RuntimeError(answer[1:])
        if isinstance(answer, LlmResponse):
            yield answer
            return
        part = types.Part(text=answer) if isinstance(answer, str) else answer
        if stream and part.text:
            for letter in part.text:
                content = types.Content(role="model", parts=[types.Part(text=letter)])
                yield LlmResponse(content=content, partial=True)
        yield LlmResponse(
            content=types.Content(role="model", parts=[part]),
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=7,
                cached_content_token_count=2,
                candidates_token_count=3,
                total_token_count=10,
            ),
        )

    def connect(self, llm_request):
        return self.live

    def texts(self):
        return tuple("\n".join(str(said) for _, said in call) for call in self.seen)


def plain(content):
    """Return who said a part of a request, and what."""
    said = [part.text or part.function_call or part.function_response for part in content.parts]
    return content.role, "\n".join(map(str, said))


def call(name, **args):
    return types.Part(function_call=types.FunctionCall(name=name, args=args))


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


ALL = Match(events=("agent", "subagent"))
SUBAGENTS = Match(events=("subagent",))


def agent(*answers, name="writer", **more):
    return LlmAgent(name=name, model=Model(*answers), instruction="Write.", **more)


class Chat:
    """A runner of an agent, or of a workflow, with our plugin."""

    def __init__(self, root, engine, session="session-1", **options):
        plugins = [] if engine is None else [GatePlugin(engine, **options)]
        app = App(name="app", root_agent=root, plugins=plugins)
        self.runner = InMemoryRunner(app=app)
        self.runner.auto_create_session = True
        self.session = session

    def given(self, prompt, **more):
        message = types.UserContent(prompt)
        return {"user_id": "ada", "session_id": self.session, "new_message": message, **more}

    async def events(self, prompt="Write it.", **more):
        return [event async for event in self.runner.run_async(**self.given(prompt, **more))]

    def run(self, prompt="Write it.", **more):
        return asyncio.run(self.events(prompt, **more))


def final(events):
    said = [event for event in events if event.is_final_response() and event.content]
    return "".join(part.text or "" for part in said[-1].content.parts) if said else ""


class Trial:
    """How the conformance suite runs an agent of this framework; without an engine, ungated."""

    name = "google-adk"
    delay = 0.0  # seconds that each call of the model takes

    def _chat(self, engine, answers, session):
        root = agent(*answers)
        root.model.delay = self.delay
        return root.model, Chat(root, engine, session or str(uuid.uuid4()))

    async def run(self, engine, answers, *, session=None):
        model, chat = self._chat(engine, answers, session)
        return Conversation(final(await chat.events()), model.texts())

    def run_sync(self, engine, answers, *, session=None):
        model, chat = self._chat(engine, answers, session)
        return Conversation(final(chat.runner.run(**chat.given("Write it."))), model.texts())


@pytest.mark.holds("async run")
@pytest.mark.holds("sync run")
def test_it_keeps_the_promises_of_adapters():
    adapter_conformance(Trial())


@pytest.mark.holds("async run")
def test_a_blocked_agent_goes_on_with_the_reason_as_its_users_next_message():
    found, root = World(Block("Write more."), Allow()), agent("Done.", "All of it.")
    events = Chat(root, found.engine).run()
    assert final(events) == "All of it."
    assert [event.is_final_response() for event in events] == [False, False, True]
    assert root.model.seen[1][1:] == [
        ("user", "Write it."),
        ("model", "Done."),
        ("user", "Write more."),
    ]
    assert found.outcomes == ["blocked", "passed"]


@pytest.mark.holds("sync run")
def test_a_run_that_is_not_async_is_gated_too():
    found, root = World(Block("Write more."), Allow()), agent("Done.", "All of it.")
    chat = Chat(root, found.engine)
    events = list(chat.runner.run(**chat.given("Write it.")))
    assert final(events) == "All of it."
    assert found.outcomes == ["blocked", "passed"]


@pytest.mark.holds("stream")
def test_a_streamed_answer_is_gated_once_when_it_is_complete():
    found, root = World(Block("Write more."), Allow()), agent("Done.", "All of it.")
    config = RunConfig(streaming_mode=StreamingMode.SSE)
    events = Chat(root, found.engine).run(run_config=config)
    assert final(events) == "All of it."
    assert [event.last_message for event in found.events] == ["Done.", "All of it."]


def test_an_agent_that_is_always_blocked_ends_at_the_limit():
    found = World(Block("Never."), limits=Limits(max_blocks=2))
    root = agent("One.", "Two.", "Three.", "Four.")
    assert final(Chat(root, found.engine).run()) == "Three."
    assert found.outcomes == ["blocked", "blocked", "capped"]


@pytest.mark.holds("halt")
def test_a_halt_ends_the_run():
    found, root = World(Block("Go on."), Halt("Enough.")), agent("One.", "Two.", "Three.")
    assert final(Chat(root, found.engine).run()) == "Two."
    assert found.outcomes == ["blocked", "halted"]


@pytest.mark.holds("events")
def test_an_event_says_all_that_the_framework_knows(tmp_path):
    def look(place: str) -> dict:
        return {"seen": place}

    found = World(Block("Write more."), Allow())
    root = agent(call("look", place="here"), "Done.", "All of it.", tools=[look])
    events = Chat(root, found.engine, cwd=str(tmp_path)).run("Write a page.")
    first, second = found.events
    assert (first.host, first.scope, first.ending) == ("google-adk", "agent", "done")
    assert (first.session_id, first.turn_id) == ("session-1", events[0].invocation_id)
    assert (first.agent_name, first.model) == ("writer", "scripted")
    assert (first.task, first.last_message) == ("Write a page.", "Done.")
    assert (first.turns, first.tool_calls, first.tools_used) == (2, 1, ("look",))
    assert (second.turns, second.tool_calls, second.tools_used) == (1, 0, ())
    assert (first.cwd, second.stop_hook_active) == (str(tmp_path), True)
    assert first.duration_ms > 0


@pytest.mark.holds("usage")
def test_usage_is_that_since_the_last_send_back_and_total_usage_that_of_the_run():
    found = World(Block("Write more."), Allow())
    Chat(agent("Done.", "All of it."), found.engine).run()
    spent = [(event.usage, event.total_usage.total) for event in found.events]
    assert [(usage.input, usage.cache_read, usage.output) for usage, _ in spent] == [(5, 2, 3)] * 2
    assert [(usage.total, total) for usage, total in spent] == [(10, 10), (10, 20)]


@pytest.mark.holds("sessions")
def test_each_run_of_a_session_is_a_turn_and_sees_what_was_sent_back_before():
    found = World(Block("Never."), limits=Limits(max_blocks=1, stuck_after=0))
    root = agent("One.", "Two.", "Three.", "Four.")
    chat = Chat(root, found.engine)
    chat.run("First.")
    chat.run("Second.")
    assert found.outcomes == ["blocked", "capped"] * 2
    assert len({event.turn_id for event in found.events}) == 2
    assert root.model.seen[-1][1:] == [
        ("user", "First."),
        ("model", "One."),
        ("user", "Never."),
        ("model", "Two."),
        ("user", "Second."),
        ("model", "Three."),
        ("user", "Never."),
    ]


@pytest.mark.holds("subagents")
@pytest.mark.parametrize("kind", ["AgentTool", "single_turn"])
def test_an_agent_that_is_a_tool_is_a_subagent_with_a_counter_of_its_own(kind):
    found = World(Block("Write more."), Allow(), Block("Not yet."), Allow(), match=ALL)
    if kind == "AgentTool":
        child = agent("Done.", "The report.", name="coder")
        more = {"tools": [AgentTool(child)]}
    else:
        child = agent("Done.", "The report.", name="coder", mode="single_turn", description="codes")
        more = {"sub_agents": [child]}
    root = agent(call("coder", request="Code it."), "It is coded.", "All of it.", **more)
    assert final(Chat(root, found.engine).run()) == "All of it."
    assert [
        (event.scope, event.agent_name, event.last_message, event.block_count)
        for event in found.events
    ] == [
        ("subagent", "coder", "Done.", 0),
        ("subagent", "coder", "The report.", 1),
        ("agent", "writer", "It is coded.", 0),
        ("agent", "writer", "All of it.", 1),
    ]
    first = found.events[0]
    assert (first.parent_session_id, first.agent_type) == ("session-1", "coder")
    assert first.session_id == first.agent_id != "session-1"
    assert first.task == "Code it."
    assert "The report." in root.model.texts()[1]
    assert found.outcomes == ["blocked", "passed"] * 2


@pytest.mark.holds("subagents")
def test_an_agent_with_a_task_is_sent_back_when_it_calls_finish_task():
    found = World(Block("Write more."), Allow(), match=SUBAGENTS)
    steps = call("finish_task", result="Half."), call("finish_task", result="All of it.")
    child = agent(*steps, name="coder", mode="task", description="codes")
    root = agent(call("coder", request="Code it."), "It is coded.", sub_agents=[child])
    assert final(Chat(root, found.engine).run()) == "It is coded."
    assert [event.result for event in found.events] == [
        {"result": "Half."},
        {"result": "All of it."},
    ]
    assert "Write more." in child.model.texts()[1]
    assert "All of it." in root.model.texts()[1]


@pytest.mark.holds("subagents")
def test_what_an_agent_with_a_task_says_to_the_user_is_a_stop_of_the_main_agent_too():
    found = World(Allow(), match=ALL)
    child = agent("Which one?", name="coder", mode="task", description="codes")
    root = agent(call("coder", request="Code it."), "It is coded.", sub_agents=[child])
    assert final(Chat(root, found.engine).run()) == "Which one?"
    assert [(event.scope, event.last_message) for event in found.events] == [
        ("subagent", "Which one?"),
        ("agent", "Which one?"),
    ]


@pytest.mark.holds("subagents")
def test_an_app_that_a_tool_runs_is_a_subagent():
    found = World(Block("Write more."), Allow(), match=ALL)
    plugin = GatePlugin(found.engine)
    inner = InMemoryRunner(
        app=App(name="inner", root_agent=agent("Done.", "The report."), plugins=[plugin])
    )
    inner.auto_create_session = True

    async def ask() -> str:
        message = types.UserContent("Code it.")
        run = inner.run_async(user_id="ada", session_id="session-2", new_message=message)
        return final([event async for event in run])

    root = agent(call("ask"), "All of it.", name="outer", tools=[ask])
    chat = Chat(root, None)
    chat.runner.plugin_manager.register_plugin(plugin)
    chat.run()
    assert [(event.scope, event.session_id, event.parent_session_id) for event in found.events] == [
        ("subagent", "session-2", "session-1")
    ] * 2 + [("agent", "session-1", None)]


@pytest.mark.holds("subagents")
def test_two_subagents_at_once_share_no_counter():
    both = threading.Barrier(2, timeout=30)

    def gate(event):
        both.wait()
        return Block(f"Not {event.last_message}") if not event.block_count else Allow()

    seen = []
    engine = Engine([Gate(name="gate", check=Function(gate), match=SUBAGENTS)])
    engine.on("decision", lambda event, made: seen.append((event.agent_name, made.outcome)))
    children = [agent(f"{n} 1.", f"{n} 2.", name=n) for n in ("one", "two")]
    calls = [call(child.name, request="Go.") for child in children]
    content = types.Content(role="model", parts=calls)
    root = agent(LlmResponse(content=content), "Both are.", tools=list(map(AgentTool, children)))
    assert final(Chat(root, engine).run()) == "Both are."
    assert sorted(seen)[:4] == [(n, o) for n in ("one", "two") for o in ("blocked", "passed")]


@pytest.mark.holds("handoffs")
def test_an_agent_that_takes_over_is_gated_as_a_subagent_and_as_the_main_agent():
    found = World(Block("Write more."), Allow(), Block("Not yet."), Allow(), match=ALL)
    child = agent("One.", "Two.", "Three.", name="coder", description="codes")
    root = agent(call("transfer_to_agent", agent_name="coder"), sub_agents=[child])
    chat = Chat(root, found.engine)
    assert final(chat.run()) == "Three."
    assert [(event.scope, event.last_message) for event in found.events] == [
        ("subagent", "One."),
        ("subagent", "Two."),
        ("agent", "Two."),
        ("subagent", "Three."),
        ("agent", "Three."),
    ]
    assert {event.agent_name for event in found.events if event.scope == "agent"} == {"writer"}
    assert found.outcomes == ["blocked", "passed", "blocked", "passed", "passed"]
    main = [event for event in found.events if event.scope == "agent"]
    assert main[-1].total_usage.total == 40  # also of the agent that handed over
    chat.run("And now?")  # it goes on with the agent to which it was transferred
    assert [(event.scope, event.agent_name) for event in found.events[5:]] == [
        ("subagent", "coder"),
        ("agent", "writer"),
    ]


def test_an_answer_that_a_tool_gives_is_gated():
    def report(tool_context) -> dict:
        tool_context.actions.skip_summarization = True
        return {"report": "Half of it."}

    found = World(Block("Write more."), Allow())
    root = agent(call("report"), "All of it.", tools=[report])
    assert final(Chat(root, found.engine).run()) == "All of it."
    assert "Write more." in root.model.texts()[1]
    assert "Half of it." in root.model.texts()[1]
    assert [event.last_message for event in found.events] == [
        '{"report": "Half of it."}',
        "All of it.",
    ]


def test_a_structured_answer_is_gated():
    class Page(BaseModel):
        text: str

    def look() -> str:
        return "seen"

    found = World(Block("Write more."), Allow())
    steps = call("set_model_response", text="Half."), call("set_model_response", text="All.")
    root = agent(*steps, tools=[look], output_schema=Page)
    assert final(Chat(root, found.engine).run()) == '{"text": "All."}'
    assert [event.result for event in found.events] == [{"text": "Half."}, {"text": "All."}]
    assert "Write more." in root.model.texts()[1]


def test_code_that_the_agent_runs_is_no_answer():
    found = World(Allow())
    root = agent(
        "```python\nprint(6 * 7)\n```", "It is 42.", code_executor=UnsafeLocalCodeExecutor()
    )
    assert final(Chat(root, found.engine).run()) == "It is 42."
    assert [event.last_message for event in found.events] == ["It is 42."]


def test_an_agent_that_waits_for_a_tool_has_not_stopped():
    def ask() -> None:
        """Ask a person."""

    found = World(Allow())
    root = agent(call("ask"), "Done.", tools=[LongRunningFunctionTool(ask)])
    Chat(root, found.engine).run()
    assert found.events == []


@pytest.mark.holds("start words")
def test_words_of_a_starter_are_in_each_request_of_their_session():
    found = World(Block("Write more."), Allow())
    found.engine.on("session_start", lambda event, ctx: "These are the checks.")
    root = agent("One.", "Two.", "Three.")
    chat = Chat(root, found.engine)
    chat.run()
    chat.run()
    assert [text.count("These are the checks.") for text in root.model.texts()] == [1, 1, 1]


def test_an_error_of_the_model_is_no_stop():
    found = World(Block("Go on."), Allow())
    with pytest.raises(RuntimeError, match="out of order"):
        Chat(agent("One.", "!out of order"), found.engine).run()
    assert [event.last_message for event in found.events] == ["One."]


def test_the_frameworks_own_limit_is_no_stop():
    found = World(Block("Go on."), Allow())
    with pytest.raises(LlmCallsLimitExceededError):
        Chat(agent("One.", "Two."), found.engine).run(run_config=RunConfig(max_llm_calls=1))
    assert found.outcomes == ["blocked"]


@pytest.mark.parametrize("how", ["break", "abort"])
def test_a_run_that_its_caller_ends_has_not_stopped(how):
    if how == "abort" and "abort_signal" not in signature(InMemoryRunner.run_async).parameters:
        pytest.skip("this version has no abort_signal")
    found = World(Allow())
    root = Workflow(name="flow", edges=[(START, agent("One.", name="a"), agent("Two.", name="b"))])
    chat = Chat(root, found.engine)

    async def main():
        signal = asyncio.Event()
        more = {"abort_signal": signal} if how == "abort" else {}
        events = chat.runner.run_async(**chat.given("Go.", **more))
        async for event in events:
            assert event.author != "b"
            if how == "break":
                break
            signal.set()
        await events.aclose()

    asyncio.run(main())
    assert found.events == []


def test_what_a_gate_raises_never_reaches_the_framework():
    found = World(Block("Go on."), RuntimeError("a fault of the gate"))
    assert final(Chat(agent("One.", "Two."), found.engine).run()) == "Two."
    assert found.outcomes == ["blocked", "failed_open"]


def test_a_broken_ledger_never_reaches_the_framework(tmp_path):
    (tmp_path / "stops.db").mkdir()
    found = World(Block("Go on."), ledger=Ledger(tmp_path / "stops.db"))
    assert final(Chat(agent("One."), found.engine).run()) == "One."
    assert found.warnings


def test_a_fault_of_the_adapter_never_reaches_the_framework():
    class Odd(LlmResponse):
        def get_function_calls(self):
            raise RuntimeError("a fault")

    found = World(Block("Go on."))
    content = types.Content(role="model", parts=[types.Part(text="One.")])
    assert final(Chat(agent(Odd(content=content)), found.engine).run()) == "One."
    assert any("NOT CHECKED: google-adk: RuntimeError: a fault" in w for w in found.warnings)


def test_a_gate_that_never_answers_ends_in_time():
    never = threading.Event()
    engine = Engine([lambda event: never.wait(60) and None])
    chat = Chat(agent("One."), engine, within=0.3)
    try:
        assert final(list(chat.runner.run(**chat.given("Go.")))) == "One."
    finally:
        never.set()


@pytest.mark.holds("cancel ends gates")
def test_cancelling_a_run_ends_the_command_of_a_gate(tmp_path):
    file = tmp_path / "pid"
    check = Command(script=f"echo $$ > {file}.part; mv {file}.part {file}; exec sleep 60")
    engine = Engine([Gate(name="slow", check=check)])
    chat = Chat(agent("One."), engine, cwd=str(tmp_path))

    async def main():
        task = asyncio.create_task(chat.events())
        while not file.exists() and not task.done():
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert until(lambda: not running(int(file.read_text())), 20)


def test_two_threads_with_one_plugin_share_no_counter():
    found = World(Block("Go on."), limits=Limits(max_blocks=2))
    chat = Chat(agent("One.", "Two."), found.engine)
    answers = {}

    def work(session):
        events = chat.runner.run(**chat.given("Go.") | {"session_id": session})
        answers[session] = [e for e in events if e.is_final_response()]

    threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(map(len, answers.values())) == [1, 1, 1]
    assert sorted(found.outcomes) == ["blocked"] * 6 + ["capped"] * 3


def test_the_gates_of_a_project_hold_an_agent(tmp_path):
    toml = '[gates.ready]\nrun = "test -e ready"\nwhen = "always"\n'
    project = new_project(tmp_path / "project", toml)

    def make() -> str:
        (project / "ready").touch()
        return "made"

    root = agent("Done.", call("make"), "Now it is.", "And again.", tools=[make])
    chat = Chat(root, Engine.from_project(str(project)), cwd=str(project))
    assert final(chat.run()) == "Now it is."
    assert "FAILED ready (exit 1" in root.model.texts()[1]


@pytest.mark.holds("subagents")
def test_agents_of_a_workflow_are_held():
    found = World(Block("Write more."), Allow(), match=SUBAGENTS)
    steps = call("finish_task", result="Half."), call("finish_task", result="All.")
    first, second = agent(*steps, name="a", mode="task"), agent("One.", name="b")
    root = Workflow(name="flow", edges=[(START, first, second)])
    assert final(Chat(root, found.engine).run()) == "One."
    assert [event.last_message for event in found.events] == [
        '{"result": "Half."}',
        '{"result": "All."}',
        "One.",
    ]
    assert found.warnings == []


@pytest.mark.cannot_hold("workflows", "their end cannot be continued; their agents can")
@pytest.mark.parametrize("kind", ["Workflow", "SequentialAgent"])
def test_the_end_of_a_workflow_is_checked_and_said_where_it_did_not_pass(kind):
    found = World(Block("Write more."), match=ALL, limits=Limits(max_blocks=1))
    writer = agent("One.", "Two.")
    root = (
        Workflow(name="flow", edges=[(START, writer)])
        if kind == "Workflow"
        else SequentialAgent(name="flow", sub_agents=[writer])
    )
    assert final(Chat(root, found.engine).run()) == "Two."
    assert [(event.scope, event.agent_name, event.last_message) for event in found.events] == [
        ("subagent", "writer", "One."),
        ("subagent", "writer", "Two."),
        ("agent", None if kind == "Workflow" else "flow", "Two."),
    ]
    assert found.outcomes[-1] == "capped"
    (said,) = [line for line in found.warnings if "gates only observe here" in line]
    assert "the answer of a workflow" in said


class Live(BaseLlmConnection):
    """A connection over which a model says one thing."""

    async def send_history(self, history):
        pass

    send_content = send_realtime = send_history

    async def receive(self):
        content = types.Content(role="model", parts=[types.Part(text="One.")])
        yield LlmResponse(content=content, turn_complete=True)

    async def close(self):
        pass

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass


@pytest.mark.cannot_hold("live runs", "an answer is spoken before a gate could run")
def test_a_live_run_says_that_it_is_not_gated():
    found, root = World(Block("Go on.")), agent("One.")
    root.model.live = Live()
    chat = Chat(root, found.engine)

    async def main():
        service = chat.runner.session_service
        await service.create_session(app_name="app", user_id="ada", session_id=chat.session)
        queue = LiveRequestQueue()
        events = chat.runner.run_live(
            user_id="ada", session_id=chat.session, live_request_queue=queue
        )
        async for event in events:
            if event.turn_complete or event.content:
                break
        queue.close()
        await events.aclose()

    asyncio.run(main())
    assert found.events == []
    assert [line for line in found.warnings if "cannot hold live runs" in line]


def test_the_example_of_the_page_runs():
    blocks = PAGE.read_text().split("```python\n")[1:]
    exec("\n".join(block.split("```")[0] for block in blocks), {"__name__": "page"})
