"""Drivers for agents, each a `Session`: found by name through one table."""

from __future__ import annotations

from notyet.hosts.others import headless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from notyet.core.session import Session

__all__ = ["AGENTS", "open_session", "reopen"]


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

    `args` go to the agent's program before ours; those of "scripted" are the path of its script.
    `program` is another program to start, and `folder` where transcripts are kept.
    Raises Refused for an agent that we do not know.
    """
    opened = _known(name).open
    return opened(name, cwd=cwd, args=args, session=session, program=program, folder=folder)


def reopen(ref: Mapping[str, object]) -> Session:
    """Return the session of which this is the `ref`, also when another process had it."""
    from notyet.errors import Refused

    try:
        return _known(str(ref["agent"])).reopen(ref)
    except (KeyError, TypeError, ValueError) as error:
        raise Refused(f"this is not the ref of a session: {error!r}") from None


class Agent:
    """How the sessions of an agent are made."""

    def __init__(self, opener: Callable[..., Session], reopener: Callable[..., Session]) -> None:
        self.open, self.reopen = opener, reopener


def _open_program(name: str, **wanted: Any) -> Session:
    from notyet.agents.command_line import CommandLineSession

    return CommandLineSession(name, **wanted)


def _reopen_program(ref: Mapping[str, object]) -> Session:
    from notyet.agents.command_line import CommandLineSession

    return CommandLineSession.reopened(ref)


def _open_script(
    _name: str,
    *,
    cwd: str,
    args: Sequence[str],
    session: str | None,
    program: str | None,
    folder: str | None,
) -> Session:
    import os

    from notyet.agents.script import read_script
    from notyet.agents.scripted import ScriptedSession
    from notyet.agents.transcript import default_folder
    from notyet.errors import Refused

    paths = [*([program] if program else []), *args]
    if len(paths) != 1:
        raise Refused("the scripted agent takes one argument: the TOML file with its script")
    script = read_script(os.path.join(cwd, paths[0]))
    place = folder or default_folder(os.environ)
    return ScriptedSession(script, cwd=cwd, folder=place, session=session)


def _reopen_script(ref: Mapping[str, object]) -> Session:
    from notyet.agents.scripted import ScriptedSession

    return ScriptedSession.reopened(ref)


_PROGRAM = Agent(_open_program, _reopen_program)
AGENTS: dict[str, Agent] = {
    "scripted": Agent(_open_script, _reopen_script),
    **dict.fromkeys(headless(), _PROGRAM),
}


def _known(name: str) -> Agent:
    if name not in AGENTS:
        from notyet.config.document import did_you_mean
        from notyet.errors import Refused

        hint = did_you_mean(name, AGENTS)
        names = ", ".join(AGENTS)
        raise Refused(f"there is no agent {name!r}; {hint or 'choose one of'} ({names})")
    return AGENTS[name]
