"""Hook commands that people wrote for a host: the interfaces, and gates from settings files (J).

    {"hooks": {"Stop": [{"matcher": "...", "hooks": [{"type": "command", "command": "..."}]}]}}

The file was validated before; a hook that its host would skip is skipped, with a warning.
"""

from __future__ import annotations

import shlex

from notyet.core.gate import EVERY_AGENT, Command, Gate, Match, Source, Starter
from notyet.core.matcher import pattern_error
from notyet.core.text import bounded
from notyet.hosts import host_named
from notyet.install import notyet_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Protocol

    from notyet.core.event import Scope, StartEvent, StopEvent
    from notyet.core.gate import Exit
    from notyet.core.verdict import Allow, Block, Halt, Problem
    from notyet.hosts.hook_answers import HookAnswer
    from notyet.hosts.host import Host

    Path = tuple[str | int, ...]
    Complain = Callable[[Path, str], None]
    Handler = tuple[Path, str, str, dict[str, Any]]  # its path, event, matcher and entry

    class CommandDialect(Protocol):
        """Translates events and answers for hook commands written for a host (tables F, H, W)."""

        def write_event(
            self, event: StopEvent, folder: str
        ) -> tuple[dict[str, Any], dict[str, str]]:
            """Return stdin and environment of a command; `folder` is its project's."""

        def read_reply(self, gate: Gate, ended: Exit) -> HookAnswer:
            """Read how a command ended."""

        def gates(
            self, settings: Mapping[str, Any], file: str, line_of: Callable[[Any], int]
        ) -> list[Gate]:
            """Return the gates of a file in the host's own format; only a host that has one."""

    class StartDialect(Protocol):
        """Translates starts and answers for start hooks written for a host."""

        def write_start(
            self, event: StartEvent, folder: str = ""
        ) -> tuple[dict[str, Any], dict[str, str]]:
            """Return stdin and environment of a command, as `write_event` does."""

        def read_context(self, ended: Exit, scope: Scope) -> HookAnswer:
            """Read how a command ended, and what it gives the agent (F13)."""

    class FunctionDialect(Protocol):
        """Translates events and answers for Python functions written for a plugin system."""

        def write_call(self, event: StopEvent) -> Callable[[], tuple[Any, ...]]:
            """Return a function that makes the arguments of one call, as the callee's own."""

        def read_return(self, returned: object) -> tuple[Allow | Block | Halt | Problem, str]:
            """Return the answer, and a warning for the function's author."""


def gates(
    speaks: str,
    settings: Mapping[str, Any],
    file: str,
    line_of: Callable[[Path], int],
    complain: Complain,
) -> list[Gate]:
    """Return a gate for every command that the host would run at a stop, in its order."""
    host = host_named(speaks)
    found: list[Gate] = []
    for path, event, matcher, handler in _commands(host, settings, host.stops, complain):
        is_main = host.stops[event] == "agent"  # whose matcher is ignored
        found.append(
            Gate(
                name=_name(speaks, event, len(found), handler),
                check=_command(host, handler),
                match=Match(
                    events=(host.stops[event],),
                    agents=EVERY_AGENT if is_main else (matcher,),
                    kind="glob" if is_main else host.hook_files.matchers,
                ),
                timeout=_timeout(host, handler),
                observe=handler.get("async") is True,  # the host does not wait for its answer
                source=Source(file, line_of(path)),
            )
        )
    return found


def starters(
    speaks: str,
    settings: Mapping[str, Any],
    file: str,
    line_of: Callable[[Path], int],
    complain: Complain,
) -> list[Starter]:
    """Return a starter for every command that the host would run at a start, in its order."""
    host = host_named(speaks)
    found: list[Starter] = []
    if not host.context:
        return found
    for path, event, matcher, handler in _commands(host, settings, host.starts, complain):
        if handler.get("async") is True:
            complain(path, "an async hook is not run at a start: its output would come too late")
            continue
        found.append(
            Starter(
                name=_name(speaks, event, len(found), handler),
                check=_command(host, handler),
                scope=host.starts[event],
                matcher=matcher,
                kind=host.hook_files.matchers,
                timeout=_timeout(host, handler),
                source=Source(file, line_of(path)),
            )
        )
    return found


def _commands(
    host: Host, settings: Mapping[str, Any], events: Mapping[str, Scope], complain: Complain
) -> Iterator[Handler]:
    """Yield the handlers that are commands which the host would run, without notyet's own."""
    for path, event, matcher, handler in _handlers(settings, events):
        kind = handler.get("type")
        if kind != "command":
            complain(path, f"a hook of type {kind!r} is {host.hook_files.others}")
            continue
        if is_notyets(host.name, handler):
            continue
        if "if" in handler and host.hook_files.take_args:
            when = "stop" if event in host.stops else "start"
            complain(path, f"a hook with `if` is never run at a {when}; leave `if` out")
            continue
        is_ignored = host.stops.get(event) == "agent"
        problem = "" if is_ignored else pattern_error(host.hook_files.matchers, matcher)
        if problem:
            complain(path, f"{problem}; the host would never run this hook")
            continue
        yield path, event, matcher, handler


def _name(speaks: str, event: str, index: int, handler: dict[str, Any]) -> str:
    first = handler["command"].strip().splitlines()[0]
    return bounded(f"{speaks} {event}[{index}] {first}", 80)


def _handlers(settings: Mapping[str, Any], events: Mapping[str, Scope]) -> Iterator[Handler]:
    hooks = settings.get("hooks", {})
    if settings.get("disableAllHooks") is True:
        return
    for event in events:
        for i, group in enumerate(hooks.get(event, ())):
            for j, handler in enumerate(group.get("hooks", ())):
                path = ("hooks", event, i, "hooks", j)
                yield path, event, group.get("matcher") or "*", handler


def _command(host: Host, handler: dict[str, Any]) -> Command:
    arguments = handler.get("args") if host.hook_files.take_args else None
    if arguments is not None:  # without a shell
        return Command(argv=(handler["command"], *arguments), speaks=host.name)
    shell = "bash" if handler.get("shell") == "bash" else host.hook_files.hook_shell
    return Command(script=handler["command"], shell=shell, speaks=host.name)


def _timeout(host: Host, handler: dict[str, Any]) -> float:
    timeout = handler.get("timeout")
    if timeout is None:
        return host.timeout
    seconds = float(timeout) * host.timeout_unit
    if host.hook_files.least_timeout:
        return max(host.hook_files.least_timeout, seconds)
    return seconds if seconds > 0 else host.timeout


def own_timeout(speaks: str, settings: Mapping[str, Any], event: str) -> float:
    """Return how many seconds a host waits for notyet's own entry; 0 if it has none."""
    host = host_named(speaks)
    own = [
        _timeout(host, handler)
        for _, _, _, handler in _handlers(settings, {event: host.stops[event]})
        if handler.get("type") == "command" and is_notyets(speaks, handler)
    ]
    return min(own, default=0.0)


def is_notyets(speaks: str, handler: Mapping[str, Any]) -> bool:
    """Return True if an entry is notyet's own hook, with or without a shell."""
    arguments = (host_named(speaks).hook_files.take_args and handler.get("args")) or ()
    return notyet_line.is_notyets(
        shlex.join([handler["command"], *arguments]) if arguments else handler["command"]
    )
