"""Which stops `notyet replay` looks at, and which it leaves out."""

import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from hook_runs import ask, ledger_path, payload, trust
from notyet.cli.main import main
from notyet.core.event import StopEvent
from notyet.engine.engine import Engine
from notyet.ledger.ledger import Ledger
from replays import GATES, capped, changed, replayable, replayed, results, stop


@pytest.fixture
def project(git_project, monkeypatch):
    return replayable(git_project, monkeypatch)


def test_what_only_a_trusted_version_says_is_in_force(project, capsys):
    capped(project)
    (project / "notyet.toml").write_text(GATES.replace("max_blocks = 2", "max_blocks = 9"))

    lines, _ = replayed(capsys)
    assert {line["result"] for line in lines} == {"same"}
    assert main(["replay"]) == 0
    assert "notyet.toml changed since it was trusted" in capsys.readouterr().err
    lines, _ = replayed(capsys, "--config", "notyet.toml")
    assert results(lines)[2] == ("capped", "differs", "blocked")


def test_a_stop_that_met_an_untrusted_file_would_be_checked_now(git_project, capsys, monkeypatch):
    monkeypatch.chdir(git_project)
    with open("notyet.toml", "w") as file:
        file.write(GATES)
    ask(payload("claude", git_project))

    lines, _ = replayed(capsys)
    assert results(lines) == [("skipped", "same", "skipped")]
    trust(os.path.join(git_project, "notyet.toml"))
    lines, _ = replayed(capsys)
    assert results(lines) == [("skipped", "differs", "passed/blocked/failed_open")]
    said = "its gates were not in force then (untrusted)"
    assert lines[0]["because"] == [{"gate": "", "what": said}]


def test_stops_that_no_configuration_changes_are_left_out_and_counted(project, capsys, monkeypatch):
    with monkeypatch.context() as switched:
        switched.setenv("NOTYET_DISABLE", "1")
        stop(project, "s1")
    Engine([lambda _event: None], ledger=Ledger()).check_sync(
        StopEvent(session_id="s2", cwd=str(project))
    )

    lines, summary = replayed(capsys)

    assert [line["left_out"] for line in lines] == [
        "skipped: off",
        "a program asked gates of its own",
    ]
    assert summary["left_out"] == 2
    main(["replay"])
    out = capsys.readouterr().out
    assert "2  left out: skipped: off (1), a program asked gates of its own (1)" in out


def test_a_folder_that_is_gone_has_no_configuration(project, tmp_path, capsys):
    stop(project, "s1")
    os.chdir(tmp_path)
    shutil.rmtree(project)

    lines, _ = replayed(capsys, "--all")

    assert lines[0]["left_out"] == f"its folder is gone: {project}"


def test_a_block_that_the_host_overrode_was_a_block(project, capsys):
    stop(project, "s1", "lint-fails")
    stop(project, "s1", last_assistant_message="more")

    lines, _ = replayed(capsys)

    assert [line["recorded"] for line in lines] == ["overridden", "passed"]
    assert results(lines)[0] == ("blocked", "same", "blocked")


def test_a_record_of_an_older_version_does_not_say_what_was_asked(project, capsys):
    stop(project, "s1")
    with closing(sqlite3.connect(ledger_path())) as db, db:
        db.execute("UPDATE reports SET definition = ''")

    lines, _ = replayed(capsys)

    assert results(lines) == [("passed", "unknown", "passed/blocked/failed_open")]
    assert lines[0]["missing"][0]["why"] == "what it asked then was not recorded"


def test_that_gating_is_off_now_is_said(project, capsys, monkeypatch):
    stop(project, "s1")
    monkeypatch.setenv("NOTYET_DISABLE", "1")

    assert main(["replay"]) == 0

    assert "replayed as if it were on" in capsys.readouterr().err


def test_only_the_stops_that_are_named_are_told_of(project, capsys):
    capped(project)
    stop(project, "s2")

    assert [line["id"] for line in replayed(capsys, "3")[0]] == [3]
    assert [line["id"] for line in replayed(capsys, "--session", "s2")[0]] == [4]
    assert [line["id"] for line in replayed(capsys, "--outcome", "capped")[0]] == [3]
    assert [line["id"] for line in replayed(capsys, "--since", "2d")[0]] == [1, 2, 3, 4]
    # It is still known that the stop before it would have ended the turn.
    lower = changed(project, ("max_blocks = 2", "max_blocks = 1"))
    assert replayed(capsys, "3", "--config", lower)[0][0]["follows"] == 2


def test_stops_of_other_projects_are_told_of_when_asked_for(project, tmp_path, capsys):
    stop(project, "s1")
    (tmp_path / "elsewhere").mkdir()
    os.chdir(tmp_path / "elsewhere")

    assert replayed(capsys)[1]["stops"] == 0
    assert replayed(capsys, "--all")[1]["stops"] == 1
    assert main(["replay"]) == 0
    assert capsys.readouterr().out.startswith("no stops to replay")


def test_a_filter_that_fits_no_stop_is_told_from_a_project_without_any(project, capsys):
    stop(project, "s1")
    for argv in (["--outcome", "capped"], ["--session", "s1", "--outcome", "capped"]):
        assert main(["replay", *argv]) == 0
        assert capsys.readouterr().out.startswith("no stops to replay: no stop here is like that;")


@pytest.mark.parametrize("more", [[], ["--json"], ["--all"]])
def test_a_session_that_is_not_there_is_no_success(project, capsys, more):
    stop(project, "s1")
    assert main(["replay", "--session", "zzz", *more]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("notyet replay: no stop of session zzz is recorded")
