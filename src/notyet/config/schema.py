"""Every key of `notyet.toml`: its type, its default and what it does; and the formats we read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from notyet.config.document import BadSyntax, Document, Mistake, said
from notyet.config.readers import READERS
from notyet.config.schema_hosts import CONCLAUDE, HOOKS
from notyet.config.shape import (
    Age,
    Choice,
    Either,
    Field,
    FileGlob,
    Flag,
    Glob,
    ListOf,
    MapOf,
    PathBelow,
    Seconds,
    Size,
    Table,
    Text,
    Whole,
    Workspace,
    Wrong,
    check,
)
from notyet.core.gate import GATED_ENDINGS
from notyet.core.limits import Limits
from notyet.core.verdict import OUTCOMES
from notyet.hosts import all_hosts, conclaude
from notyet.hosts.files import READABLE
from notyet.hosts.openclaw import NAME as OPENCLAW

DRAFT = "https://json-schema.org/draft/2020-12/schema"

MAIN, SUBAGENTS, ALL = "main", "subagents", "all"
_WHOM = (MAIN, SUBAGENTS, ALL)
_MANY = 1_000_000
_PATTERNS = ListOf(item=Glob())


class Kind(Glob):
    """A pattern in a list, where the words for all agents mean nothing."""

    def parse(self, value: str) -> str:
        if value in _WHOM:
            hint = 'write for = "main", "subagents" or "all", without a list'
            raise Wrong(f"is {said(value)}; a list holds kinds of subagents", hint)
        return super().parse(value)


NAME = Text(most=80, line=True, says="a name")
_RUN = Field(
    shape=Either((Text(), ListOf(item=Text(blank=True), least=1))),
    vital=True,
    also=("command", "cmd", "script", "exec", "commands"),
    doc="What to run: a text is one script for one shell, of as many lines as you like; "
    "a list is a program and its arguments, without a shell.",
)
_PYTHON = Field(
    shape=Text(
        pattern=r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*"
        r":[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*",
        says='text like "module:function"',
    ),
    vital=True,
    also=("function", "call"),
    doc="Instead of `run`: a Python function, called in a process of its own with the project "
    "on its path.",
)
_INTERPRETER = Field(
    shape=Text(line=True),
    vital=True,
    doc="The Python that calls the function; without it the project's `.venv/bin/python` "
    "where there is one, else the one that runs notyet; in a workspace else its `python3`.",
)
_DIR = Field(
    shape=PathBelow(),
    vital=True,
    also=("cwd", "directory", "folder", "workdir"),
    doc="The folder it runs in, below the folder of this file. Without it: that folder.",
)
_ENV = Field(
    shape=MapOf(
        item=Text(blank=True),
        key=Text(pattern="[A-Za-z_][A-Za-z0-9_]*", says="the name of a variable"),
        whole=True,
    ),
    vital=True,
    also=("environment",),
    doc="Environment variables for it, on top of those it inherits.",
)
_WHERE = ("remote", "host", "machine", "ssh", "where")  # what people may call a workspace

GATE = Table(
    one_of=("run", "python"),
    needs=(("interpreter", "python"),),
    apart=(("slow", "priority"),),
    fields={
        "run": _RUN,
        "python": _PYTHON,
        "interpreter": _INTERPRETER,
        "slow": Field(
            shape=Flag(), default=False, doc="`true`: asked only when the quick ones passed."
        ),
        "priority": Field(
            shape=Whole(least=-1000, most=1000),
            default=0,
            doc="Gates with a higher one are asked first, those with the same together. "
            "`slow` is -1.",
        ),
        "paths": Field(
            shape=ListOf(item=FileGlob()),
            default=[],
            also=("files",),
            doc="Globs of the files that it depends on, below the folder of this file (in your own "
            "file: below the top of the repository that the agent works in); `**` stands for any "
            "folders. Without it: all files of the repository. See `when`.",
        ),
        "when": Field(
            shape=Choice(("changed", "always")),
            default="changed",
            doc='`"changed"`: asked only if a file that it depends on differs from when the '
            "session began, and from when it passed; git tells, and outside of git it is always "
            'asked. `"always"`: asked at every stop.',
        ),
        "timeout": Field(
            shape=Seconds(), default=600, doc="How long it may take. Later, it is broken."
        ),
        "pass_codes": Field(
            shape=ListOf(item=Whole(least=0, most=255), least=1),
            default=[0],
            doc="Exit codes that let the agent finish.",
        ),
        "hint": Field(
            shape=Text(blank=True, most=2000),
            default="",
            also=("message",),
            doc="What the agent should know when it is sent back.",
        ),
        "if_broken": Field(
            shape=Choice(("allow", "block")),
            default="allow",
            doc="What happens when it cannot start, crashes or takes too long.",
        ),
        "for": Field(
            shape=Either(
                (Choice(_WHOM), Glob(unlike=_WHOM), ListOf(item=Kind(), least=1)),
            ),
            default=MAIN,
            vital=True,
            also=("agents", "matcher"),
            doc='Who is asked: `"main"` the main agent, `"subagents"`, `"all"` both, or patterns '
            "for kinds of subagents.",
        ),
        "never": Field(
            shape=_PATTERNS,
            default=[],
            vital=True,
            also=("except", "exclude"),
            doc="Patterns for subagents that are left in peace.",
        ),
        "dir": replace(
            _DIR,
            doc="The folder it runs in, below the folder of this file, or below the path of its "
            "workspace. Without it: that folder.",
        ),
        "workspace": Field(
            shape=Workspace(),
            vital=True,
            also=_WHERE,
            doc="The machine and folder it runs in, instead of that of the file: "
            '`"ssh://dev@box/srv/app"`, or `"local"` for the machine that this file is on.',
        ),
        "observe": Field(
            shape=Flag(),
            default=False,
            vital=True,
            doc="`true`: it is asked and recorded, and never sends anybody back.",
        ),
        "endings": Field(
            shape=ListOf(item=Choice(GATED_ENDINGS), least=1),
            default=["done"],
            doc="How the agent must have ended for the gate to be asked.",
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
        "timeout": Field(shape=Seconds(), default=10, doc="How long it may take."),
        "on": Field(
            shape=ListOf(item=Choice(OUTCOMES), least=1),
            vital=True,
            also=("outcomes",),
            doc="The outcomes it is told of. Without it: all. Of an overridden stop it is told at "
            "the next one, whose event it gets.",
        ),
        "dir": _DIR,
        "env": _ENV,
    },
)

_GIVEN = Limits()
LIMITS = Table(
    fields={
        "max_blocks": Field(
            shape=Whole(most=_MANY),
            default=_GIVEN.max_blocks,
            doc="How often an agent is sent back in one turn; a passing stop refills it.",
        ),
        "session_ceiling": Field(
            shape=Whole(most=_MANY),
            default=_GIVEN.session_ceiling,
            doc="How often in one session, never refilled. 0 is off.",
        ),
        "stuck_after": Field(
            shape=Whole(most=_MANY, never=1, because="nobody would ever be sent back"),
            default=_GIVEN.stuck_after,
            doc="The same failure this often in a row is let go. 0 is off.",
        ),
        "wait_for_background": Field(
            shape=Flag(),
            default=_GIVEN.wait_for_background,
            doc="Whether the main agent is left alone while other agents of its session work.",
        ),
    }
)
START = Table(
    fields={
        "tell": Field(
            shape=Flag(),
            default=False,
            doc="Whether an agent is told at its start which gates it will meet.",
        )
    }
)
LEDGER = Table(
    fields={
        "keep": Field(
            shape=Age(),
            default="90d",
            doc="How long stops, tasks and logs are kept.",
        ),
        "max_size": Field(
            shape=Size(least=1_000_000),
            default="256MB",
            doc="How much the ledger may hold; agents without stops and the oldest stops "
            "make room.",
        ),
        "logs": Field(
            shape=Size(),
            default="64MB",
            doc="How much the logs beside it may hold, with all that gates printed; those of the "
            "newest stop stay in any case.",
        ),
    }
)
READ = Table(
    fields={
        "hosts": Field(
            shape=ListOf(item=Choice(READABLE)),
            default=[],
            doc="Whose own files are read too: the hooks that people wrote for these hosts "
            "become gates.",
        ),
        OPENCLAW: Field(
            shape=Text(line=True),
            doc="Path of an `openclaw.json`: its "
            "`agents.defaults.subagents.maxSteerRestarts` sets `max_blocks`.",
        ),
    }
)
REPLY = Table(
    fields={
        host.name: Field(
            shape=Choice(host.reply_styles),
            default=host.reply_styles[0],
            doc=f'How {host.title} is told to go on: `"context"` as added context, which keeps its '
            'final answer, or `"block"` as a blocking decision.',
        )
        for host in all_hosts()
        if host.reply_styles
    }
)

NATIVE = Table(
    fields={
        "$schema": Field(shape=Text(), doc="Where editors find the schema of this file."),
        "workspace": Field(
            shape=Workspace(),
            also=_WHERE,
            doc="Where the files are that agents work on, if elsewhere: `ssh://dev@box/srv/app`. "
            "The gates run there, over SSH, and the project's own files there are read too. "
            "Observers run here.",
        ),
        "limits": Field(shape=LIMITS, doc="How much patience the gates have."),
        "gates": Field(
            shape=MapOf(item=Either((Text(), GATE)), key=NAME),
            doc='The gates by name. `NAME = "script"` is short for a table with `run`.',
        ),
        "observers": Field(
            shape=MapOf(item=OBSERVER, key=NAME),
            doc="Commands that are told of decisions and cannot change them, by name.",
        ),
        "ledger": Field(
            shape=LEDGER,
            doc="How much of the past is kept. Only in your own `notyet.toml`, not in a project's.",
        ),
        "start": Field(shape=START, doc="What happens when an agent starts."),
        "read": Field(shape=READ, doc="Which other files are read."),
        "reply": Field(shape=REPLY, doc="How hosts are answered."),
    }
)

_MOST_MISTAKES = 200


@dataclass(frozen=True, kw_only=True)
class Format:
    """A kind of file. `page` names its JSON Schema; two formats may share one."""

    shape: Table
    syntax: Literal["toml", "json", "yaml"]
    page: str
    title: str


FORMATS: dict[str, Format] = {
    "notyet": Format(shape=NATIVE, syntax="toml", page="notyet.toml", title="notyet.toml"),
    conclaude.HOST.name: Format(
        shape=CONCLAUDE, syntax="yaml", page="conclaude.yaml", title=".conclaude.yaml"
    ),
    "hooks": Format(
        shape=HOOKS, syntax="json", page="hooks", title="hooks of Claude Code, Codex and Mux"
    ),
    "hooks-toml": Format(
        shape=HOOKS, syntax="toml", page="hooks", title="hooks of Claude Code, Codex and Mux"
    ),
}


@dataclass(frozen=True, kw_only=True)
class Examined:
    """What is right in a file, where it stands, and everything that is wrong."""

    value: dict[str, Any]
    document: Document | None
    mistakes: tuple[Mistake, ...]


def examine(text: str, file: str, format_name: str) -> Examined:
    """Read and check a file's text. Whatever is wrong becomes a mistake; nothing is raised."""
    form = FORMATS[format_name]
    try:
        document = READERS[form.syntax](text)
    except BadSyntax as bad:
        mistake = Mistake(
            file=file, line=bad.line, column=bad.column, message=bad.message, hint=bad.hint
        )
        return Examined(value={}, document=None, mistakes=(mistake,))
    value = {} if document.value is None else document.value  # an empty YAML file
    clean, found = check(value, form.shape)
    mistakes = [
        Mistake(file=file, line=f.line, column=f.column, message=f.message, hint=f.hint)
        for f in document.findings
    ]
    for path, message, hint in found:
        line, column = document.locate(path)
        mistakes.append(Mistake(file=file, line=line, column=column, message=message, hint=hint))
    mistakes.sort(key=lambda mistake: (mistake.line, mistake.column))
    if len(mistakes) > _MOST_MISTAKES:
        more = f"and {len(mistakes) - _MOST_MISTAKES} more mistakes"
        mistakes[_MOST_MISTAKES:] = [Mistake(file=file, message=more)]
    return Examined(value=clean or {}, document=document, mistakes=tuple(mistakes))


def pages() -> dict[str, dict[str, Any]]:
    """Return every JSON Schema by its name."""
    return {
        form.page: {"$schema": DRAFT} | form.shape.schema() | {"title": form.title}
        for form in FORMATS.values()
    }
