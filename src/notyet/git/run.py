"""Run git on files that an agent may have prepared: several commands at once, with a timeout.

A repository can name commands that git runs: a file system monitor, filters, hooks. It can also
hide changes by its settings. Both are switched off here.
"""

from __future__ import annotations

from time import monotonic, sleep

from notyet import light

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
else:
    import _signal as signal  # without the enum that `signal` imports

FILTERED = "the repository names filters of its own"
IGNORED = "git ignores this folder"
LINKED = "`paths` lead through a link"
NO_GIT = "no git is installed outside of this project; install git"
NOT_NAMED = "`paths` name no file"
ODD = "there are names or files that cannot be read"
OUTSIDE = "it is not in a git repository"
REDIRECTED = "git was told that its files are elsewhere (core.worktree)"
REFUSED = "git refuses this repository"
SLOW = "it took too long"
TOO_MUCH = "the files are too many or too large"
UNREADABLE = "a folder cannot be read"


class Unknown(Exception):  # noqa: N818  # not an error of ours
    """There is no fingerprint of the files; `reason` says why."""

    def __init__(self, reason: str = ODD) -> None:
        super().__init__(reason)
        self.reason = reason


def reason_of(error: Exception) -> str:
    """Return why there is no fingerprint."""
    return error.reason if isinstance(error, Unknown) else ODD


# Variables that name another repository (see `git rev-parse --local-env-vars`), other settings than
# the user's in the usual places, or other globs.
_ALTERING = """
ALTERNATE_OBJECT_DIRECTORIES COMMON_DIR CONFIG CONFIG_COUNT CONFIG_PARAMETERS DIR GRAFT_FILE
IMPLICIT_WORK_TREE INDEX_FILE INTERNAL_SUPER_PREFIX NO_REPLACE_OBJECTS OBJECT_DIRECTORY PREFIX
REPLACE_REF_BASE SHALLOW_FILE WORK_TREE CONFIG_GLOBAL CONFIG_NOSYSTEM CONFIG_SYSTEM
LITERAL_PATHSPECS GLOB_PATHSPECS NOGLOB_PATHSPECS ICASE_PATHSPECS
"""
LEFT_OUT = frozenset(f"GIT_{name}" for name in _ALTERING.split())
HARMLESS = (
    *("--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
    *("-c", "safe.bareRepository=explicit"),  # ignore bare repositories among the files
)
# RepositorySettings by which a repository could hide a change, or report one where there is none.
HONEST = tuple(
    word
    for setting in (
        "core.attributesFile=/dev/null",
        "core.autocrlf=false",
        "core.checkStat=default",
        "core.fileMode=true",
        "core.ignoreCase=false",
        "core.ignoreStat=false",
        "core.symlinks=true",
        "core.trustctime=true",
        "core.untrackedCache=keep",
        "status.relativePaths=false",
        "status.showStash=false",
    )
    for word in ("-c", setting)
)
QUIET = {
    "GIT_OPTIONAL_LOCKS": "0",  # so that no git command of the agent fails because of a lock
    "GIT_NO_LAZY_FETCH": "1",  # a partial clone would start a fetch
    "GIT_NO_REPLACE_OBJECTS": "1",  # `git replace` could hide what changed between two commits
    "GIT_ALLOW_PROTOCOL": "none",
}
_AT_ONCE = 8
_CHUNK = 64 * 1024  # as much as a pipe holds
_USUAL = (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)


class Output:
    """The output of a git command, limited in size."""

    def __init__(self, most: int) -> None:
        self._parts: list[bytes] = []
        self._left = most

    def take(self, chunk: bytes) -> None:
        """Add the next bytes. Raises Unknown if there are too many."""
        self._left -= len(chunk)
        if self._left < 0:
            raise Unknown(TOO_MUCH)
        self._parts.append(chunk)

    def __bytes__(self) -> bytes:
        return b"".join(self._parts)


class GitCommand:
    """One git command; `take` gets its output, and may raise Unknown to end it."""

    def __init__(
        self,
        folder: str,
        args: Sequence[str],
        take: Callable[[bytes], None],
        root: str,
        *,
        environ: Mapping[str, str] = {},
        stdin: str = light.devnull,
    ) -> None:
        self.folder = folder
        self.args = args
        self.take = take
        self.root = root  # of the repository; git does not look above it
        self.environ = environ  # more variables, such as another index
        self.stdin = stdin  # the path of a file
        self.code: int | None = None  # the exit code; None if unknown
        self.reason = SLOW  # why it is unknown
        self.pid, self.pipe = 0, -1


class GitRuns:
    """Git commands that run at the same time, until a deadline."""

    def __init__(self, roots: Collection[str], ends: float) -> None:
        """Find a git outside these repositories. Raises Unknown if there is none."""
        self.ends = ends
        self._environ = own_environ() | QUIET
        self._program, self._environ["PATH"] = _find(self._environ.get("PATH", ""), roots)
        self._waiting: list[GitCommand] = []
        self._running: dict[int, GitCommand] = {}

    def start(self, commands: Iterable[GitCommand]) -> None:
        """Start commands; those above the limit wait for their turn."""
        self._waiting += commands
        while self._waiting and len(self._running) < _AT_ONCE:
            command = self._waiting.pop(0)
            try:
                _start(command, self._program, self._environ)
            except (OSError, ValueError):  # too long, or with a NUL
                command.reason = ODD
            else:
                self._running[command.pipe] = command

    def finish(self) -> None:
        """Read the output of all commands until they exit; kill those that time out."""
        import select  # here, while git runs

        try:
            while self._running:
                left = self.ends - monotonic()
                if left <= 0:
                    return
                poller = select.poll()
                for fd in self._running:
                    poller.register(fd, select.POLLIN)
                for fd, _event in poller.poll(left * 1000):
                    command = self._running[fd]
                    if not _read_more(command):
                        del self._running[fd]
                        light.close(fd)
                        _reap(command, self.ends)
                self.start(())
        finally:
            self.leave()

    def leave(self) -> None:
        """Kill the commands that still run."""
        self._waiting.clear()
        while self._running:
            _, command = self._running.popitem()
            light.close(command.pipe)
            _kill(command)


def run(commands: Sequence[GitCommand], ends: float) -> None:
    """Run git commands, several at once; kill those that time out."""
    runs = GitRuns({command.root for command in commands}, ends)
    runs.start(commands)
    runs.finish()


def _start(command: GitCommand, program: str, environ: Mapping[str, str]) -> None:
    argv = [program, "-C", command.folder, *HARMLESS, *HONEST, *command.args]
    command.pipe, end = light.pipe()
    try:
        command.pid = light.posix_spawn(
            program,
            argv,
            {
                **environ,
                "GIT_CEILING_DIRECTORIES": light.dirname(command.root),
                **command.environ,
            },
            file_actions=(
                (light.POSIX_SPAWN_DUP2, end, 1),
                (light.POSIX_SPAWN_OPEN, 0, command.stdin, light.O_RDONLY, 0),
                (light.POSIX_SPAWN_OPEN, 2, light.devnull, light.O_WRONLY, 0),
            ),
            setpgroup=0,
            setsigmask=(),
            setsigdef=_USUAL,
        )
    except (OSError, ValueError):
        light.close(command.pipe)
        raise
    finally:
        light.close(end)


def _read_more(command: GitCommand) -> bool:
    """Read output of a command; return False after the last, or if it was killed."""
    chunk = light.read(command.pipe, _CHUNK)
    if not chunk:
        return False
    try:
        command.take(chunk)
    except Unknown as unknown:
        command.reason = unknown.reason
        _kill(command)
        return False
    return True


def _reap(command: GitCommand, ends: float) -> None:
    """Reap a command that has closed its output; kill it if it times out."""
    pause = 0.0002
    while command.pid:
        try:
            pid, status = light.waitpid(command.pid, light.WNOHANG)
        except ChildProcessError:  # the embedding program ignores SIGCHLD
            command.pid, command.reason = 0, ODD
            return
        if pid:
            command.pid = 0
            command.code = light.waitstatus_to_exitcode(status)
        elif monotonic() >= ends:
            _kill(command)
        else:
            sleep(pause)
            pause = min(0.01, pause * 2)


def _kill(command: GitCommand) -> None:
    pid, command.pid = command.pid, 0
    try:
        light.killpg(pid, signal.SIGKILL)
        light.waitpid(pid, 0)
    except (ProcessLookupError, PermissionError, ChildProcessError):  # it has exited
        pass


def _find(path: str, roots: Collection[str]) -> tuple[str, str]:
    """Return the path of git, and a PATH without folders in the agent's repositories."""
    folders = [folder for folder in path.split(":") if not _is_in_any(folder, roots)]
    for folder in folders:
        program = f"{folder}/git"
        if light.access(program, light.X_OK) and light.isfile(program):
            return program, ":".join(folders)
    raise Unknown(NO_GIT)


def _is_in_any(folder: str, roots: Collection[str]) -> bool:
    """Return True if a folder of the PATH is relative or in one of the repositories."""
    if not folder.startswith("/"):
        return True
    real = f"{light.realpath(folder)}/"
    return any(real.startswith(f"{root}/") for root in roots)


def own_environ() -> dict[str, str]:
    """Return the environment without variables that change git's repository, config or globs."""
    return {name: value for name, value in light.variables().items() if name not in LEFT_OUT}
