"""`Queue`: how many tasks may be at work, and begin in a while, on each worker and for each model.

The engine has a queue of its own, a lane, for each model that is named in the limits, and one for
all others: what it allows differs from lane to lane.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from notyet.core.task import Room
from notyet.errors import Refused
from notyet.ledger.placements import unknown_queue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Literal

OTHERS = "*"  # the models without a limit of their own
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_RATE = re.compile(r"(\d+)\s*/\s*(s|sec|second|min|minute|h|hour|day)")
_AT_ONCE = re.compile(r"(\d+)\s+at\s+once")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_LONGEST_MODEL = 200
_NUMBERS = range(1, 2**31)  # that the engine can hold


@dataclass(frozen=True)
class Limit:
    """What one model may do at most."""

    at_once: int | None = None
    rate: int | None = None  # tasks that begin in a period
    period: float = 60.0  # seconds

    @classmethod
    def read(cls, text: str) -> Limit:
        """Read "50/min, 20 at once". Raises ValueError."""
        known: dict[str, Any] = {}
        for part in text.split(",") if isinstance(text, str) else [""]:
            words = part.strip()
            if (rate := _RATE.fullmatch(words)) and "rate" not in known:
                known |= {"rate": int(rate[1]), "period": _SECONDS[rate[2][0]]}
            elif (at_once := _AT_ONCE.fullmatch(words)) and "at_once" not in known:
                known["at_once"] = int(at_once[1])
            else:
                known["rate"] = 0
        if not all(known.get(name, 1) in _NUMBERS for name in ("rate", "at_once")):
            raise ValueError(f"invalid limit {text!r}; write for example: 50/min, 20 at once")
        return cls(**known)


@dataclass(frozen=True)
class Lane:
    """A queue of the engine."""

    name: str
    limit: Limit
    is_shared: bool  # by models that have the limit each for itself


@dataclass(frozen=True)
class Queue:
    """A queue of a fleet.

    `per_worker` tasks are at work on each worker at most. `limits` are of models, "*" for each of
    the others; with `by=""` they are of the whole queue, and "*" is the only one. Tasks with a
    smaller `priority` begin first; it is for tasks that are submitted without one.
    """

    name: str
    per_worker: int | None = None
    by: Literal["model", ""] = "model"
    limits: Mapping[str, str] = field(default_factory=dict)
    priority: int = 100

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            what = "letters, digits, dots, dashes and underscores"
            raise ValueError(f"the name of a queue must be {what}, not {self.name!r}")
        if self.per_worker is not None:
            check_number("per_worker", self.per_worker)
        if self.by not in {"model", ""}:
            raise ValueError(f'by must be "model" or "", not {self.by!r}')
        check_number("priority", self.priority)
        for model in self.limits:
            check_model(model)
        if not self.by and set(self.limits) - {OTHERS}:
            raise ValueError('limits of models need by="model"')
        self.lanes()  # reads every limit

    @classmethod
    def stored(cls, about: Mapping[str, Any]) -> Queue:
        """Return the queue that `about` wrote."""
        known = {name: about[name] for name in cls.__dataclass_fields__ if name in about}
        return cls(**known)

    def about(self) -> dict[str, Any]:
        """Return the queue as JSON."""
        return asdict(self)

    def lanes(self, former: Iterable[str] = ()) -> list[Lane]:
        """Return its queues of the engine. Raises ValueError.

        Tasks of `former` lanes, of models that have no limit of their own any more, have that of
        the others.
        """
        is_shared = bool(self.by) and OTHERS in self.limits
        others = Lane(self.name, self._limit(OTHERS), is_shared=is_shared)
        named = [model for model in self.limits if model != OTHERS]
        lanes = [others, *(Lane(self._lane(m), self._limit(m), is_shared=False) for m in named)]
        gone = set(former) - {lane.name for lane in lanes}
        return [*lanes, *(Lane(name, others.limit, is_shared=False) for name in sorted(gone))]

    def lane_of(self, model: str) -> tuple[str, str]:
        """Return the lane of a model's tasks, and their part of it.

        Where a lane is not shared its parts do not count, but limits may change.
        """
        is_named = model in self.limits and model != OTHERS
        return self._lane(model) if is_named else self.name, model or "-"

    def room_for(self, model: str) -> Room:
        """Return what the next task of a model must find."""
        limit = self._limit(model if model in self.limits else OTHERS)
        return Room(
            at_once=limit.at_once,
            rate=limit.rate,
            period=limit.period,
            model=model if self.by else None,
        )

    def _lane(self, model: str) -> str:
        return f"{self.name}:{model}"

    def _limit(self, model: str) -> Limit:
        text = self.limits.get(model)
        return Limit() if text is None else Limit.read(text)


def check_number(name: str, value: object) -> None:
    """Raise ValueError for a number that the engine cannot hold."""
    if not isinstance(value, int) or value not in _NUMBERS:
        raise ValueError(f"{name} must be a whole number from 1 up, not {value!r}")


def check_model(model: object) -> None:
    """Raise ValueError for a name that the engine cannot hold."""
    if not isinstance(model, str) or not (model.isprintable() and len(model) <= _LONGEST_MODEL):
        what = "a model's name must be text without control characters"
        raise ValueError(f"{what}, of {_LONGEST_MODEL} characters at most, not {model!r:.100}")


def queue_named(name: str, known: Mapping[str, Mapping[str, Any]]) -> Queue:
    """Return a queue that the ledger knows. Raises Refused."""
    if name not in known:
        raise unknown_queue(name, list(known))
    try:
        return Queue.stored(known[name])
    except (TypeError, ValueError) as error:
        raise Refused(f"queue {name!r} cannot be read: {error}; upgrade notyet") from None
