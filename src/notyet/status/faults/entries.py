"""What can be wrong with our entries themselves, whatever the host."""

from __future__ import annotations

from notyet.config.document import nearest
from notyet.core.matcher import matches, pattern_error
from notyet.core.text import visible
from notyet.hosts import PATIENCE
from notyet.hosts.own_line import own_line
from notyet.install.entry import EVENTS, STARTS, STOPS
from notyet.status.faults.look import merged
from notyet.status.faults.programs import program_fault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from notyet.core.matcher import Kind
    from notyet.install.registered import Registration
    from notyet.status.faults.fault import Fault
    from notyet.status.faults.look import Look

DEFAULT_TIMEOUT = 1800.0  # seconds, of `notyet install`
_KINDS: dict[str, Kind] = {"claude": "claude", "codex": "codex"}
# Names that all agents have in common, if any: a matcher that fits them fits everybody.
_ANYBODY = ("default", "general-purpose", "plugin:some_Agent.1")
# Claude Code's, of which we read one more than we register.
_OTHER_EVENTS = ("StopFailure",)


def missing_stops(look: Look) -> list[str]:
    """Return the stops at which none of our entries is run."""
    return [event for event in STOPS if all(r.event != event for r in look.registrations)]


def spoken(look: Look, entry: Registration) -> str:
    """Return the host in whose words an entry's command answers."""
    ours = own_line(entry.command)
    if ours is not None and ours.verb == "conclaude":
        return "conclaude"
    return (ours.host if ours is not None else "") or look.host


def install_again(look: Look, entry: Registration, time: str = "") -> str:
    """Return the command that writes an entry anew, where it stands and with its time."""
    if entry.place.scope == "managed":
        return f"let whoever manages this machine correct {visible(entry.place.path)}"
    install = _install(look, entry, time)
    return f"{_taken_out(entry)}, and {install}" if is_mixed(entry) else install


def is_mixed(entry: Registration) -> bool:
    """Tell whether an entry also runs other commands; `notyet install` leaves those alone."""
    ours = own_line(entry.command)
    return ours is not None and ours.verb == "hook" and not ours.is_plain


def _taken_out(*entries: Registration) -> str:
    places = " and ".join(visible(entry.where) for entry in entries)
    return f"take `notyet hook ...` out of {places} yourself"


def _install(look: Look, entry: Registration, time: str = "") -> str:
    ours = own_line(entry.command)
    seconds = ours.timeout if ours is not None and entry.event in STOPS else None
    if not time and seconds and seconds != DEFAULT_TIMEOUT and seconds == int(seconds):
        time = f"{seconds:.0f}"
    return f"run: notyet install {look.host}{_scope(entry)}{f' --timeout {time}' if time else ''}"


def _scope(entry: Registration) -> str:
    return "" if entry.place.scope == "user" else f" --{entry.place.scope}"


def entry_faults(look: Look, working: Look | None = None) -> list[Fault]:
    """Judge what is registered, and each entry; of those that the host refuses, only that."""
    working = look if working is None else working
    return [*_presence(look), *_twice(working), *merged(_each(working))]


def _presence(look: Look) -> Iterator[Fault]:
    meant = set()
    for entry in look.registrations:
        if entry.event in (*EVENTS, *_OTHER_EVENTS):
            continue
        right = nearest(entry.event, EVENTS)
        meant.add(right)
        instead = f" instead of {right}" if right else ""
        yield look.fault(
            "event-misspelt",
            f"notyet stands under `{visible(entry.event)}`{instead}, "
            f"where {look.title} never calls it for a stop.",
            where=entry.where,
            fix=f"rename it to {right}" if right else "remove it",
        )
    missing = [event for event in missing_stops(look) if event not in meant]
    install = f"run: notyet install {look.host}"
    if look.registrations:  # beside those that are there
        first = look.registrations[0]
        is_ours = first.place.scope != "managed"
        install = _install(look, first) if is_ours else install_again(look, first)
    if set(missing) == set(STOPS):
        yield look.fault(
            "not-registered", f"notyet is not registered with {look.title}.", fix=install
        )
    elif missing:
        yield look.fault(
            "partly-registered",
            f"{look.title} does not call notyet at {' and '.join(missing)}.",
            fix=install,
        )
    silent = [event for event in STARTS if all(r.event != event for r in look.registrations)]
    silent = [event for event in silent if event not in meant]
    if silent and set(missing) != set(STOPS):
        yield look.fault(
            "starts-not-registered",
            f"{look.title} does not call notyet at {' and '.join(silent)}, so that agents are not "
            "told of their gates.",
            fix=install,
        )


def _twice(look: Look) -> Iterator[Fault]:
    for event in STOPS:
        entries = [r for r in look.registrations if r.event == event]
        if len(entries) < 2:  # noqa: PLR2004  # once is right
            continue
        effect = f"gates are asked once, but agents read what they say {len(entries)} times"
        if look.host == "claude" and len({entry.command for entry in entries}) == 1:
            effect = "Claude Code runs equal ones once, until one of them changes"
        yield look.fault(
            "registered-twice",
            f"notyet is registered {len(entries)} times for {event}: {effect}.",
            where=" and ".join(entry.where for entry in entries),
            fix=_leaving_one(look, entries),
        )
        return


def _leaving_one(look: Look, entries: list[Registration]) -> str:
    mixed = [entry for entry in entries if is_mixed(entry)]
    if mixed:
        return _taken_out(*(mixed if len(mixed) < len(entries) else mixed[1:]))
    ours = [entry for entry in entries if entry.place.scope != "managed"]
    if len({entry.place.path for entry in entries}) == 1 or not ours:
        return install_again(look, entries[0])
    option = _scope(ours[-1]) or " --user"
    return f"remove all but one, as with: notyet uninstall {look.host}{option}"


def _each(look: Look) -> Iterator[Fault]:
    for entry in look.registrations:
        if entry.event in EVENTS:
            yield from _entry(look, entry)
    seen = set()
    for entry in look.registrations:
        if entry.command not in seen:
            seen.add(entry.command)
            found = program_fault(look, entry, install_again(look, entry))
            if found is not None and not _is_replaced(look, entry):
                yield found


def _is_replaced(look: Look, entry: Registration) -> bool:
    """Tell whether a line that does nothing without notyet stands beside one that works."""
    ours = own_line(entry.command)
    return (
        ours is not None
        and ours.is_portable
        and any(
            other.event == entry.event
            and other.command != entry.command
            and program_fault(look, other) is None
            for other in look.registrations
        )
    )


def _entry(look: Look, entry: Registration) -> Iterator[Fault]:
    if entry.handler.get("if") and look.host == "claude":
        yield look.fault(
            "entry-conditional",
            "notyet's entry has an `if`, with which Claude Code never runs it at a stop.",
            where=entry.where,
            fix="remove the `if`",
        )
    if entry.handler.get("async") is True:
        yield look.fault(
            "entry-async",
            f"notyet's entry is `async`, so that {look.title} does not wait for its answer.",
            where=entry.where,
            fix="remove the `async`",
        )
    ours = own_line(entry.command)
    if ours is None:
        return
    speaks = spoken(look, entry)
    if speaks != look.host and not (look.host == "claude" and speaks == "conclaude"):
        yield look.fault(
            "wrong-host",
            f"notyet is told that {speaks} calls it, and answers {look.title} in words that it "
            "does not take.",
            where=entry.where,
            fix=install_again(look, entry),
        )
    yield from _matcher(look, entry)
    if entry.event in STOPS:
        yield from _time(look, entry, ours.timeout)


def waiting_time(host: str, entry: Registration) -> float:
    """Return how long a host waits for an entry, in seconds."""
    if entry.timeout is None:
        return PATIENCE[host]
    return max(1.0, entry.timeout) if host == "codex" else entry.timeout


def _time(look: Look, entry: Registration, said: float | None) -> Iterator[Fault]:
    waits = waiting_time(look.host, entry)
    needs = PATIENCE[look.host] if said is None else said
    if waits < needs:
        yield look.fault(
            "timeout-too-short",
            f"{look.title} waits {waits:g} s for an answer, and notyet believes {needs:g} s: "
            "a slow gate's answer would come too late, and the agent go unchecked.",
            where=entry.where,
            fix=f"make both the same; {install_again(look, entry)}",
        )


def _matcher(look: Look, entry: Registration) -> Iterator[Fault]:
    matcher = entry.matcher
    if not isinstance(matcher, str) or not restricts(look.host, entry):
        return
    broken = pattern_error(_KINDS[look.host], matcher)
    if broken and entry.event == "SubagentStop":
        yield look.fault(
            "matcher-broken",
            f"T{broken[1:]}; {look.title} never runs notyet there.",
            where=entry.where,
            fix="remove the matcher; which subagents are gated is said in notyet.toml",
        )
    else:
        yield look.fault(
            "matcher-restricts",
            f"The matcher `{visible(matcher)}` keeps notyet from agents that it does not fit.",
            where=entry.where,
            fix="remove it; which subagents are gated is said in notyet.toml",
        )


def restricts(host: str, entry: Registration) -> bool:
    """Tell whether a matcher keeps us from some agents."""
    matcher = entry.matcher
    if entry.event == "Stop" or not isinstance(matcher, str) or matcher in {"", "*"}:
        return False
    kind = _KINDS[host]
    if pattern_error(kind, matcher):
        return True
    return not all(matches(kind, matcher, name) for name in _ANYBODY)
