"""Python: pytest, ruff, mypy, ty, pyright, else Django, tox or nox; pre-commit; unittest."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING

from notyet.project.folder import Proposal, at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notyet.config.document import Document, Path
    from notyet.project.folder import Folder

_PROJECT = "pyproject.toml"
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_SECTION = re.compile(r"[ \t]*\[")
_QUOTES = re.compile(r"[\"',\[\]]")
_ASSIGNED = re.compile(r"^[ \t]*(?:export )?(\w+) *[:?]?= *(.*)", re.MULTILINE)  # in a script
_VARIABLE = re.compile(r"\$[({]?(\w+)[)}]?")


@dataclass(frozen=True)
class _Tool:
    """A program, and by what a project shows that it uses it."""

    name: str
    program: str
    options: str  # see also `_options`
    signs: tuple[str, ...]
    words: str = ""  # in a file that says what the project runs
    is_dependency: bool = True  # whether it is enough that the project depends on it
    paths: tuple[str, ...] = ()


_LINTED = (
    *("**/*.py", "**/*.pyi", "**/*.ipynb"),
    *("**/ruff.toml", "**/.ruff.toml", "**/pyproject.toml"),
)
_RUFF = (f"{_PROJECT}#tool/ruff", "ruff.toml", ".ruff.toml")
_FORMAT = (f"{_PROJECT}#tool/ruff/format",)
_MYPY_SIGNS = (f"{_PROJECT}#tool/mypy", "mypy.ini", ".mypy.ini", r"setup.cfg: ^\[mypy\]")
_TY = (f"{_PROJECT}#tool/ty", "ty.toml")
_PYRIGHT = (f"{_PROJECT}#tool/pyright", "pyrightconfig.json")
_PYTEST = (
    *(f"{_PROJECT}#tool/pytest", "pytest.ini", ".pytest.ini", "conftest.py", "tests/conftest.py"),
    *(r"tox.ini: ^\[pytest\]", r"setup.cfg: ^\[tool:pytest\]"),
)
_TOOLS = (
    _Tool("format", "ruff", "format --check .", _FORMAT, "ruff format", False, _LINTED),
    _Tool("lint", "ruff", "check .", _RUFF, paths=_LINTED),
    _Tool("types", "mypy", "", _MYPY_SIGNS),
    _Tool("types", "ty", "check", _TY, is_dependency=False),
    _Tool("types", "pyright", "", _PYRIGHT, is_dependency=False),
    _Tool("tests", "pytest", "-q", _PYTEST),
)
# Only where there is no pytest: tox and nox mostly run it, in many environments.
_OTHERS = (
    _Tool("tests", "python3", "manage.py test", ("manage.py: DJANGO_",), is_dependency=False),
    _Tool("tests", "tox", "", (f"{_PROJECT}#tool/tox", "tox.toml", "tox.ini")),
    _Tool("tests", "nox", "", ("noxfile.py",)),
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
    if place is None or _is_left_to_pre_commit(folder, tool.program):
        return None
    run = _hatch(folder, tool.program)
    if not run:
        run = f"{started(folder, tool.program)} {_options(folder, tool)}".strip()
    return Proposal(
        name=tool.name,
        tool="django" if tool.program == "python3" else tool.program,
        run=run,
        file=place[0],
        line=place[1],
        paths=tool.paths,
        install=install(folder, tool.program),
    )


def _evidence(folder: Folder, tool: _Tool) -> tuple[str, int] | None:
    """Return the file and line that show that a tool is used; None for nothing."""
    for sign in tool.signs:
        place = folder.sign(sign)
        if place is not None:
            return place
    for name, text in folder.own_commands() if tool.words else ():
        if tool.words in text:
            return name, text[: text.index(tool.words)].count("\n") + 1
    places = _dependency(folder, tool.program) if tool.is_dependency else []
    if not places or (tool.program == "mypy" and not _own_files(folder, "mypy")):
        return None
    file, path = places[0]
    return file, folder.toml(_PROJECT).locate(path)[0] if file == _PROJECT else int(path[0])


def _dependency(folder: Folder, program: str) -> list[tuple[str, Path]]:
    """Return where a project names a program: a file, and the path or the line in it."""
    document = folder.toml(_PROJECT)
    found: list[tuple[str, Path]] = [
        (_PROJECT, path) for table in _DEPENDENCIES for path in _named(document, table, program)
    ]
    for name in folder.names(".txt"):
        if name.startswith(("requirements", "dev-requirements", "test-requirements")):
            lines = enumerate(folder.text(name).splitlines(), 1)
            found += [(name, (n,)) for n, line in lines if _provides(line, program)]
    return found


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
            if isinstance(item, str) and _provides(item, program):
                yield (*path, number)


def _provides(text: str, program: str) -> bool:
    """Return True if a requirement names a program, or a plugin that brings it along."""
    found = _NAME.match(text.strip())
    name = found[0].lower() if found else ""
    has_plugins = program in {"pytest", "pre-commit"}
    return name == program or (has_plugins and name.startswith(f"{program}-"))


def _options(folder: Folder, tool: _Tool) -> str:
    """Return the options of a tool, which must check and not write."""
    if tool.program == "mypy":
        return _mypy(folder)
    if tool.program != "ruff":
        return tool.options
    command = tool.options.split()[0]
    options = tool.options[:-1] + (_own_files(folder, f"ruff {command}") or ".")
    if command == "check" and (
        at(folder.toml(_PROJECT), "tool", "ruff", "fix") is True
        or any(folder.sign(f"{name}: ^fix *= *true") for name in ("ruff.toml", ".ruff.toml"))
    ):
        return options.replace("check", "check --no-fix", 1)
    return options


def _mypy(folder: Folder) -> str:
    """Return the files for mypy: none if its configuration has them, else as the project does."""
    named = ("files", "packages", "modules")
    table = at(folder.toml(_PROJECT), "tool", "mypy")
    if isinstance(table, dict) and not set(named).isdisjoint(table):
        return ""
    for name in ("mypy.ini", ".mypy.ini", "setup.cfg"):
        if _is_in_section(folder.text(name), "[mypy]", named):
            return ""
    return _own_files(folder, "mypy") or ("src" if folder.sign("src") else ".")


def _own_files(folder: Folder, command: str) -> str:
    """Return the files for which the project's own scripts run a command; empty for none."""
    pattern = re.compile(rf"(?<![\w/.-]){command}((?:[ \t]+[\w./=-]+)+)")
    for _, text in folder.own_commands():
        values = dict(_ASSIGNED.findall(text))
        plain = _VARIABLE.sub(lambda found: values.get(found[1], ""), text)  # noqa: B023
        for found in pattern.finditer(_QUOTES.sub(" ", plain)):
            words = [word for word in found[1].split() if word[0] != "-"]
            given = [word for word in words if not word.endswith((".toml", ".ini"))]
            # Not the words of a comment.
            if given and given != ["."] and all(map(folder.sign, given)):
                return " ".join(given)
    return ""


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
    ("pdm", "pdm.lock", ("tool", "pdm", "dev-dependencies")),  # not by `pdm.backend`
    # Not by `hatchling`, which only builds.
    ("hatch", "hatch.toml", ("tool", "hatch", "envs", "default")),
)


# Environments of hatch that have a command of their own.
_HATCH = {"pytest": ("hatch-test", "test"), "ruff": ("hatch-static-analysis", "fmt --check")}


def _hatch(folder: Folder, program: str) -> str:
    """Return how hatch runs a program in an environment other than the default one; or nothing."""
    environments = at(folder.toml("hatch.toml"), "envs")
    environments = environments or at(folder.toml(_PROJECT), "tool", "hatch", "envs")
    known = environments if isinstance(environments, dict) else {}
    environment, command = _HATCH.get(program, ("", ""))
    if environment in known:
        return f"hatch {command}"
    for name, table in known.items() if program == "mypy" else ():
        scripts = table.get("scripts") if isinstance(table, dict) else None
        for key, script in scripts.items() if isinstance(scripts, dict) else ():
            if isinstance(script, str) and script.split()[:1] == [program]:
                return f"hatch run {quote(f'{name}:{key}')}"
    return ""


def started(folder: Folder, program: str) -> str:
    """Return how a program is started in a folder: `uv run pytest`, `.venv/bin/pytest`, `pytest`.

    A manager that is not installed here is left out if the environment that it made is there.
    """
    manager = _manager(folder)
    options = _uv_options(folder, program) if manager == "uv" else ""
    line = f"{manager} run {options}{program}"
    if manager and shutil.which(manager):
        return line
    for environment in _ENVIRONMENTS:
        path = folder.above(f"{environment}/bin/{program}")
        if path and os.access(os.path.join(folder.path, path), os.X_OK):
            return path
    return line if manager else program


def install(folder: Folder, program: str = "") -> str:
    """Return the command that installs a program of the project, and what the project needs."""
    manager = _manager(folder)
    if manager:
        return {"uv": "uv sync", "hatch": "hatch env create"}.get(manager, f"{manager} install")
    is_package = any(
        map(folder.sign, ("setup.py", f"{_PROJECT}#project", f"{_PROJECT}#build-system"))
    )
    editable = "-e . " if is_package else ""
    if _is_in_groups(folder, program, ["dev"]):
        return f"pip install {editable}--group dev"
    for name, path in _dependency(folder, program):
        if name != _PROJECT:
            return f"pip install {editable}-r {quote(name)}"
        if path[0] == "dependency-groups":
            return f"pip install {editable}--group {quote(str(path[1]))}"
        if path[1] == "optional-dependencies":
            return f"pip install -e {quote(f'.[{path[2]}]')}"
        if path[1] == "dependencies":
            return "pip install -e ."
    return f"pip install {editable}{program}".strip() if editable or program else ""


def _uv_options(folder: Folder, program: str) -> str:
    """Return the options by which `uv run` finds a program that it does not install by itself."""
    document = folder.toml(_PROJECT)
    defaults = at(document, "tool", "uv", "default-groups") or ["dev"]
    places = [path for name, path in _dependency(folder, program) if name == _PROJECT]
    is_own = at(document, "project", "name") == program or program.startswith("python")
    if is_own or folder.name or defaults == "all" or _is_in_groups(folder, program, defaults):
        return ""
    if any(path[0] == "tool" or path[1] == "dependencies" for path in places):
        return ""
    groups = at(document, "dependency-groups")
    if isinstance(groups, dict) and program in groups:
        return f"--group {program} "
    for path in places:
        is_group = path[0] == "dependency-groups"
        return f"--group {quote(str(path[1]))} " if is_group else f"--extra {quote(str(path[2]))} "
    return f"--with {program} "


def _is_in_groups(folder: Folder, program: str, groups: object) -> bool:
    """Return True if one of these groups, or a group that they include, has a program."""
    table = at(folder.toml(_PROJECT), "dependency-groups")
    known = table if isinstance(table, dict) else {}
    names = [name for name in groups if isinstance(name, str)] if isinstance(groups, list) else []
    for name in names:  # which grows
        items = known.get(name)
        for item in items if isinstance(items, list) else ():
            if isinstance(item, str) and _provides(item, program):
                return True
            inner = item.get("include-group") if isinstance(item, dict) else None
            if isinstance(inner, str) and inner not in names:
                names.append(inner)
    return False


def _manager(folder: Folder) -> str:
    document = folder.toml(_PROJECT)
    for program, lock, table in _MANAGERS:
        if folder.above(lock) or at(document, *table) is not None:
            return program
    # A lock file need not be committed.
    return (
        "uv"
        if any(re.search(r"\buv (?:run|sync)\b", text) for _, text in folder.own_commands())
        else ""
    )


def _is_left_to_pre_commit(folder: Folder, program: str) -> bool:
    """Return True if only pre-commit runs a program, in an environment of its own."""
    pattern = f"{_PRE_COMMIT}: id: *{program}(?:-check|-format)? *(?:#.*)?$"
    return folder.sign(pattern) is not None and not _dependency(folder, program)


_PRE_COMMIT = ".pre-commit-config.yaml"
_IMPORT = re.compile(r"^[ \t]*(?:import unittest\b(?!\.)|from unittest import\b)", re.MULTILINE)
_CLASS = re.compile(r"^[ \t]*class[ \t]+\w+[ \t]*\([^)#]*TestCase\b", re.MULTILINE)


def pre_commit(folder: Folder) -> Iterator[Proposal]:
    """Yield one gate for all hooks of pre-commit, which prek may run."""
    place = folder.sign(f"{_PRE_COMMIT}: ^repos:") or folder.sign("prek.toml")
    if place:
        is_prek = folder.has("prek.toml") or _dependency(folder, "prek")
        tool = "prek" if is_prek else "pre-commit"
        run = f"{started(folder, tool)} run --all-files"
        yield Proposal(
            name="pre-commit",
            tool=tool,
            run=run,
            file=place[0],
            line=place[1],
            install=install(folder, tool),
        )


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
