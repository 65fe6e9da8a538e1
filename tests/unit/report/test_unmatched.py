"""Which globs match no file: git knows, and is asked about many at once."""

import os
import subprocess

import pytest

from notyet.status import lint as asked
from notyet.status.lint import NO_FILE, unmatched

OUTSIDE = "leads out of the repository, so that nobody can tell whether it changed"


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
    assert unmatched([*good, *bad], repository) == dict.fromkeys(bad, NO_FILE)
    assert unmatched(good, repository) == {}
    assert unmatched([], repository) == {}


def test_below_the_root_globs_are_relative_to_the_folder(repository):
    assert unmatched(["*.py", "src/*"], os.path.join(repository, "src")) == {"src/*": NO_FILE}


def test_one_that_leads_out_hides_no_other(repository):
    globs = ["src/**", "../x/**", "gone/**", "/etc/**", "two\nlines"]
    assert unmatched(globs, repository) == {
        "../x/**": OUTSIDE,
        "gone/**": NO_FILE,
        "/etc/**": OUTSIDE,
        "two\nlines": NO_FILE,
    }


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_more_globs_than_git_is_asked_about_at_once_are_told_too(repository, monkeypatch, at_once):
    monkeypatch.setattr(asked, "_AT_ONCE", at_once)
    globs = ["gone/1", "src/**", "gone/2", "../x", "gone/3"]
    nothing = dict.fromkeys(("gone/1", "gone/2", "gone/3"), NO_FILE)
    assert unmatched(globs, repository) == nothing | {"../x": OUTSIDE}


def test_where_git_cannot_tell_nothing_is_said(repository, tmp_path_factory, monkeypatch):
    assert unmatched(["gone/**"], str(tmp_path_factory.mktemp("bare"))) == {}
    assert unmatched(["a\0b"], repository) == {}
    monkeypatch.setenv("PATH", "/nowhere")
    assert unmatched(["gone/**"], repository) == {}
