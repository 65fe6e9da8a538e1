"""`uses = "pre-commit" | "lefthook" | "hk"`: run a project's own hooks on the changed files."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notyet.core.text import bounded, clean, visible
from notyet.gates.changed_files import changed_files, contents_of
from notyet.gates.question import Answer
from notyet.gates.working_tree import (
    Unclear,
    lines_of_names,
    run_program,
    split_by_length,
    tree_of,
)
from notyet.git.run import own_environ

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from notyet.gates.question import Question
    from notyet.gates.working_tree import Finished, WorkingTree

_MOST_SAID = 6000  # characters of a tool's output in a message
_MOST_KEPT = 200_000  # in the log
# What command line parsers say about an option that they do not know.
_UNKNOWN_OPTION = (b"flag provided but not defined", b"unknown flag", b"unexpected argument")
_PLACES = (os.path.join(".venv", "bin"), os.path.join("node_modules", ".bin"))


@dataclass(frozen=True, kw_only=True)
class HookTool:
    """A program that runs the hooks of a project."""

    name: str
    files: tuple[str, ...]  # one of them configures it
    args: tuple[str, ...]
    programs: tuple[str, ...] = ()  # that understand these arguments; default: its name
    by_stdin: bool = False  # it reads the names of files there, each with a NUL at its end
    broken: frozenset[int] = frozenset()  # exit codes that say nothing about the files
    install: str


def _variants(name: str, folders: Sequence[str], ends: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{folder}{name}.{end}" for folder in folders for end in ends)


TOOLS = {
    tool.name: tool
    for tool in (
        HookTool(
            name="pre-commit",
            files=(".pre-commit-config.yaml", "prek.toml"),
            args=("run", "--files"),
            programs=("pre-commit", "prek"),
            broken=frozenset((3, 130)),  # an error of its own, and an interrupt
            install="pipx install pre-commit",
        ),
        HookTool(
            name="lefthook",
            files=_variants("lefthook", ("", ".", ".config/"), ("yml", "yaml", "toml", "json")),
            args=(
                *("run", "pre-commit", "--files-from-stdin", "--no-tty"),
                *("--no-auto-install", "--no-stage-fixed"),  # leave .git alone
            ),
            by_stdin=True,
            install="npm install --save-dev lefthook",
        ),
        HookTool(
            name="hk",
            files=_variants("hk", ("", ".config/"), ("pkl", "toml", "yaml", "yml", "json")),
            args=("check", "--check", "--no-stage"),
            install="mise use hk",
        ),
    )
}


def configured(tool: HookTool, root: str) -> str:
    """Return the file that configures a tool; empty if there is none."""
    return next((name for name in tool.files if os.path.isfile(os.path.join(root, name))), "")


def find_program(tool: HookTool, roots: Iterable[str]) -> str:
    """Return the path of a tool: the project's own comes first, then the PATH; empty for none."""
    roots = list(dict.fromkeys(filter(None, roots)))
    names = list(tool.programs or (tool.name,))
    if any(configured(tool, root) == "prek.toml" for root in roots):
        names.reverse()
    for name in names:
        for root in roots:
            for place in _PLACES:
                program = os.path.join(root, place, name)
                if os.path.isfile(program) and os.access(program, os.X_OK):
                    return program
        program = shutil.which(name) or ""
        if program:
            return program
    return ""


def check(question: Question) -> Answer:
    """Run the tool that the gate names; send the agent back if it fails or rewrites files."""
    tool = TOOLS[question.options["uses"]]
    tree = tree_of(question)
    if not configured(tool, tree.root):
        wanted, place = " or ".join(tool.files[:2]), visible(tree.root)
        raise Unclear(f"{tool.name} is not configured: there is no {wanted} in {place}")
    program = find_program(tool, (tree.root, question.folder))
    if not program:
        raise Unclear(f"{tool.name} is not installed; run: {tool.install}")
    files = changed_files(question, tree).existing()
    if not files:
        return Answer(note="no file changed")
    before = contents_of(tree.root, files)
    runs = _run(tool, program, tree, files)
    after = contents_of(tree.root, changed_files(question, tree).existing())
    rewritten = sorted(
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    )
    said = b"".join(done.out for done in runs)
    output = bounded(clean(said.decode("utf-8", "replace")).strip(), _MOST_KEPT)
    failed = [done.code for done in runs if done.code]
    if failed and any(words in said for words in _UNKNOWN_OPTION):
        raise Unclear(f"this {tool.name} does not know the options of a newer one; update it")
    if tool.broken.intersection(failed):
        last = output.splitlines()[-1] if output else ""
        raise Unclear(f"{tool.name} failed with exit code {failed[0]}: {bounded(last, 300)}")
    changed = f"It changed these files:\n{lines_of_names(rewritten)}" if rewritten else ""
    if not failed and not rewritten:
        return Answer(note=f"{tool.name} passed on {len(files)} changed files", output=output)
    if not failed:
        ask = "Read what it changed (git diff), then finish."
        return Answer(reason=f"{tool.name} passed.\n{changed}\n{ask}", output=output)
    ask = "Fix what it found in the files you changed."
    if rewritten:
        ask = "Read what it changed (git diff), keep it, and fix the rest."
    parts = (
        f"{tool.name} failed on the files you changed (exit code {failed[0]}):",
        bounded(output, _MOST_SAID),
        changed,
        ask,
    )
    return Answer(reason="\n".join(filter(None, parts)), output=output)


def _run(tool: HookTool, program: str, tree: WorkingTree, files: Sequence[str]) -> list[Finished]:
    """Run the tool on the files, in several runs if their names are too long for one."""
    # The tool may clone its hooks, so only locks are off, and not the network.
    environ = own_environ() | {
        "GIT_OPTIONAL_LOCKS": "0",
        "NO_COLOR": "1",
        "PRE_COMMIT_COLOR": "never",
    }
    argv = [program, *tool.args]
    if tool.by_stdin:
        given = b"".join(os.fsencode(name) + b"\0" for name in files)
        done = run_program(argv, tree.root, environ, tree.ends, given=given, is_merged=True)
        return [done]
    return [
        run_program([*argv, *part], tree.root, environ, tree.ends, is_merged=True)
        for part in split_by_length(files)
    ]
