"""The demo tells a true story, or says that it did not."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from notyet.cli import demo, demo_cast
from notyet.cli.main import main


def test_the_demo_goes_as_it_must_and_cleans_up(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["demo"]) == 0
    shown = capsys.readouterr().out
    assert "ada  3 stops  blocked > blocked > passed  ok" in shown
    assert "bob  3 stops  blocked > blocked > stuck  ok" in shown
    assert "cyd  4 stops  blocked > blocked > blocked > capped  ok" in shown
    assert "\x1b" not in shown
    assert list(tmp_path.iterdir()) == []


def test_the_project_can_be_kept(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["demo", "--keep"]) == 0
    (kept,) = tmp_path.iterdir()
    assert str(kept) in capsys.readouterr().err
    assert "sum(prices)" in (kept / "ada" / "shop.py").read_text()


def test_a_story_that_goes_otherwise_is_an_error(capsys, monkeypatch):
    ada = demo.STORIES[0]
    honest = ada.__replace__(steps=(ada.steps[2],))
    monkeypatch.setattr(demo, "STORIES", (honest,))
    assert main(["demo"]) == 1
    shown = capsys.readouterr().out
    assert "ada  1 stops  passed  WRONG" in shown
    assert "expected blocked > blocked > passed" in shown


def test_without_git_the_demo_says_what_is_missing(capsys, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["demo"]) == 1
    assert "git is not installed" in capsys.readouterr().err


def test_the_demo_runs_from_a_bare_checkout():
    source = Path(demo.__file__).parents[2]
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.insert(0, {str(source)!r}); "
            "from notyet.cli.main import main; sys.exit(main(['demo']))",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("story", demo.STORIES, ids=lambda story: story.name)
def test_a_scripted_session_is_a_session(story, tmp_path):
    session = demo_cast.ScriptedSession(story, str(tmp_path))
    turn = asyncio.run(session.send("go", key="k1"))
    assert turn.text == story.steps[0].says
    assert (session.knows("k1"), session.knows("k2")) == (True, False)
    assert session.ref() == {"agent": story.name}
    assert session.transcript() is None
    asyncio.run(session.abort())
    with pytest.raises(IndexError):
        asyncio.run(session.send("go", key="k2"))


def test_the_demo_touches_no_repository_of_the_users(git_project, monkeypatch, capsys):
    monkeypatch.setenv("GIT_DIR", f"{git_project}/.git")
    monkeypatch.setenv("GIT_INDEX_FILE", f"{git_project}/.git/index")
    assert main(["demo"]) == 0
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_INDEX_FILE")
    log = subprocess.run(
        ["git", "log", "--format=%s"], cwd=git_project, capture_output=True, text=True, check=True
    )
    assert log.stdout == "one\n"


def test_a_git_that_fails_is_named_in_one_line(monkeypatch, capsys, tmp_path):
    broken = tmp_path / "git"
    broken.write_text("#!/bin/sh\necho 'fatal: no luck today' >&2\nexit 128\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["demo"]) == 1
    assert capsys.readouterr().err == "notyet demo: git failed: fatal: no luck today\n"
