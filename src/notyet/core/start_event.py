"""`StartEvent`: one agent or subagent begins."""

from __future__ import annotations

from notyet.core.event import workspace_url
from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.event import Scope


class StartEvent(Record, kw_only=True):
    """An agent or subagent begins: it can be told which gates it will meet."""

    scope: Scope = "agent"
    host: str = "embedded"
    session_id: str = ""
    agent_id: str | None = None
    agent_type: str | None = None
    parent_session_id: str | None = None
    cwd: str = ""
    source: str | None = None  # "startup", "resume", ...
    turn_id: str | None = None
    transcript_path: str | None = None
    model: str | None = None
    permission_mode: str | None = None
    workspace: str = ""  # where the files are, if elsewhere: ssh://host/path

    def _validate(self) -> None:
        if self.workspace:
            self.__dict__["workspace"] = workspace_url(self.workspace)
