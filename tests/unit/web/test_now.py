"""The screen "Now": five numbers, the agents at work, stops over time, and the last stops."""

import html
import json
import re
import time

import pytest

from notyet import Allow, Block, Engine, Ledger
from notyet.core.task import Task
from notyet.ledger.leases import Leases
from notyet.ledger.past_stops import StopFilter
from notyet.ledger.tasks import Tasks
from notyet.times import since
from notyet.web import counts
from notyet.web.counts import Counts
from supervised import first_run
from support import decide, gate, rows, stop

HOSTILE = "<script>alert(1)</script>\u202e"
NUMBERS = ("at_work", "stops", "sent_back", "passed_after", "not_passed")


def check(page, answer, **fields):
    engine = Engine([gate("tests", answer)], ledger=page.ledger, warn=lambda _: None)
    return engine.check_sync(stop(**{"cwd": "/p", "host": "claude", **fields}))


def start_task(ledger, task, lease=60.0, **fields):
    owner = Leases(ledger.connection).enrol(lease)
    known = Task(id=task, prompt=f"do {task}", **fields)
    ref, limits = {"agent": "codex"}, {"max_depth": 1, "max_children": 1}
    Tasks(ledger).start(known, first_run(task), owner, ref, f"of {task}", **limits)
    return owner


def numbers(page, path="/now.json"):
    known = page.get(path).json["numbers"]
    return tuple(known[name] for name in NUMBERS)


def part(text, name):
    """Return the words of a part of the screen."""
    words = re.sub(r"<[^>]*>", " ", text.partition(f'id="{name}"')[2].partition("</section>")[0])
    return html.unescape(" ".join(words.split()))


# The numbers.


def test_the_numbers_of_today(page):
    assert numbers(page) == (0, 0, 0, 0, 0)
    for answer, said in ((Block("x"), "a"), (Block("x"), "b"), (Allow(), "c")):
        check(page, answer, last_message=said)  # both send-backs led to the pass
    check(page, Block("x"), session_id="s2", host="codex", cwd="/q")
    decide(page.ledger, stop(session_id="s3"), "capped")
    decide(page.ledger, stop(session_id="s4"), "passed", at=since("today") - 1)
    assert numbers(page) == (1, 5, 3, 2, 1)
    text = page.get("/").text
    assert ">2 of 3<" in text
    assert 'href="/stops?outcome=blocked%2Coverridden&amp;since=today"' in text
    assert 'href="/stops?outcome=not_passed&amp;since=today"' in text


def test_a_pass_counts_for_the_send_backs_of_its_own_turn_only(page):
    check(page, Block("x"), turn_id="t1")
    check(page, Allow(), turn_id="t2", last_message="other")
    assert numbers(page) == (0, 2, 1, 0, 1)  # it did not come again in the first one
    text = page.get("/stops?outcome=blocked,overridden&since=today").text
    assert 'id="stop-1"' in text
    assert ">sent back or NOT PASSED: overridden</option>" in text


def test_a_block_of_hours_ago_is_not_passed_as_soon_as_another_turn_begins(page, monkeypatch):
    check(page, Block("x"), turn_id="t1")
    later = time.time() + 3 * 3_600
    monkeypatch.setattr(time, "time", lambda: later)
    monkeypatch.setattr("notyet.web.now.since", lambda _: later - 4 * 3_600)  # at any time of day
    monkeypatch.setattr("notyet.web.counts.since", lambda _: later - 4 * 3_600)
    assert numbers(page) == (0, 1, 1, 0, 0)
    check(page, Allow(), turn_id="t2")
    assert numbers(page) == (0, 2, 1, 0, 1)


def test_a_gate_that_only_observes_takes_no_pass_away(page):
    check(page, Block("x"), last_message="a")
    its_gates = [gate("tests", Allow()), gate("new", Block("y"), observe=True)]
    engine = Engine(its_gates, ledger=page.ledger, warn=lambda _: None)
    engine.check_sync(stop(cwd="/p", host="claude", last_message="b"))
    assert page.get("/stops.json").json["stops"][0]["outcome"] == "observed"
    assert numbers(page) == (0, 2, 1, 1, 0)
    assert '<span class="gate mute" title="new: would fail">' in page.get("/").text


def test_the_filters_of_the_address_choose_the_numbers_and_stay_in_links(page):
    check(page, Block("x"))
    check(page, Block("x"), session_id="s2", host="codex", cwd="/q/below")
    start_task(page.ledger, "t1", cwd="/q")
    assert numbers(page, "/now.json?host=codex") == (2, 1, 1, 0, 0)
    assert numbers(page, "/now.json?place=/q") == (2, 1, 1, 0, 0)
    assert numbers(page, "/now.json?host=notyet") == (1, 0, 0, 0, 0)  # which its stops have
    assert numbers(page, "/now.json?place=/q&host=claude") == (0, 0, 0, 0, 0)
    text = page.get("/?host=codex").text
    assert 'href="/stops?outcome=blocked%2Coverridden&amp;since=today&amp;host=codex"' in text
    assert 'href="/?host=codex&amp;span=7d"' in text


# Agents at work.


def test_agents_at_work_are_those_that_are_checked_sent_back_or_supervised(page):
    check(page, Block("x"), last_message="a")
    check(page, Block("x"), last_message="b")
    check(page, Allow(), session_id="done")
    begun = page.ledger.begin(stop(session_id="asking", host="codex", cwd="/q"))
    start_task(page.ledger, "t1", label="port it", cwd="/r")
    data = page.get("/now.json").json
    assert data["numbers"]["at_work"] == 3
    assert [one["stop"]["session_id"] for one in data["agents"]] == ["asking", "s1"]
    assert [one["sent_back"] for one in data["agents"]] == [0, 2]
    text = page.get("/").text
    assert "running port it codex · r sent back never" in part(text, "task-t1")
    assert 'href="/tasks/t1"' in text
    shown = part(text, "agents")
    assert "being checked asking codex · q" in shown
    assert "sent back s1 claude · p sent back twice" in shown
    assert 'href="/session?host=claude&amp;id=s1"' in text
    page.ledger.give_up(begun)


def test_agents_that_are_not_at_work(page):
    check(page, Block("x"), session_id="long ago")
    rows(page.ledger, "UPDATE stops SET begun_at = begun_at - 7200")
    lost = page.ledger.begin(stop(session_id="lost"))
    rows(page.ledger, "UPDATE stops SET pid = 999999999 WHERE id = ?", lost.stop)
    check(page, Block("x"), session_id="came again", last_message="a")
    check(page, Allow(), session_id="came again", last_message="b")
    check(page, Block("x"), session_id="of t1")  # its state is that of the task
    owner = start_task(page.ledger, "t1")
    rows(page.ledger, "UPDATE owners SET lease_until = 0 WHERE id = ?", owner)  # which has ended
    assert numbers(page)[0] == 0
    assert "No agent is at work." in page.get("/").text


def test_a_dead_supervisor_hides_no_task_of_a_living_one(page, monkeypatch):
    monkeypatch.setattr("notyet.web.now._MOST_AGENTS", 2)
    start_task(page.ledger, "living", label="port it")
    for number in range(3):
        owner = start_task(page.ledger, f"left-{number}")
        rows(page.ledger, "UPDATE owners SET lease_until = 0 WHERE id = ?", owner)
    assert numbers(page)[0] == 1
    assert "running port it" in part(page.get("/").text, "agents")


def test_very_many_agents_are_counted_and_the_first_are_shown(page):
    check(page, Block("x"))
    rows(
        page.ledger,
        "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)"
        " INSERT INTO agents (id, host, session_id, agent_id, turn, turn_ids, blocks,"
        " session_blocks, extend, blocked, repeats, repeat_key, last_stop, seen_at)"
        " SELECT i, host, 'many-' || i, '', 1, '[]', 99, 99, 0, 1, 0, '', i, seen_at"
        " FROM n, agents WHERE agents.id = 1",
    )
    rows(
        page.ledger,
        "INSERT INTO stops (id, agent, turn, begun_at, ended_at, place, pid, token, digest, event,"
        " outcome, verdict) SELECT agents.id, agents.id, 1, begun_at, ended_at, place, pid, token,"
        " digest, event, outcome, verdict FROM agents, stops s WHERE agents.id > 1 AND s.id = 1",
    )
    assert numbers(page)[0] == 10_000
    text = page.get("/").text
    assert text.count('id="agent-') == 20
    assert "and 9,980 more" in text
    assert "+87" in text  # of 99 send-backs, not as many dots
    assert len(text) < 100_000


# Stops over time.


def test_the_chart_and_its_table_have_the_same_numbers(page):
    check(page, Allow())
    check(page, Block("x"), session_id="s2")
    check(page, Allow(), session_id="s3")
    text = page.get("/").text
    data = json.loads(html.unescape(re.search(r'data-chart="([^"]*)"', text)[1]))
    drawn = {one["name"]: sum(one["counts"]) for one in data["series"]}
    assert drawn == {"passed": 2, "sent back": 1}
    assert 24 <= len(data["starts"]) <= 25
    assert data["starts"][-1] <= time.time() < data["end"]
    assert re.search(r"as a table from passed sent back \d\d:00 2 1$", part(text, "over-time"))


@pytest.mark.parametrize(("span", "steps"), [("1h", 31), ("24h", 25), ("7d", 29), ("30d", 31)])
def test_every_span_covers_its_time_in_even_steps(page, span, steps):
    check(page, Allow())
    data = page.get(f"/now.json?span={span}").json
    buckets = data["over_time"]
    assert steps - 1 <= len(buckets) <= steps
    assert sum(bucket["passed"] for bucket in buckets) == 1
    assert [one["until"] for one in buckets[:-1]] == [one["at"] for one in buckets[1:]]
    assert 'aria-current="true"' in page.get(f"/?span={span}").text


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "counted.db")


@pytest.fixture
def read(monkeypatch):
    """The starts of the steps that are read from the ledger."""
    read = []

    def listened_to(ledger, wanted, starts, step):
        read.append(list(starts))
        return whole(ledger, wanted, starts, step)

    whole = counts.over_time
    monkeypatch.setattr(counts, "over_time", listened_to)
    return read


def test_old_steps_are_remembered_and_new_ones_counted_anew(ledger, read, monkeypatch):
    decide(ledger, stop(), "passed")
    known = Counts()
    for _ in range(2):
        decide(ledger, stop(session_id="s2"), "passed", at=time.time())
        buckets = known.last(ledger, StopFilter(), 86_400, 3_600)
    assert buckets[-1].stops + buckets[-2].stops == 3
    assert len(read[0]) in {24, 25}
    assert len(read[1]) in {1, 2}
    known.last(ledger, StopFilter(host="codex"), 86_400, 3_600)
    assert len(read[2]) == len(read[0])  # of another host, these are others
    later = time.time() + 600
    monkeypatch.setattr(time, "time", lambda: later)
    known.last(ledger, StopFilter(), 86_400, 3_600)
    assert 3 <= len(read[3]) < len(read[0])  # the longer ago, the longer remembered


@pytest.mark.file_only("its place")
def test_another_ledger_in_the_same_place_is_counted_anew(tmp_path, ledger, read):
    known = Counts()
    decide(ledger, stop(), "passed", at=time.time() - 20_000)
    assert sum(one.stops for one in known.last(ledger, StopFilter(), 86_400, 3_600)) == 1
    ledger.close()
    (tmp_path / "counted.db").rename(tmp_path / "other.db")
    Ledger(tmp_path / "counted.db").connection.write(lambda _: None)
    assert sum(one.stops for one in known.last(ledger, StopFilter(), 86_400, 3_600)) == 0


# The rest.


def test_the_last_stops_with_their_gates_and_reasons(page):
    check(page, Block("tests/test_pay.py failed"), last_message=HOSTILE, session_id=HOSTILE)
    for number in range(20):
        check(page, Allow(), session_id=f"n{number}")
    data = page.get("/now.json").json
    assert [one["id"] for one in data["stops"]] == list(range(21, 6, -1))
    check(page, Block("test_pay failed"), session_id=HOSTILE)
    text = page.get("/").text
    assert "sent back" in part(text, "stop-22")
    assert "tests: test_pay failed" in part(text, "stop-22")
    assert "<script>alert" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("span=2h", "span is one of 1h, 24h, 7d, 30d"),
        ("spam=1h", "There is no filter"),
        ("place=here", "the whole path of a folder"),
        ("outcome=passed", "There is no filter"),
    ],
)
def test_a_value_that_means_nothing_is_said(page, asked, says):
    answer = page.get(f"/?{asked}")
    assert answer.status == 400
    assert says in answer.text
    assert page.get(f"/now.json?{asked}").status == 400


def test_an_empty_ledger_says_what_to_do(page):
    text = page.get("/").text
    assert "No agent has stopped yet." in text
    assert "notyet install claude" in text
    assert "No agent stopped in this time." in text
