"""The tests of Go, Rust, Java, Kotlin, Ruby, C# and PHP files, found by words and brackets.

Findings in these languages only tell: no history of real projects has shown how often they are
right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notyet.gates.guard.found_tests import (
    EXACT,
    LOOSE,
    Assertion,
    FoundTest,
    TestsOfFile,
    digest,
)
from notyet.gates.guard.masking import Masked, mask

if TYPE_CHECKING:
    from collections.abc import Iterator

_WINDOW = 600  # characters after an attribute in which its function must begin
_MOST_TESTS = 20_000


@dataclass(frozen=True)
class _Language:
    mark: re.Pattern[str]  # what begins a test: an attribute, or its head with a group `name`
    function: re.Pattern[str] | None  # the function after an attribute, with a group `name`
    skip: re.Pattern[str]
    assertion: re.Pattern[str]
    loose: re.Pattern[str]
    case: re.Pattern[str] | None = None  # one more case of a parametrized test, in its head


_QUOTED = r"""(?P<quote>['"])"""
_LANGUAGES = {
    "go": _Language(
        re.compile(
            r"(?m)^func (?P<name>(?:Test|Fuzz|Example)\w*+)\s{0,9}\(|\b\w{1,9}\.Run\((?P<quote>\")"
        ),
        None,
        re.compile(r"\b\w{1,9}\.Skip(?:f|Now)?\("),
        re.compile(
            r"\b\w{1,9}\.(?:Error|Fatal|Fail)\w*+\(|\b(?:assert|require|is|qt|c)\.[A-Z]\w*+\("
        ),
        re.compile(r"^(?:assert|require)\.(?:NotNil|True|NotEmpty|NoError)\("),
    ),
    "rust": _Language(
        re.compile(r"#\[(?:\w+::){0,4}(?:test|rstest|test_case|quickcheck)\b[^\]\n]{0,200}\]"),
        re.compile(r"\bfn\s{1,9}(?P<name>\w+)"),
        re.compile(r"#\[ignore\b"),
        re.compile(r"\b(?:debug_)?assert\w*+!|\bpanic!|\bunreachable!|\bshould_panic\b"),
        re.compile(r"^assert!"),
    ),
    "java": _Language(
        re.compile(r"@(?:Test|ParameterizedTest|RepeatedTest|TestFactory|Property)\b"),
        re.compile(r"\b(?:void|fun)\s{1,9}(?P<name>`[^`\n]{1,200}`|\w+)\s{0,9}\("),
        re.compile(r"@(?:Disabled|Ignore)\b|\benabled\s{0,9}=\s{0,9}false\b"),
        re.compile(r"\b(?:assert\w*+|verify\w*+|expect\w*+|fail|should\w*+)\s{0,9}[({]|\bassert\b"),
        re.compile(r"^assert(?:True|NotNull|False)\b"),
        re.compile(r"@CsvSource|@ValueSource"),
    ),
    "ruby": _Language(
        re.compile(
            r"(?m)^[ \t]{0,40}(?:def (?P<name>test_\w++[?!]?)|"
            rf"(?P<word>[xf]?(?:it|specify|scenario|example|test))[ \t(]{{1,3}}{_QUOTED})"
        ),
        None,
        re.compile(r"(?m)^[ \t]{0,40}(?:skip|pending)\b|,\s{0,9}:?(?:skip|pending)\b"),
        re.compile(r"\bexpect\b|\bassert\w*+|\brefute\w*+|\.should\b|\bmust_\w+|\bis_expected\b"),
        re.compile(r"^(?:assert |refute_nil|expect.*be_truthy|expect.*not_to be_nil)"),
    ),
    "csharp": _Language(
        re.compile(
            r"\[(?:Skippable)?(?:Fact|Theory|Test|TestMethod|TestCase|DataTestMethod)\b(?!Fixture)"
        ),
        re.compile(
            r"\b(?:void|Task|ValueTask|IEnumerator)(?:<[^>\n]{0,80}>)?\s{1,9}(?P<name>\w+)\s{0,9}\("
        ),
        re.compile(r"\bSkip\s{0,9}=|\[Ignore\b|\bAssert\.(?:Ignore|Inconclusive)\b"),
        re.compile(r"\bAssert\.\w++|\.Should\w*+\(|\bVerify\w*+\("),
        re.compile(r"^Assert\.(?:True|NotNull|IsTrue|IsNotNull)"),
        re.compile(r"\[(?:InlineData|TestCase|DataRow)\b"),
    ),
    "php": _Language(
        re.compile(
            r"\bfunction\s{1,9}(?P<name>test\w*+)\s{0,9}\(|#\[Test\]\s{0,40}(?:public )?function "
            rf"(?P<other>\w++)|(?<![\w>$:])(?P<word>it|test)\({_QUOTED}"
        ),
        None,
        re.compile(r"markTestSkipped|markTestIncomplete|->(?:skip|todo)\("),
        re.compile(r"(?:->|::)(?:assert|expect)\w*+\(|\bexpect\(|->to[A-Z]\w*+\("),
        re.compile(r"assert(?:True|NotNull|NotEmpty)\("),
    ),
}


def tests_of(path: str, source: str, language: str) -> TestsOfFile:
    """Return the tests of a file in one of these languages."""
    masked = mask(source, language)
    rules = _LANGUAGES[language]
    found = TestsOfFile(path)
    heads = list(_heads(masked, rules))
    line, at = 1, 0
    for number, (start, begin, name, word) in enumerate(heads):
        following = heads[number + 1][0] if number + 1 < len(heads) else len(source)
        end = _body_end(masked, begin, following, language)
        line += source.count("\n", at, start)
        at = start
        found.add(_test(masked, rules, (start, begin, end), line, name=name, word=word))
    return found


def _heads(masked: Masked, rules: _Language) -> Iterator[tuple[int, int, str, str]]:
    """Return where tests start, where their heads end, their names and their first words."""
    last = -1
    for number, match in enumerate(rules.mark.finditer(masked.masked)):
        if number == _MOST_TESTS:
            return
        groups = match.groupdict()
        start, end = match.start(), match.end()
        if rules.function:
            function = rules.function.search(masked.masked, end, end + _WINDOW)
            if not function or function.start() == last:  # several attributes, one function
                continue
            if "}" in masked.masked[end : function.start()]:
                continue
            last = function.start()
            yield start, function.end(), function["name"].strip("`"), ""
            continue
        name = groups.get("name") or groups.get("other")
        if not name:
            close = masked.strings.get(end - 1)
            if close is None:
                continue
            name, end = masked.text[end : close - 1], close
        yield start, end, name[:300], groups.get("word") or ""


def _body_end(masked: Masked, begin: int, following: int, language: str) -> int:
    if language == "ruby":
        return following
    opening = masked.masked.find("{", begin, begin + _WINDOW)
    end = masked.pairs.get(opening, following) if opening >= 0 else following
    return max(end, begin)


def _test(
    masked: Masked, rules: _Language, span: tuple[int, int, int], line: int, *, name: str, word: str
) -> FoundTest:
    start, begin, end = span
    # Attributes may stand before the one that marks the test.
    before = masked.masked[max(0, start - 200) : start]
    opened = start - len(before) + max(before.rfind(sign) for sign in "{};") + 1
    first = max(opened if opened > start - len(before) else start, 0)
    head = masked.text[first:begin]
    skip = rules.skip.search(masked.masked, first, end)
    texts = [" ".join(part.split()) for part in masked.text[begin:end].split("\n")]
    kept = [text for text in texts if text and not text.startswith(("//", "#"))]
    assertions = tuple(
        _assertions(masked, rules, begin, end, line + masked.text.count("\n", start, begin))
    )
    line_end = masked.text.find("\n", start)
    return FoundTest(
        name=name,
        line=line,
        head=" ".join(masked.text[start : max(begin, line_end)].split()),
        body=digest("".join(kept)),
        lines=frozenset(kept),
        assertions=assertions,
        skip="" if not skip and word[:1] != "x" else (skip[0].strip() if skip else word),
        only=word[:1] == "f",
        cases=max(1, len(rules.case.findall(head))) if rules.case else 1,
        is_empty=not any(re.search(r"\w", text) for text in kept[:50]),
    )


def _assertions(
    masked: Masked, rules: _Language, begin: int, end: int, line: int
) -> Iterator[Assertion]:
    number, at = line, begin
    for match in rules.assertion.finditer(masked.masked, begin, end):
        stop = masked.text.find("\n", match.start())
        text = masked.text[match.start() : len(masked.text) if stop < 0 else stop][:2000]
        number += masked.text.count("\n", at, match.start())
        at = match.start()
        text = " ".join(text.split()).rstrip(";")
        yield Assertion(text, number, LOOSE if rules.loose.search(text) else EXACT)
