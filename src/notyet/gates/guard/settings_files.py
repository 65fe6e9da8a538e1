"""Read settings files of checkers into flat tables: dotted key to value.

The keys do not depend on the file: `[tool.coverage.report] fail_under` in a pyproject.toml and
`[report] fail_under` in a .coveragerc are both `coverage.report.fail_under`, so that moving
settings from one file to another loses nothing.
"""

from __future__ import annotations

import configparser
import json
import re
import shlex
import tomllib
from posixpath import basename
from typing import Any

from notyet.gates.guard.masking import mask

Value = bool | float | str | tuple[str, ...]
Settings = dict[str, Value]

_MOST_KEYS = 20_000
# Tables of a pyproject.toml that are about packaging, formatting or releases.
_NO_CHECKS = re.compile(
    r"^(?:project|build-system|dependency-groups|tool\.(?:poetry|hatch|uv|setuptools(?:_scm)?|flit|pdm|"
    r"towncrier|cibuildwheel|black|isort|commitizen|semantic_release|bumpversion|bumpver|rye|pixi|"
    r"maturin|scikit-build|meson-python|check-manifest|doc8|typos|codespell|tbump|hatch-vcs|"
    r"ruff\.format|ruff\.lint\.isort|tox|notyet))(?:\.|$)"
)
_PACKAGE_TABLES = (
    *("jest", "eslintConfig", "nyc", "c8", "ava", "tap", "mocha", "vitest", "xo", "standard"),
    *("tsd", "stylelint"),
)
_INI_SECTIONS = re.compile(
    r"^(?:tool:pytest|pytest|mypy.*|flake8.*|coverage:.*|pylint.*|run|report|pycodestyle|MASTER|MAIN|"
    r"MESSAGES CONTROL|BASIC|DESIGN|tool:interrogate)$",
    re.IGNORECASE,
)
_HOMES = {
    ".coveragerc": "coverage.",
    "mypy.ini": "",
    ".mypy.ini": "",
    ".flake8": "",
    "pytest.ini": "",
    ".pytest.ini": "",
    "ruff.toml": "ruff.",
    ".ruff.toml": "ruff.",
    "ty.toml": "ty.",
    "pyrightconfig.json": "pyright.",
    ".pylintrc": "pylint.",
    "pylintrc": "pylint.",
    ".nycrc": "nyc.",
    ".nycrc.json": "nyc.",
    ".c8rc": "c8.",
    ".c8rc.json": "c8.",
    ".eslintrc": "eslint.",
    ".eslintrc.json": "eslint.",
}
_TRAILING_COMMA = re.compile(r",(?=\s{0,200}[}\]])")
_YAML_LINE = re.compile(
    r"^( *+)(- )?(?:([\"']?)([^\s:#\"'][^:#\"']{0,100}?)\3:(?:\s++|$))?([^\n]*+)$"
)
_JS_PAIR = re.compile(
    r"""(?<![\w$])(?:(['"])([\w@/.-]{1,80})\1|([A-Za-z_$][\w$-]{0,80}))\s{0,9}:\s{0,9}"""
    r"""(?:\[\s{0,80})?(?:(['"])([\w-]{1,40})\4|(-?\d[\d.]{0,20}|true|false)\b)"""
)
_JS_RULES = re.compile(r"(?<![\w$])rules\s{0,9}:\s{0,9}(?=\{)")
_LONGEST_LIST = 20_000  # characters
_JS_LIST = re.compile(r"""(?<![\w$])['"]?([A-Za-z_$][\w$-]{0,60})['"]?\s{0,9}:\s{0,9}\[""")
_JS_STRING = re.compile(r"""'([^'\\\n]{1,200})'|"([^"\\\n]{1,200})"|`([^`$\\\n]{1,200})`""")


def read_settings(path: str, text: str) -> Settings:
    """Return the settings of checkers in a file; empty if it cannot be read."""
    name = basename(path)
    try:
        return _read(name, text)
    except (ValueError, RecursionError, configparser.Error):
        return {}


def is_of_one_checker(path: str) -> bool:
    """Return True for a settings file that holds nothing but settings of one checker."""
    return basename(path) in _HOMES or basename(path) == ".eslintignore"


def is_readable(path: str, text: str) -> bool:
    """Return False for a file that its own tool could not read either."""
    try:
        _read(basename(path), text)
    except (ValueError, RecursionError, configparser.Error):
        return False
    return True


def _read(name: str, text: str) -> Settings:
    found: Settings = {}
    if name.endswith(".toml"):
        table = tomllib.loads(text)
        _flatten(table, "", found)
        if name == "pyproject.toml":
            found = {key: value for key, value in found.items() if not _NO_CHECKS.match(key)}
    elif name.endswith((".json", ".jsonc")) or name in {".eslintrc", ".nycrc", ".c8rc"}:
        table = json.loads(_without_comments(text))
        if name == "package.json" and isinstance(table, dict):
            table = {key: table[key] for key in _PACKAGE_TABLES if key in table}
        _flatten(table, "", found)
    elif name.endswith((".ini", ".cfg")) or name in {
        ".flake8",
        ".coveragerc",
        ".pylintrc",
        "pylintrc",
    }:
        found = _read_ini(text)
    elif name.endswith((".yml", ".yaml")) or name in {".taprc", ".rubocop.yml"}:
        found = _read_yaml(text)
    elif re.search(r"\.[cm]?[jt]s$", name):
        found = _read_javascript(text)
    home = _HOMES.get(name, "")
    return {_canonical(home + key): value for key, value in found.items()}


def _canonical(key: str) -> str:
    key = key.removeprefix("tool.").replace("tool:", "").replace("coverage:", "coverage.")
    key = key.replace("pytest.ini_options", "pytest").removeprefix("eslintConfig.")
    return key.replace("coverage.coverage.", "coverage.")


def _flatten(node: Any, prefix: str, found: Settings) -> None:
    if len(found) > _MOST_KEYS:
        return
    if isinstance(node, dict):
        for key, value in node.items():
            if prefix.endswith("rules") and isinstance(value, list) and value:
                value = value[0]  # noqa: PLW2901 - ["error", {options}]
            _flatten(value, f"{prefix}.{key}" if prefix else str(key), found)
    elif isinstance(node, list):
        tables = [one for one in node if isinstance(one, dict)]
        for one in tables:
            scope = one.get("module") or one.get("files") or one.get("include") or "*"
            _flatten({k: v for k, v in one.items() if k != "module"}, f"{prefix}[{scope}]", found)
        if not tables:
            found[prefix] = tuple(map(str, node))
    elif isinstance(node, bool | int | float):
        found[prefix] = node
    elif node is not None:
        found[prefix] = str(node)


def _without_comments(text: str) -> str:
    return _TRAILING_COMMA.sub("", mask(text, "jsonc").without_comments())


def _read_ini(text: str) -> Settings:
    parser = configparser.ConfigParser(
        strict=False, interpolation=None, allow_no_value=True, delimiters=("=", ":")
    )
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(text if text.lstrip().startswith(("[", "#", ";")) else f"[run]\n{text}")
    found: Settings = {}
    for section in parser.sections():
        if not _INI_SECTIONS.match(section):
            continue
        scope = section
        if section.startswith("mypy-"):
            scope = f"mypy.overrides[{section[5:]}]"
        for key, value in parser.items(section):
            found[f"{scope}.{key}"] = _value(value or "")
    return found


def _value(text: str) -> Value:
    """Return what a text of an ini or YAML file means."""
    text = text.strip()
    lower = text.lower()
    if lower in {"true", "yes", "on"}:
        return True
    if lower in {"false", "no"}:
        return False
    try:
        return float(text.rstrip("%"))
    except ValueError:
        pass
    if "\n" in text or "," in text:
        return tuple(filter(None, (part.strip() for part in re.split(r"[,\n]", text))))
    return text.strip("\"'")


def _read_yaml(text: str) -> Settings:
    """Return keys and plain values by indentation; anchors and flow tables are not followed."""
    found: Settings = {}
    stack: list[tuple[int, str]] = []
    for line in text.split("\n")[:_MOST_KEYS]:
        match = _YAML_LINE.match(line.split(" #", 1)[0].rstrip())
        if not match or not line.strip() or line.lstrip().startswith("#"):
            continue
        indent = len(match[1]) + (2 if match[2] else 0)
        item_at = len(match[1])
        key, value = match[4], match[5].strip()
        while stack and stack[-1][0] >= (indent if key else item_at + 1):
            stack.pop()
        if key:
            stack.append((indent, key))
        path = ".".join(part for _, part in stack)
        if key and value.startswith("[") and value.endswith("]"):
            found[path] = tuple(
                part.strip(" \"'") for part in value[1:-1].split(",") if part.strip()
            )
        elif key and value:
            found[path] = _value(value)
        elif match[2] and value and path:
            earlier = found.get(path)
            known = earlier if isinstance(earlier, tuple) else ()
            found[path] = (*known, value.strip("\"'")) if len(known) < 2000 else known  # noqa: PLR2004
    return found


def _read_javascript(text: str) -> Settings:
    """Return the plain values of a settings file that is a program, wherever they stand."""
    masked = mask(text, "javascript")
    plain = masked.without_comments()
    found: Settings = {}
    times: dict[str, int] = {}
    rules = [
        (match.end(), masked.pairs.get(match.end(), match.end()))
        for match in _JS_RULES.finditer(masked.masked)
    ]
    for match in _JS_PAIR.finditer(plain):
        key = match[2] or match[3]
        is_rule = any(start < match.start() < end for start, end in rules)
        is_rule = is_rule or bool(match[2]) or match[5] in {"off", "warn", "error"}
        scope = "rules." if is_rule else ""
        times[scope + key] = times.get(scope + key, 0) + 1
        number = times[scope + key]
        name = f"{scope}{key}" if number == 1 else f"{scope}{key} #{number}"
        found[name] = match[5] or _value(match[6])
    for match in _JS_LIST.finditer(plain):
        end = masked.pairs.get(match.end() - 1)
        if end is not None and end - match.end() < _LONGEST_LIST:
            items = [a or b or c for a, b, c in _JS_STRING.findall(plain[match.end() : end])]
            earlier = found.get(match[1])
            known = earlier if isinstance(earlier, tuple) else ()
            if items and match[1] != "rules":
                found[match[1]] = (*known, *items)
    return found


def words_of(value: Value) -> list[str]:
    """Return the options of a command line in settings, e.g. of pytest's `addopts`."""
    if isinstance(value, tuple):
        # An element of a list is one argument; a line of an ini file may have several.
        return [word for one in value for word in (words_of(one) if one[:1] == "-" else [one])]
    try:
        return shlex.split(str(value))
    except ValueError:
        return str(value).split()
