"""The worked example of docs/how-to/write-an-adapter.md, with the real smolagents."""

import time
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("smolagents")

from notyet import Allow, Block, Engine, Function, Halt, Starter
from notyet.core.gate import Gate, Match
from notyet.testing import Conversation, adapter_conformance

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-an-adapter.md"
TASK = "Write a haiku."


@cache
def defined():
    """Return what the page defines, after its blocks ran in order."""
    names = {"__name__": "example"}
    for number, part in enumerate(PAGE.read_text().split("```python\n")[1:], 1):
        exec(compile(part.split("```")[0], f"block {number}", "exec"), names)
    return names


@pytest.fixture
def page():
    return defined()


class Trial:
    """Runs agents with the callback of the page."""

    name = "smolagents"
    delay = 0.0  # seconds for each call of the model

    def run_sync(self, engine, answers, *, session=None):
        model = defined()["Scripted"](answers)
        answer, delay = model.generate, self.delay
        model.generate = lambda *args, **options: time.sleep(delay) or answer(*args, **options)
        agent = defined()["agent_with"](model)
        if engine is not None:
            defined()["GateCheck"](agent, engine, session_id=session)
        return Conversation(agent.run(TASK), tuple(model.seen))


@pytest.mark.holds("sync run")
def test_the_callback_keeps_every_promise_but_one():
    cannot = {"start words": "nothing runs before the first request"}
    adapter_conformance(Trial(), cannot=cannot)


@pytest.mark.holds("sync run")
def test_the_driver_keeps_every_promise(page):
    adapter_conformance(page["DriverTrial"]())


def test_the_page_shows_what_the_suite_reports(page):
    trial = page["CheckTrial"]()
    with pytest.raises(AssertionError) as told:
        adapter_conformance(trial)
    shown = PAGE.read_text().split("AssertionError: ")[1].split("\n```")[0]
    assert str(told.value) == shown


@pytest.mark.holds("stream")
def test_an_agent_whose_run_is_streamed_is_sent_back(page):
    model = page["Scripted"](["One.", "Two."])
    agent = page["agent_with"](model)
    page["GateCheck"](agent, Engine([once("Again.")]))
    *_, last = agent.run(TASK, stream=True)
    assert last.output == "Two."
    assert "Again." in model.seen[1]


@pytest.mark.holds("halt")
def test_a_gate_that_halts_ends_the_run(page):
    model = page["Scripted"](["One.", "Two."])
    agent = page["agent_with"](model)
    page["GateCheck"](agent, Engine([lambda event: Halt("Enough.")]))
    assert agent.run(TASK) == "One."


def once(prompt):
    """Return a gate that blocks the first stop."""

    def gate(event):
        return Allow() if event.block_count else Block(prompt)

    return gate


def kept(events, gate=None):
    """Return a gate that keeps its events."""

    def keep(event):
        events.append(event)
        return gate(event) if gate else None

    return keep


@pytest.mark.holds("events")
def test_gates_get_what_smolagents_knows(page):
    from smolagents import tool

    @tool
    def season(month: str) -> str:
        """Return the season.

        Args:
            month: Its name.
        """
        return f"winter in {month}"

    class Calling(page["Scripted"]):
        def generate(self, messages, **options):
            said = super().generate(messages, **options)
            if len(self.seen) == 1:
                function = said.tool_calls[0].function
                function.name, function.arguments = "season", {"month": "June"}
            return said

    events = []
    agent = page["ToolCallingAgent"](
        tools=[season], model=Calling(["", "One.", "Two."]), verbosity_level=page["LogLevel"].OFF
    )
    agent.name = "poet"
    page["GateCheck"](agent, Engine([kept(events, once("Again."))]), session_id="s")
    assert agent.run(TASK) == "Two."
    first, second = events
    assert (first.host, first.session_id, first.agent_name) == ("smolagents", "s", "poet")
    assert (first.model, first.task, first.result) == ("scripted", TASK, "One.")
    assert (first.turns, first.tool_calls, first.tools_used) == (2, 1, ("season",))
    assert (second.turns, second.tool_calls, second.tools_used) == (1, 0, ())


@pytest.mark.holds("usage")
def test_the_driver_knows_the_tokens_since_the_last_send_back_and_in_all(page):
    events = []
    engine = Engine([kept(events, once("Again."))])
    agent = page["agent_with"](page["Scripted"](["One.", "Two."]))
    page["gated_run"](agent, TASK, engine)
    assert [(event.usage.total, event.total_usage.total) for event in events] == [
        (15, 15),
        (15, 30),
    ]


@pytest.mark.cannot_hold("usage", "a check runs before the tokens of its step are counted")
def test_the_callback_says_nothing_about_tokens(page):
    events = []
    agent = page["agent_with"](page["Scripted"](["One."]))
    page["GateCheck"](agent, Engine([kept(events)]))
    agent.run(TASK)
    assert (events[0].usage, events[0].total_usage) == (None, None)


@pytest.mark.holds("subagents")
def test_a_managed_agent_is_a_subagent_of_its_parents_session(page):
    class Delegating(page["Scripted"]):
        def generate(self, messages, **options):
            said = super().generate(messages, **options)
            if len(self.seen) == 1:
                function = said.tool_calls[0].function
                function.name, function.arguments = "editor", {"task": "Shorten it."}
            return said

    events = []
    child_model = page["Scripted"](["Draft.", "Shortened."])
    off = page["LogLevel"].OFF
    child = page["ToolCallingAgent"](
        tools=[], model=child_model, name="editor", description="Edits.", verbosity_level=off
    )
    agent = page["ToolCallingAgent"](
        tools=[], model=Delegating(["", "Done."]), managed_agents=[child], verbosity_level=off
    )
    both = Match(events=("agent", "subagent"))
    engine = Engine(
        [
            Gate(name="kept", check=Function(kept(events)), match=both),
            Gate(name="edited", check=Function(once("Shorter.")), match=Match(events="subagent")),
        ]
    )
    parent = page["GateCheck"](agent, engine, session_id="s")
    page["GateCheck"](child, engine, parent=parent)
    assert agent.run(TASK) == "Done."
    assert [event.scope for event in events] == ["subagent", "subagent", "agent"]
    assert [event.block_count for event in events] == [0, 1, 0]
    assert {event.parent_session_id for event in events[:2]} == {"s"}
    assert events[0].agent_type == "editor"
    assert "Shorter." in child_model.seen[1]


@pytest.mark.parametrize("way", ["callback", "driver"])
def test_an_agent_that_ran_out_of_steps_is_not_gated_as_done(page, way):
    events = []
    engine = Engine([kept(events, lambda event: Block("Again."))])
    model = page["Scripted"](["One."])
    model.generate = lambda messages, **options: page["ChatMessage"](
        role="assistant", content="I am thinking.", token_usage=page["TokenUsage"](10, 5)
    )
    agent = page["agent_with"](model)
    agent.max_steps = 2
    if way == "driver":
        page["gated_run"](agent, TASK, engine)
    else:
        page["GateCheck"](agent, engine)
        agent.run(TASK)
    assert events == []


@pytest.mark.holds("start words")
def test_the_driver_gives_words_of_a_start_hook_to_the_model(page):
    model = page["Scripted"](["One."])
    engine = Engine(starters=[Starter(name="words", check=Function(lambda event: "Use ink."))])
    page["gated_run"](page["agent_with"](model), TASK, engine)
    assert "Use ink." in model.seen[0]


@pytest.mark.cannot_hold("start words", "no callback runs before the first request")
def test_the_callback_says_once_that_no_start_hook_runs(page):
    warnings = []
    starter = Starter(name="words", check=Function(lambda event: "Use ink."))
    engine = Engine(starters=[starter], warn=warnings.append)
    page["GateCheck"](page["agent_with"](page["Scripted"](["One."])), engine)
    assert warnings == ["smolagents runs nothing before the first request: no start hook runs"]
