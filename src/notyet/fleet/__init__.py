"""Fleets: one ledger on PostgreSQL, tasks in queues, workers on many machines."""

from notyet.fleet.fleet import Fleet
from notyet.fleet.queue import Queue
from notyet.fleet.worker import Worker
from notyet.fleet.workspaces import Workspaces

__all__ = ["Fleet", "Queue", "Worker", "Workspaces"]
