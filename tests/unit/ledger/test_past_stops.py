"""Looking back at what real engines wrote down."""

import os
import time

from notyet import Allow, Block, Engine, Halt, Ledger, StopEvent
from notyet.core.event import BackgroundTask, Usage
from notyet.core.record import replace
from notyet.core.verdict import Decision, skipped
from notyet.ledger.past_stops import (
    StopFilter,
    agents,
    event_of,
    neighbours,
    numbers,
    read_stop,
    read_stops,
    same_turn,
    session_agents,
    stops,
)
from notyet.ledger.stats import stats
from notyet.ledger.stop_rows import event_row
from stores import opened
from support import gate
from support import stop as an_event


def asked(ledger, *answers, limits=None, **fields):
    """Let a real engine decide a stop whose gates answer like this: (name, answer)."""
    gates = [gate(name, answer, scopes=("agent", "subagent")) for name, answer in answers]
    more = {} if limits is None else {"limits": limits}
    engine = Engine(gates, ledger=ledger, warn=lambda _: None, **more)
    return engine.check_sync(an_event(**fields))


def ids(found):
    return [one.id for one in found]


def test_a_stop_comes_back_with_all_that_was_written_down(ledger):
    decision = asked(
        ledger, ("lint", Allow(note="fine")), ("tests", Block("Make them pass.", "exit 1")),
        cwd="/p/x", host="claude", agent_id="a7", scope="subagent", task_id="tk1",
        last_message="done", stop_hook_active=False,
    )  # fmt: skip
    (one,) = stops(ledger, StopFilter())
    assert (one.id, one.host, one.session_id, one.agent_id) == (1, "claude", "s1", "a7")
    assert (one.scope, one.place, one.turn, one.task) == ("subagent", "/p/x", 1, "tk1")
    assert (one.outcome, one.verdict, one.why) == ("blocked", "block", decision.why)
    assert one.prompt == decision.verdict.prompt
    assert (one.count, one.limit, one.limit_source) == (1, 3, "max_blocks")
    assert one.begun_at <= one.ended_at <= time.time()
    assert [(r.gate, r.status) for r in one.reports] == [("lint", "allowed"), ("tests", "blocked")]
    assert one.event.last_message == "done"
    assert (one.followed, one.repeated, one.warnings) == (False, 0, ())


def test_outputs_come_only_with_one_stop_at_a_time(ledger):
    begun = ledger.begin(an_event())
    report = past_report = replace(_report("lint"), output="all of it")
    ledger.record(begun, Decision(verdict=Allow(), outcome="passed", turn=1, reports=(report,)))
    assert stops(ledger, StopFilter())[0].reports[0].output == ""
    assert read_stop(ledger, begun.stop).reports == (past_report,)
    assert read_stops(ledger, [begun.stop, 99])[0].reports[0].gate == "lint"


def _report(name):
    from notyet import Report

    return Report(gate=name, answer=Allow(), seconds=1.5)


def test_stops_are_found_by_each_wish_and_by_all_together(ledger):
    asked(ledger, ("lint", None), cwd="/p/a", session_id="s-one", host="claude")
    asked(ledger, ("lint", Block("x")), cwd="/p/a/sub", session_id="s-two", host="codex")
    asked(ledger, ("tests", None), cwd="/p/ab", session_id="s-one", host="claude")
    asked(ledger, cwd="/p/a", session_id="other", host="claude", internal=True)
    asked(ledger, ("tests", Block("x")), cwd="/p/a", session_id="s-two", host="codex")

    def found(**wish):
        return ids(stops(ledger, StopFilter(**wish)))

    everything = found()
    assert everything == sorted(everything, reverse=True)
    assert found(place="/p/a") == [4, 2, 1]
    assert found(place="/p/a/") == [4, 2, 1]
    assert found(place="/") == found(place="/p") == everything
    assert found(place="/p/a/sub") == [2]
    assert found(place="/nowhere") == []
    assert found(outcomes=("blocked",)) == [4, 2]
    assert found(outcomes=("blocked", "passed")) == everything
    assert found(outcomes=("blocked",), place="/p/a/sub") == [2]
    assert found(session="s-one") == [3, 1]
    assert found(session="s-") == everything
    assert found(session="s-", outcomes=("passed",), place="/p/a") == [1]
    assert found(host="codex") == [4, 2]
    assert found(host="codex", place="/p/a/sub") == [2]
    assert found(gate="tests") == [4, 3]
    assert found(gate="tests", host="claude") == [3]
    assert found(gate="nothing") == []
    assert found(before=3) == [2, 1]
    assert found(after=3) == [4]
    assert found(most=2) == everything[:2]
    assert found(most=-1) == everything


def test_stops_are_found_by_their_time(ledger):
    for n in range(5):
        asked(ledger, ("lint", None), session_id=f"s{n}")
    with opened(ledger) as db:
        db.execute("UPDATE stops SET begun_at = id * 100")
    assert ids(stops(ledger, StopFilter(since=300))) == [5, 4, 3]
    assert ids(stops(ledger, StopFilter(until=300))) == [3, 2, 1]
    assert ids(stops(ledger, StopFilter(since=150, until=350))) == [3, 2]
    assert ids(stops(ledger, StopFilter(since=501))) == []
    assert ids(stops(ledger, StopFilter(until=99))) == []


def test_a_stop_is_in_a_span_by_its_own_time_though_the_clock_was_set_back(ledger):
    for n in range(6):
        asked(ledger, ("lint", None), session_id=f"s{n}", cwd="/p", host="claude")
    with opened(ledger) as db:
        db.execute("UPDATE stops SET begun_at = CASE WHEN id < 4 THEN 5000 ELSE 1000 END + id")
    for more in ({}, {"place": "/p"}, {"session": "s"}, {"host": "claude"}, {"gate": "lint"}):
        assert ids(stops(ledger, StopFilter(until=9_000, **more))) == [6, 5, 4, 3, 2, 1]
        assert ids(stops(ledger, StopFilter(until=4_000, **more))) == [6, 5, 4]
        assert ids(stops(ledger, StopFilter(since=4_000, **more))) == [3, 2, 1]
        assert ids(stops(ledger, StopFilter(since=1_006, until=5_001, **more))) == [6, 1]
        assert ids(stops(ledger, StopFilter(since=4_000, after=1, **more))) == [3, 2]
    assert stats(ledger, StopFilter(until=9_000, most=-1)).stops == 6


def test_a_folder_is_known_by_the_name_of_a_link_to_it_too(ledger, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    asked(ledger, ("lint", None), cwd=str(tmp_path / "real"))
    asked(ledger, ("lint", None), cwd=str(tmp_path / "link"), session_id="s2")
    for name in ("link", "real"):
        assert ids(stops(ledger, StopFilter(place=str(tmp_path / name)))) == [2, 1]


def test_a_folder_is_known_with_a_slash_at_its_end_and_with_half_a_letter(ledger):
    asked(ledger, ("lint", None), cwd="/p/a/")
    asked(ledger, ("lint", None), cwd="/p/a.b", session_id="s2")
    asked(ledger, ("lint", None), cwd="/p/\udc80", session_id="s3")
    assert ids(stops(ledger, StopFilter(place="/p/a"))) == [1]
    assert ids(stops(ledger, StopFilter(place="/p/\udc80"))) == [3]
    assert numbers(ledger, StopFilter(place="/p")) == [3, 2, 1]


def test_a_stop_of_an_agent_that_was_never_counted_tells_who_it_was(ledger):
    skipped = Decision(verdict=Allow(), outcome="skipped", why="off")
    ledger.skip(an_event(session_id="quiet", host="codex", agent_id="a1", cwd="/p"), skipped)
    (one,) = stops(ledger, StopFilter(session="qui"))
    assert (one.host, one.session_id, one.agent_id, one.why) == ("codex", "quiet", "a1", "off")
    assert ids(stops(ledger, StopFilter(host="codex"))) == [1]
    assert ids(stops(ledger, StopFilter(host="claude"))) == []
    assert same_turn(ledger, 1) == []


def test_a_missing_ledger_is_read_as_an_empty_one_and_not_created(tmp_path):
    ledger = Ledger(tmp_path / "none.db", repair=False)
    assert stops(ledger, StopFilter()) == agents(ledger, 0.0) == read_stops(ledger, [1]) == []
    assert stats(ledger, StopFilter()).gates == ()
    assert read_stop(ledger, 1) is None
    assert not os.path.exists(ledger.path)


def test_a_status_of_a_later_version_hides_nothing_else(ledger):
    asked(ledger, ("lint", Block("x")), ("tests", None))
    ledger.connection.write(
        lambda db: db.execute("UPDATE reports SET status = 'new' WHERE gate = 'lint'")
    )
    one = read_stop(ledger, 1)
    assert one.odd == ("lint.status",)
    assert [report.status for report in one.reports] == ["problem", "allowed"]
    assert "unknown status 'new'" in str(one.reports[0].answer)


def test_numbers_that_no_stop_can_have_are_no_stops(ledger):
    asked(ledger, ("lint", None))
    assert read_stop(ledger, 99) is None
    assert read_stop(ledger, 1 << 80) is None
    assert read_stops(ledger, []) == []
    assert same_turn(ledger, 99) == []


def test_the_other_stops_of_a_turn_are_around_it(ledger):
    for message in ("one", "two", "three"):
        asked(ledger, ("t", Block("x")), turn_id="t1", last_message=message)
    asked(ledger, ("t", None), turn_id="t2", last_message="four")
    asked(ledger, ("t", None), session_id="else", turn_id="t1")
    assert ids(same_turn(ledger, 2)) == [1, 3]
    assert ids(same_turn(ledger, 3, most=1)) == [2]
    assert ids(same_turn(ledger, 4)) == []
    (newest,) = stops(ledger, StopFilter(session="s1", most=1))
    assert not newest.followed
    assert read_stop(ledger, 3).outcome == "overridden"
    assert read_stop(ledger, 3).followed


def test_the_stops_of_an_agent_follow_one_another(ledger):
    asked(ledger, ("t", None), session_id="one")
    asked(ledger, ("t", None), session_id="two")
    asked(ledger, ("t", None), session_id="one", last_message="again")
    assert neighbours(ledger, 1) == (0, 3)
    assert neighbours(ledger, 3) == (1, 0)
    assert neighbours(ledger, 2) == neighbours(ledger, 99) == (0, 0)


def test_the_agents_of_a_session_are_the_main_one_and_its_subagents(ledger):
    asked(ledger, ("t", Block("x")), session_id="one", host="claude")
    for agent in ("b", "a"):
        sub = {"scope": "subagent", "agent_id": agent}
        asked(ledger, ("t", None), session_id="one", host="claude", **sub)
    asked(ledger, ("t", None), session_id="one", host="codex")
    asked(ledger, ("t", None), session_id="one1", host="claude")
    found = session_agents(ledger, "claude", "one", most=10)
    assert [agent.agent_id for agent in found] == ["", "a", "b"]
    assert (found[0].stop, found[0].outcome, found[0].history.session_blocks) == (1, "blocked", 1)
    assert len(session_agents(ledger, "claude", "one", most=2)) == 2
    assert session_agents(ledger, "claude", "on", most=2) == []
    ledger.skip(an_event(session_id="one", host="claude"), skipped("untrusted"))
    (main,) = session_agents(ledger, "claude", "one", most=1)
    assert (main.outcome, main.why) == ("skipped", "untrusted")


def test_agents_come_with_their_budget_and_their_last_stop(ledger):
    asked(ledger, ("t", Block("x")), cwd="/p/a", session_id="one")
    asked(ledger, ("t", None), cwd="/q", session_id="two")
    asked(ledger, ("t", Block("x")), cwd="/p/a/b", session_id="three")
    found = agents(ledger, 0.0)
    assert [agent.session_id for agent in found] == ["three", "two", "one"]
    assert [agent.outcome for agent in found] == ["blocked", "passed", "blocked"]
    assert (found[0].history.blocks, found[0].place, found[0].stop) == (1, "/p/a/b", 3)
    assert [agent.session_id for agent in agents(ledger, 0.0, "/p/a")] == ["three", "one"]
    assert [agent.session_id for agent in agents(ledger, 0.0, most=1)] == ["three"]
    assert agents(ledger, time.time() + 60) == []


def test_statistics_count_what_gates_said_and_what_came_of_it(ledger):
    from notyet import Limits

    def run(answer, turn, message, **fields):
        return asked(ledger, ("t", answer), turn_id=turn, last_message=message, **fields)

    run(Block("x"), "t1", "1")
    run(Block("x"), "t1", "2")
    run(Allow(), "t1", "3")  # both led to a pass
    run(Block("x"), "t2", "4")  # and then the host let it go
    run(Allow(), "t3", "5")
    run(Block("x"), "t4", "6", limits=Limits(max_blocks=0))  # nobody was sent back
    run(lambda *_: 1 / 0, "t5", "7")
    (one,) = stats(ledger, StopFilter(most=-1)).gates
    assert (one.gate, one.asked, one.blocked, one.problems) == ("t", 7, 4, 1)
    assert (one.failed_open, one.held, one.halted, one.watches) == (1, 0, 0, False)
    assert (one.sent_back, one.led_to_pass, one.spared) == (3, 2, 0)
    assert one.seconds >= one.p95 >= one.p50 >= 0
    everything = stats(ledger, StopFilter(most=-1))
    assert everything.outcomes["overridden"] == 1
    assert (everything.stops, everything.is_all) == (7, True)
    some = stats(ledger, StopFilter(most=2))
    assert (some.stops, some.is_all) == (2, False)


def test_what_mended_a_send_back_is_found_though_it_was_not_asked_for(ledger):
    def run(answer, turn, message, session_id="s1"):
        other = ("lint", Block("x") if answer is None else None)
        asked(ledger, ("t", answer), other, turn_id=turn, last_message=message,
              session_id=session_id)  # fmt: skip

    run(Block("x"), "t1", "1")
    run(Block("x"), "t1", "2", session_id="s2")  # another agent, which never mends it
    ledger.skip(an_event(), Decision(verdict=Allow(), outcome="skipped", why="off"))
    run(Allow(), "t1", "3")  # mends the first
    run(Block("x"), "t1", "4")
    run(None, "t2", "5")  # a pass, but of the next turn; lint blocks
    (whole,) = (one for one in stats(ledger, StopFilter(most=-1)).gates if one.gate == "t")
    assert (whole.sent_back, whole.led_to_pass) == (3, 1)
    for wish in (
        StopFilter(outcomes=("blocked", "overridden"), most=-1),
        StopFilter(gate="t", most=-1),
    ):
        (one,) = (one for one in stats(ledger, wish).gates if one.gate == "t")
        assert (one.sent_back, one.led_to_pass) == (3, 1)
    with opened(ledger) as db:
        db.execute("UPDATE stops SET begun_at = id * 100")
    (one,) = stats(ledger, StopFilter(until=100, most=-1, gate="t")).gates
    assert (one.sent_back, one.led_to_pass) == (1, 1)


def test_halts_problems_and_gates_that_only_watch_are_counted_for_themselves(ledger):
    def run(answer, message, **fields):
        gates = [gate("t", answer, **fields)]
        engine = Engine(gates, ledger=ledger, warn=lambda _: None)
        engine.check_sync(an_event(turn_id="t1", last_message=message))

    def crash(*_):
        return 1 / 0

    run(Halt("no"), "1")
    run(crash, "2", if_broken="block")  # sent back by a problem
    run(Allow(), "3")  # and mended
    run(crash, "4")
    run(Block("x"), "5", observe=True)
    run(Halt("x"), "6", observe=True)
    run(crash, "7", observe=True, if_broken="block")
    run(Allow(), "8", observe=True)
    real, watching = stats(ledger, StopFilter(most=-1)).gates
    assert (real.watches, real.asked, real.blocked, real.halted) == (False, 4, 0, 1)
    assert (real.held, real.failed_open) == (1, 1)
    assert (real.sent_back, real.led_to_pass) == (1, 1)
    assert (watching.watches, watching.asked, watching.stopped) == (True, 4, 2)
    assert (watching.blocked, watching.halted, watching.problems) == (1, 1, 1)
    assert (watching.sent_back, watching.led_to_pass) == (0, 0)


def test_an_event_comes_back_as_it_was_stored():
    event = StopEvent(
        session_id="s", host="claude", usage=Usage(input=5), tools_used=("Bash",),
        background_tasks=(BackgroundTask(id="b", type="shell"),), result={"x": [1]},
        duration_ms=1.5, workspace="ssh://host/p",
    )  # fmt: skip
    assert event_of(event_row(event)[1]) == event


def test_an_event_that_was_cut_or_comes_from_elsewhere_comes_back_as_far_as_it_can():
    huge = StopEvent(session_id="s", tools_used=tuple(f"tool {n}" for n in range(5_000)))
    assert event_of(event_row(huge)[1]) == StopEvent(session_id="s")
    assert event_of('{"session_id": "s", "later": 1, "usage": 7, "ending": "odd"}') == StopEvent(
        session_id="s"
    )
