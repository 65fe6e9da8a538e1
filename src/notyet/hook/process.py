"""The process of `notyet hook`: its timer, its signals, stdin and stdout.

A timer goes off anywhere, between any two steps. So it raises only where time is really up, and
from then on the answer that is still due is not disturbed once more.
"""

from __future__ import annotations

import sys
import time

from notyet import light

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from notyet.hosts.host import Reply

if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # without the enum that `signal` imports

SHORTLY = 0.2  # seconds that an answer may take in any case
TICK = 0.05  # seconds after which we look again, where nothing else tells us
NEVER = float("inf")
_SOON = 0.001  # 0 would stop a timer
_LATE = 1e6  # timers overflow somewhere above


class Ended(BaseException):
    """A signal ends this process, or its host is gone."""


class OutOfTime(BaseException):
    """The host stops waiting for us soon; what we do now is not done in time.

    Not an Exception: code that catches the faults of foreign code must not catch this one.
    """


class Alarm:
    """The one timer of a process, and what it does."""

    def __init__(self) -> None:
        self._do: Callable[[], None] = _nothing
        self.started = 0.0  # 0: no host waits for us
        self.patience = NEVER
        self.is_ending = False  # then it is set for nothing else any more, until it is stopped
        self.ended_by = 0  # the signal that ends this process

    def set(self, seconds: float, again: float, do: Callable[[], None]) -> None:
        """Call something after so many seconds, and then in intervals."""
        if self.is_ending:
            return
        self.stop()  # else a timer that runs could do at once what the next one is for
        signal.signal(signal.SIGALRM, self._ring)  # after which it has gone off, or never will
        self._do = do
        signal.setitimer(signal.ITIMER_REAL, min(max(seconds, _SOON), _LATE), again)

    def stop(self) -> None:
        """Call nothing any more."""
        self._do, self.is_ending = _nothing, False
        signal.setitimer(signal.ITIMER_REAL, 0)

    def guard(self) -> None:
        """Raise OutOfTime shortly before the host stops waiting, and again until it is taken.

        The gates were ended before that, at two margins more; so something else takes so long.
        """
        if self.patience == NEVER:
            self.stop()
            return
        margin = min(1.0, self.patience / 15)  # a third of that of the gates
        self.set(self.left() - margin, max(margin / 2, TICK), raise_out_of_time)

    def left(self) -> float:
        """Return how many seconds the host still waits."""
        return self.started + self.patience - time.monotonic()

    def _ring(self, _number: int, _frame: Any) -> None:
        self._do()


def _nothing() -> None:
    """Do nothing: the alarm was stopped while it rang."""


def raise_out_of_time() -> None:
    """Interrupt what is being done: time is up."""
    sys.unraisablehook = raise_again
    raise OutOfTime


alarm = Alarm()


def raise_again(lost: Any) -> None:
    """Raise again what was raised where Python can only print it.

    Such places are callbacks, like those that importlib has for its locks.
    """
    if isinstance(lost.exc_value, Ended):
        alarm.set(TICK, TICK, _end_after_all)
        alarm.is_ending = True  # the last step, because in here it would be lost for good
    elif not isinstance(lost.exc_value, OutOfTime):  # which comes again by itself
        sys.__unraisablehook__(lost)


def _end_after_all() -> None:
    if alarm.is_ending:
        alarm.stop()
        raise Ended


def host_waits(seconds: float) -> None:
    """Set how long the host waits for us; does nothing in any other program."""
    if alarm.started:
        alarm.patience = seconds
        alarm.guard()


def be_undisturbed() -> None:
    """Raise OutOfTime no more: it was taken, or all that is left is to write the answer."""
    if alarm.started:
        alarm.stop()


def be_brief() -> None:
    """Raise OutOfTime once more halfway to the very end, but leave time for what is brief."""
    if alarm.started:
        seconds = max(SHORTLY, alarm.left() / 2)
        alarm.set(seconds, seconds, raise_out_of_time)


_BLOCK = 1 << 16
_KEPT = 33 * 1024 * 1024  # bytes; the rest is read too, so that the host can write it
_SILENCE = 5.0  # seconds; a host that says nothing for so long, and does not close, has said all
_LONGEST_READING = 10.0  # seconds, or a third of what the host waits
_LATE_LOOKS = 5  # ticks for which what lies there is read, although time is up
_PAUSE = 0.005
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def host_started_at() -> float | None:
    """Return when the host started this process for its stop; None in any other program."""
    if not alarm.started:
        return None
    from notyet.run.proc import own_birth

    return own_birth()


def serve_host(
    answer: Callable[[], Reply],
    afterwards: Callable[[], None],
    record_signal: Callable[[int], object] = bool,
) -> int:
    """Answer the host that started this process; return the exit code.

    `afterwards` is called briefly once the host has its answer. A signal before that ends the
    gates, is recorded by `record_signal`, and then ends this process, which its host shows.
    """
    alarm.started, alarm.patience = time.monotonic(), NEVER
    reply = None
    try:
        try:
            _end_on_signals()
            _occupy_standard_descriptors()
            reply = answer()
            _ignore_signals()  # the stop is recorded as answered
        finally:
            alarm.stop()
    except (Ended, KeyboardInterrupt, OutOfTime):
        pass  # the host is gone, or there is no answer; the gates are ended
    alarm.stop()
    _sweep()
    if reply is not None:
        _write(2, reply.stderr)
        _write(1, reply.stdout)
        _briefly(SHORTLY, afterwards)
    elif alarm.ended_by:
        _write(2, f"notyet: ended by signal {alarm.ended_by}; NOT CHECKED")
        _briefly(_SILENCE, lambda: record_signal(alarm.ended_by))
        signal.signal(alarm.ended_by, signal.SIG_DFL)
        light.kill(light.getpid(), alarm.ended_by)
    alarm.started, alarm.patience = 0.0, NEVER
    return 1 if reply is None else reply.code


def _briefly(seconds: float, do: Callable[[], object]) -> None:
    try:
        try:
            alarm.set(seconds, 0, raise_out_of_time)
            do()
        finally:
            alarm.stop()
    except (Exception, OutOfTime):  # noqa: BLE001  # the host has its answer
        return


def _occupy_standard_descriptors() -> None:
    """Keep what we open off the numbers 0 to 2, if the host closed them: we would write into it."""
    try:
        while True:
            number = light.open("/dev/null", light.O_RDWR)
            if number > 2:  # noqa: PLR2004  # stderr
                light.close(number)
                return
    except OSError:
        return


def _end_on_signals() -> None:
    def end(number: int, _frame: Any) -> None:
        alarm.ended_by = number
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
    """Become the parent of what gates leave behind, and hear when the host is gone (E2)."""
    from notyet.run.command_runner import watch_host
    from notyet.run.groups import adopt_orphans, defer_reaping

    adopt_orphans()
    defer_reaping()
    watch_host(1, _end)


def _end() -> None:
    """Raise Ended, once: a signal came, or the host is gone."""
    _ignore_signals()
    sys.unraisablehook = raise_again
    raise Ended


def _sweep() -> None:
    """End what gates left behind outside their groups; the runner is loaded only if one ran."""
    orphans: Any = sys.modules.get("notyet.run.groups")
    if orphans is not None:
        orphans.sweep(alarm.left() / 2)


class _StdinReader:
    """What came on stdin so far, and whether more is waited for."""

    def __init__(self) -> None:
        self._kept: list[bytes] = []
        self._size = self._looked_at = self._late_looks = 0
        self._is_over = False
        self._came = time.monotonic()
        self._ends = (alarm.started or self._came) + min(_LONGEST_READING, alarm.patience / 3)

    def add(self, block: bytes) -> None:
        size = self._size + len(block)
        if size <= _KEPT:
            self._kept.append(block)
        self._came = time.monotonic()
        self._size = size  # the last step: what counts as having come can be looked at

    def content(self) -> bytes:
        return b"".join(self._kept)

    def look(self) -> None:
        """Put an end to stdin if there is nothing to wait for; the alarm calls this, anywhere.

        It raises nothing, so that nothing is lost which was just read: the next read finds the
        end. The host's pipe stays open, because it may still write.
        """
        if self._is_over or not (self._is_complete() or self._is_late()):
            return
        try:
            reads, writes = light.pipe()
            light.dup(0)
            light.close(writes)
            light.dup2(reads, 0)
            light.close(reads)
        except OSError:  # at the next tick, maybe
            return
        self._is_over = True

    def _is_complete(self) -> bool:
        """Return True if this is one whole object; some hosts leave the pipe open."""
        if self._looked_at == self._size:
            return False
        self._looked_at = self._size
        content = self.content().strip()
        if not content.endswith(b"}"):
            return False
        try:
            return isinstance(
                light.loads(content.decode("utf-8", "replace").lstrip("\ufeff")), dict
            )
        except (ValueError, RecursionError):
            return False

    def _is_late(self) -> bool:
        """Return True if the host took too long, and we have read what it wrote."""
        if time.monotonic() < min(self._ends, self._came + _SILENCE):
            return False
        from select import select

        self._late_looks += 1
        return self._late_looks > _LATE_LOOKS or not select([0], [], [], 0)[0]


def read_stdin() -> bytes:
    """Read all of stdin; nothing where it is closed, a terminal, or cannot be read."""
    if light.isatty(0):
        return b""
    reader = _StdinReader()
    alarm.set(TICK, TICK, reader.look)
    try:
        while block := _next_block():
            reader.add(block)
    except OSError:
        pass
    finally:
        alarm.guard()
    return reader.content()


def _next_block() -> bytes:
    while True:
        try:
            return light.read(0, _BLOCK)
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
    try:
        try:
            alarm.set(min(_SILENCE, max(SHORTLY, alarm.left() / 3)), 0, raise_out_of_time)
            while content:
                try:
                    content = content[light.write(descriptor, content) :]
                except BlockingIOError:
                    time.sleep(_PAUSE)
        finally:
            alarm.stop()
    except (OSError, OutOfTime):
        pass
