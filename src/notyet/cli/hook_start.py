"""The part of `notyet hook` for an agent that begins: it is told of the gates it will meet."""

from __future__ import annotations

from notyet.dialects import host_face

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.cli.hook_line import Hook
    from notyet.config.load import Setup
    from notyet.core.event import StartEvent
    from notyet.dialects import Reply

_LOOK = 5.0  # seconds to look at files, where only words depend on it, or one question less


def starting(hook: Hook, event: StartEvent) -> Reply:
    """Answer the start of an agent."""
    if hook.switched_off(event.cwd):
        return hook.nothing()
    setup = hook.load(event, 0.0)
    if any(gate.when == "changed" for gate in setup.gates):
        _remember(hook, event, setup)
    if setup.start_tell and setup.workspace:  # else nobody is told of what is there
        setup = hook.load(event, _LOOK)
    if not setup.start_tell:
        return hook.nothing()
    from notyet.core.message import briefing_for

    told = briefing_for(event, setup.gates)
    return host_face(hook.host).write_context(told, event) if told else hook.nothing()


def _remember(hook: Hook, event: StartEvent, setup: Setup) -> None:
    """Remember with which files the agent begins (N1); nothing of that may hold it up."""
    try:
        from notyet.cli.hook_check import remember_start

        remember_start(event, setup, min(_LOOK, hook.time_left() / 3))
    except Exception as error:  # noqa: BLE001  # its gates are asked once more, that is all
        hook.said.append(f"{error} (with which files the agent begins was not remembered)")
