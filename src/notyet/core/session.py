"""`Session`: how the supervisor holds a conversation with any agent."""

from __future__ import annotations

from notyet.core.event import Usage
from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, Protocol

    StopReason = Literal["end_turn", "max_tokens", "max_turns", "refusal", "cancelled", "error"]
else:
    Protocol = object


class Turn(Record, kw_only=True):
    """What came back for one prompt. Figures are of this turn, not of the session so far."""

    text: str
    stop_reason: StopReason = "end_turn"
    usage: Usage = Usage()
    tools: tuple[str, ...] = ()
    tool_calls: int = 0
    turns: int = 1
    model: str | None = None
    duration_ms: float = 0.0
    error: str | None = None


class Session(Protocol):
    """One conversation. The first `send` starts it, later ones continue with full history."""

    id: str | None

    def ref(self) -> dict[str, object]:
        """Return JSON from which the session can be reopened after a crash."""

    async def send(self, prompt: str, key: str) -> Turn:
        """Send a prompt and wait for the turn to end; `key` names this very sending."""

    def knows(self, key: str) -> bool | None:
        """Tell whether a prompt with this key arrived; None when it cannot be known."""

    async def abort(self) -> None:
        """End the running turn; its `send` returns with stop_reason 'cancelled'."""

    def transcript(self) -> str | None:
        """Return the path of the conversation's transcript, where there is one."""
