"""The output of go test and cargo test."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from notyet.gates.failures.run import Found, masked, spans

if TYPE_CHECKING:
    from collections.abc import Sequence

_GO_PACKAGE = re.compile(r"^(FAIL|ok  )\t(\S+)(?:\t| )(.*)$")
_GO_RESULT = re.compile(r"^ *--- (FAIL|PASS|SKIP): (\S+) \(\d[\d.]*s\)$")
_GO_RUN = re.compile(r"^=== (RUN|PAUSE|CONT|NAME) +(\S*)")
_GO_BUILD = re.compile(r"^# \S+(?: \[\S+\])?$")
_GO_ERROR = re.compile(r"^(?:vet: )?(\S+\.\w+):\d+(?::\d+)?: (.+)$")
_GO_DEATH = re.compile(r"^(?:panic: |fatal error: |signal: |exit status )")
_GO_STOPPED = re.compile(r"^(?:panic: |fatal error: |signal: )")


def read_go(lines: Sequence[str]) -> Found | None:
    """Read what `go test` printed, with or without -v."""
    packages = [at for at, line in enumerate(lines) if _GO_PACKAGE.match(line)]
    if not packages:
        return None
    found = Found("go")
    ran: set[str] = set()
    verbose = False
    built = 0
    begin = 0
    # The compiler's errors go to stderr: where that stands apart, they come after the packages.
    apart = _go_errors(lines, packages[-1] + 1, found)
    for at in packages:
        match = _GO_PACKAGE.match(lines[at])
        if match:
            block = lines[begin:at]
            verbose |= any(_GO_RUN.match(line) for line in block)
            built += not match[3].startswith("[")
            ran |= _go_package(match, [*apart.get(match[2], ()), *block], found)
        found.claim(begin, at)
        begin = at + 1
    found.claimed.update(at for at, line in enumerate(lines) if line == "FAIL")
    if verbose:
        found.ran = len(ran)
        found.tests = ran
    elif not built:
        found.ran = 0
    return found


def _go_errors(lines: Sequence[str], first: int, found: Found) -> dict[str, list[str]]:
    """Return what the compiler said about packages, from a line on."""
    starts = [at for at in range(first, len(lines)) if _GO_BUILD.match(lines[at])]
    said: dict[str, list[str]] = {}
    for at, after in spans(starts, len(lines)):
        said.setdefault(lines[at].split()[1], []).extend(lines[at:after])
        found.claim(at, after - 1)
    return said


def _go_package(match: re.Match[str], block: Sequence[str], found: Found) -> set[str]:
    """Count the failures of one package; return its tests that ran, where they are named."""
    outcome, package, rest = match[1], match[2], match[3]
    results = [(at, hit) for at, line in enumerate(block) if (hit := _GO_RESULT.match(line))]
    ran, failed = set(), 0
    places = spans([at for at, _ in results], len(block))
    printed = _go_printed(block)
    for (_, hit), (at, after) in zip(results, places, strict=True):
        if hit[1] != "SKIP":
            ran.add(f"{package} {hit[2]}")
        if hit[1] == "FAIL":
            failed += 1
            end = next((to for to in range(at, after) if _GO_RUN.match(block[to])), after)
            lines = [*printed.get(hit[2], ()), *block[at + 1 : end]]
            lines = [line for line in lines if line != "FAIL"]
            said = [line.strip() for line in lines if line.startswith("    ")]
            message = re.sub(r"^\S+:\d+: ", "", said[0]) if said else ""
            found.add(f"{package} {hit[2]}", message, "\n".join([block[at], *lines]))
    if outcome != "FAIL":
        # Its output names a failure, but go counts none: a test printed it, or hid a package.
        found.complete &= not failed
        return ran
    death = next((line for line in block if _GO_DEATH.match(line)), "")
    if rest.startswith("["):
        _go_build(package, rest, block, found)
    elif not failed or any(_GO_STOPPED.match(line) for line in block):
        found.add_load_error(package, death or "failed without a failed test", "\n".join(block))
        found.stopped_early = True
    return ran


def _go_printed(block: Sequence[str]) -> dict[str, list[str]]:
    """Return what tests printed before their result, as they do with -v, by their names."""
    printed: dict[str, list[str]] = {}
    name = ""
    for line in block:
        if run := _GO_RUN.match(line):
            name = "" if run[1] == "PAUSE" else run[2]
        elif _GO_RESULT.match(line):
            name = ""
        elif name:
            printed.setdefault(name, []).append(line)
    return printed


def _go_build(package: str, rest: str, block: Sequence[str], found: Found) -> None:
    """Count what kept a package from being built."""
    inside = False
    said = []
    for line in block:
        if _GO_BUILD.match(line):
            inside = True
        elif inside and (error := _GO_ERROR.match(line)):
            said.append(f"{error[1].removeprefix('./')}: {error[2]}")
        elif line.endswith("too many errors"):
            found.complete = False
    found.add_load_error(package, f"{rest} {' | '.join(sorted(said))}", "\n".join(block))


_CARGO_TARGET = re.compile(r"^ +(?:Running (?:unittests )?(\S+) \(\S+\)|Doc-tests (\S+))$")
_CARGO_RUNNING = re.compile(r"^running (\d+) tests?$")
_CARGO_RESULT = re.compile(
    r"^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored; (\d+) measured;"
)
_CARGO_PASSED = re.compile(r"^test (.+) \.\.\. ok$")
_CARGO_STDOUT = re.compile(r"^---- (.+) stdout ----$")
_CARGO_LINE = re.compile(r" \(line \d+\)$")
_CARGO_ERROR = re.compile(r"^error(\[E\d+\])?: (.+)$")
_CARGO_NO_ERROR = re.compile(
    r"^error: (?:test failed|doctest failed|\d+ targets? failed|could not compile|aborting due to)"
)
_CARGO_PLACE = re.compile(r"^ *--> (.+?):\d+:\d+$")
_CARGO_COMPILE = re.compile(r"^(?:   Compiling |    Finished |error: could not compile )")
_CARGO_THREAD = re.compile(r"^thread '.*' .*panicked at ")


def read_cargo(lines: Sequence[str]) -> Found | None:
    """Read what `cargo test` printed."""
    order = _cargo_order(lines)
    found = _cargo_ordered([lines[at] for at in order])
    if found is not None:
        found.claimed = {order[at] for at in found.claimed}
    return found


def _cargo_order(lines: Sequence[str]) -> Sequence[int]:
    """Return the order in which lines were printed, if stderr stands as a whole after stdout.

    cargo names its test programs on stderr; they print to stdout, one after the other.
    """
    targets = [at for at, line in enumerate(lines) if _CARGO_TARGET.match(line)]
    runs = [at for at, line in enumerate(lines) if _CARGO_RUNNING.match(line)]
    if not targets or len(runs) != len(targets) or runs[-1] > targets[0]:
        return range(len(lines))
    results = [at for at in range(runs[-1], targets[0]) if _CARGO_RESULT.match(lines[at])]
    builds = [at for at in range(runs[-1], targets[0]) if _CARGO_COMPILE.match(lines[at])]
    end = results[-1] + 1 if results else (builds or targets)[0]
    order = [*range(runs[0]), *range(end, targets[0])]
    named = zip(spans(targets, len(lines)), spans(runs, end), strict=True)
    for (target, after), (run, run_after) in named:
        order += [target, *range(run, run_after), *range(target + 1, after)]
    return order


def _cargo_ordered(lines: Sequence[str]) -> Found | None:
    targets = [at for at, line in enumerate(lines) if _CARGO_TARGET.match(line)]
    built = any(line.startswith("error: could not compile ") for line in lines)
    if not targets and not built:
        return None
    found = Found("cargo")
    found.ran = 0
    found.tests = set()
    begin = targets[0] if targets else len(lines)
    _cargo_compile(lines[:begin], found)
    for at, after in spans(targets, len(lines)):
        _cargo_target(lines, at, after, found)
    rerun = any(
        line.startswith(("error: test failed,", "error: doctest failed,")) for line in lines
    )
    ended = any(re.match(r"^error: \d+ targets? failed", line) for line in lines)
    found.stopped_early |= rerun and not ended
    found.claimed.update(at for at, line in enumerate(lines) if _CARGO_NO_ERROR.match(line))
    return found


def _cargo_compile(lines: Sequence[str], found: Found) -> None:
    """Count the errors of the compiler, and skip its warnings."""
    starts = [
        at
        for at, line in enumerate(lines)
        if _CARGO_ERROR.match(line) or line.startswith("warning") or _CARGO_COMPILE.match(line)
    ]
    for at, after in spans(starts, len(lines)):
        error = _CARGO_ERROR.match(lines[at])
        if line_is_warning := lines[at].startswith("warning"):
            found.claim(at, after - 1)
        if not error or line_is_warning or _CARGO_NO_ERROR.match(lines[at]):
            continue
        block = lines[at:after]
        place = next((hit[1] for line in block if (hit := _CARGO_PLACE.match(line))), "cargo")
        message = f"{error[1] or ''} {error[2]}".strip()
        found.add_load_error(place, message, "\n".join(block))
        found.claim(at, after - 1)


def _cargo_target(lines: Sequence[str], begin: int, end: int, found: Found) -> None:
    """Count the failures of one test program, or of the examples in the documentation."""
    match = _CARGO_TARGET.match(lines[begin])
    target = (match[1] or f"doc {match[2]}") if match else ""
    runs = [at for at in range(begin, end) if _CARGO_RUNNING.match(lines[at])]
    results = [at for at in range(begin, end) if _CARGO_RESULT.match(lines[at])]
    if not runs or not results:
        why = next((line for line in lines[begin:end] if "didn't exit successfully" in line), "")
        why = re.sub(r"`[^`]*`", "", why) or "did not finish"
        found.add_load_error(target, masked(why), "\n".join(lines[begin:end]))
        found.stopped_early = True
        found.claimed.update(at for at in range(begin, end) if "exit successfully" in lines[at])
        return
    last = results[-1]
    running, result = _CARGO_RUNNING.match(lines[runs[0]]), _CARGO_RESULT.match(lines[last])
    counts = [int(count[:9]) for count in result.groups()] if result else [0, 0, 0, 0]
    listed = max((at for at in range(begin, last) if lines[at] == "failures:"), default=last)
    names = [line.strip() for line in lines[listed + 1 : last] if line.startswith("    ")]
    reports = _cargo_reports(lines[begin:last])
    for name in names:
        text = reports.get(name, "")
        found.add(f"{target} {_CARGO_LINE.sub('', name)}", _cargo_message(text), text)
    # Text that a test printed may look like a result; only the last one can be the program's own.
    found.complete &= len(names) == counts[1]
    found.complete &= running is not None and int(running[1][:9]) == sum(counts)
    found.ran = (found.ran or 0) + counts[0] + counts[1]
    passed = [hit[1] for line in lines[begin:last] if (hit := _CARGO_PASSED.match(line))]
    if found.tests is not None and len(passed) == counts[0]:
        found.tests |= {f"{target} {_CARGO_LINE.sub('', name)}" for name in (*passed, *names)}
    else:
        found.tests = None
    found.claim(begin, last)


def _cargo_reports(lines: Sequence[str]) -> dict[str, str]:
    starts = [(at, hit[1]) for at, line in enumerate(lines) if (hit := _CARGO_STDOUT.match(line))]
    places = spans([at for at, _ in starts], len(lines))
    reports: dict[str, str] = {}
    for (_, name), (at, after) in zip(starts, places, strict=True):
        reports.setdefault(name, "\n".join(lines[at:after]))
    return reports


def _cargo_message(text: str) -> str:
    lines = text.split("\n")
    at = next((at for at, line in enumerate(lines) if _CARGO_THREAD.match(line)), -1)
    said = " ".join(lines[at + 1 : at + 4]) if at >= 0 else " ".join(lines[1:2])
    return said.partition("stack backtrace:")[0]
