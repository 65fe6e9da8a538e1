"""How gates are asked that are Python functions: made once, when such a gate is registered."""

from __future__ import annotations

from notyet.checks.function import Question, asked_by
from notyet.dialects import function_face

__all__ = ["asked_by", "question_for"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.gate import Function, Gate


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
