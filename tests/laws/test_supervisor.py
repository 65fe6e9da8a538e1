"""Random lives of supervised tasks, against a model of the rules.

A life is a list of numbers; each chooses one of the things that can happen next. One that breaks
a rule is cut down to the numbers that matter before it is shown.
"""

import os
import random

import pytest

from lives.play import play

LENGTH = 80
LIVES = 50 if os.environ.get("NOTYET_LAWS") == "deep" else 6  # for each of the tests below


def life(seed):
    chance = random.Random(seed)
    return [chance.randrange(1 << 24) for _ in range(LENGTH)]


def breaks(choices):
    try:
        play(choices)
    except AssertionError:
        return True
    return False


def cut_down(choices):
    """Leave out what can be left out while the rule is still broken."""
    size = len(choices) // 2
    while size:
        start = 0
        while start < len(choices):
            fewer = choices[:start] + choices[start + size :]
            if breaks(fewer):
                choices = fewer
            else:
                start += size
        size //= 2
    return choices


@pytest.mark.rule("K5", "K6", "K7", "K9", "C3", "C4", "C9")
@pytest.mark.parametrize("part", range(4))
def test_whatever_happens_in_whatever_order_the_ledger_says_what_the_rules_say(part):
    steps = 0
    for number in range(LIVES):
        seed = part * 10_000 + number
        choices = life(seed)
        try:
            steps += play(choices)
        except AssertionError as error:
            error.add_note(f"seed {seed}, cut down: play({cut_down(choices)})")
            raise
    assert steps > LIVES * LENGTH / 3
