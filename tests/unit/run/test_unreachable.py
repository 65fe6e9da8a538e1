"""A machine that cannot be reached is waited for once, and not by everybody who needs it."""

import time

import pytest

from commands import run, run_together
from notyet.run import ssh as unreachable
from remote_runs import there

pytestmark = pytest.mark.rule("M2", "M3")


@pytest.fixture
def silent(box, tmp_path, monkeypatch):
    """Return where each try to connect leaves a line; nobody ever answers."""
    tries = tmp_path / "tries"
    tries.write_text("")
    config = tmp_path / "silent"
    config.write_text(f"Host box\n  ProxyCommand sh -c 'echo >> {tries}; exec sleep 100'\n")
    monkeypatch.setenv("NOTYET_SSH_CONFIG", str(config))
    monkeypatch.setattr(unreachable, "_LIFE", 600.0)  # however slow this machine is
    return tries


def count(tries):
    return len(tries.read_text().splitlines())


def test_who_comes_next_hears_the_same_words_without_waiting(box, silent):
    first = run(there(box, "exit 2", timeout=0.8))
    assert "there was no connection to box within 0." in first.problem
    again = run_together([there(box, "exit 2", timeout=seconds) for seconds in (0.1, 1.5)])
    assert [ended.problem for ended in again] == [first.problem] * 2
    assert not any(ended.timed_out for ended in again)
    assert count(silent) == 1


def test_who_has_much_more_time_tries_it(box, silent):
    assert run(there(box, "exit 2", timeout=0.6)).problem
    assert run(there(box, "exit 2", timeout=1.5)).problem
    assert count(silent) == 2


def test_it_is_tried_again_soon(box, silent, monkeypatch):
    monkeypatch.setattr(unreachable, "_LIFE", 0.0)
    for _ in range(2):
        assert run(there(box, "exit 2", timeout=0.6)).problem
    assert count(silent) == 2


def test_what_fails_at_once_may_be_tried_at_once():
    unreachable.note_lost("quick", "no", patience=20.0, seconds=0.1)
    assert unreachable.why_lost("quick", 20.0) == ""


def test_a_connection_takes_at_most_half_of_the_time_that_is_left(box, silent):
    begun = time.monotonic()
    jobs = [there(box, "exit 2", timeout=seconds) for seconds in (50.0, None)]
    for one in run_together(jobs, deadline=begun + 4.0):
        assert not one.timed_out  # so that it is a problem of its own, and not of the deadline
        assert "box" in one.problem
    assert count(silent) == 1
