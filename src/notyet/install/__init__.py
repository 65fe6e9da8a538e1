"""Registering notyet with the programs that run agents: one small module for each of them."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.install.host import Host

HOSTS = {"claude": "notyet.install.claude", "codex": "notyet.install.codex"}


def host_named(name: str) -> Host:
    """Return the module of a host; KeyError for one that we do not know."""
    host: Host = import_module(HOSTS[name])
    return host
