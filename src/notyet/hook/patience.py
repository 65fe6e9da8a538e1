"""How long a host waits that waits for each hook as long as its settings say."""

from __future__ import annotations

from notyet.config.find import host_files, root_of, text_of
from notyet.errors import attempt
from notyet.hosts import MARGIN
from notyet.hosts.hook_commands import own_timeout
from notyet.light import loads, real_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.core.event import Scope, StopEvent
    from notyet.core.gate import Gate
    from notyet.hosts.host import Host


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
    return own_timeout(host.name, loads(text_of(path)), host.event_name(scope))
