"""What `notyet init` proposes: the checks that a project has, detected from its files alone.

Python and Node have modules of their own, the others rows of a table. Nothing is run.
"""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from notyet.core.text import visible
from notyet.project import ecosystems, node, presets, python, targets
from notyet.project.folder import Folder, at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.config.document import Mistake
    from notyet.project.folder import Proposal

# Only for names that no ecosystem has: targets mostly run the same tools.
FALLBACKS = (targets.proposals, python.unittests)
# Folders that hold no part of a project, or parts that are not its own.
LEFT_OUT = frozenset((
    "bench", "benchmark", "benchmarks", "build", "coverage", "debian", "demo", "deps", "dist",
    "doc", "docs", "downstream", "env", "example", "examples", "fixtures", "fuzz", "node_modules",
    "playground", "scripts", "site", "site-packages", "target", "templates", "test", "testdata",
    "testing", "tests", "third_party", "vendor", "venv", "website",
))  # fmt: skip
_MAX_FOLDERS = 50
# Tools that look into all folders by themselves; scripts, targets and modules do not.
_RECURSIVE = frozenset(("mypy", "biome", "pre-commit", "pyright", "pytest", "ruff", "ty"))
_GO_USE = re.compile(r"^[ \t]*(?:use[ \t]+)?(\./[^\s()]+)", re.MULTILINE)
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Detected:
    """What was detected: gates in the order of the file, files that cannot be read, notes."""

    proposals: tuple[Proposal, ...]
    mistakes: tuple[Mistake, ...]
    notes: tuple[str, ...]
    # Of a workspace: globs of members, and gates by folder that the project's own do not cover.
    globs: tuple[str, ...] = ()
    members: dict[str, tuple[Proposal, ...]] = field(default_factory=dict)


def detect(root: str) -> Detected:
    """Detect the checks of a project, of its members, and of other folders one level down."""
    mistakes: list[Mistake] = []
    notes: list[str] = []
    top = Folder(root)
    found = presets.with_presets(top, _detect_in(top, mistakes))
    recursive = _RECURSIVE | ecosystems.recursive(top)
    known = {(one.name, one.tool) for one in found if one.tool in recursive}
    globs, members = _members(top, {one.name for one in found}, mistakes)
    for name in _folders(root):
        if name in members:
            continue
        inner = _detect_in(Folder(root, name), mistakes)
        inner = [one for one in inner if (one.name, one.tool) not in known]
        # A name with control characters, or with a tilde that a file would expand.
        if visible(name) == name and not name.startswith("~"):
            found += inner
        elif inner:
            notes.append(f"the folder {name} has a name that no gate can have as `dir`; left out")
    gates = {name: _with_unique_names(inner) for name, inner in members.items() if inner}
    return Detected(_with_unique_names(found), tuple(mistakes), tuple(notes), globs, gates)


def _members(
    top: Folder, known: set[str], mistakes: list[Mistake]
) -> tuple[tuple[str, ...], dict[str, list[Proposal]]]:
    """Return the globs of a workspace with gates of their own, and the gates by folder.

    The project's scripts mostly run in all members, so that a name that it has counts for them.
    """
    packages = at(top.json("package.json"), "workspaces")
    listed = [
        packages.get("packages") if isinstance(packages, dict) else packages,
        at(top.yaml("pnpm-workspace.yaml"), "packages"),
        at(top.toml("pyproject.toml"), "tool", "uv", "workspace", "members"),
        _GO_USE.findall(top.text("go.work")),
    ]
    named = [one for some in listed if isinstance(some, list) for one in some]
    wanted = [one for one in named if isinstance(one, str) and one[:1] != "!"]
    globs = [os.path.normpath(one.replace("**", "*")) for one in wanted]  # one level is listed
    used: dict[str, None] = {}
    members: dict[str, list[Proposal]] = {}
    for pattern in globs:
        if pattern.startswith(("/", "..")) or pattern == ".":
            continue
        for name in sorted(glob.glob(pattern, root_dir=top.root))[:_MAX_FOLDERS]:
            path = os.path.join(top.root, name)
            is_other = not LEFT_OUT.isdisjoint(name.split(os.sep)) or os.path.islink(path)
            if is_other or name in members or not os.path.isdir(path):
                continue
            folder = Folder(top.root, name)
            inner = [one for one in _detect_raw(folder) if one.name not in known]
            mistakes += folder.mistakes
            members[name] = inner
            if inner:
                used[pattern] = None
    return tuple(used), members


def _detect_in(folder: Folder, mistakes: list[Mistake]) -> list[Proposal]:
    found = [folder.propose(one) for one in _detect_raw(folder)]
    mistakes += folder.mistakes
    return found


def _detect_raw(folder: Folder) -> list[Proposal]:
    found = [*python.proposals(folder), *node.proposals(folder)]
    found += ecosystems.proposals(folder, {one.name for one in found})
    found += python.pre_commit(folder)
    is_python = folder.first("pyproject.toml", "setup.py")
    needs = node.install(folder) or (python.install(folder) if is_python else "")
    for proposals in FALLBACKS:
        known = {one.name for one in found}
        if known & {"tests", "check"}:
            known |= {"tests", "check"}  # mostly the same
        found += [
            replace(one, install=one.install or needs)
            for one in proposals(folder)
            if one.name not in known
        ]
    return found


def _folders(root: str) -> list[str]:
    try:
        entries = sorted(os.scandir(root), key=lambda entry: entry.name)
    except OSError:
        return []
    names = [
        entry.name
        for entry in entries
        if entry.is_dir(follow_symlinks=False)
        and not entry.name.startswith(".")
        and entry.name.lower() not in LEFT_OUT
    ]
    return names[:_MAX_FOLDERS]


def _with_unique_names(found: Sequence[Proposal]) -> tuple[Proposal, ...]:
    """Return the proposals with names such as tests, web-tests, tests-pytest, tests-pytest-2."""
    names = []
    for one in found:
        folder = _NOT_IN_A_NAME.sub("-", one.dir).strip("-")[:40]
        names.append(f"{folder}-{one.name}" if folder else one.name)
    taken: dict[str, int] = {}
    named = []
    for one, name in zip(found, names, strict=True):
        longer = f"{name}-{one.tool}" if names.count(name) > 1 else name
        number = taken[longer] = taken.get(longer, 0) + 1
        named.append(replace(one, name=longer if number == 1 else f"{longer}-{number}"))
    return tuple(named)
