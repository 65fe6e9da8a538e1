"""Every planted weakening is found, and harmless edits are not."""

import tomllib
from pathlib import Path

import pytest

from notyet.gates.guard import RULES, weakenings

VECTORS = Path(__file__).parents[2] / "vectors" / "gates" / "guard"
PLANTED = ("python", "javascript", "others", "settings")


def cases(*names):
    return list(_cases(*names))


def _cases(*names):
    for name in names:
        for case in tomllib.loads((VECTORS / f"{name}.toml").read_text())["cases"]:
            yield pytest.param(case, id=f"{name}: {case['name']}")


def found(case):
    return weakenings(
        case["old"],
        case["new"],
        renames=case.get("renames", {}),
        gate_scripts=case.get("gate_scripts", ()),
        unchanged=case.get("unchanged", {}),
    )


@pytest.mark.parametrize("case", cases(*PLANTED))
def test_a_planted_weakening_is_found(case):
    findings = found(case)
    assert case["rule"] in [one.rule for one in findings]
    planted = next(one for one in findings if one.rule == case["rule"])
    assert planted.blocks is case["blocks"]
    assert planted.path in {**case["old"], **case["new"]}
    assert planted.group == RULES[planted.rule].group
    lines = case["new"].get(planted.path, case["old"].get(planted.path)).count("\n") + 1
    assert 1 <= planted.line <= max(lines, case["old"].get(planted.path, "").count("\n") + 1)


@pytest.mark.parametrize("case", [one for one in cases(*PLANTED) if not one.values[0]["blocks"]])
def test_what_only_tells_does_not_block(case):
    assert not any(one.blocks for one in found(case))


@pytest.mark.parametrize("case", cases("harmless"))
def test_a_harmless_edit_is_not_found(case):
    findings = found(case)
    assert not [one for one in findings if one.blocks]
    assert {one.rule for one in findings} <= set(case.get("told", ()))


@pytest.mark.parametrize("case", cases("out_of_reach"))
def test_what_is_listed_as_out_of_reach_is_not_found(case):
    assert found(case) == []
    assert case["why"]


def test_the_corpus_is_large_enough_and_covers_every_rule():
    planted = [one.values[0] for one in cases(*PLANTED)]
    assert len(planted) >= 80
    assert len(cases("harmless")) >= 40
    assert {one["rule"] for one in planted} == set(RULES) - {
        *("test-replaced", "failure-ignored-new", "not-read"),
    }
