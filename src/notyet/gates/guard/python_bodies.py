"""What one Python function checks: its assertions, skips, mocks and helpers."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from notyet.gates.guard.found_tests import EXACT, LOOSE, PARTIAL, Assertion, digest
from notyet.gates.guard.python_syntax import (
    CATCH_ALL,
    dotted,
    ends_runner,
    is_always_true,
    is_constant,
    is_docstring,
    is_never_true,
    is_pure,
    last_name,
    named,
    runs_for_nothing,
    swallows_failures,
    text_of,
    without_docstring,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Function = ast.FunctionDef | ast.AsyncFunctionDef
# A fixture of pytest's own plugins that asserts, or a name by which people call such a function.
CHECKER = re.compile(r"^_*(?:assert|check|verify|expect|ensure|validate|should)(?:_|[A-Z]|s?$)")
_RUNNERS = frozenset({"pytest", "self", "unittest", "cls", "case"})
_STRENGTH = {
    "assertTrue": LOOSE,
    "assertFalse": LOOSE,
    "assertIsNotNone": LOOSE,
    "assertNotEqual": LOOSE,
    "assertIsInstance": LOOSE,
    "assertIn": PARTIAL,
    "assertNotIn": PARTIAL,
    "assertAlmostEqual": PARTIAL,
    "assertGreater": PARTIAL,
    "assertGreaterEqual": PARTIAL,
    "assertLess": PARTIAL,
    "assertLessEqual": PARTIAL,
    "assert_called": LOOSE,
    "assert_called_once": PARTIAL,
    "fail": LOOSE,
}
_RAISING = frozenset({"raises", "warns", "deprecated_call", "assertRaises", "assertWarns"})
_APPROXIMATE = frozenset({"approx", "isclose", "allclose"})
_PATCHES = frozenset({"patch", "object", "setattr", "multiple"})


_SKIPS = frozenset({"SkipTest", "Skipped"})
_LEAVES = ast.Return | ast.Raise | ast.Continue | ast.Break
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class Skip(NamedTuple):
    """What skips a test."""

    text: str
    is_conditional: bool


@dataclass
class Names:
    """The names of a module by which its functions are understood."""

    stem: str  # of the file that the tests are about, if their file is called after it
    shared: set[str] = field(default_factory=set)  # imported from modules that tests share
    imported: set[str] = field(default_factory=set)
    functions: dict[str, Function] = field(default_factory=dict)
    asserting: set[str] = field(default_factory=set)  # functions that assert
    runners: dict[str, str] = field(default_factory=dict)  # own names for those of test runners


class _Flow(NamedTuple):
    """How a statement is reached."""

    is_conditional: bool = False
    is_swallowed: bool = False  # a failed assertion has no effect
    is_branch: bool = False
    assumed: str = ""  # the condition of the branch

    def maybe(self) -> _Flow:
        return self._replace(is_conditional=True)

    def branch(self, assumed: str = "") -> _Flow:
        return self._replace(is_conditional=True, is_branch=True, assumed=assumed)

    def swallowed(self) -> _Flow:
        return self._replace(is_swallowed=True)


class Body:
    """Collects what one function checks, following the statements that can be reached."""

    def __init__(self, names: Names, function: Function) -> None:
        self.names = names
        self.function = function
        self.assertions: list[Assertion] = []
        self.helpers: set[str] = set()
        self.mocks: set[str] = set()
        self.skip: Skip | None = None
        self.has_subtests = self.asserts_in_loop = False
        arguments = function.args
        self.arguments = {one.arg for one in (*arguments.args, *arguments.kwonlyargs)}
        body = without_docstring(function.body)
        self.is_empty = all(
            isinstance(one, ast.Pass) or is_docstring(one) or _is_nothing(one) for one in body
        )
        if body and isinstance(body[0], ast.Return) and len(body) > 1:
            self.skip = Skip("return", is_conditional=False)
        self.used = {one.id for one in _own_nodes(function) if isinstance(one, ast.Name)}
        self.is_generator = any(
            isinstance(one, ast.Yield | ast.YieldFrom) for one in _own_nodes(function, inner=False)
        )
        self.texts = [text_of(one) for one in body]
        self.digest = digest("\n".join(self.texts))
        self._block(body, _Flow())

    def _block(self, body: Sequence[ast.stmt], flow: _Flow) -> None:
        for node in body:
            self._statement(node, flow)
            if isinstance(node, ast.If) and is_always_true(node.test):
                node = node.body[-1]  # noqa: PLW2901
            if isinstance(node, _LEAVES):
                return  # the rest cannot be reached

    def _statement(self, node: ast.stmt, flow: _Flow) -> None:
        if isinstance(node, ast.Assert):
            is_vacuous = is_always_true(node.test) or text_of(node.test) == flow.assumed
            if not flow.is_swallowed and not is_vacuous:
                # One that is not always reached says less.
                strength = _strength(node.test) - flow.is_branch
                self._assertion(node, max(LOOSE, strength))
            self._expressions([node.test], flow.maybe().swallowed())
        elif isinstance(node, ast.Raise):
            self._raised(node, flow)
            self._expressions([node], flow)
        elif not self._compound(node, flow):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                self._replaced(node.targets)
            self._expressions([node], flow)

    def _compound(self, node: ast.stmt, flow: _Flow) -> bool:
        """Follow the blocks of a statement; return False if it has none."""
        if isinstance(node, ast.If | ast.While):
            self._branch(node, flow)
        elif isinstance(node, ast.Try):
            self._try(node, flow)
        elif isinstance(node, ast.With | ast.AsyncWith):
            managers = [item.context_expr for item in node.items]
            expects_failure = any(map(_expects_failure, managers)) and any(
                isinstance(one, ast.Assert) for one in node.body
            )
            swallows = expects_failure or any(map(_suppresses, managers))
            self._expressions(managers, flow.swallowed() if expects_failure else flow)
            self._block(node.body, flow.swallowed() if swallows else flow)
        elif isinstance(node, ast.For | ast.AsyncFor):
            self._expressions([node.iter], flow)
            if not runs_for_nothing(node.iter):
                known = len(self.assertions)
                self._block(node.body, flow.maybe())
                self.asserts_in_loop |= len(self.assertions) > known
            self._block(node.orelse, flow.maybe())
        elif isinstance(node, ast.Match):
            for case in node.cases:
                self._block(case.body, flow.branch())
        elif isinstance(node, Function | ast.ClassDef):
            if node.decorator_list or node.name in self.used or isinstance(node, ast.ClassDef):
                self._block(node.body, flow.maybe())
        else:
            return False
        return True

    def _try(self, node: ast.Try, flow: _Flow) -> None:
        swallows = any(map(swallows_failures, node.handlers)) or any(
            isinstance(one, ast.Return) for one in node.finalbody
        )
        self._block(node.body, flow.swallowed() if swallows else flow)
        for handler in node.handlers:
            self._block(handler.body, flow.branch())
        self._block(node.orelse, flow.maybe())
        self._block(node.finalbody, flow)

    def _branch(self, node: ast.If | ast.While, flow: _Flow) -> None:
        self._expressions([node.test], flow.maybe())
        if is_always_true(node.test):
            self._block(node.body, flow)
            return
        if is_never_true(node.test):
            self._block(node.orelse, flow)
            return
        self._block(node.body, flow.branch(text_of(node.test)))
        self._block(node.orelse, flow.branch())

    def _assertion(self, node: ast.stmt | ast.expr, strength: int) -> None:
        self.assertions.append(Assertion(text_of(node), node.lineno, strength))

    def _raised(self, node: ast.Raise, flow: _Flow) -> None:
        last = last_name(node.exc)
        if last in _SKIPS or dotted(node.exc).endswith("skip.Exception"):
            self._skips(Skip(text_of(node), flow.is_conditional))
        elif last == "AssertionError" and not flow.is_swallowed:
            self._assertion(node, EXACT)

    def _skips(self, skip: Skip) -> None:
        if self.skip is None or (self.skip.is_conditional and not skip.is_conditional):
            self.skip = skip

    def _replaced(self, targets: Sequence[ast.expr]) -> None:
        """Notice an imported name that the test gives another meaning."""
        for target in targets:
            if isinstance(target, ast.Name) and target.id in self.names.imported:
                self.mocks.add(target.id)

    def _expressions(self, nodes: Sequence[ast.AST], flow: _Flow) -> None:
        for call in _calls(nodes):
            name = named(call.func, self.names.runners)
            last = name.rpartition(".")[2]
            if self._skips_now(call, name, last):
                self._skips(Skip(text_of(call), flow.is_conditional))
            elif last == "importorskip":
                self._skips(Skip(text_of(call), is_conditional=True))
            elif last == "subTest" or name == "subtests.test":
                self.has_subtests = True
            elif last in _PATCHES:
                self.mocks_in(call)
            if flow.is_swallowed:
                continue
            strength = self._strength_of_call(call, name, last)
            if strength is not None:
                self._assertion(call, strength)
            elif self._may_assert(name):
                self.helpers.add(name)

    def _skips_now(self, call: ast.Call, name: str, last: str) -> bool:
        """Return True for a call that skips the test, or ends the test runner."""
        if last in {"add_marker", "applymarker"}:
            return bool(call.args) and last_name(call.args[0]) in {"skip", "xfail"}
        if last in {"skip", "xfail", "skipTest"}:
            return name.split(".", 1)[0] in _RUNNERS
        return ends_runner(call, self.names.runners, in_test=True)

    def _strength_of_call(self, call: ast.Call, name: str, last: str) -> int | None:
        """Return how much a call asserts; None if it asserts nothing."""
        if last in _RAISING:
            return _strength_of_raises(call)
        if last in {"assertRaisesRegex", "assertWarnsRegex"}:
            return EXACT
        if last == "fail" and name.split(".", 1)[0] in _RUNNERS:
            return LOOSE
        if last in self.names.functions:
            is_other = last in self.names.asserting and last != self.function.name
            return _STRENGTH.get(last, EXACT) if is_other else None
        if last.startswith("assert"):
            return None if _is_vacuous(call, last) else _STRENGTH.get(last, EXACT)
        return EXACT if CHECKER.match(last) else None

    def _may_assert(self, name: str) -> bool:
        """Return True for a function of another file that tests share, a fixture or a base."""
        root, _, rest = name.partition(".")
        if rest.startswith("assert"):
            return False
        return (
            root in self.names.shared
            or (not rest and root in self.arguments)
            or (root == "self" and "." not in rest and rest not in self.names.functions)
        )

    def mocks_in(self, node: ast.expr) -> None:
        """Collect what a call of `patch`, `patch.object` or `setattr` replaces of the subject."""
        if not isinstance(node, ast.Call) or not node.args:
            return
        name = dotted(node.func)
        if not name.endswith(("patch", "patch.object", "patch.multiple", "monkeypatch.setattr")):
            return
        first = node.args[0]
        if isinstance(first, ast.Constant):
            target = str(first.value)
        else:
            target = dotted(first)
            if len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
                target = f"{target}.{node.args[1].value!s}"
        parts = target.split(".")
        called = {dotted(call.func).rpartition(".")[2] for call in _calls(self.function.body)}
        stem = self.names.stem
        rest = parts[parts.index(stem) + 1 :] if stem in parts[:-1] else []
        # `cart.total` and `cart.Cart.total` are the subject; `cart.requests.get` is something
        # that the subject uses.
        is_method = len(rest) > 1 and rest[0][:1].isupper() and not rest[2:]
        is_subject = len(rest) == 1 or is_method
        if is_subject or parts[-1] in called:
            self.mocks.add(target)


def _calls(nodes: Sequence[ast.AST]) -> Iterator[ast.Call]:
    for node in nodes:
        for one in ast.walk(node):
            if isinstance(one, ast.Call):
                yield one


def _is_nothing(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assert):
        return is_always_true(node.test)
    return isinstance(node, ast.Return) and node.value is None


def _suppresses(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and last_name(node) == "suppress"
        and any(
            last_name(one) in {"AssertionError", "Exception", "BaseException"} for one in node.args
        )
    )


def _expects_failure(node: ast.expr) -> bool:
    """Return True for `raises(AssertionError)` and the like, which an own `assert` satisfies."""
    is_raises = isinstance(node, ast.Call) and last_name(node) in {"raises", "assertRaises"}
    return (
        is_raises
        and isinstance(node, ast.Call)
        and any(last_name(one) in CATCH_ALL for one in node.args)
    )


def _is_vacuous(call: ast.Call, last: str) -> bool:
    """Return True for an assertion of unittest that holds whatever the code does."""
    values = call.args
    if last == "assertTrue":
        return bool(values) and is_always_true(values[0])
    if last == "assertFalse":
        return bool(values) and is_never_true(values[0])
    if last in {"assertEqual", "assertEquals", "assertIs", "assertGreaterEqual"} and values[1:]:
        is_same = is_pure(values[0]) and text_of(values[0]) == text_of(values[1])
        return is_same or all(map(is_constant, values[:2]))
    return last in {"assertIsNone", "assertIsNotNone"} and all(map(is_constant, values[:1]))


def _own_nodes(function: Function, *, inner: bool = True) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of functions inside it unless `inner`."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if inner or not isinstance(node, (*_SCOPES,)):
            waiting.extend(ast.iter_child_nodes(node))


def _strength(test: ast.expr) -> int:
    if isinstance(test, ast.BoolOp):
        values = [_strength(one) for one in test.values]
        return min(values) if isinstance(test.op, ast.Or) else max(values)
    if any(last_name(call) in _APPROXIMATE for call in _calls([test])):
        return PARTIAL
    if isinstance(test, ast.Compare):
        first = test.ops[0]
        if isinstance(first, ast.Eq | ast.Is):
            return EXACT
        return LOOSE if isinstance(first, ast.NotEq | ast.IsNot) else PARTIAL
    return LOOSE


def _strength_of_raises(call: ast.Call) -> int:
    if any(keyword.arg == "match" for keyword in call.keywords):
        return EXACT
    is_any = bool(call.args) and last_name(call.args[0]) in {
        "Exception",
        "BaseException",
        "Warning",
    }
    return LOOSE if is_any else PARTIAL
