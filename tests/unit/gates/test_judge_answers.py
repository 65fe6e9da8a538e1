"""What programs print as judges, read from vectors."""

import tomllib
from pathlib import Path

import pytest

from notyet.gates.judge_answer import UnclearAnswer, judgement_in, tokens_in

FILE = Path(__file__).parents[2] / "vectors" / "gates" / "judge" / "answers.toml"
CASES = {case["name"]: case for case in tomllib.loads(FILE.read_text())["cases"]}
CALL = "701685401860cb16dbfc97be"


@pytest.mark.parametrize("name", CASES)
def test_what_a_judge_prints_is_read_as_its_vector_says(name):
    case = CASES[name]
    printed = case["printed"].replace("ID", CALL)
    assert tokens_in(printed) == case.get("tokens", 0)
    if "ok" not in case:
        with pytest.raises(UnclearAnswer, match=case["problem"]):
            judgement_in(printed, CALL)
        return
    judgement = judgement_in(printed, CALL)
    assert (judgement.ok, judgement.reason) == (case["ok"], case["reason"])
