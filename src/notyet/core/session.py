"""`Session`: how the supervisor talks with any agent."""

from __future__ import annotations

from notyet.core.event import Usage
from notyet.core.record import Record, check_types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, Protocol

    StopReason = Literal["end_turn", "max_tokens", "max_turns", "refusal", "cancelled", "error"]
    NewsKind = Literal[
        "accepted",  # the agent has the prompt
        "ref",  # what `ref` returns has changed
        "text",  # the agent's words
        "tool",  # it called a tool
        "error",  # the agent reports an error that does not end its turn: it tries again
        "ended",  # a turn ended, seen on another way than by `send`
    ]
else:
    Protocol = object

_INFINITE = float("inf")


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

    def _validate(self) -> None:
        check_types(self)  # a session is foreign code
        if not isinstance(self.usage, Usage):
            raise TypeError(f"usage is a Usage, not {type(self.usage).__name__}")
        if not all(isinstance(tool, str) for tool in self.tools):
            raise TypeError("tools must contain only names")
        if not -_INFINITE < self.duration_ms < _INFINITE:
            raise ValueError(f"duration_ms is a number of milliseconds, not {self.duration_ms}")


class News(Record, kw_only=True):
    """Something that happens within a turn, for progress and for recovery."""

    kind: NewsKind
    text: str = ""  # words, or a tool's input in one line
    tool: str = ""
    turn: Turn | None = None  # of "ended"


class Session(Protocol):
    """One conversation. The first `send` starts it, later ones continue with full history.

    A session may have an attribute `on_news`, a function that takes `News` and is called in the
    loop's thread: "accepted" tells when a steer has arrived, which is otherwise known only when
    its turn has ended. It may have a method `discard`, which removes the files that it wrote.
    """

    id: str | None

    def ref(self) -> dict[str, object]:
        """Return JSON from which the session can be reopened after a crash."""

    async def send(self, prompt: str, key: str) -> Turn:
        """Send a prompt and wait for the turn to end; `key` names this very sending.

        Raises SendError when the prompt certainly did not arrive. What goes wrong once it may
        have arrived is a Turn with stop_reason 'error'.

        One prompt at a time: a `send` while another turn runs may raise SendError or wait for
        that turn to end. Cancelling a `send` ends its turn.
        """

    def knows(self, key: str) -> bool | None:
        """Return True if a prompt with this key arrived; None if that is unknown."""

    async def abort(self) -> None:
        """End the running turn; its `send` returns with stop_reason 'cancelled'.

        A session reopened in another process ends the agent that was left behind, if it lives.
        """

    def transcript(self) -> str | None:
        """Return the path of the conversation's transcript, where there is one."""
