"""The gate `guard = "tests"`: nothing that checks the work is weakened in silence.

The files are compared with those at the start of the session. A weakening that blocks must be
restored, or declared: the agent's final message names the file or the test. The user is told of
all weakenings, declared or not.
"""

from __future__ import annotations

import os
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


def check(question: Question) -> Answer:
    """Send the agent back for weakenings that block and that it does not declare."""
    try:
        with changes_since_start(question, or_commit=True) as changes:
            findings = found_in(changes, question.options, question.folder, question.commands)
    except Unknown as unknown:
        return Answer(problem=f"the guard cannot compare the files: {unknown.reason}")
    is_strict = bool(question.options.get("strict"))
    message = "" if is_strict else clean(last_message_of(question.event) or "")
    return answer_for(findings, message, is_strict=is_strict, since=changes.since)


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
    old = [path for path in changes.old if is_read(path) or path in scripts]
    new = [path for path in changes.new if is_read(path) or path in scripts]
    renames = dict(changes.renames)
    for before, now in renames.items():  # either name may be the one that rules know
        if is_read(before) or before in scripts or is_read(now):
            old.append(before)
            new.append(now)
    findings = weakenings(
        texts_of(changes.start, old),
        texts_of(changes.now, new),
        renames=renames,
        gate_scripts=scripts,
    )
    allow = [_from_root(glob, folder, changes.root) for glob in options.get("allow") or ()]
    return applied(findings, options.get("block"), options.get("tell"), allow)


def answer_for(
    findings: Sequence[Weakening], message: str, *, is_strict: bool, since: str
) -> Answer:
    """Return what the gate says of findings, given the agent's final message."""
    blocking = [one for one in findings if one.blocks]
    said = [one for one in blocking if declared(one, message, count=len(blocking))]
    silent = [one for one in blocking if one not in said]
    others = [one for one in findings if not one.blocks]
    lines = (
        in_one_line(silent),
        in_one_line(said, declared=True),
        in_one_line(others),
    )
    tell = "; ".join(line for line in lines if line)
    output = "\n".join(_logged(one) for one in findings[:_MOST_LOGGED])
    if silent:
        reason = described(silent, strict=is_strict, since=since)
        return Answer(reason=reason, tell=tell, output=output)
    words = f"{len(said)} declared, {len(others)} told" if findings else "nothing is weaker"
    return Answer(note=f"since {since}: {words}", tell=tell, output=output)


def _from_root(glob: str, folder: str, root: str) -> str:
    """Return a glob relative to the root of the repository."""
    inner = os.path.relpath(folder, root) if folder else "."
    return glob if inner == "." or inner.startswith("..") else join(inner, glob)


def _logged(one: Weakening) -> str:
    effect = "blocks" if one.blocks else "told"
    before = f" (before: {one.before})" if one.before else ""
    return f"{one.path}:{one.line}: {one.what}{before} [{one.rule}, {effect}]"
