"""Where stops are shared: `[share]` of the user's own file, or variables of the environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from notyet.config.compile import compile_text
from notyet.config.files import users_toml
from notyet.config.readers import read_file
from notyet.config.schema import SHARE
from notyet.core.text import visible
from notyet.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# A hook ignores them: a project's settings can set variables of a hook.
TO, OTEL, WORDS = "NOTYET_SHARE", "NOTYET_SHARE_OTEL", "NOTYET_SHARE_WORDS"
_ADDRESSES = {TO: "to", OTEL: "otel"}
_FLAGS = {"1": True, "true": True, "yes": True, "on": True}
_FLAGS |= {"0": False, "false": False, "no": False, "off": False}


@dataclass(frozen=True, kw_only=True)
class Share:
    """Where stops go, and whether with words; empty addresses are not used."""

    to: str = ""
    words: bool = False
    otel: str = ""


def share_settings(cwd: str, environ: Mapping[str, str]) -> Share:
    """Return where this user's stops go. Raises Refused if that is nowhere, or has a mistake.

    A variable replaces the same key of the file. The user's file does not count if it is in the
    project around `cwd`: a variable such as HOME may point there.
    """
    found: dict[str, Any] = {}
    for file in users_toml(cwd, environ):
        text, mistake = read_file(file.path)
        settings = compile_text(text or "", file.path)
        wrong = [mistake] if mistake is not None else settings.mistakes
        if file.is_users and wrong:
            raise Refused(f"nothing is shared until this is fixed: {wrong[0]}")
        found |= settings.share if file.is_users else {}
    found |= _given(environ)
    share = Share(**found)
    if not share.to and not share.otel:
        raise Refused(
            "nothing says where to share stops; write [share] into your own notyet.toml, "
            f"or set {TO}"
        )
    return share


def is_shared(cwd: str, environ: Mapping[str, str]) -> bool:
    """Return True if the user's own file says where stops go: without a command, only that does."""
    for file in users_toml(cwd, environ):
        text, _ = read_file(file.path)
        if text is not None and file.is_users:
            return compile_text(text, file.path).shares
    return False


def _given(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return what variables say. Raises Refused."""
    given: dict[str, Any] = {}
    problems: list[tuple[Any, str, str]] = []
    for name, key in _ADDRESSES.items():
        if environ.get(name):
            given[key] = SHARE.fields[key].shape.check(environ[name], (name,), problems)
    if problems:
        raise Refused(problems[0][1])
    said = environ.get(WORDS, "").lower()
    if said and said not in _FLAGS:
        raise Refused(f"{WORDS} must be true or false, not {visible(said[:40])!r}")
    return given | ({"words": _FLAGS[said]} if said else {})
