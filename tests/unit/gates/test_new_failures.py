"""`new_failures_only`: what the agent broke blocks, and what cannot be compared blocks too."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import git
from notyet.core.event import StopEvent
from notyet.gates.new_failures import UNSURE, check
from notyet.gates.question import Question
from notyet.git.snapshot_store import take_first

PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider --continue-on-collection-errors"
UNITTEST = f"{sys.executable} -m unittest"
GOOD, OLD_FAILURE = "def test_good():\n    assert True\n", "def test_old():\n    assert 1 == 2\n"

CASE = (
    "import unittest\n\nclass T(unittest.TestCase):\n    def test_old(self):\n        self.fail()\n"
)


class Project:
    """A git repository in which a session begins, and a command that fails."""

    def __init__(self, root, folder):
        self.root = root
        self.runs = folder / "runs.txt"
        self.session = 0

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def begin(self):
        """Start a session, later than all changes so far."""
        self.session += 1
        time.sleep(0.05)
        state = os.environ["XDG_STATE_HOME"] + "/notyet"
        take_first(state, root=str(self.root), patience=30.0, **self._agent())
        time.sleep(0.05)

    def _agent(self):
        return {"host": "claude", "session_id": f"s{self.session}", "agent_id": ""}

    def stop(self, command, *, folder="", limit=60.0, files=(), **options):
        """Run the command as a gate does, and ask about its failures."""
        place = str(self.root / folder)
        script = f"echo x >> {self.runs}; {command}"
        began = time.monotonic()
        done = subprocess.run(
            ["/bin/sh", "-c", script.replace("{files}", " ".join(files))],
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode, done.stdout
        now = {
            "output": "\n".join(part.rstrip() for part in (done.stdout, done.stderr) if part),
            "exit": f"exit {done.returncode}",
            "began": time.time() - (time.monotonic() - began),
            "seconds": time.monotonic() - began,
            "limit": limit,
        }
        return check(
            Question(
                event=StopEvent(cwd=place, **self._agent()),
                gate="tests",
                options={"new_failures_only": True, "pass_codes": [0], **options},
                folder=str(self.root),
                command={"script": script, "argv": [], "shell": "/bin/sh", "dir": place},
                now=now,
            )
        )

    def count(self):
        """Return how often the command has run since the last call."""
        number = len(self.runs.read_text().split())
        self.runs.unlink()
        return number


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "--quiet")
    made = Project(root, tmp_path)
    made.put(".gitignore", "deps/\nout/\nresult.xml\n")
    made.put("lib.py", "def double(x):\n    return 2 * x\n")
    made.put("test_lib.py", GOOD + OLD_FAILURE)
    made.put(
        "test_double.py",
        "from lib import double\n\ndef test_double():\n    assert double(2) == 4\n",
    )
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "one")
    return made


def passes(answer):
    return not answer.reason and not answer.problem


def is_unsure(answer):
    return UNSURE in answer.reason and UNSURE in answer.tell


def test_a_failure_from_before_the_session_does_not_block_and_the_user_is_told(project):
    project.begin()
    project.put("lib.py", "def double(x):\n    return x + x\n")
    answer = project.stop(PYTEST)
    assert passes(answer), answer.reason
    assert answer.tell == "tests: 1 failure, there at the start"
    assert answer.note == "1 failure, there at the start"


def test_a_new_failure_blocks_and_the_agent_reads_only_that_one(project):
    project.begin()
    project.put("lib.py", "def double(x):\n    return 3 * x\n")
    answer = project.stop(PYTEST)
    assert "test_double.py::test_double" in answer.reason
    assert "assert double(2) == 4" in answer.reason
    assert "test_old" not in answer.reason
    assert "1 new failure since your session began" in answer.reason
    assert answer.tell == "tests: 1 new failure, 1 that was there at the start"


def test_the_baseline_runs_after_the_edit_on_the_files_from_before_it(project):
    """The edit breaks a module that is imported by an absolute path."""
    project.put("test_double.py", _by_absolute_path(project.root))
    project.begin()
    project.put("lib.py", "def double(x):\n    return 3 * x\n")
    answer = project.stop(PYTEST)
    assert not passes(answer)


def _by_absolute_path(root):
    return (
        f"import sys\nsys.path.insert(0, {str(root)!r})\nfrom lib import double\n\n"
        "def test_double():\n    assert double(2) == 4\n"
    )


def test_a_failure_that_is_fixed_while_another_one_appears_blocks(project):
    project.begin()
    project.put("test_lib.py", GOOD + OLD_FAILURE.replace("1 == 2", "1 == 1"))
    project.put("lib.py", "def double(x):\n    return 3 * x\n")
    answer = project.stop(PYTEST)
    assert "1 new failure since your session began" in answer.reason
    assert answer.tell == "tests: 1 new failure"


def test_one_of_two_old_failures_is_fixed_and_the_other_one_does_not_block(project):
    project.put("test_lib.py", GOOD + OLD_FAILURE + OLD_FAILURE.replace("old", "older"))
    project.begin()
    project.put("test_lib.py", GOOD + OLD_FAILURE.replace("1 == 2", "1 == 1")
                + OLD_FAILURE.replace("old", "older"))  # fmt: skip
    answer = project.stop(PYTEST)
    assert answer.tell == "tests: 1 failure, there at the start"


def test_an_old_failure_in_a_renamed_file_does_not_block(project):
    project.begin()
    (project.root / "test_lib.py").rename(project.root / "test_library.py")
    answer = project.stop(PYTEST)
    assert passes(answer), answer.reason


def test_an_old_failure_on_another_line_does_not_block(project):
    project.begin()
    project.put("test_lib.py", "# one\n# two\n\n\n" + GOOD + OLD_FAILURE)
    answer = project.stop(PYTEST)
    assert passes(answer), answer.reason


def test_an_old_failure_of_unittest_in_a_renamed_file_does_not_block(project):
    project.put("tests/__init__.py", "")
    project.put("tests/test_a.py", CASE)
    project.begin()
    (project.root / "tests/test_a.py").rename(project.root / "tests/test_b.py")
    assert passes(project.stop(f"{UNITTEST} discover"))


def test_a_new_failure_of_unittest_blocks(project):
    project.put("test_case.py", CASE)
    project.begin()
    project.put("test_case.py", CASE + "    def test_new(self):\n        self.assertEqual(1, 3)\n")
    answer = project.stop(f"{UNITTEST} test_case")
    assert "1 new failure since your session began" in answer.reason
    assert "test_new" in answer.reason
    assert "test_old" not in answer.reason


def test_a_failure_that_vanishes_when_the_command_runs_again_is_told_and_does_not_block(project):
    project.begin()
    count = project.root.parent / "count"
    project.put(
        "test_double.py",
        f"import pathlib\n\ndef test_comes_and_goes():\n    count = pathlib.Path({str(count)!r})\n"
        "    first = not count.exists()\n    count.touch()\n    assert not first\n",
    )
    answer = project.stop(PYTEST)
    assert passes(answer), answer.reason
    assert "not every time: test_double.py::test_comes_and_goes" in answer.tell


def test_a_crash_at_import_blocks(project):
    project.begin()
    project.put("lib.py", "def double(x:\n")
    answer = project.stop(PYTEST)
    assert not passes(answer)
    assert "test_double.py" in answer.reason


def test_a_crash_at_import_that_was_there_before_does_not_hide_a_new_failure(project):
    project.put("test_broken.py", "import no_such_module_anywhere\n")
    project.begin()
    project.put("lib.py", "def double(x):\n    return 3 * x\n")
    assert "test_double.py::test_double" in project.stop(PYTEST).reason


def test_another_error_at_import_than_before_blocks(project):
    project.put("test_broken.py", "import no_such_module_anywhere\n")
    project.begin()
    project.put("test_broken.py", "import no_such_module_anywhere_else\n")
    assert not passes(project.stop(PYTEST))


def test_fewer_tests_than_before_block(project):
    project.begin()
    (project.root / "test_double.py").unlink()
    answer = project.stop(PYTEST)
    assert is_unsure(answer)
    assert "fewer tests ran: 3 at the start, 2 now" in answer.reason


@pytest.mark.parametrize("break_it", ["delete every test", "fail a limit"])
def test_a_check_that_passed_and_now_fails_without_naming_a_failure_blocks(project, break_it):
    project.put("test_lib.py", GOOD)
    project.begin()
    if break_it == "delete every test":
        (project.root / "test_lib.py").unlink()
        (project.root / "test_double.py").unlink()
    else:
        limit = "def pytest_sessionfinish(session):\n    session.exitstatus = 1\n"
        project.put("conftest.py", limit)
    answer = project.stop(PYTEST)
    assert is_unsure(answer)
    assert "without naming a failure" in answer.reason


@pytest.mark.parametrize("option", ["-x", "--maxfail=1"])
def test_a_run_that_stops_at_the_first_failure_blocks(project, option):
    project.begin()
    project.put("test_zero.py", "def test_zero():\n    assert 0\n")
    answer = project.stop(f"{PYTEST} {option}")
    assert is_unsure(answer)
    assert "stopped early" in answer.reason


def test_a_baseline_that_takes_too_long_blocks(project):
    project.put("test_double.py", "import time\n\ndef test_double():\n    time.sleep(60)\n")
    project.begin()
    project.put("test_double.py", "def test_double():\n    pass\n")
    answer = project.stop(PYTEST, limit=2.0)
    assert is_unsure(answer)
    assert "took over 2 s (baseline_timeout)" in answer.reason
    assert os.listdir(project.root.parent / "state/notyet/baselines") == []


def test_without_a_snapshot_every_failure_blocks_with_its_output(project):
    answer = project.stop(PYTEST)
    assert is_unsure(answer)
    assert "no snapshot was taken when the session began" in answer.reason
    assert "test_lib.py::test_old" in answer.reason


def test_outside_of_git_every_failure_blocks(project, tmp_path, monkeypatch):
    plain = tmp_path / "plain"
    plain.mkdir()
    made = Project(plain, tmp_path)
    made.put("test_lib.py", OLD_FAILURE)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    answer = made.stop(PYTEST)
    assert is_unsure(answer)
    assert "not in a git repository" in answer.reason


def test_an_ignored_file_that_changed_blocks(project):
    project.put("deps/value.txt", "1")
    project.begin()
    project.put("deps/value.txt", "2")
    project.put("lib.py", "def double(x):\n    return x + x\n")
    answer = project.stop(PYTEST)
    assert is_unsure(answer)
    assert "deps changed since the session began" in answer.reason


def test_an_ignored_file_that_is_new_excuses_nothing(project):
    lib = "import os\n\ndef double(x):\n    return 3 if os.path.exists('deps') else 4\n"
    project.put("lib.py", lib)
    project.begin()
    project.put("deps/a.json", "{}")
    answer = project.stop(PYTEST)
    assert "test_double" in answer.reason
    assert answer.tell == "tests: 1 new failure, 1 that was there at the start"


def test_a_later_run_on_the_files_of_the_start_does_not_replace_the_baseline(project):
    lib = "def double(x):\n    return int(open('deps/value.txt').read()) * x\n"
    project.put("lib.py", lib)
    project.put("deps/value.txt", "2")
    project.begin()
    project.put("lib.py", lib + "# a line\n")
    assert passes(project.stop(PYTEST))
    project.put("lib.py", lib)
    project.put("deps/value.txt", "3")
    for _ in range(2):
        answer = project.stop(PYTEST)
        assert "1 new failure" in answer.tell, answer.reason


def test_what_failed_in_an_earlier_session_and_then_passed_is_not_old(project):
    """The earlier session had no service, which here is a file outside of the project."""
    service = project.root.parent / "service"
    lib = f"import os\n\ndef double(x):\n    return 2 * x if os.path.exists('{service}') else 0\n"
    two = "def test_two():\n    assert double(1) == 2\n"
    project.put("test_double.py", (project.root / "test_double.py").read_text() + two)
    project.put("lib.py", lib)
    time.sleep(2.1)  # an edit just before a run may not be in it
    project.begin()
    assert passes(project.stop(PYTEST))
    service.touch()
    project.begin()
    project.put("lib.py", lib.replace("2 * x", "x + 2"))  # breaks one of the two
    answer = project.stop(PYTEST)
    assert answer.tell == "tests: 1 new failure, 1 that was there at the start"


RUFF = f"{Path(sys.executable).parent}/ruff check --no-cache --isolated --select F {{files}}"


def test_with_files_old_failures_are_looked_for_in_the_same_files(project):
    for name in ("a.py", "b.py"):
        project.put(name, f"import {name[0]}\n")
    project.begin()
    project.put("a.py", "import a\nx = 1\n")
    assert passes(project.stop(RUFF, files=["a.py"]))
    project.put("b.py", "import b\nx = 1\n")
    (project.root / "a.py").rename(project.root / "c.py")
    assert passes(project.stop(RUFF, files=["c.py", "b.py"]))
    project.put("new.py", "import new\n")
    answer = project.stop(RUFF, files=["c.py", "b.py", "new.py"])
    assert answer.tell == "tests: 1 new failure, 2 that were there at the start"
    assert "new.py: F401" in answer.reason


def test_with_files_that_are_all_new_every_failure_is(project):
    project.begin()
    project.put("new.py", "import new\n")
    answer = project.stop(RUFF, files=["new.py"])
    assert answer.tell == "tests: 1 new failure"


def test_an_ignored_file_is_there_for_the_baseline(project):
    project.put("deps/value.txt", "1")
    project.put(
        "test_double.py", "def test_double():\n    assert open('deps/value.txt').read() == '1'\n"
    )
    project.begin()
    project.put("test_double.py", "def test_double():\n    assert 0\n")
    assert "test_double.py::test_double" in project.stop(PYTEST).reason


def test_an_output_of_no_known_tool_blocks(project):
    project.begin()
    project.put("lib.py", "")
    answer = project.stop("echo something is wrong; exit 3")
    assert is_unsure(answer)
    assert "could not be identified" in answer.reason


def test_an_output_that_was_cut_blocks_if_its_tool_does_not_count_failures(project):
    project.begin()
    project.put("lib.py", "")
    line = "lib.ts(1,1): error TS2322: Type 'string' is not assignable to type 'number'."
    answer = project.stop(f"echo \"{line}\"; echo '... 9 lines (900 bytes) left out ...'; exit 2")
    assert is_unsure(answer)
    assert "too long to be kept whole" in answer.reason


def test_a_failure_in_the_output_that_the_report_leaves_out_blocks(project):
    project.begin()
    project.put("test_new.py", "def test_new():\n    assert 0\n")
    part = f"{PYTEST} --junitxml=result.xml test_lib.py >/dev/null; {PYTEST}"
    answer = project.stop(part, report="result.xml")
    assert is_unsure(answer)
    assert "not in the report: test_new.py::test_new" in answer.reason


def test_an_error_in_the_output_that_no_report_can_have_blocks(project):
    project.put("limit.py", "print()\n")
    project.begin()
    project.put("limit.py", "print('threshold of 80% not met')\n")
    check = f"{sys.executable} limit.py; {PYTEST} --junitxml=result.xml"
    answer = project.stop(check, report="result.xml")
    assert is_unsure(answer)
    assert "not in the report: threshold of 80% not met" in answer.reason
    answer = project.stop(f"{sys.executable} limit.py; {PYTEST}")
    assert is_unsure(answer)
    assert "an error beside the failures: threshold of 80% not met" in answer.reason


def test_the_baseline_of_a_session_runs_once(project):
    project.begin()
    project.put("lib.py", "def double(x):\n    return x + x\n")
    assert passes(project.stop(PYTEST))
    assert project.count() == 2
    project.put("lib.py", "def double(x):\n    return x * 2\n")
    assert passes(project.stop(PYTEST))
    assert project.count() == 1


def test_the_end_of_a_session_is_the_baseline_of_the_next_one(project):
    project.begin()
    project.put("lib.py", "def double(x):\n    return x + x\n")
    time.sleep(2.1)  # an edit just before a run may not be in it
    assert passes(project.stop(PYTEST))
    project.count()
    project.begin()
    project.put("lib.py", "def double(x):\n    return 3 * x\n")
    answer = project.stop(PYTEST)
    assert answer.tell == "tests: 1 new failure, 1 that was there at the start"
    assert project.count() == 2, "the stop and the second try"


def test_a_run_before_an_ignored_file_changed_is_no_baseline_of_the_next_session(project):
    project.put("deps/value.txt", "1")
    project.begin()
    project.put("lib.py", "def double(x):\n    return x + x\n")
    time.sleep(2.1)
    assert passes(project.stop(PYTEST))
    project.put("deps/value.txt", "2")
    project.begin()
    project.put("lib.py", "def double(x):\n    return x * 2\n")
    project.count()
    assert passes(project.stop(PYTEST))
    assert project.count() == 2, "the stop and the baseline"


def test_a_baseline_counts_after_an_ignored_file_changed_in_the_same_session(project):
    project.put("deps/value.txt", "1")
    project.begin()
    project.put("lib.py", "def double(x):\n    return x + x\n")
    assert passes(project.stop(PYTEST))
    project.put("deps/value.txt", "2")
    assert passes(project.stop(PYTEST))


def test_an_agent_that_changed_no_file_needs_no_baseline(project):
    project.begin()
    assert passes(project.stop(PYTEST))
    assert project.count() == 1


def test_failures_are_read_from_a_report(project):
    project.begin()
    project.put("lib.py", "def double(x):\n    return x + x\n")
    command = f"{PYTEST} --junitxml=result.xml >/dev/null"
    answer = project.stop(command, report="result.xml")
    assert passes(answer), answer.reason
    project.put("lib.py", "def double(x):\n    return 3 * x\n")
    answer = project.stop(command, report="result.xml")
    assert "test_double" in answer.reason
    assert "test_old" not in answer.reason


def test_a_report_in_an_ignored_folder_of_its_own_is_no_changed_file(project):
    project.put("out/result.xml", "<old/>")
    project.begin()
    project.put("lib.py", "def double(x):\n    return x + x\n")
    command = f"{PYTEST} --junitxml=out/result.xml >/dev/null"
    assert passes(project.stop(command, report="out/*.xml"))


def test_a_report_of_an_earlier_run_does_not_count(project):
    project.begin()
    report = project.root / "result.xml"
    report.write_text("<testsuite/>")
    os.utime(report, (1, 1))
    answer = project.stop(f"{PYTEST} >/dev/null", report="result.xml")
    assert is_unsure(answer)
    assert "wrote no report result.xml" in answer.reason


def test_a_folder_in_the_place_of_a_report_blocks(project):
    project.begin()
    answer = project.stop("mkdir -p result.xml; exit 1", report="result.xml")
    assert is_unsure(answer)
    assert "result.xml is not a file" in answer.reason


def test_a_report_that_is_cut_off_blocks(project):
    project.begin()
    answer = project.stop("echo '<testsuite' > result.xml; exit 1", report="result.xml")
    assert is_unsure(answer)


def test_a_gate_in_a_folder_follows_renames_there(project):
    project.put("part/test_part.py", OLD_FAILURE + GOOD)
    project.put("part/pytest.ini", "[pytest]\n")
    project.begin()
    folder = project.root / "part"
    (folder / "test_part.py").rename(folder / "test_piece.py")
    answer = project.stop(PYTEST, folder="part")
    assert passes(answer), answer.reason


def test_a_command_that_is_killed_blocks(project):
    project.begin()
    now = {"output": "", "exit": "signal 9", "began": 0.0, "seconds": 1.0, "limit": 60.0}
    question = Question(
        event=StopEvent(cwd=str(project.root)), gate="tests", folder=str(project.root), now=now
    )
    assert is_unsure(check(question))


def test_nothing_is_left_behind(project):
    project.begin()
    project.put("lib.py", "def double(x):\n    return 3 * x\n")
    before = sorted(project.root.rglob("*"))
    project.stop(PYTEST)
    assert sorted(project.root.rglob("*")) == before
    state = Path(os.environ["XDG_STATE_HOME"]) / "notyet"
    assert os.listdir(state / "baselines") == []
    assert not [name for name in os.listdir(state / "snapshots") if name.startswith(".")]


@pytest.mark.parametrize(
    "error",
    [
        "TimeoutError('no answer')",
        "OSError('timed out')",
        "OSError('[Errno 98] Address already in use')",
        "OSError('connect ECONNREFUSED 127.0.0.1:5432')",
        "AssertionError('Timeout >1.0s')",
    ],
)
@pytest.mark.parametrize("report", ["", "result.xml"], ids=["output", "report"])
def test_a_failure_that_only_the_baseline_met_for_lack_of_something_is_no_old_one(
    project, error, report
):
    project.put(
        "test_double.py",
        "import os\nfrom lib import double\n\ndef test_double():\n"
        f"    if 'NOTYET_BASELINE' in os.environ:\n        raise {error}\n"
        "    assert double(2) == 4\n",
    )
    project.begin()
    project.put("lib.py", "def double(x):\n    return 3 * x\n")
    quiet = f" --junitxml={report} -o junit_logging=no" if report else ""
    answer = project.stop(f"{PYTEST}{quiet}", **{"report": report} if report else {})
    assert is_unsure(answer), answer
    assert "session's start met" in answer.reason


def test_errors_whose_messages_pytest_cut_are_not_taken_for_the_same(project):
    name = f"{'a_long_name/' * 6}test_broken.py"
    project.put(name, "import nothing_of_that_name\n")
    project.begin()
    project.put(name, "1 / 0\n")
    assert is_unsure(project.stop(f"{PYTEST} --tb=no"))


def test_a_failure_beside_a_file_that_does_not_load_is_compared_without_its_lines(project):
    project.put("test_broken.py", "1 / 0\n")
    project.put(
        "test_lib.py", "from lib import double\ndef test_old():\n    assert double(1) == 3\n"
    )
    project.begin()
    project.put("lib.py", "def double(x):\n    return 1 + x if x == 1 else 'x'\n")
    answer = project.stop(f"{PYTEST} --tb=line")
    assert answer.tell == "tests: 1 new failure, 2 that were there at the start"
