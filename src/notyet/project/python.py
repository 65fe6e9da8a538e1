"""Python: pytest, ruff, mypy, pyright, else tox or nox; pre-commit; unittest."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notyet.project.folder import Proposal, at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notyet.config.document import Document, Path
    from notyet.project.folder import Folder

_PROJECT = "pyproject.toml"
_CODE = ("**/*.py", "**/*.pyi")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_SECTION = re.compile(r"[ \t]*\[")


@dataclass(frozen=True, kw_only=True)
class _Tool:
    """A program, and by what a project shows that it uses it."""

    name: str
    program: str
    options: str
    tables: tuple[tuple[str, ...], ...] = ()  # of pyproject.toml
    files: tuple[str, ...] = ()
    sections: tuple[tuple[str, str], ...] = ()  # of other files
    is_dependency: bool = True  # whether it is enough that the project depends on it
    paths: tuple[str, ...] = ()


_RUFF = ("**/ruff.toml", "**/.ruff.toml", "**/pyproject.toml")
_TOOLS = (
    _Tool(
        name="format",
        program="ruff",
        options="format --check .",
        tables=(("tool", "ruff", "format"),),
        is_dependency=False,
        paths=(*_CODE, "**/*.ipynb", *_RUFF),
    ),
    _Tool(
        name="lint",
        program="ruff",
        options="check .",
        tables=(("tool", "ruff"),),
        files=("ruff.toml", ".ruff.toml"),
        paths=(*_CODE, "**/*.ipynb", *_RUFF),
    ),
    _Tool(
        name="types",
        program="mypy",
        options="",  # see `_mypy`
        tables=(("tool", "mypy"),),
        files=("mypy.ini", ".mypy.ini"),
        sections=(("setup.cfg", "[mypy]"),),
    ),
    _Tool(
        name="types",
        program="pyright",
        options="",
        tables=(("tool", "pyright"),),
        files=("pyrightconfig.json",),
    ),
    _Tool(
        name="tests",
        program="pytest",
        options="-q",
        tables=(("tool", "pytest"),),
        files=("pytest.ini", ".pytest.ini", "conftest.py", "tests/conftest.py"),
        sections=(("tox.ini", "[pytest]"), ("setup.cfg", "[tool:pytest]")),
    ),
)
# Only where there is no pytest: they mostly run it, in many environments.
_OTHERS = (
    _Tool(
        name="tests",
        program="tox",
        options="",
        tables=(("tool", "tox"),),
        files=("tox.toml", "tox.ini"),
    ),
    _Tool(name="tests", program="nox", options="", files=("noxfile.py",)),
)
_DEPENDENCIES = (
    ("project", "dependencies"),
    ("project", "optional-dependencies", "*"),
    ("dependency-groups", "*"),
    ("tool", "uv", "dev-dependencies"),
    ("tool", "poetry", "dependencies"),
    ("tool", "poetry", "dev-dependencies"),
    ("tool", "poetry", "group", "*", "dependencies"),
    ("tool", "pdm", "dev-dependencies", "*"),
    ("tool", "hatch", "envs", "*", "dependencies"),
)


def proposals(folder: Folder) -> Iterator[Proposal]:
    """Yield the gates that a Python project seems to want."""
    found = [made for tool in _TOOLS if (made := _proposal(folder, tool))]
    yield from found
    if any(one.name == "tests" for one in found):
        return
    yield from [made for tool in _OTHERS if (made := _proposal(folder, tool))][:1]


def _proposal(folder: Folder, tool: _Tool) -> Proposal | None:
    place = _evidence(folder, tool)
    if place is None:
        return None
    options = _mypy(folder) if tool.program == "mypy" else tool.options
    return Proposal(
        name=tool.name,
        tool=tool.program,
        run=f"{started(folder, tool.program)} {options}".strip(),
        file=place[0],
        line=place[1],
        paths=tool.paths,
    )


def _evidence(folder: Folder, tool: _Tool) -> tuple[str, int] | None:
    """Return the file and line that show that a tool is used; None for nothing."""
    document = folder.toml(_PROJECT)
    for table in tool.tables:
        if at(document, *table) is not None:
            return _PROJECT, document.locate(table)[0]
    file = folder.first(*tool.files)
    if file:
        return file, 1
    for name, section in tool.sections:
        line = folder.line_with(name, section)
        if line:
            return name, line
    return _dependency(folder, tool.program) if tool.is_dependency else None


def _dependency(folder: Folder, program: str) -> tuple[str, int] | None:
    document = folder.toml(_PROJECT)
    for table in _DEPENDENCIES:
        for path in _named(document, table, program):
            return _PROJECT, document.locate(path)[0]
    for name in folder.names(".txt"):
        if name.startswith(("requirements", "dev-requirements", "test-requirements")):
            for number, line in enumerate(folder.text(name).splitlines(), 1):
                if _package(line) == program:
                    return name, number
    return None


def _named(document: Document, table: tuple[str, ...], program: str) -> Iterator[Path]:
    """Yield the paths at which a table of dependencies names a program."""
    places: list[tuple[Path, object]] = [((), document.value)]
    for key in table:
        inner: list[tuple[Path, object]] = []
        for path, value in places:
            known = value if isinstance(value, dict) else {}
            wanted = list(known) if key == "*" else [key]
            inner += [((*path, name), known[name]) for name in wanted if name in known]
        places = inner
    for path, value in places:
        if isinstance(value, dict) and program in value:  # as poetry writes them
            yield (*path, program)
        for number, item in enumerate(value if isinstance(value, list) else ()):
            if isinstance(item, str) and _package(item) == program:
                yield (*path, number)


def _package(text: str) -> str:
    """Return the package that a requirement names."""
    found = _NAME.match(text.strip())
    return found[0].lower() if found else ""


def _mypy(folder: Folder) -> str:
    """Return what mypy has to be told: nothing, where its configuration names the files."""
    named = ("files", "packages", "modules")
    table = at(folder.toml(_PROJECT), "tool", "mypy")
    if isinstance(table, dict) and not set(named).isdisjoint(table):
        return ""
    for name in ("mypy.ini", ".mypy.ini", "setup.cfg"):
        if _is_in_section(folder.text(name), "[mypy]", named):
            return ""
    return "."


def _is_in_section(text: str, section: str, keys: tuple[str, ...]) -> bool:
    """Return True if a section of an INI file has one of these keys."""
    is_inside = False
    for line in text.splitlines():
        if _SECTION.match(line):
            is_inside = line.strip() == section
        elif is_inside and line.partition("=")[0].strip() in keys:
            return True
    return False


_ENVIRONMENTS = (".venv", "venv", "env")


# Programs that keep a project's environment: their lock file, and their table of pyproject.toml.
_MANAGERS = (
    ("uv", "uv.lock", ("tool", "uv")),
    ("poetry", "poetry.lock", ("tool", "poetry")),
    ("pdm", "pdm.lock", ("tool", "pdm")),
    ("hatch", "hatch.toml", ("tool", "hatch", "envs")),  # not by `hatchling`, which only builds
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
    for program, lock, table in _MANAGERS:
        if folder.above(lock) or at(document, *table) is not None:
            return program
    return ""


_PRE_COMMIT = ".pre-commit-config.yaml"
_IMPORT = re.compile(r"^[ \t]*(?:import unittest\b(?!\.)|from unittest import\b)", re.MULTILINE)
_CLASS = re.compile(r"^[ \t]*class[ \t]+\w+[ \t]*\([^)#]*TestCase\b", re.MULTILINE)


def pre_commit(folder: Folder) -> Iterator[Proposal]:
    """Yield one gate for all hooks of pre-commit."""
    line = folder.line_with(_PRE_COMMIT, "repos:")
    if line:
        name = "pre-commit"
        run = f"{started(folder, name)} run --all-files"
        yield Proposal(name=name, tool=name, run=run, file=_PRE_COMMIT, line=line)


def unittests(folder: Folder) -> Iterator[Proposal]:
    """Yield one gate for all tests that `python3 -m unittest` finds."""
    for name in folder.names(".py"):
        text = folder.text(name) if name.startswith("test") else ""
        found = _CLASS.search(text)
        if found and _IMPORT.search(text):
            run = f"{started(folder, 'python3')} -m unittest"
            line = text.count("\n", 0, found.start()) + 1
            yield Proposal(name="tests", tool="unittest", run=run, file=name, line=line)
            return
