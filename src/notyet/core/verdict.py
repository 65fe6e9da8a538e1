"""Verdicts of gates, reports on gates, and the decision that they come to."""

from __future__ import annotations

from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    Verdict: TypeAlias = "Allow | Block | Halt"
    Answer: TypeAlias = "Allow | Block | Halt | Problem"
    ProblemKind = Literal[
        "crashed", "killed", "timeout", "cannot_start", "bad_answer",
        "unreachable", "deadline", "internal", "unsure",
    ]  # fmt: skip
    Outcome = Literal[
        "passed", "blocked", "halted", "capped", "stuck",
        "handed_back", "skipped", "failed_open", "observed", "overridden",
    ]  # fmt: skip

OUTCOMES = (
    "passed",
    "blocked",
    "halted",
    "capped",
    "stuck",
    "handed_back",
    "skipped",
    "failed_open",
    "observed",
    "overridden",
)

# The words by which a user sees that a stop was allowed although its checks fail, or did not run.
UNPASSED = "NOT PASSED"
UNCHECKED = "NOT CHECKED"
LOUD = {
    "capped": UNPASSED,
    "stuck": UNPASSED,
    "handed_back": UNPASSED,
    "overridden": UNPASSED,
    "failed_open": UNCHECKED,
}
GONE = "was sent back and did not come again (interrupt, API error or host)"  # overridden


# Groups of outcomes, for observers and `notyet log`. A skipped stop was not checked, unless nothing
# was to be checked.
GROUPS = ("not_passed", "not_checked")
NOTHING_TO_CHECK = ("background", "inside", "no-gate", "supervised", "unchanged")  # causes
_GROUP = {UNPASSED: "not_passed", UNCHECKED: "not_checked", "": ""}


def group_of(outcome: str, why: str) -> str:
    """Return the group of an outcome; empty for one that is in none."""
    if outcome == "skipped":
        return "" if why in NOTHING_TO_CHECK else "not_checked"
    return _GROUP[LOUD.get(outcome, "")]


_WORDS = {"blocked": "sent back", "asking": "being checked"}


def outcome_words(outcome: str, why: str) -> str:
    """Return an outcome as people read it: sent back, passed, NOT PASSED, NOT CHECKED, skipped."""
    if group_of(outcome, why) == "not_checked":
        return UNCHECKED
    return LOUD.get(outcome) or _WORDS.get(outcome, outcome.replace("_", " "))


def in_log(stop: int) -> str:
    """Return where the user reads more about a stop; empty if it is not recorded."""
    return f" (notyet log {stop})" if stop else ""


class Allow(Record):
    """The agent may finish. `extend` raises this turn's limit, `note` is a remark for the log."""

    extend: int = 0
    note: str = ""

    def _validate(self) -> None:
        _check_extend(self.extend)
        _check_text("note", self.note)


class Block(Record):
    """The agent goes on with `prompt`; `reason` is why, for the log (default: the prompt)."""

    prompt: str
    reason: str = ""
    extend: int = 0

    def _validate(self) -> None:
        if not isinstance(self.prompt, str) or not self.prompt.strip():
            raise ValueError("a Block needs words: say what the agent must do next")
        _check_text("reason", self.reason)
        _check_extend(self.extend)

    @property
    def because(self) -> str:
        """Why, in words: the reason, or the prompt where there is none (A11)."""
        return self.reason if self.reason.strip() else self.prompt


class Halt(Record):
    """The agent's turn ends now, whatever the other gates say."""

    reason: str = ""

    def _validate(self) -> None:
        _check_text("reason", self.reason)


HIGHEST_EXTEND = 1_000_000


def _check_extend(extend: object) -> None:
    if not isinstance(extend, int) or isinstance(extend, bool) or not 0 <= extend <= HIGHEST_EXTEND:
        raise ValueError(f"extend is a new limit, a whole number from 0 to {HIGHEST_EXTEND}")


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{name} is text, not {type(value).__name__}")  # noqa: TRY004  # like all verdicts


# What is said before the detail of a problem, after the name of its gate; the detail of a gate that
# was killed or timed out is a sentence of its own.
_PROBLEMS = {
    "killed": "",
    "timeout": "",
    "cannot_start": "cannot start: ",
    "bad_answer": "gave a bad answer: ",
    "unreachable": "cannot run: ",
    "internal": "met a fault of notyet: ",
    "unsure": "cannot tell: ",
}


class Problem(Record):
    """A gate could not answer; its `if_broken` decides what that means (A6)."""

    kind: ProblemKind
    detail: str

    def __str__(self) -> str:
        return f"{_PROBLEMS.get(self.kind, f'{self.kind}: ')}{self.detail}"

    @property
    def is_ours(self) -> bool:
        """Whether it is a fault of notyet or of its time, and so never blocks."""
        return self.kind in {"deadline", "internal"}


class Report(Record, kw_only=True):
    """What one gate said, or the problem it had. No answer: it did not run (A2)."""

    gate: str
    answer: Allow | Block | Halt | Problem | None = None
    seconds: float = 0.0
    output: str = ""
    matched: str = ""  # which of the agent's names fitted which pattern (D2)
    observed: bool = False  # the gate only watches
    warning: str = ""  # something its author should know
    tell_user: str = ""  # what a hook wants its user to read (F14)
    hidden: bool = False  # a hook wants its output not shown (F12)
    exit: str = ""  # how a command ended, in words
    workspace: str = ""  # where a command ran, ssh://host/path; empty: here
    log: str = ""  # the file with all of its output, where that was too long for the prompt
    held: bool = False  # a problem that blocked, because `if_broken` is block
    # Not run, because no file changed since it "passed", or since the agent began ("unchanged").
    spared: str = ""
    definition: str = ""  # a digest of what the gate runs; empty: unknown (N1)
    when: str = ""  # "always" or "changed": whether it could be skipped; empty: unknown
    tokens: int = 0  # that a judge's model used
    is_relative: bool = False  # a pass of this session only: it is not remembered, nor stored
    passed_on: str = ""  # the files by which this pass is to be remembered; never stored
    failed_on: str = ""  # those on which it failed, so that no pass on them counts; never stored

    @property
    def status(self) -> str:
        """One word: allowed, blocked, halted, problem, not_asked; or why it was skipped."""
        if self.spared:
            return _SPARED[self.spared]
        for kind, word in _STATUS:
            if isinstance(self.answer, kind):
                return word
        return "not_asked"


_SPARED = {"passed": "remembered", "unchanged": "unchanged"}
_STATUS = ((Allow, "allowed"), (Block, "blocked"), (Halt, "halted"), (Problem, "problem"))


class Decision(Record, kw_only=True):
    """The settled verdict with its outcome and all reports: what we answer and remember."""

    verdict: Allow | Block | Halt
    outcome: Outcome
    reports: tuple[Report, ...] = ()
    turn: int = 0
    count: int = 0  # send-backs in this turn, this one included
    limit: int = 0  # how many were allowed
    limit_source: str = ""
    extend: int = 0  # a higher limit that gates asked for (B2)
    why: str = ""
    repeat_key: str = ""  # equal for stops that failed alike on the same tree (B6)
    overridden: int = 0  # the stop before, if the agent was sent back and did not come again (B11)
    warnings: tuple[str, ...] = ()
    stop: int = 0  # its number in `notyet log`; 0 if it is not recorded there
    subagents: tuple[str, ...] = ()  # those that did not pass, of which the user is told now
    # Gates that were skipped because no file changed since the session began, and that never passed
    # on these files, of which the user is told now.
    unchanged: tuple[str, ...] = ()
    # Gates that sent the agent back in this turn and have not passed since: names and files.
    sent_back_by: tuple[tuple[str, str], ...] = ()


def skipped(cause: str, *warnings: str) -> Decision:
    """Return a decision to allow a stop for a cause, without running a gate."""
    return Decision(verdict=Allow(), outcome="skipped", why=cause, warnings=warnings)
