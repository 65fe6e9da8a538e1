"""Compare scripts, CI files and conftest.py: failures without effect, tests left out by code."""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from posixpath import basename
from typing import TYPE_CHECKING, NamedTuple

from notyet.gates.guard.files import is_ci, is_script
from notyet.gates.guard.found_tests import digest
from notyet.gates.guard.python_syntax import (
    ends_runner,
    last_name,
    named,
    names_of_runners,
    text_of,
    without_docstring,
)
from notyet.gates.guard.rules import finding, short
from notyet.gates.guard.settings import first_difference, scripts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from notyet.gates.guard.rules import Weakening

_SOFT = re.compile(
    r"\|\|\s{0,4}[({]?\s{0,4}(?:(?:/usr)?(?:/bin/)?true\b|:(?=[\s\"';)}]|$)|exit 0\b|"
    # Words on the way to a failure hide none: || { echo "no tests"; exit 1; }
    r"(?:echo|printf)\b(?!(?:\"[^\"]{0,300}\"|'[^']{0,300}'|[^\"'|&]){0,300};\s{0,4}"
    r"(?:exit|return) [1-9]))|"
    r";\s{0,4}(?:true|exit 0)\s{0,4}[\"',}\s]{0,9}$|"
    r"\btrap\s{1,4}[\"'](?:exit 0|true|:)|^\.IGNORE\b|"
    r"\b(?:continue-on-error|allow_failure):\s{0,4}(?:\$\{\{\s{0,4})?true\b|"
    r"\bif:\s{0,4}(?:\$\{\{\s{0,4})?false\b|"
    r"--pass[-_]?[wW]ith[-_]?[nN]o[-_]?[tT]ests\b|"
    r"--exit-(?:zero|0)\b|--no-verify\b|\bset \+e\b|"
    r"^\s{0,20}(?:ignore_outcome|ignore_errors)\s{0,4}=\s{0,4}[Tt]rue"
)
_LONGEST_STEP = 60  # lines of a step in a CI file
_SOFT_RECIPE = re.compile(r"^\t@?\s{0,4}-(?=[\w$@])")  # a leading dash in a Makefile
_STEP_KEYS = ("continue-on-error", "allow_failure", "if:")
_CHECK = re.compile(
    r"\b(?:pytest|unittest|tox|nox|coverage|mypy|pyright|ty|ruff|flake8|pylint|bandit|black|"
    r"pre-commit|jest|vitest|mocha|ava|tap|tape|c8|nyc|eslint|tsc|biome|oxlint|prettier|xo|standard|"
    r"playwright|cypress|karma|clippy|cargo|golangci-lint|go (?:test|vet)|rspec|rubocop|minitest|"
    r"phpunit|phpstan|psalm|dotnet|gradlew?|mvn|ctest|tests?|lint|check|typecheck|type-check|spec)\b"
)
_NO_CHECK_SCRIPT = re.compile(r"^\s*(?:#|echo\b|true\b|:|exit 0\b|printf\b|$)")
_CHECK_SCRIPT = re.compile(r"(?:test|lint|check|type|cov|unit|spec|e2e)")
_HOOKS = frozenset(
    {
        *("pytest_collection_modifyitems", "pytest_ignore_collect", "pytest_runtest_makereport"),
        *("pytest_runtest_setup", "pytest_runtest_call", "pytest_runtest_protocol"),
        *(
            "pytest_pyfunc_call",
            "pytest_sessionfinish",
            "pytest_collect_file",
            "pytest_itemcollected",
            "pytest_cmdline_main",
            "pytest_runtestloop",
            "pytest_pycollect_makeitem",
            "pytest_unconfigure",
        ),
    }
)
_SKIPPING = frozenset({"skip", "xfail", "exit", "skipif", "pytest_deselected", "SkipTest"})
# Options of pytest by which it runs fewer tests.
_CHOOSES = frozenset(
    f"config.option.{name}"
    for name in ("keyword", "markexpr", "collectonly", "deselect", "ignore", "ignore_glob", "lf")
)
# Hooks that replace what pytest does when they return something.
_REPLACING = frozenset(
    {
        *("pytest_cmdline_main", "pytest_runtestloop", "pytest_runtest_protocol"),
        *("pytest_pyfunc_call", "pytest_pycollect_makeitem", "pytest_collect_file"),
    }
)


def compare_script(
    path: str, old: str, new: str | None, *, is_gate_script: bool
) -> Iterator[Weakening]:
    """Return what changed in a file that runs checks."""
    if is_gate_script:
        yield from _gate_script(path, old, new)
    if is_ci(path):
        line, before = first_difference(old, new or "")
        what = "a file of the CI was deleted" if new is None else "a file of the CI was changed"
        yield finding("ci-changed", path, line, what, before=before)
    if new is None or not (is_ci(path) or is_script(path)):
        return
    yield from _soft_commands(path, old, new)
    if basename(path) == "package.json":
        yield from _package_scripts(path, old, new, is_gate_script=is_gate_script)
    elif not is_gate_script and not is_ci(path):
        line, before = first_difference(old, new)
        yield finding(
            "check-script-changed",
            path,
            line,
            "a script that may run checks was changed",
            before=before,
        )


def _gate_script(path: str, old: str, new: str | None) -> Iterator[Weakening]:
    if new is not None and basename(path) == "package.json" and scripts_of(new) == scripts_of(old):
        return  # a gate that runs a package's script reads nothing else of this file
    line, before = first_difference(old, new or "")
    done = "deleted" if new is None else "changed"
    what = f"a script that a gate runs was {done}"
    version = digest(new or "")
    yield finding("gate-script-changed", path, line, what, before=before, version=version)


def _soft_commands(path: str, old: str, new: str) -> Iterator[Weakening]:
    """Return commands that may fail without effect now."""
    known = Counter(" ".join(line.split()) for line, _ in _soft_lines(path, old))
    before = old.split("\n")
    lines = new.split("\n")
    for line, number in _soft_lines(path, new):
        text = " ".join(line.split())
        if known[text] > 0:
            known[text] -= 1
            continue
        block = _step(lines, number) if any(key in line for key in _STEP_KEYS) else line
        tools = set(_CHECK.findall(_SOFT.sub("", block)))
        was = next((one for one in before if tools.intersection(_CHECK.findall(one))), "")
        if tools and was:
            what = f"a failure no longer counts: `{short(text, 140)}`"
            yield finding("failure-ignored", path, number, what, before=was)
        else:
            what = f"a new command may fail without effect: `{short(text, 140)}`"
            yield finding("failure-ignored-new", path, number, what)


def _soft_lines(path: str, text: str) -> Iterator[tuple[str, int]]:
    is_makefile = basename(path).lower().endswith("makefile")
    for number, line in enumerate(text.split("\n"), 1):
        short_line = line[:2000]
        if short_line.lstrip().startswith(("#", "//")):
            continue
        if _SOFT.search(short_line) or (is_makefile and _SOFT_RECIPE.search(short_line)):
            yield short_line, number


def _step(lines: list[str], number: int) -> str:
    """Return the step of a CI file around a line: up to the items before and after it."""
    own = _indent(lines[number - 1])
    start = number - 1
    while (
        start > 0
        and number - start < _LONGEST_STEP
        and not (
            _is_item(lines[start], own)
            or (lines[start].strip() and _indent(lines[start]) < own - 2)
        )
    ):
        start -= 1
    end = number
    while (
        end < len(lines)
        and end - number < _LONGEST_STEP
        and not (lines[end].strip() and (_indent(lines[end]) < own or _is_item(lines[end], own)))
    ):
        end += 1
    return "\n".join(lines[start:end])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _is_item(line: str, indent: int) -> bool:
    return line.lstrip().startswith("- ") and _indent(line) <= indent


def _package_scripts(path: str, old: str, new: str, *, is_gate_script: bool) -> Iterator[Weakening]:
    before, now = scripts_of(old), scripts_of(new)
    lines = new.split("\n")
    for name, command in before.items():
        changed = now.get(name)
        if changed == command or not _CHECK_SCRIPT.search(name):
            continue
        line = next((n for n, one in enumerate(lines, 1) if f'"{name}"' in one), 1)
        is_nothing = changed is not None and _NO_CHECK_SCRIPT.match(changed)
        if is_nothing and not _NO_CHECK_SCRIPT.match(command):
            what = f"the script `{short(name, 40)}` does nothing now: `{short(changed or '', 100)}`"
            yield finding("check-replaced", path, line, what, before=command)
        elif not is_gate_script:
            now_text = "is gone" if changed is None else f"is `{short(changed, 100)}`"
            what = f"the script `{short(name, 40)}` {now_text}"
            yield finding("check-script-changed", path, line, what, before=command)


# conftest.py


def compare_conftest(path: str, old: str, new: str) -> Iterator[Weakening]:
    """Return what a conftest.py skips, ignores or replaces that it did not before."""
    now = _conftest(new)
    if now is None:
        return
    known = Counter(text for text, _, _ in _conftest(old) or ())
    for text, line, kind in now:
        if known[text] > 0:
            known[text] -= 1
            continue
        if kind == "skip":
            what = f"it leaves out tests: `{short(text, 140)}`"
            yield finding("conftest-skip", path, line, what)
        elif kind == "conditional":
            what = f"it skips on a condition: `{short(text, 140)}`"
            yield finding("skipped-on-condition", path, line, what)
        else:
            what = f"it acts on all tests: `{short(text, 140)}`"
            yield finding("conftest-autouse", path, line, what)


def _conftest(source: str) -> list[tuple[str, int, str]] | None:
    """Return what acts on tests in a conftest.py: its text, line and kind."""
    found: list[tuple[str, int, str]] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
        runners = names_of_runners(tree)
        _acts(tree.body, _Place("", runners), found, is_conditional=False)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return found


class _Place(NamedTuple):
    """Where a statement of a conftest.py stands."""

    hook: str  # of pytest, around it
    runners: Mapping[str, str]  # own names for those of pytest
    is_top: bool = True


def _acts(
    body: Sequence[ast.stmt],
    place: _Place,
    found: list[tuple[str, int, str]],
    *,
    is_conditional: bool,
) -> None:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            hook = node.name if node.name in _HOOKS else place.hook
            size = len(found)
            if node.name in _REPLACING and _only_returns(node):
                found.append((f"def {node.name}", node.lineno, "skip"))
            inside = place._replace(hook=hook, is_top=False)
            _acts(node.body, inside, found, is_conditional=is_conditional)
            is_autouse = any("autouse=True" in text_of(one) for one in node.decorator_list)
            if len(found) == size and (is_autouse or node.name in _HOOKS):
                found.append((f"def {node.name}", node.lineno, "autouse"))
            continue
        branches = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
        handlers = [one.body for one in getattr(node, "handlers", ())]
        blocks = [one for one in (*branches, *handlers) if isinstance(one, list)]
        is_branch = isinstance(node, ast.If | ast.While | ast.Try | ast.Match)
        for block in blocks:
            _acts(block, place, found, is_conditional=is_conditional or is_branch)
        if blocks:
            continue
        if _leaves_out(node, place):
            # A hook looks at each test, so a condition there chooses the tests to leave out.
            kind = "conditional" if is_conditional and not place.hook else "skip"
            found.append((text_of(node), node.lineno, kind))
        elif place.is_top and _replaces(node):
            found.append((text_of(node), node.lineno, "autouse"))


def _only_returns(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return True for a hook that does nothing but keep pytest from its work."""
    (first, *others) = without_docstring(node.body)
    return (
        not others
        and isinstance(first, ast.Return)
        and first.value is not None
        and text_of(first.value) != "None"
    )


def _replaces(node: ast.stmt) -> bool:
    """Return True for a statement of the module that changes code elsewhere, or loads plugins."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(
        isinstance(one, ast.Attribute) or text_of(one) == "pytest_plugins" for one in targets
    )


def _leaves_out(node: ast.stmt, place: _Place) -> bool:
    """Return True for a statement that skips, ignores or deselects tests."""
    hook = place.hook
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        texts = [text_of(one) for one in targets]
        if any(text in {"collect_ignore", "collect_ignore_glob"} for text in texts):
            return text_of(node.value) not in {"[]", "()"} if node.value else False
        if any(text in _CHOOSES for text in texts):
            return True
        if hook and any(
            text.startswith("items[") or text.endswith((".outcome", ".exitstatus", ".excinfo"))
            for text in texts
        ):
            return True
    if isinstance(node, ast.Delete):
        return bool(hook) and any(text_of(one).startswith("items[") for one in node.targets)
    if isinstance(node, ast.Return):
        return hook == "pytest_ignore_collect" and text_of(node) not in {
            *("return", "return None", "return False"),
        }
    return _calls_skip(node, place)


def _calls_skip(node: ast.stmt, place: _Place) -> bool:
    """Return True if an expression of a statement skips, ignores or deselects tests."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call | ast.Attribute | ast.Name):
            name = named(call, place.runners)
            last = name.rpartition(".")[2]
            root = name.split(".")[0]
            if last in _SKIPPING and root in {"pytest", "unittest", "config", "item", "request"}:
                is_marker = ".mark." in name and isinstance(node, ast.Assign) and not place.hook
                return not is_marker  # a marker that only gets a name skips nothing yet
            if name.startswith("collect_ignore") and last in {"append", "extend"}:
                return True
            if place.hook and name in {"items.clear", "items.remove", "items.pop"}:
                return True
        if isinstance(call, ast.Call):
            texts = {one.value for one in ast.walk(call) if isinstance(one, ast.Constant)}
            if last_name(call) == "add_marker" and texts & {"skip", "xfail", "skipif"}:
                return True
            if last_name(call) == "setattr" and texts & {"outcome", "exitstatus", "excinfo"}:
                return True
            if ends_runner(call, place.runners):
                return True
    return False
