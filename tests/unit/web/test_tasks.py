"""Tasks on the page: their list, one with its conversation, and what people do with them."""

import html
import os
import re
import signal
import subprocess
import sys

import pytest

from notyet import Allow, Block, Decision
from notyet.core.event import Usage
from notyet.core.session import Turn
from notyet.core.task import Task
from notyet.ledger.outbox import Outbox
from notyet.ledger.task_rows import UNKNOWN
from notyet.ledger.transitions import run_id
from notyet.run.proc import start_time
from supervised import Dead, first_run
from support import rows, stop

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e"
PASSED = Decision(verdict=Allow(), outcome="passed", turn=1)


class Desk(Dead):
    """A page on a ledger with tasks, whose supervisor is this process."""

    def __init__(self, folder, serve):
        super().__init__(folder)
        self.page = serve(path=str(folder / "ledger.db"))
        self.outbox = Outbox(self.ledger.connection)

    def enter(self, task="t1", session="s1", **fields):
        known = Task(**({"id": task, "prompt": "do it", "scope": "agent"} | fields))
        ref = {"agent": "scripted"}
        limits = {"max_depth": 9, "max_children": 200}
        self.tasks.start(known, first_run(task), self.owner, ref, session, **limits)

    def answer(self, text="done", task="t1", generation=1, **figures):
        run = run_id(task, generation)
        assert self.runs.finish(run, Turn(text=text, **figures), "done", self.owner)
        assert self.runs.settle(run, self.owner, f"{run} settles")

    def decide(self, decision=PASSED, task="t1", generation=1, session="s1"):
        run = run_id(task, generation)
        event = stop(host="notyet", session_id=session, task_id=task, run_id=run)
        begun = self.ledger.begin(event)
        more = {"begun": begun, "ceiling": 0, "key": f"{run} decides"}
        assert self.runs.decide(run, self.owner, decision, **more)

    def send_back(self, prompt, task="t1"):
        self.decide(Decision(verdict=Block(prompt), outcome="blocked", turn=1, limit=3), task)
        key = f"{run_id(task, 1)} decides"
        assert self.runs.dispatch(key, self.owner)
        assert self.runs.accept(key, self.owner)

    def end(self, task="t1", **fields):
        self.enter(task, **fields)
        self.answer(task=task)
        self.decide(task=task)

    def act(self, action, task="t1", **fields):
        """Send a form, and return what the page says of it."""
        answer = self.page.post(f"/tasks/{task}", {"action": action, **fields})
        if answer.status != 303:
            return answer.status, html.unescape(answer.text)
        shown = self.page.get(answer.headers["Location"]).text
        kind, said = re.search(r'id="done" class="notice (\w+)"[^>]*>(.*?)</div>', shown).groups()
        return kind, html.unescape(re.sub("<[^>]+>", "", said))


@pytest.fixture
def desk(tmp_path, serve):
    desk = Desk(tmp_path, serve)
    yield desk
    desk.ledger.close()


def names(shown):
    return re.findall(r'<a href="/tasks/(\w+)">', shown)


# The list.


def test_the_lists_show_tasks_in_every_state(desk):
    desk.end("t1", label="the <b>first")
    desk.outbox.acknowledge("t1")
    desk.end("t2")
    rows(desk.ledger, "UPDATE outbox SET status = 'suspended', error = 'no' WHERE task = 't2'")
    desk.enter("t3", prompt="look\naround", cwd="/home/shop", agent_type="coder")
    for at, task in enumerate(("t1", "t2", "t3")):
        rows(desk.ledger, "UPDATE tasks SET created_at = ? WHERE id = ?", 1e9 + at, task)
    shown = desk.page.get("/tasks").text
    assert names(shown) == ["t3", "t2", "t1"]
    assert "the &lt;b&gt;first" in shown
    assert "undelivered: no; try again with: notyet tasks retry t2" in shown
    assert ">look around</a>" in shown
    assert ">shop</span>" in shown
    assert names(desk.page.get("/tasks?show=active").text) == ["t3"]
    assert names(desk.page.get("/tasks?show=undelivered").text) == ["t2"]
    data = desk.page.get("/tasks.json?show=undelivered").json
    assert (data["show"], data["older"]) == ("undelivered", "")
    assert [(one["id"], one["delivery"]) for one in data["tasks"]] == [("t2", "suspended")]


def test_a_long_list_comes_page_by_page(desk):
    for number in range(120):
        desk.enter(f"t{number:03}")
    seen, path = [], "/tasks?show=active"
    while path:
        shown = desk.page.get(path).text
        assert ("hx-select-oob" in shown) == (not seen)
        seen += names(shown)
        older = re.search(r'href="([^"]*)" rel="next"', shown)
        path = older and older[1].replace("&amp;", "&")
    assert seen == [f"t{number:03}" for number in range(119, -1, -1)]


def test_a_list_that_is_not_there_is_answered_in_words(page):
    assert "notyet with claude" in page.get("/tasks").text
    for asked, status, words in (
        ("show=old", 400, "show is one of all, active, undelivered, not “old”"),
        ("before=gone", 404, "a task that is gone"),
        ("state=running", 400, "There is no filter “state”"),
    ):
        answer = page.get(f"/tasks?{asked}")
        assert (answer.status, words in answer.text) == (status, True), asked


# One task.


def test_a_task_shows_its_conversation_in_order(desk):
    desk.enter(label="port", cwd="/shop")
    spent = {"usage": Usage(input=1200, output=30), "duration_ms": 4000.0}
    desk.answer("Done!", tool_calls=2, tools=("bash",), **spent)
    desk.send_back("FAILED test_help")
    shown = desk.page.get("/tasks/t1").text
    talk = shown[shown.index('id="talk"') :]
    places = [
        talk.index(words)
        for words in ("do it", "Done!", "stop 1", "sent back", "FAILED test_help", "at work…")
    ]
    assert places == sorted(places)
    assert "once by gates" in shown
    cost = "1,230 tokens (1,200 in, 30 out) · tools called twice (bash) · at work 4.0 s"
    assert f"<dt>figures</dt><dd>{cost}</dd>" in shown
    assert 'href="/session?host=notyet&amp;id=s1"' in shown
    assert ">running<" in shown
    desk.answer("It is.", generation=2)
    desk.decide(generation=2)
    shown = desk.page.get("/tasks/t1").text
    assert "It is." in shown
    assert ">passed<" in shown
    assert "at work…" not in shown


def test_the_json_of_a_task_is_what_the_command_prints(desk):
    desk.end()
    data = desk.page.get("/tasks/t1.json").json
    assert (data["id"], data["state"], data["outcome"]) == ("t1", "ended", "passed")
    assert [run["turn"]["text"] for run in data["runs"]] == ["done"]
    assert data["stops"] == {run_id("t1", 1): 1}
    assert data["result"]["text"] == "done"
    assert data["figures"]["turns"] == 1


def test_subagents_are_listed_with_their_state(desk):
    desk.enter()
    desk.enter("t2", "s2", parent="t1", scope="subagent", label="helper <i>")
    shown = desk.page.get("/tasks/t1").text
    assert '<a href="/tasks/t2">helper &lt;i&gt;</a>' in shown
    assert '<dt>parent</dt><dd><a href="/tasks/t1">' in desk.page.get("/tasks/t2").text
    assert desk.page.get("/tasks/t1.json").json["children"] == ["t2"]


def test_a_task_with_very_many_runs_shows_the_newest(desk):
    desk.enter()
    rows(
        desk.ledger,
        "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 80)"
        " INSERT INTO runs (id, task, generation, state, source, key, prompt, sent, started_at)"
        " SELECT 'r' || i, 't1', i, 'superseded', 'gate', 'k' || i, 'prompt ' || i || '.',"
        " 'accepted', 1.0 FROM n",
    )
    shown = desk.page.get("/tasks/t1").text
    assert "The first 30 runs are left out" in shown
    assert "prompt 80." in shown
    assert "prompt 30." not in shown


@pytest.mark.parametrize("task", ["gone", "%3Cb%3E", "%00", "t", "t1%20"])
def test_a_task_that_is_not_there_is_not_found(desk, task):
    desk.enter()
    for path in (f"/tasks/{task}", f"/tasks/{task}.json"):
        answer = desk.page.get(path)
        assert answer.status == 404
        assert "There is no task" in answer.text
    assert desk.page.post(f"/tasks/{task}", {"action": "kill"}).status == 404


def test_hostile_words_of_a_task_are_only_text(desk):
    desk.enter(prompt=HOSTILE, label=HOSTILE, cwd=f"/{HOSTILE}", agent_type=HOSTILE)
    desk.answer(HOSTILE * 500)
    desk.send_back(HOSTILE)
    assert desk.act("say", text=HOSTILE)[0] == "ok"
    for path in ("/tasks", "/tasks/t1"):
        shown = desk.page.get(path).text
        assert "<script>alert" not in shown
        assert "&lt;script&gt;alert" in shown
        assert "\x1b" not in shown
        assert "\u202e" not in shown


# What people do.


def test_a_message_is_queued_once_however_often_its_form_is_sent(desk):
    desk.enter()
    shown = desk.page.get("/tasks/t1").text
    key = re.search(r'value="say"><input type="hidden" name="key" value="(\w+)"', shown)[1]
    for _ in range(2):
        said = desk.act("say", text="And the\r\ndocs.", key=key)
        assert said == ("ok", "t1 gets your message when its turn ends")
    desk.act("say", text="Also this.", key=key)  # a browser went back, and another text was sent
    assert rows(desk.ledger, "SELECT text FROM messages ORDER BY id") == [
        ("And the\ndocs.",),
        ("Also this.",),
    ]
    shown = desk.page.get("/tasks/t1").text
    assert "message of its user, queued" in shown
    assert key not in shown


def test_a_prompt_steers_once_and_a_second_one_comes_too_soon(desk):
    desk.enter()
    assert desk.act("steer", text="Use the new API.", key="k") == (
        "ok",
        "t1 continues with your prompt",
    )
    assert desk.act("steer", text="Use the new API.", key="k")[0] == "ok"
    ((source, prompt),) = rows(desk.ledger, "SELECT source, prompt FROM steers")
    assert source == "manual"
    assert prompt.endswith("Use the new API.")  # its task was not sent yet, and goes first
    kind, said = desk.act("steer", text="No, another.", key="k")
    assert kind == "bad"
    assert "t1" in said
    shown = desk.page.post("/tasks/t1", {"action": "steer", "text": "Keep <this>.", "key": "k"})
    shown = desk.page.get(shown.headers["Location"]).text
    assert '<details name="act" open>' in shown
    assert ">Keep &lt;this&gt;.</textarea>" in shown  # nothing that was written is lost


@pytest.mark.parametrize(("action", "ending"), [("interrupt", "interrupted"), ("kill", "killed")])
def test_a_task_is_ended_once(desk, action, ending):
    desk.enter()
    assert desk.act(action) == ("ok", f"t1 is {ending}")
    assert desk.act(action) == ("bad", f"t1 had ended before ({ending})")
    shown = desk.page.get("/tasks/t1").text
    assert f">{ending}<" in shown
    assert 'id="actions"' not in shown


def test_an_undelivered_result_is_retried_and_dismissed(desk):
    desk.end("t1", scope="subagent", parent_session="p")
    rows(desk.ledger, "UPDATE outbox SET status = 'suspended', error = 'gone away'")
    shown = desk.page.get("/tasks/t1").text
    assert "suspended: gone away" in shown
    assert [name for name in ("retry", "dismiss") if f'value="{name}"' in shown] == [
        "retry",
        "dismiss",
    ]
    desk.leases.retire(desk.owner)  # its program is gone
    assert desk.act("retry") == ("ok", "the result of t1 waits for the program that takes it")
    kind, said = desk.act("dismiss")
    assert (kind, said.partition(";")[0]) == ("ok", "the result of t1 is dismissed")
    shown = desk.page.get("/tasks/t1").text
    assert 'value="retry"' not in shown
    assert 'value="dismiss"' not in shown


def test_a_notification_that_may_be_missing_can_be_dismissed_only(desk):
    desk.end()
    rows(desk.ledger, "UPDATE outbox SET status = 'delivered', told = ?", UNKNOWN)
    shown = desk.page.get("/tasks/t1").text
    assert 'value="dismiss"' in shown
    assert 'value="retry"' not in shown


@pytest.mark.parametrize(
    ("fields", "expected", "words"),
    [
        ({"action": "say", "text": " \n"}, "bad", "write something first"),
        ({"action": "steer"}, "bad", "write something first"),
        ({"action": "reset"}, 400, "There is no action “reset”; there are say, steer"),
        ({"action": "<b>\x1b"}, 400, "There is no action “<b>\\x1b”"),
        ({"action": ""}, 400, "There is no action “”"),
        ({"action": "say", "text": "x" * 50_001}, 400, "at most 50,000 characters"),
        ({"action": "retry"}, "bad", "task t1 has no result yet"),
        ({"action": "dismiss"}, "bad", "task t1 has no result yet"),
        ({"action": "kill", "token": "x"}, 403, "of a page that has ended"),
        ({"action": "say", "text": "x", "token": ""}, 403, "of a page that has ended"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(desk, fields, expected, words):
    desk.enter()
    found, said = desk.act(**fields)
    assert found == expected
    assert words in said
    assert desk.tasks.look("t1").run.state == "running"
    assert rows(desk.ledger, "SELECT count(*) FROM messages") == [(0,)]


@pytest.mark.parametrize("action", ["say", "steer"])
def test_an_ended_task_takes_no_words(desk, action):
    desk.end()
    kind, said = desk.act(action, text="More.")
    assert kind == "bad"
    assert "t1" in said


def test_a_page_that_only_shows_has_no_buttons(desk, serve):
    desk.enter()
    desk.end("t2")
    page = serve(path=desk.page.site.path, read_only=True)
    for task in ("t1", "t2"):
        shown = page.get(f"/tasks/{task}").text
        assert "<form" not in shown
        assert "<button" not in shown
    answer = page.post("/tasks/t1", {"action": "kill"})
    assert answer.status == 403
    assert "--read-only" in answer.text
    assert desk.tasks.look("t1").run.state == "running"


def test_a_supervisor_that_is_stopped_is_not_waited_for(desk):
    desk.enter()
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    try:
        os.kill(sleeper.pid, signal.SIGSTOP)
        os.waitpid(sleeper.pid, os.WUNTRACED)
        other = (sleeper.pid, start_time(sleeper.pid))
        rows(desk.ledger, "UPDATE owners SET pid = ?, pid_start = ?", *other)
        kind, said = desk.act("kill")
        assert kind == "bad"
        assert f"process {sleeper.pid}, which has task t1, is stopped" in said
    finally:
        sleeper.kill()
        sleeper.wait()
