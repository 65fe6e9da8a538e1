"""The tests of a JavaScript or TypeScript file, found by the calls that define them."""

from __future__ import annotations

import re
from bisect import bisect
from posixpath import basename
from typing import TYPE_CHECKING, NamedTuple

from notyet.gates.guard.found_tests import (
    EXACT,
    LOOSE,
    PARTIAL,
    Assertion,
    FoundTest,
    TestsOfFile,
    digest,
)
from notyet.gates.guard.masking import Masked, mask

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_HEAD = re.compile(
    r"(?<![\w.$])(?:(?:t|tt|st|tap|Deno|QUnit|ctx|context)\.(?=test\b))?"
    r"(?P<word>[xf]?(?:it|test|specify|describe|context|suite)|Feature|Scenario)"
    r"(?P<marks>(?:\.[A-Za-z]\w*+){0,4}+)\s{0,20}+(?=[(`])"
)
_GROUPS = frozenset({"describe", "context", "suite", "Feature"})
_SKIPS = frozenset({"skip", "todo", "fixme"})
_FAILS = frozenset({"failing", "fails"})  # the test runs, and has to fail
_OPTION = re.compile(r"\b(skip|todo|only)\s{0,9}:\s{0,9}([^,}\n]{1,80})")
_SKIP_CALL = re.compile(
    r"(?<![\w.$])(?:this|t|ctx|context|test|it)\.(?:skip|fixme)\s{0,9}\(|(?<![\w.$])pending\s{0,9}\("
)
_ASSERTION = re.compile(
    r"(?<![\w$])(?:expect(?:TypeOf)?\s{0,9}[(.]|assert\w*\s{0,9}[(.]|"
    r"(?:[\w$]+\.)(?:is|not|ok|notOk|true|false|truthy|falsy|equal|equals|notEqual|strictEqual|"
    r"notStrictEqual|deepEqual|notDeepEqual|deepStrictEqual|looseEqual|same|notSame|strictSame|"
    r"strictNotSame|match|notMatch|doesNotMatch|regex|notRegex|throws|throwsAsync|notThrows|"
    r"doesNotThrow|rejects|doesNotReject|resolves|resolveMatch|error|ifError|ifErr|snapshot|like|"
    r"has|hasStrict|type|instance|fail|assertions|resolveMatchSnapshot|matchSnapshot)\s{0,9}\(|"
    r"should\.[a-zA-Z]\w*+)|\)?\.(?:should|expect)\b|\.should\("
)
_LOOSE = re.compile(
    r"\.(?:toBeTruthy|toBeDefined|toBeFalsy|toBeNull|truthy|falsy|ok|notOk|not\.toThrow|"
    r"not\.toBeNull|not\.toBeUndefined|exist|be\.ok)\b|^assert\s*\("
)
_PARTIAL = re.compile(
    r"\.(?:toContain|toMatchObject|toBeCloseTo|toBeGreaterThan|toBeLessThan|toHaveProperty|"
    r"toBeInstanceOf|like|notEqual|toThrow\(\)|toHaveBeenCalled\(\)|any\()"
)
_MOCK = re.compile(r"(?<![\w$])(?:jest|vi|vitest|td|mock)\.(?:mock|doMock|replace|module)\s{0,9}\(")
_SPY = re.compile(
    r"(?<![\w$])(?:jest|vi|sinon|mock)\.(?:spyOn|stub|method)\s{0,9}\(\s{0,9}([\w$]{1,80})\s{0,9},"
)
# What never runs: a branch on a constant, up to the end of its block or call.
_NEVER = re.compile(
    r"\b(?:if|while)\s{0,9}\(\s{0,9}(?:false|0|!1|!true)\s{0,9}\)|(?<![\w$.])(?:false|0)\s{0,9}&&"
)
_TRY = re.compile(r"\btry\s{0,20}(?=\{)")
_EMPTY_CATCH = re.compile(r"\s{0,40}catch\s{0,9}(?:\([^()]{0,80}\)\s{0,9})?\{\s*+\}")
_RETURN = re.compile(r"\s*+return\s{0,9}(?:;|\n)")
_BODY = re.compile(r"=>\s{0,40}(?=\{)|\bfunction\b[^{]{0,200}(?=\{)")
_BEFORE = re.compile(r"(?<![\w$.])before(?:Each|All)?\s{0,9}(?=\()")
_EXIT = re.compile(r"(?<![\w$.])process\.(?:exit|reallyExit)\s{0,9}\(")
_TRIVIAL = re.compile(
    r"^(?:expect|assert(?:\.ok)?|(?:t|test)\.(?:ok|true|pass))\(\s{0,9}"
    r"(?:true|1|'[^']{1,80}'|\"[^\"]{1,80}\"|\d{1,20})\s{0,9}\)"
)
_CONDITION = re.compile(r"\b(?:if|else|catch|case|switch)\b|\?|&&|\|\|")
_MOST_ARGUMENTS = 4  # of a call that defines a test
_MOST_TESTS = 20_000


class _Call(NamedTuple):
    """A call that defines a test or a group."""

    start: int
    end: int  # after its closing bracket
    word: str
    marks: tuple[str, ...]
    arguments: tuple[tuple[int, int], ...]
    cases: int | None


def tests_of(path: str, source: str) -> TestsOfFile:
    """Return the tests of a JavaScript or TypeScript file."""
    return _File(path, mask(source, "javascript")).found


class _File:
    def __init__(self, path: str, source: Masked) -> None:
        self.source = source
        self.found = TestsOfFile(path)
        self.stem = re.split(r"[._-](?:test|spec|e2e)\b", basename(path))[0].split(".")[0]
        self.lines = _LineNumbers(source.text)
        self.never = _Spans(self._never())
        self.lost = _Spans((*self._never(), *self._swallowed()))
        calls = [call for call in map(self._call, self._heads()) if call]
        inner = _inner(calls)
        around: list[tuple[_Call, str]] = []
        for number, call in enumerate(calls):
            while around and around[-1][0].end <= call.start:
                around.pop()
            prefix = "".join(f"{name} > " for _, name in around)
            name = self._name(call)
            skipped = next((p for p, (one, _) in enumerate(around) if _is_marked(one)), None)
            inherited = "" if skipped is None else _joined(around[: skipped + 1])
            self.found.add(self._test(call, prefix + name, inherited, inner[number]))
            around.append((call, name))
        self._file_mocks()
        self._file_skips()

    def _never(self) -> Iterator[tuple[int, int]]:
        """Yield the parts of the text that are never run."""
        source = self.source
        for match in _NEVER.finditer(source.masked):
            opening = re.compile(r"[{(;]").search(source.masked, match.end())
            if opening and opening[0] != ";":
                yield match.start(), source.pairs.get(opening.start(), opening.start())

    def _swallowed(self) -> Iterator[tuple[int, int]]:
        """Yield the blocks in which a failed assertion has no effect."""
        source = self.source
        for match in _TRY.finditer(source.masked):
            end = source.pairs.get(match.end())
            if end is not None and _EMPTY_CATCH.match(source.masked, end + 1):
                yield match.end(), end

    def _heads(self) -> Iterator[re.Match[str]]:
        for number, match in enumerate(_HEAD.finditer(self.source.masked)):
            if number == _MOST_TESTS:
                return
            yield match

    def _call(self, match: re.Match[str]) -> _Call | None:
        """Return the call of a head, or None if it does not define a test."""
        source = self.source
        marks = tuple(filter(None, match["marks"].split(".")))
        at = match.end()
        cases: int | None = 1
        if marks and marks[-1] in {"each", "for", "skipIf", "runIf", "extend"}:
            at, cases = self._after_table(at, marks[-1])
            if at < 0:
                return None
            marks = self._conditional(marks, match.end())
        close = source.pairs.get(at)
        if source.masked[at] != "(" or close is None:
            return None
        arguments = self._arguments(at, close)
        is_lone = len(arguments) == 1 and marks and not _SKIPS.intersection(marks)
        if not arguments or is_lone or marks == ("pass",):
            return None  # e.g. `test.pass("it came so far")`, an assertion
        if arguments[0][0] not in source.strings:
            rest = source.masked[arguments[0][1] : close]
            is_test = len(arguments) > 1 and ("=>" in rest or "function" in rest or "async" in rest)
            if not is_test and not (len(arguments) > 1 and not marks and self._is_plain(rest)):
                return None
            if not is_test and match["word"] in {"context", "suite"}:
                return None
            cases = None
        elif self._is_dynamic(*arguments[0]):
            cases = None
        return _Call(match.start(), close + 1, match["word"], marks, arguments, cases)

    def _conditional(self, marks: tuple[str, ...], opening: int) -> tuple[str, ...]:
        """Return the marks with what `skipIf(…)` or `runIf(…)` means."""
        if marks[-1] not in {"skipIf", "runIf"}:
            return marks
        end = self.source.pairs.get(opening, opening)
        given = self.source.masked[opening + 1 : end].strip()
        is_sure = given == ("true" if marks[-1] == "skipIf" else "false")
        return (*marks[:-1], "skip" if is_sure else "conditional")

    def _after_table(self, at: int, mark: str) -> tuple[int, int | None]:
        """Return where the call that defines a test opens, and how many cases the table has.

        The call after `each` takes the table, the one after that defines the test; -1 without it.
        """
        source = self.source
        cases: int | None = 1
        if source.masked[at] == "`":
            end = source.strings.get(at, at)
            cases = None
        else:
            end = source.pairs.get(at, at) + 1
            if mark in {"each", "for"}:
                cases = self._cases(at)
        following = re.compile(r"\s{0,20}\(").match(source.masked, end)
        return (following.end() - 1 if following else -1), cases

    @staticmethod
    def _is_plain(rest: str) -> bool:
        """Return True for arguments after the name that are only names, e.g. a macro of AVA."""
        return bool(re.fullmatch(r"[\s,\w.$]{1,200}", rest))

    def _is_dynamic(self, start: int, end: int) -> bool:
        text = self.source.text[start:end]
        return "${" in text or self.source.strings[start] < start + len(text.rstrip())

    def _arguments(self, opening: int, close: int) -> tuple[tuple[int, int], ...]:
        """Return where the first arguments of a call begin and end."""
        masked, pairs = self.source.masked, self.source.pairs
        found: list[tuple[int, int]] = []
        start = at = opening + 1
        pattern = re.compile(r"[,(\[{]")
        while len(found) < _MOST_ARGUMENTS:
            match = pattern.search(masked, at, close)
            if match and match[0] != ",":
                at = max(pairs.get(match.start(), match.start()), match.start()) + 1
                continue
            end = match.start() if match else close
            text = masked[start:end]
            if text.strip():
                found.append((start + len(text) - len(text.lstrip()), end))
            if not match:
                break
            start = at = match.end()
        return tuple(found)

    def _cases(self, opening: int) -> int | None:
        """Return how many cases a literal table has; None if it is made at run time."""
        source = self.source
        inside = re.compile(r"\s*+\[").match(source.masked, opening + 1)
        if not inside:
            return None
        start, end = inside.end() - 1, source.pairs.get(inside.end() - 1)
        if end is None or "..." in source.masked[start:end]:
            return None
        if source.masked[end + 1 : source.pairs.get(opening, end + 1)].strip(" \n\t,"):
            return None  # e.g. `[1, 2].map(…)`
        count, at, is_item = 0, start + 1, False
        pattern = re.compile(r"[,(\[{]|[^\s,]")
        while match := pattern.search(source.masked, at, end):
            if match[0] == ",":
                is_item = False
            elif not is_item:
                is_item = True
                count += 1
            at = match.end()
            if match[0] in "([{":
                at = source.pairs.get(match.start(), match.start()) + 1
        return count

    def _name(self, call: _Call) -> str:
        start, end = call.arguments[0]
        text = self.source.text[start : min(end, start + 300)].strip()
        is_literal = start in self.source.strings and self.source.strings[start] == start + len(
            text
        )
        return " ".join((text[1:-1] if is_literal else text).split())

    def _test(self, call: _Call, name: str, inherited: str, inner: list[_Call]) -> FoundTest:
        source = self.source
        is_group = call.word.lstrip("xf") in _GROUPS
        skip, condition, only = self._marks(call)
        start, end = call.arguments[0][1], call.end - 1
        parts = list(_outside(start, end, inner))
        if not skip and call.start in self.never:
            skip = "never runs"
        if not skip:
            inside = self._hooks(parts) if is_group else parts
            skip, maybe = self._skip_inside(inside) if inside else ("", "")
            condition = condition or maybe
        if not skip and not is_group and self._returns_first(call):
            skip = "return"
        if not skip and len(call.arguments) == 1 and call.word in {"it", "specify", "test"}:
            skip = "it has no function"
        text = "".join(source.text[a:b] for a, b in parts)
        lines = [" ".join(line.split()) for line in text.split("\n")]
        kept = [line.rstrip(";,") for line in lines if line and not line.startswith("//")]
        number = self.lines.of(call.start)
        return FoundTest(
            name=name,
            line=number,
            head=self.lines.text(number),
            body=digest(re.sub(r"[\s;,'\"`]+", "", "".join(kept)))
            if len(call.arguments) > 1
            else "",
            lines=frozenset(kept),
            assertions=() if is_group else tuple(self._assertions(parts)),
            skip=skip,
            condition=condition,
            inherited=inherited,
            only=only,
            cases=call.cases,
            mocks=frozenset(self._mocks(parts)),
            is_group=is_group,
            is_empty=not any(re.search(r"\w", line) for line in kept[:50]),
        )

    def _marks(self, call: _Call) -> tuple[str, str, bool]:
        """Return how a call is always skipped, how on a condition, and whether it is focused."""
        skip = condition = ""
        only = call.word[0] == "f" and call.word != "function"
        for mark in call.marks:
            if mark in _SKIPS or mark in _FAILS:
                skip = f"{call.word}.{mark}"
            elif mark == "only":
                only = True
            elif mark == "conditional":
                condition = f"{call.word}.skipIf"
        if call.word[0] == "x":
            skip = call.word
        for name, value in self._options(call):
            is_sure = value in {"true", "!0", "1"} or value[0] in "'\"`"
            if name == "only":
                only = only or is_sure
            elif is_sure:
                skip = skip or f"{name}: {value}"
            else:
                condition = condition or f"{name}: {value}"
        return skip, condition, only

    def _options(self, call: _Call) -> Iterator[tuple[str, str]]:
        """Return the options that skip or focus a test, unless they are off."""
        for start, end in call.arguments[1:2]:
            if self.source.masked[start] != "{":
                continue
            for match in _OPTION.finditer(self.source.masked, start, end):
                value = self.source.text[match.start(2) : match.end(2)].strip()
                if value not in {"false", "undefined", "null", "''", '""'}:
                    yield match[1], value

    def _hooks(self, parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the hooks of a group that run before its tests."""
        found = [
            (match.end(), self.source.pairs.get(match.end(), match.end()))
            for start, end in parts
            for match in _BEFORE.finditer(self.source.masked, start, end)
        ]
        return found[:20]

    def _returns_first(self, call: _Call) -> bool:
        """Return True for a test whose function returns before it does anything."""
        body = _BODY.search(self.source.masked, call.arguments[0][1], call.end)
        return bool(body and _RETURN.match(self.source.masked, body.end() + 1))

    def _file_skips(self) -> None:
        """Notice what skips or ends all tests of this file."""
        inside = _Spans((start, end + 1) for start, end in self.source.pairs.items())
        hooks = self._hooks([(0, len(self.source.text))])
        skip, _ = self._skip_inside([hook for hook in hooks if hook[0] - 1 not in inside])
        for match in _EXIT.finditer(self.source.masked):
            if match.start() not in inside:
                skip = skip or f"{match[0]}…)"
        self.found.skip = skip

    def _skip_inside(self, parts: list[tuple[int, int]]) -> tuple[str, str]:
        """Return a skip that the test's own code calls, always or on a condition."""
        condition = ""
        for start, end in parts:
            for match in _SKIP_CALL.finditer(self.source.masked, start, end):
                before = self.source.masked[max(parts[0][0], match.start() - 2000) : match.start()]
                opening = self.source.masked.find("(", match.start())
                arguments = self.source.masked[
                    opening + 1 : self.source.pairs.get(opening, opening)
                ]
                # Playwright's `test.skip(condition, why)` and a skip after any branch depend on it.
                given = arguments.strip(" '\"`")
                is_asked = match[0].startswith(("test", "it")) and not f"{given},".startswith(
                    "true,"
                )
                is_asked = is_asked and bool(given)
                if is_asked or _CONDITION.search(before):
                    condition = condition or f"{match[0]}…)"
                else:
                    return f"{match[0]})", ""
        return "", condition

    def _assertions(self, parts: list[tuple[int, int]]) -> Iterator[Assertion]:
        source = self.source
        for start, end in parts:
            at = start
            while match := _ASSERTION.search(source.masked, at, end):
                number = self.lines.of(match.start())
                stop = source.masked.find("\n", match.start(), end)
                stop = end if stop < 0 else stop
                opening = source.masked.find("(", match.start(), stop)
                if opening >= 0:  # an assertion of several lines ends with its last bracket
                    closing = source.pairs.get(opening, stop)
                    line_end = source.masked.find("\n", closing, end)
                    stop = max(stop, end if line_end < 0 else line_end)
                text = " ".join(
                    source.text[match.start() : min(stop, match.start() + 2000)].split()
                )
                if not (_TRIVIAL.match(text) or self._is_lost(match.start(), text)):
                    yield Assertion(text.rstrip(";, "), number, _strength(text))
                at = max(stop, match.end())

    def _is_lost(self, place: int, text: str) -> bool:
        """Return True for an assertion that is not reached, has no effect, or compares nothing."""
        source = self.source
        if place in self.lost:
            return True
        closing = source.pairs.get(place + len("expect"))
        if not text.startswith("expect(") or closing is None:
            return False
        return not source.masked[closing + 1 : closing + 400].lstrip().startswith(".")

    def _mocks(self, parts: list[tuple[int, int]]) -> Iterator[str]:
        for start, end in parts:
            for match in _SPY.finditer(self.source.masked, start, end):
                if match[1] == self.stem:
                    yield match[0].rstrip(", ")
            for match in _MOCK.finditer(self.source.masked, start, end):
                opening = match.end()
                if opening in self.source.strings:
                    target = self.source.text[opening + 1 : self.source.strings[opening] - 1]
                    if basename(target).split(".")[0] == self.stem:
                        yield target

    def _file_mocks(self) -> None:
        mocks = frozenset(self._mocks([(0, len(self.source.text))]))
        self.found.tests["(file)"] = FoundTest("(file)", 1, "", mocks=mocks, is_group=True)


class _Spans:
    """Parts of a text, joined where they overlap."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(spans):
            if self._ends and start < self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def __contains__(self, position: int) -> bool:
        at = bisect(self._starts, position) - 1
        return at >= 0 and position < self._ends[at]


class _LineNumbers:
    """Answers the line of positions that mostly grow, without counting from the start again."""

    def __init__(self, text: str) -> None:
        self._source = text
        self._at = 0
        self._number = 1

    def of(self, position: int) -> int:
        if position < self._at:
            self._number -= self._source.count("\n", position, self._at)
        else:
            self._number += self._source.count("\n", self._at, position)
        self._at = position
        return self._number

    def text(self, number: int) -> str:
        """Return the line at which the last question ended."""
        del number
        start = self._source.rfind("\n", 0, self._at) + 1
        end = self._source.find("\n", self._at)
        return self._source[start : len(self._source) if end < 0 else end][:400].strip()


def _inner(calls: list[_Call]) -> list[list[_Call]]:
    """Return for each call the calls directly inside it."""
    found: list[list[_Call]] = [[] for _ in calls]
    stack: list[int] = []
    for number, call in enumerate(calls):
        while stack and calls[stack[-1]].end <= call.start:
            stack.pop()
        if stack:
            found[stack[-1]].append(call)
        stack.append(number)
    return found


def _outside(start: int, end: int, inner: list[_Call]) -> Iterator[tuple[int, int]]:
    """Return the parts of a body that belong to no test inside it."""
    for call in inner:
        if call.start > start:
            yield start, call.start
        start = max(start, call.end)
    if start < end:
        yield start, end


def _is_marked(call: _Call) -> bool:
    return call.word[0] == "x" or not _SKIPS.isdisjoint(call.marks)


def _joined(around: list[tuple[_Call, str]]) -> str:
    return " > ".join(name for _, name in around)


def _strength(text: str) -> int:
    if _LOOSE.search(text):
        return LOOSE
    return PARTIAL if _PARTIAL.search(text) else EXACT
