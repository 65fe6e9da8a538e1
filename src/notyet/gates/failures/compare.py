"""Which failures are new since the session's start.

Every rule here may only err on one side: a failure that is new must never be taken for an old one.
Where that cannot be excluded, the comparison says why it cannot tell.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notyet.gates.failures.run import masked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from notyet.gates.failures.run import Run

_CANNOT_RUN = 126  # this exit status and those above: not started, or killed by a signal
_SIGNAL = 128
_WHOLE_PROGRAM = frozenset({"cargo", "mypy", "tsc"})  # one error hides those of all files
_WITH_NAMES = frozenset({"ruff", "eslint"})  # their findings name what they are about
_WITH_SOURCE = frozenset({"ruff", "eslint", "mypy", "tsc"})
_AFTER_PLACE = (":", " ", ".")
_QUOTED = re.compile(r"[`'\"]([^`'\"]+)[`'\"]")
_MARKED = re.compile(r"^\s*\|?\s*[\^~]+")
_GUTTER = re.compile(r"^\s*(?:\d+\s*\|)?\s*")
_LINE_NUMBER = re.compile(r":\d+(?::\d+)?(?=[:\s)]|$)")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_SURROUNDINGS = re.compile(
    r"read-only file system|no space left on device|disk quota exceeded|permission denied"
    r"|operation not permitted|no such file or directory|\bENOENT\b|\bEACCES\b|\bEROFS\b|\bENOSPC\b"
    r"|cannot find module|cannot find package|modulenotfounderror|no module named"
    r"|command not found|cannot allocate memory|too many open files|connection refused"
    r"|could not resolve host|temporary failure in name resolution"
    r"|address already in use|\bEADDRINUSE\b|\bECONNREFUSED\b"
    r"|\btimed out\b|time-?out(?:error|expired|exception)| timeout (?:\(?>|of \d)|\bETIMEDOUT\b"
    r"|deadline ?exceeded|exceeds the deadline",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The failures now beside those of the start."""

    new: Counter[str]
    known: int = 0  # failures now that were there at the start
    moved: int = 0  # of them, those with another name or in another file
    unknown: str = ""  # why it cannot be told which are new, as the end of a sentence


def compare(
    now: Run,
    base: Run,
    *,
    renames: Mapping[str, str] | None = None,
    exit_now: int,
    exit_base: int,
) -> Comparison:
    """Compare a run that failed with the run at the start.

    `renames` has the files that were renamed since, the old path of each with its new one.
    """
    old, names = _renamed(base, renames or {})
    new, vanished = now.failures - old, old - now.failures
    moved = _match_moved(new, vanished, now, base, names) if now.tool == base.tool else 0
    new = +new
    unknown = (
        _not_comparable(now, base, exit_now, exit_base)
        or _hidden(new, now, base, vanished)
        or ("" if new else _not_sure(now, base, exit_now, exit_base))
    )
    known = sum(now.failures.values()) - sum(new.values())
    return Comparison(new=new, known=known, moved=moved, unknown=unknown)


def surroundings(base_text: str, now_text: str) -> str:
    """Return the first line that shows the run at the start failed for lack of something around it.

    Such a line that the run now has too says nothing about the difference between them.
    """
    lines_now = {masked(line) for line in _surroundings_lines(now_text)}
    for line in _surroundings_lines(base_text):
        if masked(line) not in lines_now:
            return line.strip()[:200]
    return ""


def _surroundings_lines(text: str) -> Iterator[str]:
    return (line for line in text.splitlines() if _SURROUNDINGS.search(line[:4_000]))


def _not_comparable(now: Run, base: Run, exit_now: int, exit_base: int) -> str:
    """Return why the two runs cannot be compared at all."""
    if now.tool != base.tool:
        return f"{base.tool} ran at the start, {now.tool} now"
    for when, status in (("now", exit_now), ("at the start", exit_base)):
        if status < 0 or status > _SIGNAL:
            signal = -status if status < 0 else status - _SIGNAL
            return f"the run {when} was killed by signal {signal}"
        if status >= _CANNOT_RUN:
            return f"the command could not be run {when} (exit status {status})"
    if base.stopped_early:
        return "the run at the start stopped early, so later failures were not seen"
    if not base.complete:
        return "the run at the start did not name all of its failures"
    return ""


def _hidden(new: Counter[str], now: Run, base: Run, vanished: Counter[str]) -> str:
    """Return a reason if an error of the start, gone now, may have hidden failures."""
    gone = [error for error in base.load_errors if error in vanished or error not in now.failures]
    if not gone:
        return ""
    candidates = [name for name in new if name not in now.load_errors]
    hidden = [name for name in candidates if any(_hides(error, name, base) for error in gone)]
    if not hidden:
        return ""
    count = sum(new[name] for name in hidden)
    failures = "1 failure was" if count == 1 else f"{count} failures were"
    return f"{failures} hidden at the start by an error that is gone now"


def _hides(error: str, name: str, run: Run) -> bool:
    tool, error = _without_tool(error, run)
    own, name = _without_tool(name, run)
    if tool != own:
        return False
    place = error.partition(": ")[0]
    name = name.removeprefix("ERROR ")
    return tool in _WHOLE_PROGRAM or (
        name.startswith(place) and name[len(place) :].startswith(_AFTER_PLACE)
    )


def _without_tool(name: str, run: Run) -> tuple[str, str]:
    """Return the tool of a failure, and its identity without the tool's name."""
    if "+" not in run.tool:
        return run.tool, name
    tool, _, rest = name.partition(": ")
    return tool, rest


def _not_sure(now: Run, base: Run, exit_now: int, exit_base: int) -> str:
    """Return why there may be new failures although none is seen."""
    if not now.failures:
        return f"the check failed (exit status {exit_now}) without naming a failure"
    if now.stopped_early:
        return "the run stopped early, so later failures were not seen"
    if not now.complete:
        return "the output does not name all failures"
    if exit_base == 0:
        return "the check passed at the start with the same findings"
    if exit_now > exit_base:
        return f"the exit status was {exit_base} at the start and is {exit_now} now"
    if now.ran == 0:
        return "nothing was checked: the same errors as at the start stopped it"
    if now.ran is not None and base.ran is not None and now.ran < base.ran:
        return f"fewer tests ran: {base.ran} at the start, {now.ran} now"
    lost = sorted((base.tests or frozenset()) - (now.tests or frozenset()) - set(base.failures))
    if now.tests is not None and len(lost) > len(now.tests - (base.tests or frozenset())):
        return f"a test that passed at the start did not run: {lost[0]}"
    for line in now.other_errors - base.other_errors:
        return f"the output has an error beside the failures: {now.printed.get(line, line)}"
    return ""


def _renamed(base: Run, renames: Mapping[str, str]) -> tuple[Counter[str], dict[str, str]]:
    """Return the failures of the start under the names of the files now, and their old names."""
    failures: Counter[str] = Counter()
    names: dict[str, str] = {}
    for name, count in base.failures.items():
        here = _path_renamed(name, base, renames)
        failures[here] += count
        names.setdefault(here, name)
    return failures, names


def _path_renamed(name: str, base: Run, renames: Mapping[str, str]) -> str:
    rest = _without_tool(name, base)[1]
    head = name[: len(name) - len(rest)]
    if rest.startswith("ERROR "):
        head, rest = f"{head}ERROR ", rest.removeprefix("ERROR ")
    for old, new in _spellings(renames, base.tool):
        if rest.startswith(old) and rest[len(old) :].startswith(_AFTER_PLACE):
            after = rest[len(old) :]
            if name in base.load_errors:  # the message of an error names the file again
                after = after.replace(old, new)
            return f"{head}{new}{after}"
    return name


def _spellings(renames: Mapping[str, str], tool: str) -> Iterator[tuple[str, str]]:
    """Return renamed files as paths, and as Python modules where a tool names those."""
    for old, new in renames.items():
        yield old, new
        if tool in {"junit", "unittest"} and old.endswith(".py") and new.endswith(".py"):
            yield old[:-3].replace("/", "."), new[:-3].replace("/", ".")


def _match_moved(
    new: Counter[str], vanished: Counter[str], now: Run, base: Run, names: Mapping[str, str]
) -> int:
    """Take from `new` what only has another name than at the start; return how many."""
    moved = 0
    keys: dict[tuple[str, ...], list[str]] = {}
    for old in vanished:
        keys.setdefault(_key(old, base, base.messages.get(names[old], "")), []).append(old)
    for name in list(new):
        if name in now.load_errors:
            continue
        for old in keys.get(_key(name, now, now.messages.get(name, "")), ()):
            if old in base.load_errors or not _is_same(name, old, names[old], now, base):
                continue
            count = min(new[name], vanished[old])
            new[name] -= count
            vanished[old] -= count
            moved += count
    return moved


def _key(name: str, run: Run, message: str) -> tuple[str, ...]:
    """Return what a failure keeps when it gets another name."""
    tool, rest = _without_tool(name, run)
    if tool in _WITH_SOURCE:
        return (tool, rest.partition(": ")[2])
    return (tool, message)


def _is_same(name: str, old: str, name_then: str, now: Run, base: Run) -> bool:
    """Return True if a failure is one of the start for sure, under another name."""
    tool, rest = _without_tool(name, now)
    text, text_then = now.details.get(name, ""), base.details.get(name_then, "")
    if tool in _WITH_SOURCE:
        source, source_then = _marked_source(text), _marked_source(text_then)
        if source or source_then:
            return source == source_then
        return tool in _WITH_NAMES and bool(_QUOTED.search(rest.partition(": ")[2]))
    if not now.messages.get(name):
        return False
    last, last_then = _last_name(rest), _last_name(_without_tool(old, base)[1])
    if not text or _comparable(text, last) != _comparable(text_then, last_then):
        return False
    if now.tests is not None and base.tests is not None:
        # The old test is gone, and the new one was not there: nothing that passed fails now.
        return old not in now.tests and name_then not in now.tests and name not in base.tests
    return tool == "pytest" and _is_same_function(name, old, text, text_then)


def _is_same_function(name: str, old: str, text: str, text_then: str) -> bool:
    """Return True if two tests of one file, or class, have the same source and arguments.

    pytest shows a failing test from its first line to the one that failed. Two functions that are
    alike so far fail alike, so the new one cannot have passed at the start. That does not hold for
    the cases of one function, nor for methods of different classes.
    """
    (place, function, case), (place_then, function_then, case_then) = _parts(name), _parts(old)
    return (
        (place, case) == (place_then, case_then)
        and function != function_then
        and f"def {function}(" in text
        and f"def {function_then}(" in text_then
    )


def _parts(name: str) -> tuple[str, str, str]:
    """Return where a test of pytest stands, its function and its parameters."""
    start, bracket, case = name.partition("[")
    place, _, function = start.rpartition("::")
    return place, function, bracket + case


def _last_name(name: str) -> str:
    for mark in (" \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} ", " > ", "::", " "):
        if mark in name.partition("[")[0]:
            name = name.partition("[")[0].rpartition(mark)[2]
            break
    return name.partition("[")[0].rpartition("::")[2]


def _comparable(text: str, name: str) -> str:
    """Return a report without the name of its test and without line numbers.

    Numbers stay: they may be all that tells two tests apart.
    """
    text = _ADDRESS.sub("0x", _LINE_NUMBER.sub(":", text))
    if name:
        text = re.sub(rf"\b{re.escape(name)}\b", "<test>", text)
    return re.sub(r"[_-]{3,}|\s+", " ", text)


def _marked_source(text: str) -> str:
    """Return the source line that a linter marked, if it shows one."""
    lines = text.split("\n")
    for at, line in enumerate(lines[1:], 1):
        if _MARKED.match(line):
            return _GUTTER.sub("", lines[at - 1]).strip()
    return ""
