"""The tests of a Python file, read from its syntax tree."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import replace
from posixpath import basename, dirname
from typing import TYPE_CHECKING

from notyet.gates.guard.found_tests import FoundTest, TestsOfFile, digest
from notyet.gates.guard.python_bodies import CHECKER, Body, Function, Names, Skip
from notyet.gates.guard.python_syntax import (
    dotted,
    ends_runner,
    is_always_true,
    is_never_true,
    last_name,
    named,
    names_of_runners,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_PREPARING = frozenset(
    {
        *("setUp", "setUpClass", "setup_method", "setup_class", "setUpModule"),
        *("setup_module", "setup_function"),
    }
)
_NO_CASES = frozenset(
    {"object", "ABC", "Protocol", "Generic", "NamedTuple", "TypedDict", "Exception"}
)
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
        self.values: dict[str, ast.expr] = {}  # module variables that are assigned once
        self.classes: dict[str, ast.ClassDef] = {}
        self.no_cases = set(_NO_CASES)  # classes that are no TestCase
        self.sources: dict[str, str] = {}  # what names stand for: an import, or a text
        self._read_names(tree)
        self._find_asserting()
        self._walk(tree.body, "", "", is_conditional=False)
        self._add_helpers()
        self._add_shadowed(tree)

    def _read_names(self, tree: ast.Module) -> None:
        self.names.runners = names_of_runners(tree)
        self.values = _values(tree)
        self.classes = _classes(tree)
        for node in ast.walk(tree):
            if isinstance(node, Function):
                self.names.functions.setdefault(node.name, node)
            elif isinstance(node, ast.ImportFrom):
                names = {alias.asname or alias.name for alias in node.names}
                self._read_sources(node)
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

    def _read_sources(self, node: ast.ImportFrom) -> None:
        near = dirname(self.found.path) if node.level else ""
        for alias in node.names:
            source = f"{near} {'.' * node.level}{node.module} {alias.name}"
            self.sources[alias.asname or alias.name] = source

    def _find_asserting(self) -> None:
        """Find the functions of this file that assert, directly or through another one."""
        helpers = {
            name: one for name, one in self.names.functions.items() if not _is_test_name(name)
        }
        for _ in range(3):
            before = len(self.names.asserting)
            for name, function in helpers.items():
                if name in self.names.asserting:
                    continue
                body = Body(self.names, function)
                if body.assertions or (body.helpers and CHECKER.match(name)):
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

    def _add_shadowed(self, tree: ast.Module) -> None:
        """Notice imported names that the module itself gives another meaning."""
        shadowed: set[str] = set()
        for node in tree.body:
            if isinstance(node, Function | ast.ClassDef):
                shadowed.add(node.name)
            elif isinstance(node, ast.Assign):
                shadowed |= {one.id for one in node.targets if isinstance(one, ast.Name)}
        mocks = frozenset(shadowed & (self.names.imported - self.names.shared))
        self.found.tests["(file)"] = FoundTest("(file)", 1, "", mocks=mocks, is_group=True)

    def line(self, number: int) -> str:
        """Return the source line of this number."""
        return self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""

    def _walk(
        self, body: Sequence[ast.stmt], prefix: str, inherited: str, *, is_conditional: bool
    ) -> None:
        for node in body:
            if isinstance(node, Function):
                is_fixture = "fixture" in map(last_name, node.decorator_list)
                if _is_test_name(node.name) and not is_fixture:
                    self._add_test(node, prefix, inherited)
                elif self._skips_group(node, prefix, is_conditional=is_conditional) and prefix:
                    inherited = prefix.removesuffix(" > ")
            elif isinstance(node, ast.ClassDef):
                self._walk_class(node, prefix, inherited, is_conditional=is_conditional)
            elif isinstance(node, ast.If | ast.Try | ast.With):
                for block, is_maybe in _blocks(node):
                    self._walk(block, prefix, inherited, is_conditional=is_conditional or is_maybe)
            elif not prefix:
                self._skip_file(node, is_conditional=is_conditional)
                if not is_conditional:
                    self._take_away(node)

    def _skips_group(self, node: Function, prefix: str, *, is_conditional: bool) -> bool:
        """Return True, and note it, if a function that prepares tests skips them."""
        is_autouse = any("autouse=True" in text_of(one) for one in node.decorator_list)
        if node.name not in _PREPARING and not is_autouse:
            return False
        skip = Body(self.names, node).skip
        if not skip or skip.is_conditional or is_conditional:
            return False
        if prefix:
            self._add_group(prefix.removesuffix(" > "), node.lineno, skip)
        else:
            self._note_skip(node, skip, is_conditional=False)
        return True

    def _take_away(self, node: ast.stmt) -> None:
        """Remove or skip tests to which a statement after them gives another meaning."""
        targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else []
        for target in targets:
            name = text_of(target)
            owner, _, attribute = name.rpartition(".")
            known = {name, owner, f"{name} (group)", f"{owner} (group)"}
            if known.isdisjoint(self.found.tests):
                continue
            if isinstance(node, ast.Delete) or (
                isinstance(node, ast.Assign) and not _mentions(node.value, name)
            ):
                for key, test in list(self.found.tests.items()):
                    if test.name == name or test.name.startswith(f"{name} > "):
                        del self.found.tests[key]
            if not isinstance(node, ast.Assign) or not owner:
                continue
            skip = self.skip_of(_elements(node.value)) if attribute == "pytestmark" else None
            if attribute == "__test__" and text_of(node.value) == "False":
                skip = Skip(text_of(node), is_conditional=False)
            for key, test in list(self.found.tests.items()) if skip else ():
                if test.name == owner and not test.skip:
                    always, condition = _parted(skip)
                    self.found.tests[key] = replace(test, skip=always, condition=condition)

    def _walk_class(
        self, node: ast.ClassDef, prefix: str, inherited: str, *, is_conditional: bool
    ) -> None:
        if not self._is_collected(node):
            return
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

    def _is_collected(self, node: ast.ClassDef) -> bool:
        """Return False for a class that neither pytest nor unittest collects."""
        if self._may_be_case(node):
            return True
        names = [one.name for one in node.body if isinstance(one, Function)]
        return node.name.startswith("Test") and "__init__" not in names

    def _may_be_case(self, node: ast.ClassDef) -> bool:
        """Return True for a class with a base that may be a TestCase of unittest."""
        waiting, seen = [node], {node.name}
        while waiting:
            for base in waiting.pop().bases:
                name = last_name(base.value if isinstance(base, ast.Subscript) else base)
                if name in self.no_cases:
                    continue
                if name in self.classes:
                    waiting += [self.classes[name]] if name not in seen else []
                    seen.add(name)
                else:
                    return True
        self.no_cases |= seen
        return False

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
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value:
            name = text_of(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            if name == "pytestmark":
                skip = self.skip_of(_elements(node.value))
            elif name == "__test__" and text_of(node.value) == "False":
                skip = Skip("__test__ = False", is_conditional)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            name = named(node.value.func, self.names.runners)
            if ends_runner(node.value, self.names.runners):
                skip = Skip(text_of(node), is_conditional)
            elif name in {"pytest.skip", "pytest.importorskip"}:
                is_import = name.endswith("importorskip")
                skip = Skip(text_of(node), is_conditional or is_import)
        elif isinstance(node, ast.Raise) and last_name(node.exc) in {"SkipTest", "Skipped"}:
            skip = Skip(text_of(node), is_conditional)
        if skip:
            self._note_skip(node, skip, is_conditional=is_conditional)

    def _note_skip(self, node: ast.stmt, skip: Skip, *, is_conditional: bool) -> None:
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
        if body.is_generator and all(".mark." in dotted(one) for one in node.decorator_list):
            always = always or "yield"  # runners only make a generator of it
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
            loops=body.asserts_in_loop,
            uses=self._uses(body),
        )

    def _uses(self, body: Body) -> frozenset[str]:
        """Return what the names in a test stand for; its fixtures depend on its folder."""
        found = {dirname(self.found.path)} if body.arguments else set()
        for name in body.used:
            if name not in self.sources:
                known = self.names.functions.get(name) or self.values.get(name)
                self.sources[name] = digest(text_of(known)) if known else ""
            found.add(f"{name} {self.sources[name]}")
        return frozenset(found)

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
            if isinstance(values, ast.Name):
                values = self.values.get(values.id)
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
        name = named(call.func if call else marker, self.names.runners)
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
        if is_never_true(node.test):
            return [(node.orelse, False)]
        if is_always_true(node.test):
            return [(node.body, False)]
        return [(node.body, True), (node.orelse, True)]
    handlers = node.handlers if isinstance(node, ast.Try) else []
    return [(node.body, False), *((handler.body, True) for handler in handlers)]


def _values(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the values of module variables that nothing in the module changes."""
    values: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                values[target.id] = node.value
    for one in ast.walk(tree):
        if isinstance(one, ast.AugAssign):
            values.pop(text_of(one.target), None)
        elif isinstance(one, ast.Call) and last_name(one) in {"append", "extend", "insert", "add"}:
            values.pop(dotted(one.func).rpartition(".")[0], None)
    return values


def _classes(tree: ast.Module) -> dict[str, ast.ClassDef]:
    """Return the classes by name, without those inside functions, which hide no imported one."""
    nodes = [*ast.walk(tree)]
    functions = [node for node in nodes if isinstance(node, Function)]
    local = {id(inner) for function in functions for inner in ast.walk(function)}
    found: dict[str, ast.ClassDef] = {}
    for node in nodes:
        if isinstance(node, ast.ClassDef) and id(node) not in local:
            found.setdefault(node.name, node)
    return found


def _mentions(node: ast.expr, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node))


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
