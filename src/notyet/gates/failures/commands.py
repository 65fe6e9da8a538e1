"""Commands whose output would hide failures, found when the configuration is read."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SEPARATORS = frozenset({";", "&", "&&", "|", "||", "(", ")", "\n", "|&"})
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
_SET_E = re.compile(r"^-[a-z]*e[a-z]*$")
_PYTEST_SHORT = re.compile(r"^-[a-zA-Z]*x[a-zA-Z]*$")
_PYTEST_WITH_VALUE = frozenset("kmcopnWr")  # what follows such a letter is its value
_WRAPPERS = {
    "make": (),
    "gmake": (),
    "tox": (),
    "nox": (),
    "just": (),
    "task": (),
    "npm": ("run", "run-script", "test", "t"),
    "pnpm": ("run", "test", "t"),
    "yarn": ("run", "test"),
    "bun": ("run",),
    "hatch": ("run", "test"),
    "pdm": ("run",),
    "rake": (),
    "bazel": ("test",),
}
_STOPS = {
    "pytest": re.compile(r"^--(?:maxfail|exitfirst|stepwise|sw)(?:=|$)"),
    "unittest": re.compile(r"^(?:--failfast$|-[a-z]*f)"),
    "jest": re.compile(r"^(?:--bail(?:=|$)|-b$)"),
    "vitest": re.compile(r"^--bail(?:=|$)"),
    "mocha": re.compile(r"^(?:--bail(?:=|$)|-b$)"),
    "ava": re.compile(r"^--fail-fast$"),
    "go": re.compile(r"^--?(?:test\.)?failfast(?:=true)?$"),
}
_ONLY_FAILED = {
    "pytest": re.compile(r"^--(?:lf|last-failed)$"),
    "jest": re.compile(r"^(?:--onlyFailures|-f)$"),
}
# Reporters of vitest that leave out errors outside of tests, which fail the run as well.
_SILENT_REPORTERS = frozenset({"json", "junit", "tap", "tap-flat", "html", "blob"})
# Programs that run the rest of their words, and their options that take a value.
_RUNNERS = {
    "uv": ("run",),
    "poetry": ("run",),
    "pipenv": ("run",),
    "rye": ("run",),
    "uvx": (),
    "pipx": ("run",),
    "npx": (),
    "bunx": (),
    "env": (),
    "time": (),
    "nice": (),
    "exec": (),
    "command": (),
    "xvfb-run": (),
    "coverage": ("run",),
}
_RUNNER_VALUES = frozenset(
    {"--with", "--extra", "--group", "--python", "-p", "--package", "--project", "--from", "-n"}
)
_HARMLESS = frozenset({"cd", "pushd", "export", "source", "."})  # no checks
_SHELLS = frozenset({"sh", "bash", "zsh", "dash"})
_MOST_DEPTH = 3  # of shells in shells


def refusals(script: str) -> list[str]:
    """Return what hides failures from `new_failures_only`, each with what to write instead."""
    found = []
    for words, after in _commands(script):
        if after == "&&" and _program(words)[0] not in _HARMLESS:
            found.append("`&&` skips later checks once one fails; write one gate for each check")
        found += _early_exits(words)
        found += _left_out(words)
    return list(dict.fromkeys(found))


def warnings(script: str) -> list[str]:
    """Return advice on a command that is accepted."""
    found = []
    for words, _ in _commands(script):
        name, arguments = _program(words)
        inner = _WRAPPERS.get(name)
        if inner is not None and (not inner or _first_word(arguments) in inner):
            found.append(
                f"`{name}` may run several checks and stop at the first that fails; "
                "run the check itself, one check per gate"
            )
        if name == "pytest" and "--continue-on-collection-errors" not in arguments:
            found.append(
                "add `--continue-on-collection-errors` to pytest, or a file that does not import "
                "keeps all tests from running"
            )
        if name == "go" and _first_word(arguments) == "test" and not {"-v", "-json"} & {*arguments}:
            found.append("add `-v` to `go test`, or a test that no longer runs is not noticed")
    return list(dict.fromkeys(found))


def _early_exits(words: list[str]) -> list[str]:
    name, arguments = _program(words)
    first = _first_word(arguments)
    if name == "set" and ("errexit" in arguments or any(map(_SET_E.match, arguments))):
        return ["`set -e` skips later checks once one fails; write one gate for each check"]
    if name == "cargo" and first in {"test", "t", "nextest"} and "--no-fail-fast" not in arguments:
        runner = "cargo nextest run" if first == "nextest" else "cargo test"
        return [f"`{runner}` stops at the first program that fails; add `--no-fail-fast`"]
    stops = _STOPS.get(name)
    if stops is None or (name == "go" and first != "test"):
        return []
    given = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return [
        f"`{word}` stops {name} at a failure; delete it"
        for word in given
        if stops.match(word) or (name == "pytest" and _is_pytest_exit(word))
    ]


def _left_out(words: list[str]) -> list[str]:
    name, arguments = _program(words)
    only_failed = _ONLY_FAILED.get(name)
    found = [
        f"`{word}` runs only the tests that failed before; delete it"
        for word in arguments
        if only_failed and only_failed.match(word)
    ]
    reporters = [
        word.partition("=")[2] or after
        for word, after in pairwise([*arguments, ""])
        if name == "vitest" and word.partition("=")[0] == "--reporter"
    ]
    if reporters and _SILENT_REPORTERS.issuperset(reporters):
        silent = f"`--reporter={reporters[0]}`"
        found.append(f"{silent} hides errors outside of tests; add `--reporter=default`")
    return found


def _is_pytest_exit(word: str) -> bool:
    """Return True for -x, also among other letters (-qx), but not in the value of an option."""
    if not _PYTEST_SHORT.match(word):
        return False
    letters = word[1:].partition("x")[0]
    return not any(letter in _PYTEST_WITH_VALUE for letter in letters)


def _first_word(arguments: list[str]) -> str:
    return next((word for word in arguments if not word.startswith(("-", "+"))), "")


def _program(words: list[str]) -> tuple[str, list[str]]:
    """Return the name of the program that a command runs in the end, and its arguments."""
    words = list(words)
    while words:
        if _ASSIGNMENT.match(words[0]):
            words.pop(0)
            continue
        name = words.pop(0).rpartition("/")[2]
        if re.match(r"^(?:python|pypy)[\d.]*$", name):
            if "-m" not in words:
                return name, words
            at = words.index("-m")
            words = words[at + 1 :]
            continue
        inner = _RUNNERS.get(name)
        if inner is None or (inner and _first_word(words) not in inner):
            return "pytest" if name in {"py.test", "pytest"} else name, words
        if inner:
            words = words[words.index(_first_word(words)) + 1 :]
        words = _without_options(words)
    return "", []


def _without_options(words: list[str]) -> list[str]:
    """Return the words of an inner command, after the options of the program that runs it."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "-m":  # of `coverage run -m pytest`
            return words[at + 1 :]
        if words[at] == "--":
            return words[at + 1 :]
        at += 2 if words[at] in _RUNNER_VALUES else 1
    return words[at:]


def _commands(script: str, depth: int = 0) -> Iterator[tuple[list[str], str]]:
    """Return the simple commands of a script, each with the operator that follows it."""
    lexer = shlex.shlex(script.replace("\\\n", " "), posix=True, punctuation_chars=";&|()\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words: list[str] = []
    try:
        tokens = list(lexer)
    except ValueError:  # an unclosed quote: the shell will say so
        tokens = script.split()
    for token in [*tokens, ";"]:
        if token.strip("\n") not in _SEPARATORS and token.strip("\n"):
            words.append(token)
            continue
        if words:
            yield words, token.strip("\n")
            name, arguments = _program(words)
            if name in _SHELLS and depth < _MOST_DEPTH:
                yield from _shell(arguments, depth)
        words = []


def _shell(arguments: list[str], depth: int) -> Iterator[tuple[list[str], str]]:
    """Return the commands in `sh -c "..."`; `sh -e` is read as `set -e`."""
    for at, word in enumerate(arguments):
        if not word.startswith("-"):
            return
        if _SET_E.match(word):
            yield ["set", "-e"], ""
        if re.match(r"^-[a-z]*c$", word) and at + 1 < len(arguments):
            yield from _commands(arguments[at + 1], depth + 1)
            return
