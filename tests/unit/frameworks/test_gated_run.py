"""What every adapter shares: events with figures, no fault that gets out, one start a session."""

import asyncio
import os
from importlib.metadata import version

import pytest

from notyet import Allow, Block, Engine, Function, Halt, Limits, Match, Starter, Usage
from notyet.frameworks import gated_run
from notyet.frameworks.gated_run import Framework, GatedRun, Gates, warn_of_version
from support import gate

TOY = Framework("toy", "notyet-has-no-such-package", "1", "1")
BOTH = ("agent", "subagent")


def stop_async(run, describe=dict):
    return asyncio.run(run.stopping(describe))


def stop_sync(run, describe=dict):
    return run.stopping_sync(describe)


def start_async(run):
    return asyncio.run(run.starting())


def start_sync(run):
    return run.starting_sync()


both_ways = pytest.mark.parametrize("stop", [stop_async, stop_sync])
both_starts = pytest.mark.parametrize("start", [start_async, start_sync])


class Watched:
    """An engine that keeps its events and warnings; its gate blocks until `blocks` is reached."""

    def __init__(self, blocks=0, **options):
        self.events, self.warnings, self.starts = [], [], []

        def answer(event):
            self.events.append(event)
            return Block("Go on.") if event.block_count < blocks else Allow()

        self.engine = Engine(
            [gate(answer=answer, scopes=BOTH)], warn=self.warnings.append, **options
        )
        self.gates = Gates(self.engine, TOY)

    def add_starter(self, name, call, scope="agent"):
        self.engine.on("session_start" if scope == "agent" else "subagent_start", call)


@both_ways
def test_a_blocked_run_goes_on_with_the_prompt_and_its_second_stop_passes(stop):
    watched = Watched(blocks=1)
    run = GatedRun(watched.gates, session_id="s", agent_name="poet", task="Write.")
    assert (stop(run), run.decision.outcome, run.send_backs) == ("Go on.", "blocked", 1)
    assert (stop(run), run.decision.outcome, run.send_backs) == ("", "passed", 1)
    first, second = watched.events
    assert (first.scope, first.host, first.session_id) == ("agent", "toy", "s")
    assert (first.agent_name, first.agent_type, first.task) == ("poet", None, "Write.")
    assert (first.cwd, first.parent_session_id) == (os.getcwd(), None)
    assert (first.stop_hook_active, second.stop_hook_active) == (False, True)
    assert first.turn_id == second.turn_id == run.turn_id


@both_ways
def test_a_gate_that_halts_gives_no_prompt(stop):
    run = GatedRun(Gates(Engine([lambda event: Halt("Enough.")]), TOY))
    assert (stop(run), run.decision.outcome) == ("", "halted")


def test_runs_without_a_session_have_one_of_their_own_and_every_run_is_a_turn():
    gates = Watched().gates
    one, two = GatedRun(gates), GatedRun(gates)
    assert one.session_id.startswith("toy-")
    assert one.session_id != two.session_id
    assert one.turn_id != two.turn_id


def test_the_next_run_of_a_session_has_a_fresh_budget():
    watched = Watched(blocks=9, limits=Limits(max_blocks=1, stuck_after=0))
    outcomes = []
    for _ in range(2):
        run = GatedRun(watched.gates, session_id="s")
        for _ in range(2):
            stop_sync(run)
            outcomes.append(run.decision.outcome)
    assert outcomes == ["blocked", "capped", "blocked", "capped"]


def test_a_subagent_has_the_session_of_its_parent_and_a_counter_of_its_own():
    watched = Watched(blocks=2)
    parent = GatedRun(watched.gates, session_id="s")
    child = GatedRun(watched.gates, agent_name="editor", parent=parent)
    assert stop_sync(parent) == "Go on."
    assert stop_sync(child).startswith("Go on.")
    event = watched.events[-1]
    assert (event.scope, event.agent_type, event.agent_name) == ("subagent", "editor", "editor")
    assert (event.session_id, event.parent_session_id) == (child.session_id, "s")
    assert (event.agent_id, event.block_count) == (child.session_id, 0)


def test_gates_for_one_kind_of_subagent_are_found_by_its_name():
    asked = []
    only = gate(answer=asked.append, match=Match(events="subagent", agents="edit*"))
    gates = Gates(Engine([only]), TOY)
    parent = GatedRun(gates)
    for name in ("editor", "writer"):
        stop_sync(GatedRun(gates, agent_name=name, parent=parent))
    assert [event.agent_type for event in asked] == ["editor"]


def test_figures_are_those_since_the_last_send_back():
    watched = Watched(blocks=2)
    run = GatedRun(watched.gates)
    for number, tools in enumerate([("read", "write"), ("read", "write", "run"), ()], 1):
        spent = Usage(input=10 * number, output=number, total=11 * number)
        stop_sync(
            run,
            lambda n=number, spent=spent, tools=tools: {
                "total_usage": spent,
                "turns": 2 * n,
                "tool_calls": len(tools),
                "tools_used": tools,
            },
        )
    assert [event.usage.total for event in watched.events] == [11, 11, 11]
    assert [event.total_usage.total for event in watched.events] == [11, 22, 33]
    assert [event.turns for event in watched.events] == [2, 2, 2]
    # A history that was cut has fewer calls than before: none, and not less than none.
    assert [event.tool_calls for event in watched.events] == [2, 1, 0]
    assert [event.tools_used for event in watched.events] == [("read", "write"), ("run",), ()]


def test_what_the_framework_does_not_know_stays_unknown_but_for_the_duration():
    watched = Watched()
    stop_sync(GatedRun(watched.gates), lambda: {"last_message": None, "turns": None})
    (event,) = watched.events
    assert (event.last_message, event.turns, event.usage, event.total_usage) == (None,) * 4
    assert event.duration_ms >= 0


def test_a_duration_that_the_framework_knows_counts():
    watched = Watched()
    stop_sync(GatedRun(watched.gates), lambda: {"duration_ms": 1234.5})
    assert watched.events[0].duration_ms == 1234.5


@both_ways
@pytest.mark.parametrize(
    "describe",
    [lambda: 1 / 0, lambda: {"no_such_field": 1}, lambda: {"turns": "many"}, lambda: None],
)
def test_a_fault_of_an_adapter_is_said_as_not_checked_and_the_agent_may_stop(stop, describe):
    watched = Watched(blocks=9)
    run = GatedRun(watched.gates)
    assert stop(run, describe) == ""
    assert (run.decision.outcome, run.decision.why) == ("skipped", "internal")
    (warning,) = watched.warnings
    assert warning.startswith("NOT CHECKED: toy: ")


@both_ways
def test_a_fault_of_an_engine_does_not_get_out(stop):
    class Faulty(Engine):
        async def check(self, event, **options):
            raise RuntimeError("a fault")

        def check_sync(self, event, **options):
            raise RuntimeError("a fault")

    warnings = []
    run = GatedRun(Gates(Faulty(warn=warnings.append), TOY))
    assert stop(run) == ""
    assert warnings == ["NOT CHECKED: toy: RuntimeError: a fault"]


@both_ways
def test_what_a_person_pressed_is_no_fault(stop):
    def pressed():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop(GatedRun(Watched().gates), pressed)


def test_a_cancellation_is_passed_on_and_ends_the_gate():
    ended = []

    async def slow(event):
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("slow")

    async def main():
        task = asyncio.create_task(GatedRun(Gates(Engine([slow]), TOY)).stopping(dict))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)

    begun = asyncio.Event()
    asyncio.run(main())
    assert ended == ["slow"]


@both_ways
def test_a_gate_that_never_answers_ends_within_the_time_of_the_adapter(stop):
    async def slow(event):
        await asyncio.sleep(60)

    engine = Engine([gate(answer=slow)], warn=lambda text: None)
    run = GatedRun(Gates(engine, TOY, within=0.2))
    assert (stop(run), run.decision.outcome) == ("", "failed_open")


def test_what_is_no_engine_is_refused():
    with pytest.raises(TypeError, match="engine is an Engine, like"):
        Gates([lambda event: None], TOY)


@both_starts
def test_a_session_starts_once_whatever_runs_in_it(start):
    watched = Watched()
    watched.add_starter("words", lambda event, ctx: "Use ink.")
    runs = [GatedRun(watched.gates, session_id=name) for name in ("s", "s", "other")]
    assert [start(run) for run in runs] == ["Use ink.", "", "Use ink."]


@both_starts
def test_a_starter_gets_who_starts(start, tmp_path):
    seen = []
    words = Starter(name="words", check=Function(seen.append), scope="subagent")
    gates = Gates(Engine(starters=[words]), TOY, cwd=str(tmp_path))
    parent = GatedRun(gates, session_id="s")
    child = GatedRun(gates, agent_name="editor", parent=parent)
    assert start(child) == ""
    (event,) = seen
    assert (event.scope, event.host, event.cwd) == ("subagent", "toy", str(tmp_path))
    assert (event.session_id, event.parent_session_id) == (child.session_id, "s")
    assert (event.agent_type, event.turn_id) == ("editor", child.turn_id)


@both_starts
def test_a_start_that_fails_is_said_and_does_not_get_out(start):
    class Faulty(Engine):
        acts_at_start = True

        async def start(self, event):
            raise RuntimeError("a fault")

        def start_sync(self, event):
            raise RuntimeError("a fault")

    warnings = []
    run = GatedRun(Gates(Faulty(warn=warnings.append), TOY), session_id="s")
    assert start(run) == ""
    assert warnings == ["the start of s failed: RuntimeError: a fault"]


def test_an_engine_that_does_nothing_at_a_start_is_not_asked():
    class Strict(Engine):
        def start_sync(self, event):
            raise AssertionError("nothing was to be done")

    assert GatedRun(Gates(Strict(), TOY)).starting_sync() == ""


def test_only_so_many_sessions_are_remembered(monkeypatch):
    monkeypatch.setattr(gated_run, "_MOST_SESSIONS", 2)
    gates = Watched().gates
    assert [gates.is_first(name) for name in "abcb"] == [True, True, True, False]
    assert gates.is_first("a"), "it was forgotten"


@pytest.fixture
def said(monkeypatch):
    """What is said of versions, by a process that has said nothing yet."""
    monkeypatch.setattr(gated_run, "_looked_at", set())
    return []


def framework(oldest, newest, package="pytest"):
    return Framework("some", package, oldest, newest)


def test_a_version_that_was_not_tested_is_said_once(said):
    for _ in range(2):
        Gates(Engine(warn=said.append), framework("0.1", "0.2"))
    (text,) = said
    assert f"not tested with pytest {version('pytest')} (tested: 0.1 to 0.2); " in text


def test_a_newer_version_names_the_one_that_was_tested(said):
    warn_of_version(framework("1.2.3", "1.2.3"), said.append)
    assert "(tested: 1.2.3)" in said[0]


def test_a_version_is_looked_up_once_because_that_takes_longer_than_a_stop(said, monkeypatch):
    asked = []
    monkeypatch.setattr(gated_run, "version", lambda package: asked.append(package) or "1.0")
    for _ in range(2):
        warn_of_version(framework("1.0", "1.0"), said.append)
    assert (asked, said) == (["pytest"], [])


@pytest.mark.parametrize("installed", ["1.26.0", "1.26.9", "1.30rc1", "1.29.0.post1"])
def test_a_version_in_the_tested_range_is_fine(said, installed, monkeypatch):
    monkeypatch.setattr(gated_run, "version", lambda package: installed)
    warn_of_version(framework("1.26.1", "1.30.2"), said.append)
    assert said == []


@pytest.mark.parametrize("installed", ["1.25.9", "1.31.0", "2.0", "0.26"])
def test_a_version_out_of_the_tested_range_is_said(said, installed, monkeypatch):
    monkeypatch.setattr(gated_run, "version", lambda package: installed)
    warn_of_version(framework("1.26.1", "1.30.2"), said.append)
    assert installed in said[0]


def test_a_framework_whose_version_is_unknown_is_fine(said):
    warn_of_version(framework("1", "1", package="notyet-has-no-such-package"), said.append)
    assert said == []
