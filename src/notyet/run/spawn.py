"""Start one command: find the program, enter its folder, explain why it cannot start.

`posix_spawn` instead of `fork`: it is fast in a large process and safe in one with threads. It has
no working directory, so a command that runs in another folder is started through a shell that
enters the folder and then becomes the command.
"""

from __future__ import annotations

from notyet import light
from notyet.core.record import Record
from notyet.run.cannot_start import CannotStart, no_folder, no_program, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

if TYPE_CHECKING:
    import signal

else:
    import _signal as signal  # without the enum that `signal` imports

SH = "/bin/sh"
HEAD = 64 * 1024  # bytes kept of each stream; as text they take many times as much
# A variable that all descendants of a command inherit, also those that leave its group. A gate
# inside a gate appends its own token.
MARK = "NOTYET_GATE"

_ENV = "/usr/bin/env"
# `cd -P` acts like chdir. OLDPWD is restored, and PWD is the folder as the job spells it.
_ENTER = (
    'cd -P -- "$1" || exit 126; PWD=$1; OLDPWD=$2; [ "$2" ] || unset OLDPWD; shift 2; exec "$@"'
)
_TOO_MANY_OPEN = (23, 24)  # ENFILE and EMFILE, without importing `errno`
_KINDS, _FOLDER = 0o170000, 0o040000  # of files: S_IFMT and S_IFDIR
_STDIO = 2  # the highest of the descriptors 0, 1 and 2
_FIRST_LINE = 256  # the kernel reads no more of it
# Signals that get their default action again in a command, whatever this program does with them.
_USUAL = tuple(
    getattr(signal, name)
    for name in (
        *("SIGPIPE", "SIGXFSZ", "SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGCHLD", "SIGALRM"),
        *("SIGUSR1", "SIGUSR2", "SIGTSTP", "SIGTTIN", "SIGTTOU"),
    )
)


class Job(Record, kw_only=True):
    """One command to run: a program with its arguments, where, and with what."""

    argv: tuple[str, ...]  # looked up on the PATH of `environ` when it has no slash
    dir: str  # entered by the child, never by a chdir of ours (E7)
    environ: Mapping[str, str]  # complete, except PWD and our mark
    stdin: bytes = b""
    timeout: float | None = None
    head: int = HEAD  # bytes kept from the beginning of each stream
    refused: str = ""  # why it must not start, if known beforehand


def shell_argv(script: str, shell: str) -> tuple[str, ...]:
    """Return the arguments that run a script in a shell (E8)."""
    return (shell, "-c", script)


def new_stage_token() -> str:
    """Return a unique mark for the processes of a stage."""
    return f"{light.getpid()}-{light.urandom(12).hex()}"


def folder_id(folder: str) -> tuple[int, int] | None:
    """Return the device and inode of a folder; None if there is no such folder."""
    try:
        found = light.stat(folder)
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if found.st_mode & _KINDS == _FOLDER else None


def prepare(job: Job, here: tuple[int, int] | None, token: str) -> tuple[list[str], dict[str, str]]:
    """Return the arguments and the environment to spawn a job with. Raises CannotStart.

    The folder and the program are checked here, so that a command fails with the same message
    whether or not it needs the shell to enter its folder.
    """
    folder = job.dir
    place = folder_id(folder)
    if place is None or not light.access(folder, light.X_OK):
        raise no_folder(folder)
    # `cd` would look up a relative path in CDPATH, or take it for an option.
    folder = light.join(light.getcwd(), folder) if folder[0] != "/" else folder
    path = _find(job, folder)
    argv = [path, *job.argv[1:]]
    marks = f"{job.environ.get(MARK, '')} {token}".strip()
    environ = {**job.environ, "PWD": folder, MARK: marks}
    if path != SH and _is_shell_script(path):
        argv = [SH, *argv]
    if place != here:
        enter = [SH, "-c", _ENTER, "sh", folder, environ.get("OLDPWD", "")]
        argv = [*enter, *_keep_odd_names(environ, argv[0]), *argv]
    return argv, environ


def launch(
    argv: list[str], environ: Mapping[str, str], stdio: Sequence[int], close: Iterable[int]
) -> int:
    """Start a program in a new session, with these descriptors as 0, 1 and 2; return its id."""
    actions: list[tuple[int, int] | tuple[int, int, int]] = [
        (light.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate(stdio)
    ]
    actions += [(light.POSIX_SPAWN_CLOSE, fd) for fd in close]
    try:
        return light.posix_spawn(
            *(argv[0], argv, environ),
            file_actions=actions,
            setsigmask=(),
            setsigdef=_USUAL,
            setsid=True,
        )
    except NotImplementedError:  # macOS: a new process group is all that we get
        return light.posix_spawn(
            *(argv[0], argv, environ),
            file_actions=actions,
            setsigmask=(),
            setsigdef=_USUAL,
            setpgroup=0,
        )


def is_out_of_room(error: OSError | ValueError) -> bool:
    """Return True if starting failed for lack of processes or descriptors, and may work later."""
    return isinstance(error, BlockingIOError) or getattr(error, "errno", 0) in _TOO_MANY_OPEN


def start_failure(error: OSError | ValueError, argv: Sequence[str]) -> str:
    """Return why a program could not be started."""
    program = argv[0] if argv else ""
    if getattr(error, "errno", 0) in _TOO_MANY_OPEN:  # importing a module would fail too
        return f"too many files are open to start {program!r}; run fewer gates at once"

    return reason(error, program)


def inheritable_fds() -> list[int]:
    """Return the descriptors that a command would inherit beyond 0, 1 and 2.

    Ours are never among them, but this program may have inherited some itself: a command that
    keeps one open could block the process that reads its other end. `posix_spawn` refuses to close
    those at or above the soft limit, opened before it was lowered: they stop being inheritable.
    """
    try:
        fds = [int(name) for name in light.listdir("/dev/fd")]
    except OSError:
        return []
    found = []
    limit = light.sysconf("SC_OPEN_MAX")
    for fd in fds:
        try:
            if fd <= _STDIO or not light.get_inheritable(fd):
                continue
            if fd < limit:
                found.append(fd)
            else:
                light.set_inheritable(fd, False)
        except OSError:  # the descriptor that listed the folder
            continue
    return found


def pipe() -> tuple[int, int]:
    """Open a pipe whose descriptors are above 2, even if a standard descriptor is closed."""
    ends = light.pipe()
    if min(ends) > _STDIO:
        return ends
    import fcntl

    try:
        first = fcntl.fcntl(ends[0], fcntl.F_DUPFD_CLOEXEC, _STDIO + 1)
        return first, fcntl.fcntl(ends[1], fcntl.F_DUPFD_CLOEXEC, _STDIO + 1)
    finally:
        light.close(ends[0])
        light.close(ends[1])


def _find(job: Job, folder: str) -> str:
    """Find a program as a shell in that folder would."""
    program = job.argv[0] if job.argv else ""
    places = job.environ.get("PATH", light.defpath).split(":") if "/" not in program else ("",)
    for place in places if program else ():
        found = light.join(folder, place, program)
        if light.isfile(found) and light.access(found, light.X_OK):
            return found

    raise no_program(job.argv, folder, places)


def _is_shell_script(path: str) -> bool:
    """Return True if a script's first line names no interpreter: shells then run it themselves.

    Raises CannotStart if it names an interpreter that does not exist.
    """
    try:
        fd = light.open(path, light.O_RDONLY | light.O_CLOEXEC | light.O_NONBLOCK)
    except OSError:  # a program may be executable and not readable
        return False
    try:
        start = light.read(fd, _FIRST_LINE)
    except OSError:
        return False
    finally:
        light.close(fd)
    if not start.startswith(b"#!"):
        return b"\0" not in start
    words = start[2:].split(b"\n")[0].strip(b" \t").replace(b"\t", b" ").split(b" ")
    named = light.fsdecode(words[0])
    if named.startswith("/") and not light.exists(named):
        raise CannotStart(f"the first line of {path!r} names {named!r}, which does not exist")
    return False


def _keep_odd_names(environ: Mapping[str, str], program: str) -> list[str]:
    """Return an `env` command for variables that the shell would drop, as bash's functions."""
    odd = [f"{n}={v}" for n, v in environ.items() if not (n.isascii() and n.isidentifier())]
    if not odd or "=" in program or not light.access(_ENV, light.X_OK):
        return []
    return [_ENV, "--", *odd]
