"""Globs that match no file, and commands whose failures are hard to compare."""

import subprocess

import pytest

from notyet.config.compile import compile_text
from notyet.config.lint import lint, unmatched


@pytest.fixture
def repository(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for name in ("src/a.py", "new/b.py", "ignored/c.py", "it's/d.py", "é/e.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text("ignored\n")
    subprocess.run(["git", "-C", str(tmp_path), "add", "src"], check=True)
    return str(tmp_path)


def test_globs_that_match_nothing_are_told_from_those_that_do(repository):
    good = ["src/**", "new/*.py", "**/*.py", "it's/**", "é/*"]
    bad = ["gone/**", "ignored/**", "it's*gone", "gone é", "a' did not match"]
    assert unmatched([*good, *bad], repository) == set(bad)
    assert unmatched(good, repository) == set()
    assert unmatched(["*.py", "src/*"], f"{repository}/src") == {"src/*"}


def test_where_git_cannot_tell_nothing_is_said(repository, tmp_path_factory, monkeypatch):
    assert unmatched(["gone/**"], str(tmp_path_factory.mktemp("bare"))) == set()
    assert unmatched(["a\0b"], repository) == set()
    monkeypatch.setenv("PATH", "/nowhere")
    assert unmatched(["gone/**"], repository) == set()


@pytest.mark.parametrize("option", ["", "\nnew_failures_only = true"])
def test_a_command_that_may_hide_failures_is_told_only_where_they_are_compared(tmp_path, option):
    text = f'[gates.tests]\nrun = "make test"{option}\n'
    settings = compile_text(text, str(tmp_path / "notyet.toml"))
    told = [warning.message for warning in lint(settings, None, (), {"PATH": "/usr/bin:/bin"})]
    assert any("one check per gate" in message for message in told) == bool(option)
