"""`new_failures_only`: after a command failed, find out which of its failures the agent made.

The failures now are compared with those of a run on the files as they were when the session began.
That run is a known one, where the files were the same; else the command runs on the snapshot, now.
An agent that broke something must never be released, so whatever cannot be compared is a plain
block, with the reason.
"""

from __future__ import annotations

import glob
import json
import os
import re
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

from notyet.config.find import state_folder
from notyet.core.text import clean, shortened, visible
from notyet.gates.baseline import HEAD, run_on
from notyet.gates.failures.compare import Comparison, compare, surroundings
from notyet.gates.failures.reports import ReportError, read_contents, read_reports
from notyet.gates.failures.run import masked
from notyet.gates.failures.text import other_errors, read_output
from notyet.gates.known_runs import KnownRun, KnownRuns
from notyet.gates.question import Answer
from notyet.gates.session import NO_STATE, as_it_is, root_of, start_of
from notyet.gates.shared_files import change_since, names_of
from notyet.gates.with_files import commands_for, files_of
from notyet.gates.working_tree import Unclear
from notyet.git.run import Unknown
from notyet.git.snapshot_store import baselines_folder
from notyet.hosts.notyet.hooks import write_event
from notyet.run.command_runner import run_together
from notyet.run.gate_command import inherited
from notyet.run.spawn import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from notyet.gates.failures.run import Run
    from notyet.gates.question import Question
    from notyet.git.snapshot import Change, Snapshot

UNSURE = "notyet cannot say which of these failures are new"
_MOST_NAMED = 20  # failures in one message
_MOST_DETAIL = 1_500  # characters of the output about one failure
_MOST_DETAILS = 12_000  # of all of them
_LONGEST_NAME = 300
_NOT_IDENTIFIED = "the failures could not be identified in its output"
_AT_THE_START = "the run on the files of the session's start"
_CUT = re.compile(r"^\.\.\. \d+ lines \(\d+ bytes\) left out \.\.\.$", re.MULTILINE)
# Tools that say how many failures there are, so that one that was left out is missed.
_COUNT = frozenset({"pytest", "unittest", "jest", "vitest", "node", "mypy", "ruff", "eslint"})
_CLOCK = 2.0  # seconds by which a file system's times may be coarse


class Unsure(Exception):  # noqa: N818  # no error
    """The failures cannot be compared; the message says why."""


def check(question: Question) -> Answer:
    """Return whether a command that failed has new failures."""
    try:
        return _Failed(question).answer()
    except Unknown as unknown:
        why = unknown.reason
    except (Unsure, Unclear) as unsure:
        why = str(unsure)
    except OSError as error:
        why = f"{error.strerror}: {error.filename}"
    why = clean(why).strip()
    output = str(question.now.get("output", "")).rstrip()
    return Answer(reason=f"{output}\n{UNSURE}: {why}.", tell=f"{question.gate}: {UNSURE}: {why}")


class _Failed:
    """A command that failed, now and, perhaps, when the session began."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._folder = os.path.realpath(question.command.get("dir") or os.getcwd())
        self._report: str = question.options.get("report", "")
        self._passes: Sequence[int] = question.options.get("pass_codes", (0,))
        now = question.now
        self._limit = float(now["limit"])
        self._root = root_of(question)
        self._below = os.path.relpath(self._folder, self._root)  # where paths in its output begin
        reports = [os.path.normpath(os.path.join(self._below, self._report))] * bool(self._report)
        self._known = KnownRuns(question.command, reports)
        self._reports = reports
        self._files = _files(question)
        self._began = float(now["began"]) - _CLOCK
        self._now = self._read(str(now["output"]), _code(str(now["exit"])), self._began)

    def answer(self) -> Answer:
        """Compare; run the command once more if there are new failures, which may come and go."""
        if self._now.run is None:
            raise Unsure(_NOT_IDENTIFIED)
        start = start_of(self._question, self._root)
        with as_it_is(self._root) as tree:
            changes = start.diff(tree)
            base = self._base(start, tree, changes)
            # On the files of the start, it does not replace the baseline.
            is_other = start.tree != tree.tree or base is self._now
            if is_other and not self._changed_meanwhile(changes):
                self._known.remember(tree, self._argv(), self._now, self._began)
        renames = self._renames(changes)
        found = self._compared(self._now, base, renames)
        flaky: Counter[str] = Counter()
        if found.new:
            again = self._again()
            second = self._compared(again, base, renames)
            flaky = found.new - second.new
            found, self._now = second, again
        return self._said(found, flaky)

    def _base(self, start: Snapshot, tree: Snapshot, changes: Sequence[Change]) -> KnownRun:
        """Return the run on the files of the start. Raises Unsure."""
        files = self._files_then(changes)
        if files == [] and self._files:  # all of them are new
            return KnownRun(code=0, passed=True, output="", run=None)
        argv = self._argv(files)
        known = self._known.find(start, argv)
        if known is not None and (known.is_own or self._still_fails(known)):
            return known
        if self._is_unchanged(start, tree):
            return self._now
        return self._baseline(start, argv)

    def _still_fails(self, known: KnownRun) -> bool:
        """Return True if nothing that failed in an earlier session passes now.

        It may have failed then for lack of a service, and be broken by the agent now.
        """
        now = self._now.run
        return known.run is None or (now is not None and known.run.failures <= now.failures)

    def _is_unchanged(self, start: Snapshot, tree: Snapshot) -> bool:
        """Return True if the agent changed no file, ignored ones included."""
        return (
            start.tree == tree.tree
            and names_of(start, self._reports) == names_of(tree, self._reports)
            and not change_since(start, start.at, self._reports)
        )

    def _files_then(self, changes: Sequence[Change]) -> list[str] | None:
        """Return the files of the command that were there at the start, as they were called."""
        if self._files is None:
            return None
        names = {change.new: change.old for change in changes if change.new}
        files = [os.path.normpath(os.path.join(self._below, name)) for name in self._files]
        then = [old for name in files if (old := names.get(name, name))]
        return [os.path.relpath(name, self._below) for name in then]

    def _changed_meanwhile(self, changes: Sequence[Change]) -> bool:
        """Return True if a file changed after the command had begun: it may not have read that."""
        for change in changes:
            path = os.path.join(self._root, change.new or os.path.dirname(change.old))
            try:
                if os.lstat(path).st_ctime >= self._began:
                    return True
            except OSError:
                return True
        return False

    def _renames(self, changes: Sequence[Change]) -> dict[str, str]:
        """Return the files that were renamed, as the output may name them."""
        found = {change.old: change.new for change in changes if change.status == "R"}
        if self._below != ".":
            below = self._below
            found |= {
                os.path.relpath(old, below): os.path.relpath(new, below)
                for old, new in found.items()
            }
        return found

    def _compared(self, now: KnownRun, base: KnownRun, renames: Mapping[str, str]) -> Comparison:
        """Compare a run with the one at the start. Raises Unsure."""
        if now.passed:
            return Comparison(new=Counter(), known=0, moved=0, unknown="")
        if now.run is None:
            raise Unsure(_NOT_IDENTIFIED)
        if base.passed:
            if not now.run.failures:  # a limit for coverage, or no tests at all
                raise Unsure(
                    f"the check passed at the start, and fails now (exit status {now.code}) "
                    "without naming a failure"
                )
            return Comparison(new=now.run.failures, known=0, moved=0, unknown="")
        if base.run is None:
            raise Unsure("what failed when the session began could not be identified")
        odd = surroundings(_told(base), _told(now))
        if odd:
            raise Unsure(f"the run on the files of the session's start met: {visible(odd)}")
        found = compare(now.run, base.run, renames=renames, exit_now=now.code, exit_base=base.code)
        if found.unknown:
            raise Unsure(found.unknown)
        if self._report and not found.new:
            self._check_output(now, base, renames)
        return found

    def _check_output(self, now: KnownRun, base: KnownRun, renames: Mapping[str, str]) -> None:
        """Raise Unsure if the output has failures or other errors that the report does not have.

        Some reports leave out files that did not load, and all leave out limits for coverage.
        """
        text, text_then = (read_output(run.output, (self._root,)) for run in (now, base))
        if text is not None and text_then is not None:
            said = compare(text, text_then, renames=renames, exit_now=now.code, exit_base=base.code)
            for name in said.new:
                raise Unsure(f"the output names a failure that is not in the report: {_name(name)}")
        if _CUT.search(now.output) or _CUT.search(base.output):
            return
        known = Counter(map(masked, other_errors(base.output, (self._root,))))
        for line in other_errors(now.output, (self._root,)):
            known[masked(line)] -= 1
            if known[masked(line)] < 0:
                raise Unsure(f"the output has an error that is not in the report: {_name(line)}")

    def _baseline(self, start: Snapshot, argv: Sequence[str]) -> KnownRun:
        """Run the command on the snapshot. Raises Unsure."""
        _tell_progress("running the check on the files as they were when the session began")
        state = state_folder(os.environ)
        if not state:
            raise Unsure(NO_STATE)
        ended = run_on(
            start,
            argv,
            dir=self._folder,
            environ=inherited(),
            timeout=self._limit,
            scratch=baselines_folder(state),
            reports=[self._report] if self._report else [],
            stdin=self._event(),
        )
        if ended.refused:
            raise Unsure(f"{_AT_THE_START} cannot be compared: {ended.refused}")
        if ended.timed_out:
            raise Unsure(f"{_AT_THE_START} took over {self._limit:.0f} s (baseline_timeout)")
        if ended.code is None:
            raise Unsure(f"{_AT_THE_START} was killed by signal {ended.signal}")
        passed = ended.code in self._passes
        run = None
        if not passed and self._report:
            run = self._from_reports(
                lambda: read_contents(ended.reports, (self._root,)), len(ended.reports)
            )
        elif not passed:
            run = self._from_output(ended.output)
        found = KnownRun(code=ended.code, passed=passed, output=ended.output, run=run)
        self._known.remember(start, argv, found, start.at)
        return found

    def _again(self) -> KnownRun:
        """Run the command once more, as it just ran. Raises Unsure."""
        _tell_progress("running the check once more: new failures may come and go")
        began = time.time() - _CLOCK
        job = Job(
            argv=tuple(self._argv()),
            dir=self._folder,
            environ=inherited(),
            stdin=self._event(),
            timeout=max(60.0, 2 * float(self._question.now["seconds"])),
            head=HEAD,
        )
        (ended,) = run_together([job])
        if ended.code is None:
            raise Unsure("it did not finish when it ran once more")
        parts = (clean(part.decode("utf-8", "replace")) for part in (ended.stdout, ended.stderr))
        output = "\n".join(part.rstrip() for part in parts)
        return self._read(output, ended.code, began)

    def _read(self, output: str, code: int, began: float) -> KnownRun:
        """Read a run that has just ended. Raises Unsure."""
        passed, run = code in self._passes, None
        if not passed and self._report:
            names = glob.glob(self._report, root_dir=self._folder, recursive=True)
            paths = [os.path.join(self._folder, name) for name in names]
            new = [path for path in paths if os.stat(path).st_mtime >= began]
            run = self._from_reports(lambda: read_reports(new, (self._root,)), len(new))
        elif not passed:
            run = self._from_output(output)
        return KnownRun(code=code, passed=passed, output=output, run=run)

    def _from_output(self, output: str) -> Run | None:
        run = read_output(output, (self._root,))
        if run is not None and run.tool not in _COUNT and _CUT.search(output):
            raise Unsure("its output is too long to be kept whole; name a `report` that it writes")
        return run

    def _from_reports(self, read: Callable[[], Run], count: int) -> Run:
        if not count:
            raise Unsure(f"the command wrote no report {visible(self._report)}")
        try:
            return read()
        except ReportError as error:
            raise Unsure(str(error)) from error

    def _event(self) -> bytes:
        """Return what the command gets on stdin, as at any stop (E1)."""
        payload, _ = write_event(self._question.event, self._question.folder)
        return json.dumps(payload).encode()

    def _argv(self, files: Sequence[str] | None = None) -> list[str]:
        """Return the command line on files; by default on those that changed. Raises Unsure."""
        lines = commands_for(
            self._question.command, (self._files if files is None else files) or []
        )
        if len(lines) != 1:
            raise Unsure("too many files changed for one command line")
        return lines[0]

    def _said(self, found: Comparison, flaky: Counter[str]) -> Answer:
        known = found.known
        came_and_went = ""
        if flaky:
            names = "; ".join(_name(one) for one in list(flaky)[:_MOST_NAMED])
            came_and_went = f", not every time: {names}"
        before = f"{known} that {'was' if known == 1 else 'were'} there at the start"
        new = found.new.total()
        if not new:
            words = (
                f"{known} failures, all there at the start" if known else "passed when run again"
            )
            words = "1 failure, there at the start" if known == 1 else words
            return Answer(
                note=f"{words}{came_and_went}",
                tell=f"{self._question.gate}: {words}{came_and_went}",
            )
        count = f"{new} new failure{'' if new == 1 else 's'}"
        assert self._now.run is not None
        parts = [*_details(found.new, self._now.run.details)]
        parts += [f"{_name(one)}{_times(found.new[one])}" for one in list(found.new)[:_MOST_NAMED]]
        if len(found.new) > _MOST_NAMED:
            parts.append(f"and {len(found.new) - _MOST_NAMED} more")
        others = f" The {before} {'does' if known == 1 else 'do'} not count." if known else ""
        parts.append(f"{count} since your session began.{others}")
        beside = f", {before}" if known else ""
        tell = f"{self._question.gate}: {count}{beside}{came_and_went}"
        return Answer(reason="\n".join(parts), tell=tell)


def _told(found: KnownRun) -> str:
    """Return all that a run said about its failures; reports may say what the output does not."""
    return "\n".join([found.output, *(found.run.details.values() if found.run else ())])


def _files(question: Question) -> list[str] | None:
    """Return what `{files}` stands for in a command; None if there is no such word."""
    return None if commands_for(question.command, []) else files_of(question)


def _tell_progress(words: str) -> None:
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


def _details(new: Counter[str], details: Mapping[str, str]) -> list[str]:
    """Return what the output says about new failures, as far as there is room."""
    parts, room = [], _MOST_DETAILS
    for one in new:
        if one in details and room > 0:
            parts.append(shortened(details[one], min(_MOST_DETAIL, room)))
            room -= len(parts[-1])
    return parts


def _name(identity: str) -> str:
    return shortened(visible(identity), _LONGEST_NAME)


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""


def _code(exit_words: str) -> int:
    """Return the exit code in `exit 1`. Raises Unsure for anything else."""
    word, _, code = exit_words.partition(" ")
    if word != "exit" or not code.isdecimal():
        raise Unsure(f"it ended with {exit_words}")
    return int(code)
