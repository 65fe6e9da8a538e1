"""Commands that get the files which the agent changed: `{files}` in `run`, and `fix`.

`fix` runs first, once, and only on those files. The check's own output and exit code are the
answer, like those of any command.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from shlex import quote
from time import monotonic
from typing import TYPE_CHECKING, Any

from notyet.core.text import listed, visible
from notyet.gates.changed_files import changed_files, contents_of
from notyet.gates.globs import matches_any
from notyet.gates.kinds import FILES
from notyet.gates.question import Answer
from notyet.gates.session import SESSION, root_of
from notyet.gates.working_tree import Unclear, WorkingTree, split_by_length
from notyet.git.run import Unknown
from notyet.hosts.hook_answers import json_object
from notyet.hosts.notyet.hooks import write_event

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.gates.question import Question

_MOST_NAMED = 10
_SHARE = 0.9  # of the gate's seconds: then it is the fixer that hangs
_MOST_READ = 8 * 1024 * 1024  # bytes that a check prints
_BROKEN = 126  # exit code of a command that could not be run


def check(question: Question) -> int | Answer:
    """Run `fix`, then the check; return the exit code of the check, or that `fix` hangs."""
    ends = monotonic() + question.seconds * _SHARE
    try:
        files, since = _changed(question)
    except (Unknown, Unclear) as why:
        sys.stderr.write(f"cannot find out which files changed: {why}\n")
        return _BROKEN
    if since != SESSION and not commands_for(question.command, files):
        # The agent may have committed its changes.
        nothing = f"nothing ran: no file differs since {since}"
        return Answer(note=nothing, tell=f"{question.gate}: {nothing}")
    fix = question.options.get("fix", "")
    try:
        changed = _fix(question, fix, files, ends) if fix and files else []
    except subprocess.TimeoutExpired:
        seconds = f"{question.seconds * _SHARE:.0f} s"
        return Answer(problem=f"`{visible(fix)}` did not finish in {seconds}, so nothing checked")
    if not changed:
        return _run(question, files)
    said = f"`{visible(fix)}` changed {listed([visible(name) for name in changed], _MOST_NAMED)}"
    with tempfile.TemporaryFile() as printed:
        code = _run(question, files, to=printed)
        printed.seek(0)
        output = printed.read(_MOST_READ)
    answer = _with_fix(question, json_object(output) or {}, code, said)
    if answer:
        sys.__stdout__.write(json.dumps(answer))  # type: ignore[union-attr]  # it is open
        return code
    sys.stderr.write(f"{output.decode('utf-8', 'replace')}\n{said}; the check ran after that.\n")
    return code


def _with_fix(
    question: Question, reply: dict[str, Any], code: int, said: str
) -> dict[str, Any] | None:
    """Return the answer of a check, and what the fixer changed; None if its exit code decides."""
    is_decided = reply.get("decision") is not None or reply.get("continue") is False
    if not is_decided and code not in _passes(question):
        return None
    answer = reply if is_decided else {"decision": "allow"}
    told = filter(None, (str(answer.get("systemMessage") or ""), f"{question.gate}: {said}"))
    because = filter(None, (str(answer.get("reason") or ""), said))
    return answer | {"reason": "\n".join(because), "systemMessage": " | ".join(told)}


def _passes(question: Question) -> Sequence[int]:
    return question.options.get("pass_codes") or (0,)


def files_of(question: Question) -> list[str]:
    """Return the files that the agent changed, below the gate's folder and relative to it.

    Raises Unknown, and Unclear.
    """
    return _changed(question)[0]


def _changed(question: Question) -> tuple[list[str], str]:
    """Return the files that the agent changed, and since when. Raises Unknown, and Unclear."""
    here = os.path.realpath(question.command.get("dir") or os.getcwd())
    tree = WorkingTree(root_of(question), question.seconds)
    changed = changed_files(question, tree)
    paths = [os.path.join(tree.root, name) for name in changed.existing()]
    below = here.rstrip("/") + "/"
    names = [path.removeprefix(below) for path in paths if path.startswith(below)]
    patterns = question.options.get("paths") or []
    if patterns:
        names = [name for name in names if matches_any(patterns, name)]
    return names, changed.since


def commands_for(command: Mapping[str, Any], files: Sequence[str]) -> list[list[str]]:
    """Return the command lines of a gate, with the files in place; several if they are too many.

    Without files, a command that asks for them has none to run.
    """
    script, argv = command.get("script", ""), list(command.get("argv", ()))
    shell = command.get("shell") or "/bin/sh"
    if FILES not in script and not any(FILES in word for word in argv):
        return [[shell, "-c", script] if script else argv]
    if script:
        return [
            [shell, "-c", script.replace(FILES, " ".join(map(quote, part)))]
            for part in split_by_length(files)
        ]
    return [
        [word for one in argv for word in (part if one == FILES else [one])]
        for part in split_by_length(files)
    ]


def _run(question: Question, files: Sequence[str], to: Any = None) -> int:
    """Run the check on each part of the files; return the first exit code that does not pass."""
    passes = _passes(question)
    codes = [_call(question, argv, to) for argv in commands_for(question.command, files)]
    return next((code for code in codes if code not in passes), passes[0])


def _fix(question: Question, fix: str, files: Sequence[str], ends: float) -> list[str]:
    """Run the fixer; return the files that it changed. That it fails is left to the check.

    Raises TimeoutExpired.
    """
    before = contents_of(os.getcwd(), files)
    for argv in commands_for({"script": fix}, files):
        _call(question, argv, sys.stderr, ends)
    after = contents_of(os.getcwd(), files)
    return [name for name in files if before[name] != after[name]]


def _call(question: Question, argv: Sequence[str], to: Any, ends: float | None = None) -> int:
    """Run a command with the event on its stdin (E1); return its exit code as a shell says it.

    Raises TimeoutExpired; what the command leaves running is ended with this process.
    """
    payload, _ = write_event(question.event, question.folder)
    sys.stderr.flush()
    try:
        done = subprocess.run(  # noqa: S603  # the trusted command of the gate
            argv,
            input=json.dumps(payload).encode(),
            stdout=to,
            check=False,
            timeout=None if ends is None else max(0.0, ends - monotonic()),
        )
    except OSError as error:
        sys.stderr.write(f"{visible(argv[0])}: {error.strerror}\n")
        return _BROKEN
    return done.returncode if done.returncode >= 0 else 128 - done.returncode
