"""What a ref keeps, what it does not, and refs that another version wrote."""

import json

import pytest

from notyet.agents import reopen
from notyet.cli.recovery import resume_command
from notyet.errors import Refused

SECRETS = [
    ("--api-key", "s3cret"),
    ("--Token=s3cret",),
    ("--settings", '{"env": {"ANTHROPIC_AUTH_TOKEN": "s3cret"}}'),
    ("-c", "model.headers={AUTHORIZATION='s3cret'}"),
    ("--model", "opus", "--password", "s3cret"),
    ("--credentials", "s3cret"),
    ("--client-secret", "s3cret"),
]


@pytest.mark.parametrize("args", SECRETS)
def test_arguments_that_may_hold_a_secret_are_not_kept(args, fake_claude, tmp_path):
    ref = fake_claude(args=args).ref()
    assert ref["args"] is None
    assert "s3cret" not in json.dumps(ref)
    assert reopen(ref).ref() == ref
    again = resume_command(ref, "s", str(tmp_path))
    assert again.endswith("'go on' -- ...")


def test_arguments_that_hold_none_are_kept_and_shown(fake_claude, tmp_path):
    ref = fake_claude(args=("--model", "big one")).ref()
    assert ref["args"] == ["--model", "big one"]
    assert resume_command(ref, "s", str(tmp_path)).endswith("'go on' -- --model 'big one'")
    assert resume_command(fake_claude().ref(), "s", str(tmp_path)).endswith("'go on'")


@pytest.mark.parametrize("name", ["cwd", "program", "transcript"])
@pytest.mark.parametrize("value", [None, 5, ""])
def test_a_ref_without_what_a_session_needs_is_refused(name, value, fake_claude):
    with pytest.raises(Refused, match=f"{name} must be a string, not"):
        reopen(fake_claude().ref() | {name: value})
