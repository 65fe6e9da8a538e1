"""What `notyet status` and the page's Setup say of gates, hosts, faults and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from notyet.core.remote import remote_from
from notyet.core.text import visible
from notyet.hosts import host_named
from notyet.status.fault import LEVELS
from notyet.status.overview import DEFAULT, near

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notyet.status.fault import Fault
    from notyet.status.overview import GateHere
    from notyet.status.report import HostStatus, StatusReport

_WHOSE = {
    "user": "for you",
    "project": "for this project",
    "local": "for you in this project",
    "managed": "by your organisation",
    "plugin": "by its plugin",
}
_LIMITS = {
    "max_blocks": "{} send-backs a turn",
    "session_ceiling": "{} a session",
    "stuck_after": "give up after {} equal failures",
    "jobs": "{} commands at once",
}
_OTHER_LIMITS = {
    ("session_ceiling", 0): "no limit for a session",
    ("stuck_after", 0): "never give up on equal failures",
    ("wait_for_background", True): "wait for background agents",
    ("wait_for_background", False): "do not wait for background agents",
    ("jobs", "cores"): "as many commands at once as cores",
}


def fix_of(found: StatusReport) -> str:
    """Return the one thing to do: the answer's fix, or else that of the worst fault."""
    faults = [*found.faults, *(one for status in found.hosts for one in status.faults)]
    worst = sorted(faults, key=lambda one: LEVELS.index(one.level))
    fixes = [found.answer.fix, *(one.fix for one in worst), "notyet status --why"]
    return next(filter(None, fixes)).removeprefix("run: ")


def host_state(status: HostStatus, cwd: str) -> tuple[str, str]:
    """Return how a host calls notyet, and the level of its worst fault; empty if it has none."""
    level = min((one.level for one in status.faults), key=LEVELS.index, default="")
    known = [visible(status.version), "unproven" * (host_named(status.host).proof == "source")]
    after = "".join(f", {word}" for word in known if word)
    codes = ", ".join(dict.fromkeys(one.code for one in status.faults))
    if not status.entries:
        is_all = [one.code for one in status.faults] == ["not-registered"]
        how = f"notyet install {status.host}" if is_all else codes
        return f"not registered{after}{f': {how}' if how else ''}", level
    places = dict.fromkeys(
        f"{_WHOSE['plugin' if one.is_plugin else one.file.scope]}"
        f" ({visible(near(one.file.path, cwd))})"
        for one in status.entries
    )
    return f"registered {' and '.join(places)}{after}{f': {codes}' if codes else ''}", level


def host_details(status: HostStatus) -> Iterator[str]:
    """Yield at which events a host calls notyet, its program, and the reply to a made-up stop."""
    if status.program:
        yield visible(near(status.program, ""))
    files: dict[str, list[str]] = {}
    for one in status.entries:
        events = files.setdefault(near(one.file.path, ""), [])
        events += [] if visible(one.event) in events else [visible(one.event)]
    for file, events in files.items():
        yield ", ".join(events) + (f" in {visible(file)}" if len(files) > 1 else "")
    probe = status.probe
    if probe is not None and not probe.problem:
        word = "answer" if probe.asked else "reply"
        yield f"{word} in {probe.seconds:.2f} s: {visible(probe.says)}"


def faults_shown(found: StatusReport) -> list[Fault]:
    """Return the faults that the answer and the states of hosts do not say, the worst first."""
    faults = [one for one in found.faults if one.what not in found.answer.says]
    faults += [one for status in found.hosts for one in _faults_of(status)]
    return sorted(faults, key=lambda one: LEVELS.index(one.level))


def _faults_of(status: HostStatus) -> list[Fault]:
    """Return the faults of a host without the one that its state says already."""
    return [one for one in status.faults if (one.code, one.level) != ("not-registered", "warning")]


def limits_shown(found: StatusReport) -> list[str]:
    """Return each limit in words, and the timeout of the gates if all have the same."""
    limits = [_limit(one, found.cwd) for one in found.limits]
    timeout = _common_timeout(found.gates)
    return [*limits, f"timeout {timeout}"] if timeout else limits


def _limit(limit: dict[str, object], cwd: str) -> str:
    name, value, source = str(limit["name"]), limit["value"], str(limit["source"])
    words = _OTHER_LIMITS.get((name, value))
    words = words or _LIMITS.get(name, f"{name} {{}}").format(value)
    return words if source == DEFAULT else f"{words} ({visible(near(source, cwd))})"


def gate_columns(found: StatusReport) -> dict[str, list[str]]:
    """Return the table of gates by its columns, without those that say nothing."""
    gates, cwd = found.gates, found.cwd
    hosts = len(found.setups | found.elsewhere)
    columns = {
        "gate": [one.name for one in gates],
        "runs": [one.runs for one in gates],
        "for": [one.whom for one in gates],
        "when": [_when(one) for one in gates],
        "stage": [_stage(one) for one in gates],
        "timeout": [_span(one.timeout) for one in gates],
        "on": [remote_from(one.place).destination if one.place else "" for one in gates],
        "under": [_under(one, hosts) for one in gates],
        "from": [near(f"{one.file}:{one.line}" if one.line else one.file, cwd) for one in gates],
    }
    if set(columns["stage"]) == {"1"}:  # all run together
        del columns["stage"]
    if _common_timeout(gates):
        del columns["timeout"]
    return {name: cells for name, cells in columns.items() if any(cells)}


def _common_timeout(gates: Sequence[GateHere]) -> str:
    """Return the timeout that all gates have; empty if they differ."""
    spans = {_span(one.timeout) for one in gates}
    return spans.pop() if len(spans) == 1 else ""


def _under(one: GateHere, hosts: int) -> str:
    """Return under which hosts a gate runs; empty if it runs under all of them."""
    return "" if not one.trusted or len(one.hosts) == hosts else ", ".join(one.hosts)


def _stage(one: GateHere) -> str:
    if not one.trusted:
        return "not trusted"
    return f"{one.stage}, observes" if one.observe else str(one.stage)


def _when(one: GateHere) -> str:
    if one.when == "always":
        return "always"
    return f"{', '.join(one.paths)} changed" if one.paths else "files changed"


def _span(seconds: float | None) -> str:
    """Return a timeout as people write it in a file."""
    if seconds is None:
        return "none"
    for size, unit in ((3_600, "h"), (60, "m")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"
