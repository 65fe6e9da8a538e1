"""Compare settings of checkers: thresholds, strictness, ignores, deselected tests."""

from __future__ import annotations

import json
import re
import tomllib
from posixpath import basename
from typing import TYPE_CHECKING, Any

from notyet.gates.guard.files import is_notyet_config
from notyet.gates.guard.found_tests import digest
from notyet.gates.guard.rules import finding, short
from notyet.gates.guard.settings_files import (
    is_of_one_checker,
    is_readable,
    read_settings,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from notyet.gates.guard.rules import Weakening
    from notyet.gates.guard.settings_files import Settings, Value

_HIGHER_IS_STRICTER = re.compile(
    r"(?:^|[.\-_])(?:fail[_-]under|cov-fail-under|minimum_coverage|min[_-]coverage|coverage_min|"
    r"min-?score|minimum-score)$|(?:hreshold|nyc|c8|check-coverage|per-file)\S{0,60}\.(?:lines|branches|"
    r"functions|statements)$|(?:^|\.)(?:project|patch)\.\S{0,40}\.?target$"
)
_LOWER_IS_STRICTER = re.compile(
    r"(?:^|[.\-_])(?:max[_-]warnings|max-?complexity|max-args|max-branches|max-returns|"
    r"max-statements|max-nested-blocks|max-locals|max-positional-args|cognitive-complexity)$",
    re.IGNORECASE,
)
_BARE = re.compile(r"^(?:lines|branches|functions|statements)(?: #\d+)?$")
_OF_COVERAGE = re.compile(
    r"^(?:lines|branches|functions|statements|all|100|(?:disable|allow-\w+)-coverage)$"
)
_OPTION = re.compile(
    r"--?(?P<key>(?:cov-)?fail[-_]under|max-warnings|max-complexity|lines|branches|functions|"
    r"statements|min-coverage|check-coverage)[= ]\s{0,4}(?P<value>-?\d[\d.]{0,9})"
)
_STRICT = re.compile(
    r"^(?:strict\w*|\w*[Ss]trict|warn_\w+|disallow_\w+|check_untyped_defs|no_implicit\w*|"
    r"noImplicit\w*|noUnused\w*|noUnchecked\w*|noProperty\w*|noFallthrough\w*|exactOptional\w*|"
    r"xfail_strict|branch|check-?[cC]overage|checkJs|alwaysStrict|useUnknownInCatchVariables|"
    r"forbidOnly|errorOnUnmatchedPattern|failOnWarning|failOnRisky|noEmitOnError|all)$"
)
_LOOSE = re.compile(
    r"^(?:ignore_errors|ignore_missing_imports|allow_untyped\w*|allow_any\w*|allow_redefinition|"
    r"implicit_optional|implicit_reexport|skipLibCheck|noCheck|allowUnreachableCode|allowUnusedLabels|"
    r"passWithNoTests|ignoreBuildErrors|ignoreDuringBuilds|allowOnly|allowUncaught|"
    r"dangerouslyIgnoreUnhandledErrors|skip_covered_checks|exit-zero|exit_zero|allow-incomplete-coverage|"
    r"allow-empty-coverage|disable-coverage)$"
)
_SEVERITY = {"off": 0, "none": 0, "0": 0, "information": 1, "warn": 1, "warning": 1, "1": 1}
_SEVERITY |= {"error": 2, "2": 2, "0.0": 0, "1.0": 1, "2.0": 2, "true": 2, "false": 0}
_MODES = {"off": 0, "basic": 1, "standard": 2, "recommended": 3, "strict": 4, "all": 5}
_IGNORES = re.compile(
    r"(?:ignore|exclude|omit|disable|norecursedirs|deselect|suppress|filterwarnings|skip)",
    re.IGNORECASE,
)
_NO_IGNORES = re.compile(
    r"(?:skip_empty|skip_covered|skip_install|skip_missing|skip-magic|skipFormatting)"
)
_SELECTED = re.compile(
    r"(?:^|\.)(?:select|extend-select|enable|enable_error_code|testpaths|files|include|source|"
    r"python_files|python_functions|python_classes|testMatch|testRegex|roots|packages|plugins|"
    r"required_plugins|extends)$",
    re.IGNORECASE,
)
# Settings by which a test runner finds its tests, and those that choose some of them.
_FINDS_TESTS = re.compile(
    r"(?:^|\.)(?:python_files|python_functions|python_classes|testMatch|testRegex)$"
)
_CHOOSES_TESTS = re.compile(
    r"(?:^|\.)(?:testNamePattern|grep|fgrep|grepInvert|dry-?[rR]un|onlyChanged)$"
)
_DESELECTS = re.compile(
    r"^(?:--ignore(?:-glob)?|--deselect|-k|--testPathIgnorePatterns|--exclude)(?:=|$)"
)
# Options of pytest by which it runs fewer tests, or none.
_RUNS_FEWER = re.compile(
    r"^(?:-[km].*|--(?:co|collect-only|collectonly|lf|last-failed|setup-plan|setup-only|fixtures|"
    r"markers|help|version|noconftest)|-h|-V|-pno:python)$"
)
_RUNS_OTHERWISE = {
    "--no-cov": ("strictness-off", "coverage is no longer measured"),
    "--suppress-no-test-exit-code": ("strictness-off", "a run without tests passes"),
    "--reruns": ("checks-narrowed", "tests that fail are run again"),
}
# What `strict = true` turns on, in mypy and in TypeScript. Of these, newer versions have
# `no_implicit_optional` on by default.
_PARTS_OF_STRICT = frozenset(
    {
        *("warn_unused_configs", "disallow_any_generics", "disallow_subclassing_any"),
        *("disallow_untyped_calls", "disallow_untyped_defs", "disallow_incomplete_defs"),
        *("check_untyped_defs", "disallow_untyped_decorators", "warn_redundant_casts"),
        *("warn_unused_ignores", "warn_return_any", "no_implicit_reexport", "strict_equality"),
        *("strict_bytes", "strict_concatenate", "no_implicit_optional", "strict_optional"),
        *("noImplicitAny", "noImplicitThis", "strictNullChecks", "strictFunctionTypes"),
        *("strictBindCallApply", "strictPropertyInitialization", "alwaysStrict"),
        *("strictBuiltinIteratorReturn", "useUnknownInCatchVariables"),
    }
)
_STRICT_OPTIONS = frozenset({"--strict-markers", "--strict-config", "--strict", "-Werror"})
_NOTYET_TABLE = re.compile(r"^\[+tool\.notyet", re.MULTILINE)


def compare_settings(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Weakening]:
    """Return what the checkers of changed settings files check less than before."""
    before = {path: read_settings(path, text) for path, text in old.items()}
    now = {path: read_settings(path, text) for path, text in new.items()}
    everywhere = _joined(now.values())
    earlier = _joined(before.values())
    gone = _joined(
        {key: value for key, value in settings.items() if key not in now.get(path, {})}
        for path, settings in before.items()
    )
    for path in now.keys() - before.keys():
        yield from _new_file(path, new[path], now[path], earlier)
    for path, settings in before.items():
        if path not in new:
            if settings and not any(key in everywhere for key in settings):
                what = "the settings of a checker were deleted"
                yield finding("check-config-deleted", path, 1, what, before=old[path][:200])
        elif settings and not now[path] and not is_readable(path, new[path]):
            continue  # its own tool fails, too
        after = now.get(path, {})
        lines = _Lines(old[path], new.get(path, ""))
        for key in sorted(set(settings) | set(after)):
            value = after.get(key, everywhere.get(key))
            is_implied = value is None and _is_implied(key, everywhere)
            if not (is_implied or _is_unenforced(key, settings)):
                was = settings.get(key, gone.get(key))  # it may come from another file
                yield from _compare(path, key, was, value, lines)


def _joined(files: Iterable[Settings]) -> Settings:
    joined: Settings = {}
    for settings in files:
        joined |= settings
    return joined


def _new_file(path: str, text: str, settings: Settings, earlier: Settings) -> Iterator[Weakening]:
    """Return what a settings file that was not there leaves out, or may replace."""
    moved = settings.keys() & earlier.keys()
    for key, value in settings.items():
        if key.rsplit(".", 1)[-1] == "addopts" and key not in moved:
            yield from _options(path, key, None, value, _Lines("", text))
    # Files of one checker are read instead of the tables in files that several share.
    if is_of_one_checker(path) and not moved:
        what = "a new settings file of a checker, which may be read instead of another one"
        yield finding("check-config-added", path, 1, what)


def _is_implied(key: str, settings: Settings) -> bool:
    """Return True for an option that a checker's `strict = true` turns on."""
    table, _, last = key.rpartition(".")
    return last in _PARTS_OF_STRICT and settings.get(f"{table}.strict") is True


def _is_unenforced(key: str, before: Settings) -> bool:
    """Return True for a setting of coverage in a file that did not enforce coverage before."""
    table, _, last = key.rpartition(".")
    own = f"{table}." if table else ""
    off = before.get(f"{own}check-coverage", before.get(f"{own}checkCoverage"))
    return off is False and bool(_OF_COVERAGE.match(last))


class _Lines:
    """Finds the line of a key, roughly: the first that has its last part, or its value."""

    def __init__(self, old: str, new: str) -> None:
        self._old = old.split("\n")
        self._new = new.split("\n")

    def now(self, key: str, value: object = None) -> int:
        return self._find(self._new, key, value) or self._find(self._old, key) or 1

    def before(self, key: str, value: object = None) -> str:
        number = self._find(self._old, key, value)
        return self._old[number - 1].strip() if number else ""

    @staticmethod
    def _find(lines: Sequence[str], key: str, value: object = None) -> int:
        last = key.rsplit(".", 1)[-1].partition(" #")[0]
        text = "" if value is None else str(value)
        for number, line in enumerate(lines, 1):
            if last in line and (not text or text in line):
                return number
        for number, line in enumerate(lines, 1):
            if last in line:
                return number
        return 0


def _compare(
    path: str, key: str, old: Value | None, new: Value | None, lines: _Lines
) -> Iterator[Weakening]:
    if old == new:
        return
    last = key.rsplit(".", 1)[-1].partition(" #")[0]
    is_scoped = "[" in key or "overrides" in key  # for some files or modules only
    shown = short(key, 100)
    number_old, number_new = _number(old), _number(new)
    higher = bool(_HIGHER_IS_STRICTER.search(key)) or (bool(_BARE.match(key)) and _is_share(old))
    if (higher or _LOWER_IS_STRICTER.search(key)) and number_old is not None:
        sign = 1 if higher else -1
        if new is None and not (higher and number_old <= 0):
            yield _found("threshold-removed", path, key, f"`{shown}` is gone", lines, old)
        elif number_new is not None and sign * number_new < sign * number_old:
            what = f"`{shown}` is {number_new:g}, before {number_old:g}"
            yield _found("threshold-lowered", path, key, what, lines, new)
        return
    if last in {"addopts", "args"}:
        yield from _options(path, key, old, new, lines)
        return
    if (
        isinstance(old, tuple | str | None)
        and isinstance(new, tuple | str | None)
        and _IGNORES.search(key)
    ):
        yield from _more_ignored(path, key, old or (), new or (), lines)
        return
    if _SELECTED.search(key) or _CHOOSES_TESTS.search(key):
        yield from _other_choice(path, key, old, new, lines)
    elif _is_off(key, last, old, new):
        rule = "ignores-broadened" if is_scoped else "strictness-off"
        now = "gone" if new is None else f"`{_shown(new)}`"
        was = "not set" if old is None else f"`{_shown(old)}`"
        yield _found(rule, path, key, f"`{shown}` is {now}, before {was}", lines, None)
    elif new is None and _is_rule(key, last) and _SEVERITY.get(str(old).lower()):
        what = f"`{shown}` is gone, before `{_shown(old or '')}`"
        yield _found("checks-narrowed", path, key, what, lines)


def _other_choice(
    path: str, key: str, old: Value | None, new: Value | None, lines: _Lines
) -> Iterator[Weakening]:
    """Compare settings that say which files, rules or tests count."""
    shown = short(key, 100)
    had, has = _listed(old), _listed(new)
    if _CHOOSES_TESTS.search(key):
        if new:
            what = f"`{shown}` leaves out tests: {short(_shown(new), 120)}"
            yield _found("tests-deselected", path, key, what, lines, new)
    elif old is None:
        if _FINDS_TESTS.search(key) and has:
            what = f"`{shown}` is new: {short(', '.join(has), 120)}"
            yield _found("checks-narrowed", path, key, what, lines)
    elif new is not None or isinstance(old, tuple):
        gone = [one for one in had if one not in has]
        if gone and not (key.endswith("extends") and len(has) >= len(had)):
            what = f"`{shown}` no longer has {short(', '.join(gone[:4]), 120)}"
            yield _found("checks-narrowed", path, key, what, lines)


def _is_off(key: str, last: str, old: Value | None, new: Value | None) -> bool:
    """Return True if an option that makes a checker strict is off now, or a loose one is on."""
    if _STRICT.match(last) and old is True and new in {False, None}:
        return True
    if _LOOSE.match(last) and new is True:
        return True
    if (
        last in {"typeCheckingMode", "mode"}
        and str(old) in _MODES
        and (new is None or str(new) in _MODES)
    ):
        return _MODES.get(str(new), 2) < _MODES[str(old)]
    if last == "follow_imports":
        return str(new) in {"skip", "silent"} and str(old) not in {"skip", "silent"}
    if _is_rule(key, last) and new is not None and str(new).lower() in _SEVERITY:
        severity = _SEVERITY[str(new).lower()]
        if old is None:  # a rule that an extended set turns on
            return severity == 0
        return severity < _SEVERITY.get(str(old).lower(), 0)
    return False


def _is_rule(key: str, last: str) -> bool:
    return "rules" in key.split(".")[:-1] or last.startswith("report")


def _options(
    path: str, key: str, old: Value | None, new: Value | None, lines: _Lines
) -> Iterator[Weakening]:
    """Compare the command line in settings, e.g. pytest's `addopts`."""
    before, now = words_of(old or ""), words_of(new or "")
    for number, word in enumerate(now):
        value = now[number + 1] if number + 1 < len(now) and "=" not in word else ""
        is_new = word not in before or (value and value not in before)
        is_fewer = bool(_DESELECTS.match(word)) or (word == "-m" and value.startswith("not "))
        if key.rsplit(".", 1)[-1] == "addopts":
            is_fewer |= bool(_RUNS_FEWER.match(word)) or (word, value) == ("-p", "no:python")
        if is_fewer and is_new:
            what = f"`{short(key, 60)}` leaves out tests: {short(f'{word} {value}'.strip(), 120)}"
            yield _found("tests-deselected", path, key, what, lines)
        elif word in _RUNS_OTHERWISE and word not in before:
            rule, what = _RUNS_OTHERWISE[word]
            yield _found(rule, path, key, f"{what}: `{word}`", lines)
        elif (word, value) == ("-W", "ignore") and is_new:
            yield _found("ignores-broadened", path, key, "warnings are ignored", lines)
    for word in before:
        if word in _STRICT_OPTIONS and word not in now:
            what = f"`{short(key, 60)}` no longer has {word}"
            yield _found("strictness-off", path, key, what, lines)
    if "-W" in before and "error" in before and "error" not in now:
        yield _found("strictness-off", path, key, "warnings no longer fail the tests", lines)
    was = {match["key"]: float(match["value"]) for match in _OPTION.finditer(" ".join(before))}
    are = {match["key"]: float(match["value"]) for match in _OPTION.finditer(" ".join(now))}
    yield from _limits(path, was, are, lines)


def _limits(
    path: str, was: Mapping[str, float], are: Mapping[str, float], lines: _Lines
) -> Iterator[Weakening]:
    for name, value in was.items():
        sign = -1 if name.startswith("max-") else 1
        if name not in are:
            what = f"`--{name}` is gone, before {value:g}"
            yield _found("threshold-removed", path, name, what, lines)
        elif sign * are[name] < sign * value:
            what = f"`--{name}` is {are[name]:g}, before {value:g}"
            yield _found("threshold-lowered", path, name, what, lines, f"{are[name]:g}")


def _more_ignored(
    path: str, key: str, old: Value, new: Value, lines: _Lines
) -> Iterator[Weakening]:
    if _NO_IGNORES.search(key):
        return
    known = old if isinstance(old, tuple) else (str(old),)
    values = new if isinstance(new, tuple) else (new,)
    more = [str(one) for one in values if one not in known and str(one) != "error"]
    if "error" in known and "error" not in values and "filterwarnings" in key:
        yield _found("strictness-off", path, key, "warnings no longer fail the tests", lines)
    if more:
        what = f"`{short(key, 100)}` has more: {short(', '.join(more[:4]), 120)}"
        yield _found("ignores-broadened", path, key, what, lines, more[0])


def _found(  # noqa: PLR0917  # every rule gives these, in this order
    rule: str, path: str, key: str, what: str, lines: _Lines, value: object = None
) -> Weakening:
    last = key.rsplit(".", 1)[-1]
    names = (key, last) if re.search(r"[_\-A-Z]", last) else (key,)
    return finding(rule, path, lines.now(key, value), what, before=lines.before(key), names=names)


def _listed(value: Value | None) -> tuple[str, ...]:
    """Return the items of a list; in an ini file, it may be a text with spaces."""
    if isinstance(value, tuple):
        return value
    return tuple(value.split()) if isinstance(value, str) else ()


def _number(value: Value | None) -> float | None:
    if isinstance(value, bool) or value is None or isinstance(value, tuple):
        return None
    try:
        return float(str(value).rstrip("%"))
    except ValueError:
        return None


def _is_share(value: Value | None) -> bool:
    number = _number(value)
    return number is not None and 0 < number <= 100  # noqa: PLR2004 - per cent


def _shown(value: Value) -> str:
    if isinstance(value, tuple):
        return short(", ".join(value), 60)
    return short(str(value).lower() if isinstance(value, bool) else str(value), 60)


def compare_limits(path: str, old: str, new: str) -> Iterator[Weakening]:
    """Compare limits on command lines in scripts and CI files, e.g. `--cov-fail-under=90`."""
    was = {match["key"]: float(match["value"]) for match in _OPTION.finditer(old)}
    if was:
        are = {match["key"]: float(match["value"]) for match in _OPTION.finditer(new)}
        yield from _limits(path, was, are, _Lines(old, new))


def compare_notyet(path: str, old: str, new: str | None) -> Iterator[Weakening]:
    """Return a finding if notyet's own configuration changed."""
    if is_notyet_config(path):
        what = (
            "the configuration of notyet was deleted"
            if new is None
            else ("the configuration of notyet was changed")
        )
    elif basename(path) == "pyproject.toml" and _table(old) != _table(new or ""):
        what = "`[tool.notyet]` was changed"
    else:
        return
    line, before = first_difference(old, new or "")
    version = digest(new or "")
    yield finding("notyet-config-changed", path, line, what, before=before, version=version)


def _table(text: str) -> Any:
    try:
        return tomllib.loads(text).get("tool", {}).get("notyet")
    except (tomllib.TOMLDecodeError, RecursionError, AttributeError):
        match = _NOTYET_TABLE.search(text)
        return text[match.start() :] if match else None


def scripts_of(text: str) -> dict[str, str]:
    """Return the `scripts` of a package.json; empty if it cannot be read."""
    try:
        table = json.loads(text).get("scripts", {})
        return {str(key): str(value) for key, value in table.items()}
    except (ValueError, AttributeError, RecursionError):
        return {}


def first_difference(old: str, new: str) -> tuple[int, str]:
    """Return the number of the first line that differs, and what it was."""
    before, now = old.split("\n"), new.split("\n")
    for number, line in enumerate(before, 1):
        if number > len(now) or now[number - 1] != line:
            return number, line.strip()
    return min(len(before) + 1, len(now)), ""
