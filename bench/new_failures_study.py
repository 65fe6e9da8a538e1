"""How `new_failures_only` decides in real projects: what an agent broke, and what it did not.

    python -m bench.new_failures_study --markdown docs/gates/new-failures-study.md

Projects are fetched by package name: from PyPI, npm and Debian. A project whose tools or package
are missing here is left out, and named. Every decision is made by the gate's own process, without
any known run: the baseline runs after the agent's edit.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bench.page import replace_generated
from bench.progress import say
from notyet.core.event import StopEvent
from notyet.gates import child
from notyet.git.snapshot_store import take_first
from notyet.hosts.notyet.hooks import write_event

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_GIT = ("git", "-c", "user.name=study", "-c", "user.email=study@example.invalid")
_LIMIT = 120.0
_HERE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Style:
    """How tests of one runner are written; `{count}` is a file that a first run makes."""

    comment: str
    failing: str  # a test `old` that fails
    flaky: str = ""
    broken: str = "(\n"  # no program in any language


_PYTEST = Style(
    "#",
    "def test_old():\n    assert 1 == 2\n",
    "import pathlib\n\n\ndef test_flaky():\n    count = pathlib.Path('{count}')\n"
    "    first = not count.exists()\n    count.touch()\n    assert not first\n",
)
_UNITTEST = Style(
    "#",
    "import unittest\n\n\nclass Old(unittest.TestCase):\n    def test_old(self):\n"
    "        self.assertEqual(1, 2)\n",
    "import pathlib\nimport unittest\n\n\nclass Flaky(unittest.TestCase):\n"
    "    def test_flaky(self):\n        count = pathlib.Path('{count}')\n"
    "        first = not count.exists()\n        count.touch()\n        self.assertFalse(first)\n",
)
_TAPE = Style(
    "//",
    "require('tape')('old', function (t) { t.equal(1, 2); t.end(); });\n",
    "var fs = require('fs');\nrequire('tape')('flaky', function (t) {\n"
    "  var first = !fs.existsSync('{count}');\n  fs.writeFileSync('{count}', '');\n"
    "  t.notOk(first); t.end();\n});\n",
)
_NODE = Style(
    "//",
    "require('node:test')('old', () => { require('assert').equal(1, 2) })\n",
    "const fs = require('fs')\nrequire('node:test')('flaky', () => {\n"
    "  const first = !fs.existsSync('{count}')\n  fs.writeFileSync('{count}', '')\n"
    "  require('assert').ok(!first)\n})\n",
)
_JEST = Style(
    "//",
    "test('old', () => { expect(1).toBe(2); });\n",
    "const fs = require('fs');\ntest('flaky', () => {\n"
    "  const first = !fs.existsSync('{count}');\n  fs.writeFileSync('{count}', '');\n"
    "  expect(first).toBe(false);\n});\n",
)
_VITEST = Style(
    "//",
    "import { test, expect } from 'vitest';\ntest('old', () => { expect(1).toBe(2); });\n",
    "import fs from 'node:fs';\nimport { test, expect } from 'vitest';\ntest('flaky', () => {\n"
    "  const first = !fs.existsSync('{count}');\n  fs.writeFileSync('{count}', '');\n"
    "  expect(first).toBe(false);\n});\n",
)
_ESLINT = Style("//", "debugger;\n")
_TSC = Style("//", "export const old: number = 'text';\n")
_GO = Style(
    "//",
    'package shlex\n\nimport "testing"\n\n'
    "func TestOld(t *testing.T) {\n\tif 1 != 2 {\n\t\tt.Error(1)\n\t}\n}\n",
    'package shlex\n\nimport (\n\t"os"\n\t"testing"\n)\n\nfunc TestFlaky(t *testing.T) {\n'
    '\t_, err := os.Stat("{count}")\n\tos.WriteFile("{count}", nil, 0o600)\n'
    "\tif err != nil {\n\t\tt.Error(1)\n\t}\n}\n",
)
_CARGO = Style(
    "//",
    "#[test]\nfn old() {\n    assert_eq!(1, 2);\n}\n",
    '#[test]\nfn flaky() {\n    let first = !std::path::Path::new("{count}").exists();\n'
    '    std::fs::write("{count}", "").unwrap();\n    assert!(!first);\n}\n',
)
_RUFF = Style("#", "import os\n")
_MYPY = Style("#", "old: int = 'a'\n")


@dataclass(frozen=True, kw_only=True)
class Project:
    """A real project: where it comes from, its check, and what breaks it."""

    name: str
    source: str  # pypi, npm or debian
    runner: str
    style: Style
    run: str
    old: str  # the file of the test that fails from the start
    renamed: str
    subject: str  # a file that tests read
    breaks: str  # what is appended to it, or "old text\0new text"
    deleted: str = ""  # a file with tests that pass
    early: str = ""  # a command that stops early
    needs: tuple[str, ...] = ()  # programs
    packages: tuple[str, ...] = ()  # that its check needs
    editable: bool = False
    files: Mapping[str, str] = field(default_factory=dict)
    package: str = ""
    workspace: str = ""  # where the package lies in a workspace of npm


_TESTS = "python -m pytest -q -p no:cacheprovider --continue-on-collection-errors"


def _python(name: str, subject: str, breaks: str, deleted: str, tests: str = "tests") -> Project:
    return Project(
        name=name,
        source="pypi",
        runner="pytest",
        style=_PYTEST,
        run=f"{_TESTS} {tests}",
        old=f"{tests}/test_old_one.py",
        renamed=f"{tests}/test_other_name.py",
        subject=subject,
        breaks=breaks,
        deleted=deleted,
        early=f"{_TESTS} -x {tests}",
        # Later versions of the plugin warn, which these projects take for an error.
        packages=("pytest<9", "freezegun", *(["pytest-asyncio<0.24"] if name == "blinker" else [])),
        editable=True,
    )


PROJECTS = (
    _python(
        "itsdangerous",
        "src/itsdangerous/signer.py",
        "Signer.sign = lambda self, value: b''\n",
        "tests/test_itsdangerous/test_url_safe.py",
    ),
    _python(
        "blinker",
        "src/blinker/base.py",
        "Signal.send = lambda self, *a, **k: []\n",
        "tests/test_symbol.py",
    ),
    _python(
        "sqlparse",
        "sqlparse/__init__.py",
        "format = lambda sql, **k: ''\n",
        "tests/test_tokenize.py",
    ),
    _python(
        "pluggy",
        "src/pluggy/_manager.py",
        "PluginManager.register = lambda self, *a, **k: None\n",
        "testing/test_tracer.py",
        "testing",
    ),
    Project(
        name="simplejson",
        source="pypi",
        runner="unittest",
        style=_UNITTEST,
        run="python -m unittest discover -s simplejson/tests -t .",
        old="simplejson/tests/test_old_one.py",
        renamed="simplejson/tests/test_other_name.py",
        subject="simplejson/encoder.py",
        breaks="JSONEncoder.encode = lambda self, o: 'x'\n",
        deleted="simplejson/tests/test_float.py",
    ),
    Project(
        name="sqlparse (ruff)",
        package="sqlparse",
        source="pypi",
        runner="ruff",
        style=_RUFF,
        run="ruff check --no-cache --isolated --select E4,E7,E9,F sqlparse",
        old="sqlparse/old_one.py",
        renamed="sqlparse/other_name.py",
        subject="sqlparse/sql.py",
        breaks="import os as _new\n",
        packages=("ruff",),
    ),
    Project(
        name="itsdangerous (mypy)",
        package="itsdangerous",
        source="pypi",
        runner="mypy",
        style=_MYPY,
        run="python -m mypy --cache-dir=/dev/null src/itsdangerous",
        old="src/itsdangerous/old_one.py",
        renamed="src/itsdangerous/other_name.py",
        subject="src/itsdangerous/signer.py",
        breaks="new: int = 'b'\n",
        packages=("mypy",),
    ),
    Project(
        name="minimist",
        source="npm",
        runner="TAP (tape)",
        style=_TAPE,
        run="node_modules/.bin/tape 'test/*.js'",
        old="test/old_one.js",
        renamed="test/other_name.js",
        subject="index.js",
        breaks="module.exports = function () { return {}; };\n",
        deleted="test/whitespace.js",
        needs=("node", "npm"),
        packages=("tape",),
    ),
    Project(
        name="process-warning",
        source="npm",
        runner="node:test",
        style=_NODE,
        run="node --test test",
        old="test/old-one.test.js",
        renamed="test/other-name.test.js",
        subject="index.js",
        breaks="module.exports.createWarning = () => () => {}\n",
        deleted="test/emit-set.test.js",
        needs=("node", "npm"),
    ),
    Project(
        name="minimist (jest, workspace)",
        package="minimist",
        source="npm",
        runner="jest",
        style=_JEST,
        run="node_modules/.bin/jest --ci",
        old="old-one.test.js",
        renamed="other-name.test.js",
        subject="packages/minimist/index.js",
        breaks="module.exports = function () { return {}; };\n",
        deleted="more.test.js",
        early="node_modules/.bin/jest --ci --bail",
        needs=("node", "npm"),
        packages=("jest",),
        workspace="packages/minimist",
        files={
            "use.test.js": "const parse = require('minimist');\n"
            "test('use', () => { expect(parse(['--a', 'b']).a).toBe('b'); });\n",
            "more.test.js": "test('more', () => {});\n",
        },
    ),
    Project(
        name="minimist (vitest, workspace)",
        package="minimist",
        source="npm",
        runner="vitest",
        style=_VITEST,
        run="node_modules/.bin/vitest run",
        old="old-one.test.mjs",
        renamed="other-name.test.mjs",
        subject="packages/minimist/index.js",
        breaks="module.exports = function () { return {}; };\n",
        deleted="more.test.mjs",
        early="node_modules/.bin/vitest run --bail 1 --no-file-parallelism",
        needs=("node", "npm"),
        packages=("vitest",),
        workspace="packages/minimist",
        files={
            "use.test.mjs": "import { test, expect } from 'vitest';\n"
            "import parse from 'minimist';\n"
            "test('use', () => { expect(parse(['--a', 'b']).a).toBe('b'); });\n",
            "more.test.mjs": "import { test } from 'vitest';\ntest('more', () => {});\n",
            "vitest.config.mjs": "export default {};\n",
        },
    ),
    Project(
        name="minimist (eslint)",
        package="minimist",
        source="npm",
        runner="eslint",
        style=_ESLINT,
        run="node_modules/.bin/eslint .",
        old="old_one.js",
        renamed="other_name.js",
        subject="index.js",
        breaks="debugger;\n",
        needs=("node", "npm"),
        packages=("eslint",),
        files={
            "eslint.config.js": "module.exports = [{ rules: { 'no-debugger': 'error' } }];\n",
        },
    ),
    Project(
        name="tiny-invariant (tsc)",
        package="tiny-invariant",
        source="npm",
        runner="tsc",
        style=_TSC,
        run="node_modules/.bin/tsc --noEmit -p .",
        old="src/old_one.ts",
        renamed="src/other_name.ts",
        subject="src/tiny-invariant.ts",
        breaks="export const broken: number = 'text';\n",
        needs=("node", "npm"),
        packages=("typescript",),
        files={
            "tsconfig.json": '{"compilerOptions": {"strict": true, "types": []}, "include": ["src"]}\n'
        },
    ),
    Project(
        name="google/shlex",
        package="golang-github-google-shlex-dev",
        source="debian",
        runner="go test",
        style=_GO,
        run="go test -v -count=1 ./...",
        old="old_one_test.go",
        renamed="other_name_test.go",
        subject="shlex.go",
        breaks="([]string, error) {\n\0([]string, error) {\n\treturn nil, nil\n",
        needs=("go", "apt-get", "dpkg-deb"),
        files={"go.mod": "module github.com/google/shlex\n\ngo 1.19\n"},
    ),
    Project(
        name="fnv",
        package="librust-fnv-dev",
        source="debian",
        runner="cargo test",
        style=_CARGO,
        run="cargo test --offline --no-fail-fast",
        old="tests/old_one.rs",
        renamed="tests/other_name.rs",
        subject="lib.rs",
        breaks="0x100000001b3\0x100000001b5",
        early="cargo test --offline",
        needs=("cargo", "apt-get", "dpkg-deb"),
        files={".gitignore": "target/\nCargo.lock\n"},
    ),
)


@dataclass(frozen=True)
class Decision:
    """What the gate said about one edit, and what is right."""

    project: str
    runner: str
    scenario: str
    blocks: bool
    blocked: bool
    unsure: str
    seconds: float

    @property
    def verdict(self) -> str:
        if self.blocked == self.blocks:
            return "right"
        return "needless block" if self.blocked else "WRONG RELEASE"


class Study:
    """One project in a folder of its own."""

    def __init__(self, project: Project, work: Path) -> None:
        self.project, self.work = project, work
        self.root = work / "project"
        self.count = work / "count"
        self.number = 0
        tools = work / "venv" / "bin"
        self.environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTEST_", "NOTYET_", "COV_"))
        }
        self.environ |= {
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "GOCACHE": str(work / "go-cache"),
            "GOFLAGS": "-mod=mod",
            "GOPROXY": "off",
        }

    def prepare(self) -> None:
        """Fetch the project, install what it needs, and commit it. Raises CalledProcessError."""
        project = self.project
        package = project.package or project.name
        {"pypi": self._from_pypi, "npm": self._from_npm, "debian": self._from_debian}[
            project.source
        ](package)
        for name, text in project.files.items():
            (self.root / name).write_text(text)
        with (self.root / ".gitignore").open("a") as file:
            file.write("node_modules/\n*.egg-info/\n__pycache__/\nbuild/\n*.so\n")

        self._run(*_GIT, "init", "-q")
        self._run(*_GIT, "add", "-A")
        self._run(*_GIT, "commit", "-q", "-m", "as released")

    def _from_pypi(self, package: str) -> None:
        self._do(sys.executable, "-m", "venv", str(self.work / "venv"))
        pip = str(self.work / "venv/bin/pip")
        self._do(pip, "download", "-q", "--no-deps", "--no-binary", ":all:", package)
        (archive,) = self.work.glob("*.tar.gz")
        shutil.unpack_archive(archive, self.work / "unpacked", filter="data")
        next((self.work / "unpacked").iterdir()).rename(self.root)
        more = ["-e", str(self.root)] if self.project.editable else []
        if more or self.project.packages:
            self._do(pip, "install", "-q", *more, *self.project.packages)

    def _from_npm(self, package: str) -> None:
        self._do("npm", "pack", "--silent", package)
        (archive,) = self.work.glob("*.tgz")
        shutil.unpack_archive(archive, self.work / "unpacked", "gztar", filter="data")
        inside = self.root / self.project.workspace
        inside.parent.mkdir(parents=True, exist_ok=True)
        (self.work / "unpacked/package").rename(inside)
        about = {"name": "study", "private": True, "version": "1.0.0"}
        if self.project.workspace:
            about["workspaces"] = ["packages/*"]
        for path in (self.root, inside) if self.project.workspace else (self.root,):
            given = path / "package.json"
            told = json.loads(given.read_text()) if given.exists() else about
            told.pop("devDependencies", None)
            given.write_text(json.dumps(told))
        self._do("npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts",
                 *self.project.packages, at=self.root)  # fmt: skip

    def _from_debian(self, package: str) -> None:
        self._do("apt-get", "download", "-qq", package)
        (archive,) = self.work.glob("*.deb")
        self._do("dpkg-deb", "-x", str(archive), str(self.work / "unpacked"))
        marker = "Cargo.toml" if package.startswith("librust") else Path(self.project.subject).name
        found = min((self.work / "unpacked").rglob(marker)).parent
        shutil.copytree(found, self.root)
        for name in (".cargo-checksum.json", "debian"):
            path = self.root / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def decisions(self) -> Iterator[Decision]:
        """Try every scenario that the project has."""
        project = self.project
        old = self.root / project.old
        failing = project.style.failing
        subject = self.root / project.subject
        comment = f"{project.style.comment} a line\n"

        def harmless() -> None:
            subject.write_text(subject.read_text() + "\n" + comment)

        def breaking() -> None:
            text = subject.read_text()
            before, cut, after = project.breaks.partition("\0")
            assert not cut or before in text, f"{project.name}: nothing to break"
            subject.write_text(text.replace(before, after) if cut else f"{text}\n{before}")

        def crashing() -> None:
            subject.write_text(subject.read_text() + "\n" + project.style.broken)

        def renaming() -> None:
            old.rename(self.root / project.renamed)

        def shifting() -> None:
            old.write_text(comment * 5 + old.read_text())

        def flaky() -> None:
            text = project.style.flaky.replace("{count}", str(self.count))
            (self.root / project.renamed).write_text(text)

        def deleting() -> None:
            (self.root / project.deleted).unlink()

        def renaming_and_breaking() -> None:
            renaming()
            breaking()

        begin = {project.old: failing}
        yield self._decide("old failure, harmless edit", begin, harmless, blocks=False)
        yield self._decide("old failure, agent breaks code", begin, breaking, blocks=True)
        yield self._decide("all passed, agent breaks code", {}, breaking, blocks=True)
        yield self._decide("renamed file", begin, renaming, blocks=False)
        yield self._decide("renamed file, code broken", begin, renaming_and_breaking, blocks=True)
        yield self._decide("shifted lines", begin, shifting, blocks=False)
        yield self._decide("crash at import", begin, crashing, blocks=True)
        if project.style.flaky:
            yield self._decide("flaky test", begin, flaky, blocks=False)
        if project.deleted:
            yield self._decide("tests deleted", begin, deleting, blocks=True)
        if project.early:
            yield self._decide("early exit", begin, breaking, blocks=True, run=project.early)

    def _decide(
        self, scenario: str, begin: Mapping[str, str], edit: object, *, blocks: bool, run: str = ""
    ) -> Decision:
        self.number += 1
        self._run(*_GIT, "reset", "-q", "--hard")
        self._run(*_GIT, "clean", "-fdq")
        self.count.unlink(missing_ok=True)
        for name, text in begin.items():
            (self.root / name).parent.mkdir(exist_ok=True)
            (self.root / name).write_text(text)
        time.sleep(0.05)
        state = self.work / f"state{self.number}"
        agent = {"host": "claude", "session_id": "study", "agent_id": ""}
        snapshot = take_first(f"{state}/notyet", root=str(self.root), patience=60.0, **agent)
        assert snapshot is not None, "no snapshot"
        time.sleep(0.05)
        assert callable(edit)
        edit()
        began = time.monotonic()
        event = StopEvent(cwd=str(self.root), host=agent["host"], session_id=agent["session_id"])
        answer = self._ask(run or self.project.run, event, state)
        blocked = answer.get("decision") != "allow"
        text = str(answer.get("reason") or answer.get("problem") or "")
        _, mark, unsure = text.rpartition("which of these failures are new: ")
        project = self.project
        if "new" in answer and answer["new"] == "passed":
            unsure, mark = "the check passed: the edit broke nothing", "x"
        return Decision(
            project.name,
            project.runner,
            scenario,
            blocks,
            blocked,
            unsure if mark else "",
            time.monotonic() - began,
        )

    def _ask(self, script: str, event: StopEvent, state: Path) -> dict[str, object]:
        """Run the check, then the gate's own process."""
        began = time.monotonic()
        done = subprocess.run(
            ["/bin/sh", "-c", script],
            cwd=self.root, env=self.environ, capture_output=True, text=True, errors="replace",
            timeout=_LIMIT, check=False,
        )  # fmt: skip
        if not done.returncode:
            return {"decision": "allow", "new": "passed"}
        output = "\n".join(part.rstrip() for part in (done.stdout, done.stderr) if part)
        question = {
            "event": write_event(event, str(self.root))[0],
            "gate": "tests",
            "options": {"new_failures_only": True, "pass_codes": [0]},
            "folder": str(self.root),
            "command": {"script": script, "argv": [], "shell": "/bin/sh", "dir": str(self.root)},
            "now": {
                "output": output,
                "exit": f"exit {done.returncode}",
                "began": time.time() - (time.monotonic() - began),
                "seconds": time.monotonic() - began,
                "limit": _LIMIT,
            },
        }
        said = subprocess.run(
            [sys.executable, "-P", child.__file__, "new_failures"],
            cwd=self.root, env={**self.environ, "XDG_STATE_HOME": str(state)},
            input=json.dumps(question), capture_output=True, text=True, check=False,
        )  # fmt: skip
        found: dict[str, object] = json.loads(said.stdout)
        return found

    def _run(self, *argv: str) -> None:
        self._do(*argv, at=self.root)

    def _do(self, *argv: str, at: Path | None = None) -> None:
        subprocess.run(
            argv,
            cwd=at or self.work,
            env=self.environ,
            check=True,
            capture_output=True,
            timeout=300,
        )


def main() -> int:
    """Try every project, print what was wrong, and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--markdown", type=Path, help="the page that gets the table")
    parser.add_argument("projects", nargs="*", help="names; default: all")
    given = parser.parse_args()
    decisions, missing = [], []
    for project in PROJECTS:
        if given.projects and project.name not in given.projects:
            continue
        lacks = [name for name in project.needs if shutil.which(name) is None]
        with tempfile.TemporaryDirectory(prefix="study-") as work:
            study = Study(project, Path(work).resolve())
            try:
                if lacks:
                    raise FileNotFoundError(f"{lacks[0]} is not installed")
                study.prepare()
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                missing.append(f"{project.name}: {str(error)[:200]}")
                say(f"left out: {missing[-1]}")
                continue
            for decision in study.decisions():
                decisions.append(decision)
                say(
                    f"{decision.project} | {decision.scenario} | {decision.verdict} | "
                    f"{decision.unsure} | {decision.seconds:.1f} s"
                )
    if given.markdown:
        replace_generated(given.markdown, "bench.new_failures_study", markdown(decisions, missing))
    return int(any(decision.verdict == "WRONG RELEASE" for decision in decisions))


def markdown(decisions: list[Decision], missing: list[str]) -> str:
    """Return the figures, and the table of all decisions."""
    wrong = [one for one in decisions if one.verdict == "WRONG RELEASE"]
    needless = [one for one in decisions if one.verdict == "needless block"]
    release = [one for one in decisions if not one.blocks]
    plain = [one for one in decisions if one.blocks and one.blocked and one.unsure]
    projects = list(dict.fromkeys(one.project for one in decisions))
    lines = [
        (
            f"{len(decisions)} decisions in {len(projects)} projects: {len(wrong)} wrong releases. "
            f"Of {len(release)} edits that broke nothing, {len(needless)} were blocked "
            f"({100 * len(needless) / max(1, len(release)):.1f} %). "
            f"Of {len(decisions) - len(release)} edits that must block, {len(plain)} were blocked "
            "because the gate could not tell, the others because it named a new failure.\n"
        ),
        "| project | runner | scenario | right answer | verdict | if it could not tell, why |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.project} | {one.runner} | {one.scenario} | "
        f"{'block' if one.blocks else 'release'} | {one.verdict} | "
        f"{one.unsure.replace('|', '/').replace(chr(10), ' ')[:160]} |"
        for one in decisions
    ]
    if missing:
        lines += ["", "Left out on the machine of this run:", ""]
        lines += [f"- {words}" for words in missing]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
