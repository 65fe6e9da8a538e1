"""Targets that a project gave names to: in a Makefile, a justfile or a Taskfile."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notyet.project.folder import Proposal, at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notyet.project.folder import Folder


@dataclass(frozen=True, kw_only=True)
class _Runner:
    """A program that runs targets, and how its files name them."""

    program: str
    files: tuple[str, ...]
    target: re.Pattern[str] | None = None  # a line that defines targets; its group names them


_WORD = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_RUNNERS = (
    _Runner(
        program="make",
        files=("GNUmakefile", "makefile", "Makefile"),
        # Not a variable of a target (`test: X = 1`).
        target=re.compile(
            rf"({_WORD}(?:[ \t]+{_WORD})*)[ \t]*::?(?![:=])"
            r"(?![ \t]*[\w.-]+(?:[ \t]+[\w.-]+)*[ \t]*[:+?!]*=)"
        ),
    ),
    _Runner(
        program="just",
        files=("justfile", "Justfile", ".justfile"),
        target=re.compile(rf"""@?({_WORD})(?:[ \t]+(?:"[^"]*+"|'[^']*+'|[^:#"'])*+)?:(?!=)"""),
    ),
    _Runner(
        program="task",
        files=("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"),
    ),
)
_TARGETS = {
    "format": ("format-check", "fmt-check", "check-format", "check-fmt"),
    "lint": ("lint",),
    "types": ("typecheck", "types"),
    "tests": ("test", "tests"),
}
_ALL = "check"
_LONGEST = 1000  # characters of a line; a pattern would take long on a longer one


def proposals(folder: Folder) -> Iterator[Proposal]:
    """Yield a gate for each target whose name says that it checks something."""
    for runner in _RUNNERS:
        file = folder.first(*runner.files)
        lines = _lines(folder, file, runner) if file else {}
        named = [
            (name, target)
            for name, targets in _TARGETS.items()
            for target in [word for word in targets if word in lines][:1]
        ]
        # It mostly means all of them.
        if _ALL in lines and not any(name == "tests" for name, _ in named):
            named.append((_ALL, _ALL))
        for name, target in named:
            yield Proposal(
                name=name,
                tool=runner.program,
                run=f"{runner.program} {target}",
                file=file,
                line=lines[target],
            )


def _lines(folder: Folder, file: str, runner: _Runner) -> dict[str, int]:
    """Return the line that defines each target."""
    if runner.target is None:
        document = folder.yaml(file)
        tasks = at(document, "tasks")
        known = tasks if isinstance(tasks, dict) else {}
        return {name: document.locate(("tasks", name))[0] for name in known}
    found: dict[str, int] = {}
    for number, line in enumerate(folder.text(file).splitlines(), 1):
        match = runner.target.match(line) if len(line) < _LONGEST else None
        for word in match[1].split() if match else ():
            found.setdefault(word, number)
    return found
