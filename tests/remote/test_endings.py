"""How a gate there ends, and what it does on its way, is told as for one that runs here."""

import time

import pytest

from remote_runs import (
    CLINGING,
    Background,
    cancelling,
    new_token,
    nothing_is_left,
    run_together,
    there,
)
from sshd import is_gone

pytestmark = pytest.mark.rule("M1", "M2")


@pytest.fixture
def box(warm_box):
    return warm_box


def test_output_with_and_without_an_end_of_line_comes_back_as_it_is(box):
    texts = [b"", b"said", b"said\n", b"\nsaid\n\n", b"\n", b"a\\b\xff\r\n\x1b[31m"]
    shown = ["".join(f"\\{byte:03o}" for byte in text) for text in texts]
    jobs = [there(box, f"printf '{text}'; printf '{text}' >&2") for text in shown]
    ended = run_together(jobs)
    assert [(one.stdout, one.stderr) for one in ended] == [(text, text) for text in texts]


def test_a_gate_may_close_its_streams_and_go_on(box):
    texts = ["exec >&- 2>&-", "exec <&-", "exec <&- >&- 2>&-"]
    jobs = [there(box, f"echo said; {one}; sleep 0.2; exit 3", stdin=b"x") for one in texts]
    ended = run_together(jobs)
    assert [(one.problem, one.code, one.stdout) for one in ended] == [("", 3, b"said\n")] * 3


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


def test_gates_that_attack_what_started_them_leave_nothing_running_or_waiting(box):
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
