"""What differs between hosts when `notyet status` looks for faults.

A host with faults of its own has a module `faults` in its folder, whose `CHECKS` is an instance
of a subclass of `Checks`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notyet.install.settings import Registration
    from notyet.status.facts import HostFacts, SettingsContent
    from notyet.status.fault import Fault


class Checks:
    """The checks of a host that has nothing of its own."""

    def variables(self, files: Sequence[SettingsContent]) -> dict[str, tuple[str, str]]:
        """Return the variables that settings add for hooks, each with its value and its place."""
        del files
        return {}

    def faults(self, facts: HostFacts) -> Iterator[Fault]:
        """Yield what keeps the host from running our entries."""
        del facts
        yield from ()

    def is_accepted(self, facts: HostFacts) -> bool:
        """Return True if the user accepted this project in the host, with what its files run."""
        del facts
        return False

    def argv(self, entry: Registration) -> tuple[str, ...]:
        """Return how the host starts the command of an entry."""
        return ("/bin/sh", "-c", entry.command)


def managed_only(facts: HostFacts, content: SettingsContent, key: str) -> Fault:
    """Return the fault of a setting that allows only the hooks of an organisation."""
    return facts.fault(
        "managed-hooks-only",
        f"{key} is set, so {facts.host.title} runs only hooks of your organisation.",
        where=content.where(key),
        fix="ask the administrator of this machine to register notyet there",
    )


def checks_of(host: str) -> Checks:
    """Return the checks of a host."""
    try:
        checks: Checks = import_module(f"notyet.hosts.{host}.faults").CHECKS
    except ModuleNotFoundError:
        return Checks()
    return checks
