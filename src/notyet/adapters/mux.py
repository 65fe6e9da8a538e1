"""Mux's Stop and SubagentStop hooks, for a program that runs them itself.

    result = await run_stop_hooks(project, {"session_id": "w1", "hook_event_name": "Stop", ...})
    if not result.should_stop:
        queue(continuation("Stop", result.continue_reason))

The caller decides when to ask, and counts: Mux allows three continuations in a turn.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from notyet.config.files import host_files
from notyet.config.load import PATIENCE, in_project, load, load_vouched
from notyet.config.remote import RemoteSource
from notyet.core.event import StopEvent
from notyet.core.gate import Command
from notyet.core.message import CONTINUATION
from notyet.core.record import Record, replace
from notyet.core.remote import LOCAL, is_remote, remote_from
from notyet.core.verdict import Block, Halt
from notyet.engine.engine import Engine
from notyet.hosts.mux import HOST
from notyet.run.drive import Call
from notyet.run.drive_async import drive

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from typing import Any, Literal, TypeVar

    from notyet.config.load import Setup
    from notyet.core.gate import Gate
    from notyet.run.drive import Steps

    T = TypeVar("T")
    Found = tuple[tuple[Gate, ...], tuple[str, ...]]  # hooks, and warnings about them

MOST_CONTINUATIONS = 3  # in a turn
_CANCELLED = "cancelled"
_NAME = HOST.name


class StopHooksResult(Record, kw_only=True):
    """The joint result of Mux's hooks."""

    should_stop: bool
    continue_reason: str | None = None  # for the agent, where it should not stop
    stop_reason: str | None = None  # for the user, where a hook said `continue: false`
    warnings: tuple[str, ...] = ()


async def run_stop_hooks(
    project_dir: str,
    input: Mapping[str, Any],  # noqa: A002  # its name in Mux
    cancel: asyncio.Event | None = None,
    *,
    trust: Literal["asked", "given"] = "asked",
) -> StopHooksResult:
    """Run the hooks of Mux's settings and its executables in a project, all at once.

    The project may be on another machine, `ssh://[user@]host[:port]/path`: then its hooks are read
    there, and run there (M1, M5). The user's own are those of this machine, and run here.

    A project's hooks run only if a person trusted them (`notyet trust --read mux`); `trust =
    "given"` says that the calling program has asked its user itself. Setting `cancel` ends the
    hooks, and then the agent stops.
    """
    workspace, here = "", os.path.realpath(project_dir)  # noqa: ASYNC240  # only a few stats
    if is_remote(project_dir):
        workspace, here = remote_from(project_dir).url, os.getcwd()
        found = await _unless(cancel, drive(_there(workspace, here, trust)))
        if found is None:
            return StopHooksResult(should_stop=True, warnings=(_CANCELLED,))
        gates, warnings = found
    else:
        gates, warnings = _gates(here, trust)
        gates = tuple(_placed(gate, here) for gate in gates)
    name = input.get("hook_event_name")
    event = HOST.read_event(dict(input), os.environ)
    if name not in HOST.stops or not isinstance(event, StopEvent):
        raise ValueError(f"hook_event_name is 'Stop' or 'SubagentStop', not {name!r}")
    event = replace(
        event,
        session_id=event.session_id or "-",
        cwd=here if workspace else event.cwd or here,
        workspace=workspace,
    )
    decision = await _unless(cancel, Engine(gates).decide(event))
    if decision is None:
        return StopHooksResult(should_stop=True, warnings=(*warnings, _CANCELLED))
    warnings += decision.warnings
    if not isinstance(decision.verdict, Block):
        said = decision.why if isinstance(decision.verdict, Halt) else None
        return StopHooksResult(should_stop=True, stop_reason=said or None, warnings=warnings)
    reason = decision.verdict.prompt
    return StopHooksResult(should_stop=False, continue_reason=reason, warnings=warnings)


async def _unless(cancel: asyncio.Event | None, work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of some work; None if `cancel` was set first."""
    if cancel is None:
        return await work
    working = asyncio.ensure_future(work)
    waiting = asyncio.ensure_future(cancel.wait())
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        return None if waiting.done() else await working
    finally:
        waiting.cancel()
        working.cancel()


def continuation(hook_event_name: str, reason: str) -> str:
    """Return the message that continues an agent: a main agent's is marked as a hook's (K17)."""
    return f"{CONTINUATION}\n{reason}" if hook_event_name == "Stop" else reason


def _gates(project: str, trust: str) -> Found:
    if trust == "given":
        return _of_mux(load_vouched(host_files(_NAME, project, os.environ)))
    return _of_mux(load(project, _NAME, os.environ))


def _there(workspace: str, here: str, trust: str) -> Steps[Found]:
    """Find the hooks of a remote project in a thread, because that connects to it."""
    found: Found = yield Call(_gates_there, (workspace, here, trust))
    return found


def _gates_there(workspace: str, here: str, trust: str) -> Found:
    if trust != "given":
        return _of_mux(load(here, _NAME, os.environ, workspace=workspace))
    source = RemoteSource(workspace, PATIENCE, (_NAME,))
    files = host_files(_NAME, workspace, os.environ, lambda _path: False, source=source, here=here)
    gates, warnings = _of_mux(load_vouched(files))
    if source.problem:
        warnings += (f"the files of {workspace} cannot be read: {source.problem}",)
    return tuple(_placed(gate, "") for gate in gates), warnings


def _placed(gate: Gate, project: str) -> Gate:
    """Return a hook that runs in a project here, or else where it was found."""
    check = gate.check
    assert isinstance(check, Command)
    if project:
        return replace(gate, check=in_project(check, project))
    return replace(gate, check=replace(check, workspace=check.workspace or LOCAL))


def _of_mux(setup: Setup) -> Found:
    gates = [gate for gate in setup.gates if gate.check.speaks == _NAME]
    return tuple(gates), (*setup.warnings, *setup.distrust)
