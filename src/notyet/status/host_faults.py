"""Judge one host: what is wrong with its settings, our entries in them, and its program."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from notyet.config.lint import time_of
from notyet.core.text import visible
from notyet.hosts import MARGIN, host_named, time_to_answer
from notyet.hosts.faults import checks_of
from notyet.install.launcher import is_launcher_of, own_root
from notyet.install.notyet_line import notyet_line
from notyet.install.settings import HOOK_TIMEOUT, installable, settings_of
from notyet.status.fault import location
from notyet.status.notyet_faults import variable_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from notyet.config.load import Setup
    from notyet.hosts.host import Host
    from notyet.install.settings import Registration
    from notyet.status.facts import HostFacts
    from notyet.status.fault import Fault


def host_faults(facts: HostFacts, setup: Setup) -> Iterator[Fault]:
    """Yield what is wrong with a host; `setup` is what is in force for its agents."""
    yield from _version(facts)
    yield from _files(facts)
    yield from _missing(facts, setup)
    yield from _twice(facts)
    for entry in facts.entries:
        yield from _changed(facts, entry)
        if entry.event in facts.host.stops:
            yield from _timeout(facts, entry)
    yield from _programs(facts)
    yield from _skipped(facts)
    for found in variable_faults(facts.variables):
        yield replace(found, host=facts.host.name)
    yield from _slow_gates(facts, setup)


def running_entries(facts: HostFacts) -> list[Registration]:
    """Return the entries that the host would run, if their programs are there."""
    faults = [one for one in checks_of(facts.host.name).faults(facts) if one.level == "fault"]
    return [
        entry
        for entry in facts.entries
        if all(one.events and one.where != entry.where for one in faults)
    ]


# The host's program and its settings files


def _version(facts: HostFacts) -> Iterator[Fault]:
    if not facts.version:
        return
    title, host = facts.host.title, facts.host
    parts = tuple(int(part) for part in facts.version.split("."))
    oldest, advised = (".".join(map(str, one)) for one in (host.oldest, host.advised))
    more = {"where": facts.program, "fix": f"upgrade {title}"}
    if parts < host.oldest:
        what = f"{title} {facts.version} is too old for stop hooks; they need {oldest}."
        yield facts.fault("version-too-old", what, **more)
    elif parts < host.advised:
        what = f"{title} {facts.version} is older than {advised}, and may lose answers."
        yield facts.fault("version-old", what, **more)


def _files(facts: HostFacts) -> Iterator[Fault]:
    """Yield files that the host cannot read; a warning if all that is needed is in others."""
    level = "fault" if facts.missing(facts.host.stops) else "warning"
    for content in facts.files:
        mistake = content.mistake
        if mistake is not None:
            yield facts.fault(
                "file-invalid",
                f"A settings file of {facts.host.title} is not valid: {mistake.message}.",
                where=location(mistake.file, mistake.line, mistake.column),
                fix=mistake.hint or "correct it",
                level=level,
            )


def _skipped(facts: HostFacts) -> Iterator[Fault]:
    """Yield why the host skips entries; a warning if it runs another entry instead."""
    running = {entry.event for entry in running_entries(facts)}
    merged: dict[tuple[str, str], Fault] = {}
    for one in checks_of(facts.host.name).faults(facts):
        known = merged.setdefault((one.code, one.what), one)
        events = tuple(dict.fromkeys((*known.events, *one.events)))
        merged[one.code, one.what] = replace(known, events=events)
    for one in merged.values():
        is_covered = bool(one.events) and running.issuperset(one.events)
        yield replace(one, level="warning") if is_covered else one


# Our entries


def _missing(facts: HostFacts, setup: Setup) -> Iterator[Fault]:
    title, stops = facts.host.title, tuple(facts.host.stops)
    install = f"run: notyet install {facts.host.name}"
    if facts.entries:
        install = facts.install_again(facts.entries[0]).rpartition(", and ")[2]
    missing = facts.missing(stops)
    if len(missing) == len(stops):
        if all(content.mistake is None for content in facts.files):  # a broken file explains it
            what = f"notyet is not registered with {title}."
            yield facts.fault("not-registered", what, fix=install)
        return
    scopes = {facts.host.stops[event] for event in missing}
    is_needed = any(scopes & set(gate.match.events) for gate in setup.gates)
    if missing:
        what = f"{title} does not call notyet at {' and '.join(missing)}."
        level = "fault" if is_needed or not setup.gates else "warning"
        found = facts.fault("partly-registered", what, fix=install, level=level)
        yield replace(found, events=tuple(missing))
    silent = facts.missing(facts.host.starts)
    if silent:
        what = f"{title} does not call notyet at {' and '.join(silent)}, so agents do not learn"
        what += " of their gates when they start."
        found = facts.fault("partly-registered", what, fix=install, level="warning")
        yield replace(found, events=tuple(silent))


def _twice(facts: HostFacts) -> Iterator[Fault]:
    if facts.host.layout == "file":  # of two plugins, one asks
        return
    for event in facts.host.stops:
        # The plugin stands aside where settings register notyet (B12).
        entries = [one for one in facts.entries if one.event == event and not one.is_plugin]
        if facts.host.project_wins:
            entries = [entry for entry in entries if entry.file == entries[-1].file]
        if len(entries) <= 1:
            continue
        scopes = [entry.file.scope for entry in entries if entry.file.scope != "managed"]
        fix = facts.install_again(entries[0])
        if len({entry.file.path for entry in entries}) > 1 and scopes:
            fix = f"run: notyet uninstall {facts.host.name} --{scopes[-1]}"
        yield facts.fault(
            "registered-twice",
            f"notyet is registered {len(entries)} times for {event}; gates run once, but agents "
            f"may read their messages {len(entries)} times.",
            where=" and ".join(entry.where for entry in entries),
            fix=fix,
        )
        return


def _changed(facts: HostFacts, entry: Registration) -> Iterator[Fault]:
    """Yield how an entry differs from what `notyet install` writes, if that matters."""
    host, handler, line = facts.host, entry.handler, notyet_line(entry.command)
    answers_as = line.host if line is not None and line.verb == "hook" else ""
    is_known_event = entry.event in (*host.stops, *host.starts, *host.failures)
    has_timeout = entry.given_timeout is not None
    is_timeout = not has_timeout or (entry.timeout is not None and entry.timeout > 0)
    differences = {
        f"is under `{visible(entry.event)}`, which is not a stop event": not is_known_event,
        f"has type {handler.get('type')!r}": "type" in host.handler
        and handler.get("type") not in {"command", entry.event},
        "has an `if`": bool(handler.get("if")),
        "is `async`, so the host does not wait for it": bool(handler.get("async")),
        f"has timeout {entry.given_timeout!r}": not is_timeout,
        f"has shell {handler.get('shell')!r}": handler.get("shell", "bash") != "bash",
        f"has matcher {entry.matcher!r}": not isinstance(entry.matcher, str | None),
        f"answers as {answers_as}": answers_as not in {"", host.name},
    }
    changed = next((words for words, is_so in differences.items() if is_so), "")
    if changed:
        what = f"notyet's entry {changed}; {host.title} does not run it as it should."
        yield facts.entry_fault("entry-changed", entry, what)
    elif restricts(host, entry):
        what = f"The matcher {entry.matcher!r} keeps notyet from agents that do not match it."
        fix = "remove it; `for` in notyet.toml says which agents are checked"
        yield facts.entry_fault("entry-changed", entry, what, fix, level="warning")


def restricts(host: Host, entry: Registration) -> bool:
    """Return True if a matcher keeps us from some subagents."""
    return host.stops.get(entry.event) == "subagent" and entry.is_restricted


# Their programs


def missing_program(facts: HostFacts, entry: Registration) -> str:
    """Return the program or launcher of an entry that is not there; empty if all are."""
    line = notyet_line(entry.command)
    if line is None or not line.program:  # only a shell can tell
        return ""
    if "/" not in line.program:
        found = shutil.which(line.program, path=facts.hook_environ.get("PATH", ""))
        return "" if found else f"`{visible(line.program)}`"
    for path in (line.program, line.launcher):
        if path and not os.path.isfile(os.path.join(facts.cwd, path)):
            return visible(path)
    return ""


def _programs(facts: HostFacts) -> Iterator[Fault]:
    """Yield programs and launchers that are gone, or of another notyet."""
    entries = reversed(facts.entries)  # those of a plugin differ in what they say without notyet
    lines = {one.file.path if one.is_plugin else one.command: one for one in entries}
    for entry in lines.values():
        line = notyet_line(entry.command)
        launcher = line.launcher if line is not None else ""
        missing = missing_program(facts, entry)
        if missing:
            others = [one for one in facts.entries if one.event == entry.event and one != entry]
            # Such a line does nothing, or only says so, without notyet.
            is_portable = entry.is_plugin or (line is not None and line.is_portable)
            if not is_portable or all(missing_program(facts, other) for other in others):
                fix = "" if "/" in missing else f"put it on the PATH of {facts.host.title}"
                what = f"{missing} is not there, so nothing runs."
                found = facts.entry_fault("program-missing", entry, what, fix)
                yield replace(found, events=())
        elif launcher and not is_launcher_of(os.path.dirname(launcher), own_root()):
            what = f"{visible(launcher)} was written by another version of notyet."
            yield facts.entry_fault("other-version", entry, what)


# How long hosts wait, and how long gates may take (E9)


@dataclass(frozen=True, kw_only=True)
class Wait:
    """A host, and how long gates may take before it goes on without them."""

    host: str
    title: str
    seconds: float

    def longer(self, seconds: float) -> str:
        """Return the command that makes the host wait that long."""
        return f"notyet install {self.host} --timeout {int(seconds + MARGIN) // 60 + 1}m"


def waits_here(folder: str, environ: Mapping[str, str]) -> list[Wait]:
    """Return the hosts that call us here; if none does, what `notyet install` would register."""
    found = []
    for name in installable():
        host = host_named(name)
        entries = [e for e in settings_of(name).found(folder, environ)[0] if e.event in host.stops]
        if entries:
            seconds = min(_time_for(host, entry) for entry in entries)
            found.append(Wait(host=name, title=host.title, seconds=seconds))
    usual = time_to_answer(HOOK_TIMEOUT)
    return found or [Wait(host="HOST", title="a host that is installed as usual", seconds=usual)]


def _timeouts(host: Host, entry: Registration) -> tuple[float, float]:
    """Return how many seconds our command counts on, and how many the host waits."""
    line = notyet_line(entry.command)
    needs = (line.timeout if line is not None else None) or host.timeout
    return needs, host.timeout if entry.timeout is None else entry.timeout


def _time_for(host: Host, entry: Registration) -> float:
    """Return how many seconds gates may take until the command, or the host, gives up."""
    return time_to_answer(min(_timeouts(host, entry)))


def _timeout(facts: HostFacts, entry: Registration) -> Iterator[Fault]:
    needs, waits = _timeouts(facts.host, entry)
    if 0 < waits < needs:
        yield facts.entry_fault(
            "timeout-too-short",
            entry,
            f"{facts.host.title} waits {waits:g} s, but notyet counts on {needs:g} s: a slow gate "
            "would be cut off, and the agent not checked.",
        )


def _slow_gates(facts: HostFacts, setup: Setup) -> Iterator[Fault]:
    """Yield that the gates may take longer than the host waits."""
    for event, scope in facts.host.stops.items():
        entry = next((entry for entry in facts.entries if entry.event == event), None)
        budget = time_of(gate for gate in setup.gates if scope in gate.match.events)
        if entry is None or budget <= _time_for(facts.host, entry):
            continue
        is_endless = budget == float("inf")
        longer = "T" if is_endless else f"{int(budget + MARGIN) // 60 + 1}m"
        took = "for ever" if is_endless else f"{budget:g} s"
        most = facts.host.longest_timeout
        is_most = 0 < most <= min(_timeouts(facts.host, entry))  # a longer one is not possible
        fix = "lower their `timeout`"
        yield facts.entry_fault(
            "gates-too-slow",
            entry,
            f"The gates may run {took} at {event}, but {facts.host.title} waits "
            f"{_time_for(facts.host, entry):g} s: gates that run longer are not checked.",
            fix if is_most else f"{fix}, or {facts.install_again(entry, longer)}",
        )
        return
