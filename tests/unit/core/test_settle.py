import pytest

from notyet import (
    Allow,
    Block,
    Command,
    Decision,
    Gate,
    Halt,
    History,
    Limits,
    Problem,
    Report,
)
from notyet.core.gate import Source
from notyet.core.plan import blocks, needs_tree, plan
from notyet.core.settle import settle
from support import gate, stop

BROKEN = Problem("crashed", "ValueError: x")


def settled(answers, *, gates=None, history=History(turn=1), limits=Limits(), tree="", event=None):
    gates = gates or [gate(name) for name in answers]
    planned = plan(event or stop(), tuple(gates), history, limits)
    reports = [Report(gate=name, answer=answer) for name, answer in answers.items()]
    return settle(planned, reports, tree)


@pytest.mark.rule("A3")
@pytest.mark.parametrize(
    ("answers", "kind", "outcome"),
    [
        ({"a": Allow(), "b": Allow()}, Allow, "passed"),
        ({"a": Allow(), "b": Block("x")}, Block, "blocked"),
        ({"a": Halt("h"), "b": Block("x")}, Halt, "halted"),
        ({"a": Block("x"), "b": Halt("h")}, Halt, "halted"),
        ({"a": BROKEN, "b": Block("x")}, Block, "blocked"),
        ({"a": BROKEN, "b": Halt("h")}, Halt, "halted"),
        ({"a": BROKEN, "b": Allow()}, Allow, "failed_open"),
    ],
)
def test_halt_beats_block_beats_allow_and_a_broken_gate_is_no_pass(answers, kind, outcome):
    decision = settled(answers)
    assert (type(decision.verdict), decision.outcome) == (kind, outcome)


@pytest.mark.rule("A4")
def test_all_reasons_are_joined_in_declared_order_and_remarks_of_allowing_gates_stay_out():
    gates = [gate("a"), gate("b"), gate("c")]
    answers = {"c": Block("third", "why 3"), "b": Allow(note="fine"), "a": Block("first")}
    decision = settled(answers, gates=gates)
    assert decision.verdict == Block("first\n\nthird", "first\n\nwhy 3")
    assert [report.gate for report in decision.reports] == ["a", "b", "c"]


def test_an_agent_that_is_sent_back_reads_what_fixes_of_passing_gates_changed():
    fixing = {"fix": "ruff check --fix {files}"}
    gates = [
        Gate(name=name, check=Command(script="ruff", options=options))
        for name, options in {"lint": fixing, "style": fixing, "quiet": {}, "tests": {}}.items()
    ]
    note = "`ruff check --fix {files}` changed a.py"
    answers = {
        "lint": Allow(note=note),
        "style": Allow(),
        "quiet": Allow(note="not this"),
        "tests": Block("x"),
    }
    prompt = settled(answers, gates=gates).verdict.prompt
    assert f"\n\nlint: {note}. Read that again before you edit it.\n\n" in prompt
    assert "style:" not in prompt
    assert "not this" not in prompt


@pytest.mark.rule("A11")
def test_the_prompt_is_for_the_agent_and_the_reason_for_the_log():
    assert settled({"a": Block("do this", "because")}).verdict == Block("do this", "because")
    assert settled({"a": Block("do this")}).verdict == Block("do this", "do this")
    assert settled({"a": Block("do this", " \r\n")}).verdict == Block("do this", "do this")


@pytest.mark.rule("A2")
def test_gates_that_were_not_asked_are_reported_so():
    decision = settled({"a": Block("x")}, gates=[gate("a", priority=1), gate("b")])
    assert [report.status for report in decision.reports] == ["blocked", "not_asked"]


@pytest.mark.rule("A6")
def test_a_broken_gate_blocks_only_if_it_says_so_and_is_warned_about_once():
    strict = [gate("a", if_broken="block")]
    decision = settled({"a": BROKEN}, gates=strict)
    assert decision.outcome == "blocked"
    assert "a could not run (crashed: ValueError: x)" in decision.verdict.prompt
    assert decision.warnings == ("gate a crashed: ValueError: x (if_broken = block)",)
    assert settled({"a": BROKEN}).warnings == ("gate a crashed: ValueError: x (if_broken = allow)",)


@pytest.mark.rule("A6", "M3")
@pytest.mark.parametrize(
    ("how", "advice", "then"),
    [
        ("not started", "connect once with: ssh box", "Only your user can fix that."),
        ("not started", "", "Fix that first."),
        ("exit 0", "what a hook says", "Fix that first."),
    ],
)
def test_what_only_a_person_can_mend_the_agent_is_not_asked_to(how, advice, then):
    planned = plan(stop(), (gate("a", if_broken="block"),), History(turn=1), Limits())
    problem = Problem("cannot_start", "the host key of box is not known here")
    report = Report(gate="a", answer=problem, exit=how, tell_user=advice)
    told = f"The gate a could not run ({problem}). {then}"
    assert settle(planned, [report]).verdict.prompt == told


@pytest.mark.rule("A6")
def test_a_gate_cut_by_the_deadline_always_allows():
    decision = settled({"a": Problem("deadline", "cut")}, gates=[gate("a", if_broken="block")])
    assert decision.outcome == "failed_open"


@pytest.mark.rule("A7", "A8")
@pytest.mark.parametrize("answer", [Block("x"), Halt("x")])
def test_an_observing_gate_never_changes_the_verdict(answer):
    gates = [gate("watch", observe=True), gate("real")]
    decision = settled({"watch": answer, "real": Allow()}, gates=gates)
    assert (decision.verdict, decision.outcome) == (Allow(), "observed")
    assert decision.why == "watch would have blocked"
    assert not blocks(gates[0], Report(gate="watch", answer=answer))


@pytest.mark.rule("A7", "A8")
def test_an_observing_gate_that_breaks_is_only_warned_about_where_another_one_passed():
    watch = gate("watch", observe=True, if_broken="block")
    decision = settled({"watch": BROKEN, "a": Allow()}, gates=[watch, gate("a")])
    assert (decision.outcome, decision.verdict) == ("passed", Allow())
    assert decision.warnings == ("gate watch crashed: ValueError: x (only observed)",)


@pytest.mark.rule("A7", "A8")
@pytest.mark.parametrize("answer", [BROKEN, None])
def test_nothing_passed_where_gates_only_observe_and_one_gave_no_answer(answer):
    gates = [gate("watch", observe=True), gate("too", observe=True)]
    decision = settled({"watch": answer, "too": Allow()}, gates=gates)
    assert (decision.outcome, decision.why) == ("failed_open", "watch gave no answer")
    assert decision.verdict == Allow()
    assert settled({"watch": Allow(), "too": Allow()}, gates=gates).outcome == "passed"


@pytest.mark.rule("A8")
def test_failed_open_is_said_rather_than_observed_and_observed_rather_than_passed():
    gates = [gate("watch", observe=True), gate("broken")]
    assert settled({"watch": Block("x"), "broken": BROKEN}, gates=gates).outcome == "failed_open"


@pytest.mark.rule("B1")
def test_at_the_limit_a_failing_gate_is_capped_and_a_passing_one_passed():
    full = History(turn=1, blocks=3)
    capped = settled({"a": Block("x")}, history=full)
    assert (capped.verdict, capped.outcome, capped.count) == (Allow(), "capped", 3)
    assert capped.why == "a still failing; 3 of 3 send-backs used (max_blocks)"
    assert settled({"a": Allow()}, history=full).outcome == "passed"


@pytest.mark.rule("B1")
def test_a_plugin_that_was_not_asked_at_the_limit_cannot_count_as_passed():
    decision = settled({}, gates=[gate("p", speaks="openclaw")], history=History(turn=1, blocks=3))
    assert decision.outcome == "capped"
    assert decision.why == "p not run; 3 of 3 send-backs used (max_blocks)"


@pytest.mark.rule("B2")
def test_the_highest_extension_counts_also_from_an_allowing_gate():
    assert settled({"a": Allow(extend=5), "b": Block("x", extend=4)}).extend == 5
    assert settled({"a": Allow(extend=6)}).extend == 6


@pytest.mark.rule("B2", "B8")
def test_an_extension_above_the_hosts_cap_is_clipped_with_a_warning():
    decision = settled({"a": Block("x", extend=100)}, event=stop(host_cap=8))
    (warning,) = decision.warnings
    assert warning == "a gate asked for a limit of 100; it stays at 7 (below the host's cap of 8)"


@pytest.mark.rule("B2", "B13")
def test_an_extension_above_the_session_ceiling_is_clipped_with_a_warning():
    decision = settled({"a": Allow(extend=100)}, limits=Limits(session_ceiling=20))
    assert decision.warnings == (
        "a gate asked for a limit of 100; it stays at 20 (session_ceiling 20)",
    )


@pytest.mark.rule("B2")
def test_an_extension_below_the_limit_changes_nothing_and_warns_of_nothing():
    assert settled({"a": Allow(extend=2)}, event=stop(host_cap=3)).warnings == ()


def stuck_history(key, repeats):
    return History(turn=1, blocks=repeats, repeats=repeats, repeat_key=key)


@pytest.mark.rule("B6")
def test_the_third_equal_failure_on_the_same_tree_is_stuck():
    first = settled({"a": Block("failed in 1.1s")}, tree="t")
    again = settled(
        {"a": Block("failed in 2.9s")}, tree="t", history=stuck_history(first.repeat_key, 1)
    )
    third = settled(
        {"a": Block("failed in 3s")}, tree="t", history=stuck_history(first.repeat_key, 2)
    )
    assert [each.outcome for each in (first, again, third)] == ["blocked", "blocked", "stuck"]
    assert third.verdict == Allow()
    assert third.why == "a failed 3 times with no file changed"


@pytest.mark.rule("B6")
@pytest.mark.parametrize(
    ("answers", "tree"),
    [
        ({"a": Block("another reason")}, "t"),
        ({"a": Block("same")}, "another tree"),
        ({"b": Block("same")}, "t"),
        ({"a": Block("same"), "b": Block("more")}, "t"),
        ({"a": Block("same")}, ""),
    ],
)
def test_anything_that_moved_is_not_stuck(answers, tree):
    key = settled({"a": Block("same")}, tree="t").repeat_key
    assert settled(answers, tree=tree, history=stuck_history(key, 2)).outcome == "blocked"


@pytest.mark.rule("B6")
def test_stuck_is_for_native_gates_and_can_be_switched_off():
    plugin = [gate("a", speaks="openclaw")]
    assert settled({"a": Block("x")}, gates=plugin, tree="t").repeat_key == ""
    off = Limits(stuck_after=0)
    assert settled({"a": Block("x")}, limits=off, tree="t").repeat_key == ""


def test_the_tree_is_looked_at_only_when_native_gates_alone_hold_an_agent_below_its_limit():
    native, plugin = gate("n"), gate("p", speaks="openclaw")

    def needs(answers, history=History(turn=1), limits=Limits()):
        planned = plan(stop(), (native, plugin), history, limits)
        stage = (native, plugin)[: len(answers)]
        return needs_tree(planned, stage, [Report(gate="x", answer=each) for each in answers])

    assert needs([Block("x")])
    assert needs([Block("x"), Allow()])
    assert not needs([Block("x"), Block("y")])
    assert not needs([Block("x")], history=History(turn=1, blocks=3))
    assert not needs([Block("x")], limits=Limits(stuck_after=0))


@pytest.mark.rule("B14", "A8")
def test_handing_back_is_its_own_outcome():
    decision = settled(
        {},
        gates=[gate("a")],
        history=History(turn=1, blocks=1),
        event=stop(last_message="BLOCKED: x"),
    )
    assert (decision.verdict, decision.outcome) == (Allow(), "handed_back")


@pytest.mark.rule("B14")
def test_a_plugin_still_decides_when_the_agent_hands_back():
    gates = [gate("a"), gate("p", speaks="openclaw")]
    handed = {
        "gates": gates,
        "history": History(turn=1, blocks=1),
        "event": stop(last_message="BLOCKED: x"),
    }
    assert settled({"p": Block("no")}, **handed).outcome == "blocked"
    assert settled({"p": Allow()}, **handed).outcome == "handed_back"
    only_plugin = handed | {"gates": [gates[1]]}
    assert settled({"p": Allow()}, **only_plugin).outcome == "passed"


@pytest.mark.rule("A8", "B10")
def test_a_skipped_plan_settles_as_skipped_with_its_cause():
    from notyet.core.plan import Plan

    decision = settle(Plan(event=stop(), skipped="background"), [])
    assert decision == Decision(verdict=Allow(), outcome="skipped", why="background")


def test_halt_reasons_are_joined_and_may_be_missing():
    assert settled({"a": Halt("one"), "b": Halt(), "c": Halt("two")}).verdict == Halt("one\n\ntwo")


def test_a_gates_own_warning_reaches_the_decision():
    planned = plan(stop(), (gate("a"),), History(turn=1), Limits())
    decision = settle(planned, [Report(gate="a", answer=Allow(), warning="careful")])
    assert decision.warnings == ("gate a: careful",)


@pytest.mark.rule("A7", "B2")
def test_an_observing_gate_cannot_extend_a_limit():
    gates = [gate("watch", observe=True)]
    assert settled({"watch": Allow(extend=9)}, gates=gates).extend == 0


@pytest.mark.rule("A6")
def test_a_problem_that_counts_as_a_block_is_marked_in_its_report():
    gates = (
        gate("blocks", if_broken="block"),
        gate("allows"),
        gate("watches", if_broken="block", observe=True),
        gate("late", if_broken="block"),
    )
    planned = plan(stop(), gates, History(turn=1), Limits())
    reports = [
        Report(gate=each.name, answer=Problem("timeout", "x"), observed=each.observe)
        for each in gates[:3]
    ]
    reports.append(Report(gate="late", answer=Problem("deadline", "x")))
    decision = settle(planned, reports)
    assert [report.held for report in decision.reports] == [True, False, False, False]
    assert decision.outcome == "blocked"


def test_what_is_planned_and_settled_has_each_of_its_fields_and_no_other():
    made = plan(stop(), (gate("a"),), History(), Limits()), settled({"a": Allow()})
    for record in made:
        assert tuple(record.__dict__) == record._fields


@pytest.mark.rule("B6", "N2")
@pytest.mark.parametrize(("repeats", "is_said"), [(0, False), (1, True)])
def test_the_agent_reads_that_the_next_equal_failure_ends_it(repeats, is_said):
    ours = Gate(name="a", check=Command(script="x"))
    first = settled({"a": Block("x")}, gates=[ours], tree="t")
    history = History(turn=1, blocks=repeats, repeats=repeats, repeat_key=first.repeat_key)
    decision = settled({"a": Block("x")}, gates=[ours], history=history, tree="t")
    assert ("fails in the same way once more" in decision.verdict.prompt) == is_said


@pytest.mark.rule("B13")
def test_a_ceiling_that_is_reached_is_named():
    limits = Limits(session_ceiling=4)
    history = History(turn=3, session_blocks=4)
    decision = settled({"a": Block("x")}, history=history, limits=limits)
    used = "all 4 send-backs of this session used (session_ceiling)"
    assert (decision.outcome, decision.why) == ("capped", f"a still failing; {used}")
    assert used in decision.warnings[0]
    none = settled({"a": Block("x")}, limits=Limits(max_blocks=0))
    assert none.why == "a still failing; no send-back allowed (max_blocks 0)"


@pytest.mark.rule("A6", "M3")
@pytest.mark.parametrize(
    ("kind", "blocks_too", "outcome", "then"),
    [
        ("unreachable", False, "failed_open", "does not block"),
        ("unreachable", True, "blocked", "if_broken = block"),
        ("cannot_start", False, "blocked", "if_broken = block"),
        ("internal", True, "failed_open", "does not block"),
        ("deadline", True, "failed_open", "does not block"),
    ],
)
def test_faults_of_ours_and_unreachable_machines_are_not_the_agents(
    kind, blocks_too, outcome, then
):
    strict = gate("a", if_broken="block", unreachable_blocks=blocks_too)
    decision = settled({"a": Problem(kind, "x")}, gates=[strict])
    assert decision.outcome == outcome
    assert decision.warnings[0].endswith(f" ({then})")


@pytest.mark.rule("A6", "N2")
def test_what_a_broken_command_printed_is_shown_before_why_it_is_broken():
    ours = Gate(name="a", check=Command(script="x"), if_broken="block")
    planned = plan(stop(), (ours,), History(turn=1), Limits())
    report = Report(gate="a", answer=Problem("timeout", "did not finish"), output="begun")
    decision = settle(planned, [report])
    assert "  begun\n  It did not finish.\n" in decision.verdict.prompt
    assert decision.verdict.reason == "a did not finish"


@pytest.mark.rule("A8")
def test_gates_that_send_the_agent_back_are_kept_until_they_pass():
    gates = [gate("a", source=Source("/p/f")), gate("b"), gate("c", if_broken="block")]

    def by(history, a, b, c=Allow(), **fields):
        answers = {"a": a, "b": b, "c": c}
        given = {name: answer for name, answer in answers.items() if answer is not None}
        decision = settled(given, gates=gates, history=history, **fields)
        return decision.outcome, decision.sent_back_by

    new = History(turn=1)
    a, b, c, elsewhere = ("a", "/p/f"), ("b", ""), ("c", ""), ("a", "/q/f")
    assert by(new, Allow(), Allow()) == ("passed", ())
    assert by(new, Block("x"), None) == ("blocked", (a,))
    assert by(new, Allow(), Block("x"), BROKEN) == ("blocked", (b, c))
    back = History(turn=1, blocks=1, sent_back_by=(a, elsewhere))
    assert by(back, None, Block("x")) == ("blocked", (a, elsewhere, b))
    assert by(back, Allow(), Block("x")) == ("blocked", (elsewhere, b))
    assert by(back, Allow(), Allow()) == ("failed_open", (elsewhere,))
    assert by(back, Allow(), Block("x"), limits=Limits(max_blocks=1)) == ("capped", (elsewhere,))
    here = History(turn=1, blocks=1, sent_back_by=(a,))
    assert by(here, Allow(), Allow()) == ("passed", ())
