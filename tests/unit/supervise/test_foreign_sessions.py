"""Sessions that misbehave, ledgers that cannot be written: nothing hangs and nothing is lost."""

import asyncio
import resource
import time
from contextlib import contextmanager

import pytest

from notyet.core.session import News, Turn
from notyet.errors import LedgerError, Refused, SendError
from supervised import Agent, World
from support import gate


class Odd(BaseException):
    """An error that is no Exception."""


@pytest.mark.rule("K2")
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (ValueError("bad"), "the session failed: ValueError: bad"),
        (Odd("worse"), "the session failed: Odd: worse"),
        (GeneratorExit(), "the session failed: GeneratorExit"),
        (SendError("it never started"), "it never started"),
        (7, "the session returned int instead of a Turn"),
        (None, "the session returned NoneType instead of a Turn"),
    ],
)
def test_whatever_a_session_raises_or_returns_is_an_ending(world, answer, error):
    told = []
    world.engine.on("subagent_ended", lambda event, ctx: told.append(event))
    result = world.spawned(Agent(answer))
    assert (result.ending, result.text) == ("error", "")
    assert result.error.startswith(error)
    assert [event.outcome for event in told] == ["error"]


@pytest.mark.parametrize(
    "fields",
    [
        {"text": None},
        {"text": "x", "usage": {"input": 1}},
        {"text": "x", "tools": ("a", 1)},
        {"text": "x", "duration_ms": float("nan")},
        {"text": "x", "stop_reason": None},
    ],
)
def test_a_turn_of_nonsense_is_an_ending_in_words(world, fields):
    result = world.spawned(Agent(lambda prompt: Turn(**fields)))
    assert result.ending == "error"
    assert next(name for name in reversed(fields)) in result.error


def test_a_session_that_is_cancelled_from_inside_ends_its_task(world):
    async def cancelled(prompt):
        raise asyncio.CancelledError

    assert world.spawned(Agent(cancelled)).ending == "interrupted"


@pytest.mark.rule("C2")
@pytest.mark.parametrize("abort", ["hangs", "raises", "is deaf"])
def test_an_agent_that_never_returns_is_timed_out_whatever_its_abort_does(tmp_path, abort):
    class Stubborn(Agent):
        async def abort(self):
            self.aborts += 1
            if abort == "hangs":
                await asyncio.Event().wait()
            if abort == "raises":
                raise OSError("no such process")

    with World(tmp_path, abort_patience=0.05) as world:
        agent = Stubborn(Agent.WAIT)
        result = world.spawned(agent, timeout=0.05)
    assert result.ending == "timeout"
    assert result.error == "no end after 0.05 s, and it did not stop when aborted"
    assert agent.aborts == 1


@pytest.mark.rule("C3")
def test_a_kill_does_not_wait_for_an_agent_that_cannot_be_stopped(tmp_path):
    class Deaf(Agent):
        async def abort(self):
            await asyncio.Event().wait()

    with World(tmp_path, abort_patience=0.05) as world:
        agent = Deaf(Agent.WAIT)
        handle = world.spawn(agent)
        world.at_work(agent)
        assert world.do(world.supervisor.kill(handle)) is True
        assert world.result(handle).ending == "killed"


def broken(*names):
    """Make a session with methods that raise, once its prompt was sent."""

    class Broken(Agent):
        pass

    def raising(self, *_):
        if self.got:
            raise OSError("a fault of the session")
        return {} if names[0] == "ref" else None

    for name in names:
        setattr(Broken, name, raising)
    return Broken


@pytest.mark.parametrize("name", ["ref", "transcript", "discard"])
def test_a_session_whose_other_methods_raise_still_has_a_result(world, name):
    agent = broken(name)("done")
    result = world.spawned(agent, cleanup="delete")
    assert (result.ending, result.text) == ("done", "done")
    assert any("a fault of the session" in said for said in world.warnings)


def test_a_session_whose_ref_is_no_json_still_has_a_result(world):
    class Strange(Agent):
        def ref(self):
            return {"self": self} if self.got else {}

    assert world.spawned(Strange("done")).text == "done"
    assert any("ref" in said for said in world.warnings)


def test_a_session_whose_ref_is_no_json_from_the_start_is_refused_at_once(world):
    class Strange(Agent):
        def ref(self):
            return {"self": self}

    with pytest.raises((TypeError, ValueError, LedgerError)):
        world.spawn(Strange("done"))
    assert world.rows("SELECT count(*) FROM tasks") == [(0,)]


def test_news_that_makes_no_sense_is_a_matter_of_its_session(world):
    def nonsense(prompt):
        agent.on_news(News(kind="ended"))
        agent.on_news(News(kind="gossip", text="?"))
        return "done"

    agent = Agent(nonsense)
    assert world.spawned(agent).text == "done"
    agent = Agent(lambda prompt: agent.on_news(None) or "done", id="s2")
    assert world.spawned(agent).ending == "error"


@pytest.mark.rule("K1")
def test_a_huge_answer_is_kept_in_bounds_and_an_odd_one_as_it_can_be_kept(tmp_path):
    delivered = []

    async def deliver(announcement):
        delivered.append(announcement.result)

    with World(tmp_path, deliver=deliver) as world:
        huge = world.spawned(Agent("x" * 3_000_000 + "END"))
        odd = world.spawned(
            Agent("half \ud800 a pair \x00", id="s\udfff"), "do \ud83d it", label="l\ud800"
        )
        world.until(lambda: len(delivered) == 2)
    assert len(huge.text) <= 1_000_100
    assert huge.text.endswith("END")
    assert "half" in odd.text
    assert odd.ending == "done"


@contextmanager
def full_disk():
    """Let no file of this process grow, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.rule("K7", "B3")
@pytest.mark.file_only("a full disk")
def test_a_full_disk_is_waited_for_and_nothing_is_lost(world):
    agent = Agent(Agent.WAIT)
    handle = world.spawn(agent)
    world.at_work(agent)
    world.known()
    with full_disk():
        agent.come_back(Turn(text="done"))
        world.until(lambda: any("trying again" in said for said in world.warnings))
        assert not handle_is_done(world, handle)
    assert world.result(handle).text == "done"
    assert str(world.ledger.path) in " ".join(world.warnings)


def handle_is_done(world, handle):
    return "ended" in world.kinds(handle)


@pytest.mark.file_only("a full disk")
@pytest.mark.rule("K18")
def test_a_task_that_was_left_to_recovery_is_recovered_by_its_own_supervisor_too(tmp_path):
    with World(tmp_path, ledger_patience=0.1, reopen=lambda ref: Agent(knows=True)) as world:
        agent = Agent(Agent.WAIT)
        handle = world.spawn(agent)
        world.at_work(agent)
        world.known()
        with full_disk():
            agent.come_back(Turn(text="done"))
            with pytest.raises(LedgerError) as raised:
                world.result(handle)
        assert raised.value.__notes__ == ["the agent's answer was: done"]
        (taken,) = world.do(world.supervisor.recover())
        assert taken.task_id == handle.task_id
        # The process lives, and so does the answer.
        assert (world.result(taken).ending, world.result(taken).text) == ("done", "done")
        assert world.do(world.supervisor.recover()) == ()


@pytest.mark.rule("K18")
def test_closing_ends_agents_at_work_and_does_not_hang_on_those_that_do_not_listen(tmp_path):
    class Deaf(Agent):
        async def abort(self):
            await asyncio.Event().wait()

    began = time.monotonic()
    with World(tmp_path, abort_patience=0.1) as world:
        agents = [Agent(Agent.WAIT, id="a"), Deaf(Agent.WAIT, id="b"), Deaf(Agent.WAIT, id="c")]
        handles = [world.spawn(agent) for agent in agents]
        world.at_work(*agents)
    assert time.monotonic() - began < 8
    assert agents[0].aborts == 1
    with World(tmp_path) as world:
        assert {world.state(handle) for handle in handles} == {"running"}


@pytest.mark.rule("K18", "C4")
def test_closing_while_a_gate_runs_leaves_the_stop_to_recovery(tmp_path):
    asked = asyncio.Event()

    async def hang(event):
        asked.set()
        await asyncio.Event().wait()

    with World(tmp_path, gates=[gate("g", hang, scopes=("subagent",))]) as world:
        handle = world.spawn(Agent("done"))
        world.until(asked.is_set)
    with World(tmp_path) as world:
        assert world.state(handle) == "gating"
        assert world.rows("SELECT outcome FROM stops") == [("skipped",)]
        (taken,) = world.do(world.supervisor.recover())
        assert world.result(taken).text == "done"


def test_a_result_can_be_had_after_the_supervisor_was_closed(tmp_path):
    world = World(tmp_path)
    with world:
        handle = world.spawn(Agent("done"))
        world.until(lambda: "ended" in world.kinds(handle))
        world.do(world.supervisor.close())
        assert world.result(handle).text == "done"
    with World(tmp_path) as world:
        assert world.view(handle).delivery == "delivered"


def test_a_supervisor_that_is_closed_refuses_in_words_instead_of_hanging(tmp_path):
    with World(tmp_path) as world:
        agent = Agent(Agent.WAIT)
        handle = world.spawn(agent)
        world.at_work(agent)
        world.do(world.supervisor.close())
        world.do(world.supervisor.close())
        with pytest.raises(Refused, match="the supervisor is not running"):
            world.spawn(Agent(id="s2"))
        for verb in ("kill", "task", "retry"):
            with pytest.raises(Refused, match="the supervisor is not running"):
                world.do(getattr(world.supervisor, verb)(handle))


@pytest.mark.file_only("its place")
def test_a_supervisor_on_a_ledger_that_cannot_be_opened_does_not_start(tmp_path):
    (tmp_path / "ledger.db").mkdir()
    world = World(tmp_path)
    with pytest.raises(LedgerError):
        world.do(world.supervisor.__aenter__())
    with pytest.raises(Refused, match="use it in: async with Supervisor"):
        world.spawn(Agent())
    world.runner.close()
