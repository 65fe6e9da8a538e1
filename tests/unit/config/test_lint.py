"""Globs that match no file: git knows."""

import subprocess

import pytest

from notyet.config.lint import unmatched


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
