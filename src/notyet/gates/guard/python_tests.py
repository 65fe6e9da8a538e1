"""The tests of a Python file, read from its syntax tree."""

from __future__ import annotations

import ast
import re
import warnings
from posixpath import basename
from typing import TYPE_CHECKING

from notyet.gates.guard.found_tests import FoundTest, TestsOfFile
from notyet.gates.guard.python_bodies import Body, Function, Names, Skip
from notyet.gates.guard.python_syntax import dotted, is_always_true, last_name, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHARED = re.compile(
    r"(?:^|[._])(?:tests?|testing|conftest|helpers?|utils?|common|support)(?:$|[._])"
)


def tests_of(path: str, source: str) -> TestsOfFile | None:
    """Return the tests of a Python file, or None if it cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the strings of other people's code
            tree = ast.parse(source)
        return _Module(path, tree, source.split("\n")).found
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _Module:
    """Collects the tests of one module."""

    def __init__(self, path: str, tree: ast.Module, lines: list[str]) -> None:
        self.found = TestsOfFile(path)
        self.names = Names(re.sub(r"^test_|_tests?$|\.py$", "", basename(path)[:-3]))
        self.lines = lines
        self.skips: dict[str, Skip] = {}  # module variables that hold a skip marker
        self._read_names(tree)
        self._find_asserting()
        self._walk(tree.body, "", "", is_conditional=False)
        self._add_helpers()

    def _read_names(self, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            if isinstance(node, Function):
                self.names.functions.setdefault(node.name, node)
            elif isinstance(node, ast.ImportFrom):
                names = {alias.asname or alias.name for alias in node.names}
                self.names.imported |= names
                if node.level or _SHARED.search(node.module or ""):
                    self.names.shared |= names
            elif isinstance(node, ast.Import):
                self.names.imported |= {alias.asname or alias.name for alias in node.names}
                self.names.shared |= {
                    alias.asname or alias.name.split(".")[0]
                    for alias in node.names
                    if _SHARED.search(alias.name)
                }
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                skip = self.skip_of([node.value])
                if skip:
                    self.skips[node.targets[0].id] = skip

    def _find_asserting(self) -> None:
        """Find the functions of this file that assert, directly or through another one."""
        helpers = {
            name: one for name, one in self.names.functions.items() if not _is_test_name(name)
        }
        for _ in range(3):
            before = len(self.names.asserting)
            for name, function in helpers.items():
                if name not in self.names.asserting and Body(self.names, function).assertions:
                    self.names.asserting.add(name)
            if len(self.names.asserting) == before:
                break

    def _add_helpers(self) -> None:
        for name in self.names.asserting:
            function = self.names.functions[name]
            body = Body(self.names, function)
            self.found.tests.setdefault(
                f"{name}()",
                FoundTest(
                    name=name,
                    line=function.lineno,
                    head=self.line(function.lineno),
                    body=body.digest,
                    assertions=tuple(body.assertions),
                    helpers=frozenset(body.helpers),
                    is_helper=True,
                ),
            )

    def line(self, number: int) -> str:
        """Return the source line of this number."""
        return self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""

    def _walk(
        self, body: Sequence[ast.stmt], prefix: str, inherited: str, *, is_conditional: bool
    ) -> None:
        for node in body:
            if isinstance(node, Function):
                if _is_test_name(node.name):
                    self._add_test(node, prefix, inherited)
                elif prefix and self._skips_group(node, prefix):
                    inherited = prefix.removesuffix(" > ")
            elif isinstance(node, ast.ClassDef):
                self._walk_class(node, prefix, inherited, is_conditional=is_conditional)
            elif isinstance(node, ast.If | ast.Try | ast.With):
                for block, is_maybe in _blocks(node):
                    self._walk(block, prefix, inherited, is_conditional=is_conditional or is_maybe)
            elif not prefix:
                self._skip_file(node, is_conditional=is_conditional)

    def _skips_group(self, node: Function, prefix: str) -> bool:
        """Return True, and add the group, if a method that prepares its tests skips them."""
        if node.name not in {"setUp", "setUpClass", "setup_method", "setup_class"}:
            return False
        skip = Body(self.names, node).skip
        if not skip or skip.is_conditional:
            return False
        self._add_group(prefix.removesuffix(" > "), node.lineno, skip)
        return True

    def _walk_class(
        self, node: ast.ClassDef, prefix: str, inherited: str, *, is_conditional: bool
    ) -> None:
        if not (node.name.startswith("Test") or node.bases):
            return  # neither pytest nor unittest collects it
        name = f"{prefix}{node.name}"
        skip = self.skip_of(node.decorator_list)
        for one in node.body:
            if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
                target = one.targets[0].id
                if target == "pytestmark":
                    skip = skip or self.skip_of(_elements(one.value))
                elif target == "__test__" and text_of(one.value) == "False" and not node.bases:
                    skip = Skip("__test__ = False", is_conditional=False)
        self._add_group(name, node.lineno, skip)
        if skip and not skip.is_conditional:
            inherited = name
        self._walk(node.body, f"{name} > ", inherited, is_conditional=is_conditional)

    def _add_group(self, name: str, line: int, skip: Skip | None) -> None:
        always, condition = _parted(skip)
        self.found.tests[f"{name} (group)"] = FoundTest(
            name=name,
            line=line,
            head=self.line(line),
            skip=always,
            condition=condition,
            is_group=True,
        )

    def _skip_file(self, node: ast.stmt, *, is_conditional: bool) -> None:
        """Notice what skips all tests of this file."""
        skip: Skip | None = None
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if node.targets[0].id == "pytestmark":
                skip = self.skip_of(_elements(node.value))
            elif node.targets[0].id == "__test__" and text_of(node.value) == "False":
                skip = Skip("__test__ = False", is_conditional)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            name = dotted(node.value.func)
            if name in {"pytest.skip", "pytest.importorskip"}:
                is_import = name.endswith("importorskip")
                skip = Skip(text_of(node), is_conditional or is_import)
        elif isinstance(node, ast.Raise) and last_name(node.exc) in {"SkipTest", "Skipped"}:
            skip = Skip(text_of(node), is_conditional)
        if skip:
            self.found.skip_line = node.lineno
            if is_conditional or skip.is_conditional:
                self.found.condition = self.found.condition or skip.text
            else:
                self.found.skip = self.found.skip or skip.text

    def _add_test(self, node: Function, prefix: str, inherited: str) -> None:
        body = Body(self.names, node)
        always, condition = _parted(self.skip_of(node.decorator_list) or body.skip)
        for decorator in node.decorator_list:
            body.mocks_in(decorator)
        # A later function of the same name replaces the earlier one, as in the module itself.
        self.found.tests[f"{prefix}{node.name}"] = FoundTest(
            name=f"{prefix}{node.name}",
            line=node.lineno,
            head=self.line(node.lineno),
            body=body.digest,
            lines=frozenset(body.texts),
            assertions=tuple(body.assertions),
            skip=always,
            condition=condition,
            inherited=inherited,
            cases=None if body.has_subtests else self._cases(node),
            helpers=frozenset(body.helpers),
            mocks=frozenset(body.mocks),
            is_empty=body.is_empty,
        )

    def _cases(self, node: Function) -> int | None:
        """Return how many cases the decorators give a test; None if that is known at run time."""
        cases = 1
        for decorator in node.decorator_list:
            if not isinstance(decorator, ast.Call):
                continue
            last = dotted(decorator.func).rpartition(".")[2]
            if last in {"given", "data", "expand", "product"}:
                return None
            if last != "parametrize" or not (decorator.args[1:] or decorator.keywords):
                continue
            values = decorator.args[1] if len(decorator.args) > 1 else None
            for keyword in decorator.keywords:
                if keyword.arg == "argvalues":
                    values = keyword.value
            if not isinstance(values, ast.List | ast.Tuple | ast.Set):
                return None
            if any(isinstance(one, ast.Starred) for one in values.elts):
                return None
            cases *= sum(not self._is_skipped_case(one) for one in values.elts)
        return cases

    def _is_skipped_case(self, node: ast.expr) -> bool:
        if not (isinstance(node, ast.Call) and last_name(node.func) == "param"):
            return False
        marks = [keyword.value for keyword in node.keywords if keyword.arg == "marks"]
        skip = self.skip_of([one for mark in marks for one in _elements(mark)])
        return bool(skip and not skip.is_conditional)

    def skip_of(self, markers: Sequence[ast.expr]) -> Skip | None:
        """Return the skip that one of these markers or decorators causes."""
        conditional: Skip | None = None
        for marker in markers:
            skip = self._skip_of_one(marker)
            if skip and not skip.is_conditional:
                return skip
            conditional = conditional or skip
        return conditional

    def _skip_of_one(self, marker: ast.expr) -> Skip | None:
        call = marker if isinstance(marker, ast.Call) else None
        name = dotted(call.func if call else marker)
        last = name.rpartition(".")[2]
        if name in self.skips:
            return self.skips[name]
        if last in {"skip", "expectedFailure", "xfail"} and _is_runner(name):
            condition = _condition(call) if call and last == "xfail" else None
            return Skip(text_of(marker), condition is not None and not is_always_true(condition))
        if last in {"skipif", "skipIf"} and call:
            condition = _condition(call)
            return Skip(text_of(marker), condition is None or not is_always_true(condition))
        if last == "skipUnless" and call and call.args:
            value = call.args[0]
            is_never = isinstance(value, ast.Constant) and not value.value
            return Skip(text_of(marker), not is_never)
        return None


def _blocks(node: ast.If | ast.Try | ast.With) -> list[tuple[list[ast.stmt], bool]]:
    """Return the blocks of a statement, each with whether it runs on a condition."""
    if isinstance(node, ast.If):
        return [(node.body, True), (node.orelse, True)]
    handlers = node.handlers if isinstance(node, ast.Try) else []
    return [(node.body, False), *((handler.body, True) for handler in handlers)]


def _is_test_name(name: str) -> bool:
    return name.startswith("test")


def _is_runner(name: str) -> bool:
    """Return True unless the marker's name belongs to something that is not a test runner."""
    root = name.split(".", 1)[0]
    return "." not in name or root in {"pytest", "unittest", "mark"} or ".mark." in name


def _condition(call: ast.Call) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == "condition":
            return keyword.value
    return call.args[0] if call.args else None


def _parted(skip: Skip | None) -> tuple[str, str]:
    """Return how something is always skipped, and how on a condition."""
    if skip is None:
        return "", ""
    return ("", skip.text) if skip.is_conditional else (skip.text, "")


def _elements(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
