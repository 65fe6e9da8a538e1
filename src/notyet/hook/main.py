"""`notyet hook`: from the payload of a host to its reply.

Every stop is a cold start, and most need nothing: no gate is configured where the agent works, or
none for subagents. `needs_nothing` finds that out without loading more. All other stops are
answered by `Hook`, in `hook`. Nothing here raises or exits 2 for a reason of our own: whatever is
wrong ends in a reply that allows the stop.
"""

from __future__ import annotations

import sys
from time import time

from notyet import light
from notyet.config.find import projects_files
from notyet.hook.payload import HostCall, Options, Unreadable, of_wrong_kind
from notyet.hook.process import OutOfTime, adopt, be_undisturbed, read_stdin, serve_host
from notyet.hosts import HOSTS, host_named
from notyet.hosts.host import Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_MARKS = ("NOTYET_INSIDE", "NOTYET_SUPERVISED", "NOTYET_PROBE")  # which only `Hook` reads
_SHARE_EVERY = 60.0  # seconds
TIDY_EVERY = 50  # stops, of which one tidies up
_served: list[HostCall] = []


def serve(argv: Sequence[str]) -> int:
    """Read stdin, answer on stdout, and return the exit code."""
    call = HostCall(Options(argv), light.variables(), read_stdin)
    _served.append(call)  # a ledger that is freed is closed, and the host waits for that checkpoint
    return serve_host(
        lambda: reply_to(call, adopt), lambda: _tidy(call), lambda number: _unanswered(call, number)
    )


def reply_to(call: HostCall, before_commands: Callable[[], None] | None = None) -> Reply:
    """Answer one event; whatever happens, with a reply that the host understands.

    `before_commands` is called before the first gate starts, if one does.
    """
    try:
        if needs_nothing(call):
            return Reply(stdout=host_named(call.host).silence)
    except OutOfTime:
        call.is_out_of_time = True
    except Exception:  # noqa: BLE001, S110  # `Hook` meets it too, and reports it
        pass
    while True:
        try:
            if call.is_out_of_time:
                be_undisturbed()
            from notyet.hook.hook import Hook, reply_of

            return reply_of(Hook(call, before_commands))
        except OutOfTime:  # while modules were loaded, or while giving up
            call.is_out_of_time = True


def needs_nothing(call: HostCall) -> bool:
    """Return True if nothing is to be run, said or remembered; False where that is not sure."""
    options, environ = call.options, call.environ
    if options.warnings or options.event or options.agent or not environ.keys().isdisjoint(_MARKS):
        return False
    try:
        payload = call.payload()
    except Unreadable:
        return False
    if not call.host:
        from notyet.hosts.detect import detect

        call.is_from(detect(payload))
    if call.host not in HOSTS or call.warnings:
        return False
    host = host_named(call.host)
    if of_wrong_kind(payload, host) or host.is_foreign(payload):
        return False
    name, cwd = host.event_in(payload), host.value(payload, "cwd") or ""
    if name in host.ignored:
        return True
    is_known = name in host.stops or name in host.starts
    if not is_known or not light.isabs(cwd) or not light.isdir(cwd):
        return False
    project = call.started_in(host, host.value(payload, "session_id"))
    files = projects_files(cwd, call.host, environ, only=options.config, project=project)
    if not files:
        return files is not None
    if host.stops.get(name) != "subagent":  # gates are rarely for these
        return False
    from notyet.config.compiled import are_silent

    return are_silent(files, "subagent", environ)


def _unanswered(call: HostCall, number: int) -> None:
    """Record a stop that a signal ended, unless its gates were being run: that is recorded."""
    if call.ledger is None or not call.ledger.newest:
        from notyet.hook.hook import Hook

        Hook(call).record_signal(number)


def _tidy(call: HostCall) -> None:
    """Delete a little of what is too old or too much, now and then; the host has its answer."""
    ledger = call.ledger
    if ledger is None or not ledger.newest:
        return
    if call.shares:
        start_shipper(ledger.path, call.environ)
    is_due = ledger.newest % TIDY_EVERY == 0
    if not is_due and not ledger.logged:
        return
    from notyet.config.load import retention
    from notyet.errors import Refused

    try:
        wanted = retention(call.environ)
    except Refused:  # `notyet status` says what is wrong with the user's file
        return
    if is_due:
        from notyet.ledger import prune

        prune.tidy(ledger, wanted)
    else:
        from notyet.ledger.logs import make_room

        make_room(ledger.path, wanted, ledger.newest)


def start_shipper(ledger: str, environ: Mapping[str, str]) -> None:
    """Start `notyet ship` on its own, unless that was done within the last minute."""
    from notyet.ledger.connection import SHIP_STAMP

    stamp = ledger + SHIP_STAMP
    try:
        if _is_fresh(stamp):
            return
        descriptor = light.open(stamp, light.O_WRONLY | light.O_CREAT | light.O_CLOEXEC, 0o600)
        light.utime(descriptor)  # before it starts: others that finish now start none
        light.close(descriptor)
        from notyet.run.spawn import inheritable_fds, launch

        nothing = light.open(light.devnull, light.O_RDWR | light.O_CLOEXEC)
        main = light.join(light.dirname(light.dirname(__file__)), "__main__.py")
        # A project's settings can set variables of a hook: it must not choose where stops go.
        own = {name: environ[name] for name in environ if not name.startswith("NOTYET_SHARE")}
        launch([sys.executable, "-I", main, "ship"], own, [nothing] * 3, inheritable_fds())
        light.close(nothing)
    except OSError:  # the next stop tries again; without a stamp, each one would start a process
        return


def _is_fresh(stamp: str) -> bool:
    try:
        return 0 <= time() - light.stat(stamp).st_mtime < _SHARE_EVERY
    except FileNotFoundError:
        return False
