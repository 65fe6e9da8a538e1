"""Turns of `codex exec`: how often an agent is sent back, with which words, and what ends it."""

import json

import pytest

from clients.codex.driver import BYPASS
from clients.model import responses
from clients.model.script import Say, Spawn

FAILING = '[gates.bad]\nrun = "echo it is broken; exit 1"\n'
ONCE = '[gates.once]\nrun = "test -e fixed || { touch fixed; exit 1; }"\n'


def answers(count):
    return [Say(f"answer {n}") for n in range(count)]


@pytest.mark.rule("B1")
def test_codex_has_no_cap_of_its_own_and_ours_ends_it_with_the_answer_delivered(codex):
    codex.gates("[limits]\nmax_blocks = 12\nstuck_after = 0\n" + FAILING)
    codex.install()
    ran = codex.run(answers(13))
    assert (ran.code, ran.text) == (0, "answer 12")
    assert codex.outcomes() == ["blocked"] * 12 + ["capped"]
    assert "send-back 12 of 12" in ran.told()[-1]
    assert ran.err.count("hook: Stop Blocked") == 12
    assert ran.err.count("hook: Stop Completed") == 1


@pytest.mark.rule("B4")
def test_a_resumed_session_has_a_new_turn_with_a_full_count(codex):
    codex.gates("[limits]\nmax_blocks = 2\nstuck_after = 0\n" + FAILING)
    codex.install()
    first = codex.run([Say("a"), Say("b"), Say("c")])
    again = codex.run([Say("d"), Say("e"), Say("f")], args=("resume", "--last"))
    assert (first.text, again.text) == ("c", "f")
    assert codex.outcomes() == ["blocked", "blocked", "capped"] * 2
    assert [stop.turn for stop in codex.stops()] == [1, 1, 1, 2, 2, 2]
    assert len({stop.session_id for stop in codex.stops()}) == 1
    # What the first turn was told is still in the model's history.
    assert len(responses.prompts(again.model.asked()[0].texts)) == 2


@pytest.mark.parametrize("letter", ["x", "\u20ac", "\U0001f600", "<", "&"])
def test_a_huge_reason_arrives_in_part_and_is_never_spilled_to_a_file(codex, letter):
    reply = codex.folder / "reply.json"
    said = {"decision": "block", "reason": f"BEGIN{letter * 60_000}END"}
    reply.write_text(json.dumps(said, ensure_ascii=False))
    hook = {"type": "command", "command": f"cat {reply}"}
    settings = codex.project / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}}))
    codex.gates('[limits]\nmax_blocks = 1\n[read]\nhosts = ["claude"]\n')
    codex.install()
    ran = codex.run([Say("a"), Say("b")])
    (told,) = responses.prompts(ran.model.asked()[1].news)
    assert told.startswith(f"BEGIN{letter * 100}")
    assert told.endswith(f"{letter * 100}END")
    assert 8_000 < len(told.encode()) <= 9_000
    assert not (codex.tmp / "hook_outputs").exists()
    assert codex.outcomes() == ["blocked", "capped"]


def test_a_reason_of_another_hook_is_spilled_so_the_limit_is_real(codex):
    reply = codex.folder / "reply.json"
    reply.write_text(json.dumps({"decision": "block", "reason": "x" * 10_100}))
    seen = codex.folder / "seen"
    command = f"test -e {seen} || cat {reply}; touch {seen}"
    hook = {"type": "command", "command": command}
    codex.hooks.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}}))
    codex.ungated = {"main"}
    ran = codex.run([Say("a"), Say("b")], args=(BYPASS,))
    assert "Full hook output saved" in ran.told()[-1]
    spilled = [path for path in (codex.tmp / "hook_outputs").rglob("*") if path.is_file()]
    assert [path.read_text() for path in spilled] == ["x" * 10_100]


@pytest.mark.rule("B12")
@pytest.mark.parametrize("seconds", [0, 0.5])
def test_a_hook_that_is_registered_twice_counts_once(codex, seconds):
    codex.gates(
        "[limits]\nmax_blocks = 3\nstuck_after = 0\n"
        f'[gates.bad]\nrun = "echo ran >> ran; sleep {seconds}; exit 1"\n'
    )
    codex.install()
    known = json.loads(codex.hooks.read_text())
    known["hooks"]["Stop"] *= 2
    codex.hooks.write_text(json.dumps(known))
    ran = codex.run(answers(4), args=(BYPASS,))
    assert ran.text == "answer 3"
    assert codex.outcomes() == ["blocked"] * 3 + ["capped"]
    assert [stop.count for stop in codex.stops()] == [1, 2, 3, 3]
    assert (codex.project / "ran").read_text().count("ran") == 4
    first, second = responses.prompts(ran.model.asked()[1].news)  # Codex tells what both said
    assert first == second


@pytest.mark.rule("B12")
def test_a_hook_of_the_user_and_one_of_the_project_count_once(codex):
    codex.gates("[limits]\nmax_blocks = 2\nstuck_after = 0\n" + FAILING)
    codex.install()
    codex.install("--project")
    ran = codex.run([Say("a"), Say("b"), Say("c")], PATH=codex.path_with_notyet())
    assert ran.text == "c"
    assert ran.err.count("hook: Stop Blocked") == 4
    assert codex.outcomes() == ["blocked", "blocked", "capped"]


@pytest.mark.rule("F13")
def test_agents_are_told_of_their_gates_before_their_first_request(codex):
    codex.gates(
        "[start]\ntell = true\n"
        '[gates.mine]\nrun = "true"\n[gates.yours]\nrun = "true"\nfor = "subagents"\n'
    )
    codex.install()
    kid = Spawn("[actor: kid] Look.")
    ran = codex.run({"main": [kid, Say("done")], "kid": [Say("seen")]})

    def briefings(actor):
        said = responses.told_by_program(ran.model.asked(actor)[0])
        return [text for text in said if "notyet" in text]

    (mine,), (yours,) = briefings("main"), briefings("kid")
    assert "- mine: true" in mine
    assert "- yours: true" in yours
    assert "yours" not in mine
    assert "mine" not in yours
    assert codex.outcomes() == ["passed", "passed"]
