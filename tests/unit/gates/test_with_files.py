"""Commands that get the changed files, and fixers that run before them."""

import json
import os
import sys
from pathlib import Path

import pytest

from conftest import git
from notyet.core.event import StopEvent
from notyet.gates.question import Question
from notyet.gates.with_files import check
from notyet.git.snapshot_store import take_first

FIX = "printf 'fixed\\n' > file.txt"


@pytest.fixture
def root(git_project, monkeypatch):
    monkeypatch.chdir(git_project)
    return Path(git_project)


@pytest.fixture
def run(root, capfd):
    """Return a function that lets a gate run; it returns the exit code and what it printed."""

    def ask(script, *, seconds=60.0, **options):
        about = Question(
            event=StopEvent(host="claude", session_id="s", cwd=str(root)),
            gate="lint",
            options={"kind": "run", "pass_codes": [0], **options},
            command={"script": script, "dir": str(root)},
            seconds=seconds,
        )
        code = check(about)
        sys.__stdout__.flush()
        return code, *capfd.readouterr()

    return ask


def many_files(root):
    """Add files whose names are too long for one command line."""
    for number in range(400):
        (root / f"{number:0200}").touch()


def test_what_a_fix_changed_is_told_when_the_check_passes(root, run):
    (root / "file.txt").write_text("two\n")
    code, out, _ = run("echo fine", fix=FIX)
    said = f"`{FIX}` changed file.txt".replace("\\n", "\\n")
    assert code == 0
    assert json.loads(out) == {
        "decision": "allow",
        "reason": said,
        "systemMessage": f"lint: {said}",
    }


def test_a_check_that_says_its_decision_is_heard_after_a_fix(root, run):
    (root / "file.txt").write_text("two\n")
    code, out, _ = run("""echo '{"decision": "block", "reason": "No."}'""", fix=FIX)
    answer = json.loads(out)
    assert code == 0
    assert answer["decision"] == "block"
    assert answer["reason"] == f"No.\n`{FIX}` changed file.txt"


def test_a_check_that_fails_after_a_fix_is_shown_with_it(root, run):
    (root / "file.txt").write_text("two\n")
    code, out, err = run("echo bad; exit 3", fix=FIX)
    assert (code, out) == (3, "")
    assert err.startswith("bad\n")
    assert "changed file.txt; the check ran after that." in err


def test_a_fix_that_hangs_is_named_and_nothing_else_runs(root, run):
    (root / "file.txt").write_text("two\n")
    answer, out, _ = run("echo checked", fix="exec sleep 100", seconds=1.0)
    assert answer.problem == "`exec sleep 100` did not finish in 1 s, so nothing checked"
    assert not out


def test_a_fix_that_fails_or_changes_nothing_leaves_it_to_the_check(root, run):
    (root / "file.txt").write_text("two\n")
    assert run("cat {files}", fix="echo oops >&2; exit 9") == (0, "two\n", "oops\n")


@pytest.mark.parametrize(("codes", "passes"), [((1, 0), False), ((2, 1), True)])
def test_the_exit_codes_that_pass_count_for_each_part(root, run, codes, passes):
    many_files(root)
    script = f"test -e seen && exit {codes[1]}; touch seen; exit {codes[0]} # {{files}}"
    code, *_ = run(script, pass_codes=[1, 2])
    assert (code in {1, 2}) is passes


def test_without_files_the_gate_passes_whatever_its_codes(root, run):
    state = os.path.join(os.environ["XDG_STATE_HOME"], "notyet")
    take_first(state, host="claude", session_id="s", agent_id="", root=str(root), patience=30.0)
    assert run("exit 0 # {files}", pass_codes=[1])[0] == 1


def test_the_user_is_told_that_nothing_ran_if_the_changes_may_be_committed(root, run):
    (root / "file.txt").write_text("two\n")
    git(root, "commit", "-qam", "two")
    answer, *_ = run("false {files}")
    assert not answer.reason
    assert answer.tell.startswith("lint: nothing ran: no file differs since the last commit (")


def test_an_exit_code_that_does_not_pass_fails_after_a_fix(root, run):
    (root / "file.txt").write_text("two\n")
    code, out, _ = run("true", fix=FIX, pass_codes=[1])
    assert (code, out) == (0, "")  # no decision, so the code counts


def test_a_link_to_a_pipe_or_a_device_is_not_read(root, run):
    os.mkfifo(root / ".git" / "pipe")
    (root / "pipe").symlink_to(root / ".git" / "pipe")
    (root / "zero").symlink_to("/dev/zero")
    (root / "file.txt").write_text("two\n")
    assert json.loads(run("true", fix=FIX)[1])["decision"] == "allow"


def test_every_name_arrives_as_it_is(root, run):
    names = ["-n", "a b", "a'b\"c", "new\nline", "$(touch hacked)", "{files}", "ü\udcff"]
    for name in names:
        (root / os.fsencode(name).decode("utf-8", "surrogateescape")).touch()
    (root / "file.txt").unlink()
    _, out, _ = run("printf '%s\\0' {files} | od -An -c | tr -d ' \\n'")
    assert not (root / "hacked").exists()
    for shown in (
        "./-n\\0",
        "ab\\0",
        "a'b\"c\\0",
        "new\\nline\\0",
        "$(touchhacked)\\0",
        "{files}\\0",
    ):
        assert shown in out
    assert "file.txt" not in out
