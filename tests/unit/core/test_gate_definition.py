"""A pass is remembered for one question: what counts as the same, and what does not (N1)."""

import subprocess
import sys

import pytest

from notyet import Allow, Command, Decision, Function, Gate, Match, Report
from notyet.core.gate import Source, defined, definition_of, digest_of
from notyet.core.record import replace

ASKED = Gate(
    name="tests",
    check=Command(
        script="pytest",
        dir="/p",
        env=(("CI", "1"),),
        options={"pass_codes": (0, 5), "hint": "look"},
    ),
    when="changed",
    paths=("src/**",),
    source=Source("/p/notyet.toml", 3),
)
pytestmark = pytest.mark.rule("N1")


def changed(**fields):
    return replace(ASKED, check=replace(ASKED.check, **fields))


@pytest.mark.parametrize(
    "other",
    [
        replace(ASKED, name="renamed"),
        replace(ASKED, timeout=1.0, if_broken="block", observe=True, always=True, priority=3),
        replace(ASKED, match=Match(events=("subagent",)), when="always"),
        replace(ASKED, source=Source("/p/notyet.toml", 40)),
        changed(options={"hint": "look elsewhere", "pass_codes": [0, 5]}),
    ],
)
def test_who_is_asked_when_and_what_follows_is_no_part_of_the_question(other):
    assert definition_of(other) == definition_of(ASKED)


@pytest.mark.parametrize(
    "other",
    [
        changed(script="pytest -q"),
        changed(script="", argv=("pytest",)),
        changed(dir="/p/web"),
        changed(env=(("CI", "0"),)),
        changed(shell="/bin/bash"),  # noqa: S604  # a field
        changed(workspace="ssh://box/p"),
        changed(speaks="claude"),
        changed(options={"pass_codes": (0,)}),
        changed(options={"pass_codes": (0, 5), "python": "gates:tests"}),
        replace(ASKED, paths=("src/**", "tests/**")),
        replace(ASKED, paths=()),
        replace(ASKED, source=Source("/q/notyet.toml", 3)),
        replace(ASKED, source=None),
    ],
)
def test_another_question_has_another_definition(other):
    assert definition_of(other)
    assert definition_of(other) != definition_of(ASKED)


@pytest.mark.parametrize(
    "check",
    [
        Function(print),  # what it is made of, nobody knows
        Command(script="true", options={"secret": object()}),
    ],
)
def test_what_cannot_be_told_has_no_definition(check):
    assert definition_of(Gate(name="g", check=check)) == ""


def test_a_report_says_what_was_asked_and_whether_it_could_be_spared():
    gates = [replace(ASKED, when="changed"), Gate(name="f", check=Function(print), when="changed")]
    reports = tuple(Report(gate=gate.name) for gate in gates)
    decision = Decision(verdict=Allow(), outcome="passed", reports=reports)
    known, unknown = defined(decision, gates).reports
    assert (known.definition, known.when) == (definition_of(ASKED), "changed")
    assert (unknown.definition, unknown.when) == ("", "")


def test_text_that_is_no_unicode_has_a_definition():
    assert definition_of(changed(script="echo \udc80")) != definition_of(changed(script="echo ?"))


def test_an_interpreter_without_its_own_digests_takes_those_of_hashlib(monkeypatch):
    expected = digest_of("text")
    monkeypatch.setitem(sys.modules, "_blake2", None)
    assert digest_of("text") == expected


def test_a_definition_is_the_same_in_every_process():
    program = (
        "from notyet import Command, Gate; from notyet.core.gate import definition_of;"
        "print(definition_of(Gate(name='g', check=Command(script='true', env=(('A', '1'),),"
        " options={'pass_codes': (0, 1)}))))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1
    assert said.pop().strip()
