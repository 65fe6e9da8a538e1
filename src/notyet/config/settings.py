"""`Settings`: what one configuration file comes to. Loaded on the hook's way, so it is light."""

from __future__ import annotations

from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.config.file_observer import FileObserver
    from notyet.config.mistakes import Mistake
    from notyet.core.gate import Gate
    from notyet.core.starter import Starter


class Settings(Record, kw_only=True):
    """One file's gates and settings; only what it says, so that files can be layered."""

    file: str
    gates: tuple[Gate, ...] = ()
    starters: tuple[Starter, ...] = ()  # never compiled: only a supervisor asks for them
    limits: Mapping[str, Any] = {}
    observers: tuple[FileObserver, ...] = ()
    ledger: Mapping[str, Any] = {}  # how much is kept; counts in the user's own file only
    start_tell: bool | None = None
    read_hosts: tuple[str, ...] = ()
    # Where its gates run, and whose files are read: ssh://host/path. "local" says that it is here,
    # whatever a wider file says.
    workspace: str = ""
    openclaw: str = ""  # the path of a file that sets `max_blocks` (J9)
    reply: Mapping[str, str] = {}  # by host
    notifications: Mapping[str, Any] = {}  # of a `.conclaude.yaml`
    mistakes: tuple[Mistake, ...] = ()
    warnings: tuple[Mistake, ...] = ()  # of what is right for its host, and left out by us
