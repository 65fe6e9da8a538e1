"""`--answer NAME=VERDICT[:WORDS]`: what a gate is taken to say, without asking it."""

from __future__ import annotations

from notyet.core.command import Command, Exit
from notyet.core.record import Record
from notyet.core.verdict import Allow, Block, Halt, Problem, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.gate import Gate

VERDICTS = ("allow", "block", "halt", "broken", "exit")
_HOW = "write it like tests=block:'Mend the tests.', tests=allow, tests=broken or tests=exit:3"
_HIGHEST_EXIT = 255
_UNSAID = "(answered by --answer)"


class Answer(Record):
    """What a gate is taken to say."""

    gate: str
    verdict: str
    words: str = ""


def answer_from(text: str) -> Answer:
    """Read an answer. Raises ValueError that says how one is written."""
    at = text.find("=")
    while at > 0:  # a name may hold the sign itself
        verdict, _, words = text[at + 1 :].partition(":")
        if verdict in VERDICTS:
            return _checked(Answer(text[:at], verdict, words))
        at = text.find("=", at + 1)
    raise ValueError(f"{text!r} is no answer; {_HOW}")


def _checked(answer: Answer) -> Answer:
    if answer.verdict != "exit":
        return answer
    if not answer.words.isascii() or not answer.words.isdecimal():
        raise ValueError(f"exit is followed by a code, not {answer.words!r}; {_HOW}")
    if len(answer.words) > len(str(_HIGHEST_EXIT)) or int(answer.words) > _HIGHEST_EXIT:
        raise ValueError(f"an exit code is at most {_HIGHEST_EXIT}, not {answer.words}")
    return answer


def report_of(gate: Gate, answer: Answer) -> Report:
    """Return what a gate would have reported, had it answered so."""
    words = answer.words.strip() and answer.words
    if answer.verdict == "exit":
        return _ended(gate, int(answer.words))
    said: Allow | Block | Halt | Problem = Allow()
    if answer.verdict == "block":
        said = Block(words or _UNSAID)
    elif answer.verdict == "halt":
        said = Halt(words)
    elif answer.verdict == "broken":
        said = Problem("crashed", words or _UNSAID)
    return Report(gate=gate.name, answer=said, observed=gate.observe, output=words)


def _ended(gate: Gate, code: int) -> Report:
    """Return what a command's exit code says, in the words of whom the command is written for."""
    from notyet.checks.command import Job
    from notyet.checks.question import CommandQuestion
    from notyet.dialects import command_face

    assert isinstance(gate.check, Command)  # no file holds a function
    face = command_face(gate.check.speaks)
    question = CommandQuestion(
        name=gate.name,
        job=Job(argv=("true",), dir="/", environ={}),  # which is not run
        read=lambda ended: face.read_reply(gate, ended),
        observed=gate.observe,
    )
    return question.report(Exit(code=code), cut=False)
