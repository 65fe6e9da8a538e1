"""Questions about Python syntax trees that more than one rule asks."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_CATCH_ALL = frozenset({"AssertionError", "Exception", "BaseException"})


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
        return bool(test.value) or test.value == "True"
    if isinstance(test, ast.Tuple):
        return bool(test.elts)  # `assert (x, "message")`
    if isinstance(test, ast.BoolOp):
        check = any if isinstance(test.op, ast.Or) else all
        return check(map(is_always_true, test.values))
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return isinstance(test.operand, ast.Constant) and not test.operand.value
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        if isinstance(test.left, ast.Constant) and isinstance(test.comparators[0], ast.Constant):
            is_same = test.left.value == test.comparators[0].value
            return is_same and isinstance(test.ops[0], ast.Eq | ast.Is)
        is_length = isinstance(test.left, ast.Call) and dotted(test.left.func) == "len"
        return (
            is_length and isinstance(test.ops[0], ast.GtE) and text_of(test.comparators[0]) == "0"
        )
    return False


def swallows_failures(handler: ast.ExceptHandler) -> bool:
    """Return True if an `except` catches failed assertions and does nothing about them."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {dotted(kind).rpartition(".")[2] for kind in kinds if kind is not None}
    if handler.type is not None and names.isdisjoint(_CATCH_ALL):
        return False
    return all(map(_does_nothing, handler.body))


def _does_nothing(node: ast.stmt) -> bool:
    if isinstance(node, ast.Pass | ast.Continue | ast.Break) or is_docstring(node):
        return True
    if isinstance(node, ast.Return):
        return node.value is None or isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        name = dotted(node.value.func)
        return name == "print" or name.split(".")[0] in {"log", "logger", "logging", "warnings"}
    return False
