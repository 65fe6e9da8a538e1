"""Checks that a test proves each rule of docs/reference/rules.md; `rules.py A1` lists its tests."""

from __future__ import annotations

import ast
import json
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "rules.md"
TESTS = ROOT / "tests"


def rules(page: str) -> list[str]:
    """Return the ids of the rules in the page's tables, in order."""
    rows = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")]
    return [cell for cell in rows if cell[:1].isupper() and cell[1:].isdigit()]


def cells(page: str) -> list[str]:
    """Return the ids of the cells of tables whose columns are dialects, like `F5-codex`."""
    found = []
    columns: list[str] = []
    for line in page.splitlines():
        parts = [part.strip() for part in line.split("|")[1:-1]]
        if parts[:2] == ["id", "case"]:
            columns = parts[2:]
        elif parts and parts[0][:1] == "F" and parts[0][1:].isdigit():
            found += [
                f"{parts[0]}-{column}"
                for column, cell in zip(columns, parts[2:], strict=True)
                if cell != "–"  # noqa: RUF001  # as the page writes "does not apply"
            ]
    return found


def vectors() -> dict[str, list[str]]:
    """Return the vectors that name each rule or cell, as `file::id`."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((TESTS / "vectors").rglob("*.json")):
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            continue  # broken on purpose
        for vector in data if isinstance(data, list) else ():
            if isinstance(vector, dict) and "id" in vector:
                cell = vector["id"].split(" ")[0]
                rule = cell.split("-")[0]
                if not (rule[:1].isupper() and rule[1:].isdigit()):
                    continue  # a vector that is named in words
                for name in {cell, rule}:
                    found[name].append(f"{path.relative_to(ROOT)}::vector_{vector['id']}")
    return found


def proofs() -> dict[str, list[str]]:
    """Return the tests that name each rule, as `file::test`."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        everywhere = _module_rules(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                here = {rule for mark in node.decorator_list for rule in _rules_of(mark)}
                for rule in here | everywhere:
                    found[rule].append(f"{path.relative_to(ROOT)}::{node.name}")
    return found


def _module_rules(tree: ast.Module) -> set[str]:
    return {
        rule
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
        for rule in _rules_of(node.value)
    }


def _rules_of(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.rule":
        return [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
    return []


def main(asked: list[str]) -> int:
    """Check the page, or list the tests of some rules."""
    page = PAGE.read_text(encoding="utf-8")
    ids, found = rules(page), proofs()
    for name, files in vectors().items():
        found[name] += files
    if asked:
        print("\n".join(f"{rule}  {test}" for rule in asked for test in sorted(found[rule])))
        return 0 if all(found[rule] for rule in asked) else 1
    complaints = [f"cell {cell} has no vector" for cell in cells(page) if not found[cell]]
    complaints += [f"rule {rule} has no test" for rule in ids if not found[rule]]
    strange = [r for r in found if r.split("-")[0] not in ids and found[r]]
    complaints += [f"{found[r][0]} names {r}, which is not on the page" for r in strange]
    complaints += [f"rule {rule} stands twice" for rule in set(ids) if ids.count(rule) > 1]
    print("\n".join(complaints) or f"{len(ids)} rules, each proven by a test")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
