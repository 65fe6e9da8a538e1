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
    from notyet.core.command import Command
    from notyet.core.event import BackgroundTask, StopEvent, Usage
    from notyet.core.gate import Function, Gate, Match, Source
    from notyet.core.limits import History, Limits
    from notyet.core.record import replace
    from notyet.core.session import Session, Turn
    from notyet.core.verdict import Allow, Block, Decision, Halt, Problem, Report
    from notyet.engine import Engine
    from notyet.errors import LedgerBusy, LedgerError, LedgerNewer, LifecycleError, NotyetError
    from notyet.ledger.sqlite import Ledger
    from notyet.observers import Observer

__all__ = [
    "Allow",
    "BackgroundTask",
    "Block",
    "Command",
    "Decision",
    "Engine",
    "Function",
    "Gate",
    "Halt",
    "History",
    "Ledger",
    "LedgerBusy",
    "LedgerError",
    "LedgerNewer",
    "LifecycleError",
    "Limits",
    "Match",
    "NotyetError",
    "Observer",
    "Problem",
    "Report",
    "Session",
    "Source",
    "StopEvent",
    "Turn",
    "Usage",
    "replace",
]

# Where each name lives; loaded when it is first asked for, so that `import notyet` costs nothing.
_HOMES = {
    "notyet.core.command": ("Command",),
    "notyet.core.event": ("BackgroundTask", "StopEvent", "Usage"),
    "notyet.core.gate": ("Function", "Gate", "Match", "Source"),
    "notyet.core.limits": ("History", "Limits"),
    "notyet.core.record": ("replace",),
    "notyet.core.session": ("Session", "Turn"),
    "notyet.core.verdict": ("Allow", "Block", "Decision", "Halt", "Problem", "Report"),
    "notyet.engine": ("Engine",),
    "notyet.errors": ("LedgerBusy", "LedgerError", "LedgerNewer", "LifecycleError", "NotyetError"),
    "notyet.ledger.sqlite": ("Ledger",),
    "notyet.observers": ("Observer",),
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
