"""Compare the tests of changed files: what is gone, skipped, emptied or weaker."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from notyet.gates.guard.files import BLOCKING, is_collected, is_conftest, language, loses_tests
from notyet.gates.guard.rules import finding, short

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from notyet.gates.guard.found_tests import Assertion, FoundTest, TestsOfFile
    from notyet.gates.guard.rules import Weakening

_SIMILAR = 0.5  # share of equal lines from which one test counts as the other, rewritten
_MOST_COMPARED = 40_000  # pairs of tests whose lines are compared for one file
_UNKNOWN = 1_000_000  # cases that are made at run time may be as many as were lost
_LISTED = 5
_HAS_TO_FAIL = re.compile(r"\bxfail\b|expectedFailure|\.(?:fails|failing)$")
_DEFAULT_TOLERANCE = {"places": -7.0, "decimal": -6.0, "toBeCloseTo": -2.0}


class _Placed(NamedTuple):
    path: str
    key: str
    test: FoundTest


@dataclass
class _Pairs:
    """Which old test is which new one."""

    pairs: list[tuple[_Placed, _Placed]] = field(default_factory=list)
    lost: list[_Placed] = field(default_factory=list)
    came: dict[tuple[str, str], _Placed] = field(default_factory=dict)

    def take(self, old: _Placed, new: _Placed) -> None:
        """Note that an old test is a new one, which then is no other."""
        self.pairs.append((old, new))
        self.came.pop((new.path, new.key), None)


def compare_tests(
    old: Mapping[str, TestsOfFile],
    new: Mapping[str, TestsOfFile],
    renames: Mapping[str, str],
    gone_files: frozenset[str],
    unchanged: Collection[TestsOfFile] = (),
) -> Iterator[Weakening]:
    """Return what the new tests check less than the old ones.

    `unchanged` are files that did not change, where copies of lost tests may be.
    """
    pairs = _paired(old, new, renames)
    copies = {_copy_of(test) for file in unchanged for test in _running(file) if test.uses}
    pairs.lost = [
        one
        for one in pairs.lost
        if _copy_of(one.test) not in copies
        and not _has_twin(one, new.get(renames.get(one.path, one.path)))
    ]
    yield from _losses(pairs, old, renames, gone_files)
    for path, tests in old.items():
        now = new.get(renames.get(path, path))
        if now is not None and not is_conftest(path):
            yield from _file_skips(tests, now)
    skipped_groups: set[tuple[str, str]] = set()
    for one, other in sorted(pairs.pairs, key=lambda pair: not pair[0].test.is_group):
        yield from _changes(one, other, skipped_groups)
    known = {(other.path, other.key) for _, other in pairs.pairs}
    for tests in new.values():
        for key, test in tests.tests.items():
            if test.only and (tests.path, key) not in known:
                yield _only(_Placed(tests.path, key, test))


def _running(file: TestsOfFile) -> list[FoundTest]:
    """Return the tests of a file that its runner collects and does not skip."""
    if file.skip or not is_collected(file.path):
        return []
    return [one for one in file.tests.values() if not (one.skip or one.inherited)]


def _copy_of(test: FoundTest) -> tuple[str, str, frozenset[str]]:
    """Return what two tests have in common that check the same."""
    return test.leaf, test.body, test.uses


def _has_twin(lost: _Placed, file: TestsOfFile | None) -> bool:
    """Return True if the file still has the same test, as it had it twice."""
    if file is None or loses_tests(lost.path, file.path):
        return False
    same = (lost.test.name, lost.test.body)
    return bool(lost.test.body) and any((one.name, one.body) == same for one in _running(file))


def _paired(
    old: Mapping[str, TestsOfFile], new: Mapping[str, TestsOfFile], renames: Mapping[str, str]
) -> _Pairs:
    found = _Pairs()
    for path, tests in new.items():
        for key, test in tests.tests.items():
            found.came[path, key] = _Placed(path, key, test)
    gone: list[_Placed] = []
    for path, tests in old.items():
        home = renames.get(path, path)
        for key, test in tests.tests.items():
            one = _Placed(path, key, test)
            same = found.came.get((home, key))
            if same and not loses_tests(one.path, same.path):
                found.take(one, same)
            elif not test.is_group and not test.is_helper:
                gone.append(one)
    gone = _moved(found, gone, renames)
    gone = _rewritten(found, gone, renames)
    found.lost = _merged(found, gone, renames)
    return found


def _moved(found: _Pairs, gone: Sequence[_Placed], renames: Mapping[str, str]) -> list[_Placed]:
    """Pair tests that have the same body or name elsewhere; return the others."""
    by_body: defaultdict[str, list[_Placed]] = defaultdict(list)
    by_leaf: defaultdict[str, list[_Placed]] = defaultdict(list)
    for one in found.came.values():
        if not one.test.is_group and not one.test.is_helper:
            by_leaf[one.test.leaf].append(one)
            if not one.test.is_empty:
                by_body[one.test.body].append(one)
    left: list[_Placed] = []
    for one in gone:
        home = renames.get(one.path, one.path)
        candidates = [
            *(
                other
                for other in by_body.get(one.test.body, ())
                if other.test.leaf == one.test.leaf
            ),
            *(other for other in by_leaf.get(one.test.leaf, ()) if other.path == home),
            *by_body.get(one.test.body, ()),
            *(other for other in by_leaf.get(one.test.leaf, ()) if _is_same_name(one, other)),
        ]
        for other in candidates[:100]:
            is_free = (other.path, other.key) in found.came
            if (
                is_free
                and language(other.path) == language(one.path)
                and not loses_tests(one.path, other.path)
            ):
                found.take(one, other)
                break
        else:
            left.append(one)
    return left


def _is_same_name(old: _Placed, new: _Placed) -> bool:
    """Return True if a test of this name in another file is the old one.

    Python names are functions and rarely mean two things; a title such as "works" does.
    """
    if language(old.path) == "python":
        return True
    return _similarity(old.test, new.test) >= _SIMILAR / 2


def _similarity(old: FoundTest, new: FoundTest) -> float:
    return len(old.lines & new.lines) / max(1, len(old.lines | new.lines))


def _rewritten(found: _Pairs, gone: Sequence[_Placed], renames: Mapping[str, str]) -> list[_Placed]:
    """Pair tests that were renamed and changed within their file; return the others."""
    came: defaultdict[str, list[_Placed]] = defaultdict(list)
    for one in found.came.values():
        if not one.test.is_group and not one.test.is_helper and one.test.lines:
            came[one.path].append(one)
    left: list[_Placed] = []
    budget = Counter[str]()
    for one in gone:
        home = renames.get(one.path, one.path)
        best: tuple[float, _Placed] | None = None
        for other in came.get(home, ()):
            budget[home] += 1
            if budget[home] > _MOST_COMPARED:
                break
            if (other.path, other.key) not in found.came or loses_tests(one.path, other.path):
                continue
            share = _similarity(one.test, other.test)
            if share >= _SIMILAR and (best is None or share > best[0]):
                best = share, other
        if best:
            found.take(one, best[1])
        else:
            left.append(one)
    return left


def _merged(found: _Pairs, gone: Sequence[_Placed], renames: Mapping[str, str]) -> list[_Placed]:
    """Return the tests whose assertions did not all go into other tests that run."""
    added: Counter[str] = Counter()
    unrun = {new for old, new in renames.items() if loses_tests(old, new)}
    for old, new in found.pairs:
        if is_collected(new.path) and not new.test.skip:
            texts = Counter(one.text for one in new.test.assertions)
            texts.subtract(one.text for one in old.test.assertions)
            added += texts
    for one in found.came.values():
        is_test = not (one.test.is_group or one.test.is_helper)
        is_run = is_collected(one.path) and one.path not in unrun
        if is_test and is_run and not (one.test.skip or one.test.inherited):
            added.update(assertion.text for assertion in one.test.assertions)
    lost: list[_Placed] = []
    for one in gone:
        wanted = Counter(assertion.text for assertion in one.test.assertions)
        if wanted and wanted <= added:
            added -= wanted
        else:
            lost.append(one)
    return lost


def _losses(
    pairs: _Pairs,
    old: Mapping[str, TestsOfFile],
    renames: Mapping[str, str],
    gone_files: frozenset[str],
) -> Iterator[Weakening]:
    lost: defaultdict[str, list[_Placed]] = defaultdict(list)
    for one in pairs.lost:
        lost[one.path].append(one)
    gains = _gains(pairs)
    for path, tests in lost.items():
        total = sum(not (one.is_group or one.is_helper) for one in old[path].tests.values())
        names = tuple(one.test.leaf for one in tests)
        listed = ", ".join(short(name, 80) for name in names[:_LISTED])
        if len(names) > _LISTED:
            listed += f" and {len(names) - _LISTED} more"
        home = renames.get(path, path)
        came = 0 if loses_tests(path, home) else gains[home]
        if path in gone_files:
            rule = "test-file-deleted"
            done = "deleted" if home == path else f"renamed to {short(home, 120)}"
            gone = "its test is" if total == 1 else f"{len(names)} of its {total} tests are"
            what = f"the file was {done}, and {gone} nowhere else"
        elif len(names) > came:
            rule = "test-removed"
            extra = f", {came} came" if came else ""
            what = f"{_counted(len(names), 'test')} removed{extra}"
        else:
            rule = "test-replaced"
            what = f"{_counted(len(names), 'test')} gone, and others came"
        first = tests[0].test
        yield finding(
            rule,
            path,
            first.line,
            f"{what}: {listed}",
            before=first.head,
            names=names,
            may_block=_may_block(path) and any(map(_is_run, tests)),
        )


def _gains(pairs: _Pairs) -> Counter[str]:
    """Return how many cases each new file has that no old test was."""
    gains: Counter[str] = Counter()
    for one in pairs.came.values():
        test = one.test
        if test.is_group:
            if test.cases is None:  # `describe.each` multiplies what is inside
                gains[one.path] += _UNKNOWN
        elif not (test.is_helper or test.skip or test.inherited or _says_nothing(one)):
            gains[one.path] += _UNKNOWN if test.cases is None else test.cases
    for old, new in pairs.pairs:
        if new.test.cases is None and old.test.cases is not None:
            gains[new.path] += _UNKNOWN
        elif new.test.cases is not None and old.test.cases is not None:
            gains[new.path] += max(0, new.test.cases - old.test.cases)
    return gains


def _is_run(one: _Placed) -> bool:
    """Return False for a test that was skipped, and for a function that no runner collects."""
    is_function = " > " not in one.test.name and language(one.path) == "python"
    return not one.test.skip and (is_collected(one.path) or not is_function)


def _says_nothing(one: _Placed) -> bool:
    """Return True for a test that checks nothing; in JavaScript, helpers cannot be told."""
    is_sure = language(one.path) == "python"
    return one.test.is_empty or (is_sure and not one.test.assertions and not one.test.helpers)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _may_block(path: str) -> bool:
    return language(path) in BLOCKING


def _file_skips(old: TestsOfFile, new: TestsOfFile) -> Iterator[Weakening]:
    if new.skip and not old.skip:
        what = f"all tests of the file are skipped: `{short(new.skip, 80)}`"
        yield finding("file-skipped", new.path, new.skip_line, what)
    elif new.condition and not old.condition and not old.skip:
        what = f"all tests of the file are skipped on a condition: `{short(new.condition, 80)}`"
        yield finding("skipped-on-condition", new.path, new.skip_line, what)


def _only(placed: _Placed) -> Weakening:
    test = placed.test
    what = f"only “{short(test.leaf, 80)}” runs now; all other tests are left out"
    return finding(
        "only-marker",
        placed.path,
        test.line,
        what,
        before="",
        names=(test.leaf,),
        may_block=_may_block(placed.path),
    )


def _changes(
    old: _Placed, new: _Placed, skipped_groups: set[tuple[str, str]]
) -> Iterator[Weakening]:
    a, b = old.test, new.test
    named = short(b.leaf, 80)
    may_block = _may_block(new.path)
    if b.only and not a.only:
        yield _only(new)
    is_skipped = b.skip or (b.inherited and (new.path, b.inherited) not in skipped_groups)
    if is_skipped and not a.skip and not a.inherited:
        if b.is_group:
            skipped_groups.add((new.path, b.name))
        how = f"`{short(b.skip, 80)}`" if b.skip else f"through {short(b.inherited, 80)}"
        has_to_fail = _HAS_TO_FAIL.search(b.skip)
        what = f"“{named}” is {'expected to fail' if has_to_fail else 'skipped'}: {how}"
        yield finding(
            "expected-failure" if has_to_fail else "test-skipped",
            new.path,
            b.line,
            what,
            before=a.head,
            names=(b.leaf,),
            may_block=may_block,
        )
        return
    if b.condition and not a.condition and not a.skip:
        what = f"“{named}” is skipped on a condition: `{short(b.condition, 80)}`"
        yield finding(
            "skipped-on-condition", new.path, b.line, what, before=a.head, names=(b.leaf,)
        )
    if b.skip or (a.body == b.body and a.cases == b.cases and a.mocks == b.mocks):
        return
    mocked = sorted(b.mocks - a.mocks)
    if mocked:
        listed = ", ".join(short(one, 80) for one in mocked[:3])
        where = "the file" if b.is_group else f"“{named}”"
        what = f"{where} replaces what it is about: {listed}"
        yield finding("subject-mocked", new.path, b.line, what, before=a.head, names=(b.leaf,))
    if b.is_group:
        return
    if a.cases is not None and b.cases is not None and b.cases < a.cases:
        what = f"“{named}” has {_counted(b.cases, 'case')}, before {a.cases}"
        yield finding(
            "fewer-cases",
            new.path,
            b.line,
            what,
            before=a.head,
            names=(b.leaf,),
            # A loop that came may run over the cases that are gone.
            may_block=language(new.path) == "python" and not (b.loops and not a.loops),
        )
    if a.body != b.body:
        yield from _weaker(old, new)


def _weaker(old: _Placed, new: _Placed) -> Iterator[Weakening]:
    a, b = old.test, new.test
    named = short(b.leaf, 80)
    before_texts = Counter(one.text for one in a.assertions)
    now = [one for one in b.assertions if not _is_rest(one, before_texts)]
    now_texts = Counter(one.text for one in now)
    gone = [one for one in a.assertions if one.text in before_texts - now_texts]
    came = [one for one in now if one.text in now_texts - before_texts]
    before = gone[0].text if gone else a.head
    fewer = len(a.assertions) - len(now)
    new_helpers = b.helpers - a.helpers
    if a.assertions and not now and not b.is_helper and not new_helpers:
        what = f"“{named}” has no assertion left, before {len(a.assertions)}"
        yield finding(
            "no-assertions",
            new.path,
            b.line,
            what,
            before=before,
            names=(b.leaf,),
            may_block=language(new.path) == "python",
        )
        return
    if fewer > 0 and not new_helpers:
        what = f"“{named}” has {_counted(len(now), 'assertion')}, before {len(a.assertions)}"
        yield finding("fewer-assertions", new.path, b.line, what, before=before, names=(b.leaf,))
        return
    lost = sum(one.strength for one in a.assertions) - sum(one.strength for one in now)
    if fewer == 0 and lost > 0:
        line = came[0].line if came else b.line
        what = f"“{named}” asserts less"
        if came:
            what += f": `{short(came[0].text, 120)}`"
        yield finding("weaker-assertion", new.path, line, what, before=before, names=(b.leaf,))
        return
    yield from _other_values(new, gone, came)


def _is_rest(one: Assertion, before: Mapping[str, int]) -> bool:
    """Return True for a call such as `validate(x)`, of which an `assert validate(x)` is left."""
    if one.text.startswith("assert") or one.text in before:
        return False
    return any(text.startswith("assert ") and one.text in text for text in before)


def _other_values(
    new: _Placed, gone: Sequence[Assertion], came: Sequence[Assertion]
) -> Iterator[Weakening]:
    """Return assertions that compare the same things with other values or tolerances."""
    shapes: defaultdict[str, list[Assertion]] = defaultdict(list)
    for one in came[:500]:
        shapes[one.shape].append(one)
    named = short(new.test.leaf, 80)
    said: set[str] = set()
    for one in gone[:500]:
        others = shapes.get(one.shape)
        if not others:
            continue
        other = others.pop(0)
        if _is_looser(one.tolerances, other.tolerances):
            rule, what = "tolerance-looser", f"“{named}” tolerates more"
        else:
            rule, what = "expected-changed", f"“{named}” compares with another value"
        if rule not in said:
            said.add(rule)
            yield finding(
                rule,
                new.path,
                other.line,
                f"{what}: `{short(other.text, 120)}`",
                before=one.text,
                names=(new.test.leaf,),
            )


def _is_looser(old: Mapping[str, float], new: Mapping[str, float]) -> bool:
    return any(
        value > old.get(name, _DEFAULT_TOLERANCE.get(name, 1e-6)) for name, value in new.items()
    )
