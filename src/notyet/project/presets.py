"""Presets for a project: its own hook runner, and secrets if it scans for them."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

from notyet.gates.hook_tools import TOOLS, find_program
from notyet.project.folder import Proposal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notyet.project.folder import Folder

_SCANNERS = ((".gitleaks.toml", "gitleaks"), (".secrets.baseline", "detect-secrets-hook"))


def with_presets(folder: Folder, found: Sequence[Proposal]) -> list[Proposal]:
    """Return the proposals of a project's own folder, with presets where they fit.

    Presets ask git what changed, so that there are none outside of a repository. A hook runner
    that only an environment manager can start (`uv run`) stays a command.
    """
    if not os.path.lexists(os.path.join(folder.path, ".git")):
        return list(found)
    proposals = [
        replace(one, run="", uses=one.name, install="")
        if one.name in TOOLS and find_program(TOOLS[one.name], (folder.path,))
        else one
        for one in found
    ]
    return [*proposals, *_others(folder)]


def _others(folder: Folder) -> Iterator[Proposal]:
    for file, program in _SCANNERS:
        if folder.has(file) and shutil.which(program):
            yield Proposal(name="secrets", tool=program, uses="no:secrets", file=file)
            return
