"""What agents are told, as golden files that a person can read."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notyet import Allow, Block, Gate, Problem, Report
from notyet.core import message
from notyet.core.gate import Command
from notyet.core.message import CONTINUATION, SendBack, briefing
from notyet.core.record import replace
from support import gate

GOLDEN = Path(__file__).parent.parent.parent / "golden" / "messages"
PYTEST = """\
============================= test session starts ==============================
collected 3 items

tests/test_shop.py F..                                                   [100%]

=================================== FAILURES ===================================
_________________________ test_an_empty_basket_is_free _________________________

    def test_an_empty_basket_is_free():
>       assert total([]) == 0
E       IndexError: list index out of range

tests/test_shop.py:9: IndexError
=========================== short test summary info ============================
FAILED tests/test_shop.py::test_an_empty_basket_is_free - IndexError: list in...
========================= 1 failed, 2 passed in 0.02s ==========================
"""


def compose(back):
    return message.compose(back)[0]


def left_out(back):
    return message.compose(back)[1]


def command(name, run="uv run pytest -q", **options):
    return Gate(name=name, check=Command(script=run, options=options))


def failed(name, output=PYTEST, run="uv run pytest -q", log="", **options):
    """Return what is held against an agent by one of our own gates."""
    block = Block(output)
    report = Report(gate=name, answer=block, seconds=12.345, exit="exit 1", log=log)
    return command(name, run, **options), block, report


def passed(name):
    return Report(gate=name, answer=Allow(), seconds=0.1, exit="exit 0")


SENT_BACK = {"is_subagent": False, "count": 1, "limit": 3, "is_same": False}


def held(*blocks, others=(), **fields):
    reports = (*(report for _, _, report in blocks), *others)
    return SendBack(blocks=blocks, reports=reports, **(SENT_BACK | fields))


TESTS = failed(
    "tests",
    log="/home/u/.local/state/notyet/logs/stop-7-tests.log",
    hint="Fix the cause, not the assertion.",
)
LINT = failed("lint", "shop.py:3:5: T201 `print` found", run="ruff check .")
OTHERS = (passed("mypy"), Report(gate="e2e"))
CASES = {
    "main-first": held(TESTS, others=OTHERS),
    "main-repeated": held(TESTS, others=OTHERS, count=2, is_same=True),
    "main-last": held(TESTS, others=OTHERS, count=3),
    "main-two-gates": held(TESTS, LINT, others=OTHERS),
    "main-and-others": held(
        TESTS,
        (
            Gate(name="hook", check=Command(script="x", speaks="codex")),
            Block("Update the changelog."),
            Report(gate="hook", answer=Block("Update the changelog."), exit="exit 2"),
        ),
        others=(
            *OTHERS,
            Report(gate="types", answer=Problem("timeout", "no answer in 5 s")),
            Report(gate="watch", answer=Block("x"), observed=True),
            Report(gate="sees", observed=True),
        ),
    ),
    "main-fixed": held(
        TESTS, others=OTHERS, fixed=("lint: `ruff check --fix {files}` changed src/app.py",)
    ),
    "main-broken": held(
        (
            command("tests"),
            Block("The gate tests could not run (cannot_start: no such file). Fix that first."),
            Report(
                gate="tests",
                answer=Problem("cannot_start", "no such file"),
                exit="not started",
                held=True,
            ),
        ),
        others=OTHERS,
    ),
    "main-answers": held(
        (
            command("review", "review --json"),
            Block("Say what you tested."),
            Report(gate="review", answer=Block("x"), seconds=2.0, exit="exit 0"),
        )
    ),
    "main-says-nothing": held(failed("quiet", "It exited with code 1 and said nothing.")),
    "sub-first": held(TESTS, others=OTHERS, is_subagent=True),
    "sub-repeated": held(TESTS, others=OTHERS, is_subagent=True, count=2, is_same=True),
    "sub-last": held(TESTS, others=OTHERS, is_subagent=True, count=3),
    "sub-hook-of-claude": held(
        (
            Gate(name="claude", check=Command(script="x", speaks="claude")),
            Block("Update the changelog."),
            Report(gate="claude"),
        ),
        is_subagent=True,
    ),
}


@pytest.mark.rule("N2", "K12")
@pytest.mark.parametrize("name", CASES)
def test_the_message_reads_as_its_golden_file(name, request):
    text = compose(CASES[name]) + "\n"
    file = GOLDEN / f"{name}.txt"
    if request.config.getoption("--write-golden"):
        file.write_text(text)
    assert text == file.read_text()


def test_every_golden_file_belongs_to_a_message():
    assert {path.stem for path in GOLDEN.iterdir()} == set(CASES)


@pytest.mark.rule("N2")
def test_gates_with_long_hints_make_room_for_what_the_first_ones_said():
    words = compose(
        held(*[failed(f"g{at}", "out", log="/l" * 99, hint="h" * 300) for at in range(6)])
    )
    assert words.count("FAILED ") == 4
    assert "Also failed: g4, g5." in words
    assert len(words.encode()) < 3000


@pytest.mark.rule("N2")
@pytest.mark.uncounted
@given(
    st.lists(
        st.tuples(st.text(min_size=1, max_size=80), st.text(max_size=3000), st.text(max_size=500)),
        min_size=1,
        max_size=12,
    ),
    st.booleans(),
    st.integers(1, 4),
)
def test_whatever_fails_the_message_stays_below_3_kb_and_names_the_gate(gates, is_subagent, count):
    blocks = [
        failed(f"g{at} {name}".strip(), output or "nothing", log="/l" * 99, hint=hint)
        for at, (name, output, hint) in enumerate(gates)
        if (output or "nothing").strip()
    ]
    if not blocks:
        return
    others = [
        Report(gate=f"{name} {at}" * 9, answer=answer)
        for name in gates[0][0]
        for at, answer in enumerate([Allow(), Problem("timeout", "x"), None] * 3)
    ]
    text = compose(held(*blocks, others=others, is_subagent=is_subagent, count=count, is_same=True))
    assert len(text.encode("utf-8", "replace")) < 3_000
    assert "FAILED g" in text


@pytest.mark.rule("N2")
def test_the_end_of_a_long_output_is_kept_in_whole_lines():
    output = "\n".join(f"line {n}" for n in range(10_000))
    text = compose(held(failed("tests", output)))
    assert "  line 9999\n" in text
    assert "lines left out ..." in text
    assert "line 1\n" not in text


@pytest.mark.rule("N2")
def test_of_one_endless_line_the_beginning_is_told():
    endless = failed("tests", "x" * 10_000)
    text = compose(held(endless))
    assert "x" * 1000 in text
    assert "xxx...\n" in text
    assert "lines left out" not in text
    assert left_out(held(endless)) == ["tests"]


@pytest.mark.rule("K12")
@pytest.mark.parametrize("speaks", ["openclaw", "mux"])
def test_what_plugins_and_mux_say_to_a_subagent_is_not_touched(speaks):
    theirs = gate(speaks=speaks) if speaks == "openclaw" else command("x")
    if speaks == "mux":
        theirs = Gate(name="x", check=Command(script="x", speaks="mux"))
    block = (theirs, Block("Exactly this."), Report(gate="x"))
    assert compose(held(block, is_subagent=True)) == "Exactly this."


def test_what_hooks_say_stands_between_our_own_words_as_it_is():
    theirs = (
        Gate(name="hook", check=Command(script="x", speaks="codex")),
        Block("  Their words.\n\nIn two paragraphs."),
        Report(gate="hook", answer=Block("x")),
    )
    text = compose(held(LINT, theirs))
    assert "\n\nTheir words.\n\nIn two paragraphs.\n\n" in text
    assert text.startswith("notyet: 2 of 2 checks failed")


@pytest.mark.rule("N2")
def test_an_exit_code_is_told_where_it_is_the_reason():
    def told(exit_words, **options):
        report = Report(gate="g", answer=Block("x"), seconds=1.0, exit=exit_words)
        return compose(held((command("g", "cmd", **options), Block("x"), report)))

    assert "FAILED g (1.0 s): cmd" in told("exit 0")
    assert "FAILED g (exit 0, 1.0 s): cmd" in told("exit 0", pass_codes=(5,))
    assert "FAILED g (1.0 s): cmd" in told("exit 5", pass_codes=(0, 5))
    assert "FAILED g (exit 1, 1.0 s): cmd" in told("exit 1")


@pytest.mark.rule("N2")
def test_what_is_left_out_is_known_before_it_is_said():
    theirs = (Gate(name="hook", check=Command(script="x", speaks="codex")), Block("x"), None)
    assert left_out(held(LINT)) == []
    assert left_out(SendBack(blocks=(theirs,), reports=(), **SENT_BACK)) == []
    long = [failed(f"g{n}", "\n".join(f"line {m}" for m in range(40 * n))) for n in range(1, 9)]
    cut = left_out(held(*long))
    text = compose(held(*long))
    assert set(cut) >= {"g7", "g8"}  # which are only named
    for n in range(1, 9):
        section = text.partition(f"FAILED g{n} ")[2].partition("FAILED")[0]
        assert ("lines left out" in section or not section) == (f"g{n}" in cut)


def test_a_starting_agent_is_told_which_checks_wait_for_it():
    python = Gate(name="p", check=Command(argv=("python", "m:f"), options={"python": "m:f"}))
    text = briefing([command("tests"), python, gate("function")], "agent")
    assert text.splitlines()[:4] == [
        "Before you may finish, notyet runs these checks:",
        "- tests: uv run pytest -q",
        "- p: m:f",
        "- function",
    ]
    assert "deliver your report" in briefing([command("tests")], "subagent")
    assert "- and 70 more" in briefing([command(f"g{n}") for n in range(100)], "agent")
    assert briefing([], "agent") == ""


@pytest.mark.rule("N2")
def test_a_log_of_an_output_that_was_cut_is_not_called_full():
    gate_, block, report = TESTS
    cut = replace(report, output="head\n... 9 lines (5000 bytes) left out ...\ntail")
    there = replace(report, output="head\n... more was printed here, and left out ...\ntail")
    for one in (cut, there):
        text = compose(held((gate_, block, one)))
        assert "Its beginning and end: /home/u/.local" in text
        assert "Full output" not in text


LONG = "\n".join(f"line {n}" for n in range(10_000))  # of which 228 lines are shown


@pytest.mark.rule("N2", "E4")
@pytest.mark.parametrize(
    ("before", "more", "missing"),
    [
        ("", 0, ""),
        ("first\n... 90000 lines (1234567 bytes) left out ...\ne 1\n", 90_001, ""),
        ("x\n... 5 lines (99 bytes) left out ...\ny\n" * 2, 12, ""),
        ("x\n... more was printed here, and left out ...\ny\n", 3, "more than "),
    ],
)
def test_the_lines_left_out_are_those_of_the_whole_output(before, more, missing):
    def count(output):
        text = compose(held(failed("tests", output)))
        shown = sum(line.startswith("  line ") for line in text.splitlines())
        return text.partition("  ... ")[2].partition(" lines left out ...")[0], shown

    said, shown = count(before + LONG)
    assert said == f"{missing}{10_000 - shown + more}"


@pytest.mark.rule("N2", "E4")
def test_of_one_line_that_was_not_kept_as_a_whole_no_line_is_left_out():
    text = compose(
        held(failed("tests", f"{'x' * 9_999}\n... 0 lines (9 bytes) left out ...\n{'y' * 9_999}"))
    )
    assert " lines left out" not in text
    assert "  ... the beginning of this line left out ...\n  yyy" in text


@pytest.mark.rule("N2", "B6")
def test_the_limit_that_ends_it_is_named_before_it_does():
    once_more = "If it fails in the same way once more, with no file changed, you are not sent back"
    assert once_more in compose(held(TESTS, count=2, is_stuck_next=True))
    assert once_more not in compose(held(TESTS, count=2))
    last = compose(held(TESTS, count=3, is_stuck_next=True))
    assert (once_more in last, "This is the last send-back" in last) == (False, True)
    text = compose(held(TESTS, limit=1, limit_source="session_ceiling 4"))
    assert "(send-back 1 of 1, session_ceiling 4)." in text


def said_by(speaks, prompt):
    """Return what is held against an agent by a hook written for a host."""
    block = Block(prompt)
    hook = Gate(name=prompt, check=Command(script="x", speaks=speaks))
    return hook, block, Report(gate=hook.name, answer=block)


@pytest.mark.rule("K17")
def test_what_mux_tells_a_supervised_main_agent_is_marked_as_a_hooks():
    one, two = said_by("mux", "Run the tests."), said_by("mux", "Then commit.")
    said = compose(held(one, two, host="notyet"))
    assert said == "[Stop hook requested continuation]\nRun the tests.\n\nThen commit."


@pytest.mark.rule("K17", "K12")
def test_what_mux_tells_a_subagent_is_the_bare_reason():
    said = compose(held(said_by("mux", "Run the tests."), host="notyet", is_subagent=True))
    assert said == "Run the tests."


@pytest.mark.rule("K17")
@pytest.mark.parametrize("host", ["mux", "claude", "embedded", ""])
def test_a_host_that_calls_us_gets_muxs_reason_without_the_mark(host):
    assert compose(held(said_by("mux", "Run the tests."), host=host)) == "Run the tests."


@pytest.mark.rule("K17", "A4")
def test_among_others_the_mark_stands_before_the_first_of_muxs_reasons():
    claudes, muxs, codexs = (said_by(n, f"{n}.") for n in ("claude", "mux", "codex"))
    said = compose(held(claudes, muxs, codexs, host="notyet"))
    assert said == f"claude.\n\n{CONTINUATION}\nmux.\n\ncodex."
    said = compose(held(failed("tests"), muxs, host="notyet"))
    assert said.startswith("notyet: ")
    assert f"\n\n{CONTINUATION}\nmux.\n\n" in said
    assert CONTINUATION not in compose(held(claudes, failed("tests"), host="notyet"))


@pytest.mark.rule("N2", "M1")
def test_where_a_gate_ran_is_said_if_it_was_elsewhere():
    gate, block, report = LINT
    report = replace(report, workspace="ssh://dev@box/srv/app")
    words = compose(held((gate, block, report)))
    assert "FAILED lint (exit 1, 12.3 s, on dev@box): ruff check ." in words
    assert "FAILED lint (exit 1, 12.3 s): ruff check ." in compose(held(LINT))


@pytest.mark.rule("N2")
def test_an_agent_whose_answer_is_not_kept_reads_its_task_first():
    not_kept = "Your previous answer was not kept, so you no longer see it."
    text = compose(held(TESTS, forgets_answers=True, task=" Sell\nshoes. "))
    assert text.startswith(f"Your task: Sell\nshoes.\n\n{not_kept} ")
    assert text.endswith(compose(held(TESTS)))
    assert compose(held(TESTS, forgets_answers=True)).startswith(not_kept)
    said = compose(held(said_by("claude", "Test it."), forgets_answers=True, task="é" * 10_000))
    assert said.startswith("Your task: éé")
    assert said.endswith("Test it.")
    assert len(said.encode()) < 1_500
    assert compose(held(TESTS, task="Sell shoes.")) == compose(held(TESTS))


@pytest.mark.rule("B8", "N2")
def test_an_agent_that_is_asked_once_runs_the_check_itself():
    text = compose(held(TESTS, limit=1, is_asked_once=True))
    assert "run the failing check yourself" in text
    assert "the only send-back of this turn" in text
    assert "run again by themselves" not in text
