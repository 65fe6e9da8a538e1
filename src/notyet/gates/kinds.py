"""The kinds of gates that notyet brings along: the key of each, its module and its defaults.

A new kind is a module here with `check(question)`, a row in this table, and its keys in the schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

LAST = -1001  # below every priority that a file can name


@dataclass(frozen=True, kw_only=True)
class Explained:
    """A key of a gate's table, as `notyet gates` explains it."""

    summary: str  # one line
    explains: str  # what passes, what fails, what happens if it cannot say
    example: str  # TOML to paste into a notyet.toml


@dataclass(frozen=True, kw_only=True)
class Kind(Explained):
    """A kind of gate: its key in a gate's table is what makes a gate one of this kind."""

    module: str  # in this package
    when: Literal["always", "changed"] = "changed"
    if_broken: Literal["allow", "block"] = "block"
    priority: int = 0


KINDS: Mapping[str, Kind] = {
    "uses": Kind(
        summary="a check that notyet brings along",
        explains=(
            "Names a preset instead of a command. A preset that cannot say, because a program or "
            "a file is missing, is broken and says what to install. Presets about git (`git:`) run "
            "at every stop, the others when a file changed."
        ),
        example='[gates.committed]\nuses = "git:committed"\n',
        module="presets",
    ),
    "guard": Kind(
        summary="nothing that checks the work is weakened in silence",
        explains=(
            "Compares the files with those at the session's start. Sends the agent back if it "
            "deleted or skipped tests, removed assertions, lowered a threshold, or changed what a "
            "gate runs, with file, line and what was there before. An agent that names the test "
            "or the file in its final message passes, and you are told; with `strict` it must "
            "restore it. Findings that may be fine are only told to you."
        ),
        example='[gates.guard]\nguard = "tests"\n',
        module="guard.gate",
        when="always",  # what it finds may be declared in the agent's next message
    ),
    "ran": Kind(
        summary="the agent ran the command itself, and it succeeded after the last edit",
        explains=(
            "Runs nothing: it reads the transcript of the agent's host. Passes if a command that "
            "fits one of the globs succeeded after the last edit of a file in `paths`. What the "
            "agent says is no evidence, and neither are `|| true`, `; exit 0` or a run without "
            "tests. For suites that are too expensive for a gate, or cannot run in one."
        ),
        example='[gates.tests]\nran = ["pytest*", "npm test*"]\npaths = ["src/**", "tests/**"]\n',
        module="evidence",
        when="always",  # it is about the transcript
    ),
    "judge": Kind(
        summary="a model judges what no command can, last",
        explains=(
            "Runs the command in `with` when every other gate passed. It reads the criteria, the "
            "task, the diff since the session's start, the last message and how the gates went, "
            "and must answer with yes or no and a reason. No answer is NOT CHECKED. At most "
            "`calls` calls in a session. `notyet log --stats` counts calls, seconds and tokens."
        ),
        example=(
            "[gates.review]\n"
            'judge = "Every change of behaviour is described in CHANGELOG.md."\n'
            'with = "claude -p --model haiku --output-format json"\n'
        ),
        module="judge",
        if_broken="allow",
        priority=LAST,
    ),
}
# What a gate runs without a kind of ours, and what can be added to a command.
COMMAND_KEYS: Mapping[str, Explained] = {
    "run": Explained(
        summary="a command or a script; it passes with exit code 0",
        explains=(
            "A string is a shell script, a list is a program and its arguments. Another exit code "
            "sends the agent back with the end of the output. A command that cannot start, crashes "
            "or times out is broken."
        ),
        example='[gates.tests]\nrun = "pytest -q"\npaths = ["src/**", "tests/**"]\n',
    ),
    "python": Explained(
        summary="a Python function that is called with the stop",
        explains=(
            "The function is called in a process of its own, with the project on its path. It "
            "returns None to pass, or Block('what to do next') to send the agent back."
        ),
        example='[gates.notes]\npython = "tools.gates:has_notes"\n',
    ),
    "{files}": Explained(
        summary="in `run` and `fix`: the files that the agent changed",
        explains=(
            "Stands for the changed and new files below the gate's folder that fit `paths`, each "
            "quoted. Too many for one command line are split over several. Without any, the "
            "command does not run and the gate passes."
        ),
        example='[gates.lint]\nrun = "ruff check {files}"\npaths = ["**/*.py"]\n',
    ),
    "fix": Explained(
        summary="with `run`: a script that runs before the check, on the changed files",
        explains=(
            "Runs once per stop, and only if the agent changed files. The check runs after it and "
            "decides. The agent is told which files it changed. Gates with `fix` run one after "
            "another, before others of their priority."
        ),
        example=(
            '[gates.lint]\nfix = "ruff check --fix {files}"\nrun = "ruff check {files}"\n'
            'paths = ["**/*.py"]\n'
        ),
    ),
    "new_failures_only": Explained(
        summary="with `run`: failures that were there at the session's start do not count",
        explains=(
            "When the command fails, notyet runs it on the files of the session's start, too, and "
            "sends the agent back only with failures that are new. You read how many there were "
            "before. What cannot be compared blocks as usual, with the reason."
        ),
        example='[gates.tests]\nrun = "pytest -q"\nnew_failures_only = true\n',
    ),
}
# What a command gate becomes that needs more than its command; no key of its own.
FILES = "{files}"  # in a command: the files that the agent changed
WITH_FILES = "run"  # `fix`, or `{files}` in `run`
NEW_FAILURES = "new_failures"  # after a command with `new_failures_only` failed
MODULES: Mapping[str, str] = {key: kind.module for key, kind in KINDS.items()} | {
    WITH_FILES: "with_files",
    NEW_FAILURES: "new_failures",
}

PRESETS = (
    "git:committed",
    "git:clean",
    "git:pushed",
    "no:conflicts",
    "no:secrets",
    "pre-commit",
    "lefthook",
    "hk",
)
ABOUT_GIT = "git:"  # these presets are about commits, which `when` does not look at
# What a guard finds, in groups that `block` and `tell` name; the first ones block by default.
GROUPS_OF_GUARD = (
    *("removed", "skipped", "emptied", "threshold", "harmless", "strictness", "conftest"),
    *("gate-script", "config"),
    *("replaced", "conditional", "weaker", "ignores", "suppressions", "ci", "unread"),
)
