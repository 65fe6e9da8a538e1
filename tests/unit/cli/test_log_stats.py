"""`notyet log --stats`: is a gate worth its seconds? As far as the numbers carry."""

import json

import pytest

from notyet import Allow, Block, Decision, Engine, Halt, Ledger, Report
from notyet.cli.log.stats import sparkline
from notyet.cli.main import main
from notyet.ledger.stats import MOST_STEPS, GateStats, buckets
from notyet.status.worth import verdict
from support import gate, stop


def stats(**fields):
    return GateStats(**({"gate": "g", "asked": 100, "p50": 2.0, "p95": 4.0} | fields))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"asked": 0}, "never run"),
        ({"asked": 0, "unchanged": 3}, "never run: nothing changed"),
        ({"asked": 1}, "too early: run once"),
        ({"asked": 9, "blocked": 9}, "too early to say: run 9 times"),
        ({"held": 5, "failed_open": 15}, "broken in 20% of its runs: look at it"),
        ({}, "never blocked, costs 2.0s each"),
        ({"p50": 45.0}, "never blocked, and costs 45s each: is it needed at every stop?"),
        (
            {"watches": True, "blocked": 7},
            "only observes; would have blocked 7 times, costs 2.0s each",
        ),
        ({"watches": True}, "only observes; would have blocked 0 times, costs 2.0s each"),
        (
            {"watches": True, "halted": 1},
            "only observes; would have ended the turn once, costs 2.0s each",
        ),
        ({"halted": 5, "seconds": 200.0}, "ended the turn, once per 40s of running"),
        (
            {"halted": 1, "blocked": 4, "seconds": 200.0},
            "blocked or ended the turn, once per 40s of running",
        ),
        (
            {"held": 10, "sent_back": 10, "led_to_pass": 9, "seconds": 200.0},
            "yes: its blocks are fixed, one per 20s of running",
        ),
        ({"blocked": 3}, "blocked, but never sent an agent back: see limits"),
        (
            {"blocked": 4, "sent_back": 4, "seconds": 200.0},
            "few blocks so far; one per 50s of running",
        ),
        (
            {"blocked": 10, "sent_back": 10, "led_to_pass": 9, "seconds": 200.0},
            "yes: its blocks are fixed, one per 20s of running",
        ),
        (
            {"blocked": 10, "sent_back": 10, "led_to_pass": 2},
            "its blocks are rarely fixed in the same turn: is its message clear?",
        ),
    ],
)
def test_the_verdict_is_plain_and_says_when_it_is_too_early(fields, says):
    assert verdict(stats(**fields)) == says


def shown(capsys, *argv):
    capsys.readouterr()
    assert main(["log", "--stats", "--all", *argv]) == 0
    return capsys.readouterr().out


def test_every_gate_has_a_line_and_all_outcomes_a_sum(capsys, tmp_path):
    ledger = Ledger()
    for n in range(6):
        answers = [Block("x"), Allow()]
        engine = Engine(
            [gate("tests", lambda *_, left=answers: left.pop(0)), gate("lint", Allow())],
            ledger=ledger,
            warn=lambda _: None,
        )
        engine.check_sync(stop(turn_id=f"t{n}", last_message="1"))
        engine.check_sync(stop(turn_id=f"t{n}", last_message="2"))
    begun = ledger.begin(stop(session_id="other"))
    spared = Report(gate="lint", answer=Allow(), spared="unchanged")
    ledger.record(
        begun,
        Decision(verdict=Allow(), outcome="skipped", why="unchanged", turn=1, reports=(spared,)),
    )
    head, *lines = shown(capsys).splitlines()
    assert head.split()[:5] == ["GATE", "RUNS", "SKIPPED", "BLOCKED", "BROKEN"]
    rows = {line.split()[0]: line for line in lines[:2]}
    assert rows["tests"].split()[1:5] == ["12", "0", "6", "0"]
    assert "6/6 (100%)  yes: its blocks are fixed, one per" in rows["tests"]
    assert rows["lint"].split()[1:3] == ["12", "1"]
    assert lines[3] == "13 stops: 6 blocked, 6 passed, 1 skipped"
    assert lines[4].startswith("from 20")
    known = [json.loads(line) for line in shown(capsys, "--json").splitlines()]
    assert {one.get("gate") for one in known} == {"tests", "lint", None}
    assert known[-1]["outcomes"] == {"blocked": 6, "passed": 6, "skipped": 1}
    assert known[-1]["kind"] == "stops"


def asked(ledger, name, answers, **fields):
    for n, answer in enumerate(answers):
        engine = Engine([gate(name, answer, **fields)], ledger=ledger, warn=lambda _: None)
        engine.check_sync(stop(turn_id=f"t{n // 2}", last_message=f"{name} {n}", session_id=name))


def test_problems_that_held_and_those_that_let_go_are_told_apart(capsys):
    def crash(*_):
        return 1 / 0

    ledger = Ledger()
    asked(ledger, "strict", [crash, Allow()] * 6, if_broken="block")
    asked(ledger, "lenient", [crash])
    rows = {line.split()[0]: line for line in shown(capsys).splitlines()[1:3]}
    assert "  6 blocked  " in rows["strict"]
    assert " 6/6 (100%) " in rows["strict"]
    assert "  1 allowed  " in rows["lenient"]
    known = [json.loads(line) for line in shown(capsys, "--json").splitlines()]
    counts = {one["gate"]: (one["held"], one["failed_open"]) for one in known[:2]}
    assert counts == {"strict": (6, 0), "lenient": (0, 1)}


def test_gates_that_only_watch_have_a_table_of_their_own(capsys):
    ledger = Ledger()
    asked(ledger, "w", [Block("x"), Halt("x"), lambda *_: 1 / 0], observe=True)
    asked(ledger, "t", [Block("x")])
    head, real, blank, other, watching, *_ = shown(capsys).splitlines()
    assert (head.split()[0], real.split()[0], blank) == ("GATE", "t", "")
    assert other.split()[:8] == [
        "OBSERVING", "RUNS", "SKIPPED", "WOULD", "BLOCK", "WOULD", "HALT", "BROKEN",
    ]  # fmt: skip
    assert watching.split()[:6] == ["w", "3", "0", "1", "1", "1"]
    assert "FIXED" not in other


def test_tokens_of_a_judge_are_summed_and_have_a_column_only_where_there_are_some(capsys):
    ledger = Ledger()
    asked(ledger, "tests", [Allow()])
    assert "TOKENS" not in shown(capsys).splitlines()[0]
    for tokens in (17_402, 598):
        begun = ledger.begin(stop(session_id=f"s{tokens}"))
        judged = Report(gate="review", answer=Allow(), exit="exit 0", seconds=6.0, tokens=tokens)
        ledger.record(begun, Decision(verdict=Allow(), outcome="passed", turn=1, reports=(judged,)))
    head, *lines = shown(capsys).splitlines()
    at = head.index("TOKENS") + len("TOKENS")
    rows = {line.split()[0]: line for line in lines[:2]}
    assert rows["review"][:at].endswith(" 12s  18,000")
    assert rows["tests"][:at].endswith(" -")
    known = [json.loads(line) for line in shown(capsys, "--json").splitlines()]
    assert {one["gate"]: one["tokens"] for one in known[:2]} == {"review": 18_000, "tests": 0}


def test_a_filter_that_cuts_off_the_pass_does_not_change_what_was_mended(capsys):
    asked(Ledger(), "t", [Block("x"), Allow()] * 10)
    for argv in ([], ["--outcome", "blocked"]):
        assert "10/10 (100%)  yes: its blocks are fixed" in shown(capsys, *argv)


def test_a_remark_stands_below_its_gate_where_there_is_no_room_beside_it(capsys, monkeypatch):
    asked(Ledger(), "lint", [Allow()] * 12)
    monkeypatch.setattr("notyet.cli.log.stats.width", lambda: 80)
    assert main(["log", "--stats", "--all"]) == 0
    head, numbers, remark, *_ = capsys.readouterr().out.splitlines()
    assert head.split() == [
        "GATE",
        "RUNS",
        "SKIPPED",
        "BLOCKED",
        "BROKEN",
        "P50",
        "P95",
        "IN",
        "ALL",
        "FIXED",
    ]
    assert numbers.split()[:2] == ["lint", "12"]
    assert remark == "  never blocked, costs 0.0s each"


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7], "▁▂▃▄▅▆▇█"),
        ([0.01, 100.0, 0.0], "▂█▁"),
        ([0, 0], "▁▁"),
        ([], ""),
    ],
)
def test_only_nothing_has_the_lowest_bar(values, line):
    assert sparkline(values) == line


@pytest.mark.parametrize("columns", [40, 200])
def test_a_terminal_shows_outcomes_and_seconds_over_time(capsys, monkeypatch, columns):
    ledger = Ledger()
    answers = {gate("te\x1b[2Jsts", Block("x")): 3, gate("te\x1b[2Jsts", Allow()): 1}
    for check, times in answers.items():
        for n in range(times):
            Engine([check], ledger=ledger).check_sync(stop(session_id=f"{check.check}{n}"))
    hours = {1: 0, 2: 0, 3: 5, 4: 39}
    for number, hour in hours.items():
        at = (1_000_000 + hour * 3_600.0, number)
        ledger.connection.write(
            lambda db, at=at: db.execute("UPDATE stops SET begun_at = ? WHERE id = ?", at)
        )
    ledger.close()
    assert "▁" not in shown(capsys)
    for module in ("terminal", "log.stats"):
        monkeypatch.setattr(f"notyet.cli.{module}.is_terminal", lambda _: True)
    monkeypatch.setattr("notyet.cli.terminal.terminal_size", lambda _: (columns, 24))
    monkeypatch.setenv("NO_COLOR", "1")
    lines = shown(capsys).splitlines()
    passed, sent_back = [line.split() for line in lines if line.startswith(("passed", "sent"))]
    shown_steps = 40 if columns == 200 else 10
    assert passed[1] == "▁" * (shown_steps - 1) + "█"
    assert sent_back[2] == ("█" + "▁" * 4 + "▅" + "▁" * 34)[-shown_steps:]
    assert "at most 2" in " ".join(sent_back)
    assert any(line.startswith("tests takes") for line in lines)
    assert max(map(len, lines[-4:])) <= columns
    gates, stops = [json.loads(line) for line in shown(capsys, "--json").splitlines()]
    assert [one["sent_back"] for one in stops["over_time"]][:6] == [2, 0, 0, 0, 0, 1]
    assert [value > 0 for value in gates["seconds_over_time"]].count(True) == 3


def test_a_span_of_any_length_has_few_steps():
    for span in (0.0, 59.0, 3_600.0, 86_400.0 * 400, 1e9, 1e18):
        found = buckets([(1.0 + span, "passed"), (1.0, "skipped")])
        assert 1 <= len(found) <= MOST_STEPS
        assert sum(one.stops for one in found) == 2
    assert buckets([]) == []
