"""What a `session_start` or `subagent_start` handler gets, and what it may answer (C8, F13)."""

from __future__ import annotations

from notyet.core.text import clean
from notyet.core.verdict import Allow
from notyet.hosts.view import View, snake

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.event import Scope, StartEvent

# The names that handlers are registered under, and whose start each is about.
STARTING: dict[str, Scope] = {"session_start": "agent", "subagent_start": "subagent"}
DIALECT = "openclaw"  # of these handlers
_KEY = "additional_context"


class Start(View, kw_only=True):
    """What the handler is told about."""

    session_id: str
    agent_id: str | None
    agent_type: str | None
    source: str | None  # of a session: "startup", "resume", ...
    model: str | None
    transcript_path: str | None


class Context(View, kw_only=True):
    """Where it happens."""

    host: str
    session_id: str
    cwd: str


def write_start(event: StartEvent) -> tuple[Start, Context]:
    """Return the arguments of a handler."""
    is_main = event.scope == "agent"
    start = Start(
        session_id=event.session_id,
        agent_id=event.agent_id,
        agent_type=event.agent_type,
        source=(event.source or "startup") if is_main else None,
        model=event.model,
        transcript_path=event.transcript_path,
    )
    return start, Context(host=event.host, session_id=event.session_id, cwd=event.cwd)


def read_return(returned: object) -> tuple[Allow, str]:
    """Return the words that a handler adds, as a note, and a warning for its author."""
    if isinstance(returned, dict):
        said = {snake(str(key)): value for key, value in returned.items()}
        returned = said.get(_KEY)
        if returned is not None and not isinstance(returned, str):
            return Allow(), f"{_KEY} is text, not {type(returned).__name__}; ignored"
    return Allow(note=clean(returned).strip() if isinstance(returned, str) else ""), ""
