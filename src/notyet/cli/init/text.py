"""The text of a notyet.toml: a new one, or one with gates added."""

from __future__ import annotations

import os
import tomllib
from math import ceil
from typing import TYPE_CHECKING

import tomlkit

from notyet.cli.schema import REFERENCE
from notyet.core.gate import GATE_TIMEOUT
from notyet.core.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notyet.cli.init.trial import Trial

_SLOW = 5.0  # seconds from which on a gate runs after the others
_HEAD = """\
# What must be true before an agent may stop here. `notyet init` wrote this file; it is yours now.
# After a change run `notyet trust`: until then the version you trusted stays in force.
# `notyet check` runs the gates now. `notyet schema` lists all keys.
"""
_EXAMPLE = """
# No tests or linters were found here. A gate is a command; an exit code other than 0 sends
# the agent back to work, with what the command printed:
#
# [gates.tests]
# run = "make test"
"""


def file_text(trials: Sequence[Trial], folder: str = "", members: Sequence[str] = ()) -> str:
    """Return the text of a new file; editors get the schema that lies in the folder."""
    has_schema = folder and os.path.isfile(os.path.join(folder, REFERENCE))
    head = f"#:schema {REFERENCE}\n#\n{_HEAD}" if has_schema else _HEAD
    if members:
        head += "\n# The files of these folders apply when a file below the folder changed.\n"
        head += f"members = {_list(members)}\n"
    return f"{head}\n{gates_text(trials)}" if trials else head + _EXAMPLE * (not members)


def gates_text(trials: Sequence[Trial]) -> str:
    """Return the tables of these gates."""
    return "\n".join("\n".join([*gate_lines(trial), ""]) for trial in trials)


def text_with(text: str, trials: Sequence[Trial]) -> str:
    """Return the text of a file with more gates; nothing else in it changes."""
    added = gates_text(trials)
    whole = f"{text.rstrip()}\n\n{added}" if text.strip() else added
    try:
        tomllib.loads(whole)
    except tomllib.TOMLDecodeError:  # `gates` is an inline table, or has dotted keys
        document = tomlkit.parse(text)
        for name, gate in tomllib.loads(added).get("gates", {}).items():
            table = tomlkit.inline_table()
            table.update(gate)
            document["gates"][name] = table
        return tomlkit.dumps(document)
    return whole


def gate_lines(trial: Trial) -> Iterator[str]:
    """Yield the lines of one gate; those of one that was left out are comments."""
    proposal, took = trial.proposal, f"{trial.seconds:.1f} s"
    why = visible(" ".join(trial.why.split()))
    result = {
        "passed": f", passed in {took}",
        "failed": f", failed in {took} ({why})",
        "left out": f", left out: {why}" if why else "",
        "not installed": f", not tried: {why}",
    }.get(trial.result, "")
    line = f":{proposal.line}" if proposal.line else ""
    yield f"# {visible(proposal.file)}{line}{result}"
    uses, run = proposal.uses, proposal.run
    check = f"uses = {_quoted(uses)}" if uses else f"run = {_quoted(run)}"
    lines = [f"[gates.{proposal.name}]", check]
    if proposal.dir:
        lines.append(f"dir = {_quoted(proposal.dir)}")
    if proposal.paths:
        lines.append(f"paths = {_list(proposal.paths)}")
    if trial.seconds > _SLOW and trial.result != "not installed":
        lines.append("slow = true  # runs when the others passed")
    if 2 * trial.seconds > GATE_TIMEOUT:
        lines.append(f'timeout = "{ceil(trial.seconds / 30)}m"')
    if trial.result == "failed":
        instead = ", or write instead: new_failures_only = true" if proposal.run else ""
        lines.append(f"observe = true  # it fails already: fix it and delete this line{instead}")
    comment = "# " if trial.result == "left out" else ""
    yield from (comment + line for line in lines)


def _list(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(_quoted, texts))}]"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
