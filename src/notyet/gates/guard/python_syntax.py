"""Questions about Python syntax trees that more than one rule asks."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CATCH_ALL = frozenset({"AssertionError", "Exception", "BaseException"})
_EXITS = frozenset({"os._exit", "pytest.exit"})
_EXITS_OF_MODULES = _EXITS | {"sys.exit", "exit", "quit"}  # in a test, these only fail it
_RUNTIME = (ast.Name, ast.Call, ast.Await, ast.NamedExpr)
_PURE = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.expr_context)
_OLD_PYTHON = (3, 0)


def dotted(node: ast.AST | None) -> str:
    """Return a name such as `pytest.mark.skip`; a call in between adds nothing to it."""
    parts: list[str] = []
    while True:
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            break
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts))


def last_name(node: ast.expr | None) -> str:
    """Return the last part of a name or of what a call calls."""
    return dotted(node).rpartition(".")[2] if node else ""


def text_of(node: ast.AST) -> str:
    """Return the source of a node in one spelling, whatever its formatting."""
    return ast.unparse(node)


def is_docstring(node: ast.stmt) -> bool:
    """Return True for a statement that is only a constant, such as a docstring or `...`."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def without_docstring(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    """Return the statements of a function after its docstring."""
    return body[1:] if body and is_docstring(body[0]) and len(body) > 1 else body


def is_always_true(test: ast.expr) -> bool:
    """Return True if a condition holds whatever the code does: `True`, `x or True`, `1 == 1`."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.Tuple | ast.List | ast.Set):
        return bool(test.elts)  # `assert (x, "message")`
    if isinstance(test, ast.Lambda | ast.GeneratorExp):
        return True  # without a call, neither is evaluated
    if isinstance(test, ast.JoinedStr | ast.Dict):
        return bool(test.values)
    if isinstance(test, ast.BoolOp):
        check = any if isinstance(test.op, ast.Or) else all
        return check(map(is_always_true, test.values))
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return is_never_true(test.operand)
    if isinstance(test, ast.Call):
        is_object = dotted(test.func) == "isinstance" and len(test.args) == 2  # noqa: PLR2004
        return is_object and last_name(test.args[1]) == "object"
    return isinstance(test, ast.Compare) and _is_certain(test)


def _is_certain(test: ast.Compare) -> bool:
    """Return True for a comparison without a value of the code, or of a value with itself."""
    if not _has(test, _RUNTIME):
        return True  # one that never holds would have failed
    first, operator, last = test.left, test.ops[0], test.comparators[0]
    if isinstance(operator, ast.GtE) and text_of(last) == "0":
        return isinstance(first, ast.Call) and dotted(first.func) == "len"
    is_same = isinstance(operator, ast.Eq | ast.Is | ast.GtE | ast.LtE) and len(test.ops) == 1
    return is_same and is_pure(first) and text_of(first) == text_of(last)


def is_pure(node: ast.expr) -> bool:
    """Return True for a name, an attribute or an item: the same each time it is read."""
    return all(isinstance(one, _PURE) for one in ast.walk(node))


def is_constant(node: ast.expr) -> bool:
    """Return True for an expression without a name or a call."""
    return not _has(node, _RUNTIME)


def _has(node: ast.AST, kinds: tuple[type[ast.AST], ...]) -> bool:
    return any(isinstance(one, kinds) for one in ast.walk(node))


def is_never_true(test: ast.expr) -> bool:
    """Return True for a condition that never holds where tests run: `False`, `TYPE_CHECKING` …"""
    if isinstance(test, ast.Constant):
        return not test.value
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return is_always_true(test.operand)
    if isinstance(test, ast.BoolOp):
        check = any if isinstance(test.op, ast.And) else all
        return check(map(is_never_true, test.values))
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        first, operator, last = text_of(test.left), test.ops[0], test.comparators[0]
        if first == "__name__" and isinstance(operator, ast.Eq):
            return text_of(last) == "'__main__'"
        return first.startswith("sys.version_info") and _is_too_old(operator, last)
    return last_name(test) == "TYPE_CHECKING"


def _is_too_old(operator: ast.cmpop, last: ast.expr) -> bool:
    """Return True for a comparison that only holds in Python 2."""
    try:
        value = ast.literal_eval(last)
        version = tuple(value) if isinstance(value, tuple) else (value,)
        is_old = version[:1] < _OLD_PYTHON[:1]
        return (isinstance(operator, ast.Lt) and version <= _OLD_PYTHON) or (
            isinstance(operator, ast.LtE | ast.Eq) and is_old
        )
    except (ValueError, TypeError):
        return False


def runs_for_nothing(values: ast.expr) -> bool:
    """Return True for what a `for` never enters: an empty literal, `range(0)`."""
    if isinstance(values, ast.Call):
        return text_of(values) in {"range(0)", "list()", "tuple()", "set()", "dict()"}
    if isinstance(values, ast.List | ast.Tuple | ast.Set):
        return not values.elts
    return isinstance(values, ast.Dict) and not values.values


def ends_runner(call: ast.AST, names: Mapping[str, str], *, in_test: bool = False) -> bool:
    """Return True for a call that ends the test runner itself."""
    exits = _EXITS if in_test else _EXITS_OF_MODULES
    return isinstance(call, ast.Call) and named(call.func, names) in exits


def names_of_runners(tree: ast.Module) -> dict[str, str]:
    """Return the names that a module gives to what it imports from pytest and unittest."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            pairs = [(one.asname, one.name) for one in node.names if one.asname]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            pairs = [(one.asname or one.name, f"{node.module}.{one.name}") for one in node.names]
        else:
            continue
        names |= {
            name or "": of.replace("unittest.case.", "unittest.")
            for name, of in pairs
            if of.split(".")[0] in {"pytest", "unittest", "os", "sys"}
        }
    return names


def named(node: ast.AST | None, names: Mapping[str, str]) -> str:
    """Return the dotted name of a node, in the words of pytest and unittest themselves."""
    first, dot, rest = dotted(node).partition(".")
    return names.get(first, first) + dot + rest


def swallows_failures(handler: ast.ExceptHandler) -> bool:
    """Return True if an `except` catches failed assertions and does nothing about them."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {dotted(kind).rpartition(".")[2] for kind in kinds if kind is not None}
    if handler.type is not None and names.isdisjoint(CATCH_ALL):
        return False
    return all(map(_does_nothing, handler.body))


def _does_nothing(node: ast.stmt) -> bool:
    if isinstance(node, ast.Pass | ast.Continue | ast.Break) or is_docstring(node):
        return True
    if isinstance(node, ast.Return):
        return node.value is None or isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        name = dotted(node.value.func)
        if name.rpartition(".")[2] in {"skip", "xfail", "skipTest"}:
            return True
        return name == "print" or name.split(".")[0] in {"log", "logger", "logging", "warnings"}
    return False
