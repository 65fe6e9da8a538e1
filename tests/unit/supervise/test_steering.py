"""Sending a supervised agent back: the same session, a new run, and nothing announced."""

import pytest

from notyet import Block, Limits
from notyet.core.session import News, Turn
from notyet.errors import SendError
from supervised import Agent, World
from support import gate


@pytest.mark.rule("K2", "K1")
def test_a_block_continues_the_same_session_as_a_new_run_and_nothing_is_announced(tmp_path):
    announced = []

    async def deliver(announcement):
        announced.append(announcement)

    with World(tmp_path, deliver=deliver) as world:
        world.block(1, "Run the tests.")
        agent = Agent("done", Agent.WAIT)
        handle = world.spawn(
            agent, "Mend it.", label="mender", agent_type="coder", cleanup="delete"
        )
        world.until(lambda: len(agent.got) == 2 and world.view(handle).generation == 2)
        view = world.view(handle)
        assert announced == []
        assert agent.got == ["Mend it.", "Run the tests."]
        assert (view.run_id, view.generation, view.state) == (f"{handle.task_id}.2", 2, "running")
        assert (view.source, view.steers) == ("gate", 1)
        assert (view.task.prompt, view.task.label, view.task.agent_type, view.task.cleanup) == (
            ("Mend it.", "mender", "coder", "delete")
        )
        assert world.rows("SELECT generation, state FROM runs ORDER BY generation") == [
            (1, "superseded"),
            (2, "running"),
        ]
        agent.come_back(Turn(text="they pass"))
        result = world.result(handle)
        world.until(lambda: announced)
    assert (result.text, result.steers, result.label) == ("they pass", 1, "mender")
    assert [each.result for each in announced] == [result]


@pytest.mark.rule("K2", "B3")
def test_the_count_is_in_the_ledger_before_the_agent_is_sent_back(world):
    world.block(1)
    counted = []

    def look(prompt):
        counted.extend(world.rows("SELECT blocks, session_blocks FROM agents"))
        counted.extend(world.rows("SELECT steers FROM tasks"))
        return "done"

    world.spawned(Agent("done", look))
    assert counted == [(1, 1), (1,)]


@pytest.mark.rule("B1", "K2")
def test_the_agent_is_let_go_after_three_blocks_and_a_warning_names_run_session_and_limit(world):
    asked = []

    def never_content(event, ctx):
        asked.append((event.steerCount, event.maxSteers))
        return {"allow": False, "prompt": "more"}

    world.engine.on("subagent_stopping", never_content)
    agent = Agent("one", "two", "three", "four", id="child-7")
    result = world.spawned(agent)
    assert asked == [(0, 3), (1, 3), (2, 3)]
    assert agent.got == ["do it", "more", "more", "more"]
    assert (result.text, result.outcome, result.steers) == ("four", "capped", 3)
    (warning,) = [said for said in world.warnings if "limit reached" in said]
    for words in ("3 of 3 send-backs used", f"run {result.task_id}.4", "session child-7"):
        assert words in warning
    assert warning in result.warnings


@pytest.mark.rule("B2")
def test_a_handler_can_raise_the_limit_but_not_lower_it(world):
    limits = []

    def wants(event, ctx):
        limits.append(event.maxSteers)
        extend = {0: 5, 1: 2}.get(event.steerCount)
        return {"allow": False, "prompt": "more", "extendMaxSteers": extend}

    world.engine.on("subagent_stopping", wants)
    result = world.spawned(Agent())
    assert limits == [3, 5, 5, 5, 5]
    assert result.steers == 5


@pytest.mark.rule("B13", "B2")
def test_a_session_has_a_ceiling_that_no_new_task_refills(tmp_path):
    limits = Limits(session_ceiling=4, stuck_after=0)
    with World(tmp_path, gates=[gate("g", Block("more"))], limits=limits) as world:
        results = [world.ran(Agent(id="same")) for _ in range(3)]
        fresh = world.ran(Agent(id="another"))
    assert [result.steers for result in results] == [3, 1, 0]
    assert {result.outcome for result in results} == {"capped"}
    assert fresh.steers == 3


@pytest.mark.rule("B1", "B3")
def test_a_session_whose_id_becomes_known_late_gets_no_second_budget(world):
    class Late(Agent):
        async def send(self, prompt, key):
            turn = await super().send(prompt, key)
            if len(self.got) == 1:
                self.id = None
            return turn

        def news(self, kind, **fields):
            if kind != "ref":
                super().news(kind, **fields)

    world.engine.on("subagent_stopping", lambda event, ctx: {"allow": False, "prompt": "more"})
    result = world.spawned(Late())
    assert (result.steers, result.outcome) == (3, "capped")


@pytest.mark.rule("B4", "B5")
def test_a_users_message_opens_a_turn_with_a_fresh_budget_and_a_false_flag(tmp_path):
    told = []

    def check(event):
        told.append((event.block_count, event.stop_hook_active))
        return Block("more")

    with World(tmp_path, gates=[gate("g", check)], limits=Limits(max_blocks=1)) as world:
        agent = Agent("one", Agent.WAIT, "three", "four")
        handle = world.launch(agent)
        world.until(lambda: len(agent.got) == 2 and agent.waiting.is_set())
        world.do(world.supervisor.say(handle, "Also this."))
        agent.come_back(Turn(text="two"))
        result = world.result(handle)
    assert agent.got == ["do it", "more", "Also this.", "more"]
    assert told == [(0, False), (0, False), (1, True)]
    assert (result.steers, result.outcome) == (2, "capped")


@pytest.mark.rule("B4")
def test_a_task_is_one_turn_and_each_prompt_to_a_main_agent_is_one(tmp_path):
    with World(tmp_path, gates=[gate("g", Block("more"))], limits=Limits(max_blocks=2)) as world:
        assert [world.ran(Agent(id="same")).steers for _ in range(2)] == [2, 2]


@pytest.mark.rule("K4")
def test_a_steer_that_cannot_be_sent_lets_the_run_end_as_if_no_gate_existed(tmp_path):
    announced, told = [], []

    async def deliver(announcement):
        announced.append(announcement.result)

    with World(tmp_path, deliver=deliver) as world:
        world.block(3)
        world.engine.on("subagent_ended", lambda event, ctx: told.append(event))
        agent = Agent("done", SendError("the agent is gone"))
        handle = world.spawn(agent)
        result = world.result(handle)
        world.until(lambda: announced)
        assert world.rows("SELECT phase, error FROM steers") == [("failed", "the agent is gone")]
        assert world.rows("SELECT outcome FROM stops") == [("failed_open",)]
    assert (result.ending, result.text, result.generation) == ("done", "done", 1)
    assert (result.outcome, result.steers) == ("failed_open", 0)
    assert announced == [result]
    assert [event.outcome for event in told] == ["ok"]
    said = f"task {handle.task_id} could not be steered: the agent is gone"
    assert said in world.warnings


@pytest.mark.rule("K19")
def test_an_empty_continuation_keeps_the_earlier_answer_marked_as_rejected(tmp_path):
    announced = []

    async def deliver(announcement):
        announced.append(announcement.result)

    with World(tmp_path, deliver=deliver) as world:
        world.block(1)
        result = world.spawned(Agent("a long report", "  "))
        world.until(lambda: announced)
    assert (result.text.strip(), result.rejected) == ("", "a long report")
    assert announced[0].rejected == "a long report"


def test_progress_is_reported_and_a_broken_listener_is_harmless(world):
    world.block(1)

    def talk(prompt):
        agent.on_news(News(kind="text", text="hm"))
        agent.on_news(News(kind="tool", tool="bash", text="ls"))
        return "done"

    agent = Agent(talk, "good")
    handle = world.spawn(agent)
    world.result(handle)
    assert world.kinds(handle) == [
        *("sent", "text", "tool", "accepted", "turn", "settling", "gating", "decided"),
        *("steering", "sent", "accepted", "turn", "settling", "gating", "decided", "ended"),
    ]
    assert [each.generation for each in world.progress if each.kind == "turn"] == [1, 2]

    def broken(progress):
        raise OSError("closed")

    world.supervisor._context._on_progress = broken
    assert world.spawned(Agent("good", id="s2")).ending == "done"
    assert "on_progress failed: OSError: closed" in world.warnings


def test_the_progress_of_gates_goes_to_what_is_given_for_their_task(world):
    world.block(1)
    heard = []

    def progress_of(task):
        return lambda gate, report: heard.append((task, gate, report and report.status))

    world.supervisor._context._gate_progress = progress_of
    handle = world.spawn(Agent("bad", "good"))
    world.result(handle)
    name = heard[0][1]
    assert heard == [
        (handle.task_id, name, status) for status in (None, "blocked", None, "allowed")
    ]


def test_a_session_that_has_no_news_is_steered_once_its_turn_is_over(world):
    class Silent:
        __slots__ = ("answers", "got", "id")

        def __init__(self):
            self.id, self.got, self.answers = "quiet", [], ["bad", "good"]

        def ref(self):
            return {}

        async def send(self, prompt, key):
            self.got.append(prompt)
            return Turn(text=self.answers.pop(0))

        def knows(self, key):
            return None

        async def abort(self):
            pass

        def transcript(self):
            return None

    world.block(1)
    result = world.spawned(Silent())
    assert (result.text, result.generation, result.steers) == ("good", 2, 1)


@pytest.mark.rule("K16")
def test_the_same_message_or_steer_given_twice_with_one_key_is_sent_once(world):
    agent = Agent(Agent.WAIT, Agent.WAIT, Agent.WAIT, "done")
    handle = world.launch(agent)
    world.at_work(agent)
    for _ in range(2):
        world.do(world.supervisor.steer(handle, "Use the new API.", key="page:1"))
        world.until(lambda: len(agent.got) == 2 and world.state(handle) == "running")
    for _ in range(2):
        world.do(world.supervisor.say(handle, "Mind the readme.", key="page:2"))
    agent.come_back(Turn(text="did"))
    world.until(lambda: len(agent.got) == 3)
    world.do(world.supervisor.say(handle, "Mind the readme.", key="page:2"))
    agent.come_back(Turn(text="did that too"))
    assert world.result(handle).text == "did that too"
    assert agent.got == ["do it", "Use the new API.", "Mind the readme."]
