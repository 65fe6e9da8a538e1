"""The output of ruff, mypy, eslint and tsc."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from notyet.gates.failures.run import Found, masked

if TYPE_CHECKING:
    from collections.abc import Sequence

_RUFF_TOTAL = re.compile(
    r"^Found (\d+) errors?(?: \(\d+ fixed, (\d+) remaining\))?\.$|^All checks passed!$"
)
_RUFF_CONCISE = re.compile(
    r"^(\S.*?):(?:cell \d+:)?\d+:\d+: ([A-Z]+\d+|[a-z][a-z-]+:?|SyntaxError:) (?:\[\*\] )?(.+)$"
)
_RUFF_TITLE = re.compile(r"^([A-Z]+\d+|[a-z][a-z-]+:?|SyntaxError:) (?:\[\*\] )?(.+)$")
_RUFF_PLACE = re.compile(r"^ *--> (.+?):(?:cell \d+:)?\d+:\d+$")
_RUFF_FILE = re.compile(r"^(\S.*):$")
_RUFF_GROUPED = re.compile(
    r"^  +(?:cell \d+:)?\d+:\d+ +([A-Z]+\d+|[a-z][a-z-]+:?|SyntaxError:) (?:\[\*\] )?(.+)$"
)


def add_finding(found: Found, file: str, code: str, text: str, detail: str = "") -> str:
    """Count what a linter found: its file, its code and its text without numbers."""
    return found.add(f"{file}: {f'{code} {masked(text)}'.strip()}", text, detail)


def read_ruff(lines: Sequence[str]) -> Found | None:
    """Read what `ruff check` printed, in any of its formats for people."""
    totals = [at for at, line in enumerate(lines) if _RUFF_TOTAL.match(line)]
    if not totals:
        return None
    found = Found("ruff")
    file, skip_to = "", 0
    last = max(totals)
    for at in range(last):
        line = lines[at]
        if at < skip_to:  # source text that ruff shows
            continue
        concise, grouped = _RUFF_CONCISE.match(line), _RUFF_GROUPED.match(line)
        title = _RUFF_TITLE.match(line)
        place = _RUFF_PLACE.match(lines[at + 1]) if title else None
        if title and place:
            after = next((to for to in range(at + 2, last) if not lines[to]), last)
            skip_to = after
            _ruff_finding(found, place[1], title[1], title[2], "\n".join(lines[at:after]))
            found.claim(at, after - 1)
        elif concise:
            _ruff_finding(found, concise[1], concise[2], concise[3], line)
            found.claimed.add(at)
        elif grouped and file:
            _ruff_finding(found, file, grouped[1], grouped[2], line)
            found.claimed.add(at)
        elif not line:
            file = ""
        elif header := _RUFF_FILE.match(line):
            file = header[1]
            found.claimed.add(at)
    matches = [match for at in totals if (match := _RUFF_TOTAL.match(lines[at]))]
    total = sum(int((match[2] or match[1] or "0")[:9]) for match in matches)
    found.complete = sum(found.failures.values()) == total
    found.claimed.update(totals)
    return found


def _ruff_finding(found: Found, file: str, code: str, text: str, detail: str) -> None:
    code = code.rstrip(":")
    if code in {"invalid-syntax", "SyntaxError", "E999", "E902"}:
        found.add_load_error(file, f"{code} {text}", detail)
    else:
        add_finding(found, file, code, text, detail)


_MYPY_LINE = re.compile(
    r"^(\S.*?):(?:\d+:){1,4} (error|note|warning): (.+)$|^(\S[^:]*): (error): (.+)$"
)
_MYPY_CODE = re.compile(r"^(.*?)  \[([a-z][a-z0-9-]*)\]$")
_MYPY_TOTAL = re.compile(
    r"^(?:Found (\d+) errors? in \d+ files? \((checked|errors prevented).*\)"
    r"|Success: no issues found in \d+ source files?)$"
)
_MYPY_CUT = "(Skipping most remaining errors"  # with --soft-error-limit
_MOST_WRAPPED = 6  # lines of one message with --pretty


def read_mypy(lines: Sequence[str]) -> Found | None:
    """Read what mypy printed, also with --pretty."""
    totals = [at for at, line in enumerate(lines) if _MYPY_TOTAL.match(line)]
    if not totals:
        return None
    found = Found("mypy")
    for at in range(max(totals)):
        match = _MYPY_LINE.match(lines[at])
        if not match:
            continue
        file, kind, text = match[1] or match[4], match[2] or match[5], match[3] or match[6]
        found.claimed.add(at)
        # mypy counts what `reveal_type` shows as an error, although it prints a note.
        if kind == "note" and not text.startswith("Revealed "):
            continue
        text, end = _mypy_text(lines, at, text)
        found.claim(at, end)
        code = _MYPY_CODE.match(text)
        words, name = (code[1], code[2]) if code else (text, "")
        detail = "\n".join(lines[at : end + 3])
        if name == "syntax" or not match[1]:
            found.add_load_error(file, f"{name} {words}", detail)
        else:
            add_finding(found, file, name, words, detail)
    matches = [match for at in totals if (match := _MYPY_TOTAL.match(lines[at]))]
    found.complete = sum(found.failures.values()) == sum(int((m[1] or "0")[:9]) for m in matches)
    found.stopped_early = any(_MYPY_CUT in line for line in lines)
    if any(match[2] == "errors prevented" for match in matches):
        found.ran = 0
        found.load_errors.update(found.failures)
    found.claimed.update(totals)
    return found


def _mypy_text(lines: Sequence[str], at: int, text: str) -> tuple[str, int]:
    """Return the whole of a message that --pretty wrapped, and its last line."""
    whole = text
    for after in range(at + 1, min(at + _MOST_WRAPPED, len(lines))):
        if _MYPY_CODE.match(whole):
            return whole, after - 1
        line = lines[after]
        if not line or line.startswith(" ") or _MYPY_LINE.match(line) or _MYPY_TOTAL.match(line):
            break
        whole = f"{whole} {line}"
    return (whole, at) if _MYPY_CODE.match(whole) else (text, at)


_ESLINT_TOTAL = re.compile(r"^✖ (\d+) problems? \(\d+ errors?, \d+ warnings?\)$")
_ESLINT_LINE = re.compile(r"^  +\d+:\d+  +(error|warning)  +(\S.*)$")
_ESLINT_UNIX = re.compile(r"^(\S.*?):\d+:\d+: (.+) \[(?:Error|Warning)(?:/(\S+))?\]$")
_ESLINT_UNIX_TOTAL = re.compile(r"^(\d+) problems?$")
_ESLINT_CRASH = "Oops! Something went wrong! :("
_ESLINT_NOISE = re.compile(
    r"^✖ \d+ problems? |^  \d+ errors? and \d+ warnings? potentially fixable|^ESLint found too "
)


def read_eslint(lines: Sequence[str]) -> Found | None:
    """Read what eslint printed: warnings too, which count with --max-warnings."""
    if _ESLINT_CRASH in lines:
        found = Found("eslint")
        at = lines.index(_ESLINT_CRASH)
        said = [line for line in lines[at + 1 :] if line and not line.startswith("ESLint: ")]
        found.add_load_error("eslint", said[0] if said else _ESLINT_CRASH, "\n".join(said))
        found.complete, found.ran = False, 0
        found.claimed.add(at)
        return found
    totals = [
        int(match[1][:9])
        for line in lines
        if (match := _ESLINT_TOTAL.match(line) or _ESLINT_UNIX_TOTAL.match(line))
    ]
    if not totals:
        return None
    found = Found("eslint")
    file = ""
    for at, line in enumerate(lines):
        stylish, unix = _ESLINT_LINE.match(line), _ESLINT_UNIX.match(line)
        below = lines[at + 1] if at + 1 < len(lines) else ""
        if stylish and file:
            text, _, rule = stylish[2].rpartition("  ")
            # A parsing error has no rule.
            _eslint_finding(found, file, rule.strip() if text else "", text or rule, line)
        elif unix:
            _eslint_finding(found, unix[1], unix[3] or "", unix[2], line)
        elif line and not line.startswith(" ") and _ESLINT_LINE.match(below):
            file = line
        elif not _ESLINT_NOISE.match(line):
            continue
        found.claimed.add(at)
    if not found.failures:
        return None
    found.complete = sum(found.failures.values()) == sum(totals)
    return found


def _eslint_finding(found: Found, file: str, rule: str, text: str, detail: str) -> None:
    if not rule and text.startswith("Parsing error:"):
        found.add_load_error(file, text, detail)
    else:
        add_finding(found, file, rule, text, detail)


_TSC_LINE = re.compile(r"^(\S.*?)(?:\(\d+,\d+\): |:\d+:\d+ - )error (TS\d+): (.+)$")
_TSC_GLOBAL = re.compile(r"^error (TS\d+): (.+)$")
_TSC_TOTAL = re.compile(r"^Found (\d+) errors?(?: in .+)?\.$")
_TSC_SYNTAX = re.compile(r"^TS1\d{3}$")  # while a file cannot be parsed, no type is checked


def read_tsc(lines: Sequence[str]) -> Found | None:
    """Read what tsc printed, also with --pretty."""
    found = Found("tsc")
    codes = set()
    for at, line in enumerate(lines):
        match, anywhere = _TSC_LINE.match(line), _TSC_GLOBAL.match(line)
        if anywhere:
            found.add_load_error("tsc", f"{anywhere[1]} {anywhere[2]}", line)
            found.claimed.add(at)
            codes.add("TS1000")
        if not match:
            continue
        after = at + 1
        while after < len(lines) and lines[after].startswith("  "):
            after += 1
        text = " ".join([match[3], *(more.strip() for more in lines[at + 1 : after])])
        detail = "\n".join(lines[at : max(after, at + 4)])
        codes.add(match[2])
        if _TSC_SYNTAX.match(match[2]):
            found.add_load_error(match[1], f"{match[2]} {text}", detail)
        else:
            add_finding(found, match[1], match[2], text, detail)
        found.claim(at, after - 1)
    if not found.failures:
        return None
    totals = [(at, hit) for at, line in enumerate(lines) if (hit := _TSC_TOTAL.match(line))]
    found.claimed.update(at for at, _ in totals)
    found.claimed.update(at for at, line in enumerate(lines) if line == "Errors  Files")
    if totals:
        found.complete = sum(found.failures.values()) == sum(int(hit[1][:9]) for _, hit in totals)
    if all(_TSC_SYNTAX.match(code) for code in codes):
        found.ran = 0
    return found
