"""The failures in reports that tools write for machines."""

from __future__ import annotations

import io
import json
import os
import re
import stat
from collections import Counter
from typing import TYPE_CHECKING, Any

from notyet.errors import NotyetError
from notyet.gates.failures.junit import NotJunit, read_junit
from notyet.gates.failures.linters import add_finding
from notyet.gates.failures.run import Found, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import BinaryIO

MOST_BYTES = 64 * 1024 * 1024
_MARKS = b"\xef\xbb\xbf \t\r\n"
_NOT_BUILT = re.compile(r"\[(?:build|setup) failed\]")
_PANIC = re.compile(r"panic: |fatal error: ")
_SYNTAX_CODES = frozenset({None, "", "invalid-syntax", "E999", "E902", "syntax"})


class ReportError(NotyetError):
    """A report that cannot be used; the message says which, why, and what to do."""


def read_report(path: str | os.PathLike[str], roots: Sequence[str] = ()) -> Run:
    """Return the failures in one report, whose kind is recognised by its content."""
    return read_reports([path], roots)


def read_reports(paths: Sequence[str | os.PathLike[str]], roots: Sequence[str] = ()) -> Run:
    """Return the failures in several reports of one run: all of one kind."""
    return _of_one_kind([_read(os.fspath(path), roots) for path in paths])


def read_contents(contents: Mapping[str, bytes], roots: Sequence[str] = ()) -> Run:
    """Return the failures in reports that were read before, each under its path."""
    return _of_one_kind(
        [
            _parse(path, io.BytesIO(content), len(content), roots)
            for path, content in contents.items()
        ]
    )


def _of_one_kind(runs: Sequence[Run]) -> Run:
    if not runs:
        raise ReportError("there is no report; check that `report` names what the command writes")
    tools = sorted({run.tool for run in runs})
    if len(tools) > 1:
        raise ReportError(
            f"the reports are of different kinds ({', '.join(tools)}); write one gate for each"
        )
    return runs[0] if len(runs) == 1 else _together(runs)


def _together(runs: Sequence[Run]) -> Run:
    failures: Counter[str] = Counter()
    messages: dict[str, str] = {}
    details: dict[str, str] = {}
    for run in runs:
        failures.update(run.failures)
        messages.update(run.messages)
        details.update(run.details)
    counts = [run.ran for run in runs if run.ran is not None]
    names = [run.tests for run in runs if run.tests is not None]
    return Run(
        tool=runs[0].tool,
        failures=failures,
        messages=messages,
        details=details,
        ran=sum(counts) if counts else None,
        complete=all(run.complete for run in runs),
        stopped_early=any(run.stopped_early for run in runs),
        load_errors=frozenset(name for run in runs for name in run.load_errors),
        tests=frozenset(name for each in names for name in each) if names else None,
    )


def _read(path: str, roots: Sequence[str]) -> Run:
    try:
        # Without O_NONBLOCK, a pipe of that name would wait for its writer.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise ReportError(f"the report {path} is missing; does the command write it?") from None
    except OSError as why:
        raise ReportError(f"the report {path} cannot be read: {why.strerror}") from None
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise ReportError(f"the report {path} is not a file; name one, or a pattern of files")
    with open(handle, "rb") as file:
        return _parse(path, file, status.st_size, roots)


def _parse(path: str, file: BinaryIO, size: int, roots: Sequence[str]) -> Run:
    if size > MOST_BYTES:
        raise ReportError(
            f"the report {path} has {size // 2**20} MiB, more than the 64 MiB that "
            "are read; have the tool write less output into it"
        )
    start = file.read(4096).lstrip(_MARKS)[:1]
    file.seek(0)
    if start == b"<":
        try:
            found = read_junit(file, MOST_BYTES, lambda text: _relative(text, roots))
        except NotJunit as why:
            raise ReportError(f"the report {path} {why}") from None
    elif start in {b"{", b"["}:
        found = _read_json(path, file.read(MOST_BYTES + 1), roots)
    else:
        raise _not_understood(path)
    return found.run()


def _not_understood(path: str) -> ReportError:
    return ReportError(
        f"the report {path} is not understood; write JUnit XML, SARIF 2.1, or the JSON of ruff, "
        "eslint, mypy, jest, vitest or go test"
    )


def _relative(path: str, roots: Sequence[str]) -> str:
    path = path.removeprefix("file://")
    for root in sorted(roots, key=len, reverse=True):
        folder = root.rstrip("/")
        if folder and path.startswith(f"{folder}/"):
            return path[len(folder) + 1 :]
    return path.removeprefix("./")


def _read_json(path: str, data: bytes, roots: Sequence[str]) -> Found:
    def relative(text: object) -> str:
        return _relative(str(text or ""), roots)

    text = data.decode("utf-8-sig", "replace").strip()
    first = text.partition("\n")[0].strip()
    head = _parsed(path, first, quiet=True)
    if isinstance(head, dict) and ("Action" in head or {"file", "severity"} <= head.keys()):
        rows = [_parsed(path, line) for line in text.splitlines() if line.strip()]
        if not all(isinstance(row, dict) for row in rows):
            raise _not_understood(path)
        return _go(rows) if "Action" in head else _mypy(rows, relative)
    value = _parsed(path, text)
    try:
        found = _by_shape(value, relative)
    except (AttributeError, TypeError, KeyError, ValueError):
        # The file has the keys of a report, but other values than such a report.
        found = None
    if found is None:
        raise _not_understood(path)
    return found


def _parsed(path: str, text: str, *, quiet: bool = False) -> Any:
    def refuse(name: str) -> None:
        raise ReportError(f"the report {path} has the value {name}, which JSON does not allow")

    try:
        return json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise ReportError(f"the report {path} is nested too deeply to be a report") from None
    except ValueError as why:
        if quiet:
            return None
        raise ReportError(
            f"the report {path} is not whole JSON ({why}); was the command cut off?"
        ) from None


def _by_shape(value: Any, relative: Callable[[object], str]) -> Found | None:
    if isinstance(value, dict):
        if isinstance(value.get("runs"), list) and str(value.get("version", "")).startswith("2.1"):
            return _sarif(value, relative)
        if isinstance(value.get("testResults"), list) and "numTotalTests" in value:
            return _jest(value, relative)
        return None
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        return None
    if all("filename" in row and "message" in row for row in value):
        return _ruff(value, relative)
    if all("filePath" in row and isinstance(row.get("messages"), list) for row in value):
        return _eslint(value, relative)
    return None


def _finding(found: Found, file: str, code: object, text: object, *, load: bool) -> None:
    if load:
        found.add_load_error(file, f"{code or ''} {text}".strip())
    else:
        add_finding(found, file, str(code or ""), str(text))


def _ruff(rows: Sequence[dict[str, Any]], relative: Callable[[object], str]) -> Found:
    found = Found("ruff")
    for row in rows:
        code = row.get("code")
        _finding(found, relative(row["filename"]), code, row["message"], load=code in _SYNTAX_CODES)
    return found


def _eslint(rows: Sequence[dict[str, Any]], relative: Callable[[object], str]) -> Found:
    found = Found("eslint")
    for row in rows:
        for said in row["messages"]:
            load = bool(said.get("fatal"))
            _finding(
                found, relative(row["filePath"]), said.get("ruleId"), said["message"], load=load
            )
        counted = row.get("errorCount", 0) + row.get("warningCount", 0)
        found.complete &= counted == len(row["messages"])
    return found


def _mypy(rows: Sequence[dict[str, Any]], relative: Callable[[object], str]) -> Found:
    found = Found("mypy")
    for row in rows:
        if row.get("severity") == "error":
            code = row.get("code")
            load = code in _SYNTAX_CODES
            _finding(found, relative(row.get("file")), code, row.get("message"), load=load)
    if found.failures and len(found.load_errors) == len(found.failures):
        found.ran = 0  # a file that cannot be parsed ends mypy before it checks anything
    return found


def _sarif(value: dict[str, Any], relative: Callable[[object], str]) -> Found:
    names = sorted({str(run["tool"]["driver"]["name"]) for run in value["runs"]})
    found = Found(f"sarif {' and '.join(names)}".strip())
    for run in value["runs"]:
        for result in run.get("results") or ():
            kind, level = result.get("kind", "fail"), result.get("level", "warning")
            gone = result.get("baselineState") == "absent" or result.get("suppressions")
            if kind != "fail" or level == "none" or gone:
                continue
            places = result.get("locations") or [{}]
            place = places[0].get("physicalLocation", {}).get("artifactLocation", {})
            text = result["message"].get("text") or result["message"].get("id") or ""
            rule = result.get("ruleId") or result.get("rule", {}).get("id")
            _finding(found, relative(place.get("uri")), rule, text, load=False)
        for invocation in run.get("invocations") or ():
            found.complete &= invocation.get("executionSuccessful") is not False
    return found


def _jest(value: dict[str, Any], relative: Callable[[object], str]) -> Found:
    found = Found("jest")
    found.tests = set()
    failed = 0
    for file in value["testResults"]:
        name = relative(file.get("name"))
        cases = file.get("assertionResults") or ()
        if file.get("status") == "failed" and not any(case["status"] == "failed" for case in cases):
            said = [line for line in str(file.get("message") or "").splitlines() if line.strip()]
            message = next((line for line in said if "●" not in line), "did not load")
            found.add_load_error(name, message, "\n".join(said))
        for case in cases:
            title = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} ".join(
                [*map(str, case.get("ancestorTitles") or ()), str(case["title"])]
            )
            identity = f"{name} \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} {title}"
            if case["status"] == "failed":
                failed += 1
                text = "\n".join(map(str, case.get("failureMessages") or ()))
                identity = found.add(identity, text.partition("\n")[0], text)
            if case["status"] in {"failed", "passed"}:
                found.tests.add(identity)
                found.ran = (found.ran or 0) + 1
    found.complete = failed == value.get("numFailedTests", failed)
    found.stopped_early = bool(value.get("wasInterrupted"))
    found.ran = found.ran or 0
    return found


def _go(rows: Sequence[dict[str, Any]]) -> Found:
    found = Found("go")
    tests: set[str] = set()
    output: dict[tuple[str, str], list[str]] = {}
    ended: set[str] = set()
    packages_failed: list[tuple[str, dict[str, Any]]] = []
    for row in rows:
        package = str(row.get("Package") or row.get("ImportPath") or "")
        test, action = str(row.get("Test") or ""), row.get("Action")
        if action in {"output", "build-output"}:
            lines = output.setdefault((package, test), [])
            # It ends the program, with the tests that had yet to run.
            found.stopped_early |= _PANIC.match(str(row.get("Output") or "")) is not None
            if len(lines) < 200:  # noqa: PLR2004  # of one test: enough to see why
                lines.append(str(row.get("Output") or ""))
        elif action in {"pass", "fail"} and test:
            tests.add(f"{package} {test}")
            if action == "fail":
                said = output.get((package, test), [])
                text = "".join(said)
                message = next((line.strip() for line in said if line.startswith("    ")), "")
                found.add(f"{package} {test}", message, text)
                ended.add(package)
            output.pop((package, test), None)
        elif action == "skip" and test:
            output.pop((package, test), None)
        elif action == "fail":
            packages_failed.append((package, row))
    died = {package for package, test in output if test}  # began, and have no result
    for package, row in packages_failed:
        if package in ended and package not in died:
            continue
        build = str(row.get("FailedBuild") or "")
        lines = [*output.get((build, ""), ()), *output.get((package, ""), ())]
        said = [line.strip() for line in lines if line.strip()]
        # Go before 1.24 prints the errors of compilers only beside the report.
        found.complete &= bool(build) or not _NOT_BUILT.search("".join(said))
        found.add_load_error(
            package, " ".join(said) or "failed without a failed test", "".join(lines)
        )
        found.stopped_early |= package in died or (
            not build and "[build failed]" not in "".join(said)
        )
    found.ran, found.tests = len(tests), tests
    return found
