"""The keys of a gate and of an observer in `notyet.toml`: type, default and what each does."""

from __future__ import annotations

from dataclasses import replace

from notyet.config.document import described
from notyet.config.shapes import (
    Choice,
    CommandGlob,
    Either,
    Field,
    FileGlob,
    Flag,
    Glob,
    ListOf,
    MapOf,
    PathBelow,
    Seconds,
    ShapeError,
    Table,
    Text,
    Whole,
    Workspace,
)
from notyet.core.gate import GATE_TIMEOUT, GATED_ENDINGS
from notyet.core.verdict import GROUPS, OUTCOMES
from notyet.gates.kinds import GROUPS_OF_GUARD, KINDS, PRESETS

MAIN, SUBAGENTS, ALL = "main", "subagents", "all"
_WHOM = (MAIN, SUBAGENTS, ALL)
_PATTERNS = ListOf(item=Glob())


class Kind(Glob):
    """A pattern in a list, where the words for all agents mean nothing."""

    def parse(self, value: str) -> str:
        if value in _WHOM:
            hint = 'write for = "main", "subagents" or "all", without a list'
            raise ShapeError(f"is {described(value)}, but a list names kinds of subagents", hint)
        return super().parse(value)


_RUN = Field(
    Either((Text(), ListOf(item=Text(blank=True), least=1))),
    vital=True,
    also=("command", "cmd", "script", "exec", "commands"),
    doc="What to run: a string is a shell script of any length; a list is a program and its "
    "arguments, without a shell.",
)
_PYTHON = Field(
    Text(
        pattern=r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*"
        r":[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*",
        words='a string like "module:function"',
    ),
    vital=True,
    also=("function", "call"),
    doc="Instead of `run`: a Python function, called in its own process with the project on "
    "its path.",
)
_INTERPRETER = Field(
    Text(line=True),
    vital=True,
    doc="The Python that calls the function. Default: the project's `.venv/bin/python` if it "
    "exists, else the one that runs notyet; in a workspace `python3`.",
)
_DIR = Field(
    PathBelow(),
    vital=True,
    also=("cwd", "directory", "folder", "workdir"),
    doc="The folder it runs in, below the folder of this file. Default: that folder.",
)
_ENV = Field(
    MapOf(
        item=Text(blank=True),
        key=Text(pattern="[A-Za-z_][A-Za-z0-9_]*", words="the name of a variable"),
        whole=True,
    ),
    vital=True,
    also=("environment",),
    doc="Environment variables, in addition to those it inherits.",
)
OTHER_WORKSPACE = ("remote", "host", "machine", "ssh", "where")  # other words for a workspace

# What only one kind of gate has; each kind is a module of `notyet.gates`.
_KIND_FIELDS = {
    "uses": Field(
        Choice(tuple(PRESETS)),
        vital=True,
        also=("preset", "use"),
        doc="Instead of `run`: a check that notyet brings along; `notyet gates NAME` explains it.",
    ),
    "guard": Field(
        Choice(("tests",)),
        vital=True,
        doc='Instead of `run`: `"tests"` sends an agent back that weakened tests or checks during '
        "its session and does not say so in its final message.",
    ),
    "strict": Field(
        Flag(),
        default=False,
        vital=True,
        doc="`true`: what the agent says does not count; what it weakened must be restored.",
    ),
    "block": Field(
        ListOf(item=Choice(GROUPS_OF_GUARD)),
        doc="Groups of findings that send the agent back. Default: see the page of the guard.",
    ),
    "tell": Field(
        ListOf(item=Choice(GROUPS_OF_GUARD)),
        doc="Groups of findings that only the user is told. Default: the others.",
    ),
    "allow": Field(
        ListOf(item=FileGlob()),
        default=[],
        also=("ignore",),
        doc="Globs of files that the guard does not look at.",
    ),
    "ran": Field(
        ListOf(item=CommandGlob(), least=1),
        vital=True,
        also=("evidence",),
        doc="Instead of `run`: globs of commands. It passes if the agent's transcript shows that "
        "one of them succeeded after the last edit of a file in `paths`.",
    ),
    "judge": Field(
        Text(most=4000),
        vital=True,
        also=("review", "prompt", "criteria"),
        doc="Instead of `run`: criteria that a model judges, when every other gate passed.",
    ),
    "with": Field(
        Either((Text(), ListOf(item=Text(blank=True), least=1))),
        vital=True,
        also=("model", "using"),
        doc="The command that judges: it reads a prompt from stdin and prints an answer, like "
        "`claude -p --model haiku`.",
    ),
    "calls": Field(
        Whole(least=1, most=1000),
        default=5,
        doc="How often the judge is called in one session.",
    ),
    "fix": Field(
        Text(),
        vital=True,
        also=("fixer", "autofix"),
        doc="A script that runs before the check, on the files that the agent changed "
        "(`{files}`); the agent is told what it changed. Gates with `fix` run one after another, "
        "before others of their priority.",
    ),
    "new_failures_only": Field(
        Flag(),
        default=False,
        vital=True,
        doc="`true`: failures that were there when the session began do not count. Whatever "
        "cannot be compared blocks as usual.",
    ),
    "report": Field(
        PathBelow(words="a path below the gate's folder"),
        doc="A machine-readable report that the command writes, for `new_failures_only`: JUnit "
        "XML, SARIF, or JSON of ruff, eslint or mypy; may be a glob.",
    ),
    "baseline_timeout": Field(
        Seconds(),
        doc="How long the command may take on the files of the session's start. Default: twice as "
        "long as it took now, at least a minute.",
    ),
}
# Keys that mean nothing without another one.
_PARTS = {
    "python": ("interpreter",),
    "run": ("fix", "new_failures_only", "pass_codes"),
    "new_failures_only": ("report", "baseline_timeout"),
    "guard": ("strict", "block", "tell", "allow"),
    "judge": ("with", "calls"),
}

GATE = Table(
    one_of=("run", "python", *KINDS),
    needs=tuple((part, whole) for whole, parts in _PARTS.items() for part in parts),
    apart=(("slow", "priority"), ("slow", "judge"), ("priority", "judge")),
    fields={
        "run": replace(
            _RUN,
            doc=f"{_RUN.doc} `{{files}}` stands for the files that the agent changed, each quoted; "
            "without any, the gate passes.",
        ),
        "python": _PYTHON,
        "interpreter": _INTERPRETER,
        **_KIND_FIELDS,
        "slow": Field(Flag(), default=False, doc="`true`: runs only if all quick gates passed."),
        "priority": Field(
            Whole(least=-1000, most=1000),
            default=0,
            doc="Gates with a higher priority run first, those with the same at the same time. "
            "`slow` is -1.",
        ),
        "paths": Field(
            ListOf(item=FileGlob()),
            default=[],
            also=("files",),
            doc="Globs of the files that it depends on, below the folder of this file (in your own "
            "file: below the top of the repository that the agent works in); `**` stands for any "
            "folders. Default: all files of the repository. See `when`.",
        ),
        "when": Field(
            Choice(("changed", "always")),
            default="changed",
            doc='`"changed"`: runs only if a file that it depends on changed since the session '
            "began and since the gate last passed, as git sees it; outside of git it always "
            'runs. `"always"`: runs at every stop; the default of `python` without `paths`.',
        ),
        "timeout": Field(
            Seconds(),
            default=int(GATE_TIMEOUT),
            doc="How long it may take; then it is ended and counts as broken. Less, where the host "
            "waits less.",
        ),
        "pass_codes": Field(
            ListOf(item=Whole(least=0, most=255), least=1),
            default=[0],
            doc="Exit codes that mean passed.",
        ),
        "hint": Field(
            Text(blank=True, most=2000),
            default="",
            also=("message",),
            doc="A message for the agent when it is sent back, besides the output.",
        ),
        "if_broken": Field(
            Choice(("allow", "block")),
            default="block",
            doc='What happens if it cannot start, crashes or times out: `"block"` sends the agent '
            'back, `"allow"` lets it finish, which is told as NOT CHECKED. A machine that cannot '
            'be reached blocks only if you write `"block"`.',
        ),
        "for": Field(
            Either((Choice(_WHOM), Glob(unlike=_WHOM), ListOf(item=Kind(), least=1))),
            default=MAIN,
            vital=True,
            also=("agents", "matcher"),
            doc='Which agents it gates: `"main"`, `"subagents"`, `"all"`, or patterns for kinds of '
            "subagents.",
        ),
        "never": Field(
            _PATTERNS,
            default=[],
            vital=True,
            also=("except", "exclude"),
            doc="Patterns for subagents that it does not gate.",
        ),
        "dir": replace(
            _DIR,
            doc="The folder it runs in, below the folder of this file, or below the path of its "
            "workspace. Default: that folder.",
        ),
        "workspace": Field(
            Workspace(),
            vital=True,
            also=OTHER_WORKSPACE,
            doc="The machine and folder it runs in, instead of that of the file: "
            '`"ssh://dev@box/srv/app"`, or `"local"` for the machine that this file is on.',
        ),
        "observe": Field(
            Flag(),
            default=False,
            vital=True,
            doc="`true`: it runs and is recorded, and never sends an agent back.",
        ),
        "endings": Field(
            ListOf(item=Choice(GATED_ENDINGS), least=1),
            default=["done"],
            doc="The endings of an agent's turn at which the gate runs.",
        ),
        "env": _ENV,
    },
)

OBSERVER = Table(
    one_of=("run", "python"),
    needs=(("interpreter", "python"),),
    fields={
        "run": _RUN,
        "python": _PYTHON,
        "interpreter": _INTERPRETER,
        "timeout": Field(Seconds(), default=10, doc="How long it may take."),
        "on": Field(
            ListOf(item=Choice((*OUTCOMES, *GROUPS)), least=1),
            vital=True,
            also=("outcomes",),
            doc="The outcomes it is run for. Default: all. `not_passed` stands for capped, stuck, "
            "handed_back and overridden; `not_checked` for failed_open and for stops that were "
            "skipped although there was something to check. For an overridden stop it runs at the "
            "next stop, with the event of that one.",
        ),
        "dir": _DIR,
        "env": _ENV,
    },
)
