"""`notyet tasks`: looking at supervised agents, and having a word in it."""

import asyncio
import json

import pytest

from notyet import Engine, Ledger
from notyet.agents import reopen
from notyet.cli.main import main
from notyet.errors import Undeliverable
from notyet.ledger.task_rows import UNKNOWN
from notyet.supervise import Supervisor, SupervisorSettings
from notyet.testing import Script, ScriptedSession
from with_runs import LEARNS, project

pytestmark = pytest.mark.rule("K8")
QUICK = SupervisorSettings(grace=0, poll=0.02)


def spawned(deliver=None, *answers, **fields):
    """Let a subagent do its work; return its task's id."""

    async def work():
        ledger = Ledger()
        engine = Engine(ledger=ledger)
        async with Supervisor(engine, ledger, reopen, deliver=deliver, settings=QUICK) as here:
            session = ScriptedSession(Script.saying(*(answers or ("Done.",))))
            handle = await here.spawn(session, "Look around.", **fields)
            while (await here.task(handle)).state != "ended":
                await asyncio.sleep(0.01)
            while deliver and (await here.task(handle)).delivery in {"pending", "leased"}:
                await asyncio.sleep(0.01)
            return handle.task_id

    return asyncio.run(work())


async def accept(announcement):
    pass


async def refuse(announcement):
    raise Undeliverable("nobody is\nat home")


def shown(capsys, *argv):
    code = main(["tasks", *argv])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_list_is_a_table_with_the_newest_first(capsys):
    first = spawned(None, label="the first", agent_type="coder")
    second = spawned(None)
    code, out, err = shown(capsys)
    assert (code, err) == (0, "")
    head, *rows = [line for line in out.splitlines() if "undelivered" not in line]
    assert head.split() == ["ID", "STATE", "OUTCOME", "AGENT", "RUNS", "AGE", "TASK"]
    assert [row.split()[0] for row in rows] == [second, first]
    assert rows[0].split()[1:5] == ["done", "skipped", "scripted", "1"]
    assert rows[0].endswith("Look around.")
    assert rows[1].endswith("the first")
    assert {row.index("skipped") for row in rows} == {head.index("OUTCOME")}


def test_undelivered_results_are_mentioned(capsys):
    waits = spawned(None)
    suspended = spawned(refuse)
    out = shown(capsys)[1]
    assert "undelivered: the program that takes its result is not running" in out
    again = f"try again with: notyet tasks retry {suspended}"
    assert f"undelivered: nobody is at home; {again}" in out
    assert [view["delivery"] for view in json.loads(shown(capsys, "--json")[1])] == [
        "suspended",
        "pending",
    ]
    assert waits in out


def test_one_task_is_shown_with_everything(run_here, capsys, tmp_path, monkeypatch):
    folder = project(tmp_path / "p", LEARNS)
    assert run_here(folder, "--label", "first one").returncode == 0
    (task,) = json.loads(shown(capsys, "--json")[1])
    lines = shown(capsys, "show", task["id"][:4])[1].splitlines()
    page = {line[:10].strip(): line[10:] for line in lines}
    assert page["task"] == f"{task['id']}  first one"
    assert page["state"].startswith("done, passed (begun ")
    assert page["agent"] == f"scripted in {folder}"
    assert page["session"] == task["session_id"]
    assert page["steers"] == "1 by gates"
    assert page["prompt"] == "Make it ready."
    assert page["run 1"].split()[-2:] == ["done", "task"]
    assert "sent back: notyet: a check failed" in page["run 2"]
    assert page["result"] == "delivered"
    assert page["answer"] == "Now it is."
    assert page["go on"] == (f"notyet with scripted:FILE --resume {task['session_id']} 'go on'")
    monkeypatch.chdir(tmp_path)
    assert f"--cwd {folder} --resume" in shown(capsys, "show", task["id"])[1]


def test_one_task_as_json_has_its_runs_and_its_result(run_here, capsys, tmp_path):
    run_here(project(tmp_path / "p", LEARNS))
    (task,) = json.loads(shown(capsys, "--json")[1])
    known = json.loads(shown(capsys, "show", task["id"], "--json")[1])
    assert [(run["generation"], run["source"]) for run in known["runs"]] == [
        (1, "start"),
        (2, "gate"),
    ]
    assert known["result"]["outcome"] == "passed"
    assert known["resume"].startswith("notyet with scripted:FILE")
    assert (known["steers"], known["other_steers"]) == (1, [])
    assert (known["messages"], known["children"]) == ([], [])


def test_children_messages_and_steers_that_failed_are_shown(capsys):
    async def work():
        ledger = Ledger()
        async with Supervisor(Engine(ledger=ledger), ledger, reopen, settings=QUICK) as here:
            here.deliver = here.tell_parent
            main_agent = await here.launch(
                ScriptedSession(script("{ wait = 0.5 }")), "Lead.", label="lead"
            )
            child = await here.spawn(
                ScriptedSession(Script.saying("Found\x1b[2J it.")), "Look.", parent=main_agent
            )
            await main_agent.result()
            return main_agent.task_id, child.task_id

    lead, child = asyncio.run(work())
    out = shown(capsys, "show", lead)[1]
    assert f"children  {child}" in out
    assert "message   sent, of a machine:" in out
    assert "\x1b" not in shown(capsys, "show", child)[1]
    assert f"parent    {lead}" in shown(capsys, "show", child)[1]


def script(*steps):
    import tomllib

    from notyet.agents.script import script_from

    return script_from(tomllib.loads(f"[[turn]]\nsteps = [{', '.join(steps)}]\n"), "test")


@pytest.mark.rule("K16", "K18")
def test_a_task_of_another_process_is_steered_and_killed(capsys):
    async def work():
        ledger = Ledger()
        engine = Engine(ledger=ledger)
        async with Supervisor(engine, ledger, reopen, settings=QUICK) as here:
            session = ScriptedSession(script("{ hang = true }"))
            handle = await here.launch(session, "Look.", label="x")
            task = handle.task_id
            while not session.prompts:
                await asyncio.sleep(0.01)
            while_it_works = await asyncio.to_thread(shown, capsys, "show", task)
            steered = await asyncio.to_thread(shown, capsys, "steer", task, "Elsewhere.")
            while (await here.task(task)).generation < 2:  # its owner notices soon
                await asyncio.sleep(0.01)
            killed = await asyncio.to_thread(shown, capsys, "kill", task)
            result = await handle.result()
            return while_it_works, steered, killed, session.prompts, result

    while_it_works, steered, killed, prompts, result = asyncio.run(work())
    assert "(alive)" in while_it_works[1]
    assert "go on " not in while_it_works[1]
    assert steered[:2] == (0, f"{result.task_id} continues with your prompt\n")
    assert killed[:2] == (0, f"{result.task_id} is killed\n")
    assert [prompt for _, prompt in prompts] == ["Look.", "Elsewhere."]
    assert result.ending == "killed"
    page = shown(capsys, "show", result.task_id)[1]
    assert "steered: Elsewhere." in page


def test_errors_and_messages_that_came_too_late_are_shown(capsys):
    async def work():
        ledger = Ledger()
        engine = Engine(ledger=ledger)
        async with Supervisor(engine, ledger, reopen, settings=QUICK) as here:
            failing = ScriptedSession(script('{ wait = 0.2 }, { fail = "no luck" }'))
            first = await here.spawn(failing, "Look.", agent_type="coder", parent="s-0")
            hanging = ScriptedSession(script("{ hang = true }"))
            second = await here.launch(hanging, "Look.")
            while not hanging.prompts:
                await asyncio.sleep(0.01)
            await here.say(second, "And this.")
            await here.interrupt(second)
            return await first.result(), await second.result()

    failed, interrupted = asyncio.run(work())
    page = shown(capsys, "show", failed.task_id)[1]
    assert "error     no luck" in page
    assert "agent     scripted, a coder" in page
    assert "parent    session s-0" in page
    page = shown(capsys, "show", interrupted.task_id)[1]
    assert "unsent    And this." in page


def test_the_beginning_of_an_id_is_enough_if_it_is_the_only_one(capsys):
    first, second = spawned(None), spawned(None)
    code, _, err = shown(capsys, "show", "t")
    assert code == 1
    assert "write more of it" in err
    assert first in err
    assert second in err
    code, _, err = shown(capsys, "show", "zzz\x1b")
    assert code == 1
    assert "there is no task zzz\\x1b; list them with: notyet tasks --all" in err


def test_a_result_is_delivered_again_by_the_process_that_takes_it(capsys):
    got = []

    async def work():
        ledger = Ledger()
        engine = Engine(ledger=ledger, warn=lambda _: None)

        async def take(announcement):
            got.append(announcement.key)
            if len(got) == 1:
                raise Undeliverable("not now")

        async with Supervisor(engine, ledger, reopen, deliver=take, settings=QUICK) as here:
            handle = await here.spawn(ScriptedSession(Script.saying("Done.")), "Look.")
            while (await here.task(handle)).delivery != "suspended":
                await asyncio.sleep(0.01)
            return await asyncio.to_thread(shown, capsys, "retry", handle.task_id)

    code, out, err = asyncio.run(work())
    assert (code, err) == (0, "")
    assert "is delivered" in out
    assert got[0] == got[1]  # the same result, under the same key


@pytest.mark.rule("K7", "K10")
def test_a_notification_that_may_be_missing_is_listed_until_it_is_dismissed(capsys):
    task = spawned(accept)
    ledger = Ledger()
    ledger.connection.execute("UPDATE outbox SET told = ?", (UNKNOWN,))
    ledger.close()
    hide = f"notyet tasks dismiss {task}"
    _, out, _ = shown(capsys)
    assert "maybe not delivered: its process died while it notified observers" in out
    assert out.rstrip().endswith(hide)
    assert shown(capsys, "dismiss", task)[0] == 0
    assert "maybe not delivered" not in shown(capsys)[1]
    assert shown(capsys, "dismiss", spawned(accept))[0] == 1
