"""How often an agent may be sent back, and how often it was (B).

A ledger keeps one `History` per agent. Its two moves are here, so that every ledger counts
alike: `open_turn` when a stop begins, `after` when it is decided.
"""

from __future__ import annotations

from notyet.core.record import Record, replace
from notyet.core.verdict import Allow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.event import StopEvent
    from notyet.core.verdict import Decision


_TURNS_KNOWN = 8


class Limits(Record, kw_only=True):
    """How often the gates may send one agent back, and how many commands run at a time."""

    max_blocks: int = 3  # send-backs per turn; a passing stop refills them (B1)
    session_ceiling: int = 50  # send-backs per agent and session, never refilled; 0: off (B13)
    stuck_after: int = 3  # allow after the same failure this often in a row; 0: off (B6)
    wait_for_background: bool = True  # no gating while the session's other agents work (B10)
    jobs: int | None = None  # commands of a stage at a time; None: as many as there are cores

    def _validate(self) -> None:
        jobs = self.jobs
        if jobs is not None and (not isinstance(jobs, int) or isinstance(jobs, bool) or jobs < 1):
            raise ValueError(f"jobs is a whole number from 1 up, not {jobs!r}")
        for name in ("max_blocks", "session_ceiling", "stuck_after"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise ValueError(f"{name} is a whole number from 0 up, not {value!r}")
        if self.stuck_after == 1:
            raise ValueError("stuck_after = 1 would never send an agent back; use 0, or 2 and more")


class History(Record, kw_only=True):
    """What is remembered of one agent in one session."""

    turn: int = 0  # 0: never seen
    turn_ids: tuple[str, ...] = ()  # of the last few turns, the newest last
    blocks: int = 0  # send-backs in this turn since its last pass
    session_blocks: int = 0  # send-backs ever
    extend: int = 0  # the highest limit a gate of this turn asked for
    blocked: bool = False  # the last stop was sent back, and nothing came since
    repeats: int = 0  # stops in a row that failed alike
    repeat_key: str = ""
    # Gates that sent it back in this turn and have not passed since: their names and files.
    sent_back_by: tuple[tuple[str, str], ...] = ()


class Limit(Record):
    """The limit in force, and which setting it comes from."""

    number: int
    source: str


def limit_in_force(limits: Limits, history: History, host_cap: int) -> Limit:
    """Return how many send-backs this turn may have."""
    number, source = limits.max_blocks, "max_blocks"
    if history.extend > number:
        number, source = history.extend, "extended by a gate"
    # A host that overrides us may lose the agent's final answer, so we stay below its cap (B8).
    if host_cap > 0 and (below_cap := max(1, host_cap - 1)) < number:
        number, source = below_cap, f"below the host's cap of {host_cap}"
    if limits.session_ceiling:
        left = max(0, limits.session_ceiling - history.session_blocks)
        if history.blocks + left < number:
            number, source = history.blocks + left, f"session_ceiling {limits.session_ceiling}"
    return Limit(number, source)


def used(limits: Limits, history: History, limit: Limit) -> str:
    """Return in words which limit is reached."""
    ceiling = limits.session_ceiling
    if 0 < ceiling <= history.session_blocks:
        return f"all {ceiling} send-backs of this session used (session_ceiling)"
    if not limit.number:
        return f"no send-back allowed ({limit.source} 0)"
    return f"{history.blocks} of {limit.number} send-backs used ({limit.source})"


def open_turn(history: History, event: StopEvent) -> History:
    """Return the history at this stop: of the same turn, or of a new one (B4)."""
    # Without an id the flag tells; one that we cannot believe opens nothing, so that the whole
    # session is one turn. An id that comes back opens nothing either: no budget is given twice.
    known = event.turn_id in history.turn_ids
    if not event.turn_id:
        known = event.stop_hook_active is not False
    if history.turn and known:
        return history
    turn_ids = history.turn_ids
    if event.turn_id:
        turn_ids = (*turn_ids, event.turn_id)[-_TURNS_KNOWN:]
    return History(turn=history.turn + 1, turn_ids=turn_ids, session_blocks=history.session_blocks)


def after(history: History, decision: Decision) -> History:
    """Return the history once a decision is taken."""
    if decision.turn != history.turn:
        # A newer turn began while the gates ran: that turn's budget is not ours to spend.
        spent = 1 if decision.outcome == "blocked" else 0
        return replace(history, session_blocks=history.session_blocks + spent)
    repeats = 0
    if decision.repeat_key:
        repeats = history.repeats + 1 if decision.repeat_key == history.repeat_key else 1
    blocks, is_blocked = history.blocks, decision.outcome == "blocked"
    if decision.outcome in {"passed", "observed"}:
        blocks = 0
    return replace(
        history,
        extend=max(history.extend, decision.extend),
        repeats=repeats,
        repeat_key=decision.repeat_key,
        blocks=blocks + is_blocked,
        session_blocks=history.session_blocks + is_blocked,
        blocked=is_blocked,
        sent_back_by=decision.sent_back_by,
    )


def within_limit(history: History, decision: Decision, ceiling: int) -> Decision:
    """Return the decision as it may stand: other stops of this agent may have used the budget.

    Called when a decision is recorded, with the history as it is then (B1, B13).
    """
    if decision.outcome != "blocked":
        return decision
    full = 0 < ceiling <= history.session_blocks
    if decision.turn == history.turn:
        full = full or history.blocks >= decision.limit
        decision = replace(decision, count=history.blocks + (not full))
    if not full:
        return decision
    why = f"{decision.why} still failing; other stops at the same time used the last send-back"
    return replace(decision, verdict=Allow(), outcome="capped", why=why, repeat_key="")


def uncounted(decision: Decision, problem: str) -> Decision:
    """Return a decision that could not be recorded as it may stand.

    A send-back that was not counted must not happen: it could go on for ever (B3).
    """
    warnings = (*decision.warnings, f"{problem} (this decision was not recorded)")
    if decision.outcome != "blocked":
        return replace(decision, warnings=warnings)
    return replace(
        decision,
        verdict=Allow(),
        outcome="failed_open",
        count=decision.count - 1,
        why=f"{decision.why} blocked, but the ledger failed",
        warnings=warnings,
    )
