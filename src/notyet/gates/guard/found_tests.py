"""The tests of one file as the rules compare them, whatever language they are written in."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256

# How much an assertion says: an exact value, one of many values, or hardly anything.
EXACT = 3
PARTIAL = 2
LOOSE = 1

_LITERAL = re.compile(
    r"""(?:\b[rbfuRBFU]{1,2})?(?:'(?:[^'\\\n]|\\.)*+'|"(?:[^"\\\n]|\\.)*+"|`(?:[^`\\]|\\.)*+`)"""
    r"""|(?<![\w.])-?\d[\w.]*+(?:(?<=[eE])[+-]\d++)?|\b(?:True|False|None|true|false|null|nil|undefined)\b"""
)
_SEVERAL = re.compile(r"\(\)|_(?:, ?_)++|_(?:: ?_)++|\[_?\]|\{_?\}")
_TOLERANCE = re.compile(
    r",\s{0,9}(rel|abs|rel_tol|abs_tol|rtol|atol|delta|places|decimal|significant|precision)"
    r"\s{0,9}=\s{0,9}([-+.\w]{1,40})"
)
_CLOSE_TO = re.compile(
    r"(?:toBeCloseTo|closeTo|approximately|be_within|InDelta|assertAlmostEqual|approx)"
    r"\((?:[^(),]|\([^()]{0,200}\)){1,200}?,\s{0,9}((?:[-\w.]+,\s{0,9})?)([-+.\w]{1,40})\s{0,9}\)"
)
_MORE_DIGITS_IS_STRICTER = frozenset(
    {"places", "decimal", "significant", "precision", "toBeCloseTo"}
)


@dataclass(frozen=True)
class Assertion:
    """One thing that a test checks."""

    text: str  # normalized
    line: int
    strength: int = EXACT

    @property
    def shape(self) -> str:
        """The text with values masked: what is compared, but not with what."""
        masked = _LITERAL.sub("_", _TOLERANCE.sub("", self.text)[:2000])
        return _SEVERAL.sub("_", _SEVERAL.sub("_", masked))

    @property
    def tolerances(self) -> dict[str, float]:
        """The tolerances of an approximate comparison, larger for looser."""
        found: dict[str, float] = {}
        text = self.text[:2000]
        pairs = [(match[1], match[2]) for match in _TOLERANCE.finditer(text)]
        pairs += [(match[0].split("(")[0], match[2]) for match in _CLOSE_TO.finditer(text)]
        for name, value in pairs:
            try:
                number = float(value.rstrip("dDfF"))
            except ValueError:
                continue
            found[name] = -number if name in _MORE_DIGITS_IS_STRICTER else number
        return found


@dataclass(frozen=True)
class FoundTest:
    """One test, or a group of tests such as a class or a `describe`."""

    name: str  # with the groups around it, parted by " > "
    line: int
    head: str  # its first line
    body: str = ""  # a digest that is equal for equal bodies, however they are formatted
    lines: frozenset[str] = frozenset()
    assertions: tuple[Assertion, ...] = ()
    skip: str = ""  # how it is always skipped
    condition: str = ""  # how it is skipped on a condition
    inherited: str = ""  # the group whose skip holds for it
    only: bool = False
    cases: int | None = 1  # None if they are made at run time
    helpers: frozenset[str] = frozenset()  # functions it calls that may hold assertions
    mocks: frozenset[str] = frozenset()  # what it replaces of the code that it is about
    is_group: bool = False
    is_helper: bool = False  # a function with assertions that tests call
    is_empty: bool = False
    loops: bool = False  # it asserts in a loop
    uses: frozenset[str] = frozenset()  # what the names in its body stand for (Python only)

    @property
    def leaf(self) -> str:
        """The test's own name."""
        return self.name.rsplit(" > ", 1)[-1]


@dataclass
class TestsOfFile:
    """The tests of one file."""

    __test__ = False  # for pytest, where a test imports this class

    path: str
    tests: dict[str, FoundTest] = field(default_factory=dict)
    skip: str = ""
    condition: str = ""
    skip_line: int = 1
    _times: Counter[str] = field(default_factory=Counter)

    def add(self, test: FoundTest) -> None:
        """Add a test; a further one of the same name gets a number, as runners keep both."""
        self._times[test.name] += 1
        times = self._times[test.name]
        self.tests[test.name if times == 1 else f"{test.name} #{times}"] = test


def digest(text: str) -> str:
    """Return a short text that is equal for equal texts."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:24]
