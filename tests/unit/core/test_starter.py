"""Starters that could never be asked are refused."""

import pytest

from notyet.core.gate import Command, Function, Starter


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"check": print}, "check is a Function or Command, not builtin"),
        ({"check": Command(script="x")}, "a start hook speaks claude or codex, not 'notyet'"),
        ({"scope": "main"}, "scope is one of agent, subagent, not 'main'"),
        ({"kind": "regex"}, "kind is one of glob, claude, codex, not 'regex'"),
        ({"matcher": "(", "kind": "claude"}, "is not a regular expression"),
        ({"timeout": 0}, "timeout is a number of seconds above 0"),
    ],
)
def test_a_starter_that_cannot_be_asked_is_refused(fields, said):
    with pytest.raises((TypeError, ValueError), match=said):
        Starter(**({"name": "s", "check": Function(print)} | fields))


def test_no_matcher_at_all_is_right_for_every_kind():
    for kind in ("glob", "claude", "codex"):
        assert Starter(name="s", check=Function(print), matcher="", kind=kind).matcher == ""
