"""Run commands on other machines: one ssh session per machine runs all of a stage there.

A session is one process here: first the ssh that connects, unless there is a connection already,
then the ssh that runs the script (see `ssh_script`). Each command has its own timeout, counted from
the start of the stage, so that it includes connecting (M2). ssh's own exit code is never a
command's answer (M3).
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from time import monotonic

from notyet.core.record import variant
from notyet.run import groups
from notyet.run import ssh_connection as ssh
from notyet.run.cannot_start import CannotStart
from notyet.run.command_runner import CommandRunner
from notyet.run.groups import reap
from notyet.run.process import NEVER, TAIL, Output, Process
from notyet.run.spawn import MARK, Job, is_out_of_room, new_stage_token, prepare, start_failure
from notyet.run.ssh_job import RemoteJob
from notyet.run.ssh_script import conversation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notyet.core.gate import Exit

_AT_MOST = 60.0  # seconds to connect and authenticate
_SHARE = 0.5  # of the time left, to connect; the rest is for reporting a failure
_ANSWER = 5.0  # seconds for a session to begin; if exceeded, a reused connection is dead
_GRACE = 1.5  # seconds between telling the script to end a command and giving up on its output
_LAST_GRACE = 0.2  # the same at the deadline
# sshd silently drops some connections if many come in the same moment (MaxStartups).
_DROPPED = b"_exchange_identification: "
_INSIST = 6.0  # seconds to retry; the cause may be another one
_PAUSE = 0.1  # seconds at least before a retry, and at most six times that
_CHUNK = 64 * 1024
_PREAMBLE = 4096  # bytes before the first record, which are only read to explain a failure
# Variables that ssh may need to run a session, also one for which it makes its own connection.
_NEEDED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "SSH_AUTH_SOCK", "KRB5CCNAME")
_NO_FOLDER = (
    "there is no private folder for a connection; set XDG_RUNTIME_DIR or HOME to a folder with a "
    "short path that only this user can write to"
)
# Why a command did not start, by the script's word; the same texts as for commands here.
_CANNOT_START = {
    "gone-folder": "the folder to run in, {dir!r}, does not exist",
    "no-folder": "the folder to run in, {dir!r}, is not a folder",
    "closed-folder": "the folder to run in, {dir!r}, may not be entered",
    "no-program": "the program {program!r} was not found on the PATH",
    "gone-program": "the program {program!r} does not exist",
    "folder-program": "{program!r} is a folder, not a program",
    "closed-program": "{program!r} is not executable; chmod +x makes it so",
    "room": "its input cannot be written to /tmp: there is no room, or no right to",
}


class Records:
    """The records that a script prints, each marked by its secret."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        self._unread = bytearray()
        self.has_begun = False
        self.preamble = b""  # what was printed before the script began

    def add(self, chunk: bytes) -> None:
        """Add the next bytes."""
        self._unread += chunk
        if not self.has_begun:
            before, found, after = bytes(self._unread).partition(self._secret + b"\n")
            self.has_begun = bool(found)
            self.preamble = before[-_PREAMBLE:]
            self._unread = bytearray(after if found else self.preamble)

    def take(self) -> Iterator[tuple[int, str, bytes, bytes]]:
        """Yield the number, the word and both outputs of each new record."""
        mark = b"\n%s\n" % self._secret
        while self._unread.endswith(mark):
            head, *outputs = bytes(self._unread).split(mark, 2)
            if len(outputs) < 2:  # noqa: PLR2004  # the end of stdout, not of the record
                return
            head, _, stdout = head.removeprefix(b"\n%s " % self._secret).partition(b"\n")
            stderr, self._unread = outputs[0], bytearray(outputs[1])
            number, _, word = head.decode("ascii", "replace").partition(" ")
            yield int(number), word, stdout, stderr


class RemoteProcess(Process):
    """One command of a session."""

    job: RemoteJob
    session: SshSession
    number = 0  # in the session
    is_done = False
    has_run = False  # or was refused by its machine
    lost = False  # the connection was lost while it ran
    stdout = stderr = b""
    left_out = 0

    def take_record(self, word: str, stdout: bytes, stderr: bytes) -> None:
        """Store the record of its end."""
        self.has_run = True
        self.stdout, self.stderr = stdout, stderr
        most = self.job.head + TAIL
        self.left_out = sum(len(text) > most for text in (stdout, stderr))
        if self.timed_out or self.cancelled:
            return
        if word.isdecimal():
            self.code = int(word)
        elif word.startswith("signal "):
            self.signal = int(word.removeprefix("signal "))
        else:
            text = _CANNOT_START.get(word, "the answer of the script was not understood")
            program = self.job.argv[0]
            text = text.format(dir=self.job.dir, program=program)
            self.problem = f"on {self.job.remote.host}: {text}"

    def exit(self) -> Exit:
        """Return how it ended."""
        known = {
            "lost": self.lost,
            "unreachable": bool(self.problem) and not self.has_run and not self.job.refused,
            "advice": ssh.advice_for(self.job.remote, self.problem),
            "stdout": self.stdout,
            "stderr": self.stderr,
            "left_out": self.left_out,
        }
        return variant(super().exit(), known)

    def forget_output(self) -> None:
        """Free the memory of its output."""
        super().forget_output()
        self.stdout = self.stderr = b""


class SshSession(Process):
    """The ssh process for all commands of a stage on one machine."""

    is_guarded = False  # if we die, its stdin ends, which ends the script
    is_connecting = False
    is_connected = False  # by us; else the connection existed before
    records: Records

    def __init__(self, members: list[RemoteProcess], folder: str) -> None:
        self.remote = members[0].job.remote
        self.socket = os.path.join(folder, ssh.socket_name(self.remote))
        self.left = dict(enumerate(members, 1))
        self.files: list[bytes] = []  # to write to stdin after `todo`
        self.patience = 0.0
        self.secret = new_stage_token()
        super().__init__(Job(argv=("ssh",), dir="/", environ={}))
        self.problem = "" if folder else _NO_FOLDER
        for number, member in self.left.items():
            member.session, member.number = self, number

    def connect(self, left: float) -> None:
        """Become the ssh that connects. Raises CannotStart for an unreachable machine."""
        self.patience = min(self._longest(ssh.PATIENCE), ssh.PATIENCE, left)
        if problem := ssh.why_lost(self.socket, self.patience):
            raise CannotStart(problem)
        self.is_connecting = True
        argv = ssh.connect_argv(self.remote, self.socket, self.patience)
        # The connection stays, and must not keep another folder in use.
        self._become(Job(argv=argv, dir="/", environ=os.environ, timeout=min(_AT_MOST, left)))

    def run_script(self, left: float) -> None:
        """Become the ssh that runs the commands which have not timed out yet."""
        self.is_connecting = False
        self.left = dict(enumerate(self.left.values(), 1))
        for number, member in self.left.items():
            member.number = number
        seconds = min(self._longest(NEVER), left)
        line, script, files = conversation(
            self.secret,
            [member.job for member in self.left.values()],
            None if seconds == NEVER else seconds,
        )
        argv = ssh.session_argv(self.remote, self.socket, line)
        # Only what ssh needs, so that SendEnv in the user's configuration sends nothing.
        environ = {name: os.environ[name] for name in _NEEDED if name in os.environ}
        folder = "/"
        with suppress(FileNotFoundError):
            folder = os.getcwd()  # entering another folder takes a shell
        self._become(Job(argv=argv, dir=folder, environ=environ, stdin=script))
        self.files = files

    def _become(self, job: Job) -> None:
        self.job = job
        self.todo, self.files = memoryview(job.stdin), []
        self.exited = self.reaped = self.forced = False
        self.pid = self.signal = 0
        self.started = 0.0
        self.code = None
        self.forget_output()

    def start(self, argv: list[str], environ: dict[str, str], close: list[int]) -> None:
        """Start it without our mark: the ssh that holds the connection must live on."""
        del environ[MARK]
        super().start(argv, environ, close)

    def forget_output(self) -> None:
        """Free the memory of its output."""
        self.records = Records(self.secret)
        self.wrote = self.records, Output()  # type: ignore[assignment]  # it is read like an Output

    def _longest(self, unlimited: float) -> float:
        timeouts = [member.job.timeout for member in self.left.values()]
        return max(unlimited if timeout is None else timeout for timeout in timeouts)

    def said(self) -> str:
        """Return what ssh printed, or what a login shell printed before the script began."""
        text = self.wrote[1].text() or self.records.preamble
        return text.decode("utf-8", "replace")


class SshRunner(CommandRunner):
    """Commands that run together, some of them on other machines."""

    def __init__(self, jobs: Sequence[Job], deadline: float, cancel: int | None) -> None:
        super().__init__(jobs, deadline, cancel)
        self.members = [one for one in self.processes if isinstance(one, RemoteProcess)]
        by_machine: dict[str, list[RemoteProcess]] = {}
        for member in self.members:
            member.started = monotonic()
            if member.problem:
                member.is_done = True
            else:
                self._limit(member, self._on_timeout)
                by_machine.setdefault(member.job.remote.machine, []).append(member)
        folder = ssh.control_folder(os.environ) if by_machine else ""
        sessions = [SshSession(members, folder) for members in by_machine.values()]
        self.processes += sessions
        self.waiting = [one for one in self.waiting if not isinstance(one, RemoteProcess)]
        self.waiting += sessions  # started first, since they take longest

    def _process(self, job: Job) -> Process:
        if not isinstance(job, RemoteJob):
            return super()._process(job)
        process = RemoteProcess(job)
        process.problem = job.refused
        return process

    def left(self) -> set[Process]:
        """Return the processes that run, or wait for their turn."""
        return super().left().union(member for member in self.members if not member.is_done)

    def cancel_all(self) -> None:
        """End all that run, and start no more."""
        for member in self.members:
            if not member.is_done:
                member.cancelled = True
                self._done(member)
        super().cancel_all()

    # Sessions.

    def _launch(self, process: Process) -> None:
        if not isinstance(process, SshSession):
            super()._launch(process)
            return
        if process.problem:
            raise CannotStart(process.problem)
        if process.is_connected or ssh.listens(process.socket):
            process.run_script(self._time_left())
        else:
            process.connect(self._time_left() * _SHARE)
        try:
            argv, environ = prepare(process.job, self.here, self.token)
            process.start(argv, environ, self.inheritable_fds)
        except (OSError, ValueError) as error:
            if is_out_of_room(error):
                raise
            said = start_failure(error, process.job.argv)
            raise CannotStart(f"there is no connection to {process.remote.host}: {said}") from error

    def _time_left(self) -> float:
        return max(0.0, self.deadline - monotonic())

    def _listen_to(self, process: Process) -> None:
        super()._listen_to(process)
        if isinstance(process, SshSession) and not process.is_connecting:
            self.loop.clear_timer(process)  # its commands have timers
            if not process.is_connected:
                self.loop.set_timer(process, monotonic() + _ANSWER, self._on_no_answer)

    def _on_no_answer(self, session: SshSession) -> None:
        """Kill the ssh of a reused connection that seems dead, to connect again."""
        if not session.records.has_begun and not session.exited:
            session.send_signal(signal.SIGKILL)

    def _input_written(self, process: Process) -> None:
        if not isinstance(process, SshSession) or process.is_connecting:
            super()._input_written(process)
            return
        while process.files and not process.todo:
            process.todo = memoryview(process.files.pop(0))
        if not process.todo:
            self.loop.ignore(process.stdin)  # stays open as the lifeline

    def _read(self, process: Process, fd: int) -> None:
        super()._read(process, fd)
        if isinstance(process, SshSession):
            self._take_records(process)

    def _take_records(self, session: SshSession) -> None:
        for number, word, stdout, stderr in session.records.take():
            if member := session.left.get(number):
                member.take_record(word, stdout, stderr)
                self._done(member)

    def _not_started(self, process: Process) -> None:
        if isinstance(process, SshSession):
            for member in tuple(process.left.values()):
                member.problem = process.problem
                member.timed_out, member.cut = process.timed_out, member.cut or process.cut
                self._done(member)

    def _on_exit(self, process: Process) -> None:
        if isinstance(process, SshSession) and process.left:
            for fd, stream in process.outputs.items():
                with suppress(BlockingIOError):
                    while chunk := os.read(fd, _CHUNK):
                        stream.add(chunk)
            self._take_records(process)
            pause = self._pause_before_next(process) if process.left else None
            if pause is not None:
                self._start_next(process, pause)
                return
            self._fail(process)
        super()._on_exit(process)

    def _pause_before_next(self, session: SshSession) -> float | None:
        """Return the seconds before a session's next process starts; None if there is none."""
        if not session.is_connecting:
            can_retry = not session.is_connected and not session.records.has_begun
            return 0.0 if can_retry else None
        if session.code not in {None, ssh.FAILED}:  # whatever the login shell thinks of `exit`
            return 0.0
        pause = _PAUSE * (1 + 5 * os.urandom(1)[0] / 255)
        ends = min(member.started for member in session.left.values()) + _INSIST
        is_dropped = _DROPPED in session.wrote[1].text()
        return pause if is_dropped and monotonic() + pause < min(ends, self.deadline) else None

    def _start_next(self, session: SshSession, pause: float) -> None:
        """Reap a session's process, and start the next one."""
        session.is_connected = session.is_connecting and session.code not in {None, ssh.FAILED}
        if session.is_connected:
            groups.keep_alive(session.pid, session.socket)
        else:
            ssh.forget(session.socket)
        self._close_pipes(session)
        if not session.reaped:
            reap(session.pid)
        self.ending.pop(session.pid, None)
        session.pid = 0
        self.running.add(session)  # counts as running during the pause
        self.loop.set_timer(session, monotonic() + pause, self._resume)

    def _resume(self, session: Process) -> None:
        self.running.discard(session)
        self.loop.clear_timer(session)
        self.waiting.append(session)

    def _fail(self, session: SshSession) -> None:
        """Set the problem of the commands of a session that ended before them."""
        for member in tuple(session.left.values()):
            seconds = monotonic() - member.started
            member.lost = session.records.has_begun
            if member.lost:
                last = ssh.last_line(session.said())
                host = session.remote.host
                because = f": {last}" if last else ""
                member.problem = f"the connection to {host} was lost while it ran{because}"
            elif session.timed_out:
                self._note_late(member)
            else:
                member.problem = ssh.no_connection(session.remote, session.said())
                if session.is_connecting:
                    ssh.note_lost(
                        session.socket, member.problem, patience=session.patience, seconds=seconds
                    )
            self._done(member)

    # Commands of a session.

    def _on_timeout(self, member: RemoteProcess) -> None:
        session = member.session
        member.timed_out = True
        if session.records.has_begun:
            self._request_end(member)
            return
        self._note_late(member)
        self._done(member)

    def _note_late(self, member: RemoteProcess) -> None:
        """Set the problem of a command that timed out before it could start."""
        session, seconds = member.session, monotonic() - member.started
        host = session.remote.host
        if session.is_connecting:
            member.problem = (
                f"there was no connection to {session.remote.host} within {seconds:.1f} s"
            )
            ssh.note_lost(
                session.socket, member.problem, patience=session.patience, seconds=seconds
            )
        else:
            ssh.forget(session.socket)  # it may be dead
            member.problem = (
                f"{host} did not begin to run it within {seconds:.1f} s; "
                "it may be stuck, or a file that its login shell reads waits for input"
            )

    def _request_end(self, member: RemoteProcess) -> None:
        """Have the script end a command, and give up on its output after a while."""
        session = member.session
        if session.stdin >= 0:
            session.files.append(b"%d\n" % member.number)
            if not session.todo:
                session.todo = memoryview(session.files.pop(0))
                self._feed(session, session.stdin)
        grace = _LAST_GRACE if monotonic() >= self.deadline else _GRACE
        self.loop.set_timer(member, monotonic() + grace, self._done)

    def _done(self, member: RemoteProcess) -> None:
        """Mark a command as ended; end the session after the last one."""
        self.loop.clear_timer(member)
        member.is_done = True
        member.seconds = member.seconds or monotonic() - member.started
        session = member.session
        session.left.pop(member.number, None)
        if not session.left:
            self._end(session)

    def _end(self, session: SshSession) -> None:
        """Kill the ssh of a session; its script then ends all commands and removes its files."""
        if session.pid and not session.exited:
            session.keeping = False
            session.send_signal(signal.SIGKILL)
            self._check_exit(session, -1)
            if not session.exited:
                session.forced = True
                self.loop.set_timer(session, monotonic() + _GRACE, self._kill)
        elif not session.pid:
            self.running.discard(session)
            self.loop.clear_timer(session)
            if session in self.waiting:
                self.waiting.remove(session)
