"""How gates are asked that are Python functions: made once, when such a gate is registered."""

from __future__ import annotations

from notyet.hosts import function_face
from notyet.run.functions import Question, asked_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.gate import Function, Gate

__all__ = ["asked_by", "question_for"]


def question_for(gate: Gate, check: Function, engine: int) -> Question:
    """Return how a gate's function is asked by this engine."""
    face = function_face(check.speaks)
    return Question(
        gate.name,
        check.call,
        face.read_return,
        write=face.write_call,
        timeout=gate.timeout,
        observed=gate.observe,
        engine=engine,
    )
