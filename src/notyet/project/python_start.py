"""How a Python project starts programs: by its manager, from its environment, or plainly."""

from __future__ import annotations

import os
import shutil

from notyet.core.record import Record
from notyet.project.folder import at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.project.folder import Folder

_ENVIRONMENTS = (".venv", "venv", "env")


class _Manager(Record):
    """A program that keeps a project's environment, and by what a project shows that it does."""

    program: str
    lock: str
    table: tuple[str, ...]  # of pyproject.toml


_MANAGERS = (
    _Manager("uv", "uv.lock", ("tool", "uv")),
    _Manager("poetry", "poetry.lock", ("tool", "poetry")),
    _Manager("pdm", "pdm.lock", ("tool", "pdm")),
    # Not by `hatchling` alone, which only builds.
    _Manager("hatch", "hatch.toml", ("tool", "hatch", "envs")),
)


def started(folder: Folder, program: str) -> str:
    """Return how a program is started in a folder: `uv run pytest`, `.venv/bin/pytest`, `pytest`.

    A manager that is not installed here is left out if the environment that it made is there.
    """
    manager = _manager(folder)
    line = f"{manager} run {program}"
    if manager and shutil.which(manager):
        return line
    for environment in _ENVIRONMENTS:
        path = folder.above(f"{environment}/bin/{program}")
        if path and os.access(os.path.join(folder.path, path), os.X_OK):
            return path
    return line if manager else program


def _manager(folder: Folder) -> str:
    document = folder.toml("pyproject.toml")
    for manager in _MANAGERS:
        if folder.above(manager.lock) or at(document, *manager.table) is not None:
            return manager.program
    return ""
