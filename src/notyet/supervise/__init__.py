"""Our own host: agents whose endings are gated, steered, recorded and announced.

    async with Supervisor(engine, Ledger(), reopen) as supervisor:
        result = await supervisor.run(session, "Make the tests pass.")

A task is driven by a loop over its state in the *ledger* (`task_loop`), and every step of it is one
guarded transaction. So recovery after a crash, by any process, is the same loop started again.
"""

from __future__ import annotations

from notyet.supervise.live_task import Handle
from notyet.supervise.settings import Progress, SupervisorSettings
from notyet.supervise.supervisor import Supervisor

__all__ = ["Handle", "Progress", "Supervisor", "SupervisorSettings"]
