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

from notyet.core.gate import Exit
from notyet.run import ssh, sweep
from notyet.run.cannot_start import CannotStart
from notyet.run.groups import reap
from notyet.run.loop import NEVER, WRITE
from notyet.run.output import TAIL, Kept
from notyet.run.process import Process
from notyet.run.remote import RemoteJob, part_of
from notyet.run.remote_exit import advice_for, ending, no_connection
from notyet.run.spawn import MARK, Job, is_out_of_room, new_token, prepare, start_problem
from notyet.run.ssh_script import conversation
from notyet.run.stage import Stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_AT_MOST = 60.0  # seconds to connect and authenticate
_SHARE = 0.5  # of the time left, to connect; the rest is for reporting a failure
_ANSWER = 5.0  # seconds for a session to begin; if exceeded, a reused connection is dead
_GRACE = 1.5  # seconds between telling the script to end a command and giving up on its output
_LAST_GRACE = 0.2  # the same at the deadline
_READERS = 0.3  # seconds that another process may hold the output of an exited command open
# sshd silently drops some connections if many come in the same moment (MaxStartups).
_DROPPED = b"_exchange_identification: "
_INSIST = 6.0  # seconds to retry; the cause may be another one
_PAUSE = 0.1  # seconds at least before a retry, and at most six times that
_EXITED = b"x "  # a command has exited, and its output is still being read
_PARTS = 3  # of a record: stdout, stderr, and how the shell lists its jobs
_CHUNK = 64 * 1024
_PREAMBLE = 4096  # bytes before the first record, which are only read to explain a failure
_CUT = b"\n... more was printed here, and left out ...\n"
# Variables that ssh may need to run a session, also one for which it makes its own connection.
_NEEDED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "SSH_AUTH_SOCK", "KRB5CCNAME")
_NO_FOLDER = (
    "there is no private folder for a connection; let XDG_RUNTIME_DIR or HOME be a folder with a "
    "short path that only this user can write to"
)


class Records:
    """The records that a script prints, each marked by its secret."""

    left_out = 0  # like `Kept`

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._unread = bytearray()
        self._new: list[tuple[int, bytes, list[bytes]]] = []
        self.has_begun = False
        self.preamble = b""

    def add(self, chunk: bytes) -> None:
        """Add the next bytes."""
        self._unread += chunk
        recent = bytes(self._unread[-len(chunk) - len(self._secret) - 2 :])
        if self._secret in recent or not self.has_begun:
            self._read()

    def take(self) -> list[tuple[int, bytes, list[bytes]]]:
        """Return the number, the word and the parts of each new record."""
        new, self._new = self._new, []
        return new

    def text(self) -> bytes:
        """Return the bytes before the first record."""
        return self.preamble

    def _read(self) -> None:
        if not self.has_begun:
            before, found, after = bytes(self._unread).partition(self._secret + b"\n")
            self.preamble = before[-_PREAMBLE:]
            self.has_begun = bool(found)
            self._unread = bytearray(after if found else self.preamble)
        mark = b"\n" + self._secret
        unread = bytes(self._unread)
        while (start := unread.find(mark + b" ")) >= 0:
            head, newline, rest = unread[start + len(mark) + 1 :].partition(b"\n")
            number, _, word = head.partition(b" ")
            parts: list[bytes] = []
            is_whole = word.startswith(_EXITED)
            if not is_whole:
                *parts, rest = rest.split(mark + b"\n", _PARTS)
            if not newline or (not is_whole and len(parts) < _PARTS):
                break
            self._new.append((int(number), word, parts))
            unread = rest
        self._unread = bytearray(unread)


class RemoteProcess(Process):
    """One command of a session."""

    job: RemoteJob
    session: Session
    number = 0  # in the session
    is_done = False
    exited_with = b""  # from the record that it has exited
    lost = False  # the connection was lost while it ran
    left_out = 0
    stdout = stderr = b""

    def take_record(self, word: bytes, parts: list[bytes]) -> None:
        """Store the record of its end."""
        texts = []
        for text in parts[:2]:
            is_cut = len(text) > self.job.head + TAIL
            self.left_out += is_cut
            kept = text[: self.job.head] + _CUT + text[-TAIL:]
            texts.append(kept if is_cut else text)
        self.stdout, self.stderr = texts
        if not self.timed_out and not self.cancelled:
            self.code, self.signal, self.problem = ending(self.job, word, parts[2])

    def exit(self) -> Exit:
        """Return how it ended."""
        return Exit(
            code=self.code,
            signal=self.signal,
            timed_out=self.timed_out,
            cancelled=self.cancelled,
            problem=self.problem,
            lost=self.lost,
            advice=advice_for(self.job.remote, self.problem),
            stdout=self.stdout,
            stderr=self.stderr,
            left_out=self.left_out,
            seconds=self.seconds,
        )

    def forget_output(self) -> None:
        """Free the memory of its output."""
        self.stdout = self.stderr = b""


class Session(Process):
    """The ssh process for all commands of a stage on one machine."""

    is_connecting = False
    is_reused = False  # the connection existed before
    records: Records

    def __init__(self, members: list[RemoteProcess], folder: str) -> None:
        self.remote = members[0].job.remote
        self.reach = ssh.socket_name(self.remote)
        self.name = os.path.join(folder, self.reach)
        self.socket = ""
        self.left: dict[int, RemoteProcess] = {}
        self.files: list[bytes] = []  # to write to stdin after `todo`
        self.patience = 0.0
        self.secret = new_token()
        super().__init__(Job(argv=("ssh",), dir="/", environ=os.environ))
        for number, member in enumerate(members, 1):
            member.session, member.number = self, number
            self.left[number] = member

    def connect(self, left: float) -> None:
        """Become the ssh that connects. Raises CannotStart for an unreachable machine."""
        patience = min(self._longest(ssh.PATIENCE), ssh.PATIENCE, left)
        if problem := ssh.why_lost(self.reach, patience):
            raise CannotStart(problem)
        ssh.tidy(os.path.dirname(self.name))
        self.is_connecting, self.is_reused = True, False
        self.patience = patience
        self.socket = f"{self.name}.{os.urandom(4).hex()}"
        self._become(ssh.connect_argv(self.remote, self.socket, patience), b"")

    def run_script(self, left: float) -> None:
        """Become the ssh that runs the commands. Raises ValueError for invalid input."""
        self.is_connecting = False
        seconds = min(self._longest(NEVER), left)
        line, script, files = conversation(
            next(iter(self.left.values())).job.token,
            self.secret,
            [part_of(member.job) for member in self.left.values()],
            None if seconds == NEVER else seconds,
        )
        # Renumber the commands, since some may have timed out meanwhile.
        self.left = dict(enumerate(self.left.values(), 1))
        for number, member in self.left.items():
            member.number = number
        self._become(ssh.session_argv(self.remote, self.socket, line), script)
        self.files = files

    def _become(self, argv: tuple[str, ...], stdin: bytes) -> None:
        folder = "/"  # a connection stays, and must not keep another folder in use
        if not self.is_connecting:
            with suppress(FileNotFoundError):
                folder = os.getcwd()  # entering another folder takes a shell
        environ = dict(os.environ)
        if not self.is_connecting:  # so that SendEnv in the user's configuration sends nothing
            environ = {name: environ[name] for name in _NEEDED if name in environ}
        self.job = Job(argv=argv, dir=folder, environ=environ, stdin=stdin)
        self.todo, self.files = memoryview(stdin), []
        self.exited = self.reaped = self.forced = False
        self.pid = self.signal = 0
        self.code = None
        self.forget_output()

    def start(self, argv: list[str], environ: dict[str, str], close: list[int]) -> None:
        """Start it; the ssh that a connection leaves behind must live on, so it gets no mark."""
        if self.is_connecting:
            del environ[MARK]
        super().start(argv, environ, close)

    def _blank(self) -> tuple[Records, Kept]:  # type: ignore[override]  # it is read like a Kept
        self.records = Records(self.secret.encode())
        return self.records, Kept()

    def _longest(self, unlimited: float) -> float:
        timeouts = [member.job.timeout for member in self.left.values()]
        return max(unlimited if timeout is None else timeout for timeout in timeouts)

    def said(self) -> str:
        """Return what ssh printed, or what a login shell printed before the script began."""
        text = self.wrote[1].text() or self.records.preamble
        return text.decode("utf-8", "replace")


class SshStage(Stage):
    """Commands that run together, some of them on other machines."""

    def __init__(self, jobs: Sequence[Job], deadline: float, cancel: int | None) -> None:
        super().__init__(jobs, deadline, cancel)
        groups: dict[str, list[RemoteProcess]] = {}
        for process in self._members():
            process.started = monotonic()
            if process.problem:
                process.is_done = True
            else:
                self._limit(process, self._on_timeout)
                groups.setdefault(process.job.remote.machine, []).append(process)
        folder = ssh.control_folder(os.environ) if groups else ""
        self.sessions = [Session(members, folder) for members in groups.values()]
        for session in self.sessions:
            session.problem = "" if folder else _NO_FOLDER
        self.processes += self.sessions
        self.waiting = [p for p in self.waiting if not isinstance(p, RemoteProcess)]
        self.waiting += self.sessions  # started first, since they take longest

    def _processes(self, jobs: Sequence[Job]) -> list[Process]:
        return [_process(job) for job in jobs]

    def _members(self) -> Iterator[RemoteProcess]:
        return (process for process in self.processes if isinstance(process, RemoteProcess))

    def left(self) -> set[Process]:
        """Return the processes that run, or wait for their turn."""
        members = {process for process in self._members() if not process.is_done}
        return super().left() | members

    def _time_left(self) -> float:
        return max(0.0, self.deadline - monotonic())

    # Sessions.

    def _launch(self, process: Process) -> None:
        if isinstance(process, Session) and not process.is_connecting and not process.socket:
            if process.problem:
                raise CannotStart(process.problem)
            if ssh.listens(process.name):
                process.socket, process.is_reused = process.name, True
                process.run_script(self._time_left())
            else:
                ssh.forget(process.name)
                process.connect(self._time_left() * _SHARE)
        if not isinstance(process, Session):
            super()._launch(process)
            return
        try:  # without a watchdog: if we die, its stdin ends, which ends the session
            argv, environ = prepare(process.job, self.here, self.token)
            process.start(argv, environ, self.inheritable_fds)
        except (OSError, ValueError) as error:
            if is_out_of_room(error):
                raise
            said = start_problem(error, process.job.argv)
            raise CannotStart(f"there is no connection to {process.remote.host}: {said}") from error

    def _begin(self, process: Process) -> None:
        if not isinstance(process, Session):
            super()._begin(process)
            return
        self._feed(process, process.stdin)
        if process.stdin >= 0 and process.todo:
            self.loop.listen(process.stdin, WRITE, self._feed, process)
        if process.is_connecting:
            ends = monotonic() + min(_AT_MOST, self._time_left() * _SHARE)
            self.loop.set_timer(process, ends, self._out_of_time)
        elif process.is_reused:
            self.loop.set_timer(process, monotonic() + _ANSWER, self._on_no_answer)

    def _input_written(self, process: Process) -> None:
        if isinstance(process, Session) and not process.is_connecting:
            while process.files and not process.todo:
                process.todo = memoryview(process.files.pop(0))
            if not process.todo:
                self.loop.ignore(process.stdin)  # stays open as the lifeline
        else:
            super()._input_written(process)

    def _read(self, process: Process, fd: int) -> None:
        super()._read(process, fd)
        if isinstance(process, Session):
            self._take_records(process)

    def _take_records(self, session: Session) -> None:
        for number, word, parts in session.records.take():
            self._take_record(session.left.get(number), word, parts)

    def _take_record(self, member: RemoteProcess | None, word: bytes, parts: list[bytes]) -> None:
        if member is None:
            return
        if not word.startswith(_EXITED):
            member.take_record(word, parts)
            self._done(member)
        elif not member.timed_out:
            member.seconds = monotonic() - member.started
            member.exited_with = word.removeprefix(_EXITED)
            self.loop.set_timer(member, monotonic() + _READERS, self._request_end)

    def _not_started(self, process: Process) -> None:
        if isinstance(process, Session):
            for member in tuple(process.left.values()):
                member.problem = process.problem
                member.timed_out, member.cut = process.timed_out, member.cut or process.cut
                self._done(member)

    def _on_exit(self, process: Process) -> None:
        if not isinstance(process, Session) or process.forced or not process.left:
            super()._on_exit(process)
            return
        for fd, stream in process.outputs.items():
            with suppress(BlockingIOError):
                while chunk := os.read(fd, _CHUNK):
                    stream.add(chunk)
        self._take_records(process)
        if not process.left:
            super()._on_exit(process)
            return
        pause = self._next_step(process)
        if pause is None:
            self._fail(process)
            super()._on_exit(process)
        elif process.left:
            self._start_again(process, pause)

    def _next_step(self, session: Session) -> float | None:
        """Prepare a session's next process; return the seconds to wait, None if it failed."""
        if session.is_connecting and session.code == 0:
            ssh.publish(session.socket, session.name)
            sweep.keep_alive(session.pid, session.socket)
            self._release(session)
            session.run_script(self._time_left())
            return 0.0
        pause = 0.0
        if session.is_connecting:
            pause = _PAUSE * (1 + 5 * os.urandom(1)[0] / 255)
            ends = session.started + min(_INSIST, self._time_left())
            if _DROPPED not in session.wrote[1].text() or monotonic() + pause >= ends:
                return None
        elif not session.is_reused or session.records.has_begun:
            return None
        ssh.forget(session.name)
        self._release(session)
        session.connect(self._time_left() * _SHARE)
        return pause

    def _fail(self, session: Session) -> None:
        """Set the problem of the commands of a session that ended before them."""
        for member in tuple(session.left.values()):
            seconds = monotonic() - member.started
            member.lost = session.records.has_begun and not session.is_connecting
            member.problem = session.problem or no_connection(
                session.remote,
                session.said(),
                seconds,
                is_late=session.timed_out,
                has_begun=member.lost,
            )
            if session.is_connecting:
                ssh.note_lost(
                    session.reach, member.problem, patience=session.patience, seconds=seconds
                )
            self._done(member)

    def _release(self, session: Session) -> None:
        """Reap an exited process, whose session continues with another one."""
        self._close_pipes(session)
        self.loop.clear_timer(session)
        self.running.discard(session)
        if self.watchdog is not None:  # its id may soon belong to another process
            self.watchdog.leave(session.pid)
        if not session.reaped:
            reap(session.pid)
        self.ending.pop(session.pid, None)

    def _start_again(self, session: Session, pause: float) -> None:
        if pause:
            self.running.add(session)  # counts as running during the pause
            self.loop.set_timer(session, monotonic() + pause, self._resume)
        else:
            self._resume(session)

    def _resume(self, session: Process) -> None:
        self.running.discard(session)
        self.loop.clear_timer(session)
        self.waiting.append(session)

    def _on_no_answer(self, session: Session) -> None:
        """Kill the ssh of a reused connection that seems dead, to connect again."""
        if not session.records.has_begun and session.is_started and not session.exited:
            session.send_signal(signal.SIGKILL)

    # Commands of a session.

    def _on_timeout(self, member: RemoteProcess) -> None:
        session = member.session
        member.timed_out = True
        if session.is_connecting or not session.records.has_begun:
            member.problem = no_connection(
                session.remote,
                "",
                monotonic() - member.started,
                is_late=True,
                is_stuck=bool(session.socket) and not session.is_connecting,
            )
            if session.is_connecting:
                seconds = monotonic() - member.started
                ssh.note_lost(
                    session.reach, member.problem, patience=session.patience, seconds=seconds
                )
            else:
                ssh.forget(session.name)  # it may be dead
            self._done(member)
        else:
            self._request_end(member)

    def _request_end(self, member: RemoteProcess) -> None:
        """Tell the script to end a command, or the processes that hold its output open."""
        session = member.session
        if session.stdin >= 0:
            session.files.append(b"%d\n" % member.number)
            if not session.todo:
                session.todo = memoryview(session.files.pop(0))
                self._feed(session, session.stdin)
        grace = _LAST_GRACE if monotonic() >= self.deadline else _GRACE
        self.loop.set_timer(member, monotonic() + grace, self._give_up)

    def _give_up(self, member: RemoteProcess) -> None:
        """Finish a command without its output."""
        if member.exited_with:
            member.take_record(member.exited_with, [b""] * _PARTS)
        self._done(member)

    def _done(self, member: RemoteProcess) -> None:
        """Mark a command as ended; end the session after the last one."""
        self.loop.clear_timer(member)
        member.is_done = True
        member.seconds = member.seconds or monotonic() - member.started
        session = member.session
        session.left.pop(member.number, None)
        if not session.left:
            self._end(session)

    def _end(self, session: Session) -> None:
        """Kill the ssh of a session; its script then ends all commands and removes its files."""
        if session.is_started and not session.exited:
            session.keeping = False
            session.send_signal(signal.SIGKILL)
            self._check_exit(session, -1)
            if not session.exited:
                session.forced = True
                self.loop.set_timer(session, monotonic() + _GRACE, self._kill)
        elif not session.is_started:
            self.running.discard(session)
            self.loop.clear_timer(session)
            if session in self.waiting:
                self.waiting.remove(session)

    def cancel_all(self) -> None:
        """End all that run, and start no more."""
        for member in self._members():
            if not member.is_done:
                member.cancelled = True
                self._done(member)
        super().cancel_all()


def _process(job: Job) -> Process:
    if not isinstance(job, RemoteJob):
        return Process(job)
    process = RemoteProcess(job)
    process.problem = job.refused
    return process
