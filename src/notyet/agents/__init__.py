"""Sessions with agents, opened by the agent's name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from notyet.agents.acp import NAME as ACP
from notyet.agents.acp import AcpSession
from notyet.agents.command_line import CommandLineSession
from notyet.agents.script import read_script
from notyet.agents.scripted import ScriptedSession
from notyet.config.document import did_you_mean
from notyet.errors import Refused
from notyet.hosts.known_programs import headless
from notyet.ledger.prune import sessions_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.core.session import Session

__all__ = ["ACP", "AGENTS", "open_session", "reopen"]

_SCRIPTED = "scripted"
AGENTS = (_SCRIPTED, ACP, *headless())


def open_session(
    name: str,
    *,
    cwd: str,
    args: Sequence[str] = (),
    session: str | None = None,
    program: str | None = None,
    folder: str | None = None,
) -> Session:
    """Return a new conversation with an agent, or the one that `session` names.

    `args` are passed to the agent's program before ours; those of "scripted" are the path of its
    script, and those of "acp" the command line of an agent that speaks ACP. `program` is another
    program to start, and `folder` is for transcripts. Raises Refused for an unknown agent.
    """
    _expect_known(name)
    if name == ACP:
        return AcpSession(args, cwd=cwd, session=session, folder=folder)
    if name != _SCRIPTED:
        return CommandLineSession(
            name, cwd=cwd, args=args, session=session, program=program, folder=folder
        )
    paths = [*([program] if program else []), *args]
    if len(paths) != 1:
        raise Refused("the scripted agent takes one argument: the TOML file with its script")
    script = read_script(os.path.join(cwd, paths[0]))
    place = folder or sessions_folder(os.environ)
    return ScriptedSession(script, cwd=cwd, folder=place, session=session)


def reopen(ref: Mapping[str, object]) -> Session:
    """Return the session with this `ref`, also if another process opened it."""
    try:
        name = str(ref["agent"])
        _expect_known(name)
        if name == _SCRIPTED:
            return ScriptedSession.reopened(ref)
        if name == ACP:
            return AcpSession.reopened(ref)
        return CommandLineSession.reopened(ref)
    except (KeyError, TypeError, ValueError) as error:
        raise Refused(f"this is not the ref of a session: {error!r}") from None


def _expect_known(name: str) -> None:
    if name not in AGENTS:
        hint = did_you_mean(name, AGENTS)
        names = ", ".join(AGENTS)
        raise Refused(f"there is no agent {name!r}; {hint or 'choose one of'} ({names})")
