"""Presets: gates by name, for what every project wants alike (`uses = "git:committed"`)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notyet.core.text import visible
from notyet.gates import hook_tools, secrets
from notyet.gates.changed_files import changed_files
from notyet.gates.question import Answer
from notyet.gates.working_tree import Unclear, lines_of_names, tree_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import BinaryIO

    from notyet.gates.question import Question
    from notyet.gates.working_tree import Status, WorkingTree

_LARGEST = 16 * 1024 * 1024  # bytes of a file that is searched for conflict markers
_LONGEST_LINE = 64 * 1024  # bytes that are read at once
_OPENING, _CLOSING = b"<<<<<<<", b">>>>>>>"
_MARKER_SIZE = "conflict-marker-size"  # an attribute of git
_USUAL_SIZE = {"unspecified", "7"}


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A gate that only needs its name."""

    name: str
    summary: str  # one line
    explains: str  # what it runs, what passes, what fails, what it costs
    check: Callable[[Question], Answer]  # may raise Unclear


def check(question: Question) -> Answer:
    """Return what the preset says that the gate names."""
    name = question.options.get("uses")
    preset = PRESETS.get(name) if isinstance(name, str) else None
    if preset is None:
        return Answer(problem=f"there is no preset {name!r}; there are {', '.join(PRESETS)}")
    try:
        return preset.check(question)
    except Unclear as unclear:
        return Answer(problem=str(unclear))


def _committed(question: Question) -> Answer:
    return _uncommitted(tree_of(question).status("normal"))


def _uncommitted(status: Status) -> Answer:
    changed = sorted({*status.changed, *status.unmerged})
    parts = []
    if changed:
        parts.append(f"These changes are not committed:\n{lines_of_names(changed)}")
    if status.untracked:
        parts.append(f"These files are not in git:\n{lines_of_names(sorted(status.untracked))}")
    if not parts:
        return Answer(note="nothing to commit")
    parts.append(
        "Commit your work. Do not commit what does not belong to it: remove the files that you "
        "made only to try something, and add what must stay outside of git to .gitignore. Leave "
        "alone what is not yours, and tell the user about it."
    )
    return Answer(reason="\n".join(parts))


def _clean(question: Question) -> Answer:
    tree = tree_of(question)
    begun = tree.in_progress()
    answer = _uncommitted(tree.status("normal"))
    if not begun:
        return answer
    words = " and ".join(begun)
    end = " or ".join(f"`git {what} {_END.get(what, '--continue')}`" for what in begun)
    reason = f"A {words} is in progress. Finish it with {end}, or abort it."
    return Answer(reason="\n".join(filter(None, (reason, answer.reason))))


_END = {"bisect": "reset"}


def _pushed(question: Question) -> Answer:
    tree = tree_of(question)
    status = tree.status("no")
    remotes = os.fsdecode(tree.git("remote")).split("\n")[:-1]
    if not remotes:
        add = "add one with `git remote add origin URL`, or take the gate out"
        raise Unclear(f"{visible(tree.root)} has no remote to push to; {add}")
    branch = visible(status.branch)
    remote = visible("origin" if "origin" in remotes else remotes[0])
    if not status.commit:
        return Answer(
            reason=f"There is no commit yet. Commit, then `git push -u {remote} {branch}`."
        )
    tracking = _tracking(tree) if status.branch else []
    for ref in tracking:
        if tree.git_exit("merge-base", "--is-ancestor", "HEAD", ref).code == 0:
            return Answer(note=f"HEAD is in {visible(ref)}")
    if tracking:
        ahead = int(tree.git("rev-list", "--count", f"{tracking[0]}..HEAD"))
        missing = f"{ahead} commits of {branch} are" if ahead > 1 else f"1 commit of {branch} is"
        name = visible(tracking[0].removeprefix("refs/remotes/"))
        return Answer(reason=f"{missing} not in {name}. Run `git push`.")
    there = tree.git("for-each-ref", "--count=1", "--contains=HEAD", "refs/remotes")
    if there.strip():
        return Answer(note="HEAD is in a branch of a remote")
    if not status.branch:
        make = "Make a branch (`git switch -c NAME`)"
        push = f"push it (`git push -u {remote} NAME`)"
        return Answer(reason=f"HEAD is detached, and no remote has its commit. {make} and {push}.")
    push = f"Run `git push -u {remote} {branch}`."
    return Answer(reason=f"The branch {branch} has no upstream, and no remote has it. {push}")


def _tracking(tree: WorkingTree) -> list[str]:
    """Return the remote-tracking branches that the current branch is pulled from and pushed to."""
    found = []
    for name in ("@{upstream}", "@{push}"):
        done = tree.git_exit("rev-parse", "--verify", "--quiet", "--symbolic-full-name", name)
        ref = os.fsdecode(done.out).strip()
        # A local branch may be an upstream, too; one that was removed has no commit.
        if done.code == 0 and ref.startswith("refs/remotes/"):
            found.append(ref)
    return list(dict.fromkeys(found))


def _no_conflicts(question: Question) -> Answer:
    tree = tree_of(question)
    status = tree.status("no")
    if status.unmerged:
        names = lines_of_names(sorted(status.unmerged))
        ask = "Resolve them, then `git add` them."
        return Answer(reason=f"These files have merge conflicts:\n{names}\n{ask}")
    changes = changed_files(question, tree)
    places, large = [], 0
    for name in changes.regular():
        path = os.path.join(tree.root, name)
        large += _is_large(path)
        lines = _marked(path)
        if not lines or not _has_usual_markers(tree, name):
            continue
        added = changes.added_lines(name)
        places += [f"{name}:{n}" for n in lines if any(n in some for some in added)]
    tell = f"no:conflicts did not read {large} files over 16 MB" if large else ""
    if not places:
        return Answer(note=f"no conflict in {len(changes.names) - large} changed files", tell=tell)
    ask = "Resolve each conflict, and remove the lines with <<<<<<<, ======= and >>>>>>>."
    reason = f"There are conflict markers in:\n{lines_of_names(places)}\n{ask}"
    return Answer(reason=reason, tell=tell)


def _is_large(path: str) -> bool:
    try:
        return os.stat(path).st_size > _LARGEST
    except OSError:  # removed meanwhile
        return False


def _marked(path: str) -> list[int]:
    """Return the lines of a file that open a conflict which a later line closes."""
    if _is_large(path):
        return []
    try:
        with open(path, "rb") as file:
            return _opened(file)
    except OSError:  # removed meanwhile, or not ours to read
        return []


def _opened(file: BinaryIO) -> list[int]:
    found: list[int] = []
    number, opened, is_start = 1, 0, True
    while line := file.readline(_LONGEST_LINE):
        if is_start and _is_marker(line, _OPENING):
            opened = number
        elif is_start and opened and _is_marker(line, _CLOSING):
            found.append(opened)
            opened = 0
        is_start = line.endswith(b"\n")
        number += is_start
    return found


def _is_marker(line: bytes, marker: bytes) -> bool:
    """Return True for a marker alone or with a label; eight of the sign are something else."""
    return line.startswith(marker) and line[len(marker) : len(marker) + 1] in b" \r\n"


def _has_usual_markers(tree: WorkingTree, name: str) -> bool:
    """Return False if the project says that such lines are content of a file."""
    said = os.fsdecode(tree.git("check-attr", "-z", _MARKER_SIZE, "--", name))
    return said.split("\0")[2] in _USUAL_SIZE


def _table(*presets: Preset) -> Mapping[str, Preset]:
    return {preset.name: preset for preset in presets}


PRESETS: Mapping[str, Preset] = _table(
    Preset(
        name="git:committed",
        summary="all work is committed: no changed and no new files",
        explains=(
            "Runs `git status`. Passes if no tracked file differs from the last commit, and there "
            "is no untracked file that .gitignore does not name. Fails with the first ten names. "
            "New files count because agents often forget `git add`. Costs one `git status`."
        ),
        check=_committed,
    ),
    Preset(
        name="git:clean",
        summary="as git:committed, and no merge, rebase or the like in progress",
        explains=(
            "Runs `git status`, and looks for what git was told to begin. Passes if git:committed "
            "does and no merge, rebase, cherry-pick, revert or bisect waits for its end: in the "
            "middle of a rebase, everything can be committed and the branch still be half made. "
            "Fails with what is in progress and how to finish it. Costs one `git status`."
        ),
        check=_clean,
    ),
    Preset(
        name="git:pushed",
        summary="the current commit is in a branch of a remote",
        explains=(
            "Runs git to compare HEAD with the remote-tracking branch that the current branch is "
            "pulled from or pushed to; without one, with all branches of remotes. Passes if it "
            "contains HEAD. Fails with the number of commits that are missing there, or with the "
            "`git push -u` to run. It does not reach the network: git notes every push by itself. "
            "Uncommitted work does not count; use git:committed for that. Costs a few git commands."
        ),
        check=_pushed,
    ),
    Preset(
        name="no:conflicts",
        summary="no unresolved merge conflict, and no conflict markers in changed files",
        explains=(
            "Runs `git status` and reads the changed and new files. Passes if no file is unmerged, "
            "and no added line begins with <<<<<<< with a later one that begins with >>>>>>>. "
            "Headings underlined with ======= are no markers. Fails with file and line. Where such "
            "lines are content, write `tests/data/** conflict-marker-size=32` into .gitattributes, "
            "which git heeds as well. Files over 16 MB are not read, and you are told. Costs one "
            "`git status` and reading what changed."
        ),
        check=_no_conflicts,
    ),
    Preset(
        name="no:secrets",
        summary="no password, key or token in what was added (gitleaks or detect-secrets)",
        explains=(
            "Runs gitleaks or detect-secrets on the changed and new files: detect-secrets first "
            "where there is a .secrets.baseline, else gitleaks. Passes if it finds no secret in a "
            "line that was added. Fails with file, line and rule; the secret itself is never "
            "printed. The project's .gitleaks.toml, .gitleaksignore and baseline count. Nothing is "
            "sent anywhere to verify it. Files over 10 MB are not scanned, and you are told. "
            "Without either program it is broken and says what to install. Costs a second or two."
        ),
        check=secrets.check,
    ),
    Preset(
        name="pre-commit",
        summary="the hooks of .pre-commit-config.yaml pass on the changed files",
        explains=(
            "Runs `pre-commit run --files` with the changed and new files, or prek where that is "
            "what is there: from .venv/bin, else from the PATH. Passes if all hooks do. Fails with "
            "their output, and with the names of the files that hooks rewrote. Stages nothing, and "
            "stashes nothing. It is broken without the file, without the program, and if a hook "
            "cannot be installed. Costs what the hooks cost; the first run installs them."
        ),
        check=hook_tools.check,
    ),
    Preset(
        name="lefthook",
        summary="the pre-commit jobs of lefthook.yml pass on the changed files",
        explains=(
            "Runs `lefthook run pre-commit --files-from-stdin` with the changed and new files: "
            "from node_modules/.bin, else from the PATH. Passes if all jobs do and none rewrote a "
            "file. Fails with their output, and with the names of the files that they rewrote. "
            "Stages nothing, and installs no git hook. It is broken without the file or the "
            "program. Costs what the jobs cost."
        ),
        check=hook_tools.check,
    ),
    Preset(
        name="hk",
        summary="the checks of hk.pkl pass on the changed files",
        explains=(
            "Runs `hk check` with the changed and new files. Passes if all steps do and none "
            "rewrote a file. Fails with their output, and with the names of the files that they "
            "rewrote. Nothing is staged. It is broken without the file or the program. Costs what "
            "the steps cost."
        ),
        check=hook_tools.check,
    ),
)
