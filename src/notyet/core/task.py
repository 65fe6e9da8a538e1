"""The life of one supervised run, as one table.

    queued ─► running ─► settling ─► gating ─► ended
                 │          │          └─► steering ─► superseded
                 └──────────┴── a person steers ──┘

`queued` is only for tasks of a fleet: no worker has begun them.

`settling` waits for a transient error to heal and for the run's own children. A run that is
`gating` or `steering` still counts as active. `ended` and `superseded` are final.
"""

from __future__ import annotations

from notyet.core.event import Usage
from notyet.core.record import Record, check_types
from notyet.core.remote import LOCAL, remote_from
from notyet.core.session import Turn
from notyet.core.text import bounded
from notyet.core.verdict import Halt
from notyet.errors import LifecycleError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from notyet.core.event import Ending, Scope
    from notyet.core.verdict import Decision, Outcome

    State = Literal["queued", "running", "settling", "gating", "steering", "superseded", "ended"]
    Signal = Literal[
        "start",  # a worker begins a queued task
        "finish",  # the agent's turn ended, in whatever way
        "settle",  # its grace period and its children are over
        "allow",  # the gates let it go, or cannot hold it
        "block",  # the gates send it back: a steer is reserved
        "steer",  # a person or the parent redirects it: a steer is reserved
        "accept",  # the session took the prompt, a new run carries on
        "fail",  # the steer could not be dispatched
        "kill",
        "reset",
        "interrupt",
    ]
    Cleanup = Literal["keep", "delete"]
    # Who continues an agent: only what gates ask for is counted (B7).
    Source = Literal["start", "gate", "manual", "user", "children"]
    # What is known of a run's prompt: certainly not sent, perhaps, certainly.
    Sent = Literal["reserved", "dispatched", "accepted"]
    Delivery = Literal["", "pending", "leased", "delivered", "suspended", "dismissed"]

SUPERVISED_HOST = "notyet"  # in the events of supervised agents
START = "running"
FINAL = frozenset({"superseded", "ended"})
ACTIVE = frozenset({"queued", "running", "settling", "gating", "steering"})

_ENDED_BY_PEOPLE: dict[Signal, State] = {"kill": "ended", "reset": "ended", "interrupt": "ended"}
TRANSITIONS: dict[State, dict[Signal, State]] = {
    "queued": {"start": "running", **_ENDED_BY_PEOPLE},
    "running": {"finish": "settling", "steer": "steering", **_ENDED_BY_PEOPLE},
    # A later finish replaces a transient error by the success that followed it.
    "settling": {
        "finish": "settling",
        "settle": "gating",
        "steer": "steering",
        **_ENDED_BY_PEOPLE,
    },
    "gating": {"allow": "ended", "block": "steering", "steer": "steering", **_ENDED_BY_PEOPLE},
    "steering": {"accept": "superseded", "fail": "ended", **_ENDED_BY_PEOPLE},
    "superseded": {},
    "ended": {},
}


def advance(state: State, signal: Signal) -> State:
    """Return the state that follows; LifecycleError when the two do not go together."""
    try:
        return TRANSITIONS[state][signal]
    except KeyError:
        raise LifecycleError(f"a run that is {state} cannot {signal}") from None


MOST_TEXT = 1_000_000  # characters of an answer that are kept


class Task(Record, kw_only=True):
    """What an agent is to do. Its id stays the same, however often the agent is continued."""

    id: str
    prompt: str
    scope: Scope = "subagent"
    parent: str = ""  # the parent's task, where the parent is supervised too
    parent_session: str = ""
    label: str | None = None
    agent_type: str | None = None
    cwd: str = ""
    # Where its files are: ssh://host/path, LOCAL, or empty: where its parent's are, if it has one.
    workspace: str = ""
    timeout: float | None = None  # seconds for each run
    cleanup: Cleanup = "keep"
    internal: bool = False
    depth: int = 0

    def _validate(self) -> None:
        check_types(self)
        if self.workspace not in {"", LOCAL}:
            self.__dict__["workspace"] = remote_from(self.workspace).url


class Order(Record, kw_only=True):
    """What a worker of a fleet needs to begin a task."""

    queue: str
    agent: str = ""  # a name that `open_session` knows
    args: tuple[str, ...] = ()  # for the agent's program
    place: str = ""  # its files: a git address, ssh://host/path, or a folder of the worker
    model: str = ""  # whose limits count
    priority: int = 0  # smaller numbers first
    retries: int = 0  # new runs after an ending as interrupted or error

    def _validate(self) -> None:
        check_types(self)


class Room(Record, kw_only=True):
    """How many tasks may be at work, and begin in a period, before the next one has to wait."""

    at_once: int | None = None
    rate: int | None = None
    period: float = 60.0  # seconds
    model: str | None = None  # the limits are this model's; None: of the whole queue


class Figures(Record, kw_only=True):
    """What one run cost."""

    usage: Usage = Usage()
    tools: tuple[str, ...] = ()
    tool_calls: int = 0
    turns: int = 0
    duration_ms: float = 0.0


class Result(Record, kw_only=True):
    """How a task ended; frozen when it did, so that later traffic cannot change it."""

    task_id: str
    run_id: str = ""
    generation: int = 1
    session_id: str = ""
    label: str | None = None
    agent_type: str | None = None
    ending: Ending = "done"
    outcome: Outcome = "skipped"
    text: str = ""  # the agent's last message
    error: str | None = None
    stop_reason: str | None = None  # why a gate halted it, or why no gate ran
    rejected: str = ""  # an earlier answer, where none came after it; a gate may have rejected it
    unsent: tuple[str, ...] = ()  # messages of the user that came too late
    steers: int = 0  # how often a gate sent it back
    usage: Usage = Usage()  # of all its runs, like all figures
    tools: tuple[str, ...] = ()
    tool_calls: int = 0
    turns: int = 0
    model: str | None = None
    duration_ms: float = 0.0
    last_run: Figures = Figures()
    warnings: tuple[str, ...] = ()


class Announcement(Record, kw_only=True):
    """A result on its way to its consumer. A consumer that knows the key has had it."""

    key: str  # the same at every attempt
    result: Result
    attempt: int = 1


class TaskView(Record, kw_only=True):
    """A task as a list shows it."""

    task: Task
    run_id: str
    generation: int
    state: State
    source: Source
    steers: int
    session_id: str
    created_at: float
    ended_at: float | None = None
    ending: Ending | None = None
    outcome: Outcome | None = None
    stop_reason: str | None = None  # why a gate halted it, or why no gate ran
    text: str = ""
    owner_pid: int = 0
    program: str = ""  # whose supervisor drives it
    owner_alive: bool = False
    delivery: Delivery = ""
    delivery_error: str = ""
    attempts: int = 0
    maybe_unnotified: bool = False  # a process died while it notified the observers of its end
    agent: str = ""  # which program, where its session says so
    queue: str = ""  # of a fleet
    model: str = ""  # that it was submitted for
    worker: str = ""  # the machine of the worker that has it


class Run(Record, kw_only=True):
    """One attempt at a task; each steer begins another, one generation on."""

    id: str
    task: str
    generation: int
    state: State
    source: Source
    key: str  # of its prompt
    prompt: str
    sent: Sent = "accepted"
    started_at: float = 0.0
    ending: Ending | None = None
    turn: Turn | None = None


class Steer(Record, kw_only=True):
    """A prompt that continues an agent and has not arrived yet."""

    key: str
    run: str  # which it continues
    source: Source
    prompt: str
    phase: Literal["reserved", "dispatched"]


def conclude(
    task: Task,
    run: Run,
    *,
    ending: Ending,
    session_id: str,
    steers: int,
    decision: Decision | None = None,
    rejected: str = "",
    unsent: tuple[str, ...] = (),
    error: str | None = None,
    earlier: tuple[Turn, ...] = (),
) -> Result:
    """Return what a task came to, when its last run ends this way, after `earlier` ones."""
    turn = run.turn or Turn(text="", turns=0)
    total = total_of((*earlier, turn))
    text = bounded(turn.text, MOST_TEXT)
    return Result(
        task_id=task.id,
        run_id=run.id,
        generation=run.generation,
        session_id=session_id,
        label=task.label,
        agent_type=task.agent_type,
        ending=ending,
        outcome=decision.outcome if decision is not None else "skipped",
        text=text,
        error=error or turn.error,
        stop_reason=_stop_reason(decision),
        # Never in place of the answer: a gate may have rejected it (K19).
        rejected="" if text.strip() else bounded(rejected, MOST_TEXT),
        unsent=unsent,
        steers=steers,
        usage=total.usage,
        tools=total.tools,
        tool_calls=total.tool_calls,
        turns=total.turns,
        model=turn.model,
        duration_ms=total.duration_ms,
        last_run=total_of((turn,)),
        warnings=decision.warnings if decision is not None else (),
    )


def total_of(turns: tuple[Turn, ...]) -> Figures:
    """Return what some turns cost together."""
    spent = {
        name: sum(getattr(turn.usage, name) for turn in turns)
        for name in Usage._fields  # our own record
    }
    return Figures(
        usage=Usage(**spent),
        tools=tuple(dict.fromkeys(tool for turn in turns for tool in turn.tools)),
        tool_calls=sum(turn.tool_calls for turn in turns),
        turns=sum(turn.turns for turn in turns),
        duration_ms=sum(turn.duration_ms for turn in turns),
    )


def _stop_reason(decision: Decision | None) -> str | None:
    if decision is None:
        return None
    if isinstance(decision.verdict, Halt):
        return decision.verdict.reason or "halted by a gate"
    return decision.why or None


def ending_of(turn: Turn) -> Ending:
    """Return how a turn ended that came back by itself."""
    if turn.stop_reason == "error":
        return "error"
    return "interrupted" if turn.stop_reason == "cancelled" else "done"
