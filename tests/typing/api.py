"""Never executed: what the type checker must see of the public names.

Every `type: ignore` here stands for an error that must be found; mypy complains of one that is
not needed.
"""

from __future__ import annotations

from typing import assert_type

from notyet import (
    Allow,
    Block,
    Decision,
    Engine,
    Function,
    Gate,
    Halt,
    Ledger,
    Limits,
    Match,
    Observer,
    Session,
    StopEvent,
    Turn,
    replace,
)


def plain_gate(event: StopEvent) -> Block | None:
    assert_type(event.last_message, str | None)
    assert_type(event.tools_used, tuple[str, ...])
    return Block("go on", reason="why", extend=4) if event.block_count < event.max_blocks else None


async def async_gate(event: StopEvent) -> Allow | Block | Halt:
    return Halt("enough") if event.ending == "error" else Allow(note="fine")


engine = Engine(
    [plain_gate, Gate(name="a", check=Function(async_gate), match=Match(events=("subagent",)))],
    observers=[Observer("stop", print)],
    limits=Limits(max_blocks=5),
    ledger=Ledger("x.db"),
)


async def checked() -> None:
    assert_type(await engine.check(StopEvent(session_id="s")), Decision)
    decision = engine.check_sync(StopEvent(session_id="s", scope="subagent"))
    assert_type(decision.verdict, Allow | Block | Halt)
    match decision.verdict:
        case Block(prompt=prompt):
            assert_type(prompt, str)
        case Allow() | Halt():
            pass
    assert_type(replace(decision, why="x"), Decision)


async def driven(session: Session) -> None:
    assert_type(await session.send("go", key="k"), Turn)


def wrong() -> None:
    StopEvent("agent")  # type: ignore[call-arg]  # fields by name only
    StopEvent(session="s")  # type: ignore[call-arg]  # no such field
    StopEvent(session_id="s", scope="main")  # type: ignore[arg-type]  # not a scope
    Block()  # type: ignore[call-arg]  # a Block needs words
    Gate(name="g", check=plain_gate)  # type: ignore[arg-type]  # not a check
    Limits(max_blocks=3).max_blocks = 4  # type: ignore[misc]  # read-only
