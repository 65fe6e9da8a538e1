"""pre-commit and lefthook for real where they are installed; hk by its documented options."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from conftest import git
from notyet.gates.hook_tools import TOOLS, find_program
from preset_questions import ask, only_on_path, passes, program

needs_pre_commit = pytest.mark.skipif(
    shutil.which("pre-commit") is None, reason="pre-commit is not installed"
)
needs_lefthook = pytest.mark.skipif(
    shutil.which("lefthook") is None, reason="lefthook is not installed"
)
HOOKS = """
repos:
- repo: local
  hooks:
  - {id: no-bad, name: no bad words, language: pygrep, entry: BAD, types: [text]}
  - {id: tidy, name: tidy, language: system, entry: ./tidy, files: tidy.txt}
"""
JOBS = """
pre-commit:
  commands:
    no-bad:
      run: "! grep -n BAD {staged_files}"
    tidy:
      glob: "*.txt"
      run: sed -i.bak s/untidy/tidy/ {staged_files} && rm -f *.bak
      stage_fixed: true
"""
TIDY = '#!/bin/sh\nsed -i.bak s/untidy/tidy/ "$@" && rm -f ./*.bak\n'
HK = f"""#!{sys.executable}
import json, os, sys
names = [x for x in sys.argv[2:] if not x.startswith("--")]
open(os.environ["HK_LOG"], "a").write(json.dumps(sys.argv[1:]) + "\\n")
if os.environ.get("HK_MODE") == "old":
    sys.exit("error: unexpected argument '--no-stage' found")
bad = [x for x in names if "BAD" in open(x).read()]
print(*(f"\\x1b[31m{{x}} is bad\\x1b[0m" for x in bad), sep="\\n")
sys.exit(1 if bad else 0)
"""


@pytest.fixture
def root(git_project):
    return Path(git_project)


def configured(root, name, text):
    (root / name).write_text(text)
    program(root, "tidy", TIDY)
    git(root, "add", ".")
    git(root, "commit", "-qm", "hooks")


@pytest.fixture
def hk(root, tmp_path, monkeypatch):
    program(tmp_path / "bin", "hk", HK)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("HK_LOG", str(tmp_path / "log"))
    configured(root, "hk.pkl", "")
    return lambda: [json.loads(x) for x in (tmp_path / "log").read_text().splitlines()]


@pytest.mark.parametrize("name", TOOLS)
def test_without_its_file_a_tool_is_not_configured(name, root):
    assert (
        f"{name} is not configured: there is no {TOOLS[name].files[0]}" in ask(name, root).problem
    )


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_that_is_missing_is_a_problem_with_a_command_that_installs_it(
    name, root, tmp_path, monkeypatch
):
    only_on_path(monkeypatch, tmp_path / "bin", "git")
    configured(root, TOOLS[name].files[0], "")
    assert ask(name, root).problem == f"{name} is not installed; run: {TOOLS[name].install}"


def test_the_projects_own_program_comes_before_that_of_the_path(tmp_path, monkeypatch):
    on_path = program(tmp_path / "bin", "lefthook", "")
    only_on_path(monkeypatch, tmp_path / "bin")
    tool = TOOLS["lefthook"]
    assert find_program(tool, [str(tmp_path / "p"), ""]) == str(on_path)
    own = program(tmp_path / "p" / "node_modules" / ".bin", "lefthook", "")
    assert find_program(tool, [str(tmp_path / "p"), ""]) == str(own)


def test_prek_runs_where_pre_commit_is_missing_or_prek_is_configured(tmp_path, monkeypatch):
    only_on_path(monkeypatch, tmp_path / "bin")
    prek = program(tmp_path / "bin", "prek", "")
    tool = TOOLS["pre-commit"]
    assert find_program(tool, [str(tmp_path)]) == str(prek)
    other = program(tmp_path / "bin", "pre-commit", "")
    assert find_program(tool, [str(tmp_path)]) == str(other)
    (tmp_path / "prek.toml").touch()
    assert find_program(tool, [str(tmp_path)]) == str(prek)


def test_hk_checks_the_changed_files_alone(root, hk):
    assert ask("hk", root).note == "no file changed"
    (root / "-new.txt").write_text("fine\n")
    (root / "tidy").unlink()
    assert passes(ask("hk", root))
    assert hk() == [["check", "--check", "--no-stage", "./-new.txt"]]


def test_the_output_of_a_failing_tool_is_the_reason_without_escapes(root, hk):
    (root / "new.txt").write_text("BAD\n")
    reason = ask("hk", root).reason
    assert "hk failed on the files you changed (exit code 1):\nnew.txt is bad\nFix" in reason


def test_many_files_are_checked_in_several_runs(root, hk):
    names = [f"{'long' * 50}{number:04}" for number in range(600)]
    for name in names:
        (root / name).touch()
    assert passes(ask("hk", root))
    runs = hk()
    assert len(runs) == 2
    assert [name for run in runs for name in run[3:]] == names


def test_a_tool_that_does_not_know_our_options_is_a_problem(root, hk, monkeypatch):
    monkeypatch.setenv("HK_MODE", "old")
    (root / "new.txt").touch()
    assert "update it" in ask("hk", root).problem


def test_a_tool_that_hangs_and_leaves_a_child_is_ended_in_time(root, hk, tmp_path):
    program(tmp_path / "bin", "hk", "#!/bin/sh\nsleep 5 &\nexec sleep 60\n")
    (root / "new.txt").touch()
    assert "hk did not finish" in ask("hk", root, seconds=1).problem


def test_a_tool_that_is_killed_is_a_problem(root, hk, tmp_path):
    program(tmp_path / "bin", "hk", "#!/bin/sh\nkill -9 $$\n")
    (root / "new.txt").touch()
    assert ask("hk", root).problem == "hk was killed by SIGKILL"


def test_much_output_is_bounded(root, hk, tmp_path):
    program(tmp_path / "bin", "hk", "#!/bin/sh\nyes | head -c 5000000\necho last\nexit 1\n")
    (root / "new.txt").touch()
    answer = ask("hk", root)
    assert len(answer.reason) < 7000
    assert "\nlast\n" in answer.reason
    assert len(answer.output) <= 200_000


@needs_pre_commit
def test_pre_commit_fails_on_a_new_file_and_stages_nothing(root):
    configured(root, ".pre-commit-config.yaml", HOOKS)
    (root / "new.txt").write_text("BAD\n")
    reason = ask("pre-commit", root).reason
    assert "no bad words" in reason
    assert "new.txt:1:BAD" in reason
    (root / "new.txt").write_text("good\n")
    assert passes(ask("pre-commit", root))
    assert not (root / ".git" / "hooks" / "pre-commit").exists()


@needs_pre_commit
def test_pre_commit_says_which_files_its_hooks_rewrote(root):
    configured(root, ".pre-commit-config.yaml", HOOKS)
    (root / "tidy.txt").write_text("untidy\n")
    reason = ask("pre-commit", root).reason
    assert "It changed these files:\n  tidy.txt\nRead what it changed" in reason
    assert (root / "tidy.txt").read_text() == "tidy\n"
    assert passes(ask("pre-commit", root))


@needs_pre_commit
def test_a_hook_that_cannot_be_installed_is_a_problem(root):
    text = "repos: [{repo: ./nowhere, rev: v1, hooks: [{id: x}]}]\n"
    configured(root, ".pre-commit-config.yaml", text)
    (root / "new.txt").touch()
    assert "pre-commit failed with exit code 3" in ask("pre-commit", root).problem


@needs_lefthook
def test_lefthook_fails_on_a_file_with_an_odd_name(root):
    configured(root, "lefthook.yml", JOBS)
    (root / "a 'b\n.md").write_text("BAD\n")
    assert "lefthook failed" in ask("lefthook", root).reason
    (root / "a 'b\n.md").write_text("good\n")
    assert passes(ask("lefthook", root))


@needs_lefthook
def test_lefthook_that_rewrites_a_file_sends_back_once_and_leaves_git_alone(root):
    configured(root, "lefthook.yml", JOBS)
    (root / "new.txt").write_text("untidy\n")
    (root / "file.txt").write_text("staged\n")
    git(root, "add", "file.txt")
    (root / "file.txt").write_text("not staged\n")
    index = (root / ".git" / "index").read_bytes()
    reason = ask("lefthook", root).reason
    assert reason.startswith("lefthook passed.\nIt changed these files:\n  new.txt\n")
    assert passes(ask("lefthook", root))
    assert (root / ".git" / "index").read_bytes() == index
    assert (root / "file.txt").read_text() == "not staged\n"
    assert not (root / ".git" / "hooks" / "pre-commit").exists()
