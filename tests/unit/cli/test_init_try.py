"""A trial of `notyet init` is a pass only where something was run."""

import sys
import tomllib

import pytest

from notyet.cli.init import Trial, judged
from notyet.cli.main import main
from notyet.core.verdict import Allow, Report
from notyet.project.folder import Proposal

PROPOSAL = Proposal(name="tests", tool="make", run="make test", file="Makefile")


def tried(place):
    """Return the gates that came of trying, and the whole file."""
    assert main(["init", "--yes"]) == 0
    text = (place / "notyet.toml").read_text()
    return tomllib.loads(text).get("gates", {}), text


@pytest.mark.parametrize(
    "makefile",
    [
        "test:\n\texit 1\n",
        "all: test\ntest: Makefile\n\texit 1\n",
        "test:\n",
        "test:\n\t@$(MAKE) --no-print-directory -f other.mk x\n",
        "test:\n\t@$(MAKE) -f other.mk x -C .\n",
    ],
)
def test_a_target_that_make_takes_for_a_file_is_left_out(place, makefile, monkeypatch):
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("MAKEFLAGS", "s")  # as where a silent make runs us
    (place / "Makefile").write_text(makefile)
    if "exit 1" in makefile:
        (place / "test").mkdir()
    (place / "other.mk").write_text("x:\n")
    gates, text = tried(place)
    assert gates == {}
    assert (
        "left out: make ran nothing: it has no recipe, or is a file's name and not .PHONY" in text
    )


@pytest.mark.parametrize("runner", ["unittest", "pytest -p no:cacheprovider"])
def test_a_runner_that_found_no_tests_did_not_pass(place, runner):
    (place / "Makefile").write_text(f"test:\n\t@{sys.executable} -m {runner}\n")
    gates, text = tried(place)
    assert gates == {}
    assert "left out: it ran no tests" in text


@pytest.mark.parametrize(
    ("output", "result"),
    [
        ("Ran 0 tests in 0.000s\n\nOK\n", "left out"),
        ("Ran 0 tests in 0.000s\n\nNO TESTS RAN\n", "left out"),
        ("\nno tests ran in 0.01s\n", "left out"),
        ("Ran 0 tests in 0.000s\nOK\nRan 2 tests in 0.1s\nOK\n", "passed"),
        ("Ran 0 tests in 0.000s\nOK\n3 passed in 0.1s\n", "passed"),
        ("make: 'test' is up to date.\n", "left out"),
        ("gmake: Nothing to be done for 'test'.\n", "left out"),
        ("make: 'lib' is up to date.\nall is well\n", "passed"),
        ("make: Entering directory '/x'\nmake: Leaving directory '/x'\n", "passed"),
        ("", "passed"),
    ],
)
def test_only_words_that_are_certain_count(output, result):
    report = Report(gate="tests", answer=Allow(), output=output)
    assert judged(Trial(proposal=PROPOSAL), report).result == result


def test_a_folder_that_no_gate_can_name_is_said_and_the_others_are_tried_as_themselves(
    place, capsys
):
    for name in ("~", "é", "日本"):
        (place / name).mkdir()
        (place / name / "Makefile").write_text("test:\n\t@pwd > here\n")
    gates, _ = tried(place)
    assert sorted(gate["dir"] for gate in gates.values()) == ["é", "日本"]
    said = capsys.readouterr()
    assert "note: the folder ~ has a name that no gate can have as `dir`; left out" in said.err
    assert not (place / "~" / "here").exists()
    assert (place / "日本" / "here").read_text() == f"{place}/日本\n"
    assert main(["validate"]) == 0
