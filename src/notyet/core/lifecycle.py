"""The life of one supervised run, as one table.

    running ─► settling ─► gating ─► ended
       │          │          └─► steering ─► superseded
       └──────────┴── a person steers ──┘

`settling` waits for a transient error to heal and for the run's own children. A run that is
`gating` or `steering` still counts as active. `ended` and `superseded` are final.
"""

from __future__ import annotations

from notyet.errors import LifecycleError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    State = Literal["running", "settling", "gating", "steering", "superseded", "ended"]
    Signal = Literal[
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

START = "running"
FINAL = frozenset({"superseded", "ended"})
ACTIVE = frozenset({"running", "settling", "gating", "steering"})

_ENDED_BY_PEOPLE: dict[Signal, State] = {"kill": "ended", "reset": "ended", "interrupt": "ended"}
TRANSITIONS: dict[State, dict[Signal, State]] = {
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
