"""A retry is a new session that knows what the user wants, with send-backs of its own (K7)."""

from notyet import Block, Engine
from notyet.core.session import Turn
from supervised import Agent
from support import gate


def test_a_retried_task_hears_again_what_its_user_said(crew):
    agents = []

    def opened(order, cwd):
        failed = Turn(text="", stop_reason="error", error="overloaded")
        agents.append(Agent(*([Agent.WAIT, failed] if not agents else []), id=f"s{len(agents)}"))
        return agents[-1]

    task = crew.submit("do it", retries=1)
    crew.start(opened)
    crew.until(lambda: agents and agents[0].waiting.is_set())
    crew.do(crew.fleet.say(task, "only the parser"))
    agents[0].come_back(Turn(text="half"))
    crew.result(task)
    assert [agent.got for agent in agents] == [["do it", "only the parser"]] * 2


def test_a_session_of_a_retried_task_is_known_and_has_send_backs_of_its_own(crew):
    agents, asked = [], []

    def opened(order, cwd):
        failed = Turn(text="", stop_reason="error", error="overloaded")
        agents.append(Agent("one", *([failed] if len(agents) < 2 else []), id=f"s{len(agents)}"))
        return agents[-1]

    def check(event):
        asked.append((event.session_id, event.block_count))
        return Block("again") if event.block_count == 0 else None

    engine = Engine([gate(answer=check)], ledger=crew.fleet.ledger)
    task = crew.submit(retries=2)
    crew.start(opened, engine_of=lambda task: engine)
    assert crew.result(task).session_id == "s2"
    assert asked == [("s0", 0), ("s1", 0), ("s2", 0), ("s2", 1)]
