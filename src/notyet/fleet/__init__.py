"""Fleets: one ledger on PostgreSQL, tasks in queues, workers on many machines."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from notyet.fleet.fleet import Fleet
    from notyet.fleet.queue import Queue
    from notyet.fleet.worker import Worker
    from notyet.fleet.workspaces import Workspaces

__all__ = ["Fleet", "Queue", "Worker", "Workspaces"]


def __getattr__(name: str) -> object:
    # Loaded when it is first asked for: the overview of a fleet needs no engine.
    if name not in __all__:
        raise AttributeError(f"module 'notyet.fleet' has no attribute {name!r}")
    return getattr(import_module(f"notyet.fleet.{name.lower()}"), name)
