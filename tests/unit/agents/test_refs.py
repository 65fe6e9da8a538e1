"""What a ref keeps, what it does not, and refs that another version wrote."""

import json
import os
import shlex

import pytest

from notyet.agents import open_session, reopen
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


def test_the_arguments_of_a_reopened_session_are_given_to_its_program(fake_claude, run, tmp_path):
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho "$@" > words\n')
    program.chmod(0o755)
    session = fake_claude(program=str(program), args=("--mine", "x"))
    run(reopen(session.ref()).send("x", "k"))
    assert (tmp_path / "words").read_text().startswith("--mine x -p")


COMPLETED = {"type": "turn.completed", "usage": {"input_tokens": 9, "output_tokens": 4}}


def codex(tmp_path):
    program = tmp_path / "codex"
    program.write_text(f"#!/bin/sh\necho {shlex.quote(json.dumps(COMPLETED))}\n")
    program.chmod(0o755)
    return open_session("codex", cwd=str(tmp_path), program=str(program))


@pytest.mark.parametrize(
    "totals",
    [
        *({"input": "a"}, {"input": None}, {"input": [1]}, {"input": 1.5}, {"input": -1}),
        *({"input": True}, {"input": 10**400}, [1], "x", 1, None),
    ],
)
def test_odd_totals_are_unknown_and_nothing_is_raised_when_the_agent_has_run(totals, tmp_path, run):
    session = reopen(codex(tmp_path).ref() | {"totals": totals, "session": "s", "begun": True})
    assert session.ref()["totals"] is None
    turn = run(session.send("x", "k"))
    assert (turn.stop_reason, turn.usage.total) == ("end_turn", 0)


def test_totals_of_another_kind_are_left_out(tmp_path, run):
    session = reopen(codex(tmp_path).ref() | {"totals": {"input": 4, "reasoning": 1}})
    assert run(session.send("x", "k")).usage.total == 9


@pytest.mark.parametrize(
    "odd",
    [
        *({"pid": "1", "started": 2}, {"pid": True}, {"pid": -3, "started": "1"}, {"pid": None}),
        *({"pid": 2**70, "started": "1"}, {"mark": 7, "pid": 5}, {"session": 5, "begun": True}),
        *({"session": None, "begun": True}, {"args": 5}, {"begun": "x"}),
    ],
)
def test_odd_values_of_a_ref_count_as_unknown(odd, tmp_path, run):
    session = reopen(codex(tmp_path).ref() | odd)
    run(session.abort())
    assert run(session.send("x", "k")).stop_reason == "end_turn"


def test_a_conversation_without_a_name_is_begun_and_not_continued(fake_claude, run):
    session = reopen(fake_claude().ref() | {"session": None, "begun": True})
    assert json.loads(run(session.send("x", "k")).text)["prompts"] == 1
    assert session.id


@pytest.mark.parametrize("name", ["cwd", "program", "transcript"])
@pytest.mark.parametrize("value", [None, 5, ""])
def test_a_ref_without_what_a_session_needs_is_refused(name, value, fake_claude):
    with pytest.raises(Refused, match=f"{name} must be a string, not"):
        reopen(fake_claude().ref() | {name: value})


def test_a_ref_needs_no_home(fake_claude, monkeypatch):
    ref = fake_claude().ref()
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "")
    assert reopen(ref).transcript() == ref["transcript"]
    assert os.path.isabs(ref["transcript"])
