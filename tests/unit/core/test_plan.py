import pytest

from notyet import BackgroundTask, History, Limits, Match
from notyet.core.gate import Source
from notyet.core.plan import Wanted, plan, select, skip_causes
from support import gate, stop, substop


def names(stages):
    return [[each.name for each in stage] for stage in stages]


def planned(event, gates, history=History(), limits=Limits()):
    return plan(event, tuple(gates), history, limits)


@pytest.mark.rule("A1")
def test_equal_priority_and_step_are_asked_together_in_declared_order():
    assert names(planned(stop(), [gate("b"), gate("a")]).stages) == [["b", "a"]]


@pytest.mark.rule("A1")
def test_higher_priority_comes_first_then_the_lower_step():
    gates = [
        gate("late", step=2),
        gate("low", priority=-1),
        gate("early", step=1),
        gate("high", priority=10, step=9),
    ]
    assert names(planned(stop(), gates).stages) == [["high"], ["early"], ["late"], ["low"]]


@pytest.mark.rule("C7")
def test_nothing_is_selected_for_an_internal_agent():
    assert select(stop(internal=True), [gate()]) == ()


def test_select_keeps_declared_order_and_drops_what_does_not_apply():
    gates = [gate("a"), gate("sub", scopes=("subagent",)), gate("b")]
    assert [each.name for each in select(stop(), gates)] == ["a", "b"]


@pytest.mark.rule("B5")
@pytest.mark.parametrize(
    ("blocks", "flag", "told"),
    [(0, None, False), (0, True, True), (2, None, True), (2, False, True)],
)
def test_gates_are_told_the_count_the_limit_and_the_flag(blocks, flag, told):
    event = planned(stop(stop_hook_active=flag), [gate()], History(turn=1, blocks=blocks)).event
    assert (event.block_count, event.max_blocks, event.stop_hook_active) == (blocks, 3, told)


@pytest.mark.rule("B10")
@pytest.mark.parametrize(
    ("task", "waits"),
    [
        (BackgroundTask(id="x", type="subagent"), True),
        (BackgroundTask(id="x", type="workflow"), True),
        (BackgroundTask(id="x", type="teammate"), True),
        (BackgroundTask(id="x", type="shell"), False),
        (BackgroundTask(id="x", type="monitor"), False),
        (BackgroundTask(id="x", type="subagent", status="completed"), False),
        (BackgroundTask(id="me", type="subagent"), False),
    ],
)
def test_a_main_stop_waits_for_the_sessions_other_agents_only(task, waits):
    event = stop(agent_id="me", background_tasks=(task,))
    done = planned(event, [gate()])
    assert done.skipped == ("background" if waits else "")
    assert bool(done.stages) is not waits


@pytest.mark.rule("B10")
def test_background_work_can_be_ignored_and_never_concerns_subagents():
    busy = (BackgroundTask(id="x", type="subagent"),)
    careless = Limits(wait_for_background=False)
    assert planned(stop(background_tasks=busy), [gate()], limits=careless).stages
    assert planned(substop(background_tasks=busy), [gate()]).stages


@pytest.mark.rule("B1")
def test_at_the_limit_plugin_handlers_are_not_asked_and_native_gates_are():
    gates = [gate("plugin", speaks="openclaw"), gate("native")]
    done = planned(stop(run_id="r7"), gates, History(turn=1, blocks=3))
    assert done.at_limit
    assert names(done.stages) == [["native"]]
    assert done.warnings == (
        "limit reached: 3 of 3 send-backs used (max_blocks) in run r7 of session s1; "
        "the agent is not sent back again; not run: plugin",
    )


@pytest.mark.rule("B1")
def test_at_the_limit_no_run_is_named_where_there_is_none():
    (said,) = planned(stop(), [gate()], History(turn=1, blocks=3)).warnings
    assert " used (max_blocks) in session s1; " in said


@pytest.mark.rule("B14")
@pytest.mark.parametrize(
    ("message", "blocks", "handed"),
    [
        ("BLOCKED: I need the password", 1, True),
        ("\n BLOCKED: leading blanks", 1, True),
        ("BLOCKED: too early", 0, False),
        ("I am BLOCKED: no", 1, False),
        ("blocked: no", 1, False),
        (None, 1, False),
    ],
)
def test_an_agent_hands_back_with_a_word_after_at_least_one_block(message, blocks, handed):
    done = planned(stop(last_message=message), [gate()], History(turn=1, blocks=blocks))
    assert done.handed_back is handed
    assert bool(done.stages) is not handed


@pytest.mark.rule("B14")
def test_handing_back_spares_only_native_gates():
    gates = [gate("native"), gate("plugin", speaks="openclaw")]
    done = planned(stop(last_message="BLOCKED: x"), gates, History(turn=1, blocks=1))
    assert names(done.stages) == [["plugin"]]


@pytest.mark.rule("D2")
def test_a_missing_agent_id_is_said_when_patterns_need_names():
    picky = gate(match=Match(events=("subagent",), agents=("cod*",)))
    (warning,) = planned(substop(agent_id=None), [picky]).warnings
    assert "names no agent_id" in warning
    star = gate("star", scopes=("subagent",))
    assert planned(substop(agent_id=None), [star]).warnings == ()
    among = plan(substop(agent_id=None), (star,), History(), Limits(), (star, picky))
    assert among.warnings == (warning,)
    main = gate("main", match=Match(agents=("a-*",)))
    assert plan(substop(agent_id=None), (star,), History(), Limits(), (star, main)).warnings == ()
    assert planned(substop(), [picky]).warnings == ()


@pytest.mark.rule("N1")
def test_a_gate_is_skipped_for_a_pass_or_a_start_on_the_same_known_files():
    def wanted(gate, tree="t1", definition="d"):
        return Wanted(gate=gate, definition=definition, scope="s", tree=tree)

    gates = [wanted("passed"), wanted("unknown", tree=""), wanted("begun"), wanted("new", "t2")]
    causes = skip_causes(gates, {"s": "t1"}, [True, True, False, False])
    assert causes == {"passed": "passed", "begun": "unchanged"}
    undefined = wanted("undefined", "t2", definition="")
    assert skip_causes([undefined], {}, [True]) == {}


@pytest.mark.rule("A8")
def test_a_gate_that_sent_the_agent_back_must_be_declared_under_its_name_and_file():
    def left(by, *declared):
        gates = tuple(gate(name, source=Source(file) if file else None) for name, file in declared)
        history = History(turn=1, blocks=1, sent_back_by=by)
        known = plan(stop(), (gate("other"),), history, Limits(), gates, unchecked=("x",))
        assert known.unchecked[0] == "x"
        return [sentence.split(maxsplit=1)[0] for sentence in known.unchecked[1:]]

    by = (("t", "/p/a.toml"), ("a:u", "/p/a.toml"), ("code", ""))
    assert left(by, ("t", "/p/a.toml"), ("u", "/p/a.toml"), ("code", "")) == []
    assert left(by, ("b:t", "/p/a.toml"), ("t", "/p/b.toml")) == ["a:u", "code"]
    assert left(by) == ["t", "a:u", "code"]
    assert left((("a:x", ""),), ("b:x", "")) == ["a:x"]
    assert left(()) == []
