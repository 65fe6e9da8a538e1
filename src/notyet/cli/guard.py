"""`notyet guard`: what a range of changes weakens, for reviewers and CI."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notyet.cli.person import refuse
from notyet.cli.streams import json_line
from notyet.cli.terminal import Style, counted
from notyet.config.compile import compile_text
from notyet.config.files import toml_files
from notyet.config.find import KIND_NOTYET, real_folder
from notyet.config.readers import read_file
from notyet.core.gate import Command
from notyet.core.text import first_line, visible
from notyet.engine.gate_runs import runs_of
from notyet.gates.guard.gate import found_in
from notyet.gates.session import NOT_GIT, as_it_is, commit, compared
from notyet.git.repository import repository_of
from notyet.git.run import Unknown

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

    from notyet.gates.guard.rules import Weakening
    from notyet.git.snapshot import Snapshot

SUMMARY = "show what a range of changes weakens: tests, limits, scripts, settings of checkers"
EXAMPLES = (
    ("notyet guard", "this branch and the files here, against the branch that it left"),
    ("notyet guard HEAD", "only what is not committed"),
    ("notyet guard origin/main --json", "since this branch left another one, for CI"),
    ("notyet guard v1.2..v1.3", "between two commits"),
)
_RANGE = ".."
_DEFAULTS = ("origin/HEAD", "origin/main", "origin/master")
_NOT_CHECKED = 2
_SHORT = 10  # characters of a commit's id
_WIDEST = 48  # columns of a file and a line; longer ones are not aligned


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What was compared, and what the guard says of it."""

    base: str  # a commit
    since: str  # the base as people name it
    until: str  # the end of the range; empty for the files as they are
    findings: list[Weakening]
    file: str  # whose options count; empty without one


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "base",
        nargs="?",
        metavar="BASE",
        help="a commit or branch, to compare the files with where this branch left it, or a range "
        "A..B (default: the default branch of `origin`; in a repository without `origin`, HEAD)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Compare, and print the findings; exit 1 when one of them blocks."""
    try:
        result = compare(args.base, os.getcwd())
    except Unknown as unknown:
        if args.json:
            print(json_line({"ok": False, "problem": unknown.reason, "findings": []}))
        return refuse("guard", unknown.reason, _NOT_CHECKED)
    if args.json:
        print(json_line(_plain(result)))
    else:
        _show(result)
    return 1 if any(one.blocks for one in result.findings) else 0


def compare(base: str | None, cwd: str) -> Compared:
    """Return what is weaker than at a base. Raises Unknown."""
    root = repository_of(cwd)
    if not root:
        raise Unknown(NOT_GIT)
    if base is not None and not base.strip(". "):
        raise Unknown("the base is empty; name a commit, or none")
    options, file, commands = _configured(cwd)
    with as_it_is(root) as now:
        start, until, since = _ends(now, base)
        later = commit(now, until) if until else now
        changes = compared(commit(now, start), later, since)
        findings = found_in(changes, options, os.path.dirname(file), commands)
    return Compared(base=start, since=since, until=until, findings=findings, file=file)


def _ends(now: Snapshot, base: str | None) -> tuple[str, str, str]:
    """Return the commits to compare, and how people name the first. Raises Unknown."""
    if base is None:
        return _default(now)
    first, sign, last = base.partition(_RANGE)
    is_fork = last.startswith(".")  # A...B starts where the two parted
    end = _id(now, last.removeprefix(".") or "HEAD") if sign else ""
    start = _id(now, first or "HEAD")
    if sign and not is_fork:
        return start, end, first or "HEAD"
    # What came to the base since then is missing here, but nothing here removed it.
    fork = _line(now, "merge-base", start, end or "HEAD")
    if not fork and is_fork:
        raise Unknown(f"{base} has no common commit")
    moved = "" if sign or fork in {"", start} else "where this branch left "
    return fork or start, end, f"{moved}{first or 'HEAD'}"


def _default(now: Snapshot) -> tuple[str, str, str]:
    """Return where this branch left the default branch; HEAD if there is no `origin`.

    In a shallow clone of a CI, HEAD would compare the files with themselves. Raises Unknown.
    """
    if not now.head:
        raise Unknown("there is no commit yet to compare with")
    for name in _DEFAULTS:
        fork = _line(now, "merge-base", "HEAD", name)
        if fork:
            return fork, "", f"where this branch left {name}"
    if _line(now, "config", "--get", "remote.origin.url"):
        raise Unknown(
            "where this branch left the default branch of `origin` is not known here; fetch that "
            "branch with its history, or name a base, e.g. notyet guard HEAD~1"
        )
    return now.head, "", "HEAD"


def _id(now: Snapshot, name: str) -> str:
    found = _line(now, "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")
    if not found:
        raise Unknown(f"{first_line(visible(name))} is not a commit here")
    return found


def _line(now: Snapshot, *args: str) -> str:
    """Return what a git command prints; empty if it fails."""
    try:
        return now.git(*args).decode("utf-8", "replace").strip()
    except Unknown:
        return ""


def _configured(cwd: str) -> tuple[Mapping[str, Any], str, list[Mapping[str, Any]]]:
    """Return the options of the nearest guard, its file, and the commands of all gates here.

    Nothing of a file runs, so files that are not trusted count too.
    """
    commands: list[Mapping[str, Any]] = []
    guards: list[tuple[Mapping[str, Any], str, bool]] = []
    for file in toml_files(real_folder(cwd), os.environ, lambda _path: False):
        text, _ = read_file(file.path)
        if text is None:
            continue
        for gate in compile_text(text, file.path, KIND_NOTYET).gates:
            if not isinstance(gate.check, Command):
                continue
            commands.append(runs_of(gate))
            if gate.check.options.get("kind") == "guard":
                guards.append((gate.check.options, file.path, file.is_users))
    guards.sort(key=lambda one: one[2])  # a project's own come first
    options, path, _ = guards[0] if guards else ({}, "", False)
    return options, path, commands


def _show(result: Compared) -> None:
    paint = Style(sys.stdout).paint
    blocking = sum(one.blocks for one in result.findings)
    ends = f" and {result.until[:_SHORT]}" if result.until else ""
    since = f"{result.base[:_SHORT]} ({result.since})"
    where = f"between {since}{ends}" if ends else f"since {since}"
    if not result.findings:
        print(paint(f"nothing is weaker {where}", "green"))
        return
    places = [visible(f"{one.path}:{one.line}") for one in result.findings]
    wide = max(len(place) for place in (*places, "") if len(place) <= _WIDEST)
    for one, place in zip(result.findings, places, strict=True):
        effect = paint("block", "red") if one.blocks else paint("tell ", "yellow")
        print(f"{effect}  {place:<{wide}}  {one.what}")
        if one.before:
            print(f"{'':<{wide + 7}}  before: {one.before}")
    count = counted(len(result.findings), "weakening")
    print(paint(f"{count} {where}, {blocking} would block", "red" if blocking else "yellow"))


def _plain(result: Compared) -> dict[str, Any]:
    return {
        "ok": not any(one.blocks for one in result.findings),
        "base": result.base,
        "until": result.until or None,
        "since": result.since,
        "config": result.file or None,
        "findings": [
            {
                "rule": one.rule,
                "group": one.group,
                "path": one.path,
                "line": one.line,
                "what": one.what,
                "before": one.before,
                "blocks": one.blocks,
            }
            for one in result.findings
        ],
    }
