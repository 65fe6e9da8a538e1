"""What a `.conclaude.yaml` wants its user to be notified of."""

from notyet import Allow, Block, Decision
from notyet.core.verdict import Report
from notyet.hosts.conclaude import hooks as conclaude
from support import gate, stop, substop

LOUD = {
    "enabled": True,
    "hooks": ["*"],
    "showErrors": True,
    "showSuccess": True,
    "showSystemEvents": False,
}
PLAIN = {"enabled": True, "hooks": ["*"]}


def decided(verdict=Allow(), outcome="passed", reports=(), why=""):
    return Decision(verdict=verdict, outcome=outcome, reports=tuple(reports), why=why)


def gates_of(**sections):
    return conclaude.gates(sections, "/p/.conclaude.yaml", lambda _: 1)


def bodies(wishes, event, decision=decided(), gates=()):
    return [body for _, body in conclaude.notifications(wishes, event, decision, gates)]


def test_a_subagents_end_is_notified_also_when_nothing_matched_or_a_command_failed():
    title = "notyet - SubagentStop"
    told = conclaude.notifications(LOUD, substop(), decided())
    assert told == [(title, "Subagent 'a1' completed")]
    failed = Report(gate='subagentStop.commands["*"][0] x', answer=Block("no"), observed=True)
    gates = gates_of(subagentStop={"commands": {"*": [{"run": "x"}]}})
    assert bodies(LOUD, substop(), decided(reports=[failed]), gates) == ["Subagent 'a1' completed"]


def test_notifications_are_sent_only_where_the_file_wants_them():
    failed = stop(ending="error")
    for wishes in (
        {},
        LOUD | {"enabled": False},
        LOUD | {"hooks": []},
        LOUD | {"hooks": None},
        LOUD | {"hooks": ["SubagentStop"]},
    ):
        assert bodies(wishes, stop()) == []
    assert bodies(LOUD | {"hooks": ["Stop"]}, stop()) == ["All commands passed"]
    assert bodies(LOUD | {"showSuccess": False}, stop()) == []
    assert bodies(LOUD | {"showErrors": False}, failed) == []
    assert bodies(LOUD | {"hooks": ["StopFailure"]}, failed) == [
        "The turn ended with an error: unknown"
    ]


def test_what_became_of_a_stop_is_notified():
    blocked = decided(Block("Tests fail."), "blocked", [Report(gate="g", answer=Block("x"))])
    going_on = decided(
        Block("Go on."), "blocked", [Report(gate="stop.infinite", answer=Block("Go on."))]
    )
    endless = gates_of(stop={"infinite": True})
    only_errors = LOUD | {"showSuccess": False}
    assert bodies(only_errors, stop(), blocked) == ["Tests fail."]
    assert bodies(only_errors, substop(), blocked) == ["Subagent 'a1' was sent back"]
    assert bodies(only_errors, stop(), going_on, endless) == []
    assert bodies(LOUD, stop(), going_on, endless) == ["Continuing: Go on."]
    capped = decided(outcome="capped", why="g still fails")
    assert bodies(only_errors, stop(), capped) == ["capped: g still fails"]
    assert bodies(only_errors, substop(), capped) == [
        "Subagent 'a1' stopped, capped: g still fails"
    ]
    skipped = decided(outcome="skipped", why="background")
    assert bodies(only_errors, stop(), skipped) == []
    assert bodies(LOUD, stop(), skipped) == ["skipped: background"]
    (long,) = bodies(LOUD, stop(), decided(Block("x" * 10_000), "blocked"))
    assert len(long) <= 300


def test_notify_per_command_tells_how_each_command_ended():
    loud = {"notifyPerCommand": True}
    commands = [
        {"run": "one"} | loud,
        {"run": "two"},
        {"run": "three", "showCommand": False} | loud,
        {"run": "four"} | loud,
    ]
    gates = gates_of(stop={"commands": commands})
    names = [each.name for each in gates]
    answers = [Allow(), Allow(), Block("x"), None]
    reports = [Report(gate=n, answer=a) for n, a in zip(names, answers, strict=True)]
    reports.append(Report(gate="native", answer=Block("y")))
    decision = decided(Block("x"), "blocked", reports)
    told = bodies(LOUD, stop(), decision, [*gates, gate("native")])
    assert told == ["Command passed: one", "Command failed", "x"]


def test_notify_per_command_knows_a_subagents_failure():
    commands = {"*": [{"run": "x", "notifyPerCommand": True}]}
    report = Report(gate='subagentStop.commands["*"][0] x', answer=Block("no"), observed=True)
    gates = gates_of(subagentStop={"commands": commands})
    told = bodies(LOUD, substop(), decided(reports=[report]), gates)
    assert told == ["Command failed: x", "Subagent 'a1' completed"]


def test_that_a_stop_is_over_is_told_unless_system_events_are_switched_off():
    assert bodies(PLAIN, substop()) == ["Subagent 'a1' completed"]
    assert bodies(PLAIN | {"showSystemEvents": False}, substop()) == []
