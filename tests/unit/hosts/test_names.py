"""Names of hosts stand in `hosts/` alone: everything else takes them from the hosts' data."""

import ast
from pathlib import Path

import notyet
from notyet.hosts import TABLE
from notyet.hosts.others import OTHERS

SOURCE = Path(notyet.__file__).parent
NAMES = ({*TABLE} | {host.name for host in OTHERS} | {"openclaw"}) - {"notyet"}
# Files that still name hosts. This list only shrinks.
ALLOWED = {
    "core/gate.py",
    "core/matcher.py",
    "core/message.py",
    "install/__init__.py",
    "install/claude.py",
    "install/codex.py",
    "install/registered.py",
    "status/faults/entries.py",
    "status/faults/look.py",
    "status/probe.py",
    "testing/ledger_passes.py",
}


def named(path):
    """Return the hosts that a module names in texts of their own."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    return texts & NAMES


def test_no_module_outside_hosts_names_a_host():
    found = {
        str(path.relative_to(SOURCE)): sorted(names)
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] != "hosts" and (names := named(path))
    }
    assert found.keys() <= ALLOWED, found
