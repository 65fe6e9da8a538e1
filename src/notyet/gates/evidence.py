"""`ran = ["pytest*"]`: pass if the transcript shows a matching command that succeeded.

It must have begun after the last edit of a file that matters. Edits are known from two sources: the
edit tools in the transcript, and the change times of the files, since agents also edit by shell.
Whatever cannot be told is no evidence.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING

from notyet.core.matcher import glob_error, glob_matches
from notyet.core.text import clean
from notyet.gates.commands import RanCommand, forms, ran_commands
from notyet.gates.question import Answer, Question
from notyet.gates.shell_text import NotUnderstood, names
from notyet.git.repository import repository_of
from notyet.git.run import GitCommand, Output, Unknown, run
from notyet.hosts.tool_calls import Unreadable, calls_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notyet.hosts.tool_call import ToolCall


_MOST_LISTED = 64 * 1024 * 1024  # bytes of file names
_LONGEST_SHOWN = 80  # characters of a command
_MOST_LOOKED_AT = 5_000  # commands, from the end
_PATIENCE = 60.0  # seconds for git
_AGAIN = "Run it again, alone, and then stop."

# Options with which a test runner, a build tool or a linter does nothing, or hides its failures.
_IDLE = names("""
    --co --collect-only --collectonly --help --version --dry-run --dryrun --dryRun
    --listTests --list-tests --list --listenvs --fixtures --fixtures-per-test --markers
    --setup-plan --setup-only --cache-show --no-run --notest --just-print --recon --question
    --touch --if-present --ignore-scripts --show-only --showConfig --print-config
    --skip-tests --exit-zero --noop --suppress-tests-failed-exit-code
    --suppress-no-test-exit-code -h -DskipTests -DskipTests=true -Dmaven.test.skip
    -Dmaven.test.skip=true -Dmaven.test.failure.ignore -Dmaven.test.failure.ignore=true
    --fail-never --ignore-errors --no-run-tests --nobuild --exclude-task --script-shell
    """)
_IDLE_FOR = {
    "go": {"-list", "-c", "-n", "-exec"},
    "just": {"-n", "-l"},
    "nox": {"-l"},
    "ninja": {"-n", "-t"},
    "ctest": {"-N"},
    "tox": {"-l", "-a"},
    "gradle": {"-m", "-x"},
    "gradlew": {"-m", "-x"},
    "mvn": {"-fn"},
    "mvnw": {"-fn"},
    "dotnet": {"-t"},
}
# Options of one letter that can stand in one word, such as -qV: those with which nothing is
# checked, and those that take the rest of the word as their value.
_CLUSTERS = dict.fromkeys(("pytest", "py.test"), ("hV", "kmnoprWc"))
_CLUSTERS |= dict.fromkeys(("make", "gmake"), ("inqtp", "CEIOWfjlo"))
# Programs that only show something: they are no evidence unless a pattern begins with their name.
_SHOWING = names("""
    echo printf cat grep rg which type whereis man ls head tail true : test [ sed awk git
    find pip uv false sleep read wc less more diff tee
    """)
# Signs that no test ran, and that some did.
_NOTHING = re.compile(
    r"\bno tests ran\b|\bcollected 0 items\b|\b0 passed\b|\bno tests? (?:were |files? )?found\b"
    r"|\bRan 0 tests\b|\brunning 0 tests\b|\bTests:\s{1,20}0 total\b|\b0 tests\b|\bTests run: 0\b"
    r"|^(?:# |\u2139 )(?:tests|pass) 0$|\bno tests? executed\b"
    r"|\[no test files\]|\bno tests to run\b|\b0 (?:specs|examples|passing)\b"
    r"|\b\d{1,9} (?:skipped|deselected)\b|\bno test suite\b|\bNo tests? match",
    re.IGNORECASE | re.MULTILINE,
)
_SOMETHING = re.compile(
    r"\b[1-9]\d{0,8} (?:passed|passing|specs?|examples?|assertions?|xfailed|checks?)\b"
    r"|\b[1-9]\d{0,8} tests?\b(?! \|)"
    r"|^ok\s{1,8}\S+\s{1,8}[\d(](?!.*\bno tests to run\b)"
    r"|\bRan [1-9]|\bTests run: [1-9]|\brunning [1-9]\d{0,8} tests?\b|^(?:# |\u2139 )pass [1-9]"
    r"|^ok \d(?!.* # SKIP)",
    re.MULTILINE,
)
# For transcripts without times: commands that change no file.
_READ_ONLY = names("""
    ls cat head tail grep rg wc pwd which type echo printf true false test [ stat file du df
    tree diff cmp date env sort cut tr basename dirname realpath readlink sleep cd
    """)
_READ_ONLY_GIT = names("status diff log show rev-parse ls-files blame describe grep")


def check(question: Question) -> Answer:
    """Return whether the agent's transcript proves that a wanted command succeeded."""
    patterns, paths = _texts(question.options.get("ran")), _texts(question.options.get("paths", ()))
    if not patterns or paths is None:
        return Answer(problem="`ran` must be a list of globs for commands, and `paths` of files")
    wrong = next(filter(None, map(glob_error, patterns)), "")
    if wrong:
        return Answer(problem=f"`ran`: {wrong}")
    try:
        calls = calls_of(question.event)
    except Unreadable as error:
        return Answer(problem=f"no evidence can be read: {error}")
    files = Files(question, paths)
    try:
        return _Search(question, patterns, calls, files).answer()
    except Unknown as unknown:  # git gave no answer in time, or too much
        return Answer(problem=f"the changed files cannot be listed: {unknown.reason}")


def _texts(value: object) -> tuple[str, ...] | None:
    if isinstance(value, str):
        value = (value,)
    is_list = isinstance(value, (list, tuple))
    if not is_list or not all(isinstance(item, str) for item in value):  # type: ignore[attr-defined]
        return None
    return tuple(value)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Seen:
    """A command that matches, and why it proves nothing; empty if it does prove something."""

    call: ToolCall
    text: str
    pattern: str
    why: str
    is_alone: bool = True  # no other command of its text may have changed files since it began


class _Search:
    """Looks for evidence from the end of the transcript."""

    def __init__(
        self, question: Question, patterns: tuple[str, ...], calls: list[ToolCall], files: Files
    ) -> None:
        self._event = question.event
        self._patterns = patterns
        self._calls = calls
        self._files = files

    def answer(self) -> Answer:
        failed: set[str] = set()  # patterns of later runs that failed
        nearest: _Seen | None = None  # the last one that matches, for the reason
        commands = [call for call in self._calls if call.kind == "command" and call.command]
        for call in commands[: -_MOST_LOOKED_AT - 1 : -1]:
            for seen in self._matching(call):
                if not seen.why and seen.pattern in failed:
                    return self._sent_back(f"`{seen.text}` passed, and failed when it ran again")
                if not seen.why:
                    return self._after_edits(seen)
                if call.succeeded is False:
                    failed.add(seen.pattern)
                nearest = nearest or seen
        if nearest:
            return self._sent_back(f"`{nearest.text}`: {nearest.why}")
        return self._sent_back("the transcript shows no such command", is_first=True)

    def _sent_back(self, seen: str, *, is_first: bool = False) -> Answer:
        wanted = " or ".join(f"`{pattern}`" for pattern in self._patterns)
        todo = "Run it, alone, and then stop." if is_first else _AGAIN
        return Answer(
            reason=f"Wanted: a successful run of {wanted} after the last edit. Seen: {seen}. {todo}"
        )

    def _matching(self, call: ToolCall) -> Iterator[_Seen]:
        """Yield the commands of a call that match a pattern, the last one first."""
        try:
            found = ran_commands(call.command)
        except NotUnderstood as error:
            pattern = next((p for p in self._patterns if glob_matches(p, call.command)), "")
            if pattern:
                why = f"the line is more than plain commands ({error}), so it cannot prove a pass"
                yield _Seen(call, _shown(call.command), pattern, why)
            return
        options = next((word for command in found for word in _hidden_options(command)), "")
        is_alone = True
        for number, command in reversed([*enumerate(found)]):
            pattern = matching_pattern(self._patterns, command)
            if pattern:
                text = _shown(call.command if len(found) > 1 else command.text)
                why = self._why_not(call, command)
                if not why and options:
                    why = f"`{options}` changes what it runs"
                others = (one for one in found[:number] if one.concurrent)
                is_alone = is_alone and not command.writes and all(map(is_read_only, others))
                yield _Seen(call, text, pattern, why, is_alone)
            is_alone = is_alone and (bool(pattern) or is_read_only(command))

    def _why_not(self, call: ToolCall, command: RanCommand) -> str:
        """Return why a matching command proves nothing; empty if it does."""
        if call.background:
            return "it ran in the background, so its result is not known"
        if call.succeeded is None:
            return "the transcript does not say whether it succeeded"
        if not call.succeeded:
            return "it failed"
        if not command.proven:
            return f"it cannot prove a pass: {command.why}"
        idle = idle_option(command)
        if idle:
            return f"with `{idle}` it cannot prove a pass"
        if any(word.is_dynamic for word in command.words):
            return (
                "it cannot prove a pass: the shell puts in words that the transcript does not show"
            )
        if command.silent:
            return "its output, which says whether a test ran, is not in the transcript"
        if ran_nothing(call.output):
            return "its output says that no test ran and passed"
        if not self._files.is_inside(call.folder, command.folder):
            return "it ran outside of this repository, or where cannot be told"
        return ""

    def _after_edits(self, seen: _Seen) -> Answer:
        """Return the answer for a good run: evidence, unless an edit came after it."""
        edited = self._edited_after(seen)
        if edited:
            return self._sent_back(f"`{seen.text}` {edited}")
        return Answer(note=f"`{seen.text}` succeeded after the last edit")

    def _edited_after(self, seen: _Seen) -> str:
        run = seen.call
        later = [call for call in self._calls if call.ended is None or call.ended > run.begun]
        for call in later:
            if call.kind == "edit" and call.succeeded is not False:
                for path in call.paths or ("",):
                    if self._files.matters(path, call.folder):
                        return f"ran before {self._files.shown(path) or 'a file'} was edited"
        return self._changed_after(seen, later)

    def _changed_after(self, seen: _Seen, later: list[ToolCall]) -> str:
        run = seen.call
        # What a run itself writes does not count, unless something else may have written it.
        is_alone = seen.is_alone and not any(self._ran_beside(call, run) for call in self._calls)
        since = run.time if is_alone else run.started
        if self._files.is_known and since is not None:
            changed = self._files.changed_after(since)
            return f"{'ran' if is_alone else 'began'} before {changed} changed" if changed else ""
        if not is_alone:
            return "ran together with commands that may have changed files"
        # Without times, or without git, any command may have been an edit.
        for call in later:
            if call is run or call.begun <= run.begun:
                continue
            if call.kind == "other":
                return "ran before a tool was used that may have changed files"
            if call.kind == "command" and not self._is_harmless(call):
                return (
                    f"ran before `{_shown(call.command)}`, which may have changed files "
                    "(there are no times or no git to tell)"
                )
        return ""

    def _ran_beside(self, call: ToolCall, run: ToolCall) -> bool:
        """Return True if a call may have changed files while a command ran."""
        if call is run or call.kind in {"edit", "read"} or call.begun > (run.ended or run.begun):
            return False
        is_over = call.ended is not None and call.ended < run.begun and not call.background
        return not is_over and (call.kind == "other" or not self._is_harmless(call))

    def _is_harmless(self, call: ToolCall) -> bool:
        try:
            found = ran_commands(call.command)
        except NotUnderstood:
            return False
        return all(
            is_read_only(command) or bool(matching_pattern(self._patterns, command))
            for command in found
        )


def matching_pattern(patterns: Sequence[str], command: RanCommand) -> str:
    """Return the first pattern that matches a command, or what its wrappers start."""
    for words in forms(command):
        text = " ".join(words)
        name = words[0] if words else ""
        if name.startswith(("/bin/", "/usr/bin/")):
            name = os.path.basename(name)
        for pattern in patterns:
            if glob_matches(pattern, text) and (name not in _SHOWING or pattern.startswith(name)):
                return pattern
    return ""


def idle_option(command: RanCommand) -> str:
    """Return the option with which a command runs no check; empty if there is none."""
    all_forms = [words for words in forms(command) if words]
    names = {os.path.basename(words[0]) for words in all_forms}
    own = set().union(*(_IDLE_FOR.get(name, set()) for name in names))
    for word in (word for words in all_forms for word in words[1:]):
        for token in (word, *re.split(r"[\s=]", word)):
            is_collect = len(token) > 4 and "--collect-only".startswith(token)  # noqa: PLR2004  # --co
            if token in _IDLE or token in own or is_collect:
                return word
    for name in names & _CLUSTERS.keys():
        found = (word for word in all_forms[-1][1:] if _has_letter(word, *_CLUSTERS[name]))
        return next(found, "")
    if "go" in names:
        return next((word for word in all_forms[-1] if re.fullmatch(r"-run(=\^\$)?", word)), "")
    return ""


def _has_letter(word: str, wanted: str, with_value: str) -> bool:
    """Return True for a word of short options with one of the wanted letters, such as -qV."""
    if not re.match(r"-[A-Za-z]", word):
        return False
    options = re.split(f"[{with_value}]", word[1:], maxsplit=1)[0]
    return any(letter in options for letter in wanted)


def _hidden_options(command: RanCommand) -> Iterator[str]:
    """Yield assignments that give a test runner options, such as PYTEST_ADDOPTS."""
    for word in command.words:
        name, found, _ = word.text.partition("=")
        is_known = name.endswith(("ADDOPTS", "_OPTS", "MAKEFLAGS")) or name == "GOFLAGS"
        if found and is_known and name.isupper():
            yield word.raw


def ran_nothing(output: str) -> bool:
    """Return True if an output says that no test ran, or that none passed."""
    output = clean(output)
    return bool(_NOTHING.search(output)) and not _SOMETHING.search(output)


def is_read_only(command: RanCommand) -> bool:
    """Return True if a command is known to change no file."""
    words = [word.text for word in command.words]
    if command.writes or not words or any("$(" in w.raw or "`" in w.raw for w in command.words):
        return False
    if any(word.startswith(("-o", "--output")) for word in words):  # of sort, tree and git diff
        return False
    if words[0] == "git":
        return len(words) > 1 and words[1] in _READ_ONLY_GIT
    if words[0] == "find":
        return not any(w.startswith(("-delete", "-exec", "-ok", "-fprint", "-fls")) for w in words)
    if words[0] == "sed":
        return words[1:2] == ["-n"] and re.fullmatch(r"[\d,$]+p", words[2]) is not None
    return words[0] in _READ_ONLY and not (words[0] == "env" and len(words) > 1)


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_SHOWN else f"{line[: _LONGEST_SHOWN - 3]}..."


class Files:
    """The files that matter: those of the repository that git does not ignore, or `paths`."""

    def __init__(self, question: Question, paths: tuple[str, ...]) -> None:
        event = question.event
        self._folder = question.folder or event.cwd
        self._cwd = event.cwd or self._folder
        self._is_remote = bool(event.workspace)
        self._paths = paths
        self._ends = monotonic() + min(question.seconds, _PATIENCE)

    @cached_property
    def root(self) -> str:
        """The repository of the agent's folder; empty if there is none here."""
        if self._is_remote or not os.path.isdir(self._cwd):
            return ""
        return repository_of(self._cwd)

    @property
    def is_known(self) -> bool:
        """Return True if git can list the files here."""
        return bool(self.root)

    @cached_property
    def _globs(self) -> tuple[str, ...]:
        return ("--", *(f":(glob){path}" for path in self._paths)) if self._paths else ("--", ".")

    def _listed(self, *args: str) -> list[str]:
        """Return the names that git lists, relative to the repository."""
        inside = os.path.realpath(self._folder)
        is_inside = f"{inside}/".startswith(f"{self.root.rstrip('/')}/")
        # Without `paths`, all files of the repository matter.
        folder = inside if self._paths and is_inside else self.root
        output = Output(_MOST_LISTED)
        command = GitCommand(folder, (*args, *self._globs), output.take, self.root)
        run([command], self._ends)
        if command.code != 0:
            raise Unknown(command.reason if command.code is None else "git refuses to list them")
        return [os.fsdecode(name) for name in bytes(output).split(b"\0") if name]

    @cached_property
    def names(self) -> frozenset[str]:
        """The files that matter, relative to the repository."""
        own = ("ls-files", "--full-name", "-z")
        return frozenset(self._listed(*own, "--cached", "--others", "--exclude-standard"))

    def matters(self, path: str, folder: str) -> bool:
        """Return True if an edit of this path counts."""
        if not path or not self.is_known:
            return True
        place = os.path.join(self._cwd, folder, os.path.expanduser(path))
        real = os.path.join(os.path.realpath(os.path.dirname(place)), os.path.basename(place))
        inside = os.path.relpath(real, self.root)
        return inside in self.names

    def shown(self, path: str) -> str:
        """Return a path as people know it."""
        place = os.path.realpath(os.path.join(self._cwd, path)) if path else ""
        is_inside = bool(self.root) and place.startswith(f"{self.root}/")
        return os.path.relpath(place, self.root) if is_inside else path

    def is_inside(self, start: str, entered: str | None) -> bool:
        """Return True if a command ran in this repository, as far as the transcript tells."""
        if entered is None:
            return False
        if not self.is_known:
            return True
        place = os.path.realpath(os.path.join(self._cwd, start, entered))
        return f"{place}/".startswith(f"{self.root.rstrip('/')}/")

    def changed_after(self, time: float) -> str:
        """Return a file that changed after a time; empty if none did."""
        for name in sorted(self.names):
            try:
                about = os.lstat(os.path.join(self.root, name))
            except (FileNotFoundError, NotADirectoryError):
                if self._folder_changed(name) > time:
                    return name
                continue
            except OSError:
                return name  # it cannot be read: no evidence
            # No program sets the change time, unlike the modification time.
            if not stat.S_ISDIR(about.st_mode) and about.st_ctime > time:
                return name
        return next((name for name in self._removed_since(time) if self._is_gone(name, time)), "")

    def _is_gone(self, name: str, time: float) -> bool:
        is_there = os.path.lexists(os.path.join(self.root, name))
        return not is_there and self._folder_changed(name) > time

    def _folder_changed(self, name: str) -> float:
        """Return when the folder of a file that is gone last changed."""
        folder = os.path.dirname(os.path.join(self.root, name))
        while len(folder) > len(self.root) and not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        try:
            return os.stat(folder).st_mtime
        except OSError:
            return float("inf")

    def _removed_since(self, time: float) -> list[str]:
        """Return the files that HEAD had at a time, and has no more: a commit, a checkout."""
        args = ("diff", "--name-only", "--no-renames", "--diff-filter=D", "-z")
        try:
            # Git's log of HEAD has whole seconds.
            return self._listed(*args, f"HEAD@{{@{int(time) - 1} +0000}}", "HEAD")
        except Unknown:
            return []  # a repository without a commit, or without a log of them
