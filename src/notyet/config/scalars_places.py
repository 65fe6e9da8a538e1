"""Shapes of texts that say where: a path below a folder, and a workspace."""

from __future__ import annotations

from posixpath import isabs, normpath

from notyet.config.scalars import BROKEN, Text, name_of, said
from notyet.core.glob import glob_error
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


class Files(Below, kw_only=True):
    """A glob of files below the file's folder, as git takes it."""

    line: bool = True
    says: str = "a glob of files below the file's folder"

    def check(self, value: Any, path: Path, found: Found) -> Any:
        clean = super().check(value, path, found)
        if clean is BROKEN:
            return BROKEN
        problem = glob_error(clean)
        if problem:
            found.append((path, f"{name_of(path)} is no pattern: {problem}", ""))
            return BROKEN
        hint, why = _meant_files(clean)
        if why:
            found.append((path, f"{name_of(path)} is {said(value)}, {why}", hint))
            return BROKEN
        return clean

    def many(self) -> str:
        return "globs of files"


def _meant_files(glob: str) -> tuple[str, str]:
    """Return what was meant by a glob that git would take otherwise, and why it is wrong."""
    if glob.startswith((":", "!")):
        return "name the files that count", "which would leave files out"
    if "\\" in glob:
        return _hint(glob.replace("\\", "/")), "and folders are told apart by /"
    parts = glob.split("/")
    strange = [part for part in parts if "**" in part and part != "**"]
    if not strange:
        return "", ""
    meant = [part if part not in strange else _apart(part) for part in parts]
    return _hint("/".join(meant)), "and ** stands for folders, between slashes"


def _apart(part: str) -> str:
    before, _, after = part.partition("**")
    after = after.replace("*", "")
    return "/".join([*([before] if before else []), "**", *([f"*{after}"] if after else [])])


def _hint(meant: str) -> str:
    return f'did you mean "{meant}"?'


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
