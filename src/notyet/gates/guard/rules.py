"""The rules of the guard: stable ids, the groups that a `notyet.toml` names, and the defaults."""

from __future__ import annotations

import re
from dataclasses import dataclass

from notyet.core.text import clean
from notyet.gates.guard.found_tests import digest
from notyet.gates.kinds import GROUPS_OF_GUARD

_LONGEST = 200  # characters of a line, a name or a test's head that a finding repeats
_CAME = re.compile(r", \d+ came(?=: )")  # which depends on other tests
_MOST_NAMES = 50  # of tests that one finding lists for a declaration


@dataclass(frozen=True)
class Rule:
    """One kind of weakening."""

    group: str
    words: str  # for the documentation and `notyet gates`
    blocks: bool  # by default, in the languages that may block


@dataclass(frozen=True)
class Weakening:
    """One finding: something checks less than it did before."""

    rule: str
    group: str
    path: str
    line: int  # in the new file, or in the old one for what is gone
    what: str  # one sentence for the agent and for reviewers
    before: str  # the old line, or the head of the test
    names: tuple[str, ...]  # that a declaration may use, besides the path
    blocks: bool
    version: str = ""  # of the new file, where the finding stands for any change of it

    @property
    def key(self) -> str:
        """A digest by which the same finding is known again at a later stop."""
        what = _CAME.sub("", self.what)
        return digest(f"{self.rule}\0{self.path}\0{what}\0{self.before}\0{self.version}")


# A group either blocks or tells by default, so that `block` and `tell` can name whole groups.
RULES: dict[str, Rule] = {
    "test-file-deleted": Rule(
        "removed", "a test file was deleted and its tests are nowhere else", True
    ),
    "test-removed": Rule("removed", "a file has fewer tests than before", True),
    "no-longer-parses": Rule("removed", "a test file can no longer be read or parsed", True),
    "snapshot-deleted": Rule("removed", "a snapshot file was deleted", True),
    "test-skipped": Rule("skipped", "a test or a group of tests is always skipped now", True),
    "expected-failure": Rule(
        "skipped", "a test is expected to fail now (`xfail`, `it.fails` …)", True
    ),
    "file-skipped": Rule("skipped", "all tests of a file are skipped now", True),
    "only-marker": Rule("skipped", "`.only` or a focused test turns off all other tests", True),
    "tests-deselected": Rule(
        "skipped", "the test runner's settings leave out more tests than before", True
    ),
    "no-assertions": Rule("emptied", "a test has no assertion left", True),
    "fewer-cases": Rule("emptied", "a parametrized test has fewer cases", True),
    "threshold-lowered": Rule("threshold", "a limit such as `fail_under` is less strict", True),
    "threshold-removed": Rule("threshold", "a limit such as `fail_under` is gone", True),
    "failure-ignored": Rule(
        "harmless", "a failing check no longer fails its script (`|| true`, `--exit-zero` …)", True
    ),
    "check-replaced": Rule("harmless", "a test script does nothing now", True),
    "strictness-off": Rule(
        "strictness", "a strict option or a rule of a checker was turned off", True
    ),
    "conftest-skip": Rule("conftest", "a conftest.py skips, ignores or deselects tests", True),
    "gate-script-changed": Rule("gate-script", "a script that a gate runs was changed", True),
    "notyet-config-changed": Rule("config", "the configuration of notyet was changed", True),
    "test-replaced": Rule("replaced", "tests are gone, and at least as many others came", False),
    "skipped-on-condition": Rule("conditional", "a test is skipped on a condition now", False),
    "fewer-assertions": Rule("weaker", "a test has fewer assertions", False),
    "weaker-assertion": Rule("weaker", "an assertion accepts more than before", False),
    "expected-changed": Rule("weaker", "an assertion compares with other values", False),
    "tolerance-looser": Rule("weaker", "an approximate comparison tolerates more", False),
    "subject-mocked": Rule("weaker", "a test replaces the code that it is about", False),
    "snapshot-changed": Rule("weaker", "a snapshot file has other content", False),
    "conftest-autouse": Rule(
        "weaker", "a conftest.py has a new fixture or hook for all tests", False
    ),
    "ignores-broadened": Rule("ignores", "a checker leaves out more files or rules", False),
    "checks-narrowed": Rule("ignores", "a checker covers less", False),
    "check-config-deleted": Rule("ignores", "the settings file of a checker was deleted", False),
    "check-config-added": Rule("ignores", "a new settings file of a checker", False),
    "suppression-added": Rule(
        "suppressions", "comments that silence a checker were added (`noqa`, `@ts-ignore` …)", False
    ),
    "ci-changed": Rule("ci", "a file of the CI was changed or deleted", False),
    "check-script-changed": Rule("ci", "a script that runs checks was changed", False),
    "failure-ignored-new": Rule("ci", "a new command may fail without effect", False),
    "not-read": Rule("unread", "files were too many, too large or unreadable", False),
}
GROUPS: dict[str, bool] = {
    group: next(rule.blocks for rule in RULES.values() if rule.group == group)
    for group in GROUPS_OF_GUARD
}


def finding(
    rule: str,
    path: str,
    line: int,
    what: str,
    *,
    before: str = "",
    names: tuple[str, ...] = (),
    may_block: bool = True,
    version: str = "",
) -> Weakening:
    """Return a finding with bounded texts that are safe to print."""
    return Weakening(
        rule=rule,
        group=RULES[rule].group,
        path=path,
        line=line,
        what=short(what, 3 * _LONGEST),
        before=short(before),
        names=tuple(dict.fromkeys(name[:_LONGEST] for name in names[:_MOST_NAMES] if name)),
        blocks=RULES[rule].blocks and may_block,
        version=version,
    )


def short(text: str, most: int = _LONGEST) -> str:
    """Return a text on one line, without control characters, and not longer than `most`."""
    line = " ".join(clean(text[: 4 * most]).split())
    return line if len(line) <= most else line[: most - 1] + "…"
