"""The process around `notyet hook`: its stdin, its stdout, its signals and its end."""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any

    from notyet.dialects.reply import Reply
else:
    import _signal as signal  # without the enum that `signal` imports

_BLOCK = 1 << 16
_KEPT = 33 * 1024 * 1024  # bytes; what comes beyond is read, so that the host is not held up
_SILENCE = 5.0  # seconds; a host that says nothing for so long, and does not close, has said all
_PAUSE = 0.005
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class _Ended(BaseException):
    """The host, or a person, wants us gone."""


class _Silent(Exception):  # noqa: N818  # it never leaves this module
    """Nothing came for a while."""


def answer_host(answer: Callable[[Callable[[], bytes]], Reply]) -> int:
    """Answer the host that started this process; return the exit code."""
    _occupy_standard_descriptors()
    reply = None
    try:
        _end_on_signals()
        reply = answer(_read_stdin)
        _ignore_signals()  # the stop is recorded as answered, so it is
    except (_Ended, KeyboardInterrupt):
        pass  # nobody reads our answer any more; the gates are ended
    _sweep()
    if reply is None:
        return 0
    _write(2, reply.stderr)
    _write(1, reply.stdout)
    return reply.code


def _occupy_standard_descriptors() -> None:
    """Keep what we open off the numbers 0 to 2, if the host closed them: we would write into it."""
    try:
        while True:
            number = os.open("/dev/null", os.O_RDWR)
            if number > 2:  # noqa: PLR2004  # stderr
                os.close(number)
                return
    except OSError:
        return


def _end_on_signals() -> None:
    def end(_number: int, _frame: Any) -> None:
        _end()  # once is enough; the gates are being ended

    for number in _ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:  # as `nohup` wants it
            signal.signal(number, end)


def _ignore_signals() -> None:
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)


def adopt() -> None:
    """Become the parent of whatever gates leave behind, before the first one is asked (E2)."""
    from notyet.checks.command import answer_to
    from notyet.checks.orphans import adopt_orphans

    adopt_orphans()
    answer_to(1, _end)


def _end() -> None:
    """The host is gone: it was killed, and could not tell us."""
    _ignore_signals()
    raise _Ended


def _sweep() -> None:
    """End what gates left behind outside their groups; the runner is loaded only if one ran."""
    orphans: Any = sys.modules.get("notyet.checks.orphans")
    if orphans is not None:
        orphans.sweep()


def _read_stdin() -> bytes:
    """Read all of stdin; nothing where it is closed, a terminal, or cannot be read."""
    kept: list[bytes] = []
    size = 0
    signal.signal(signal.SIGALRM, _tell_silence)
    try:
        if os.isatty(0):
            return b""
        block = b"."
        while block:
            signal.setitimer(signal.ITIMER_REAL, _SILENCE)
            block = _next_block()
            size += len(block)
            if size <= _KEPT:
                kept.append(block)
    except (OSError, _Silent):
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return b"".join(kept)


def _tell_silence(_number: int, _frame: Any) -> None:
    raise _Silent


def _next_block() -> bytes:
    while True:
        try:
            return os.read(0, _BLOCK)
        except BlockingIOError:  # some hosts hand out pipes that do not wait
            time.sleep(_PAUSE)


def _write(descriptor: int, text: str) -> None:
    """Write a text whole; a host that does not listen must not turn into an error."""
    if not text:
        return
    content = text.removesuffix("\n").encode("utf-8", "replace") + b"\n"
    ends = time.monotonic() + _SILENCE
    while content and time.monotonic() < ends:
        try:
            content = content[os.write(descriptor, content) :]
        except BlockingIOError:
            time.sleep(_PAUSE)
        except OSError:
            return
