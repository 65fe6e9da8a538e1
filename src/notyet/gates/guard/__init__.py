"""`guard = "tests"`: find changes that weaken what checks the work.

`weakenings` compares the old and new texts of changed files. `applied` takes the overrides of a
`notyet.toml`, `declared` reads the agent's final message, and `described` writes the reason that
sends the agent back.
"""

from __future__ import annotations

from notyet.gates.guard.declared import applied, declared, described, in_one_line
from notyet.gates.guard.rules import GROUPS, RULES, Rule, Weakening
from notyet.gates.guard.weakenings import weakenings

__all__ = [
    "GROUPS",
    "RULES",
    "Rule",
    "Weakening",
    "applied",
    "declared",
    "described",
    "in_one_line",
    "weakenings",
]
