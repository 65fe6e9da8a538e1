"""Ending in order, whoever ends us, and how often."""

import os
import signal

import pytest

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
def test_what_is_ignored_stays_ignored(number):
    signal.signal(number, signal.SIG_IGN)
    with ended_in_order():
        assert signal.getsignal(number) is signal.SIG_IGN
        tell(number)
    assert signal.getsignal(number) is signal.SIG_IGN
