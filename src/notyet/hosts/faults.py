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
    from notyet.status.fault import Fault
    from notyet.status.look import Content, Look


class Checks:
    """The checks of a host that has nothing of its own."""

    def variables(self, contents: Sequence[Content]) -> dict[str, tuple[str, str]]:
        """Return the variables that settings add for hooks, each with its value and its place."""
        del contents
        return {}

    def faults(self, look: Look) -> Iterator[Fault]:
        """Yield what keeps the host from running our entries."""
        del look
        yield from ()

    def runs(self, look: Look, entry: Registration) -> bool:
        """Return True if the host would run an entry."""
        del look, entry
        return True

    def is_accepted(self, look: Look) -> bool:
        """Return True if the user accepted this project in the host, with what its files run."""
        del look
        return False

    def argv(self, entry: Registration) -> tuple[str, ...]:
        """Return how the host starts the command of an entry."""
        return ("/bin/sh", "-c", entry.command)


def checks_of(host: str) -> Checks:
    """Return the checks of a host."""
    try:
        checks: Checks = import_module(f"notyet.hosts.{host}.faults").CHECKS
    except ModuleNotFoundError:
        return Checks()
    return checks
