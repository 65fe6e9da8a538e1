"""What a gate asks, as a digest: a pass is remembered for this question and no other (N1)."""

from __future__ import annotations

from _imp import source_hash  # one that is there already: to load another costs 2 % of a stop

from notyet.core.gate import Command
from notyet.core.record import variant
from notyet.light import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.core.gate import Gate
    from notyet.core.verdict import Report

# To be raised when commands are run in another way, so that an old pass says nothing of a new run.
_FORM = 1
_WORDS_ONLY = frozenset({"hint"})  # what an agent is told, and no part of the question


def definition_of(gate: Gate) -> str:
    """Return a digest of what a gate asks; empty where that cannot be told.

    It is equal for equal questions, in every process. Who is asked when, and what a failure means,
    is no part of the question. What a function is made of nobody knows: it has none.
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
    except ValueError:  # an option that is no plain value: made in code, and it can mean anything
        return ""
    content = text.encode("utf-8", "surrogatepass")  # of files that somebody trusted
    return (source_hash(1, content) + source_hash(2, content)).hex()


def defined(reports: Sequence[Report], gates: Sequence[Gate]) -> tuple[Report, ...]:
    """Return the reports of these gates with what each of them was asked, and when it is."""
    definitions = map(definition_of, gates)
    return tuple(
        variant(report, {"definition": definition, "when": gate.when}) if definition else report
        for report, definition, gate in zip(reports, definitions, gates, strict=True)
    )


def digest_of(text: str) -> str:
    """Return a short text that differs where this text does, whoever wrote it."""
    try:
        from _blake2 import blake2b  # not hashlib: it loads OpenSSL
    except ImportError:
        from hashlib import blake2b
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _listed(value: object) -> object:
    """Return a value with its tuples, and what is in them, as lists."""
    return [*map(_listed, value)] if isinstance(value, tuple | list) else value
