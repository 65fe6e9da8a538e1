"""The commands of a `.conclaude.yaml`: gates, their input and their answers, and notifications.

Only exit codes speak here; what a command prints is never read as an answer. A command of `stop`
blocks when it fails, whichever way; one of `subagentStop` only observes, unless it says
`block: true`, which is an extension of ours.
"""

from __future__ import annotations

import os

from notyet.core.gate import Command, Gate, Match, Source
from notyet.core.text import bounded, clean, lines_of
from notyet.core.verdict import Allow, Block, Problem
from notyet.hosts import hook_answers
from notyet.hosts.claude import hooks as claude_hooks
from notyet.hosts.conclaude import HOST
from notyet.hosts.hook_answers import HookAnswer
from notyet.light import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from notyet.core.event import StopEvent
    from notyet.core.gate import Exit
    from notyet.core.verdict import Decision, Report

    Path = tuple[str | int, ...]
    Entry = tuple[Path, Mapping[str, Any], Match]
    Said = tuple[str, str]  # the setting that asks for a notification, and its text

CONTINUE = "continue working on the task"  # the prompt of `infinite` by default
_SHOWN = ("message", "showCommand", "showStdout", "showStderr", "maxOutputLines")
_OPTIONS = (*_SHOWN, "notifyPerCommand", "block")
_MOST_OUTPUT = 20_000  # characters of each stream
_MOST_COMMAND = 500  # characters of a command in a message
_MOST_NAME = 60  # characters of a command in a gate's name
_MOST_PAYLOAD = 100_000  # bytes; the system refuses variables of 128 KiB
_MOST_VALUE = 10_000  # bytes of any other variable: names and paths
_MOST_BODY = 300  # characters of a notification
_CALM = frozenset({"passed", "observed", "skipped"})  # outcomes that are no failure
_FAILED, _FINE = "showErrors", "showSuccess"


def write_event(event: StopEvent, folder: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return stdin and environment of a command: Claude Code's payload, and variables (W4, H3)."""
    payload, _ = claude_hooks.write_event(event, folder)
    payload["hook_event_name"] = hook_name(event)
    if event.ending == "error":
        payload["error"] = event.error or "unknown"
    variables = {
        "AGENT_ID": event.agent_id,
        "AGENT_NAME": event.agent_name or event.agent_id,
        "AGENT": event.agent_name,  # as given with `--agent`
        "AGENT_TRANSCRIPT_PATH": event.agent_transcript_path,
        "SESSION_ID": payload.get("session_id"),
        "TRANSCRIPT_PATH": event.transcript_path,
        "HOOK_EVENT": payload["hook_event_name"],
        "CWD": event.cwd,
        "CONFIG_DIR": folder,
        "STOP_ERROR": payload.get("error"),
    }
    environ = {f"CONCLAUDE_{name}": _value(text) for name, text in variables.items() if text}
    # conclaude renames the type when it writes the payload; some scripts expect that.
    alias = {"subagent_type": payload["agent_type"]} if "agent_type" in payload else {}
    environ["CONCLAUDE_PAYLOAD_JSON"] = _payload_json(payload | alias)
    return payload, environ


def hook_name(event: StopEvent) -> str:
    """Return conclaude's name for the hook of an event."""
    return "StopFailure" if event.ending == "error" else HOST.event_name(event.scope)


def _value(text: str) -> str:
    """Return a text that fits into an environment variable."""
    try:
        value = text.encode("utf-8", "surrogateescape")  # file names that are not UTF-8
    except UnicodeEncodeError:
        value = text.encode("utf-8", "replace")
    return value.replace(b"\0", b"")[:_MOST_VALUE].decode("utf-8", "surrogateescape")


def _payload_json(payload: dict[str, Any]) -> str:
    most = _MOST_PAYLOAD
    text = dumps(payload)
    while len(text) > _MOST_PAYLOAD:  # ASCII, so characters are bytes
        most //= 10
        text = dumps(_shortened(payload, most))
    return text


def _shortened(value: Any, most: int) -> Any:
    """Return a value with long texts and lists cut, but with all fields."""
    if isinstance(value, str):
        return bounded(value, most)
    if isinstance(value, dict):
        return {name: _shortened(item, most) for name, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item, most) for item in value[:most]]
    return value


def read_reply(gate: Gate, ended: Exit) -> HookAnswer:
    """Read how a command ended (F, both columns conclaude)."""
    options = options_of(gate)
    if ended.cancelled:
        return HookAnswer(answer=Problem("deadline", "it was ended before it could answer"))
    if options["section"] == "infinite":
        return HookAnswer(answer=Block(options["message"]))
    failure = _failure(gate, ended)
    if not failure:
        return HookAnswer(answer=Allow())
    if options["section"] == "stop" or options.get("block") is True:
        return HookAnswer(answer=Block(failure))
    return HookAnswer(answer=Block(failure), warning=failure)  # the gate only observes


def options_of(gate: Gate) -> Mapping[str, Any]:
    """Return the options of a command in the file, with its section."""
    assert isinstance(gate.check, Command)
    return gate.check.options


def _failure(gate: Gate, ended: Exit) -> str:
    """Return the message about a failed command; empty if it did not fail."""
    if ended.problem:
        what = (
            f"Command {'did not end' if ended.lost else 'could not be started'} ({ended.problem})"
        )
    elif ended.timed_out:
        seconds = gate.timeout if gate.timeout is not None else ended.seconds
        what = f"Command timed out after {seconds:.4g} seconds"
    elif ended.code is None:
        what = f"Command was ended by signal {ended.signal}"
    elif ended.code:
        what = f"Command failed with exit code {ended.code}"
    else:
        return ""
    options = options_of(gate)
    words = [(options.get("message") or "").strip() or what + shown_command(gate)]
    for label, output in (("Stdout", ended.stdout), ("Stderr", ended.stderr)):
        text = hook_answers.words(output) if options.get(f"show{label}") is True else ""
        if text:
            words.append(f"{label}: {_first_lines(text, options.get('maxOutputLines'))}")
    return "\n".join(words)


def shown_command(gate: Gate) -> str:
    """Return the command for a message, unless `showCommand` is off."""
    assert isinstance(gate.check, Command)
    if gate.check.options.get("showCommand") is False:
        return ""
    return f": {bounded(gate.check.line, _MOST_COMMAND)}"


def _first_lines(text: str, most: int | None) -> str:
    lines = text.split("\n")
    if most and len(lines) > most:
        lines[most:] = [f"... ({lines_of(lines[most:])} lines omitted)"]
    return bounded("\n".join(lines), _MOST_OUTPUT)


def gates(settings: Mapping[str, Any], file: str, line_of: Callable[[Path], int]) -> list[Gate]:
    """Return the gates of a validated `.conclaude.yaml`, in the order in which they run (D3)."""
    found: dict[str, Gate] = {}
    steps: dict[str | int, int] = {}
    for path, entry, match in _entries(settings):
        section = path[0]
        step = steps[section] = steps.get(section, -1) + 1
        name = _name(path, entry)
        while name in found:  # long patterns are cut and may be equal then
            name += "'"
        holds = section == "stop" or entry.get("block") is True
        found[name] = Gate(
            name=name,
            check=_command(path, entry, os.path.dirname(file)),
            match=match,
            step=step,
            timeout=entry.get("timeout"),
            if_broken="block" if holds else "allow",
            observe=not holds,
            always=section != "stop",  # the first failure of `stop` ends the others
            source=Source(file, line_of(path)),
        )
    return list(found.values())


def _entries(settings: Mapping[str, Any]) -> Iterator[Entry]:
    stop = settings.get("stop") or {}
    for at, entry in enumerate(stop.get("commands") or ()):
        yield ("stop", "commands", at), entry, Match()
    if stop.get("infinite") is True:
        words = (stop.get("infiniteMessage") or "").strip() or CONTINUE
        yield ("stop", "infinite"), {"message": words}, Match()
    failed = settings.get("stopFailure") or {}
    for at, entry in enumerate(failed.get("commands") or ()):
        match = Match(events=("agent", "subagent"), endings=("error",))
        yield ("stopFailure", "commands", at), entry, match
    patterns = (settings.get("subagentStop") or {}).get("commands") or {}
    for pattern in sorted(patterns, key=lambda pattern: (pattern != "*", pattern)):
        match = Match(events=("subagent",), agents=(pattern,))
        for at, entry in enumerate(patterns[pattern] or ()):
            yield ("subagentStop", "commands", pattern, at), entry, match


def _command(path: Path, entry: Mapping[str, Any], folder: str) -> Command:
    options = {name: entry[name] for name in _OPTIONS if entry.get(name) is not None}
    if path[1] == "infinite":
        # A gate must run something, even if its answer is known.
        options["section"] = "infinite"
        return Command(argv=("true",), dir=folder, speaks=HOST.name, options=options)
    options["section"] = path[0]
    return Command(  # noqa: S604  # a description; nothing is run here
        script=entry["run"],  # one script, however many lines (E8)
        shell="bash",  # found on the PATH, as conclaude does
        dir=folder,
        speaks=HOST.name,
        options=options,
    )


def _name(path: Path, entry: Mapping[str, Any]) -> str:
    """Return e.g. `stop.commands[0] npm test`."""
    name = ".".join(str(part) for part in path[:2])
    for part in path[2:]:
        name += f"[{dumps(_short(part)) if isinstance(part, str) else part}]"
    first, _, more = entry.get("run", "").strip().partition("\n")
    line = _short(clean(f"{first} ..." if more else first))
    return f"{name} {line}".strip()


def _short(text: str) -> str:
    return text if len(text) <= _MOST_NAME else f"{text[: _MOST_NAME - 3]}..."


def notifications(
    wishes: Mapping[str, Any], event: StopEvent, decision: Decision, gates: Sequence[Gate] = ()
) -> list[tuple[str, str]]:
    """Return title and body of each notification for the user, once the stop is decided.

    `wishes` is the section `notifications` of the file; `gates` are those that ran. `showErrors`
    and `showSuccess` select among the commands; the end of a stop is a system event, shown unless
    `showSystemEvents` is off.
    """
    hook = hook_name(event)
    hooks = wishes.get("hooks") or ()
    if wishes.get("enabled") is not True or not ("*" in hooks or hook in hooks):
        return []
    ours = {gate.name: gate for gate in gates if gate.check.speaks == HOST.name}
    notices = list(_of_commands(ours, decision))
    bodies = [body for wish, body in notices if wishes.get(wish) is True]
    wish, body = _of_event(ours, event, decision)
    if wishes.get("showSystemEvents") is not False or wishes.get(wish) is True:
        bodies.append(body)
    return [(f"notyet - {hook}", bounded(clean(body), _MOST_BODY)) for body in bodies]


def _of_commands(ours: Mapping[str, Gate], decision: Decision) -> Iterator[Said]:
    """Yield the notifications of commands with `notifyPerCommand`."""
    for report in decision.reports:
        gate = ours.get(report.gate)
        if gate and report.answer and options_of(gate).get("notifyPerCommand") is True:
            command = shown_command(gate)
            if _has_failed(report):
                yield _FAILED, f"Command failed{command}"
            else:
                yield _FINE, f"Command passed{command}"


def _has_failed(report: Report) -> bool:
    return bool(report.warning) or not isinstance(report.answer, Allow)


def _of_event(ours: Mapping[str, Gate], event: StopEvent, decision: Decision) -> Said:
    if event.ending == "error":
        return _FAILED, f"The turn ended with an error: {event.error or 'unknown'}"
    if event.scope == "subagent":
        return _of_subagent(event, decision)
    if isinstance(decision.verdict, Block):
        held = [ours.get(r.gate) for r in decision.reports if r.status == "blocked"]
        if held and all(gate and options_of(gate)["section"] == "infinite" for gate in held):
            return _FINE, f"Continuing: {decision.verdict.prompt}"
        return _FAILED, decision.verdict.prompt
    if decision.outcome == "passed":
        return _FINE, "All commands passed"
    wish = _FINE if decision.outcome in _CALM else _FAILED
    return wish, f"{decision.outcome}: {decision.why}"


def _of_subagent(event: StopEvent, decision: Decision) -> Said:
    name = event.agent_id or event.agent_name or event.agent_type or "unknown"
    if isinstance(decision.verdict, Block):
        return _FAILED, f"Subagent '{name}' was sent back"
    if decision.outcome in _CALM:
        return _FINE, f"Subagent '{name}' completed"
    return _FAILED, f"Subagent '{name}' stopped, {decision.outcome}: {decision.why}"
