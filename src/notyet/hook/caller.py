"""Which host calls, where its line does not say it, and how long it waits by its settings."""

from __future__ import annotations

from notyet.config.files import host_files
from notyet.config.find import root_of, text_of
from notyet.errors import attempt
from notyet.hosts import HOSTS, MARGIN, host_named
from notyet.hosts.detect import UNKNOWN, detect
from notyet.light import isabs, loads, real_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from notyet.core.event import Scope, StopEvent
    from notyet.core.gate import Gate
    from notyet.hosts.host import Host


def find_caller(
    named: str, payload: Mapping[str, Any], environ: Mapping[str, str]
) -> tuple[str, str | None, str]:
    """Return the host that calls, why it is not checked (None if it is), and a warning.

    Some hosts also run the settings of another, which is then `named` in the line. One that has
    settings of its own with us calls twice at a stop: these count, and the other call is silent.
    """
    found = detect(payload)
    if named and (found not in HOSTS or named not in host_named(found).runs_files_of):
        return named, None, ""
    if found not in HOSTS:
        from notyet.hosts.known_programs import OTHERS

        other = next(host for host in OTHERS if host.name == found)
        if other.cannot:
            return found, f"agents of {other.title} cannot be sent back: {other.cannot}", ""
        found = UNKNOWN
    is_own = named == host_named(found).installed_as
    if named and not is_own and _is_registered(host_named(found), payload, environ):
        return found, "", ""
    unknown = "the payload does not tell its host; name it with --host, see notyet hosts"
    return found, None, unknown if found == UNKNOWN else ""


def _is_registered(host: Host, payload: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
    from notyet.hosts.registered import events_called_at

    folder = _folder_of(host, payload, environ)
    if not folder:
        return False
    if not host.installed_as:
        return host.event_in(payload) in events_called_at(host, folder, environ)
    own = host_named(host.installed_as)
    return bool(_names_in(own, host, payload) & {*events_called_at(own, folder, environ)})


def is_registered_too(host: Host, payload: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
    """Return True if the host also runs an entry of ours in its settings for this event (B12).

    A plugin that stands aside for an entry that is never run would leave agents unchecked. So the
    quick look only says no, and a yes is what `notyet status` would say of that entry. Where that
    cannot be found out, both hooks answer.
    """
    from notyet.hosts.registered import events_called_at

    folder = _folder_of(host, payload, environ)
    for name in (host.name, *host.runs_files_of) if folder else ():
        own = host_named(name)
        names = {host.event_in(payload)} if own is host else _names_in(own, host, payload)
        if not names.isdisjoint(events_called_at(own, folder, environ)):
            is_run, _ = attempt(_is_run, host, own, names, folder, environ)
            if is_run:
                return True
    return False


def _is_run(
    host: Host, own: Host, names: set[str], folder: str, environ: Mapping[str, str]
) -> bool:
    """Return True if a host runs an entry of ours in the settings of a host, itself or another."""
    from notyet.hosts.faults import is_trusted
    from notyet.install.settings import settings_of

    scopes = ("user", "managed") if own is host else ()
    trusted = (*scopes, "project", "local") if is_trusted(host, folder, environ) else scopes
    running = settings_of(own.name).running(folder, environ)
    return any(one.event in names and one.file.scope in trusted for one in running)


def _folder_of(host: Host, payload: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Return the folder that a host was started in; empty if it is unknown."""
    folder = environ.get(host.project_variable) or host.value(payload, "cwd")
    return folder if isinstance(folder, str) and isabs(folder) else ""


def _names_in(own: Host, host: Host, payload: Mapping[str, Any]) -> set[str]:
    """Return the names that a host's event has in the settings of another, which it runs."""
    name = host.event_in(payload)
    names = {own.event_name(of) for event, of in host.stops.items() if event == name}
    return names | {own.start_name(of) for event, of in host.starts.items() if event == name}


def settings_patience(
    host: Host, event: StopEvent, gates: Sequence[Gate], environ: Mapping[str, str]
) -> float:
    """Return the seconds that the host's entry for us says; else what its own hooks need, or 0.

    Without an entry we are called in the host's place, by a program that waits for these hooks.
    """
    for file in host_files(host.name, root_of(real_folder(event.cwd)), environ):
        seconds, error = attempt(_own_timeout_in, file.path, host, event.scope)
        if error is None and seconds:
            return float(seconds)
    hooks = [gate for gate in gates if getattr(gate.check, "speaks", "") == host.name]
    longest = max((gate.timeout or 0.0 for gate in hooks), default=0.0)
    return longest + MARGIN if longest > host.timeout else 0.0


def _own_timeout_in(path: str, host: Host, scope: Scope) -> float:
    """Return how long the host waits for us, as a file says. Raises anything if it is none."""
    from notyet.hosts.hook_commands import own_timeout

    return own_timeout(host.name, loads(text_of(path)), host.event_name(scope))
