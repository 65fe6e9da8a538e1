"""Run the tests of the adapters for frameworks, each in an environment with its framework.

`make test-frameworks` builds .frameworks/NAME from requirements/frameworks/NAME.txt, runs
tests/frameworks/test_NAME.py in it, and compares what was proven with tests/frameworks/proven.json,
of which tools/framework_table.py makes the page. Variables choose: FRAMEWORKS=strands,langchain
only these; FULL=1 a framework that cannot be installed fails; NEWEST=1 the newest versions instead
of the pinned ones, which only reports; WRITE=1 writes what was proven.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
VENVS = ROOT / ".frameworks"
PINS = ROOT / "requirements" / "frameworks"
TESTS = ROOT / "tests" / "frameworks"
RECORD = TESTS / "proven.json"
AT_ONCE = 2
PATIENCE = 900.0  # seconds for one installation, and for the tests of one framework
KEPT = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL")  # of the environment: no keys of a user's


class Framework(NamedTuple):
    """A framework that an adapter, or a page, is for."""

    title: str
    package: str  # whose version is shown
    page: str  # in docs/how-to


FRAMEWORKS = {
    "pydantic_ai": Framework("Pydantic AI", "pydantic-ai-slim", "pydantic-ai.md"),
    "langchain": Framework("LangChain", "langchain", "langchain.md"),
    "strands": Framework("Strands Agents", "strands-agents", "strands.md"),
    "claude_agent_sdk": Framework("Claude Agent SDK", "claude-agent-sdk", "claude-agent-sdk.md"),
    "openai_agents": Framework("OpenAI Agents SDK", "openai-agents", "openai-agents.md"),
    "google_adk": Framework("Google ADK", "google-adk", "google-adk.md"),
    "smolagents": Framework("smolagents", "smolagents", "write-an-adapter.md"),
}


class Unavailable(Exception):  # noqa: N818  # named after what happened
    """A framework cannot be installed here, and why: its tests are skipped."""


class Result(NamedTuple):
    """What came of the tests of one framework."""

    name: str
    word: str  # ok, FAILED or skipped
    version: str = ""
    said: str = ""  # the last line of pytest, or why there was none
    output: str = ""  # of tests that failed
    proven: dict[str, object] = {}  # noqa: RUF012  # read, never changed
    seconds: float = 0.0


def main() -> int:
    """Run the tests of the chosen frameworks; return the exit code."""
    wanted = os.environ.get("FRAMEWORKS", "").replace("-", "_").split(",")
    wanted = [name.strip() for name in wanted if name.strip()]
    known = [name for name in FRAMEWORKS if (PINS / f"{name}.txt").exists()]
    if unknown := set(wanted) - set(known):
        print(f"FRAMEWORKS: no {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
        return 2
    newest = os.environ.get("NEWEST") == "1"
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(lambda name: proved(name, newest=newest), wanted or known))
    for result in results:
        if result.output:
            print(f"--- {result.name}\n{result.output}")
    print()
    for result in results:
        version = f"{FRAMEWORKS[result.name].package} {result.version}"
        print(f"  {result.word:<8} {version:<32} {result.seconds:5.0f}s  {result.said}")
    if newest:
        print("\nthe newest versions only report; pin one in requirements/frameworks to prove it")
        return 0
    is_full = os.environ.get("FULL") == "1"
    bad = ("FAILED", "skipped") if is_full else ("FAILED",)
    failed = [result.name for result in results if result.word in bad]
    failed += recorded(results, write=os.environ.get("WRITE") == "1")
    return 1 if failed else 0


def proved(name: str, *, newest: bool) -> Result:
    """Install a framework and run its tests."""
    began = time.monotonic()
    try:
        python = installed(name, newest=newest)
        result = tested(name, python)
    except Unavailable as why:
        result = Result(name, "skipped", said=str(why))
    return result._replace(seconds=time.monotonic() - began)


def installed(name: str, *, newest: bool) -> Path:
    """Return the Python of a framework's environment; build it unless it is as it should be."""
    pins = (PINS / f"{name}.txt").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    parts = (pins, json.dumps(project, sort_keys=True), sys.version, str(ROOT))
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    folder = VENVS / (f"{name}-newest" if newest else name)
    python, stamp = folder / "bin" / "python", folder / "built-from"
    if not newest and stamp.exists() and stamp.read_text() == digest:
        return python
    print(f"building {folder.relative_to(ROOT)} ...", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    pinned = [line for line in pins.splitlines() if line.strip() and line[0] != "#"]
    needs = [re.split("[=<>~! ]", line)[0] for line in pinned] if newest else pinned
    if uv := shutil.which("uv"):
        run(uv, "venv", "--quiet", "--python", sys.executable, str(folder))
        pip = [uv, "pip", "install", "--quiet", "--python", str(python)]
    else:
        run(sys.executable, "-m", "venv", str(folder))
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, *needs, "--editable", str(ROOT))
    stamp.write_text(digest)
    return python


def run(*command: str) -> None:
    """Run a command of an installation. Raises Unavailable."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"not installed: {error}") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if not line.startswith("WARNING")]
        raise Unavailable(f"not installed: {lines[-1] if lines else 'no reason given'}")


def tested(name: str, python: Path) -> Result:
    """Run the tests of a framework."""
    report = python.parent.parent / "report.xml"
    report.unlink(missing_ok=True)
    command = [
        *(str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        f"--junitxml={report}",
        str(TESTS / f"test_{name}.py"),
    ]
    environ = {key: os.environ[key] for key in KEPT if key in os.environ}
    version = version_in(python, FRAMEWORKS[name].package)
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Result(name, "FAILED", version, f"its tests did not end within {PATIENCE:.0f} s")
    said = (done.stdout.splitlines() or ["nothing"])[-1]
    if done.returncode:
        return Result(name, "FAILED", version, said, done.stdout)
    proven = {"version": version, **proven_by(report)}
    return Result(name, "ok", version, said, proven=proven)


def version_in(python: Path, package: str) -> str:
    """Return the version of a package in an environment."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def proven_by(report: Path) -> dict[str, object]:
    """Return what tests that passed say that a framework can hold, and what it cannot."""
    holds: set[str] = set()
    cannot: dict[str, str] = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  # written by pytest, just now
        if any(case.find(word) is not None for word in ("skipped", "failure", "error")):
            continue
        for entry in case.iter("property"):
            value = entry.get("value", "")
            if entry.get("name") == "holds":
                holds.add(value)
            elif entry.get("name") == "cannot_hold":
                label, _, reason = value.partition(": ")
                cannot[label] = reason
    return {"holds": sorted(holds), "cannot": dict(sorted(cannot.items()))}


def recorded(results: list[Result], *, write: bool) -> list[str]:
    """Return the frameworks whose record is not what was proven; or write the record."""
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    fresh = record | {result.name: result.proven for result in results if result.word == "ok"}
    changed = [name for name in fresh if fresh[name] != record.get(name)]
    if changed and write:
        ordered = {name: fresh[name] for name in FRAMEWORKS if name in fresh}
        RECORD.write_text(json.dumps(ordered, indent=2) + "\n", encoding="utf-8")
        print(f"\nwrote {RECORD.relative_to(ROOT)}; now run: make docs")
        return []
    if changed:
        print(f"\n{RECORD.relative_to(ROOT)} does not say what was proven of {', '.join(changed)}")
        print("read the differences after: make test-frameworks WRITE=1 && make docs")
    return changed


if __name__ == "__main__":
    sys.exit(main())
