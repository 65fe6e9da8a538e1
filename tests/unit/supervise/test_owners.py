"""Whose a task is: leases, takeovers, and what other processes may do with it."""

import asyncio
import json
import signal

import pytest

from notyet.core.session import Turn
from notyet.errors import LedgerError, Refused
from supervised import Agent, Asking, World, other_process, said_by


def taken_over(late, heir):
    """Let a supervisor sleep for so long that another one takes its task over; then wake it."""
    heartbeat = late.supervisor._heartbeat
    late.do(heartbeat.stop())
    late.do(late.supervisor._store(bool))  # a renewal may still be queued before this call
    late.rows("UPDATE owners SET lease_until = 0 WHERE id = ?", late.supervisor._context.owner)
    (taken,) = heir.do(heir.supervisor.recover())

    async def wake():
        heartbeat._beating = asyncio.ensure_future(heartbeat._beat())

    late.do(wake())
    return taken


@pytest.mark.rule("K18")
def test_tasks_of_a_living_owner_are_left_alone(world):
    agent = Agent(Agent.WAIT)
    handle = world.launch(agent)
    world.at_work(agent)
    with World(world.folder, beside=world) as other:
        assert other.do(other.supervisor.recover()) == ()
        assert other.view(handle).owner_alive
    assert world.state(handle) == "running"
    world.do(world.supervisor.kill(handle))


@pytest.mark.rule("K18")
def test_a_supervisor_renews_its_lease_while_it_lives(tmp_path):
    with World(tmp_path, lease=0.4) as world:
        agent = Agent(Agent.WAIT)
        handle = world.launch(agent)

        def lease():
            return world.rows("SELECT lease_until FROM owners")

        first = lease()
        world.until(lambda: lease() > first)
        world.do(world.supervisor.kill(handle))


@pytest.mark.rule("K18", "K7")
def test_an_owner_whose_lease_ran_out_is_fenced_and_its_agent_is_aborted(tmp_path):
    again = Agent("from the new owner", id="s1", knows=False)
    with World(tmp_path, lease=0.2) as late:
        old = Agent(Agent.WAIT)
        handle = late.launch(old)
        late.at_work(old)
        with World(tmp_path, beside=late, reopen=lambda ref: again) as heir:
            taken = taken_over(late, heir)
            result = heir.result(taken)
            with pytest.raises(Refused, match=f"another process took over task {handle.task_id}"):
                late.result(handle)
        assert old.aborts == 1
        assert (result.text, again.got, again.aborts) == ("from the new owner", ["do it"], 1)
        assert any("took this supervisor for dead" in said for said in late.warnings)
        assert late.rows("SELECT count(*) FROM outbox") == [(1,)]


@pytest.mark.rule("K18")
def test_the_moves_of_a_fenced_owner_do_nothing(tmp_path):
    heirs = Agent(Agent.WAIT, knows=False)
    with World(tmp_path, lease=1000.0) as late:
        old = Agent(Agent.WAIT)
        handle = late.launch(old)
        late.at_work(old)
        with World(tmp_path, beside=late, reopen=lambda ref: heirs) as heir:
            taken = taken_over(late, heir)
            heir.at_work(heirs)
            # It does not know yet, and reports the end of its own run.
            late_word = late.supervisor.finish(f"{handle.task_id}.1", Turn(text="mine"))
            assert late.do(late_word) is False
            old.come_back(Turn(text="mine"))
            with pytest.raises(Refused):
                late.result(handle)
            assert heir.state(taken) == "running"
            heirs.come_back(Turn(text="the heir's"))
            assert heir.result(taken).text == "the heir's"


@pytest.mark.rule("K18", "K10")
def test_observers_of_a_fenced_owner_are_not_told_of_what_the_heir_ended(tmp_path):
    heirs = Agent("the heir's", knows=False)
    told = []
    with World(tmp_path, lease=1000.0) as late:
        late.engine.on("stop", lambda event, ctx: told.append("late"))
        old = Agent(Agent.WAIT)
        handle = late.launch(old)
        late.at_work(old)
        with World(tmp_path, beside=late, reopen=lambda ref: heirs) as heir:
            heir.engine.on("stop", lambda event, ctx: told.append("heir"))
            taken = taken_over(late, heir)
            heir.result(taken)
            old.come_back(Turn(text="mine"))
            with pytest.raises(Refused):
                late.result(handle)
    assert told == ["heir"]


@pytest.mark.rule("K18", "K7")
@pytest.mark.parametrize("mark", ["start", "decide", "dispatch"])
def test_an_owner_whose_lease_ran_out_looks_again_before_it_sends_a_prompt(
    tmp_path, monkeypatch, mark
):
    with World(tmp_path) as late:
        late.block(1)
        if mark == "dispatch":  # an observer has to be notified between the block and the sending
            late.engine.on("decision", lambda *_: None)
        store = late.supervisor._store
        marks = store.tasks if mark == "start" else store.runs
        original = getattr(marks, mark)

        def suspended(*args, **options):  # until another one has taken the task over
            marked = original(*args, **options)
            late.rows("UPDATE tasks SET owner = 99")
            late.supervisor._context.leased_until = 0.0
            return marked

        monkeypatch.setattr(marks, mark, suspended)
        agent = Agent("done")
        handle = late.spawn(agent)
        with pytest.raises(Refused, match="another process took over"):
            late.result(handle)
    assert agent.got == ([] if mark == "start" else ["do it"])


@pytest.mark.rule("K18")
def test_a_lease_that_is_renewed_holds_and_one_that_is_lost_does_not(tmp_path):
    with World(tmp_path, lease=0.2) as world:
        context = world.supervisor._context
        first = context.leased_until
        world.until(lambda: context.leased_until > first)
        assert context.has_lease
        context.leased_until = 0.0
        assert not context.has_lease
        world.rows("DELETE FROM owners")
        lost, context.leased_until = context.owner, 1e300
        world.until(lambda: context.owner != lost)
        assert context.leased_until < 1e300


@pytest.mark.rule("K7")
def test_a_steer_that_its_own_process_reserved_is_sent_though_the_answer_to_that_was_lost(
    tmp_path, monkeypatch
):
    with World(tmp_path) as world:
        world.block(1)
        runs = world.supervisor._store.runs
        original, lost = runs.decide, []

        def unanswered(*args, **options):
            seen = original(*args, **options)
            if lost:
                return seen
            lost.append(seen)
            raise LedgerError("ledger", "the connection broke during a COMMIT")

        monkeypatch.setattr(runs, "decide", unanswered)
        agent = Agent("one", "two")  # which cannot know what it got
        result = world.spawned(agent)
    assert (result.ending, result.steers, agent.got) == ("done", 1, ["do it", "more"])


@pytest.mark.rule("K18")
def test_a_fenced_owner_ends_no_agent_that_others_sent_to_work(tmp_path):
    asking = Asking()
    with World(tmp_path) as dead:
        dead.engine.on("stopping", asking)
        dead.launch(Agent("done"))
        dead.until(lambda: asking.asked)
    first, asking = Agent(), Asking()
    with World(tmp_path, lease=0.2, reopen=lambda ref: first) as late:
        late.engine.on("stopping", asking)
        (taken,) = late.do(late.supervisor.recover())
        late.until(lambda: asking.asked)
        with World(tmp_path, beside=late, reopen=lambda ref: Agent()) as heir:
            last = taken_over(late, heir)
            heir.result(last)
            with pytest.raises(Refused, match="another process took over"):
                late.result(taken)
    assert first.aborts == 1  # when it was recovered, and not again


@pytest.mark.rule("K18")
def test_a_supervisor_that_was_taken_for_dead_owns_what_it_starts_from_then_on(tmp_path):
    heirs = Agent(Agent.WAIT, knows=False)
    with World(tmp_path, lease=2.0) as late:
        old = Agent(Agent.WAIT)
        late.launch(old)
        late.at_work(old)
        with World(tmp_path, beside=late, reopen=lambda ref: heirs) as heir:
            taken = taken_over(late, heir)
            late.until(lambda: any("for dead" in said for said in late.warnings))
            fresh = Agent(Agent.WAIT, id="fresh")
            handle = late.launch(fresh)
            late.at_work(fresh)
            assert heir.do(heir.supervisor.recover()) == ()
            fresh.come_back(Turn(text="still mine"))
            assert late.result(handle).text == "still mine"
            heir.do(heir.supervisor.kill(taken))


@pytest.mark.rule("K18")
def test_closing_leaves_unfinished_tasks_to_recovery(tmp_path):
    agent = Agent(Agent.WAIT)
    with World(tmp_path) as world:
        handle = world.launch(agent)
        world.at_work(agent)
        waiting = world.runner.get_loop().create_task(handle.result())
    assert agent.aborts == 1
    with pytest.raises(Refused, match=f"the supervisor of task {handle.task_id} was closed"):
        waiting.result()
    with World(tmp_path, reopen=lambda ref: Agent(knows=None)) as world:
        assert not world.view(handle).owner_alive
        (taken,) = world.do(world.supervisor.recover())
        assert world.result(taken).ending == "interrupted"


@pytest.mark.rule("K18", "C3")
@pytest.mark.parametrize(
    ("verb", "ending"), [("kill", "killed"), ("reset", "reset"), ("interrupt", "interrupted")]
)
def test_another_process_ends_a_task_and_its_owner_ends_the_agent(world, verb, ending):
    agent = Agent(Agent.WAIT)
    handle = world.launch(agent)
    world.at_work(agent)
    story = f"print(await supervisor.{verb}({handle.task_id!r}))"
    assert said_by(world, other_process(world.ledger.path, story)) == "True"
    assert world.result(handle).ending == ending
    assert agent.aborts == 1
    assert said_by(world, other_process(world.ledger.path, story)) == "False"


@pytest.mark.rule("K18", "K16")
def test_another_process_steers_a_task_and_is_told_why_it_may_not(tmp_path):
    with World(tmp_path, steer_pause=60.0) as world:
        agent = Agent(Agent.WAIT, Agent.WAIT)
        handle = world.spawn(agent)
        world.at_work(agent)
        story = f"""
        await supervisor.steer({handle.task_id!r}, "The other way.")
        try:
            await supervisor.steer({handle.task_id!r}, "And back.")
        except Refused as error:
            print(error)
        """
        said = said_by(world, other_process(world.ledger.path, story))
        world.until(lambda: len(agent.got) == 2)
        world.do(world.supervisor.kill(handle))
    assert agent.got == ["do it", "The other way."]
    assert "just now; try again in" in said or "is being steered already" in said


@pytest.mark.rule("K18")
def test_a_kill_does_not_wait_for_an_owner_that_hangs(world):
    agent = Agent(Agent.WAIT)
    handle = world.launch(agent)
    world.at_work(agent)
    world.do(world.supervisor._heartbeat.stop())  # it notices nothing
    with World(world.folder, beside=world) as other:
        assert other.do(other.supervisor.kill(handle)) is True
        assert other.do(other.supervisor.kill(handle)) is False
        assert (other.state(handle), other.view(handle).ending) == ("ended", "killed")
    world.do(world.supervisor._heartbeat.start())
    assert world.rows("SELECT moved FROM tasks") == [(1,)]  # another owner by now


@pytest.mark.rule("K18", "K7")
def test_a_steer_for_a_dead_owner_is_sent_by_the_one_who_recovers(tmp_path):
    with World(tmp_path) as dead:
        agent = Agent(Agent.WAIT)
        handle = dead.spawn(agent)
        dead.at_work(agent)
        dead.known()
    again = Agent("another way", knows=False)
    with World(tmp_path, reopen=lambda ref: again) as world:
        world.do(world.supervisor.steer(handle.task_id, "The other way."))
        (taken,) = world.do(world.supervisor.recover())
        assert world.result(taken).text == "another way"
    assert again.got == ["do it\n\nThe other way."]


@pytest.mark.rule("K18")
def test_another_process_cannot_end_what_has_ended_nor_speak_to_it(world):
    handle = world.launch(Agent("done"))
    world.result(handle)
    with World(world.folder, beside=world) as other:
        assert other.do(other.supervisor.interrupt(handle)) is False
        with pytest.raises(Refused, match="has ended"):
            other.do(other.supervisor.say(handle, "hello"))
        with pytest.raises(Refused, match="there is no task t9"):
            other.do(other.supervisor.kill("t9"))


@pytest.mark.rule("K8", "K18")
def test_recovering_only_one_task_delivers_what_it_ended_with(tmp_path):
    delivered = []

    with World(tmp_path) as dead:
        handle = dead.spawn(Agent("done"))
        dead.until(lambda: dead.state(handle) == "ended")

    async def deliver(announcement):
        delivered.append(announcement.result.text)

    with World(tmp_path, deliver=deliver, reopen=lambda ref: Agent()) as world:
        (taken,) = world.do(world.supervisor.recover(only=handle.task_id))
        assert world.result(taken).text == "done"
        world.until(lambda: delivered)
        assert world.do(world.supervisor.recover(only=handle.task_id)) == ()
    assert delivered == ["done"]


@pytest.mark.rule("K18")
def test_a_kill_of_a_parent_reaches_children_that_another_process_owns(world):
    parent, child = Agent(Agent.WAIT, id="p"), Agent(Agent.WAIT, id="c")
    above = world.launch(parent)
    with World(world.folder, beside=world) as other:
        below = other.spawn(child, parent=above.task_id)
        other.at_work(child)
        world.do(world.supervisor.kill(above))
        assert other.result(below).ending == "killed"


@pytest.mark.rule("K18", "K7")
def test_the_tasks_of_a_killed_process_are_recovered_and_delivered(tmp_path):
    story = """
    import json, sys
    from notyet.core.session import Turn

    class Forever:
        id = "orphan"
        def ref(self): return {"agent": "tests", "id": "orphan"}
        async def send(self, prompt, key):
            print(json.dumps(prompt), flush=True)
            await asyncio.Event().wait()
        def knows(self, key): return None
        async def abort(self): pass
        def transcript(self): return None

    await supervisor.spawn(Forever(), "Mend it.", label="mender")
    await asyncio.sleep(60)
    """
    process = other_process(tmp_path / "ledger.db", story)
    assert json.loads(process.stdout.readline()) == "Mend it."
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.communicate()
    delivered, refs = [], []

    async def deliver(announcement):
        delivered.append(announcement)

    orphan = Agent(knows=False, id="orphan")
    orphan.answers = ["mended"]

    def reopen(ref):
        refs.append(ref)
        return orphan

    with World(tmp_path, reopen=reopen, deliver=deliver) as world:
        (handle,) = world.do(world.supervisor.recover())
        result = world.result(handle)
        world.until(lambda: delivered)
        assert world.do(world.supervisor.recover()) == ()
    assert refs == [{"agent": "tests", "id": "orphan"}]
    assert orphan.aborts == 1  # whatever the dead left at work ends first
    assert (result.text, result.label, orphan.got) == ("mended", "mender", ["Mend it."])
    assert [each.key for each in delivered] == [f"{handle.task_id}:1"]
