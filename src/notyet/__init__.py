"""notyet: the stop gate for AI agents. Agents say done; notyet checks, and sends them back.

from notyet import Block, Engine, StopEvent

def tests_ran(event):
    if "passed" not in (event.last_message or ""):
        return Block("Run the tests and report their result.")

decision = Engine([tests_ran]).check_sync(StopEvent(session_id="s1", last_message="Done!"))
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.event import BackgroundTask, StartEvent, StopEvent, Usage
    from notyet.core.gate import Command, Function, Gate, Match, Source, Starter
    from notyet.core.limits import History, Limits
    from notyet.core.record import replace
    from notyet.core.session import News, Session, Turn
    from notyet.core.task import Announcement, Result, Task, TaskView
    from notyet.core.verdict import Allow, Block, Decision, Halt, Problem, Report
    from notyet.engine.engine import Engine
    from notyet.engine.observers import Observer
    from notyet.errors import (
        LedgerBusy,
        LedgerError,
        LedgerNeedsRepair,
        LedgerNewer,
        LifecycleError,
        NotyetError,
        Refused,
        SendError,
        Undeliverable,
    )
    from notyet.hosts.transcript import last_message
    from notyet.ledger.ledger import Ledger
    from notyet.supervise.live_task import Handle
    from notyet.supervise.settings import Progress, SupervisorSettings
    from notyet.supervise.supervisor import Supervisor

__all__ = [
    "Allow",
    "Announcement",
    "BackgroundTask",
    "Block",
    "Command",
    "Decision",
    "Engine",
    "Function",
    "Gate",
    "Halt",
    "Handle",
    "History",
    "Ledger",
    "LedgerBusy",
    "LedgerError",
    "LedgerNeedsRepair",
    "LedgerNewer",
    "LifecycleError",
    "Limits",
    "Match",
    "News",
    "NotyetError",
    "Observer",
    "Problem",
    "Progress",
    "Refused",
    "Report",
    "Result",
    "SendError",
    "Session",
    "Source",
    "StartEvent",
    "Starter",
    "StopEvent",
    "Supervisor",
    "SupervisorSettings",
    "Task",
    "TaskView",
    "Turn",
    "Undeliverable",
    "Usage",
    "last_message",
    "replace",
]

# Where each name lives; loaded when it is first asked for, so that `import notyet` costs nothing.
_HOMES = {
    "notyet.core.event": ("BackgroundTask", "StartEvent", "StopEvent", "Usage"),
    "notyet.core.gate": ("Command", "Function", "Gate", "Match", "Source", "Starter"),
    "notyet.core.limits": ("History", "Limits"),
    "notyet.core.record": ("replace",),
    "notyet.core.session": ("News", "Session", "Turn"),
    "notyet.core.task": ("Announcement", "Result", "Task", "TaskView"),
    "notyet.core.verdict": ("Allow", "Block", "Decision", "Halt", "Problem", "Report"),
    "notyet.engine.engine": ("Engine",),
    "notyet.engine.observers": ("Observer",),
    "notyet.errors": (
        "LedgerBusy",
        "LedgerError",
        "LedgerNewer",
        "LedgerNeedsRepair",
        "LifecycleError",
        "NotyetError",
        "Refused",
        "SendError",
        "Undeliverable",
    ),
    "notyet.hosts.transcript": ("last_message",),
    "notyet.ledger.ledger": ("Ledger",),
    "notyet.supervise.live_task": ("Handle",),
    "notyet.supervise.settings": ("Progress", "SupervisorSettings"),
    "notyet.supervise.supervisor": ("Supervisor",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'notyet' has no attribute {name!r}")
    value: object = getattr(__import__(home, fromlist=(name,)), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_HOME_OF]
