"""What a gate's command is given, and the report on how it ended."""

import os
import time

import pytest

from notyet.core.gate import Command, Exit
from notyet.core.verdict import Allow, Problem
from notyet.hosts.hook_answers import HookAnswer
from notyet.run.gate_command import GateCommand, exit_words, job_for, run_commands
from notyet.run.spawn import Job


def job(command, **fields):
    known = {"folder": "/f", "cwd": "/c", "stdin": b"", "environ": {}, "timeout": None}
    return job_for(command, **(known | fields))


def question(*argv, timeout=None, read=lambda _exit: HookAnswer(answer=Allow())):
    given = Job(argv=argv, dir="/", environ=dict(os.environ), timeout=timeout)
    return GateCommand(name="g", job=given, read=read)


@pytest.mark.rule("E7")
def test_a_command_runs_in_its_own_folder_or_where_the_agent_works():
    assert job(Command(script="x", dir="/d")).dir == "/d"
    assert job(Command(script="x")).dir == "/c"
    assert job(Command(script="x"), cwd="").dir == os.getcwd()


@pytest.mark.rule("E8")
def test_a_script_goes_to_one_shell_and_a_list_to_none():
    assert job(Command(script="a\nb")).argv[-1] == "a\nb"
    assert job(Command(argv=("a", "b c"))).argv == ("a", "b c")


@pytest.mark.rule("E7", "E11")
def test_the_environment_is_ours_then_the_dialects_then_the_gates_and_marked(monkeypatch):
    monkeypatch.setenv("OURS", "1")
    command = Command(script="x", env=(("A", "gate"), ("NOTYET_INSIDE", "0")))
    environ = job(command, environ={"A": "dialect", "B": "dialect", "OURS": "2"}).environ
    assert [environ[name] for name in ("A", "B", "OURS")] == ["gate", "dialect", "2"]
    assert environ["NOTYET_INSIDE"] == "1"


def test_a_variable_that_the_system_would_refuse_is_made_fit():
    environ = job(Command(script="x"), environ={"A": "a\0b", "B": "x" * 500_000}).environ
    assert environ["A"] == "ab"
    assert len(environ["B"]) == 100_000
    assert len(environ["B"].encode()) < 128 * 1024


def test_a_long_variable_of_wide_characters_is_made_fit_and_the_command_starts():
    wide = job(Command(argv=("true",)), cwd="/", environ={"A": "😀" * 200_000, "B": "\ud800x"})
    given = GateCommand(name="g", job=wide, read=lambda _: HookAnswer(answer=Allow()))
    (report,) = run_commands([given], None)
    assert report.exit == "exit 0"


@pytest.mark.rule("E9")
def test_a_command_cut_off_by_the_host_has_a_problem_whatever_it_might_have_said():
    (report,) = run_commands([question("sleep", "30")], time.monotonic() + 0.1)
    assert report.answer.kind == "deadline"
    (report,) = run_commands([question("sleep", "30", timeout=60)], time.monotonic() + 0.1)
    assert report.answer.kind == "deadline"


def test_a_command_cut_off_by_its_own_timeout_is_read_by_its_dialect():
    read = lambda ended: HookAnswer(answer=Problem("timeout", str(ended.timed_out)))
    (report,) = run_commands(
        [question("sleep", "30", timeout=0.1, read=read)], time.monotonic() + 30
    )
    assert str(report.answer.detail) == "True"
    assert report.exit == "timed out"


def test_a_reader_that_fails_is_a_problem_of_its_gate():
    (report,) = run_commands([question("true", read=lambda _exit: 1 / 0)], None)
    assert report.answer.kind == "internal"
    assert "ZeroDivisionError" in str(report.answer)


def test_reports_come_in_the_order_of_their_questions():
    slow = question("sh", "-c", "sleep 0.2; echo slow")
    quick = question("sh", "-c", "echo quick >&2")
    assert [report.output for report in run_commands([slow, quick], None)] == ["slow", "quick"]


@pytest.mark.rule("E5")
def test_what_a_command_printed_is_kept_as_clean_text():
    script = r"printf 'a\033[31mred\033[0m\000\377\r\n'; printf 'err' >&2"
    (report,) = run_commands([question("sh", "-c", script)], None)
    assert report.output.isprintable() or "\n" in report.output
    assert report.output.startswith("ared")
    assert report.output.endswith("\nerr")


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        (Exit(code=3), "exit 3"),
        (Exit(signal=9), "signal 9"),
        (Exit(timed_out=True, signal=15), "timed out"),
        (Exit(cancelled=True, signal=15), "cancelled"),
        (Exit(problem="no such file"), "not started"),
        (Exit(problem="the connection was lost", lost=True), "lost"),
    ],
)
def test_how_a_command_ended_in_words(ended, words):
    assert exit_words(ended) == words
