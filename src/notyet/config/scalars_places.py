"""Shapes of texts that say where: a path below a folder, and a workspace."""

from __future__ import annotations

from posixpath import isabs, normpath

from notyet.config.scalars import BROKEN, Text, name_of, said
from notyet.core.remote import LOCAL, is_remote, remote_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.config.document import Path
    from notyet.config.scalars import Found, Schema


class Below(Text, kw_only=True):
    """A path that stays below the file's folder."""

    says: str = "a path below the file's folder"

    def check(self, value: Any, path: Path, found: Found) -> Any:
        clean = super().check(value, path, found)
        if clean is BROKEN:
            return BROKEN
        if isabs(clean) or clean.startswith("~") or normpath(clean).split("/")[0] == "..":
            found.append((path, f"{name_of(path)} is {self.says}, not {said(value)}", ""))
            return BROKEN
        return clean


class Workspace(Text, kw_only=True):
    """Where files are: here, or in a folder that is reached over SSH. Cleaned, it is canonical."""

    line: bool = True
    says: str = f'"ssh://[user@]host[:port]/path", or "{LOCAL}"'

    def check(self, value: Any, path: Path, found: Found) -> Any:
        clean = super().check(value, path, found)
        if clean is BROKEN or clean == LOCAL:
            return clean
        try:
            return remote_from(clean).url
        except ValueError as error:
            why, _, hint = str(error).partition("; ")
            found.append(
                (path, f"{name_of(path)} is {said(value)}: {why}", meant_workspace(clean) or hint)
            )
            return BROKEN

    def schema(self) -> Schema:
        return {"type": "string", "pattern": rf"^(?:{LOCAL}|ssh://[^/\s]+/.*)$"}


def meant_workspace(text: str) -> str:
    """Guess at a workspace that is written as `scp` takes it, or with a slash too few."""
    host, colon, path = text.partition(":")
    meant = f"ssh://{host}{path}"
    if is_remote(text) or not colon or not path.startswith("/") or path.startswith("//"):
        return ""
    if host == "ssh":
        meant = f"ssh:/{path}"
    try:
        remote_from(meant)
    except ValueError:
        return ""
    return f'did you mean "{meant}"?'
