"""Trusting a file: a person looked at it, so its commands may run (N5)."""

from __future__ import annotations

import time

from notyet.config.compile import compile_text
from notyet.config.freezing import freeze
from notyet.config.store import (
    Trusted,
    read_record,
    state_folder,
    write_record,
)
from notyet.core.json_text import dumps, loads
from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.config.files import ConfigFile
    from notyet.config.settings import Settings


class Candidate(Record, kw_only=True):
    """A file that could be trusted: what it says now, and what was trusted before."""

    file: ConfigFile
    text: str
    settings: Settings
    before: Trusted | None = None

    @property
    def is_trusted(self) -> bool:
        """Whether this very text was trusted."""
        return self.before is not None and self.before.content == self.text

    @property
    def is_outdated(self) -> bool:
        """Whether the trusted text means something else by now: it names OpenClaw's file, say."""
        if self.before is None or not self.is_trusted:
            return False
        return bool(self.before.compiled != loads(dumps(freeze(self.settings))))


def candidate(file: ConfigFile, environ: Mapping[str, str]) -> Candidate:
    """Read a file that a person may want to trust. Raises OSError."""
    text = file.tree.text_of(file.path)
    return Candidate(
        file=file,
        text=text,
        settings=compile_text(text, file.path, file.kind, file.tree),
        before=read_record(state_folder(environ), file.path),
    )


def hosts_read(file: ConfigFile, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the hosts whose files a file wants to be read; none where nobody can tell."""
    try:
        return () if file.is_gone else candidate(file, environ).settings.read_hosts
    except OSError:
        return ()


def grant(chosen: Candidate, environ: Mapping[str, str]) -> None:
    """Put the text that was read into force, not what the file may say by now. Raises OSError."""
    record = Trusted(
        path=chosen.file.path,
        content=chosen.text,
        compiled=freeze(chosen.settings),
        at=time.time(),
        folder=chosen.file.tree.folder_id(chosen.file.path),
    )
    write_record(state_folder(environ), record)
