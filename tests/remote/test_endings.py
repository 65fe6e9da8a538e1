"""How a gate there ends, and what it does on its way, is told as for one that runs here."""

import signal
import time

import pytest

from remote_runs import (
    CLINGING,
    Background,
    cancelling,
    new_token,
    nothing_is_left,
    run,
    run_together,
    there,
)
from sshd import is_gone

pytestmark = pytest.mark.rule("M1", "M2")


@pytest.fixture
def box(warm_box):
    return warm_box


@pytest.mark.rule("M3")
def test_an_exit_code_is_told_as_it_is(box):
    codes = [0, 1, 2, 77, 126, 127, 128, 137, 143, 255]
    ended = run_together([there(box, f"exit {code}") for code in codes])
    assert [(one.code, one.signal, one.problem) for one in ended] == [(c, 0, "") for c in codes]


def test_a_death_by_signal_is_told_apart(box):
    numbers = [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGHUP]
    ended = run_together([there(box, f"echo said; kill -{int(one)} $$") for one in numbers])
    assert [(one.code, one.signal) for one in ended] == [(None, number) for number in numbers]
    assert all(one.stdout == b"said\n" for one in ended)


def test_a_program_that_is_missing_is_a_problem(box):
    ended = run(there(box, "no-such-program", "x"))
    assert ended.code is None
    assert "no-such-program" in ended.problem


def test_a_program_that_may_not_run_is_a_problem(box, tmp_path):
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    ended = run(there(box, str(tmp_path / "plain"), "x"))
    assert ended.code is None
    assert "plain" in ended.problem


def test_a_program_is_found_relative_to_its_folder(box, tmp_path):
    (tmp_path / "check").write_text("#!/bin/sh\nexit 5\n")
    (tmp_path / "check").chmod(0o755)
    assert run(there(box, "./check", "x", dir=str(tmp_path))).code == 5


def test_a_folder_that_is_gone_or_none_or_closed_is_a_problem_that_names_it(box, tmp_path):
    (tmp_path / "file").touch()
    for name in ("missing", "file", "file/below"):
        ended = run(there(box, "exit 0", dir=str(tmp_path / name)))
        assert ended.code is None
        assert str(tmp_path / name) in ended.problem
        assert "box" in ended.problem


def test_output_with_and_without_an_end_of_line_comes_back_as_it_is(box):
    texts = [b"", b"said", b"said\n", b"\nsaid\n\n", b"\n", b"a\\b\xff\r\n\x1b[31m"]
    shown = ["".join(f"\\{byte:03o}" for byte in text) for text in texts]
    jobs = [there(box, f"printf '{text}'; printf '{text}' >&2") for text in shown]
    ended = run_together(jobs)
    assert [(one.stdout, one.stderr) for one in ended] == [(text, text) for text in texts]


def test_a_flood_is_bounded_and_its_exit_code_arrives(box):
    token = new_token()
    text = (
        "echo first; head -c 20000000 /dev/zero; head -c 9000000 /dev/zero >&2; echo last; exit 9"
    )
    ended = run(there(box, text, token=token))
    assert (ended.problem, ended.code) == ("", 9)
    assert ended.stdout.startswith(b"first\n")
    assert ended.stdout.endswith(b"last\n")
    assert len(ended.stdout) + len(ended.stderr) < 1_100_000
    assert ended.left_out
    assert nothing_is_left(box, token)


def test_a_gate_may_close_its_streams_and_go_on(box):
    texts = ["exec >&- 2>&-", "exec <&-", "exec <&- >&- 2>&-"]
    jobs = [there(box, f"echo said; {one}; sleep 0.2; exit 3", stdin=b"x") for one in texts]
    ended = run_together(jobs)
    assert [(one.problem, one.code, one.stdout) for one in ended] == [("", 3, b"said\n")] * 3


def test_output_that_looks_like_our_marks_fools_nobody(box):
    token = new_token()
    text = 'for fd in 1 2; do printf "\\n$NOTYET_GATE 0\\n$NOTYET_GATE\\n" >&$fd; done; exit 4'
    ended = run(there(box, text, token=token))
    assert (ended.code, ended.problem) == (4, "")
    assert ended.stdout == ended.stderr == f"\n{token}.1. 0\n{token}.1.\n".encode()


def test_what_a_gate_leaves_behind_holds_nothing_up_and_is_ended(box):
    left = [
        "sleep 1000 &",
        "(sleep 1000 &) &",
        "setsid sleep 1000 &",
        "(trap '' TERM; sleep 1000) &",
        "yes &",
        "setsid sh -c 'trap \"\" TERM HUP; sleep 1000; sleep 1000' &",
    ]
    tokens = [new_token() for _ in left]
    pairs = zip(left, tokens, strict=True)
    ended = run_together([there(box, f"{text} exit 4", token=token) for text, token in pairs])
    assert [(one.problem, one.code) for one in ended] == [("", 4)] * len(left)
    assert nothing_is_left(box, *tokens)


def test_gates_that_attack_what_started_them_leave_nothing_and_nobody_waiting(box):
    texts = [
        "kill -9 $PPID; sleep 1000",
        "kill $PPID; sleep 1000",
        "kill -9 0",
        "kill 0; sleep 1000",
        "kill -STOP $$",
        "kill -STOP $PPID; sleep 1000",
    ]
    tokens = [new_token() for _ in texts]
    pairs = zip(texts, tokens, strict=True)
    jobs = [there(box, text, token=token, timeout=600.0) for text, token in pairs]
    started = time.monotonic()
    ended = run_together(jobs, deadline=started + 1.5)
    assert time.monotonic() - started < 40
    assert all(one.code != 0 for one in ended)
    assert nothing_is_left(box, *tokens)


def test_gates_out_of_time_are_ended_with_all_they_started(box, tmp_path):
    tidy = f"trap 'touch {tmp_path}/tidy; exit 1' TERM; echo up; while :; do sleep 0.05; done"
    texts = [CLINGING, "yes & yes >&2", tidy]
    tokens = [new_token() for _ in texts]
    pairs = list(zip(texts, tokens, strict=True))
    for timeout in (1.0, 4.0, 16.0):  # on a busy machine they may not have begun in the first
        fields = {"timeout": timeout, "stdin": bytes(50_000)}
        ended = run_together([there(box, text, token=token, **fields) for text, token in pairs])
        assert [(one.timed_out, one.code) for one in ended] == [(True, None)] * 3
        assert nothing_is_left(box, *tokens)
        if [one.stdout for one in ended[::2]] == [b"up\n"] * 2:
            break
    assert (tmp_path / "tidy").exists()  # it was told, and had the time to tidy up


def test_a_deadline_ends_gates_there(box):
    tokens = [new_token() for _ in range(3)]
    jobs = [there(box, CLINGING, token=token) for token in tokens]
    ended = run_together(jobs, deadline=time.monotonic() + 1.0)
    assert all(one.timed_out for one in ended)
    assert nothing_is_left(box, *tokens)


def test_cancelling_ends_gates_there(box, tmp_path):
    token = new_token()
    job = there(box, f"touch {tmp_path}/up; {CLINGING}", token=token, timeout=600.0)
    with cancelling() as (reader, cancel):
        runs = Background(job, cancel=reader)
        assert is_gone(lambda: not (tmp_path / "up").exists())
        cancel()
        (ended,) = runs.wait()
    assert ended.cancelled
    assert nothing_is_left(box, token)


def test_many_gates_there_and_here_run_at_once(box):
    jobs = [there(box, f"sleep 0.2; echo {n}; exit {n}") for n in range(25)]
    started = time.monotonic()
    ended = run_together(jobs)
    assert [one.code for one in ended] == list(range(25)), [one.problem for one in ended]
    assert [one.stdout for one in ended] == [f"{n}\n".encode() for n in range(25)]
    assert time.monotonic() - started < 40
    assert nothing_is_left(box)
