"""Shell texts: which of their commands must have succeeded if the whole text exited with 0.

A text that the parser does not understand proves nothing.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from notyet.gates.shell_text import ASSIGNMENT, DEEPEST, names, parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notyet.gates.shell_text import AndOr, Pipeline, Script, Simple, Word


# After these, a name may mean something else, or the exit code of the text may be another.
_ALTERING = names("trap alias eval hash enable shopt builtin unalias")
_LEAVING = names("exit return exec logout break continue kill")
_STARTING = names("command time -p")  # in front of a command, which stays one of the shell
_SHELLS = frozenset({"bash", "sh", "zsh", "dash"})
HIDDEN = "its exit code is not the one that the line ends with"


@dataclass(frozen=True, kw_only=True)
class RanCommand:
    """One command of a text."""

    words: tuple[Word, ...]
    proven: bool  # it ran and succeeded, if the text exited with 0
    why: str = ""  # it is not proven
    folder: str | None = ""  # where `cd` led before, relative to the start; None: not known
    writes: bool = False
    silent: bool = False  # its output goes elsewhere
    concurrent: bool = False  # others of the text may have run at the same time

    @property
    def text(self) -> str:
        """The command as it was written, without redirections."""
        return " ".join(word.raw for word in self.words)


def ran_commands(script: str) -> list[RanCommand]:
    """Return the commands of a shell text in their order. Raises NotUnderstood."""
    found: list[RanCommand] = []
    _Walk(found).script(parsed(script), _State(), proven=True, why="")
    return found


# -- what is proven


@dataclass
class _State:
    """What earlier commands of a text did to the shell."""

    folder: str | None = ""
    pipefail: bool = False
    errexit: bool = False
    spoiled: str = ""  # why nothing that follows is proven

    def meet(self, other: _State) -> None:
        """Keep what is true in both: a part of the text that may not have run led from one."""
        self.folder = self.folder if self.folder == other.folder else None
        self.pipefail &= other.pipefail
        self.errexit &= other.errexit
        self.spoiled = self.spoiled or other.spoiled


class _Walk:
    """Goes through a script as the shell does, and notes the commands."""

    def __init__(
        self, found: list[RanCommand], depth: int = 0, *, is_concurrent: bool = False
    ) -> None:
        self._found = found
        self._depth = depth
        self._is_concurrent = is_concurrent

    def script(self, script: Script, state: _State, *, proven: bool, why: str) -> None:
        """Note all commands; `proven`: the script is known to have exited with 0."""
        for number, and_or in enumerate(script):
            is_last = number == len(script) - 1
            is_proven, reason = proven, why
            if and_or.is_background:
                is_proven, reason = False, "it runs in the background (`&`)"
            elif not is_last and not (state.errexit and not and_or.operators):
                is_proven, reason = False, f"a `;` or a new line follows, so {HIDDEN}"
            before, was_concurrent = _State(**vars(state)), self._is_concurrent
            self._is_concurrent |= and_or.is_background
            self._and_or(and_or, state, proven=is_proven, why=reason)
            self._is_concurrent = was_concurrent
            if and_or.is_background:
                state.meet(before)

    def _and_or(self, and_or: AndOr, state: _State, *, proven: bool, why: str) -> None:
        operators = and_or.operators
        last_or = max((n for n, sign in enumerate(operators) if sign == "||"), default=-1)
        is_strict = last_or >= 0 and _always_fails(and_or.pipelines[last_or + 1])
        is_strict = is_strict and operators.count("||") == 1 and last_or == len(operators) - 1
        sure = state  # after the first pipeline, which always runs
        for number, pipeline in enumerate(and_or.pipelines):
            # Only what follows the last `||` must have succeeded; with `|| exit 1`, all before it.
            holds = number <= last_or if is_strict else number > last_or + (last_or >= 0)
            is_proven, reason = proven, why
            if proven and not holds and last_or >= 0:
                is_proven, reason = False, f"`||` is there, so {HIDDEN}"
            before = _State(**vars(state))
            self._pipeline(pipeline, state, proven=is_proven, why=reason)
            if number == 0:
                sure = _State(**vars(state))
            elif operators[number - 1] == "||":
                state.meet(before)
        state.meet(sure)

    def _pipeline(self, pipeline: Pipeline, state: _State, *, proven: bool, why: str) -> None:
        if pipeline.is_negated and proven:
            proven, why = False, "`!` turns its exit code around"
        for number, part in enumerate(pipeline.parts):
            is_last = number == len(pipeline.parts) - 1
            is_proven, reason = proven, why
            if proven and not is_last and not state.pipefail:
                is_proven, reason = False, f"its output goes into a pipe, so {HIDDEN}"
            if state.spoiled:
                is_proven, reason = False, state.spoiled
            is_alone = len(pipeline.parts) == 1
            own = state if is_alone else _State(**vars(state))
            was_concurrent = self._is_concurrent
            self._is_concurrent |= not is_alone
            if isinstance(part, list):
                # The shell forgets `set -e` in a subshell that `&&` or `||` follows.
                own = _State(**{**vars(state), "errexit": False})
                self.script(part, own, proven=is_proven, why=reason)
            else:
                self._simple(part, own, proven=is_proven, why=reason)
            self._is_concurrent = was_concurrent

    def _simple(self, simple: Simple, state: _State, *, proven: bool, why: str) -> None:
        words = simple.words
        inner = _inner_script(words)
        if inner is not None and self._depth < DEEPEST:
            text, own = inner
            own.folder = state.folder
            walk = _Walk(self._found, self._depth + 1, is_concurrent=self._is_concurrent)
            first = len(self._found)
            walk.script(parsed(text), own, proven=proven, why=why)
            if simple.is_silent:
                self._found[first:] = [replace(one, silent=True) for one in self._found[first:]]
            return
        self._found.append(
            RanCommand(
                words=tuple(words),
                proven=proven,
                why=why,
                folder=state.folder,
                writes=simple.writes,
                silent=simple.is_silent,
                concurrent=self._is_concurrent,
            )
        )
        _follow(state, words)


def _follow(state: _State, words: list[Word]) -> None:
    """Note what a command of the shell itself does to it."""
    at = 0  # of the command: `A=1 exit` and `command exit` leave the shell as well
    while at < len(words) and (ASSIGNMENT.match(words[at].raw) or words[at].text in _STARTING):
        at += 1
    if at == len(words):
        return
    name = words[at].text
    if name in {"cd", "pushd"}:
        state.folder = None if at else _entered(state.folder, words)
    elif name == "popd":
        state.folder = None
    elif name == "set" and not at:
        _set(state, [word.text for word in words[1:]])
    elif name in _ALTERING | _LEAVING | {"set"} or (words[at].is_dynamic and "/" not in name):
        state.spoiled = f"`{name}` comes before it"


def _always_fails(pipeline: Pipeline) -> bool:
    """Return True for `exit 1`, `return 1` and `false`."""
    part = pipeline.parts[0]
    if len(pipeline.parts) != 1 or isinstance(part, list) or pipeline.is_negated:
        return False
    words = [word.text for word in part.words]
    is_exit = len(words) == 2 and words[0] in {"exit", "return"}  # noqa: PLR2004  # and its code
    return words == ["false"] or (is_exit and words[1].isdigit() and int(words[1]) % 256 != 0)


def _entered(folder: str | None, words: list[Word]) -> str | None:
    """Return the folder after a `cd`, if its target is written out."""
    if folder is None or len(words) != 2 or words[1].is_dynamic:  # noqa: PLR2004  # and its target
        return None
    target = words[1].text
    return None if target.startswith(("-", "~")) else os.path.join(folder, target)


def _set(state: _State, options: list[str]) -> None:
    """Follow `set -euo pipefail`; with an option that is not known, nothing is proven."""
    at = 0
    while at < len(options):
        option = options[at]
        at += 1
        letters = set(option[1:])
        if option[:1] not in {"-", "+"} or not letters or letters - set("euxvo"):
            state.spoiled = "`set` comes before it"
            return
        is_on = option[0] == "-"
        if "o" in letters:
            name = options[at] if at < len(options) else ""
            at += 1
            if name == "pipefail":
                state.pipefail = is_on
            elif name == "errexit":
                state.errexit = is_on
            elif name not in {"nounset", "xtrace", "verbose"}:
                state.spoiled = "`set` comes before it"
        if "e" in letters:
            state.errexit = is_on


def _inner_script(words: list[Word]) -> tuple[str, _State] | None:
    """Return the text of `bash -lc '…'` and what its options switch on; None for others."""
    if not words or os.path.basename(words[0].text) not in _SHELLS:
        return None
    options = _State()
    at, is_text = 1, False
    while at < len(words) and words[at].text[:1] == "-":
        letters = set(words[at].text[1:])
        if letters - set("lceux") - {"o"} or not letters:
            return None
        options.errexit |= "e" in letters
        at += 1
        if "o" in letters:
            if at >= len(words) or words[at].text != "pipefail":
                return None
            options.pipefail = True
            at += 1
        if "c" in letters:
            is_text = True
            break
    if not is_text or at >= len(words) or words[at].is_dynamic:
        return None
    return words[at].text, options


# -- commands that start other commands

# Options without a value, options with one, and how many words stand before the command. Those that
# lead to another folder are missing: behind them, no command is found.
_Wrapper = tuple[frozenset[str], frozenset[str], int]
_NONE: frozenset[str] = frozenset()
_UV = names(
    """
    --all-extras --all-groups --frozen --isolated --locked --no-dev --no-project --no-sync
    --offline --dev -q --quiet -v --verbose --no-progress --exact --no-config --active
    """
)
_UV_VALUES = names(
    """
    --extra --group --no-group --only-group --with --with-editable --with-requirements
    --python -p --package --project --env-file --index --index-url
    """
)
_WRAPPERS: dict[tuple[str, ...], _Wrapper] = {
    ("timeout",): (
        frozenset({"--preserve-status", "--foreground", "-v", "--verbose"}),
        frozenset({"-k", "--kill-after", "-s", "--signal"}),
        1,
    ),
    ("time",): (frozenset({"-p"}), _NONE, 0),
    ("nice",): (_NONE, frozenset({"-n", "--adjustment"}), 0),
    ("nohup",): (_NONE, _NONE, 0),
    ("command",): (frozenset({"-p"}), _NONE, 0),
    ("exec",): (_NONE, _NONE, 0),
    ("stdbuf",): (_NONE, frozenset({"-i", "-o", "-e"}), 0),
    ("sudo",): (frozenset({"-E", "-n", "-H"}), frozenset({"-u"}), 0),
    ("xvfb-run",): (frozenset({"-a", "--auto-servernum"}), frozenset({"-s", "-n"}), 0),
    ("uv", "run"): (_UV, _UV_VALUES, 0),
    ("uvx",): (_NONE, frozenset({"--with", "--python", "-p", "--from"}), 0),
    ("poetry", "run"): (_NONE, _NONE, 0),
    ("pdm", "run"): (_NONE, _NONE, 0),
    ("pipenv", "run"): (_NONE, _NONE, 0),
    ("hatch", "run"): (_NONE, _NONE, 0),
    ("rye", "run"): (_NONE, _NONE, 0),
    ("pixi", "run"): (frozenset({"--frozen", "--locked"}), frozenset({"-e"}), 0),
    ("conda", "run"): (frozenset({"--no-capture-output"}), frozenset({"-n", "-p"}), 0),
    ("npx",): (frozenset({"-y", "--yes", "--no", "--no-install"}), _NONE, 0),
    ("bunx",): (_NONE, _NONE, 0),
    ("pnpm", "exec"): (_NONE, _NONE, 0),
    ("yarn", "exec"): (_NONE, _NONE, 0),
    ("bundle", "exec"): (_NONE, _NONE, 0),
    ("mise", "exec"): (_NONE, _NONE, 0),
    ("coverage", "run"): (
        frozenset({"--branch", "-a", "--append", "-p", "--parallel-mode"}),
        frozenset({"--source", "--rcfile", "--omit", "--include"}),
        0,
    ),
}
_PYTHON = re.compile(r"(?:python|pypy)(?:\d++(?:\.\d++)?)?")
_PYTHON_FLAGS = names("-B -E -I -P -s -S -u -v -O -q")
_PYTHON_VALUES = frozenset({"-X", "-W"})


def forms(command: RanCommand) -> Iterator[tuple[str, ...]]:
    """Yield the words of a command: as written, then what each wrapper of it starts."""
    yield tuple(word.raw for word in command.words)
    words: tuple[str, ...] | None = tuple(word.text for word in command.words)
    for _ in range(DEEPEST):
        if not words:
            return
        yield words
        if words[0].startswith("./"):
            yield (words[0].removeprefix("./"), *words[1:])
        name = os.path.basename(words[0])
        if name and name != words[0]:
            yield (name, *words[1:])
        words = _unwrapped((name, *words[1:]), words)


def _unwrapped(words: tuple[str, ...], written: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the command that another one starts; None if it starts none that is known."""
    if ASSIGNMENT.match(written[0]):
        return written[1:]
    if words[0] == "env":
        return _after_options(words[1:], frozenset({"-i", "-"}), frozenset({"-u"}), 0)
    if _PYTHON.fullmatch(words[0]) or words[:2] == ("coverage", "run"):
        rest = _after_python(words)
        if rest is not None:
            return rest
    for length in (2, 1):
        wrapper = _WRAPPERS.get(words[:length])
        if wrapper:
            return _after_options(words[length:], *wrapper)
    return None


def _after_options(
    words: tuple[str, ...], flags: frozenset[str], valued: frozenset[str], before: int
) -> tuple[str, ...] | None:
    """Return what follows known options; None after an unknown one, whose value may be next."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        at += 1
        if word == "--":
            break
        if word in valued:
            at += 1
        elif word not in flags and word.partition("=")[0] not in valued and word[:2] not in valued:
            return None
    return words[at + before :] or None


def _after_python(words: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the module and its arguments of `python -m module …`."""
    if words[:2] == ("coverage", "run"):
        flags, valued, _ = _WRAPPERS["coverage", "run"]
        at = 2
    else:
        flags, valued, at = _PYTHON_FLAGS, _PYTHON_VALUES, 1
    while at < len(words):
        word = words[at]
        if word == "-m":
            return words[at + 1 :] or None
        if word in valued:
            at += 2
        elif word in flags or word.partition("=")[0] in valued:
            at += 1
        else:
            return None
    return None
