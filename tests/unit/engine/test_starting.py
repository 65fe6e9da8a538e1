"""Handlers and hooks that may add words for an agent before its first request."""

import asyncio
import json

import pytest

from notyet import Block, Command, Engine, Function, Observer, replace
from notyet.core.event import StartEvent
from notyet.core.gate import Source, Starter
from support import gate, stop

MAIN = StartEvent(session_id="s1")
CHILD = StartEvent(scope="subagent", session_id="c1", agent_id="a1", agent_type="coder")


def begin(engine, event=MAIN):
    return asyncio.run(engine.start(event))


def hook(script, speaks="claude", **fields):
    fields = {"name": script[:20], "kind": speaks} | fields
    return Starter(check=Command(script=script, speaks=speaks), **fields)


def hooked(*starters):
    warnings = []
    return Engine(starters=starters, warn=warnings.append), warnings


@pytest.mark.rule("C8")
def test_a_session_and_a_subagent_have_handlers_of_their_own():
    told = []
    engine = Engine()
    for name in ("session_start", "subagent_start"):
        engine.on(name, lambda event, ctx, name=name: told.append((name, event, ctx)))
    assert begin(engine) == begin(engine, CHILD) == ""
    (first, session, ctx), (second, child, _) = told
    assert (first, second) == ("session_start", "subagent_start")
    assert session.to_dict() == {"sessionId": "s1", "source": "startup"}
    assert (ctx.host, ctx.sessionId, ctx.cwd) == ("embedded", "s1", "")
    assert child.to_dict() == {"sessionId": "c1", "agentId": "a1", "agentType": "coder"}


@pytest.mark.rule("F13-codex", "K14")
def test_what_handlers_return_is_added_in_order_of_registration():
    async def later(event, ctx):
        await asyncio.sleep(0.02)
        return {"additionalContext": " two "}

    engine, warnings = hooked()
    engine.on("session_start", lambda event, ctx: "one")
    engine.on("session_start", later)
    engine.on("session_start", lambda event, ctx: {"additional_context": "three"})
    engine.on("session_start", lambda event, ctx: {"other": 1})
    engine.on("session_start", lambda event, ctx: Block("no"))
    engine.on("subagent_start", lambda event, ctx: "not for you")
    assert begin(engine) == "one\n\ntwo\n\nthree"
    assert warnings == []


def test_a_handler_that_breaks_is_told_of_and_the_agent_starts_all_the_same():
    def fails(event, ctx):
        raise ValueError("no words")

    engine, warnings = hooked()
    engine.on("session_start", fails)
    engine.on("session_start", lambda event, ctx: {"additional_context": 3})
    engine.on("session_start", lambda event, ctx: "\x1b[1mfine\x1b[0m")
    assert begin(engine) == "fine"
    assert "fails crashed: ValueError: no words (it adds nothing)" in warnings[0]
    assert "additional_context is text, not int; ignored" in warnings[1]


def test_a_native_starter_is_called_with_the_event_alone():
    seen = []
    engine, _ = hooked(Starter(name="n", check=Function(lambda event: seen.append(event) or "x")))
    assert begin(engine) == "x"
    assert seen == [MAIN]


@pytest.mark.rule("F13-claude", "F13-codex")
@pytest.mark.parametrize("speaks", ["claude", "codex"])
def test_hooks_get_their_hosts_payload_and_add_context_in_declared_order(speaks, tmp_path):
    answer = {"hookEventName": "SubagentStart", "additionalContext": "Mind the tests."}
    said = json.dumps({"hookSpecificOutput": answer, "systemMessage": "hello user"})
    engine, warnings = hooked(
        hook(f"cat > payload; sleep 0.2; echo '{said}'", speaks, scope="subagent"),
        hook(f"echo '{said.replace('Mind', 'Keep')}'", speaks, scope="subagent"),
        hook("touch main", speaks),
    )
    event = replace(CHILD, cwd=str(tmp_path))
    assert begin(engine, event) == "Mind the tests.\n\nKeep the tests."
    payload = json.loads((tmp_path / "payload").read_text())
    assert (payload["hook_event_name"], payload["agent_type"]) == ("SubagentStart", "coder")
    assert not (tmp_path / "main").exists()
    assert warnings[0].endswith(" says: hello user")


@pytest.mark.rule("F13-claude", "F14-claude")
def test_a_session_hook_may_just_print_what_it_adds():
    engine, _ = hooked(hook("echo one"), hook("echo two", "codex"))
    assert begin(engine) == "one\n\ntwo"


@pytest.mark.parametrize(
    ("script", "timeout", "problem"),
    [
        ("echo lost; echo why >&2; exit 3", 30, "crashed: it exited with code 3: why"),
        ("sleep 30", 0.2, "did not finish within "),
        ("echo '{half'", 30, "gave a bad answer: it printed something like JSON"),
        ("""echo '{"continue": 1}'""", 30, "gave a bad answer: it printed a int as continue"),
    ],
)
def test_a_hook_that_breaks_warns_and_never_prevents_the_start(script, timeout, problem):
    engine, warnings = hooked(hook(script, timeout=timeout), hook("echo fine"))
    assert begin(engine) == "fine"
    (warning,) = warnings
    assert problem in warning


@pytest.mark.rule("D4", "D5")
@pytest.mark.parametrize(
    ("kind", "matcher", "event", "asked"),
    [
        ("claude", "resume|clear", {"source": "resume"}, True),
        ("claude", "startup", {}, True),
        ("claude", "resume", {}, False),
        ("codex", "start.*", {"source": "startup"}, True),
        ("claude", "Explore, coder", {"scope": "subagent", "agent_type": "coder"}, True),
        ("claude", "^cod", {"scope": "subagent", "agent_type": "coder"}, True),
        ("claude", "coder", {"scope": "subagent"}, False),
        ("claude", "", {"scope": "subagent"}, True),
        ("codex", "default", {"scope": "subagent"}, True),
        ("codex", "worker", {"scope": "subagent"}, False),
    ],
)
def test_a_matcher_is_about_a_subagents_type_and_a_sessions_source(kind, matcher, event, asked):
    scope = event.get("scope", "agent")
    starter = Starter(
        name="s", check=Function(lambda event: "x"), scope=scope, matcher=matcher, kind=kind
    )
    assert begin(Engine(starters=[starter]), StartEvent(**event)) == ("x" if asked else "")


def test_an_agent_that_a_gate_starts_is_not_told_of_to_the_same_engine():
    engine = Engine()
    engine.on("session_start", lambda event, ctx: "x")
    said = []

    async def starts(event, ctx):
        said.append(await engine.start(MAIN))

    engine.on("stopping", starts)
    asyncio.run(engine.check(stop()))
    assert said == [""]


def test_what_cannot_be_a_start_or_a_starter_is_refused():
    with pytest.raises(TypeError, match="a start is a StartEvent, not StopEvent"):
        begin(Engine(), stop())
    with pytest.raises(TypeError, match="a starter is a Starter, not Gate"):
        Engine(starters=[gate()])
    with pytest.raises(TypeError, match=r"the start handler .* is called with \(event, ctx\)"):
        Engine().on("session_start", lambda event: "x")
    with pytest.raises(TypeError, match="called with \\(event\\), which"):
        Engine(starters=[Starter(name="n", check=Function(lambda event, ctx: "x"))])
    with pytest.raises(ValueError, match="decision, session_start, subagent_start"):
        Engine().on("sesion_start", print)
    with pytest.raises(TypeError, match="an observer is an Observer"):
        Engine(observers=[hook("true")])
    with pytest.raises(ValueError, match="for one of stop"):
        Observer("session_start", print)


def test_a_hooks_folder_is_that_of_its_file_and_it_runs_where_the_agent_works(tmp_path):
    engine, _ = hooked(hook("pwd", source=Source("/nowhere/settings.json", 3)))
    event = StartEvent(session_id="s", cwd=str(tmp_path))
    assert begin(engine, event) == str(tmp_path)
