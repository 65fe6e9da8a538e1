"""Ending in order, whoever ends us, and how often."""

import os
import signal
from contextlib import suppress

import pytest

from notyet.cli import signals
from notyet.cli.signals import ended_in_order

ENDS = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: SystemExit, signal.SIGHUP: SystemExit}


@pytest.fixture(autouse=True)
def handlers():
    """Who was told to end hears nothing more; the tests go on."""
    before = {number: signal.getsignal(number) for number in ENDS}
    yield before
    for number, handler in before.items():
        signal.signal(number, handler)


def tell(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", ENDS)
def test_a_signal_ends_the_block_and_what_is_last_is_done(number):
    done = []

    def block():
        with ended_in_order(lambda: done.append("last")):
            tell(number)
            done.append("never")

    with pytest.raises(ENDS[number]) as caught:
        block()
    assert done == ["last"]
    if number != signal.SIGINT:
        assert caught.value.code == 128 + number


@pytest.mark.parametrize("again", ENDS)
@pytest.mark.parametrize("number", ENDS)
def test_who_says_it_again_breaks_nothing_off(number, again):
    done = []

    def last():
        tell(again)
        done.append("last")

    def block():
        with ended_in_order(last):
            try:
                tell(number)
            finally:
                tell(again)
                done.append("cleaned up")

    with pytest.raises(ENDS[number]):
        block()
    tell(again)  # it is ending, whoever says so
    assert done == ["cleaned up", "last"]


@pytest.mark.parametrize("number", ENDS)
def test_a_signal_at_the_very_end_is_heard_when_all_is_done(number):
    done = []

    def last():
        tell(number)
        done.append("last")

    with pytest.raises(ENDS[number]), ended_in_order(last):
        done.append("block")
    assert done == ["block", "last"]


@pytest.mark.parametrize("number", ENDS)
def test_what_is_ignored_stays_ignored(number):
    signal.signal(number, signal.SIG_IGN)
    with ended_in_order():
        assert signal.getsignal(number) is signal.SIG_IGN
        tell(number)
    assert signal.getsignal(number) is signal.SIG_IGN


def test_nothing_is_different_afterwards(handlers):
    with ended_in_order():
        assert signal.getsignal(signal.SIGTERM) is not handlers[signal.SIGTERM]
    assert {number: signal.getsignal(number) for number in ENDS} == handlers


def test_a_signal_that_was_lost_can_be_given_again_later(monkeypatch):
    monkeypatch.setattr(signals, "_AGAIN", 0.0)

    def block():
        with ended_in_order():
            with suppress(SystemExit):  # as Python does in a finalizer
                tell(signal.SIGTERM)
            tell(signal.SIGTERM)
            pytest.fail("it went on")

    with pytest.raises(SystemExit):
        block()
