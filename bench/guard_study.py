"""How often `guard = "tests"` finds something in real changes: releases by name, git histories.

    python -m bench.guard_study --releases --history CLONE... --json study.json --markdown PAGE

Releases are fetched by package name with pip's and npm's own settings. A history is the git
directory of a clone; its newest non-merge commits are compared with their parents. The JSON has
every finding that blocks in a small change, and a sample with diffs to read by hand.
"""

from __future__ import annotations

import argparse
import difflib
import io
import json
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.page import replace_generated
from bench.progress import say
from notyet.gates.guard import RULES, Weakening, weakenings
from notyet.gates.guard.files import is_read

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL = 15  # changed files, as in the session of an agent
SHORT = 200  # changed lines in the files that the guard reads
LARGEST = 1_000_000
SAMPLE = 40
LONGEST_DIFF = 400  # lines
SEED = 20
GATE_SCRIPTS = frozenset({"Makefile", "package.json", "tox.ini", "noxfile.py", "justfile"})
PYPI = (
    *("attrs", "blinker", "cattrs", "click", "flit-core", "h11", "httpcore", "hyperlink"),
    *("itsdangerous", "jinja2", "markupsafe", "marshmallow", "more-itertools", "packaging"),
    *("platformdirs", "pluggy", "pyparsing", "python-dotenv", "sqlparse", "starlette"),
    *("structlog", "tomlkit", "typeguard", "werkzeug", "zipp"),
)
NPM = (
    *("@fastify/cors", "@fastify/multipart", "avvio", "deep-equal", "fast-json-stringify"),
    *("light-my-request", "pino-http", "qs", "resolve", "sonic-boom"),
)


@dataclass
class Diff:
    """One change of a real project, and what the guard says of it."""

    project: str
    before: str
    after: str
    kind: str  # "release" or "commit"
    files: int
    lines: int  # that only one side has
    findings: list[Weakening] = field(default_factory=list)
    seconds: float = 0.0
    texts: dict[str, str] = field(default_factory=dict)  # diffs of the files that block

    @property
    def is_small(self) -> bool:
        """Return True for as many files as an agent changes in a session."""
        return self.files <= SMALL

    @property
    def is_short(self) -> bool:
        """Return True for few changed lines."""
        return self.lines <= SHORT

    def blocking(self) -> list[Weakening]:
        """Return what blocks by default; edits of gate scripts are counted apart."""
        return [one for one in self.findings if one.blocks and one.group != "gate-script"]


def main(words: list[str]) -> int:
    """Compare, and write the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.guard_study", description=__doc__)
    parser.add_argument("--releases", action="store_true", help="successive releases, by name")
    parser.add_argument("--versions", type=int, default=12, help="of each package, the newest")
    parser.add_argument("--history", nargs="*", default=[], help="git directories of clones")
    parser.add_argument("--commits", type=int, default=300, help="of each history, the newest")
    parser.add_argument("--json", type=Path, help="every finding that blocks, and the sample")
    parser.add_argument("--markdown", type=Path, help="the page that gets the tables")
    args = parser.parse_args(words)
    diffs: list[Diff] = []
    for path in args.history:
        diffs += commits(Path(path), args.commits)
        say(f"{path}: {len(diffs)} changes in all")
    if args.releases:
        with tempfile.TemporaryDirectory() as folder:
            for name in PYPI:
                diffs += releases(name, sdists(name, args.versions))
                say(f"{name}: {len(diffs)} changes in all")
            for name in NPM:
                diffs += releases(name, packed(name, args.versions, folder))
                say(f"{name}: {len(diffs)} changes in all")
    text = markdown(diffs)
    print(text)
    if args.markdown:
        replace_generated(args.markdown, "bench.guard_study", text)
    if args.json:
        args.json.write_text(json.dumps(document(diffs), indent=1) + "\n")
    return 0


def compared(project: str, labels: tuple[str, str], kind: str, change: _Change) -> Diff:
    """Return one change with its findings and the time that took."""
    start = time.perf_counter()
    found = weakenings(change.old, change.new, renames=change.renames, gate_scripts=GATE_SCRIPTS)
    took = time.perf_counter() - start
    diff = Diff(project, *labels, kind, change.files, change.lines(), found, took)
    for one in diff.blocking():
        diff.texts[one.path] = change.diff(one.path)
    return diff


@dataclass
class _Change:
    old: dict[str, str] = field(default_factory=dict)
    new: dict[str, str] = field(default_factory=dict)
    renames: dict[str, str] = field(default_factory=dict)
    files: int = 0

    def lines(self) -> int:
        """Return how many lines only one side has; lines that moved do not count."""
        old = Counter(line for text in self.old.values() for line in text.split("\n"))
        new = Counter(line for text in self.new.values() for line in text.split("\n"))
        return (old - new).total() + (new - old).total()

    def diff(self, path: str) -> str:
        """Return a unified diff of one file, bounded."""
        before = next((old for old, new in self.renames.items() if new == path), path)
        old, new = self.old.get(before, "").split("\n"), self.new.get(path, "").split("\n")
        lines = difflib.unified_diff(old, new, lineterm="", n=2)
        return "\n".join(list(lines)[:LONGEST_DIFF])


# Histories.


def commits(git_dir: Path, most: int) -> Iterator[Diff]:
    """Compare the newest non-merge commits of a repository with their parents."""
    name = git_dir.parent.name if git_dir.name in {"repo", ".git"} else git_dir.name
    name = name.replace("+", "/")
    git = ["git", f"--git-dir={git_dir}"]
    log = [*git, "log", "--no-merges", "--format=%H", f"-n{most}", "HEAD"]
    hashes = subprocess.run(log, capture_output=True, text=True, check=True).stdout.split()
    reader = subprocess.Popen(
        [*git, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        for commit in hashes:
            tree = [*git, "diff-tree", "-r", "-M", "-z", "--no-commit-id", commit]
            raw = subprocess.run(tree, capture_output=True, check=True).stdout
            change = _change(raw.decode("utf-8", "replace"), reader)
            if change.files:
                yield compared(name, (f"{commit[:10]}^", commit[:10]), "commit", change)
    finally:
        assert reader.stdin
        reader.stdin.close()
        reader.wait()


def _change(raw: str, reader: subprocess.Popen[bytes]) -> _Change:
    change = _Change()
    parts = iter(raw.split("\0"))
    for head in parts:
        if not head.startswith(":"):
            continue
        _, _, was, now, status = head[1:].split(" ")
        path = next(parts)
        other = next(parts) if status[0] in "RC" else path
        change.files += 1
        if status[0] == "R":
            change.renames[path] = other
        if status[0] != "A" and status[0] != "C" and is_read(path):
            change.old[path] = _blob(reader, was)
        if status[0] != "D" and is_read(other):
            change.new[other] = _blob(reader, now)
    return change


def _blob(reader: subprocess.Popen[bytes], name: str) -> str:
    assert reader.stdin
    assert reader.stdout
    reader.stdin.write(f"{name}\n".encode())
    reader.stdin.flush()
    head = reader.stdout.readline().split()
    if len(head) < 3:  # a submodule, or not in the clone
        return ""
    content = reader.stdout.read(int(head[2]) + 1)[:-1]
    return content.decode("utf-8", "replace")


# Releases.


def releases(name: str, trees: Iterator[tuple[str, dict[str, str]]]) -> Iterator[Diff]:
    """Compare each release with the one before."""
    earlier: tuple[str, dict[str, str]] | None = None
    for version, tree in trees:
        if earlier:
            change = _Change()
            for path in {**earlier[1], **tree}:
                if earlier[1].get(path) != tree.get(path):
                    change.files += 1
                    if path in earlier[1]:
                        change.old[path] = earlier[1][path]
                    if path in tree:
                        change.new[path] = tree[path]
            # Some releases leave out the tests altogether; those compare packaging.
            if change.files and _has_tests(tree) == _has_tests(earlier[1]):
                yield compared(name, (earlier[0], version), "release", change)
        earlier = version, tree


def _has_tests(tree: dict[str, str]) -> bool:
    return any(re.search(r"(?:^|/)tests?/|(?:^|/)test[^/]*\.", path) for path in tree)


def sdists(name: str, most: int) -> Iterator[tuple[str, dict[str, str]]]:
    """Fetch the newest source releases of a Python package, from the index that pip uses."""
    # pip has no command that fetches an sdist without running its build.
    from pip._internal.commands import create_command

    command: Any = create_command("index")
    options, _ = command.parse_args(["versions", name, "-qq"])
    session = command._build_session(options)
    finder = command._build_package_finder(
        options=options, session=session, ignore_requires_python=True
    )
    found = {
        one.version: one.link
        for one in finder.find_all_candidates(name)
        if one.link.filename.endswith(".tar.gz") and not one.version.is_prerelease
    }
    for version in sorted(found)[-most:]:
        content = session.get(found[version].url_without_fragment).content
        yield str(version), _unpacked(content)


def packed(name: str, most: int, folder: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Fetch the newest releases of an npm package."""
    listed = subprocess.run(
        ["npm", "view", name, "versions", "--json"], capture_output=True, text=True, check=False
    )
    try:
        versions = [one for one in json.loads(listed.stdout) if "-" not in one]
    except ValueError:
        return
    for version in sorted(versions, key=lambda one: [int(part) for part in one.split(".")])[-most:]:
        pack = ["npm", "pack", f"{name}@{version}", "--silent", "--pack-destination", folder]
        done = subprocess.run(pack, capture_output=True, text=True, check=False)
        file = Path(folder) / done.stdout.strip().rpartition("\n")[2]
        if done.returncode == 0 and file.is_file():
            yield version, _unpacked(file.read_bytes())
            file.unlink()


def _unpacked(content: bytes) -> dict[str, str]:
    """Return the files that the guard reads, without the folder around them."""
    tree: dict[str, str] = {}
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            path = member.name.partition("/")[2]
            is_vendored = re.search(r"(?:^|/)(?:node_modules|_vendor|dist|docs)/|\.egg-info/", path)
            if member.isfile() and member.size < LARGEST and is_read(path) and not is_vendored:
                file = archive.extractfile(member)
                tree[path] = file.read().decode("utf-8", "replace") if file else ""
    return tree


# Results.


def markdown(diffs: list[Diff]) -> str:
    """Return the tables of the study."""
    small = [one for one in diffs if one.is_small]
    columns = {
        "all": diffs,
        f"≤ {SMALL} files": small,
        f"≤ {SHORT} lines": [one for one in diffs if one.is_short],
        f"commits, ≤ {SMALL} files": [one for one in small if one.kind == "commit"],
        f"releases, ≤ {SMALL} files": [one for one in small if one.kind == "release"],
    }
    rows = {
        "**blocked by default**": [one for one in diffs if one.blocking()],
        "edit of a gate script, counted apart": [one for one in diffs if _scripts(one)],
        "anything found": [one for one in diffs if one.findings],
    }
    lines = [
        f"| changes | {' | '.join(columns)} |",
        f"|---|{'---|' * len(columns)}",
        f"| compared | {' | '.join(str(len(chosen)) for chosen in columns.values())} |",
    ]
    for name, hit in rows.items():
        chosen = set(map(id, hit))
        cells = (
            _share([one for one in some if id(one) in chosen], some) for some in columns.values()
        )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    seconds = sorted(one.seconds for one in diffs) or [0.0]
    lines += [
        "",
        (
            f"Time for one change: median {seconds[len(seconds) // 2] * 1000:.0f} ms, "
            f"longest {seconds[-1]:.1f} s."
        ),
        "",
        f"| rule | default | all | ≤ {SMALL} files |",
        "|---|---|---|---|",
    ]
    for rule, about in RULES.items():
        counts = [
            sum(any(one.rule == rule for one in diff.findings) for diff in chosen)
            for chosen in (diffs, small)
        ]
        if counts[0]:
            default = "block" if about.blocks else "tell"
            lines.append(f"| `{rule}` | {default} | {counts[0]} | {counts[1]} |")
    lines += ["", "| project | kind | changes | small | small blocked |", "|---|---|---|---|---|"]
    for project, kind in sorted({(one.project, one.kind) for one in diffs}):
        own = [one for one in diffs if (one.project, one.kind) == (project, kind)]
        few = [one for one in own if one.is_small]
        first, last = own[0], own[-1]
        span = f"{first.before} to {last.after}" if kind == "release" else f"up to {first.after}"
        count = sum(bool(one.blocking()) for one in few)
        lines.append(f"| {project} ({span}) | {kind} | {len(own)} | {len(few)} | {count} |")
    return "\n".join(lines) + "\n"


def _scripts(diff: Diff) -> bool:
    return any(one.group == "gate-script" for one in diff.findings)


def _share(part: list[Diff], whole: list[Diff]) -> str:
    return f"{len(part)} ({len(part) / max(1, len(whole)):.1%})"


def document(diffs: list[Diff]) -> dict[str, object]:
    """Return every blocking finding, and the sample for reading by hand."""
    rows = [
        {
            "project": diff.project,
            "from": diff.before,
            "to": diff.after,
            **asdict(one),
            "diff": diff.texts[one.path],
        }
        for diff in diffs
        if diff.is_small
        for one in _first_of_rule(diff.blocking())
    ]
    sample = random.Random(SEED).sample(rows, min(SAMPLE, len(rows)))
    rules = Counter(str(row["rule"]) for row in rows)
    return {"blocking": rows, "rules": dict(rules), "sample": sample}


def _first_of_rule(findings: list[Weakening]) -> list[Weakening]:
    """Return one finding for each file and rule: twelve options of one table are one reading."""
    return list({(one.path, one.rule): one for one in reversed(findings)}.values())[::-1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
