import pytest

from notyet import Function, Gate, Match
from notyet.core.gate import why_not
from notyet.core.matcher import fits
from support import gate, stop, substop


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": " "}, "needs a name"),
        ({"if_broken": "maybe"}, "'allow' or 'block', not 'maybe'"),
        ({"when": "never"}, "'always' or 'changed', not 'never'"),
        ({"paths": ("src/**", " ")}, "paths are globs of files"),
        ({"paths": (1,)}, "paths are globs of files"),
        ({"timeout": 0}, "seconds above 0"),
        ({"timeout": -1}, "seconds above 0"),
        ({"timeout": float("nan")}, "seconds above 0"),
        ({"timeout": "10"}, "seconds above 0"),
    ],
)
def test_a_gate_that_cannot_mean_anything_is_refused(fields, words):
    with pytest.raises(ValueError, match=words):
        Gate(**({"name": "g", "check": Function(print)} | fields))


@pytest.mark.rule("N1")
def test_one_path_stands_for_a_tuple_of_one():
    assert gate(paths="src/**").paths == ("src/**",)
    assert gate(paths=["a", "b"]).paths == ("a", "b")


@pytest.mark.rule("N1")
def test_a_gate_made_in_code_is_always_asked_unless_it_says_otherwise():
    assert (gate().when, gate(when="changed").when) == ("always", "changed")


@pytest.mark.rule("D1")
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"events": ("main",)}, "events are some of"),
        ({"events": ()}, "events are some of"),
        ({"endings": ("ok",)}, "endings are some of"),
        ({"agents": ("[a",)}, "never closed"),
        ({"never": ("",)}, "empty pattern"),
        ({"agents": ()}, "would never apply"),
    ],
)
def test_a_match_that_can_never_match_is_refused(fields, words):
    with pytest.raises(ValueError, match=words):
        Match(**fields)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Gate(name="g", check=print), "check is a Function or Command, not builtin"),
        (lambda: Gate(name="g", check=Function(print), priority="high"), "priority is a whole"),
        (lambda: Gate(name="g", check=Function(print), step=None), "step is a whole number"),
        (lambda: Function("print"), "calls a function, not str"),
    ],
)
def test_a_gate_of_the_wrong_types_is_refused(make, words):
    with pytest.raises(TypeError, match=words):
        make()


def test_a_function_speaks_a_known_dialect():
    with pytest.raises(ValueError, match="speaks is one of notyet, openclaw, not 'claude'"):
        Function(print, "claude")


@pytest.mark.rule("D1")
def test_one_text_stands_for_a_tuple_of_one_and_a_list_for_a_tuple():
    match = Match(events="subagent", agents="impl-*", never=["Explore"])
    assert (match.events, match.agents, match.never) == (("subagent",), ("impl-*",), ("Explore",))


@pytest.mark.rule("C8")
def test_a_gate_is_for_the_main_agent_unless_it_says_otherwise():
    assert why_not(gate(), stop()) == ""
    assert why_not(gate(), substop()) == "it is not for subagents"
    assert why_not(gate(scopes=("subagent",)), substop()) == ""
    assert why_not(gate(scopes=("subagent",)), stop()) == "it is not for the main agent"


@pytest.mark.rule("C3", "C4")
@pytest.mark.parametrize("ending", ["killed", "reset", "interrupted"])
def test_no_gate_can_ask_for_an_ending_by_people(ending):
    with pytest.raises(ValueError, match="endings are some of done, error, timeout"):
        Match(endings=("done", ending))


@pytest.mark.rule("C2")
@pytest.mark.parametrize("ending", ["error", "timeout"])
def test_a_native_gate_is_asked_after_other_endings_only_if_it_says_so(ending):
    assert (
        why_not(gate(), stop(ending=ending)) == f"it does not apply when a turn ends as {ending!r}"
    )
    wants = gate(match=Match(endings=("done", ending)))
    assert why_not(wants, stop(ending=ending)) == ""


@pytest.mark.rule("D2")
@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("cod*", "agent_type coder fits cod*"),
        ("a1", "agent_id a1 fits a1"),
        ("Big *", "agent_name Big Job fits Big *"),
        ("other", ""),
    ],
)
def test_patterns_are_tried_on_type_id_and_name_and_the_match_is_named(pattern, matched):
    assert fits("glob", (pattern,), substop(agent_name="Big Job")) == matched


@pytest.mark.rule("D2")
def test_a_subagent_without_names_still_fits_a_star_and_nothing_else():
    nameless = substop(agent_id=None, agent_type=None)
    assert fits("glob", ("*",), nameless) == "every subagent fits *"
    assert fits("glob", ("?*",), nameless) == ""


@pytest.mark.rule("D2")
def test_never_beats_a_matching_pattern():
    picky = gate(match=Match(events=("subagent",), agents=("*",), never=("Expl*",)))
    assert why_not(picky, substop(agent_type="Explore")) == "never: agent_type Explore fits Expl*"
    assert why_not(picky, substop(agent_type="coder")) == ""


def test_a_gate_says_which_patterns_did_not_fit():
    picky = gate(match=Match(events=("subagent",), agents=("impl-*", "tester")))
    assert why_not(picky, substop()) == "no pattern fits (impl-*, tester)"


def test_patterns_are_about_subagents_so_the_main_agent_passes_them():
    both = gate(match=Match(events=("agent", "subagent"), agents=("coder",), never=("lead",)))
    assert why_not(both, stop(agent_type="lead")) == ""


@pytest.mark.rule("D5")
def test_a_child_without_a_type_has_codex_default_type_for_codex_matchers_only():
    nameless = substop(agent_type=None, agent_id="x")
    assert fits("codex", ("default",), nameless) == "agent_type default fits default"
    assert fits("claude", ("default",), nameless) == ""


def test_a_match_of_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind is one of glob, claude, codex, not 'regex'"):
        Match(kind="regex")
