"""A trial of `notyet init` is a pass only where something was run."""

import subprocess
import sys
import tomllib
from dataclasses import replace

import pytest

from installs import command_line
from notyet.cli.init.text import file_text
from notyet.cli.init.trial import Trial, judged
from notyet.cli.main import main
from notyet.core.verdict import Allow, Block, Problem, Report
from notyet.project.folder import Proposal
from with_runs import Terminal

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


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("E   ModuleNotFoundError: No module named 'trustme'\n", "No module named 'trustme'"),
        ("Error: Cannot find module 'jest'\n  code: 'MODULE_NOT_FOUND'\n", "find module 'jest'"),
        ("sh: 1: eslint: not found\n", "eslint: not found"),
        ("conftest.py:3: trustme is not installed\n1 error\n", "trustme is not installed"),
        ("E  fixture 'httpbin' not found\n1 error\n", "fixture 'httpbin' not found"),
        ("bundler: command not found: rubocop\n", "command not found: rubocop"),
        (
            "error: x\n  cause: Failed to download `https://x`\n  cause: dns\n",
            "download `https://x`",
        ),
        ("An unexpected error\n  fatal: unable to access 'https://x': y\n", "unable to access"),
        ("[6] Could not resolve hostname (Could not resolve host: x)\n", "resolve hostname"),
        ("Unchecked dependencies for environment test:\n* plug\n", "Unchecked dependencies"),
    ],
)
def test_a_missing_dependency_is_known_by_the_output(output, why):
    proposal = replace(PROPOSAL, install="npm ci")
    report = Report(gate="tests", answer=Block(output), output=output, exit="exit 1")
    trial = judged(Trial(proposal=proposal), report)
    assert trial.result == "not installed"
    assert why in trial.why
    assert trial.why.endswith("; run: npm ci")
    text = file_text([trial])
    assert tomllib.loads(text)["gates"] == {"tests": {"run": "make test"}}
    assert "run: npm ci" in text


def test_a_program_that_a_shell_cannot_find_is_a_missing_dependency():
    answer = Problem("cannot_start", "the shell could not find it: eslint: not found")
    trial = judged(Trial(replace(PROPOSAL, install="npm ci")), Report(gate="tests", answer=answer))
    assert (trial.result, trial.why) == ("not installed", f"{answer.detail}; run: npm ci")


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("2 failing\nnpm notice New version\nnpm notice\n", "exit 1: 2 failing"),
        ("bad\nmake: *** [Makefile:2: test] Error 1\n", "exit 1: bad"),
        ("npm notice x\n", "exit 1"),
    ],
)
def test_the_reason_of_a_failure_is_no_notice_of_a_tool(output, why):
    report = Report(gate="tests", answer=Block(output), output=output, exit="exit 1")
    assert judged(Trial(proposal=PROPOSAL), report).why == why


def test_a_line_without_end_is_no_trap():
    output = "a.b/" * 500_000 + " is not installed\n"
    report = Report(gate="tests", answer=Block("x"), output=output, exit="exit 1")
    assert judged(Trial(proposal=PROPOSAL), report).result == "failed"


def git(folder, *argv):
    who = ["-c", "user.name=x", "-c", "user.email=x@x"]
    subprocess.run(["git", "-C", folder, *who, *argv], check=True, capture_output=True)


@pytest.mark.parametrize("kind", ["git", "dirty", "no git"])
@pytest.mark.parametrize(
    ("recipe", "changed"),
    [("@echo x >> a.py", True), ("@rm a.py", True), ("@touch a.py", False), ("@false", False)],
)
def test_a_command_that_changes_files_is_left_out_and_the_files_are_named(
    place, capsys, kind, recipe, changed
):
    (place / "a.py").write_text("x\n")
    (place / "Makefile").write_text(f"test:\n\t{recipe}\nlint:\n\t@true\n")
    if kind != "no git":
        (place / ".git").rmdir()
        git(place, "init")
        git(place, "add", ".")
        git(place, "commit", "-m", "x")
    if kind == "dirty":
        (place / "a.py").write_text("y\n")
    gates, text = tried(place)
    assert ("tests" in gates) is not changed
    assert "lint" in gates
    assert ("left out: it writes: it changed a.py" in text) is changed
    note = "note: make test changed a.py; review or restore them"
    assert (note in capsys.readouterr().err) is changed


def test_new_files_are_named(place, capsys):
    (place / "Makefile").write_text("test:\n\t@echo > report.xml\n")
    gates, _ = tried(place)
    assert set(gates) == {"tests"}
    assert "note: make test left new files: report.xml" in capsys.readouterr().err


def test_a_terminal_shows_what_is_tried_what_it_prints_and_how_many_are_left(tmp_path):
    folder = tmp_path / "p"
    (folder / ".git").mkdir(parents=True)
    slow = "while ! [ -e made ]; do sleep 0.1; done"
    makefile = f"lint:\n\t@echo fine\ntest:\n\t@echo begun; {slow}\n"
    (folder / "Makefile").write_text(f".PHONY: lint test\n{makefile}")
    with Terminal(folder, *command_line("init"), NO_COLOR="1") as terminal:
        terminal.until(r"\n>\Z")
        terminal.press(b"\n")
        terminal.until(
            r"\nlint +passed .*\n  \S tests +\d+\.\d s  begun\n  1 of 2 done  ━{15}─{15}\Z"
        )
        (folder / "made").touch()
        assert terminal.wait() == 0
        assert "1 of 2" not in terminal.screen
        assert "\ntests  passed" in terminal.screen
