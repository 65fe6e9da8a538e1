"""Events of supervised agents, for gates, observers and start hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from notyet.core.event import BackgroundTask, StartEvent, StopEvent
from notyet.core.record import replace
from notyet.core.session import Turn
from notyet.core.task import SUPERVISED_HOST

if TYPE_CHECKING:
    from notyet.core.session import Session
    from notyet.core.task import Result, Task
    from notyet.ledger.transitions import Seen

_SAID_BY_ENDING = frozenset({"end_turn", "error", "cancelled"})  # the ending says the same


def stop_event(
    seen: Seen, own: str | None, parents: str | None = None, overdue: tuple[str, ...] = ()
) -> StopEvent:
    """Return the stop of a run whose turn has ended. All figures are of this run (K3).

    `own` and `parents` are the transcripts of the agent and of its parent.
    """
    task, run = seen.task, seen.run
    turn = run.turn or Turn(text="", turns=0)
    is_subagent = task.scope == "subagent"
    return StopEvent(
        scope=task.scope,
        host=SUPERVISED_HOST,
        session_id=seen.session_id or task.id,
        turn_id=f"{task.id}/{seen.user_turn}",
        run_id=run.id,
        task_id=task.id,
        agent_id=task.id if is_subagent else None,
        agent_type=task.agent_type,
        parent_session_id=(task.parent_session or None) if is_subagent else None,
        internal=task.internal,
        cwd=task.cwd,
        workspace=task.workspace,
        ending=run.ending or "done",
        end_reason=turn.stop_reason if turn.stop_reason not in _SAID_BY_ENDING else None,
        error=turn.error,
        task=task.prompt,
        label=task.label,
        last_message=turn.text or None,
        transcript_path=parents if is_subagent else own,
        agent_transcript_path=own if is_subagent else None,
        stop_hook_active=run.source == "gate",
        usage=turn.usage,
        turns=turn.turns,
        tool_calls=turn.tool_calls,
        tools_used=turn.tools,
        duration_ms=turn.duration_ms,
        model=turn.model,
        # Overdue, not running: the parent is gated all the same (K9).
        background_tasks=tuple(
            BackgroundTask(id=child, type="subagent", status="overdue") for child in overdue
        ),
    )


def ended_event(seen: Seen, result: Result, transcript: str | None) -> StopEvent:
    """Return the event of a task's end, for observers. Its figures are of all runs (K11)."""
    return replace(
        stop_event(seen, transcript),
        ending=result.ending,
        error=result.error,
        last_message=result.text or None,
        usage=result.usage,
        turns=result.turns,
        tool_calls=result.tool_calls,
        tools_used=result.tools,
        duration_ms=result.duration_ms,
        raw={"last_run": result.last_run},
    )


def start_event(task: Task, session: Session, *, is_new: bool) -> StartEvent:
    """Return the start of a task: of a subagent, or of a main agent's session."""
    is_subagent = task.scope == "subagent"
    return StartEvent(
        scope=task.scope,
        host=SUPERVISED_HOST,
        session_id=session.id or task.id,
        agent_id=task.id if is_subagent else None,
        agent_type=task.agent_type,
        parent_session_id=(task.parent_session or None) if is_subagent else None,
        cwd=task.cwd,
        workspace=task.workspace,
        source="startup" if is_new else "resume",
        transcript_path=session.transcript(),
    )
