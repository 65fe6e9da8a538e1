"""A digest of what a gate runs: a pass is remembered for this very command (N1)."""

from __future__ import annotations

from _imp import source_hash  # builtin: to load another hash costs 2 % of a stop

from notyet.core.gate import Command
from notyet.core.record import variant
from notyet.light import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.core.gate import Gate
    from notyet.core.verdict import Report

# Raise it when commands run in another way: then old passes do not count.
_FORM = 1
_WORDS_ONLY = frozenset({"hint"})  # only told to the agent


def definition_of(gate: Gate) -> str:
    """Return a digest of what a gate runs, equal in every process; empty for a function.

    When a gate runs and what a failure means is no part of it.
    """
    check = gate.check
    if not isinstance(check, Command):
        return ""
    folder = gate.source.file.rpartition("/")[0] if gate.source is not None else ""
    options = sorted((k, v) for k, v in check.options.items() if k not in _WORDS_ONLY)
    asked = (
        _FORM,
        check.speaks,
        check.script,
        check.argv,
        check.shell,
        check.dir,
        check.workspace,
        check.env,
        options,
        folder,
        gate.paths,
    )
    try:
        text = dumps(_listed(asked))
    except ValueError:  # an option made in code that is no plain value
        return ""
    content = text.encode("utf-8", "surrogatepass")
    return (source_hash(1, content) + source_hash(2, content)).hex()


def defined(reports: Sequence[Report], gates: Sequence[Gate]) -> tuple[Report, ...]:
    """Return the reports of these gates with the digest of each, and its `when`."""
    definitions = map(definition_of, gates)
    return tuple(
        variant(report, {"definition": definition, "when": gate.when}) if definition else report
        for report, definition, gate in zip(reports, definitions, gates, strict=True)
    )


def digest_of(text: str) -> str:
    """Return a short text that differs where this text does, even if it was made to collide."""
    try:
        from _blake2 import blake2b  # not hashlib: it loads OpenSSL
    except ImportError:
        from hashlib import blake2b
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _listed(value: object) -> object:
    """Return a value with its tuples, and what is in them, as lists."""
    return [*map(_listed, value)] if isinstance(value, tuple | list) else value
