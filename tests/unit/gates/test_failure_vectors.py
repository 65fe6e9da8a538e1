"""The failures that real tools printed or wrote are found in their output, and no others."""

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from failing import javascript, native, python, reports
from failing.projects import RECORDED, Case, run, write
from notyet.gates.failures.compare import compare
from notyet.gates.failures.reports import ReportError, read_contents
from notyet.gates.failures.text import read_output

TEXTS = [*python.CASES, *javascript.CASES, *native.CASES]
CASES = [*TEXTS, *reports.CASES]
ROOT = "/project"


def _id(case):
    return f"{case.tool}-{case.name}"


def _recorded(case):
    head, _, text = case.recorded.read_text(encoding="utf-8").partition("\n")
    return json.loads(head), text


def _read(case, text, root=ROOT):
    if case in reports.CASES:
        return read_contents({"r": text.encode()}, (root,))
    return read_output(text, (root,))


def _found(case, text, root=ROOT):
    """Return what was read as JSON has it."""
    try:
        found = _read(case, text, root)
    except ReportError as error:
        return {"error": str(error)}
    if found is None:
        return None
    return {
        "tool": found.tool,
        "failures": dict(found.failures),
        "load_errors": sorted(found.load_errors),
        "ran": found.ran,
        "complete": found.complete,
        "stopped_early": found.stopped_early,
    }


def test_every_project_has_a_recording_and_every_recording_a_project():
    names = {path.name for path in RECORDED.iterdir()}
    assert names == {path.name for case in CASES for path in (case.recorded, case.expected)}


@pytest.mark.parametrize("case", CASES, ids=_id)
def test_the_recorded_failures_are_found(case):
    head, text = _recorded(case)
    assert head["exit"] == case.exit_code
    assert head["run"] == list(case.run)
    assert _found(case, text) == json.loads(case.expected.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=_id)
def test_a_failed_run_compared_with_itself_has_no_new_failures(case):
    head, text = _recorded(case)
    try:
        found = _read(case, text)
    except ReportError:
        return
    if found is not None and head["exit"]:
        same = compare(found, found, exit_now=head["exit"], exit_base=head["exit"])
        assert not same.new


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in [*python.PYTEST, *python.UNITTEST]
        if case.name in {"one", "two", "load", "hostile", "early"}
    ],
    ids=_id,
)
def test_the_tool_that_is_installed_here_prints_the_same_failures(case, tmp_path):
    write(case, tmp_path)
    code, text = run(case, tmp_path)
    assert code == case.exit_code
    expected = json.loads(case.expected.read_text(encoding="utf-8"))
    found = _found(case, text, str(tmp_path))
    assert Counter(found["failures"]).keys() == Counter(expected["failures"]).keys()
    assert found["ran"] == expected["ran"]


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in [*native.CASES, *javascript.NODE_SPEC, *javascript.NODE_TAP]
        if case.name == "two"
    ],
    ids=_id,
)
def test_other_tools_that_are_installed_here_print_failures_that_are_read(case, tmp_path):
    if shutil.which(case.run[0]) is None or run(_version(case), tmp_path)[0]:
        pytest.skip(f"{case.run[0]} is not installed")
    write(case, tmp_path)
    code, text = run(case, tmp_path)
    assert code == case.exit_code
    expected = json.loads(case.expected.read_text(encoding="utf-8"))
    assert _found(case, text, str(tmp_path))["failures"].keys() == expected["failures"].keys()


def test_go_with_v_prints_why_a_test_failed_before_its_result():
    (case,) = (case for case in native.CASES if _id(case) == "go-verbose")
    found = _read(case, _recorded(case)[1])
    bad, table = "example.com/sample TestBad", "example.com/sample TestTable/c"
    assert found.messages[bad] == "got 0, want 0"  # without its numbers
    assert found.details[bad].split("\n") == [
        "--- FAIL: TestBad (0.00s)",
        "    a_test.go:15: got 1, want 2",
    ]
    assert "wrong c" in found.details[table]
    text = _recorded(case)[1].replace("TestBad", "TestWorse").replace("a_test.go:15", "a_test.go:9")
    same = compare(_read(case, text), found, exit_now=1, exit_base=1)
    assert (same.new, same.moved) == (Counter(), 2)


def test_a_renamed_test_of_jest_is_known_by_its_report_from_another_column():
    at = "Error: no\n    at Object.<anonymous> (/project/a.test.js:2:{})\n    at run (/jest.js:1:2)"

    def run(title, column):
        case = {"title": title, "status": "failed", "failureMessages": [at.format(column)]}
        file = {"name": "/project/a.test.js", "status": "failed", "assertionResults": [case]}
        report = {"numTotalTests": 1, "numFailedTests": 1, "testResults": [file]}
        return read_contents({"r": json.dumps(report).encode()}, (ROOT,))

    same = compare(run("works", 33), run("is", 30), exit_now=1, exit_base=1)
    assert (same.new, same.moved) == (Counter(), 1)


def test_results_of_tape_that_are_called_alike_are_told_apart_by_their_test():
    def run(first, second):
        lines = ["TAP version 13", "# parse", f"{first} 1 should be equal"]
        return read_output("\n".join([*lines, "# write", f"{second} 2 should be equal", "1..2"]))

    then, now = run("not ok", "ok"), run("ok", "not ok")
    found = compare(now, then, exit_now=1, exit_base=1)
    assert found.new == {"write > should be equal": 1}


def test_mypy_that_leaves_out_errors_stopped_early():
    """As mypy 2 prints it with --soft-error-limit, where an import is not resolved."""
    said = read_output(
        'a.py:1: error: Cannot find implementation of "b"  [import-not-found]\n'
        "a.py:2: note: (Skipping most remaining errors due to unresolved imports or missing stubs; "
        "fix these first)\nFound 1 error in 1 file (checked 1 source file)\n"
    )
    assert said.stopped_early


def test_tests_with_the_same_name_in_a_report_are_told_apart_by_their_order():
    def run(*tests):
        cases = "".join(f"<testcase classname='c' name='same'>{test}</testcase>" for test in tests)
        report = f"<testsuite failures='1'>{cases}</testsuite>"
        return read_contents({"r": report.encode()}, (ROOT,))

    then, now = run("<failure/>", ""), run("", "<failure/>")
    found = compare(now, then, exit_now=1, exit_base=1)
    assert found.new == {"c::same (number 2)": 1}


@pytest.mark.parametrize("case", native.CARGO, ids=_id)
def test_cargo_is_read_alike_with_its_streams_apart(case):
    """A gate keeps stdout and stderr apart; the recordings have them together."""
    text = _recorded(case)[1]
    lines, of_stderr = text.split("\n"), []
    if case.name in {"load", "hostile", "dies", "captured"}:
        pytest.skip("which stream a line is from is not known")
    inside = False
    for line in lines:
        inside = line.startswith("running ") or (inside and not line.startswith("test result:"))
        is_out = inside or line.startswith("test result:")
        of_stderr.append(not is_out)
    out = [line for line, is_err in zip(lines, of_stderr, strict=True) if not is_err]
    err = [line for line, is_err in zip(lines, of_stderr, strict=True) if is_err]
    assert _found(case, "\n".join([*out, *err])) == _found(case, text)


@pytest.mark.parametrize("case", native.GO, ids=_id)
def test_go_is_read_alike_with_its_streams_apart(case):
    """The errors of the compiler go to stderr, with a line that names the package."""
    text = _recorded(case)[1]
    out, err, inside = [], [], False
    for line in text.split("\n"):
        inside = line.startswith("# ") or (inside and not line.startswith("FAIL"))
        (err if inside else out).append(line)
    assert _found(case, "\n".join([*out, *err])) == _found(case, text)


@pytest.mark.parametrize("case", javascript.VITEST, ids=_id)
def test_vitest_is_read_alike_with_its_streams_apart(case):
    """The reports on failures go to stderr, the summary to stdout."""
    text = _recorded(case)[1]
    before, mark, rest = text.partition("\n Test Files  ")
    at = next(
        (at for at in range(len(before)) if re.match(r"⎯+ Failed ", before[at:])), len(before)
    )
    apart = f"{before[:at]}{mark}{rest}\n{before[at:]}"
    assert _found(case, apart) == _found(case, text)


def test_packages_of_which_none_was_built_ran_no_test():
    said = read_output("# a\n./a.go:1:1: syntax error\nFAIL\ta [build failed]\nFAIL\n")
    assert (said.tool, said.ran) == ("go", 0)


def _version(case):
    return Case(
        case.tool, "version", (case.run[0], "version" if case.tool == "go" else "--version"), {}
    )


@pytest.mark.parametrize(
    "text",
    ["", "\0" * 1000, "FAILED " * 100_000, "\x1b[" * 100_000, "=" * 1_000_000, "not ok 1 -\n" * 9],
)
def test_hostile_text_gives_an_answer(text):
    found = read_output(text, (ROOT,))
    assert found is None or not found.complete or found.failures


def test_paths_of_this_machine_are_in_no_recording():
    home = str(Path.home())
    for path in RECORDED.iterdir():
        assert f"{home}/" not in path.read_text(encoding="utf-8")
