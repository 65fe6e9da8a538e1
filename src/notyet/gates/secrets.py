"""`uses = "no:secrets"`: scan what the agent changed with gitleaks or detect-secrets.

The secret itself is never printed: a transcript keeps what an agent reads.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from notyet.core.text import clean, first_line, shortened, visible
from notyet.gates.changed_files import changed_files
from notyet.gates.question import Answer
from notyet.gates.working_tree import (
    Finished,
    Unclear,
    lines_of_names,
    run_program,
    split_by_length,
    tree_of,
)
from notyet.git.run import own_environ

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from notyet.gates.changed_files import ChangedFiles
    from notyet.gates.question import Question

_BASELINE = ".secrets.baseline"  # of detect-secrets
_SETTINGS = (".gitleaks.toml", ".gitleaksignore")
_LARGEST = 10 * 1024 * 1024  # bytes of a file that is scanned
_MOST_BYTES = 256 * 1024 * 1024  # of all files that gitleaks scans
_LONGEST_RULE = 100  # bytes
_FOUND = 99  # the exit code that we give gitleaks; it exits 1 when it fails
_INSTALL = (
    "neither gitleaks nor detect-secrets is installed; install one of them: "
    "`brew install gitleaks`, or `pipx install detect-secrets`"
)


@dataclass(frozen=True, order=True)
class Secret:
    """Where a scanner found a secret, by which rule."""

    file: str
    line: int
    last: int
    rule: str


def check(question: Question) -> Answer:
    """Send the agent back for each secret in a line that it added."""
    tree = tree_of(question)
    program, scan = _scanner(tree.root)
    changes = changed_files(question, tree)
    files = [name for name in changes.regular() if name != _BASELINE]
    scanned = [name for name in files if os.path.getsize(os.path.join(tree.root, name)) <= _LARGEST]
    large = [name for name in files if name not in set(scanned)]
    tell = f"no:secrets did not scan {len(large)} files over 10 MB" if large else ""
    if not scanned:
        return Answer(note="no file was scanned" if large else "no file changed", tell=tell)
    found = sorted(set(_only_added(changes, scan(program, changes, scanned))))
    name = os.path.basename(program)
    if not found:
        return Answer(note=f"{name} scanned {len(scanned)} changed files", tell=tell)
    places = [f"{one.file}:{one.line} ({one.rule})" for one in found]
    count = f"{len(found)} secret{'s' * (len(found) != 1)}"
    reason = (
        f"{name} found {count} in what you changed:\n{lines_of_names(places)}\n"
        "Take each out of the file and read it from the environment or a secret store instead. Do "
        "not print it. Tell the user if it was committed: then it has to be revoked."
    )
    return Answer(reason=reason, tell=tell)


def _scanner(root: str) -> tuple[str, Callable[[str, ChangedFiles, Sequence[str]], list[Secret]]]:
    """Return the program to use, and how: the one that the project has settings for comes first."""
    known = [("gitleaks", _gitleaks), ("detect-secrets-hook", _detect_secrets)]
    if os.path.isfile(os.path.join(root, _BASELINE)):
        known.reverse()
    for name, scan in known:
        program = shutil.which(name)
        if program:
            return program, scan
    raise Unclear(_INSTALL)


def _only_added(changes: ChangedFiles, found: Iterable[Secret]) -> Iterable[Secret]:
    """Yield those in added lines: one that was there before is not the agent's."""
    added: dict[str, list[range]] = {}
    for one in found:
        if one.file not in added:
            added[one.file] = changes.added_lines(one.file)
        if any(one.line < lines.stop and one.last >= lines.start for lines in added[one.file]):
            yield one


def _gitleaks(program: str, changes: ChangedFiles, files: Sequence[str]) -> list[Secret]:
    """Scan copies in a folder of ours: gitleaks takes one folder, not a list of files."""
    root = changes.tree.root
    with tempfile.TemporaryDirectory(prefix="notyet-secrets-") as place:
        copies = os.path.join(place, "files")
        os.mkdir(copies)
        left = _MOST_BYTES
        for name in files:
            left -= os.path.getsize(os.path.join(root, name))
            if left < 0:
                raise Unclear("the changed files are too large to scan for secrets")
            _copy(root, name, copies)
        for name in _SETTINGS:
            if os.path.isfile(os.path.join(root, name)):
                _copy(root, name, copies)
        report = os.path.join(place, "report.json")
        options = ["--no-banner", "--redact", "--exit-code", str(_FOUND)]
        options += ["--report-format", "json", "--report-path", report]
        done = _run(program, ["dir", ".", *options], copies, changes)
        if done.code not in {0, _FOUND} and b"unknown command" in done.err:  # before 8.19
            done = _run(program, ["detect", "--no-git", "--source", ".", *options], copies, changes)
        if done.code not in {0, _FOUND}:
            raise _failed(program, done)
        if done.code == 0:
            return []
        try:
            with open(report, "rb") as file:
                said = json.load(file)
            found = [_from_gitleaks(one) for one in said]
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise Unclear("gitleaks found secrets, and its report cannot be read") from None
    return [one for one in found if one.file in set(files)]


def _copy(root: str, name: str, place: str) -> None:
    target = os.path.join(place, name)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        shutil.copyfile(os.path.join(root, name), target, follow_symlinks=False)
    except OSError as error:
        raise Unclear(f"{visible(name)} cannot be read: {error.strerror}") from None


def _from_gitleaks(one: dict[str, Any]) -> Secret:
    line = int(one["StartLine"])
    last = int(one.get("EndLine") or line)
    return Secret(os.path.normpath(one["File"]), line, last, _rule(one["RuleID"]))


def _detect_secrets(program: str, changes: ChangedFiles, files: Sequence[str]) -> list[Secret]:
    """Scan with the project's baseline, in a copy: the hook rewrites it when lines move.

    Verification is off: it would send what was found to the service that it belongs to.
    """
    root = changes.tree.root
    found: list[Secret] = []
    with tempfile.TemporaryDirectory(prefix="notyet-secrets-") as place:
        options = ["--json", "--no-verify"]
        if os.path.isfile(os.path.join(root, _BASELINE)):
            _copy(root, _BASELINE, place)
            options += ["--baseline", os.path.join(place, _BASELINE)]
        for part in split_by_length(files):
            done = _run(program, [*options, *part], root, changes)
            if done.code in {0, 3}:  # 3: nothing is new, and the baseline was updated
                continue
            try:
                results = json.loads(done.out)["results"]
                found += [_from_detect_secrets(x) for some in results.values() for x in some]
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                raise _failed(program, done) from None
    return found


def _from_detect_secrets(one: dict[str, Any]) -> Secret:
    line = int(one["line_number"])
    return Secret(os.path.normpath(one["filename"]), line, line, _rule(one["type"]))


def _rule(said: object) -> str:
    return shortened(visible(clean(str(said))), _LONGEST_RULE)


def _run(program: str, args: Sequence[str], folder: str, changes: ChangedFiles) -> Finished:
    environ = own_environ() | {"NO_COLOR": "1", "GIT_OPTIONAL_LOCKS": "0"}
    return run_program([program, *args], folder, environ, changes.tree.ends)


def _failed(program: str, done: Finished) -> Unclear:
    """Return what a scanner says about its failure: the last line, which has no secret."""
    lines = clean(done.err.decode("utf-8", "replace")).strip().splitlines()
    said = f": {first_line(lines[-1])}" if lines else ""
    return Unclear(f"{os.path.basename(program)} failed with exit code {done.code}{said}")
