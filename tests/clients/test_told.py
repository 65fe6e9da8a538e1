"""What users and agents are told of work that did not pass."""

import pytest

from clients.model.script import Say, Spawn

pytestmark = pytest.mark.rule("N3")

LIMIT = "[limits]\nmax_blocks = 1\nstuck_after = 0\n"
NEVER = '[gates.never]\nrun = "exit 1"\nwhen = "always"\n'
FAILS = "NOT PASSED: never failed (notyet log 2)"
SCRIPT = {
    "main": [Spawn("[actor: kid] Write it."), Say("It is written.")],
    "kid": [Say("Done."), Say("Done; never still fails.")],
}


def test_a_subagent_that_did_not_pass_is_asked_to_say_so_and_named_at_the_next_main_stop(client):
    client.gates(LIMIT + NEVER + 'for = "subagents"\n')
    client.install()
    client.ungated = {"main"}
    ran = client.run(SCRIPT)
    assert client.outcomes() == ["blocked", "capped"]
    (prompt,) = client.WIRE.prompts(ran.model.asked("kid")[1].news)
    assert "name it in your report" in prompt
    assert any("never still fails" in text for text in ran.model.asked()[-1].results)
    assert client.tells_user(ran, FAILS)


def test_the_server_of_codex_names_a_subagent_that_did_not_pass_at_the_next_main_stop(codex):
    codex.gates(LIMIT + NEVER + 'for = "subagents"\n')
    codex.install()
    with codex.serving(SCRIPT) as (server, thread, _):
        server.ended(server.begin(thread, "do it"))
        (_, status, entries) = server.hook_runs("stop")[-1]
    assert status == "completed"
    ((kind, note),) = entries
    assert kind == "warning"
    assert note.startswith("notyet: subagent ")
    assert note.endswith(FAILS)
    codex.ungated = {"main"}
    assert codex.outcomes() == ["blocked", "capped"]


@pytest.mark.rule("N2")
def test_the_last_send_back_asks_a_main_agent_to_name_what_still_fails(client):
    client.gates(LIMIT + NEVER)
    client.install()
    ran = client.run([Say("Done."), Say("Done, but never still fails.")])
    assert client.outcomes() == ["blocked", "capped"]
    (prompt,) = client.WIRE.prompts(ran.model.asked()[1].news)
    assert "name it in your final message" in prompt
    assert ran.text == "Done, but never still fails."
    assert client.tells_user(ran, "(notyet log 2)")
