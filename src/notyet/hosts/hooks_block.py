"""Gates and starters from the hooks that Claude Code, Codex and Mux have in their settings (J).

    {"hooks": {"Stop": [{"matcher": "...", "hooks": [{"type": "command", "command": "..."}]}]}}

The block is validated before it comes here; what a host would skip is skipped, and said.
"""

from __future__ import annotations

import shlex

from notyet.core.gate import EVERY_AGENT, SPEAKING, Command, Gate, Match, Source, Starter
from notyet.core.matcher import pattern_error
from notyet.core.text import bounded
from notyet.hosts import PATIENCE, own_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from notyet.core.event import Scope
    from notyet.core.matcher import Kind

    Path = tuple[str | int, ...]
    Complain = Callable[[Path, str], None]
    Handler = tuple[Path, str, str, dict[str, Any]]  # its place, event, matcher and entry

_STOPS: dict[str, Scope] = {"Stop": "agent", "SubagentStop": "subagent"}
_STARTS: dict[str, Scope] = {"SessionStart": "agent", "SubagentStart": "subagent"}
_KINDS: dict[str, Kind] = {"claude": "claude", "codex": "codex", "mux": "claude"}
# What becomes of a hook that is no command: Claude Code runs it itself, the others do not.
_NO_COMMAND = {
    "claude": "not run by notyet: Claude Code runs it itself, other hosts run only commands",
    "codex": "not run; only commands are",
    "mux": "not run; only commands are",
}
_SHELLS = {"claude": "/bin/sh", "codex": "bash", "mux": "bash"}


def gates(
    speaks: str,
    settings: Mapping[str, Any],
    file: str,
    line_of: Callable[[Path], int],
    complain: Complain,
) -> list[Gate]:
    """Return a gate for every command that the host would run at a stop, in its order."""
    found: list[Gate] = []
    kind = _KINDS[speaks]
    for path, event, matcher, handler in _commands(speaks, settings, _STOPS, complain):
        found.append(
            Gate(
                name=_name(speaks, event, len(found), handler),
                check=_command(speaks, handler),
                match=Match(
                    events=(_STOPS[event],),
                    agents=EVERY_AGENT if event == "Stop" else (matcher,),
                    kind=kind if event == "SubagentStop" else "glob",
                ),
                timeout=_timeout(speaks, handler),
                observe=handler.get("async") is True,  # nobody waits for its answer
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
    found: list[Starter] = []
    if speaks not in SPEAKING:
        return found
    for path, event, matcher, handler in _commands(speaks, settings, _STARTS, complain):
        if handler.get("async") is True:
            complain(path, "an async hook is not run at a start: nobody would wait for its words")
            continue
        found.append(
            Starter(
                name=_name(speaks, event, len(found), handler),
                check=_command(speaks, handler),
                scope=_STARTS[event],
                matcher=matcher,
                kind=_KINDS[speaks],
                timeout=_timeout(speaks, handler),
                source=Source(file, line_of(path)),
            )
        )
    return found


def _commands(
    speaks: str, settings: Mapping[str, Any], events: Mapping[str, Scope], complain: Complain
) -> Iterator[Handler]:
    """Yield the handlers that are commands which the host would run, and not our own."""
    for path, event, matcher, handler in _handlers(settings, events):
        if handler.get("type") != "command":
            complain(path, f"a hook of type {handler.get('type')!r} is {_NO_COMMAND[speaks]}")
            continue
        if is_own(speaks, handler):
            continue
        if "if" in handler and speaks != "codex":  # which does not know the key
            when = "stop" if event in _STOPS else "start"
            complain(path, f"a hook with `if` is never run at a {when}; leave `if` out")
            continue
        # The matcher of a Stop is ignored, so it may be anything.
        problem = pattern_error(_KINDS[speaks], matcher) if event != "Stop" else ""
        if problem:
            complain(path, f"{problem}; the host would never run this hook")
            continue
        yield path, event, matcher, handler


def _name(speaks: str, event: str, place: int, handler: dict[str, Any]) -> str:
    first = handler["command"].strip().splitlines()[0]
    return bounded(f"{speaks} {event}[{place}] {first}", 80)


def _handlers(settings: Mapping[str, Any], events: Mapping[str, Scope]) -> Iterator[Handler]:
    hooks = settings.get("hooks", {})
    if settings.get("disableAllHooks") is True:
        return
    for event in events:
        for i, group in enumerate(hooks.get(event, ())):
            for j, handler in enumerate(group.get("hooks", ())):
                path = ("hooks", event, i, "hooks", j)
                yield path, event, group.get("matcher") or "*", handler


def _command(speaks: str, handler: dict[str, Any]) -> Command:
    arguments = _arguments(speaks, handler)
    if arguments is not None:  # without a shell
        return Command(argv=(handler["command"], *arguments), speaks=speaks)
    shell = "bash" if handler.get("shell") == "bash" else _SHELLS[speaks]
    return Command(script=handler["command"], shell=shell, speaks=speaks)


def _arguments(speaks: str, handler: Mapping[str, Any]) -> list[str] | None:
    return None if speaks == "codex" else handler.get("args")  # Codex does not know the key


def _timeout(speaks: str, handler: dict[str, Any]) -> float:
    timeout = handler.get("timeout")
    if timeout is None:
        return PATIENCE[speaks]
    if speaks == "codex":
        return max(1.0, float(timeout))
    return float(timeout) if timeout > 0 else PATIENCE[speaks]


def is_own(speaks: str, handler: Mapping[str, Any]) -> bool:
    """Return True if an entry is notyet's own hook, with or without a shell."""
    arguments = _arguments(speaks, handler) or ()
    return own_line.is_own(
        shlex.join([handler["command"], *arguments]) if arguments else handler["command"]
    )
