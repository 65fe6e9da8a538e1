"""What must be true after a crash and a recovery: rule K7 to the letter."""

import json

from crash.world import MAX_BLOCKS
from notyet.ledger.task_rows import UNKNOWN
from stores import records


def snapshot(world):
    """Return what the ledger says of each task."""
    rows = records(
        world.ledger,
        "SELECT tasks.id, tasks.steers, tasks.ended_at, tasks.about, tasks.ref, runs.state,"
        " runs.ending, runs.sent, runs.key, runs.id AS run FROM tasks"
        " JOIN runs ON runs.id = tasks.run",
    )
    return {row["id"]: _task(world.ledger, row) for row in rows}


def _task(ledger, task):
    for table in ("runs", "steers", "messages", "outbox"):
        sql = f"SELECT * FROM {table} WHERE task = ?"  # noqa: S608  # our own tables
        task[table] = records(ledger, sql, task["id"])
    task["about"] = json.loads(task["about"])
    task["agent"] = json.loads(task["ref"])["agent"]
    task["steer"] = next((s for s in task["steers"] if s["phase"] in _OPEN), None)
    most = "SELECT max(session_blocks) AS most FROM agents WHERE agent_id = ?"
    (blocks,) = records(ledger, most, task["id"])
    task["counted"] = blocks["most"] or 0
    return task


_OPEN = ("reserved", "dispatched")


def judge(world, before, after):
    """Return what is wrong, in sentences."""
    wrong = []
    prompts = world.read("got")
    keys = [line["key"] for line in prompts]
    texts = [(line["agent"], line["prompt"]) for line in prompts]
    wrong += [f"a prompt was sent twice: {key}" for key in set(keys) if keys.count(key) > 1]
    wrong += [f"an agent got the same words twice: {t}" for t in set(texts) if texts.count(t) > 1]
    agents = {task["agent"] for task in after.values()}
    if len([line for line in world.read("observed") if line["task"] == "main"]) > 1:
        wrong.append("observers of the main agent were told twice")
    wrong += [
        f"{line['agent']} works for no task" for line in prompts if line["agent"] not in agents
    ]
    for task in after.values():
        said = _judge_task(world, task, before.get(task["id"]), after)
        wrong += [f"{task['agent']}: {sentence}" for sentence in said]
    return wrong


def _judge_task(world, task, before, after):
    yield from _ended_once(task)
    yield from _steers(world, task)
    if before is not None and len(task["outbox"]) == 1:
        result = json.loads(task["outbox"][0]["result"])
        yield from _as_expected(world, before, result)
        yield from _delivered(world, task, result, after)
        yield from _messages(world, task, result)


def _ended_once(task):
    if task["ended_at"] is None or task["state"] != "ended":
        yield f"it is left {task['state']}"
    if len(task["outbox"]) != 1:
        yield f"it has {len(task['outbox'])} rows in the outbox"
    live = [run["id"] for run in task["runs"] if run["state"] not in {"ended", "superseded"}]
    if live:
        yield f"runs are left at work: {live}"
    if sum(run["state"] == "ended" for run in task["runs"]) != 1:
        yield "not exactly one of its runs has ended"


def _steers(world, task):
    accepted = [run["key"] for run in task["runs"]]
    if len(set(accepted)) != len(accepted):
        yield "two runs came of one steer"
    for steer in task["steers"]:
        runs = accepted.count(steer["key"])
        if runs != (steer["phase"] == "accepted"):
            yield f"a steer that is {steer['phase']} has {runs} runs"
    gates = sum(steer["source"] == "gate" for steer in task["steers"])
    turns = 1 + sum(message["kind"] == "user" for message in task["messages"])
    if task["steers"] and gates > MAX_BLOCKS * turns:
        yield f"gates sent it back {gates} times"
    if any(line["count"] > line["most"] for line in world.read("asked")):
        yield "a gate was told a count above the limit"
    told = [line["prompt"] for line in world.read("got") if line["agent"] == task["agent"]]
    sent_back = sum("go on after" in prompt for prompt in told)
    is_main = task["about"]["scope"] == "agent"
    if sent_back > task["counted"] and not is_main:
        yield f"{sent_back} send-backs were told and {task['counted']} counted"


def _as_expected(world, before, result):
    """Compare how it ended with what the ledger said before the recovery began."""
    if before["state"] == "ended":
        frozen = json.loads(before["outbox"][0]["result"])
        if frozen != result:
            yield "its frozen result changed"
        return
    expected = _expected(world, before)
    if result["ending"] not in expected:
        yield f"it ended {result['ending']} instead of {expected} ({before['state']})"


def _expected(world, before):
    """Return how a task that was found in this state may end."""
    if world.knowing == "cannot be reopened":
        if before["state"] == "running":
            return {"interrupted"}
        return {before["ending"] or "interrupted"}
    key = before["steer"]["key"] if before["steer"] else before["key"]
    sent = before["steer"]["phase"] if before["steer"] else before["sent"]
    if before["state"] in {"running", "steering"} and sent != "reserved":
        has_it = any(line["key"] == key for line in world.prompts_before)
        if has_it or world.knowing == "cannot know":
            return {"interrupted"}
    if before["ending"] == "error" or any(
        step[0] == "fail" for step in world.script[before["agent"]]
    ):
        return {"done", "error"}  # nobody is left who could say that it healed
    return {"done"}


def _delivered(world, task, result, after):
    parent = after.get(task["about"]["parent"])
    if parent is not None:
        yield from _told_to_parent(world, task, result, parent)
        return
    status = task["outbox"][0]["status"]
    if status != "delivered":
        yield f"its delivery is {status}"
    if task["about"]["scope"] == "agent":
        return
    had = [line for line in world.read("delivered") if line["task"] == task["id"]]
    if not had:
        yield "its result never reached the consumer"
    if len({(line["key"], line["ending"], line["text"]) for line in had}) > 1:
        yield "the consumer was given two results, or two keys"
    yield from _observed(world, task, result)


def _told_to_parent(world, task, result, parent):
    status = task["outbox"][0]["status"]
    told = [line["prompt"] for line in world.read("got") if line["agent"] == parent["agent"]]
    is_told = any(result["text"] in prompt for prompt in told[1:])
    if status not in {"delivered", "suspended"}:
        yield f"its delivery is {status}"
    if status == "delivered" and not is_told:
        yield "it says that its parent has its result, and it has not"
    is_there = parent["ending"] == "done" and world.knowing != "cannot be reopened"
    if status == "suspended" and not is_told and is_there:
        yield "its result did not reach its parent, who was there"


def _observed(world, task, result):
    lines = [line for line in world.read() if line.get("task") == task["id"]]
    told = [line["ending"] for line in lines if line["what"] == "observed"]
    if len(told) > 1:
        yield "observers were told twice"
    is_unknown = task["outbox"][0]["told"] == UNKNOWN  # also of one that was suspended meanwhile
    if told and lines[0]["what"] != "observed" and not is_unknown:
        yield "observers were not told before its result was delivered"
    if not told and not is_unknown:
        yield "observers were not told, and this is not listed"
    if set(told) - {_SAID.get(result["ending"], result["ending"])}:
        yield f"observers were told of {told}"


_SAID = {"done": "ok"}


def _messages(world, task, result):
    got = "\n".join(line["prompt"] for line in world.read("got") if line["agent"] == task["agent"])
    for message in task["messages"]:
        text, state = message["text"], message["state"]
        if state in {"queued", "taken"}:
            yield f"a message is left {state}"
        if state == "sent" and text not in got:
            yield "a message that was sent never arrived"
        if message["kind"] == "user" and state != "sent" and text not in result["unsent"]:
            yield f"a message of the user was lost ({state})"
        if state != "cleared" and got.count(text) > 1:
            yield "a message arrived twice"
