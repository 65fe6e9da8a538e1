"""The gate `judge = "criteria"`: a model decides what no command can.

`with` is any command that reads a prompt on stdin and prints. It runs in an empty folder, where it
finds neither settings nor files of the project, and with NOTYET_INSIDE, so that no hook gates it. A
judge can block by a valid answer only; without one the gate is NOT CHECKED, never passed.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
import shlex
import shutil
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TYPE_CHECKING

from notyet.config.find import state_folder
from notyet.core.event import parents_key
from notyet.core.text import clean, first_line, shortened, visible
from notyet.gates.judge_answer import UnclearAnswer, judgement_in, tokens_in
from notyet.gates.judge_prompt import MOST_CRITERIA, Material, prompt_of, task_of
from notyet.gates.question import Answer, Question
from notyet.gates.session import NOT_GIT, SESSION, changes_since_start
from notyet.git.run import Unknown
from notyet.hosts.known_programs import every_program
from notyet.hosts.transcript import last_message_of
from notyet.run.command_runner import run_processes
from notyet.run.gate_command import INSIDE, exit_words
from notyet.run.spawn import SH, Job, shell_argv

if TYPE_CHECKING:
    from notyet.run.process import Process

CALLS = 5  # in a session, unless the gate says otherwise
_MOST_CALLS = 1_000
_EXAMPLE = 'with = "claude -p --model haiku"'
_SHARE = 0.95  # of the gate's seconds, so that we can say that the judge took too long
_HEAD = 64 * 1024  # bytes; as many again, and more, are kept from the end
_LONGEST_STDERR = 400  # bytes of it in a message
_LOCKED = 5.0  # seconds that another stop may take to count
_COUNT_DIGITS = 8
# By these, Claude Code connects what runs inside it with the session around it; it has no other
# list of them than this one. `Host.inside` has those by which a host marks its agents' commands.
_OF_OUTER_SESSION = (
    *("CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_PID"),
    *("CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN"),
    *("CLAUDE_CODE_ENTRYPOINT", "CLAUDE_PROJECT_DIR"),
)
_BLOCKED = """\
{reason}

A model said this, by the criteria of this gate. Fix it. If the judgement is wrong, say in your \
final message what it overlooked, and where: the judge reads that message at your next stop."""


class CannotJudge(Exception):  # noqa: N818  # what is wrong is elsewhere
    """The gate has no judgement; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the gate's table says, with the defaults filled in."""

    criteria: str
    argv: tuple[str, ...]
    command: str  # as people write it
    calls: int


def check(question: Question) -> Answer:
    """Ask a model whether the criteria hold."""
    ends = monotonic() + question.seconds * _SHARE
    log: list[str] = []
    tokens = 0
    try:
        options = options_of(question)
        call_id = secrets.token_hex(12)
        prompt = prompt_of(_material(question, options), call_id)
        number = count_call(question, options.calls)
        log.append(f"asked: {visible(options.command)}")
        log.append(f"call {number} of {options.calls} in this session")
        log.append(f"prompt: {len(prompt.encode()):,} bytes")
        process = _run(options, prompt, max(0.1, ends - monotonic()))
        log.append(f"answered in {process.seconds:.1f} s")
        printed = process.wrote[0].text().decode("utf-8", "replace")
        tokens = tokens_in(printed)
        log += [f"tokens: {tokens:,}"] if tokens else []
        _refuse_failed(process, options)
        judgement = judgement_in(printed, call_id)
    except (CannotJudge, UnclearAnswer) as why:
        return Answer(problem=str(why), output="\n".join(log), tokens=tokens)
    output = "\n".join([*log, f"ok: {str(judgement.ok).lower()}", judgement.reason])
    if judgement.ok:
        said = first_line(judgement.reason) or "the criteria hold"
        return Answer(note=f"judge: {said}", output=output, tokens=tokens)
    reason = _BLOCKED.format(reason=judgement.reason)
    return Answer(reason=reason, output=output, tokens=tokens)


def options_of(question: Question) -> Options:
    """Return the gate's options. Raises CannotJudge."""
    criteria = question.options.get("judge")
    if not isinstance(criteria, str) or not criteria.strip():
        raise CannotJudge("`judge` must be a text that says what must hold")
    if len(criteria.encode("utf-8", "replace")) > MOST_CRITERIA:
        raise CannotJudge(f"`judge` must not be longer than {MOST_CRITERIA // 1024} KB")
    calls = question.options.get("calls", CALLS)
    if isinstance(calls, bool) or not isinstance(calls, int) or not 1 <= calls <= _MOST_CALLS:
        raise CannotJudge(f"`calls` must be a whole number from 1 to {_MOST_CALLS}, not {calls!r}")
    argv, command = _command(question)
    return Options(criteria=clean(criteria), argv=argv, command=command, calls=calls)


def _command(question: Question) -> tuple[tuple[str, ...], str]:
    """Return the judge's arguments, and how people write them. Raises CannotJudge."""
    given = question.options.get("with")
    if given is None:
        return _own_command(question.event.host)
    if isinstance(given, str) and given.strip() and "\0" not in given:
        return shell_argv(given, SH), given
    words = given if isinstance(given, list | tuple) else ()
    if words and all(isinstance(word, str) and "\0" not in word for word in words) and words[0]:
        program = words[0]
        if "/" in program:  # the judge runs in another folder
            program = os.path.join(question.folder, program)
        return (program, *words[1:]), shlex.join(words)
    raise CannotJudge(f"`with` must be a command, or a list of its words: {_EXAMPLE}")


def _own_command(host: str) -> tuple[tuple[str, ...], str]:
    """Return the command by which the agent's own program judges. Raises CannotJudge."""
    known = {one.name: one for one in every_program()}.get(host)
    line = known.command_line if known else None
    if known is None or line is None or not line.judge:
        title = known.title if known else visible(host)
        raise CannotJudge(
            f"say which command judges ({_EXAMPLE}): notyet knows none of {title} that cannot act"
        )
    if shutil.which(known.program) is None:
        raise CannotJudge(f"`{known.program}` is not on the PATH; name a command: {_EXAMPLE}")
    return (known.program, *shlex.split(line.judge)), f"{known.program} {line.judge}"


def _material(question: Question, options: Options) -> Material:
    diff, since = diff_of(question)
    return Material(
        criteria=options.criteria,
        task=task_of(question.event),
        diff=diff,
        since=since,
        message=last_message_of(question.event),
        reports=question.reports,
    )


def diff_of(question: Question) -> tuple[str, str]:
    """Return what changed, and since when; nothing outside of git. Raises CannotJudge."""
    try:
        with changes_since_start(question, or_commit=True) as changes:
            return changes.start.patch(changes.now), changes.since
    except Unknown as unknown:
        if unknown.reason == NOT_GIT:
            return "", SESSION
        raise CannotJudge(f"what changed in this session is unknown: {unknown.reason}") from None
    except OSError as error:
        raise CannotJudge(f"what changed in this session is unknown: {error}") from None


# The budget.


def count_call(question: Question, most: int) -> int:
    """Count a call of this gate in its session, lastingly; return its number. Raises CannotJudge.

    It is counted before it is made: a judge that crashes the machine must not be free.
    """
    session = parents_key(question.event)
    state = state_folder(os.environ)
    if not session or not state:
        what = "there is no home folder" if session else "the host names no session"
        raise CannotJudge(f"its calls cannot be counted: {what}")
    key = repr((question.event.host, session, question.folder, question.gate))
    name = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:32]
    path = f"{state}/sessions/judge-{name}"  # with the notes of sessions, which are pruned
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        return _count_in(path, most)
    except OSError as error:
        raise CannotJudge(f"its calls cannot be counted in {path}: {error.strerror}") from None


def _count_in(path: str, most: int) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        _lock(fd)
        content = os.read(fd, 2 * _COUNT_DIGITS).strip()
        if content and not content.isdigit():
            raise CannotJudge(f"its calls cannot be counted: {path} holds no number; delete it")
        made = int(content or b"0")
        if made >= most:
            raise CannotJudge(
                f"its budget of {most} call{'s' * (most != 1)} in this session is used up"
            )
        # Of a fixed width, so that no crash can leave a part of an older number.
        os.pwrite(fd, b"%0*d" % (_COUNT_DIGITS, made + 1), 0)
        os.fsync(fd)
        return made + 1
    finally:
        os.close(fd)


def _lock(fd: int) -> None:
    """Lock a file, and wait for another stop that counts. Raises OSError."""
    gives_up = monotonic() + _LOCKED
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if monotonic() > gives_up:
                raise OSError(errno.EWOULDBLOCK, "another process has locked it") from None
            sleep(0.02)
        else:
            return


# The judge's process.


def _run(options: Options, prompt: str, seconds: float) -> Process:
    """Run the judge's command. Raises CannotJudge if there is no folder for it."""
    unwanted = {name for host in every_program() for name in host.inside} | {*_OF_OUTER_SESSION}
    environ = {name: value for name, value in os.environ.items() if name not in unwanted}
    job = Job(
        argv=options.argv,
        dir=empty_folder(),
        environ=environ | {INSIDE: "1"},
        stdin=prompt.encode("utf-8", "replace"),
        timeout=seconds,
        head=_HEAD,
    )
    (process,) = run_processes([job])
    return process


def empty_folder() -> str:
    """Return the folder that judges run in, which is empty. Raises CannotJudge.

    It is always the same, since agents remember every folder that they ran in. It is not below the
    folder for temporary files: agents read instructions in the folders above, and a sandboxed agent
    may write there, but mostly not here.
    """
    state = state_folder(os.environ)
    folder = f"{state}/judge"
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if os.path.islink(folder):
            raise CannotJudge(f"{folder} must be a folder, and is a link; delete it")
        for entry in os.scandir(folder):  # left by a judge that had more rights than it needs
            with suppress(FileNotFoundError):  # another judge begins, or ends
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    os.unlink(entry.path)
    except OSError as error:
        raise CannotJudge(f"the judge has no empty folder: {folder}: {error.strerror}") from None
    return folder


def _refuse_failed(process: Process, options: Options) -> None:
    """Raise CannotJudge unless the command ended well and printed no more than is read."""
    ended = process.exit()
    command = f"`{first_line(visible(options.command))}`"
    if ended.problem:
        raise CannotJudge(f"{command} could not be run: {ended.problem}")
    if ended.timed_out:
        raise CannotJudge(f"{command} did not answer in {ended.seconds:.0f} s")
    if ended.code != 0:
        said = clean(ended.stderr.decode("utf-8", "replace")).strip()
        said = said or clean(ended.stdout.decode("utf-8", "replace")).strip()
        why = f": {shortened(said, _LONGEST_STDERR)}" if said else ""
        raise CannotJudge(f"{command} failed ({exit_words(ended)}){why}")
    if process.wrote[0].left_out:
        raise CannotJudge(f"{command} printed too much: {process.wrote[0].left_out:,} bytes more")
