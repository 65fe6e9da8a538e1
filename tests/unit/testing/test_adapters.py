"""What the conformance suite for adapters finds, and what it lets pass."""

import asyncio
import threading
from functools import partial

import pytest

from notyet.core.event import Usage
from notyet.frameworks.gated_run import Framework, GatedRun, Gates
from notyet.testing import Conversation, adapter_conformance, adapters, promises

TOY = Framework("toy", "notyet-has-no-such-package", "1", "1")
PROMISES = [promise.name for promise in adapters._PROMISES]


class Toy:
    """A framework with its adapter: an agent whose model follows a script, and a hook at its end.

    The tests break it by overriding one of its parts.
    """

    name = "toy"

    def gates(self, engine):
        return Gates(engine, TOY)

    def gated_run(self, gates, session):
        return GatedRun(gates, session_id=session, task="Do it.")

    def call_model(self, messages, answers, seen):
        seen.append("\n".join(messages))
        answer = answers[min(len(seen), len(answers)) - 1]
        if answer.startswith("!"):
            raise RuntimeError(answer[1:])
        messages.append(answer)
        return answer

    def describe(self, answer, seen):
        spent = Usage(input=10 * len(seen), total=10 * len(seen))
        return {"last_message": answer, "turns": len(seen), "total_usage": spent}

    def go_on(self, messages, prompt):
        messages.append(prompt)

    async def run(self, engine, answers, *, session=None):
        run, messages, seen = self.gated_run(self.gates(engine), session), ["Do it."], []
        messages.append(await run.starting())
        while True:
            await asyncio.sleep(0)
            answer = self.call_model(messages, answers, seen)
            prompt = await self.stopping(run, answer, seen)
            if not prompt:
                return Conversation(answer, tuple(seen))
            self.go_on(messages, prompt)

    async def stopping(self, run, answer, seen):
        return await run.stopping(lambda: self.describe(answer, seen))

    def run_sync(self, engine, answers, *, session=None):
        run, messages, seen = self.gated_run(self.gates(engine), session), ["Do it."], []
        messages.append(run.starting_sync())
        while True:
            answer = self.call_model(messages, answers, seen)
            prompt = run.stopping_sync(partial(self.describe, answer, seen))
            if not prompt:
                return Conversation(answer, tuple(seen))
            self.go_on(messages, prompt)


class SyncToy:
    """The same without async."""

    name = "toy"

    def __init__(self, toy=None):
        self.run_sync = (toy or Toy()).run_sync


class AsyncToy:
    """The same with async alone."""

    name = "toy"

    def __init__(self, toy=None):
        self.run = (toy or Toy()).run


@pytest.fixture
def impatient(monkeypatch):
    """What hangs is found soon."""
    monkeypatch.setattr(promises, "PROMPTLY", 2.0)
    monkeypatch.setattr(adapters, "_MEETING", 1.0)


def broken(trial, **options):
    """Return the promises that a trial breaks, each with how."""
    with pytest.raises(AssertionError) as told:
        adapter_conformance(trial, **options)
    head, *lines = str(told.value).splitlines()
    assert head.startswith("the adapter for toy breaks ")
    return {line[2:].partition(":")[0]: line for line in lines}


def only(monkeypatch, name):
    """Leave out the other promises."""
    promise = next(promise for promise in adapters._PROMISES if promise.name == name)
    monkeypatch.setattr(adapters, "_PROMISES", [promise])


@pytest.mark.parametrize("trial", [Toy, SyncToy, AsyncToy])
def test_an_adapter_that_keeps_every_promise_passes(trial):
    adapter_conformance(trial())


def test_a_trial_that_runs_nothing_is_refused():
    with pytest.raises(TypeError, match="object has neither `run` nor `run_sync`"):
        adapter_conformance(object())


def test_an_adapter_that_never_asks_breaks_almost_every_promise(impatient):
    class Deaf(Toy):
        async def stopping(self, run, answer, seen):
            return ""

    found = broken(AsyncToy(Deaf()))
    assert set(PROMISES) - set(found) == set()
    assert "its stops ended as nothing, not as passed" in found["pass"]


def test_what_an_adapter_warned_of_is_told_too(monkeypatch):
    class Wrong(Toy):
        def describe(self, answer, seen):
            return {"no_such_field": answer}

    only(monkeypatch, "pass")
    assert "; the first warning was: NOT CHECKED: toy: " in broken(SyncToy(Wrong()))["pass"]


def test_both_ways_to_run_are_tried():
    class HalfDeaf(Toy):
        async def stopping(self, run, answer, seen):
            return ""

    with pytest.raises(AssertionError) as told:
        adapter_conformance(HalfDeaf())
    assert "gate passes ends after one call of the model (run): " in str(told.value)
    assert "(run_sync)" not in str(told.value)


def test_a_promise_that_cannot_be_kept_is_left_out_with_its_reason():
    class NoStart(Toy):
        def gated_run(self, gates, session):
            run = super().gated_run(gates, session)
            run.starting_sync = lambda: ""
            return run

    assert set(broken(SyncToy(NoStart()))) == {"start words"}
    adapter_conformance(SyncToy(NoStart()), cannot={"start words": "its agents have no start"})


def test_a_promise_that_is_kept_although_it_cannot_be_is_reported():
    found = broken(SyncToy(), cannot={"halt": "its runs end with their tools alone"})
    assert found["halt"].endswith(": it is kept, not: its runs end with their tools alone")


def test_what_cannot_be_kept_must_be_a_promise():
    with pytest.raises(ValueError, match="no promise is called streams; there are: pass, "):
        adapter_conformance(Toy(), cannot={"streams": "x"})


def forgets_history(toy):
    toy.go_on = lambda messages, prompt: messages.__setitem__(slice(None), [prompt])


def forgets_reason(toy):
    toy.go_on = lambda messages, prompt: messages.append("Again.")


def has_no_answer(toy):
    whole = toy.run_sync

    def run_sync(*args, **options):
        return Conversation("", whole(*args, **options).seen)

    toy.run_sync = run_sync


def returns_text(toy):
    toy.run_sync = lambda *args, **options: "Done."


def asks_twice(toy):
    toy.gated_run = lambda gates, session: Twice(gates, session_id=session)


class Twice(GatedRun):
    def stopping_sync(self, describe):
        return super().stopping_sync(describe) and super().stopping_sync(describe)


def names_nobody(toy):
    toy.describe = lambda answer, seen: {}


def adds_up(toy):
    class Adding(GatedRun):
        def _event(self, known):
            self._before = {}
            return super()._event(known)

    toy.gated_run = lambda gates, session: Adding(gates, session_id=session)


def has_one_session(toy):
    toy.gated_run = lambda gates, session: GatedRun(gates, session_id="always")


def has_one_turn(toy):
    class Same(GatedRun):
        turn_id = property(lambda self: "turn", lambda self, _: None)

    toy.gated_run = lambda gates, session: Same(gates, session_id=session)


def gates_errors(toy):
    whole = toy.call_model

    def call_model(messages, answers, seen):
        try:
            return whole(messages, answers, seen)
        except RuntimeError as error:
            return str(error)

    toy.call_model = call_model


def raises_others(toy):
    whole = toy.run_sync

    def run_sync(engine, answers, *, session=None):
        try:
            return whole(engine, answers, session=session)
        except RuntimeError as error:
            raise (OSError if engine._gates else ValueError)("no") from error

    toy.run_sync = run_sync


class Bare(GatedRun):
    """Lets through what fails in the engine."""

    def stopping_sync(self, describe):
        decision = self.gates.engine.check_sync(self._event(describe()))
        if decision.outcome == "failed_open":
            raise RuntimeError("the adapter was not checked")
        return self._settled(decision)


def lets_faults_through(toy):
    toy.gated_run = lambda gates, session: Bare(gates, session_id=session)


class RunsOn(GatedRun):
    """Goes on once after a certain outcome."""

    def __init__(self, gates, outcome):
        super().__init__(gates)
        self.outcome = outcome

    def stopping_sync(self, describe):
        prompt = super().stopping_sync(describe)
        if self.decision.outcome != self.outcome:
            return prompt
        self.outcome = ""
        return "Go on."


def runs_on_after_halt(toy):
    toy.gated_run = lambda gates, session: RunsOn(gates, "halted")


def runs_on_at_the_limit(toy):
    toy.gated_run = lambda gates, session: RunsOn(gates, "capped")


def runs_one_at_a_time(toy):
    lock, whole = threading.Lock(), toy.run_sync

    def run_sync(*args, **options):
        with lock:
            return whole(*args, **options)

    toy.run_sync = run_sync


def never_starts(toy):
    class Deaf(GatedRun):
        def starting_sync(self):
            return ""

    toy.gated_run = lambda gates, session: Deaf(gates, session_id=session)


@pytest.mark.parametrize(
    ("fault", "name", "words"),
    [
        (asks_twice, "send-back", "its model was called 2 times, not 3"),
        (returns_text, "pass", "a run returned 'Done.', no Conversation"),
        (has_no_answer, "pass", "its answer is '', not 'First answer.'"),
        (forgets_history, "send-back", "lacks what the first one was given: ['Do it."),
        (forgets_reason, "send-back", "call 2 of its model lacks ['First reason.']"),
        (runs_on_at_the_limit, "limit", "its stops ended as blocked, blocked, capped, "),
        (runs_on_after_halt, "halt", "its stops ended as blocked, halted, "),
        (lets_faults_through, "broken gate", "raised RuntimeError: the adapter was not checked"),
        (lets_faults_through, "slow gate", "raised RuntimeError: the adapter was not checked"),
        (lets_faults_through, "broken ledger", "raised OSError: a fault of the ledger"),
        (names_nobody, "events", "last_message was None, then None"),
        (adds_up, "usage", "turns was [1, 2, 3], not [1, 1, 1]"),
        (has_one_session, "session", "the session was 'always', not '"),
        (has_one_turn, "turns", "its stops ended as blocked, capped, "),
        (runs_one_at_a_time, "two", "one run did not come to its gate while the other was in it"),
        (gates_errors, "errors", "stops were gated as done, not "),
        (raises_others, "errors", "without gates it raised ValueError, with gates it raised OSErr"),
        (never_starts, "start words", "the starter ran 0 times in one run"),
    ],
)
def test_each_fault_is_found(impatient, monkeypatch, fault, name, words):
    toy = Toy()
    fault(toy)
    only(monkeypatch, name)
    assert words in broken(SyncToy(toy))[name]


def swallows_cancellation(toy):
    whole = toy.stopping

    async def stopping(run, answer, seen):
        try:
            return await whole(run, answer, seen)
        except asyncio.CancelledError:
            return ""

    toy.stopping = stopping


def holds_up_the_loop(toy):
    async def stopping(run, answer, seen):
        return run.stopping_sync(lambda: toy.describe(answer, seen))

    toy.stopping = stopping


def leaves_gates_behind(toy):
    whole, kept = toy.stopping, set()

    async def stopping(run, answer, seen):
        task = asyncio.ensure_future(whole(run, answer, seen))
        kept.add(task)
        return await asyncio.shield(task)

    toy.stopping = stopping


@pytest.mark.parametrize(
    ("fault", "name", "words"),
    [
        (swallows_cancellation, "cancel", "it did not pass on that it was cancelled"),
        (swallows_cancellation, "cancel command", "it did not pass on that it was cancelled"),
        (leaves_gates_behind, "cancel", "the gate still runs"),
        (leaves_gates_behind, "cancel command", " still runs"),
        (holds_up_the_loop, "two", "one run did not come to its gate while the other was in it"),
        (holds_up_the_loop, "ending loop", "the loop did not come back within 2 s"),
    ],
)
def test_each_fault_of_async_runs_is_found(impatient, monkeypatch, fault, name, words):
    monkeypatch.setattr(adapters, "_LONG", 6.0)
    toy = Toy()
    fault(toy)
    only(monkeypatch, name)
    assert words in broken(AsyncToy(toy))[name]
