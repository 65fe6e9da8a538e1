"""Globs that match no file: git knows."""

import os
import subprocess

import pytest

from notyet.config.lint import NO_FILE, why_unmatched

OUTSIDE = "is outside the repository, so git cannot see changes to it"


@pytest.fixture
def repository(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for name in ("src/a.py", "new/b.py", "ignored/c.py", "it's/d.py", "é/e.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text("ignored\n")
    subprocess.run(["git", "-C", str(tmp_path), "add", "src"], check=True)
    return str(tmp_path)


@pytest.mark.parametrize(
    ("glob", "folder", "why"),
    [
        ("src/**", "", ""),
        ("new/*.py", "", ""),
        ("**/*.py", "", ""),
        ("it's/**", "", ""),
        ("é/*", "", ""),
        ("gone/**", "", NO_FILE),
        ("ignored/**", "", NO_FILE),
        ("two\nlines", "", NO_FILE),
        ("../x/**", "", OUTSIDE),
        ("/etc/**", "", OUTSIDE),
        ("*.py", "src", ""),
        ("src/*", "src", NO_FILE),
        ("a\0b", "", ""),
    ],
)
def test_git_says_why_a_glob_matches_no_file(repository, glob, folder, why):
    assert why_unmatched(glob, os.path.join(repository, folder)) == why


def test_where_git_cannot_tell_nothing_is_said(repository, tmp_path_factory, monkeypatch):
    assert why_unmatched("gone/**", str(tmp_path_factory.mktemp("bare"))) == ""
    monkeypatch.setenv("PATH", "/nowhere")
    assert why_unmatched("gone/**", repository) == ""
