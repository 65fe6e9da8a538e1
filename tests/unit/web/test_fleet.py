"""The screen Fleet: workers, queues with their limits in use, schedules, results that wait."""

import html
import re

import pytest

from fleets import Made
from notyet.ledger.tasks import Tasks
from support import rows, wait_for

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e"
LIMITS = {"opus": "50/min, 20 at once", "*": "200/hour"}


class Desk(Made):
    """A page of a fleet."""

    def __init__(self, page):
        super().__init__(page.ledger)
        self.page = page

    def shown(self, section=""):
        """Return the words of the screen, or of one section."""
        text = self.page.get("/fleet").text
        if section:
            text = text.partition(f'<section id="{section}"')[2].partition("</section>")[0]
        return " ".join(html.unescape(re.sub("<[^>]+>", " ", text)).split())


@pytest.fixture
def desk(page):
    return Desk(page)


def test_a_ledger_without_a_fleet_says_so(page):
    answer = page.get("/fleet")
    assert answer.status == 200
    is_file = page.ledger.connection.is_file
    words = "a file of one machine" if is_file else "This ledger has no fleet"
    assert words in answer.text
    assert (">Fleet</a>" in answer.text) is not is_file  # in the navigation
    assert page.get("/fleet.json").json == {
        "workers": [],
        "queues": [],
        "schedules": [],
        "untaken": 0,
        "results": [],
    }
    assert page.get("/fleet?x=1").status == 400


def test_workers_with_their_state_and_tasks(desk):
    desk.queue()
    busy, draining, dead = (
        desk.worker("box-1"),
        desk.worker("box-2", draining=True, queues=["agents", "nightly"]),
        desk.worker("box-3"),
    )
    desk.worker("box-4", version="9")
    for number in range(3):
        desk.begin(f"t{number}", busy)
    desk.begin("t8", draining)
    desk.begin("t9", dead)
    desk.leases.retire(dead)
    shown = desk.shown("workers")
    assert re.search(r"box-1 working 3 of 8 agents 1[67] min 0\.1\.0", shown)
    assert re.search(r"box-2 draining 1 of 8 agents, nightly", shown)
    assert re.search(r"box-3 gone 1 of 8 agents - 0\.1\.0", shown)
    assert re.search(r"box-4 working 0 of 8 agents 1[67] min 9$", shown)
    data = desk.page.get("/fleet.json").json["workers"]
    assert [(one["name"], one["tasks"], one["is_alive"]) for one in data] == [
        ("box-1", 3, True),
        ("box-2", 1, True),
        ("box-3", 1, False),
        ("box-4", 0, True),
    ]


def test_queues_with_the_limits_in_use(desk):
    desk.queue(limits=LIMITS, per_worker=4)
    desk.queue("whole", by="", limits={"*": "3 at once"})
    desk.queue("idle")
    owner = desk.worker()
    for number in range(2):
        desk.begin(f"o{number}", owner, "opus")
        desk.submit(f"w{number}", "opus")
    desk.begin("s0", owner, "sonnet")
    desk.begin("b0", owner, "a", "whole")
    desk.begin("b1", owner, "b", "whole")
    shown = desk.shown("queues")
    assert "2 waiting · 5 at work" in shown
    assert "agents 1 worker, 4 on each opus 2 2 2 of 20 2 of 50 / min" in shown
    assert "agents 1 worker, 4 on each sonnet 0 1 no limit 1 of 200 / hour" in shown
    assert "whole 0 workers a 0 1 2 of 3 no limit whole 0 workers b 0 1 2 of 3" in shown
    assert "idle 0 workers - 0 0" in shown


def test_schedules_with_their_next_time(desk):
    desk.queue()
    order = {"queue": "agents", "agent": "codex", "prompt": f"Make the build {HOSTILE} green"}
    desk.placements.note_schedule("nightly-green", "0 3 * * *", order)
    desk.placements.note_schedule("odd", "not a time", order)
    answer = desk.page.get("/fleet")
    shown = desk.shown("schedules")
    assert "nightly-green 0 3 * * *" in shown
    assert "agents codex Make the build" in shown
    assert "<script>alert" not in answer.text
    assert "\x1b" not in answer.text
    first, odd = desk.page.get("/fleet.json").json["schedules"]
    assert odd["next_at"] is None
    pytest.importorskip("croniter")
    assert first["next_at"] % 86_400 == 3 * 3_600


def test_results_that_nobody_took(desk):
    desk.queue()
    owner = desk.worker()
    for task in ("t1", "t2"):
        desk.begin(task, owner)
        desk.end(task, owner)
    rows(desk.ledger, "UPDATE outbox SET status = 'suspended', error = 'no' WHERE task = 't1'")
    rows(desk.ledger, "UPDATE outbox SET status = 'delivered', told = 2 WHERE task = 't2'")
    shown = desk.shown("results")
    assert "Results that nobody took 1" in shown
    assert "do t1 undelivered: no" in shown
    assert "t2" not in shown
    data = desk.page.get("/fleet.json").json
    assert (data["untaken"], [one["id"] for one in data["results"]]) == (1, ["t1"])


def test_queued_tasks_are_neither_at_work_nor_lost(desk):
    desk.queue()
    owner = desk.worker()
    desk.begin("t1", owner)
    for number in range(60):  # more than are shown
        desk.submit(f"q{number}", "opus")
    assert [view.task.id for view in Tasks(desk.ledger).begun()] == ["t1"]
    data = desk.page.get("/now.json").json
    assert data["numbers"]["at_work"] == 1
    assert [one["task"]["id"] for one in data["tasks"]] == ["t1"]
    shown = desk.page.get("/tasks/q3").text
    assert ">queued</span>" in shown
    assert "agents, for opus" in shown
    assert "its process is gone" not in shown
    assert "process" not in re.findall("<dt>(.*?)</dt>", shown)


def test_a_fleet_is_live(desk, listen):
    desk.queue()
    stream = listen(desk.page)
    assert [stream.event()[0], stream.event()[0]] == ["hello", "changed"]
    shown = desk.page.get("/fleet").text
    assert 'hx-select-oob="#fleet,#trouble:innerHTML"' in shown
    desk.worker("late")
    assert stream.event() == ("changed", "")
    wait_for(lambda: "late" in desk.shown("workers"))
