"""Faults of our entries in a host's settings, of their programs, and of the host's version."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from notyet.config.lint import time_of
from notyet.core.matcher import matches
from notyet.core.text import visible
from notyet.hosts import MARGIN, host_named, time_to_answer
from notyet.install.launcher import installation, is_launcher_of, own_root
from notyet.install.own_line import own_line
from notyet.install.settings import installable, settings_of
from notyet.status.look import DEFAULT_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from notyet.config.settings import Setup
    from notyet.hosts.host import Host
    from notyet.install.settings import Registration
    from notyet.status.fault import Fault
    from notyet.status.look import Look

# Agent names of every kind: a matcher that fits all of them restricts nothing.
_ANY_AGENT = ("default", "general-purpose", "plugin:some_Agent.1")


def entry_faults(look: Look) -> Iterator[Fault]:
    """Yield what is wrong with the entries that a host reads."""
    yield from _missing(look)
    yield from _twice(look)
    for entry in look.entries:
        yield from _changed(look, entry)
        if entry.event in look.host.stops:
            yield from _timeout(look, entry)
    for entry in {entry.command: entry for entry in reversed(look.entries)}.values():
        missing = missing_program(look, entry)
        if missing and not _has_substitute(look, entry):
            fix = "" if "/" in missing else f"put it on the PATH of {look.host.title}"
            state = f"{missing} is not there, so nothing runs."
            yield replace(look.entry_fault("program-missing", entry, state, fix), events=())


def _missing(look: Look) -> Iterator[Fault]:
    title, stops = look.host.title, tuple(look.host.stops)
    install = f"run: notyet install {look.host.name}"
    if look.entries:
        install = look.install_again(look.entries[0]).rpartition(", and ")[2]
    missing = look.missing(stops)
    if len(missing) == len(stops):
        yield look.fault("not-registered", f"notyet is not registered with {title}.", fix=install)
        return
    if missing:
        what = f"{title} does not call notyet at {' and '.join(missing)}."
        found = look.fault("partly-registered", what, fix=install)
        yield replace(found, events=tuple(missing))
    silent = look.missing(look.host.starts)
    if silent:
        what = f"{title} does not call notyet at {' and '.join(silent)}, so agents are not told"
        what += " of their gates when they start."
        yield look.fault("starts-not-registered", what, fix=install)


def _twice(look: Look) -> Iterator[Fault]:
    for event in look.host.stops:
        entries = [entry for entry in look.entries if entry.event == event]
        if len(entries) <= 1:
            continue
        scopes = [entry.place.scope for entry in entries if entry.place.scope != "managed"]
        fix = look.install_again(entries[0])
        if len({entry.place.path for entry in entries}) > 1 and scopes:
            fix = f"run: notyet uninstall {look.host.name} --{scopes[-1]}"
        yield look.fault(
            "registered-twice",
            f"notyet is registered {len(entries)} times for {event}; gates run once, but agents "
            f"may read their messages {len(entries)} times.",
            where=" and ".join(entry.where for entry in entries),
            fix=fix,
        )
        return


def _changed(look: Look, entry: Registration) -> Iterator[Fault]:
    """Yield how an entry differs from what `notyet install` writes, if that matters."""
    events = (*look.host.stops, *look.host.starts, *look.host.failures)
    timeout = entry.handler.get("timeout", 1)
    is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    line = own_line(entry.command)
    speaks = "" if line is None or line.verb != "hook" else line.host or look.host.name
    changed = {
        f"is under `{visible(entry.event)}`, which is no event of a stop": entry.event
        not in events,
        f"has type {entry.handler.get('type')!r}": entry.handler.get("type") != "command",
        "has an `if`": bool(entry.handler.get("if")),
        "is `async`, so the host does not wait for it": bool(entry.handler.get("async")),
        f"has timeout {timeout!r}": not is_number or timeout <= 0,
        f"has shell {entry.handler.get('shell')!r}": entry.handler.get("shell", "bash") != "bash",
        f"has matcher {entry.matcher!r}": not isinstance(entry.matcher, str | None),
        f"answers as {speaks}": bool(speaks) and speaks != look.host.name,
    }
    for what, is_so in changed.items():
        if is_so:
            said = f"notyet's entry {what}; {look.host.title} does not run it as it should."
            yield look.entry_fault("entry-changed", entry, said)
            return
    if restricts(look.host, entry):
        said = f"The matcher {entry.matcher!r} keeps notyet from agents that do not fit it."
        fix = "remove it; `for` in notyet.toml says which agents are checked"
        yield look.entry_fault("matcher-restricts", entry, said, fix)


def restricts(host: Host, entry: Registration) -> bool:
    """Return True if a matcher keeps us from some subagents."""
    matcher = entry.matcher
    if host.stops.get(entry.event) != "subagent" or matcher in {None, "", "*"}:
        return False
    if not isinstance(matcher, str):
        return True
    try:
        return not all(matches(host.name, matcher, name) for name in _ANY_AGENT)  # type: ignore[arg-type]  # kinds of patterns are named after hosts
    except (KeyError, re.error):  # a pattern that notyet cannot read
        return True


def _timeout(look: Look, entry: Registration) -> Iterator[Fault]:
    line = own_line(entry.command)
    needs = (line.timeout if line is not None else None) or look.host.timeout
    waits = look.host.timeout if entry.timeout is None else entry.timeout
    if 0 < waits < needs:
        yield look.entry_fault(
            "timeout-too-short",
            entry,
            f"{look.host.title} waits {waits:g} s, but notyet counts on {needs:g} s: a slow gate "
            "would be cut off, and the agent not checked.",
        )


def missing_program(look: Look, entry: Registration) -> str:
    """Return the program or launcher of an entry that is not there; empty if all are."""
    line = own_line(entry.command)
    if line is None or not line.program:  # only a shell can tell
        return ""
    if "/" not in line.program:
        found = shutil.which(line.program, path=look.hook_environ.get("PATH", ""))
        return "" if found else f"`{visible(line.program)}`"
    for path in (line.program, line.launcher):
        if path and not os.path.isfile(os.path.join(look.cwd, path)):
            return visible(path)
    return ""


def _has_substitute(look: Look, entry: Registration) -> bool:
    """Return True if a line that does nothing without notyet stands beside one that works."""
    line = own_line(entry.command)
    others = [one for one in look.entries if one.event == entry.event and one is not entry]
    is_portable = line is not None and line.is_portable
    return is_portable and any(not missing_program(look, other) for other in others)


def launcher_faults(look: Look) -> Iterator[Fault]:
    """Yield launchers that are not those of this installation of notyet."""
    told = set()
    for entry in look.entries:
        line = own_line(entry.command)
        launcher = line.launcher if line is not None else ""
        if not launcher or launcher in told or not os.path.isfile(launcher):
            continue
        told.add(launcher)
        folder = os.path.dirname(launcher)
        if os.path.basename(folder) != installation(own_root()):
            what = f"{visible(launcher)} belongs to another installation of notyet."
        elif not is_launcher_of(folder, own_root()):
            what = f"{visible(launcher)} was written by another version of notyet."
        else:
            continue
        yield look.entry_fault("launcher-other", entry, what)


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
            seconds = min(time_for(host, entry) for entry in entries)
            found.append(Wait(host=name, title=host.title, seconds=seconds))
    usual = time_to_answer(DEFAULT_TIMEOUT)
    return found or [Wait(host="HOST", title="a host that is installed as usual", seconds=usual)]


def time_for(host: Host, entry: Registration) -> float:
    """Return how many seconds gates may take until the command, or the host, gives up."""
    line = own_line(entry.command)
    said = (line.timeout if line is not None else None) or host.timeout
    return time_to_answer(min(said, host.timeout if entry.timeout is None else entry.timeout))


def slow_gates(look: Look, setup: Setup) -> Iterator[Fault]:
    """Yield that the gates may take longer than the host waits."""
    for event, scope in look.host.stops.items():
        entry = next((entry for entry in look.entries if entry.event == event), None)
        budget = time_of(gate for gate in setup.gates if scope in gate.match.events)
        if entry is None or budget <= time_for(look.host, entry):
            continue
        is_endless = budget == float("inf")
        longer = "T" if is_endless else f"{int(budget + MARGIN) // 60 + 1}m"
        took = "for ever" if is_endless else f"{budget:g} s"
        yield look.entry_fault(
            "gates-too-slow",
            entry,
            f"The gates may run {took} at {event}, but {look.host.title} waits "
            f"{time_for(look.host, entry):g} s: gates that run longer are not checked.",
            f"lower their `timeout`, or {look.install_again(entry, longer)}",
        )
        return


def version_faults(look: Look) -> Iterator[Fault]:
    """Yield what is wrong with the host's program and its version."""
    title, host = look.host.title, look.host
    if not look.program:
        yield look.fault(
            "program-not-found",
            f"`{host.program}` is not on your PATH, so the version of {title} is unknown.",
            fix=f"nothing, if you start {title} in another way",
        )
        return
    fix = f"upgrade {title}"
    if look.version_problem:
        what = f"The version of {title} is unknown: {look.version_problem}."
        yield look.fault(
            "version-unknown", what, where=look.program, fix=f"try: {look.program} --version"
        )
        return
    parts = tuple(int(part) for part in look.version.split("."))
    oldest, advised = (".".join(map(str, one)) for one in (host.oldest, host.advised))
    if parts < host.oldest:
        what = f"{title} {look.version} is too old for stop hooks; they need {oldest}."
        yield look.fault("version-too-old", what, where=look.program, fix=fix)
    elif parts < host.advised:
        what = f"{title} {look.version} is older than {advised}, and may lose answers."
        yield look.fault("version-old", what, where=look.program, fix=fix)
