"""`ran`: a pass only if the transcript proves a successful run after the last edit."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from notyet.core.event import StopEvent
from notyet.gates.evidence import check
from notyet.gates.question import Question

VECTORS = Path(__file__).parents[2] / "vectors" / "gates" / "ran"
SESSION = "ses_e1225d4ccffeGDEwuf0UpCTYFs"
HOSTS = ["claude-code", "codex", "copilot", "droid", "gemini", "qwen"]
SOON = 3600.0  # seconds: a result then is later than all that a test does to files


class Project:
    """A repository with a transcript beside it, written in the shape of Claude Code."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "shop"
        self.transcript = folder / "transcript.jsonl"
        self.lines: list[str] = []
        (self.folder / "src").mkdir(parents=True)
        self.write("src/a.py")
        self.write("README.md")
        self.write(".gitignore", "*.log\n")
        self.git("init", "-q")
        self.commit()

    def write(self, name, text="x\n"):
        (self.folder / name).write_text(text)

    def git(self, *args):
        own = ("-c", "user.name=t", "-c", "user.email=t@localhost")
        subprocess.run(["git", *own, *args], cwd=self.folder, check=True, capture_output=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-qm", "x")

    def call(self, name, *, content="3 passed in 0.1s", error=False, after=SOON, took=0.0, **given):
        """Add a call with its result, `after` seconds from now; None: without a time."""
        key = f"t{len(self.lines)}"
        ended = time.time() + (after or 0)
        use = {"type": "tool_use", "id": key, "name": name, "input": given}
        result = {"type": "tool_result", "tool_use_id": key, "content": content, "is_error": error}
        common = {"uuid": key, "cwd": str(self.folder)}
        for kind, block, moment in (("assistant", use, ended - took), ("user", result, ended)):
            message = {"role": kind, "content": [block]}
            stamp = {"timestamp": datetime.fromtimestamp(moment, UTC).isoformat()}
            common |= {} if after is None else stamp
            self.lines.append(json.dumps({"type": kind, "message": message, **common}))

    def run(self, command, **more):
        self.call("Bash", command=command, **more)

    def edit(self, name, **more):
        self.call("Edit", file_path=str(self.folder / name), content="updated", **more)

    def check(self, *ran, event=(), **options):
        self.transcript.write_text("\n".join(self.lines))
        about = {"session_id": "s", "cwd": str(self.folder), **dict(event)}
        about.setdefault("transcript_path", str(self.transcript))
        options = {"ran": list(ran) or ["pytest*", "npm test*"], **options}
        stop = StopEvent(**about)
        return check(Question(event=stop, gate="g", options=options, folder=str(self.folder)))


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def passed(answer):
    return not answer.reason and not answer.problem


def test_a_run_after_the_last_edit_passes_and_the_log_names_it(project):
    project.edit("src/a.py")
    project.run("cd src && uv run pytest -q")
    answer = project.check()
    assert passed(answer)
    assert answer.note == "`cd src && uv run pytest -q` succeeded after the last edit"


def test_any_one_of_the_patterns_suffices(project):
    project.run("npm test -- --ci")
    assert passed(project.check())


@pytest.mark.parametrize("command", ["scripts/test", "./scripts/test", "sh -c scripts/test"])
def test_a_script_of_the_project_counts_whatever_its_name(project, command):
    project.run(command)
    assert passed(project.check("scripts/test"))


@pytest.mark.parametrize("command", ["echo run pytest", "/bin/echo run pytest", "grep pytest x"])
def test_a_pattern_with_a_leading_star_does_not_match_what_only_shows_words(project, command):
    project.run(command)
    assert "no such command" in project.check("*pytest*").reason


def test_a_run_before_an_edit_sends_back_with_both_names(project):
    project.run("pytest -q")
    project.edit("src/a.py")
    assert project.check().reason == (
        "Wanted: a successful run of `pytest*` or `npm test*` after the last edit. "
        "Seen: `pytest -q` ran before src/a.py was edited. Run it again, alone, and then stop."
    )


def test_without_any_such_command_the_agent_is_told_to_run_it(project):
    project.run("ls")
    reason = project.check("pytest*").reason
    assert "Seen: the transcript shows no such command. Run it, alone, and then stop." in reason


@pytest.mark.parametrize(
    "command",
    [
        "pytest || true",
        "pytest; exit 0",
        "pytest; true",
        "pytest | tail",
        "pytest 2>&1 | tail -5",
        "pytest &",
        "pytest || pytest --lf",
        "pytest -k nothing > /dev/null",
        "pytest >> log 2>&1",
        "pytest &> log",
        "(cd src && pytest) > log",
        "bash -c pytest > log",
        "npm test --script-shell=/bin/true",
        "pytest --co",
        "pytest --collect-only -q",
        "pytest --collect",
        "pytest -h",
        "pytest --help",
        "pytest --version",
        "pytest -V",
        "pytest -qV",
        "pytest --fixtures",
        "pytest --setup-plan",
        "pytest $ARGS",
        'pytest "$@"',
        "pytest $(cat options)",
        "PYTEST_ADDOPTS=--co pytest",
        "export PYTEST_ADDOPTS=--co && pytest",
        "echo pytest",
        "echo 'pytest -q'; echo '3 passed'",
        "cat <<EOF\npytest\nEOF",
        "npm test -- --listTests",
        "npm test --if-present",
        "npm test --dry-run",
        "npm test --ignore-scripts",
        "if pytest; then true; fi",
        "cd /tmp && pytest",
        'cd "$X" && pytest',
        "cd .. && pytest",
        "python -c 'import pytest'",
        "which pytest",
        "pytest {--co,}",
        "make test -i",
        "make -sn test",
        "make --ignore-errors test",
        "MAKEFLAGS=n make test",
        "GOFLAGS=-n go test ./...",
        "go test -exec true ./...",
        "mvn test -fn",
        "mvn test -Dmaven.test.failure.ignore=true",
        "gradle test -x test",
    ],
)
def test_a_command_that_cannot_prove_a_pass_sends_back(project, command):
    project.run(command)
    answer = project.check("pytest*", "npm test*", "make*", "go test*", "mvn*", "gradle*")
    assert answer.reason
    assert not answer.problem


@pytest.mark.parametrize(
    "command",
    [
        "pytest",
        "pytest --exitfirst",
        "pytest -x -k total --deselect tests/x.py::y",
        "pytest tests/one.py",
        "pytest -rfE -kh",
        "python -m pytest --cov --color=no",
        "timeout 60 .venv/bin/pytest -q",
        "bash -lc 'pytest -q'",
        "set -o pipefail; pytest | tail -3",
        "pytest -q && git add -A && git commit -m 'It works'",
        "npm test",
        "pytest 2>/dev/null >&2",
        "make -j4 -C src test",
    ],
)
def test_a_plain_run_proves_a_pass(project, command):
    project.run(command)
    assert passed(project.check("pytest*", "npm test*", "make*"))


@pytest.mark.parametrize(
    "output",
    [
        "no tests ran in 0.01s",
        "collected 0 items / 3 deselected",
        "3 deselected in 0.1s",
        "4 skipped in 0.1s",
        "0 passed",
        "No tests found, exiting with code 0",
        "Ran 0 tests in 0.000s\n\nOK",
        "# tests 0\n# pass 0",
        "?   \texample.com/x\t[no test files]",
        "ok  \texample.com/x\t0.002s [no tests to run]",
        "ok  \texample.com/x\t(cached) [no tests to run]",
        "running 0 tests\n\ntest result: ok.",
        "ok 1 - one # SKIP test name does not match\n# tests 1\n# pass 0\n# skipped 1",
        "\u2139 tests 1\n\u2139 pass 0\n\u2139 skipped 1",
        " b.test.js (1 test | \x1b[33m1 skipped\x1b[39m)\n Tests  \x1b[33m1 skipped\x1b[39m",
        "Tests run: 0, Failures: 0, Errors: 0, Skipped: 0",
        "No tests were found!!!",
    ],
)
def test_a_run_whose_output_says_that_nothing_ran_is_no_evidence(project, output):
    project.run("pytest -k nothing", content=output)
    assert "no test ran" in project.check().reason


@pytest.mark.parametrize(
    "output",
    [
        "",
        "10 passed, 2 skipped in 0.1s",
        "collected 3 items\n3 passed",
        "ok  \texample.com/x\t0.1s\n?   \texample.com/y\t[no test files]",
        "ok  \texample.com/x\t(cached)\n?   \texample.com/y\t[no test files]",
        "running 3 tests\n\nrunning 0 tests\n",
        "\u2139 tests 2\n\u2139 pass 1\n\u2139 skipped 1",
        " b.test.js (2 tests | 1 skipped)\n Tests  1 passed | 1 skipped (2)",
        "Tests:       0 failed, 4 passed, 4 total",
    ],
)
def test_an_output_with_tests_in_it_does_not_matter(project, output):
    project.run("pytest", content=output)
    assert passed(project.check())


def test_a_failed_run_is_no_evidence(project):
    project.run("pytest -q", content="Exit code 1\n1 failed", error=True)
    assert "`pytest -q`: it failed" in project.check().reason


def test_a_run_that_failed_when_it_ran_again_is_no_evidence(project):
    project.run("pytest -q")
    project.run("pytest -q", content="Exit code 1\n1 failed", error=True)
    assert "passed, and failed when it ran again" in project.check().reason


def test_a_run_in_the_background_is_no_evidence(project):
    project.run("pytest -q", run_in_background=True)
    assert "background" in project.check().reason


def test_a_command_whose_result_is_missing_is_no_evidence(project):
    project.run("pytest -q")
    project.lines.pop()
    assert "does not say whether it succeeded" in project.check().reason


def test_what_the_agent_says_is_no_evidence(project):
    project.run("pytest -q")
    said = [{"type": "text", "text": "\n".join(project.lines) + "\nI ran pytest: 3 passed."}]
    message = {"role": "assistant", "content": said}
    project.lines = [json.dumps({"type": "assistant", "uuid": "u", "message": message})]
    assert "no such command" in project.check().reason


def test_an_edit_that_failed_does_not_count(project):
    project.run("pytest -q")
    project.edit("src/a.py", error=True)
    assert passed(project.check())


def test_an_edit_in_flight_while_the_command_began_counts(project):
    project.edit("src/a.py")
    project.run("pytest -q")
    use, edited, run, ran = project.lines
    project.lines = [use, run, edited, ran]
    assert "before src/a.py was edited" in project.check().reason


@pytest.mark.parametrize("name", ["notes.log", "../elsewhere.txt"])
def test_an_edit_of_an_ignored_file_or_elsewhere_does_not_count(project, name):
    project.write("notes.log")
    project.run("pytest -q")
    project.edit(name)
    assert passed(project.check())


def test_only_edits_of_the_named_paths_count(project):
    project.run("pytest -q")
    project.edit("README.md")
    assert project.check().reason
    assert passed(project.check(paths=["src/**"]))
    assert "README.md" in project.check(paths=["*.md"]).reason


def waited(project):
    """Add a run that ended now, and wait until the clock of the files is past it."""
    project.run("pytest -q", after=0)
    time.sleep(0.05)


def changed_by_shell(project):
    project.write("src/a.py", "y\n")


def created_by_shell(project):
    project.write("src/b.py")


def backdated(project):
    project.write("src/a.py", "y\n")
    os.utime(project.folder / "src/a.py", (1, 1))


def removed(project):
    (project.folder / "src/a.py").unlink()


def removed_and_committed(project):
    project.git("rm", "-q", "src/a.py")
    project.git("commit", "-qm", "gone")


def renamed(project):
    project.git("mv", "src/a.py", "src/c.py")


def changed_and_committed(project):
    project.write("src/a.py", "y\n")
    project.commit()


def checked_out(project):
    project.git("checkout", "-q", "other")


def removed_by_checkout(project):
    project.git("checkout", "-q", "empty")


@pytest.mark.parametrize(
    "change",
    [
        changed_by_shell,
        created_by_shell,
        backdated,
        removed,
        removed_and_committed,
        renamed,
        changed_and_committed,
        checked_out,
        removed_by_checkout,
    ],
)
def test_a_file_that_changed_after_the_run_by_whatever_means_is_no_evidence(project, change):
    project.git("checkout", "-qb", "empty")
    project.git("rm", "-q", "src/a.py")
    project.git("commit", "-qm", "nothing there")
    project.git("checkout", "-q", "-")
    project.git("checkout", "-qb", "other")
    project.write("src/a.py", "other\n")
    project.commit()
    project.git("checkout", "-q", "-")
    time.sleep(0.05)
    waited(project)
    assert passed(project.check())
    change(project)
    assert "`pytest -q` ran before src/" in project.check().reason


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q && sed -i s/x/y/ src/a.py",
        "pytest -q && black .",
        "sed -i s/x/y/ src/a.py & pytest -q",
        "(sleep 1; python fix.py) & pytest -q",
        "set -o pipefail; pytest -q | (cat; python fix.py)",
        "set -o pipefail; python fix.py | pytest -q",
        "pytest -q 2> src/a.py",
    ],
)
def test_a_line_that_may_have_changed_a_file_after_the_tests_is_no_evidence(project, command):
    time.sleep(0.05)
    project.run(command, took=SOON)  # it began now, and ended later
    assert passed(project.check())
    changed_by_shell(project)
    assert "` began before src/a.py changed" in project.check().reason


@pytest.mark.parametrize("command", ["python fix.py && pytest -q", "pytest -q && git status"])
def test_what_a_run_itself_writes_does_not_count(project, command):
    project.run(command, took=2 * SOON)
    changed_by_shell(project)
    assert passed(project.check())


@pytest.mark.parametrize("given", [{"name": "Bash", "command": "python fix.py"}, {"name": "Task"}])
def test_a_tool_that_may_have_changed_a_file_beside_the_tests_is_no_evidence(project, given):
    project.run("pytest -q")
    assert passed(project.check())
    project.lines.clear()
    project.run("pytest -q", took=2 * SOON)
    project.call(**given)
    run, ran, use, result = project.lines
    project.lines = [use, run, result, ran]
    assert "`pytest -q` began before " in project.check().reason


def test_without_git_a_line_that_may_have_changed_files_is_no_evidence(tmp_path):
    project = Project(tmp_path)
    (project.folder / ".git").rename(tmp_path / "elsewhere")
    project.run("pytest -q && black .")
    assert "ran together with commands that may have changed files" in project.check().reason


def test_a_commit_and_ignored_files_after_the_run_do_not_count(project):
    project.write("src/a.py", "y\n")
    time.sleep(0.05)
    waited(project)
    project.write("test.log")
    project.commit()
    assert passed(project.check())


@pytest.mark.parametrize(
    ("command", "is_harmless"),
    [
        ("ls -l && git status | head -3", True),
        ("git diff > /dev/null", True),
        ("grep -rn x src; cat README.md", True),
        ("pytest --co", True),
        ("find . -name '*.py'", True),
        ("sed -i s/x/y/ src/a.py", False),
        ("git checkout .", False),
        ("echo y > src/a.py", False),
        ("cat $(touch src/a.py)", False),
        ("git diff --output=src/a.py HEAD", False),
        ("sort -o src/a.py README.md", False),
        ("sed -n 'w src/a.py' README.md", False),
        ("sed -n 1,20p src/a.py", True),
        ("find . -delete", False),
        ("for f in *; do rm $f; done", False),
        ("python fix.py", False),
    ],
)
def test_without_times_a_later_command_may_have_been_an_edit(project, command, is_harmless):
    project.run("pytest -q", after=None)
    project.run(command, after=None)
    answer = project.check()
    assert passed(answer) is is_harmless
    assert is_harmless or "may have changed files" in answer.reason


def test_without_git_a_later_command_may_have_been_an_edit(tmp_path):
    project = Project(tmp_path)
    (project.folder / ".git").rename(tmp_path / "elsewhere")
    project.run("pytest -q")
    assert passed(project.check())
    project.run("python fix.py")
    assert "may have changed files" in project.check().reason


def test_the_time_of_files_on_another_machine_is_not_compared(project):
    waited(project)
    changed_by_shell(project)
    assert passed(project.check(event={"workspace": "ssh://box/srv/shop"}))


def test_a_repository_without_a_commit_is_checked_too(tmp_path):
    project = Project(tmp_path)
    project.git("update-ref", "-d", "HEAD")
    waited(project)
    assert passed(project.check())
    changed_by_shell(project)
    assert "src/a.py changed" in project.check().reason


def test_settings_of_the_repository_run_no_command(project, tmp_path):
    mark = tmp_path / "mark"
    project.git("config", "core.fsmonitor", f"touch {mark}; false")
    project.run("pytest -q")
    project.edit("README.md")
    assert project.check().reason
    assert not mark.exists()


@pytest.mark.parametrize(
    ("event", "options", "problem"),
    [
        ({"transcript_path": None}, {}, "names no transcript"),
        ({"transcript_path": "/nowhere/t.jsonl"}, {}, "is missing"),
        ({}, {}, "not one that notyet can read"),
        ({}, {"ran": []}, "must be a list"),
        ({}, {"ran": 5}, "must be a list"),
        ({}, {"ran": ["[a"]}, "never closed"),
        ({}, {"paths": [5]}, "must be a list"),
    ],
)
def test_what_cannot_be_checked_is_a_problem_and_no_pass(project, event, options, problem):
    project.lines = ["nothing that is a transcript"]
    answer = project.check(event=event, **options)
    assert problem in answer.problem
    assert not answer.reason


def placed(text: str, folder: Path, year: str) -> str:
    """Return a recorded transcript as if it had been written in another year, in this folder."""
    return text.replace("/home/ada/shop", str(folder)).replace("2026-11-18T", f"{year}-11-18T")


@pytest.mark.parametrize("host", HOSTS)
def test_transcripts_of_real_programs_prove_the_run_after_the_edits(host, project):
    project.write("src/sum.py")
    project.write("src/new.py")
    lines = (VECTORS / f"{host}.jsonl").read_text()
    project.lines = placed(lines, project.folder, "2098").splitlines()
    answer = project.check("sh tests.sh")
    assert answer.note == "`sh tests.sh` succeeded after the last edit"
    project.lines = placed(lines, project.folder, "2001").splitlines()
    assert "changed" in project.check("sh tests.sh").reason
    assert "no such command" in project.check("pytest*").reason


@pytest.mark.parametrize("host", HOSTS)
def test_transcripts_of_real_programs_prove_nothing_where_edits_came_last(host, project):
    project.write("src/sum.py")
    project.write("src/new.py")
    lines = placed((VECTORS / f"{host}.jsonl").read_text(), project.folder, "2098").splitlines()
    last = max(
        n
        for n, line in enumerate(lines)
        if "not there" in line or "nope" in line or "nothing like it" in line
    )
    # Without the run that failed, which would be the reason.
    project.lines = [line for line in lines[: last + 1] if "&& false" not in line]
    assert "`sh tests.sh` ran before src/" in project.check("sh tests.sh").reason


def test_the_database_of_opencode_proves_the_run_after_the_edits(project, tmp_path, monkeypatch):
    project.write("src/sum.py")
    project.write("src/new.py")
    place = tmp_path / "data" / "opencode"
    place.mkdir(parents=True)
    text = placed((VECTORS / "opencode.sql").read_text(), project.folder, "2098")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    event = {"host": "opencode", "session_id": SESSION, "transcript_path": None}
    for stamp, is_pass in (("4066531", True), ("1004991", False)):
        with sqlite3.connect(place / "opencode.db") as database:
            database.executescript(text.replace("1794991", stamp))
        database.close()
        assert passed(project.check("sh tests.sh", event=event)) is is_pass
        (place / "opencode.db").unlink()
