"""Whether Claude Code was told that its user trusts a folder: before that it runs no hook there."""

from __future__ import annotations

import json
import os

from notyet.config.files import above
from notyet.config.readers import read_file
from notyet.status.faults.fault import place as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from notyet.status.faults.fault import Fault
    from notyet.status.faults.look import Look


def is_accepted(look: Look) -> bool:
    """Tell whether somebody has accepted this folder, or one around it."""
    return _is_in(_accepted(look) or {}, look.cwd)


def folder_faults(look: Look) -> Iterator[Fault]:
    """Say that nobody has accepted this folder yet, where Claude Code keeps a list of them."""
    projects = _accepted(look)
    if projects is None or _is_in(projects, look.cwd):
        return
    yield look.fault(
        "folder-not-accepted",
        "Claude Code has not been told that you trust this folder; in a terminal it runs no hook "
        "before that (`claude -p` does).",
        where=at(_memory(look.environ)),
        fix="start claude here once, and accept the folder",
    )


def _accepted(look: Look) -> dict[str, Any] | None:
    """Return Claude Code's list of folders; None where there is none that can be read."""
    path = _memory(look.environ)
    text, _ = read_file(path) if path else (None, None)
    try:
        known = json.loads(text or "")
    except (ValueError, RecursionError):
        return None  # nobody was asked yet, or it is not ours to judge
    projects = known.get("projects") if isinstance(known, dict) else None
    return projects if isinstance(projects, dict) else None  # else it never ran in a terminal


def _is_in(projects: Mapping[str, Any], cwd: str) -> bool:
    for folder in dict.fromkeys((*above(cwd), *above(os.path.realpath(cwd)))):
        project = projects.get(folder)
        if isinstance(project, dict) and project.get("hasTrustDialogAccepted") is True:
            return True
    return False


def _memory(environ: Mapping[str, str]) -> str:
    folder = environ.get("CLAUDE_CONFIG_DIR") or environ.get("HOME", "")
    return os.path.join(folder, ".claude.json") if os.path.isabs(folder) else ""
