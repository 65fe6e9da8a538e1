"""Starting or continuing: when an agent says that the other one is right, that is done once."""

import pytest

from notyet.agents import open_session, reopen
from notyet.errors import Refused, SendError
from notyet.hosts.known_programs import headless

# What each says of a conversation that it has already, and of one that it does not have.
TAKEN = {
    "claude": "Error: Session ID 1 is already in use.",
    "gemini": "Session 1 already exists.",
    "qwen": "Error: Session Id 1 is already in use.",
}
UNKNOWN = [
    ("claude", "No conversation found with session ID: 1"),
    ("gemini", "Error resuming session: No previous sessions found for this project."),
    ("gemini", 'Error resuming session: Invalid session identifier "1".'),
    ("qwen", "No saved session found with ID 1"),
    ("goose", "Error: No session found with name 1"),  # which it begins as often as it is told to
]
ANSWERS = {
    "claude": '{"type": "result", "result": "done"}',
    "gemini": '{"type": "message", "role": "assistant", "content": "done"}',
    "qwen": '{"type": "result", "result": "done"}',
    "goose": '{"type": "message", "message": {"role": "assistant", "content": '
    '[{"type": "text", "text": "done"}]}}',
}
FINISHED = {
    "gemini": '{"type": "result", "status": "success"}',
    "goose": '{"type": "complete"}',
}
START = "*--session-id*"


def agent(tmp_path, name, *, refuses, says, where=">&2"):
    """A program that refuses the forms that match, notes how it was called, and answers else."""
    path = tmp_path / name
    finished = FINISHED.get(name, "")
    path.write_text(
        f"""#!/bin/sh
echo "$*" >> calls; cat >> prompts
case "$*" in {refuses}) echo '{says}' {where}; exit 1;; esac
echo '{ANSWERS[name]}'; echo '{finished}'
"""
    )
    path.chmod(0o755)
    return open_session(name, cwd=str(tmp_path), program=str(path))


def calls(tmp_path):
    lines = (tmp_path / "calls").read_text().splitlines()
    return ["resume" if "resume" in line or " -r " in line else "start" for line in lines]


def test_these_are_all_that_choose_the_name_of_a_conversation():
    rows = {
        name for name, (_, row) in headless().items() if row.chooses and row.start != row.resume
    }
    assert rows == {name for name, _ in UNKNOWN}
    assert {name for name in rows if headless()[name][1].taken} == set(TAKEN)


@pytest.mark.parametrize("name", TAKEN)
def test_a_conversation_that_the_agent_has_already_is_continued(name, tmp_path, run):
    session = agent(tmp_path, name, refuses=START, says=TAKEN[name])
    turn = run(session.send("x", "k"))
    assert (turn.text, turn.stop_reason) == ("done", "end_turn")
    assert calls(tmp_path) == ["start", "resume"]
    assert (tmp_path / "prompts").read_text() == "xx"
    assert session.knows("k") is True


@pytest.mark.parametrize(("name", "says"), UNKNOWN)
def test_a_conversation_that_the_agent_does_not_have_is_begun(name, says, tmp_path, run):
    begun = agent(tmp_path, name, refuses="*resume*|*' -r '*", says=says)
    session = reopen(begun.ref() | {"begun": True})
    assert run(session.send("x", "k")).text == "done"
    assert calls(tmp_path) == ["resume", "start"]
    assert session.id == begun.id


def test_what_an_agent_says_in_its_output_counts_as_well(tmp_path, run):
    says = '{"type": "result", "is_error": true, "errors": ["No conversation found: 1"]}'
    begun = agent(tmp_path, "claude", refuses="*resume*", says=says, where="")
    session = reopen(begun.ref() | {"begun": True})
    assert run(session.send("x", "k")).text == "done"
    assert calls(tmp_path) == ["resume", "start"]


def test_the_other_form_is_tried_once(tmp_path, run):
    says = "Session ID 1 is already in use. No conversation found"
    session = agent(tmp_path, "claude", refuses="*", says=says)
    with pytest.raises(SendError, match="does not have the conversation"):
        run(session.send("x", "k"))
    assert calls(tmp_path) == ["start", "resume"]
    assert session.knows("k") is False


@pytest.mark.parametrize("says", ["Invalid API key", ""])
def test_another_failure_is_not_tried_again(says, tmp_path, run):
    session = agent(tmp_path, "claude", refuses="*", says=says)
    assert run(session.send("x", "k")).stop_reason == "error"
    assert calls(tmp_path) == ["start"]


def test_a_prompt_that_was_accepted_is_never_sent_in_the_other_form(tmp_path, run):
    accepted = '{"type": "system", "subtype": "init"}'
    says = f"{accepted}'; echo 'the name is already in use' >&2; echo '"
    session = agent(tmp_path, "claude", refuses="*", says=says, where="")
    turn = run(session.send("x", "k"))
    assert turn.stop_reason == "error"
    assert calls(tmp_path) == ["start"]
    assert session.knows("k") is True


@pytest.mark.parametrize("name", ["01a1deb1", "nonsense", "../../x", "a b"])
def test_codex_is_not_given_a_name_that_would_begin_another_conversation(name, tmp_path):
    with pytest.raises(Refused, match=f"codex does not have the conversation {name}"):
        open_session("codex", cwd=str(tmp_path), session=name, folder=str(tmp_path))
