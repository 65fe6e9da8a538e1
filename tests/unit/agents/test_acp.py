"""`AcpSession`: a supervised conversation with an agent that speaks ACP."""

import asyncio
import os
import sys

import pytest

import acp_editor
from notyet.agents import open_session, reopen
from notyet.errors import Refused, SendError
from notyet.testing import session_conformance
from support import wait_for

AGENT = acp_editor.AGENT


def session(tmp_path, *options, permit=None, **more):
    made = open_session("acp", cwd=str(tmp_path), args=[sys.executable, AGENT, *options], **more)
    if permit is not None:
        made.permit = permit
    return made


def run(made, *prompts):
    """Send prompts one after another; return their turns."""

    async def work():
        try:
            return [await made.send(text, f"key-{at}") for at, text in enumerate(prompts)]
        finally:
            await made.close()

    return asyncio.run(work())


def test_it_keeps_the_promises_of_a_session(tmp_path):
    session_conformance(
        lambda: session(tmp_path),
        slow=lambda: session(tmp_path, "--slow-first"),
        refusing=lambda: open_session("acp", cwd=str(tmp_path), args=["no-such-agent"]),
        reopen=reopen,
    )


def test_a_turn_has_its_words_its_tools_and_its_tokens(tmp_path):
    first, second = run(session(tmp_path), "STEPS", "go on")
    assert (first.text, first.tools, first.tool_calls) == ("prompts=1", ("Run tests",), 1)
    assert (first.usage.input, first.usage.output) == (10, 2)
    assert (second.text, second.usage.input) == ("prompts=2", 10)


@pytest.mark.parametrize(("allowed", "outcome"), [(True, "selected"), (False, "cancelled")])
def test_a_request_for_permission_is_answered_by_the_policy(tmp_path, allowed, outcome):
    asked = []

    async def permit(what):
        asked.append(what)
        return allowed

    (turn,) = run(session(tmp_path, permit=permit), "ASK")
    assert asked == ["write"]
    assert f'"outcome": "{outcome}"' in turn.text


def test_without_a_policy_permission_is_denied(tmp_path):
    (turn,) = run(session(tmp_path), "ASK")
    assert '"outcome": "cancelled"' in turn.text


@pytest.mark.parametrize(
    ("prompt", "error"),
    [
        ("FAIL", "the model failed"),
        ("CRASH", "its program ended (exit code 7)"),
        ("DEAF", "its program ended (signal 9)"),
        ("ODD", 'it answered with the unknown id "another-id"'),
        ("SILENT", "the agent ended its turn without a word or a tool call"),
    ],
)
def test_what_goes_wrong_in_a_turn_is_its_error(tmp_path, prompt, error):
    (turn,) = run(session(tmp_path), prompt)
    assert (turn.stop_reason, turn.error) == ("error", error)


def test_a_turn_without_tokens_where_they_were_reported_is_an_error(tmp_path):
    turns = run(session(tmp_path), "go", "NOUSAGE")
    assert [turn.stop_reason for turn in turns] == ["end_turn", "error"]


def test_it_signs_in_by_an_api_key_if_the_agent_wants_that(tmp_path):
    (turn,) = run(session(tmp_path, "--sign-in"), "go")
    assert turn.stop_reason == "end_turn"


def test_a_program_that_dies_between_turns_is_started_again(tmp_path):
    made = session(tmp_path)

    async def work():
        await made.send("go", "k1")
        await made._client.program.kill()
        await made._client.ended
        turn = await made.send("go on", "k2")
        await made.close()
        return turn

    assert asyncio.run(work()).stop_reason == "end_turn"


def test_a_conversation_that_cannot_be_loaded_is_refused_in_words(tmp_path):
    made = session(tmp_path, "--no-load", session="s1")
    with pytest.raises(SendError, match="cannot go on with an earlier session"):
        run(made, "go on")


def test_closing_ends_the_program(tmp_path):
    made = session(tmp_path)
    run(made, "go")
    pid = int(made.id.rpartition("-")[2])
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"))


def test_a_session_needs_a_command(tmp_path):
    with pytest.raises(Refused, match="name the agent's command"):
        open_session("acp", cwd=str(tmp_path))


def test_a_command_with_a_secret_is_not_stored(tmp_path):
    made = session(tmp_path, "--api-key=sk-secret")
    assert "sk-secret" not in str(made.ref())
