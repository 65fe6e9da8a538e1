"""The gate `guard = "tests"`: nothing that checks the work is weakened in silence.

The files are compared with those at the start of the session. A weakening that blocks must be
restored, or declared: the agent's final message names the file or the test. The user is told of
all weakenings, declared or not.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from posixpath import join
from typing import TYPE_CHECKING, Any

from notyet.core.text import clean
from notyet.gates.guard.changed_texts import texts_of
from notyet.gates.guard.declared import applied, declared, described, in_one_line
from notyet.gates.guard.files import is_read
from notyet.gates.guard.gate_scripts import gate_scripts
from notyet.gates.guard.weakenings import weakenings
from notyet.gates.question import Answer
from notyet.gates.session import changes_since_start
from notyet.git.run import Unknown
from notyet.hosts.transcript import last_message_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from notyet.gates.guard.rules import Weakening
    from notyet.gates.question import Question
    from notyet.gates.session import Changes

_MOST_LOGGED = 200  # findings
_MOST_SOUGHT = 50  # lost tests, and files with tests of these names
_MOST_REMEMBERED = 1_000_000  # characters


def check(question: Question) -> Answer:
    """Send the agent back for weakenings that block and that it does not declare."""
    try:
        with changes_since_start(question, or_commit=True) as changes:
            findings = found_in(changes, question.options, question.folder, question.commands)
    except Unknown as unknown:
        return Answer(problem=f"the guard cannot compare the files: {unknown.reason}")
    is_strict = bool(question.options.get("strict"))
    message = "" if is_strict else clean(last_message_of(question.event) or "")
    known = frozenset() if is_strict else _declared_before(changes)
    answer, said = answer_for(
        findings, message, is_strict=is_strict, since=changes.since, known=known
    )
    _remember(changes, said)
    if changes.is_from_start:
        return answer
    # What the agent has committed is not seen.
    only = f"{question.gate}: compared only with {changes.since}"
    return replace(answer, tell="; ".join(filter(None, (only, answer.tell))))


def found_in(
    changes: Changes,
    options: Mapping[str, Any],
    folder: str = "",
    commands: Iterable[Mapping[str, Any]] = (),
) -> list[Weakening]:
    """Return what was weakened, after the options of the gate's table. Raises Unknown.

    The globs of `allow` are relative to `folder`, which is the folder of the file that names the
    gate; `commands` are those of all gates.
    """
    scripts = gate_scripts(commands, changes.root, changes.start.text)
    renames = dict(changes.renames)
    known = {*changes.old, *renames.values()}
    old = [path for path in changes.old if is_read(path) or path in scripts]
    new = [path for path in changes.new if is_read(path) or path in scripts]
    new.sort(key=lambda path: path not in known)  # there are limits: what was there comes first
    for before, now in renames.items():  # either name may be the one that rules know
        if is_read(before) or before in scripts or is_read(now):
            old.append(before)
            new.append(now)
    texts = texts_of(changes.start, old), texts_of(changes.now, new)
    findings = weakenings(*texts, renames=renames, gate_scripts=scripts)
    copies = _unchanged(changes, findings)
    if copies:
        findings = weakenings(*texts, renames=renames, gate_scripts=scripts, unchanged=copies)
    allow = [_from_root(glob, folder, changes.root) for glob in options.get("allow") or ()]
    return applied(findings, options.get("block"), options.get("tell"), allow)


def _unchanged(changes: Changes, findings: Sequence[Weakening]) -> dict[str, str]:
    """Return the Python files that did not change and have tests of the same names as lost ones."""
    names = [
        name
        for one in findings
        if one.blocks and one.rule in {"test-removed", "test-file-deleted"}
        for name in one.names
        if one.path.endswith(".py")
    ]
    if not names:
        return {}
    words = [word for name in names[:_MOST_SOUGHT] for word in ("-e", f"def {name}(")]
    ask = ("grep", "-l", "-z", "-F", *words, changes.now.tree, "--", "*.py")
    try:
        found = os.fsdecode(changes.now.git(*ask)).split("\0")
    except Unknown:  # git found none
        return {}
    paths = [path.partition(":")[2] for path in found[:_MOST_SOUGHT]]
    return texts_of(changes.now, [path for path in paths if path not in changes.new])


def answer_for(
    findings: Sequence[Weakening],
    message: str,
    *,
    is_strict: bool,
    since: str,
    known: frozenset[str] = frozenset(),
) -> tuple[Answer, list[Weakening]]:
    """Return what the gate says of findings, and those that the agent's final message declares.

    `known` are the keys of findings that the agent declared, and its user was told, at an earlier
    stop of the session.
    """
    blocking = [one for one in findings if one.blocks and one.key not in known]
    said = [one for one in blocking if declared(one, message, count=len(blocking))]
    silent = [one for one in blocking if one not in said]
    others = [one for one in findings if not one.blocks]
    lines = (
        in_one_line(silent),
        in_one_line(said, declared=True),
        in_one_line(others),
    )
    tell = "; ".join(line for line in lines if line)
    fine = {one.key for one in said} | known
    output = "\n".join(_logged(one, one.key in fine) for one in findings[:_MOST_LOGGED])
    if silent:
        reason = described(silent, strict=is_strict, since=since)
        return Answer(reason=reason, tell=tell, output=output), said
    count = len(findings) - len(others)
    words = f"{count} declared, {len(others)} told" if findings else "nothing is weaker"
    return Answer(note=f"since {since}: {words}", tell=tell, output=output), said


def _declared_before(changes: Changes) -> frozenset[str]:
    """Return the keys of what the agent declared earlier in its session."""
    try:
        with open(_record(changes), encoding="ascii") as file:
            return frozenset(file.read(_MOST_REMEMBERED).split())
    except (OSError, ValueError):
        return frozenset()


def _remember(changes: Changes, said: Sequence[Weakening]) -> None:
    """Note what the agent declared; without the note, it has to say it again."""
    if said and changes.is_from_start:
        lines = "".join(f"{one.key}\n" for one in said)
        with suppress(OSError), open(_record(changes), "a", encoding="ascii") as file:
            file.write(lines)


def _record(changes: Changes) -> str:
    """Return the file of what was declared since the start; it goes with the snapshot."""
    return os.path.join(os.path.dirname(changes.start.objects), "declared")


def _from_root(glob: str, folder: str, root: str) -> str:
    """Return a glob relative to the root of the repository."""
    inner = os.path.relpath(folder, root) if folder else "."
    return glob if inner == "." or inner.startswith("..") else join(inner, glob)


def _logged(one: Weakening, is_declared: bool) -> str:  # noqa: FBT001
    effect = ("declared" if is_declared else "blocks") if one.blocks else "told"
    before = f" (before: {one.before})" if one.before else ""
    return f"{one.path}:{one.line}: {one.what}{before} [{one.rule}, {effect}]"
