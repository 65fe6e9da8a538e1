"""The process around `notyet hook`: its stdin, its stdout, its signals and its end."""

from __future__ import annotations

import sys
import time

from notyet import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any

    from notyet.dialects import Reply
else:
    import _signal as signal  # without the enum that `signal` imports

_BLOCK = 1 << 16
_KEPT = 33 * 1024 * 1024  # bytes; what comes beyond is read, so that the host is not held up
_SILENCE = 5.0  # seconds; a host that says nothing for so long, and does not close, has said all
_LONGEST_READING = 10.0  # seconds, or a third of what the host waits
_SHORTLY = 0.2  # seconds that an answer may take in any case
_TICK = 0.05  # seconds after which we look whether what came is all that will come
_PAUSE = 0.005
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_NEVER = float("inf")
_SOON = 0.001  # 0 would stop a timer
_LATE = 1e6  # timers overflow somewhere above


class _Ended(BaseException):
    """The host, or a person, wants us gone."""


class OutOfTime(BaseException):
    """The host stops waiting for us soon; what we do now is not done in time.

    Not an Exception: whoever keeps a fault of somebody else to himself must not keep this one.
    """


class _Alarm:
    """The one timer of a process, and what it does."""

    def __init__(self) -> None:
        self._do: Callable[[], None] = _nothing
        self.started = 0.0  # 0: no host waits for us
        self.patience = _NEVER

    def set(self, seconds: float, again: float, do: Callable[[], None]) -> None:
        """Call something after so many seconds, and then in intervals."""
        self._do = do
        signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, min(max(seconds, _SOON), _LATE), again)

    def stop(self) -> None:
        """Call nothing any more."""
        self._do = _nothing
        signal.setitimer(signal.ITIMER_REAL, 0)

    def guard(self) -> None:
        """Raise OutOfTime shortly before the host stops waiting, and once more if need be.

        The gates were ended before that, at two margins more; so something else takes so long.
        """
        if self.patience == _NEVER:
            self.stop()
            return
        margin = min(1.0, self.patience / 15)  # a third of that of the gates
        self.set(self.left() - margin, margin / 2, _raise_out_of_time)

    def left(self) -> float:
        """Return how many seconds the host still waits."""
        return self.started + self.patience - time.monotonic()

    def _ring(self, _number: int, _frame: Any) -> None:
        self._do()


def _nothing() -> None:
    """Do nothing: the alarm was stopped while it rang."""


def _raise_out_of_time() -> None:
    raise OutOfTime


_alarm = _Alarm()


def host_waits(seconds: float) -> None:
    """Say how long the host waits for us, all in all; does nothing in any other program."""
    if _alarm.started:
        _alarm.patience = seconds
        _alarm.guard()


def asked_at() -> float | None:
    """Return when the host started this process for its one stop; None in any other program."""
    if not _alarm.started:
        return None
    from notyet.ledger.owner import own_birth

    return own_birth()


def answer_host(answer: Callable[[Callable[[], bytes]], Reply]) -> int:
    """Answer the host that started this process; return the exit code."""
    _occupy_standard_descriptors()
    _alarm.started, _alarm.patience = time.monotonic(), _NEVER
    reply = None
    try:
        try:
            _end_on_signals()
            reply = answer(_read_stdin)
            _ignore_signals()  # the stop is recorded as answered, so it is
        finally:
            _alarm.stop()
    except (_Ended, KeyboardInterrupt, OutOfTime):
        pass  # nobody reads our answer any more, or there is none; the gates are ended
    _alarm.stop()
    _sweep()
    if reply is not None:
        _write(2, reply.stderr)
        _write(1, reply.stdout)
        _tidy()
    _alarm.started, _alarm.patience = 0.0, _NEVER
    return 0 if reply is None else reply.code


def _tidy() -> None:
    """Let the ledger be tidied up, if it is in use and its turn has come; briefly."""
    check = sys.modules.get("notyet.cli.hook_check")
    if check is None:
        return
    try:
        _alarm.set(_SHORTLY, 0, _raise_out_of_time)
        check.tidy(system.variables())
    except (Exception, OutOfTime):  # noqa: BLE001  # the host has its answer, and hears of nothing
        return
    finally:
        _alarm.stop()


def _occupy_standard_descriptors() -> None:
    """Keep what we open off the numbers 0 to 2, if the host closed them: we would write into it."""
    try:
        while True:
            number = system.open("/dev/null", system.O_RDWR)
            if number > 2:  # noqa: PLR2004  # stderr
                system.close(number)
                return
    except OSError:
        return


def _end_on_signals() -> None:
    def end(_number: int, _frame: Any) -> None:
        _end()  # once is enough; the gates are being ended

    for number in _ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:  # as `nohup` wants it
            signal.signal(number, end)
    # What a host ignores or blocks stays so in what it starts: without SIGCHLD we would never
    # learn how a gate ended, and without the others nothing could end us.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    wanted = (*_ENDING, signal.SIGALRM, signal.SIGCHLD)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, wanted)


def _ignore_signals() -> None:
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)


def adopt() -> None:
    """Become the parent of whatever gates leave behind, if and when one is started (E2)."""
    from notyet.checks.first_command import before_commands

    before_commands(_adopt)


def _adopt() -> None:
    from notyet.checks.groups import reap_later
    from notyet.checks.loop import answer_to
    from notyet.checks.orphans import adopt_orphans

    adopt_orphans()
    reap_later()
    answer_to(1, _end)


def _end() -> None:
    """The host is gone: it was killed, and could not tell us."""
    _ignore_signals()
    raise _Ended


def _sweep() -> None:
    """End what gates left behind outside their groups; the runner is loaded only if one ran."""
    orphans: Any = sys.modules.get("notyet.checks.orphans")
    if orphans is not None:
        orphans.sweep(_alarm.left() / 2)


class _Reading:
    """What came on stdin so far."""

    def __init__(self) -> None:
        self._kept: list[bytes] = []
        self._size = self._looked_at = 0
        self._came = time.monotonic()
        self._ends = (_alarm.started or self._came) + min(_LONGEST_READING, _alarm.patience / 3)

    def add(self, block: bytes) -> None:
        self._size += len(block)
        self._came = time.monotonic()
        if self._size <= _KEPT:
            self._kept.append(block)

    def content(self) -> bytes:
        return b"".join(self._kept)

    def look(self) -> None:
        """End the reading by an EOFError if there is nothing to wait for; called in silence.

        If a block came at this very moment it is lost. So it is one that nobody needs, because
        the event is complete without it, or one that comes too late.
        """
        now = time.monotonic()
        if now >= min(self._ends, self._came + _SILENCE) or self._is_complete():
            raise EOFError

    def _is_complete(self) -> bool:
        """Tell whether this is one whole object; some hosts leave the pipe open."""
        if self._looked_at == self._size:
            return False
        self._looked_at = self._size
        content = self.content().strip()
        if not content.endswith(b"}"):
            return False
        from notyet.core.json_text import loads

        try:
            return isinstance(loads(content.decode("utf-8", "replace").lstrip("\ufeff")), dict)
        except (ValueError, RecursionError):
            return False


def _read_stdin() -> bytes:
    """Read all of stdin; nothing where it is closed, a terminal, or cannot be read."""
    if system.isatty(0):
        return b""
    reading = _Reading()
    _alarm.set(_TICK, _TICK, reading.look)
    try:
        while block := _next_block():
            reading.add(block)
    except (OSError, EOFError):
        pass
    finally:
        _alarm.guard()
    return reading.content()


def _next_block() -> bytes:
    while True:
        try:
            return system.read(0, _BLOCK)
        except BlockingIOError:  # some hosts hand out pipes that do not wait
            time.sleep(_PAUSE)


def written(text: str) -> bytes:
    """Return what a host reads of a text: whole lines, or nothing."""
    return text.removesuffix("\n").encode("utf-8", "replace") + b"\n" if text else b""


def _write(descriptor: int, text: str) -> None:
    """Write a text whole; a host that does not listen must not turn into an error."""
    content = written(text)
    if not content:
        return
    _alarm.set(min(_SILENCE, max(_SHORTLY, _alarm.left() / 3)), 0, _raise_out_of_time)
    try:
        while content:
            try:
                content = content[system.write(descriptor, content) :]
            except BlockingIOError:
                time.sleep(_PAUSE)
    except (OSError, OutOfTime):
        pass
    finally:
        _alarm.stop()
