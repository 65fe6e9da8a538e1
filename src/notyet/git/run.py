"""Run git on files that an agent may have prepared: several commands at once, within a time."""

from __future__ import annotations

from time import monotonic, sleep

from notyet import light

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

FILTERED = "the repository names filters of its own"
IGNORED = "git ignores this folder"
LINKED = "`paths` lead through a link"
NO_GIT = "there is no git outside of the project"
NOT_NAMED = "`paths` name no file"
ODD = "there are names or files that cannot be read"
OUTSIDE = "it is not in a git repository"
REFUSED = "git refuses this repository"
SLOW = "it took too long"
TOO_MUCH = "there is too much to look at"
UNREADABLE = "a folder cannot be read"


class Unknown(Exception):  # noqa: N818  # not an error of ours
    """What the files look like cannot be told, or not in time."""

    def __init__(self, reason: str = ODD) -> None:
        super().__init__(reason)
        self.reason = reason


def reason_of(error: Exception) -> str:
    """Return why a look failed."""
    return error.reason if isinstance(error, Unknown) else ODD


# Running git on files that an agent may have prepared: several commands at once, within a time.
#
# A repository can name commands that git runs when it looks at the files: a file system monitor,
# filters, hooks. And it can say that changes are not to be shown. Neither may happen here.


if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # without the enum that `signal` imports

# As `git rev-parse --local-env-vars` lists them.
OF_ANOTHER_REPOSITORY = frozenset(
    f"GIT_{name}"
    for name in (
        "ALTERNATE_OBJECT_DIRECTORIES",
        "COMMON_DIR",
        "CONFIG",
        "CONFIG_COUNT",
        "CONFIG_PARAMETERS",
        "DIR",
        "GRAFT_FILE",
        "IMPLICIT_WORK_TREE",
        "INDEX_FILE",
        "INTERNAL_SUPER_PREFIX",
        "NO_REPLACE_OBJECTS",
        "OBJECT_DIRECTORY",
        "PREFIX",
        "REPLACE_REF_BASE",
        "SHALLOW_FILE",
        "WORK_TREE",
    )
)
# Files of settings: those that the user has set up in the usual places are the only ones.
OF_OTHER_SETTINGS = frozenset(f"GIT_CONFIG_{name}" for name in ("GLOBAL", "NOSYSTEM", "SYSTEM"))
OF_OTHER_GLOBS = frozenset(
    f"GIT_{kind}_PATHSPECS" for kind in ("LITERAL", "GLOB", "NOGLOB", "ICASE")
)
HARMLESS = (
    *("--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
    *("-c", "safe.bareRepository=explicit"),  # one that lies in the project like any folder
)
# What a repository could say so that git overlooks a change, or shows what is none.
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
    "GIT_OPTIONAL_LOCKS": "0",  # so we never get in the way of a git command the agent runs
    "GIT_NO_LAZY_FETCH": "1",  # a partial clone would run what fetches the rest
    "GIT_ALLOW_PROTOCOL": "none",
}
LEFT_OUT = OF_ANOTHER_REPOSITORY | OF_OTHER_SETTINGS | OF_OTHER_GLOBS
_AT_ONCE = 8
_CHUNK = 64 * 1024  # as much as a pipe holds
_USUAL = (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)


class Output:
    """What a git command prints; refuses to be told more than fits."""

    def __init__(self, most: int) -> None:
        self._parts: list[bytes] = []
        self._left = most

    def take(self, chunk: bytes) -> None:
        """Keep one piece."""
        self._left -= len(chunk)
        if self._left < 0:
            raise Unknown(TOO_MUCH)
        self._parts.append(chunk)

    def __bytes__(self) -> bytes:
        return b"".join(self._parts)


class Command:
    """One git command: where, who takes what it prints (or raises Unknown), and how it exited."""

    def __init__(
        self, folder: str, args: Sequence[str], take: Callable[[bytes], None], root: str
    ) -> None:
        self.folder = folder
        self.args = args
        self.take = take
        self.root = root  # of the repository: git looks for it no further up
        self.code: int | None = None  # None: not to be told
        self.reason = SLOW  # why not
        self.pid, self.pipe = 0, -1


class Runs:
    """Git commands that run at once, within a time."""

    def __init__(self, roots: Collection[str], ends: float) -> None:
        """Find a git that lies in none of these repositories; raises Unknown."""
        self.ends = ends  # when whoever waits does so no longer
        self._environ = own_environ() | QUIET
        self._program, self._environ["PATH"] = _find(self._environ.get("PATH", ""), roots)
        self._waiting: list[Command] = []
        self._running: dict[int, Command] = {}

    def start(self, commands: Iterable[Command]) -> None:
        """Start commands, as many as run at once; the others wait for their turn."""
        self._waiting += commands
        while self._waiting and len(self._running) < _AT_ONCE:
            command = self._waiting.pop(0)
            try:
                _start(command, self._program, self._environ)
            except (OSError, ValueError):  # too long, or with a zero byte
                command.reason = ODD
            else:
                self._running[command.pipe] = command

    def finish(self) -> None:
        """Take what all of them print until they are done; who is not done in time is killed."""
        import select  # while git is at work

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
                    if not _reads_on(command):
                        del self._running[fd]
                        light.close(fd)
                        _reap(command, self.ends)
                self.start(())
        finally:
            self.leave()

    def leave(self) -> None:
        """End all that still runs."""
        self._waiting.clear()
        while self._running:
            _, command = self._running.popitem()
            light.close(command.pipe)
            _kill(command)


def run(commands: Sequence[Command], ends: float) -> None:
    """Run git commands, several at once; those that are not done in time are killed."""
    runs = Runs({command.root for command in commands}, ends)
    runs.start(commands)
    runs.finish()


def _start(command: Command, program: str, environ: Mapping[str, str]) -> None:
    argv = [program, "-C", command.folder, *HARMLESS, *HONEST, *command.args]
    command.pipe, end = light.pipe()
    try:
        command.pid = light.posix_spawn(
            program,
            argv,
            {**environ, "GIT_CEILING_DIRECTORIES": light.dirname(command.root)},
            file_actions=(
                (light.POSIX_SPAWN_DUP2, end, 1),
                (light.POSIX_SPAWN_OPEN, 0, light.devnull, light.O_RDONLY, 0),
                (light.POSIX_SPAWN_OPEN, 2, light.devnull, light.O_WRONLY, 0),
            ),
            setpgroup=0,
            setsigmask=(),
            setsigdef=_USUAL,
        )
    except BaseException:
        light.close(command.pipe)
        raise
    finally:
        light.close(end)


def _reads_on(command: Command) -> bool:
    """Take what a command has printed; tell whether there may be more that is wanted."""
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


def _reap(command: Command, ends: float) -> None:
    """Wait for the end of a command that prints no more; it may hang all the same."""
    pause = 0.0002
    while command.pid:
        try:
            pid, status = light.waitpid(command.pid, light.WNOHANG)
        except ChildProcessError:  # the program that we are part of does not want to know
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


def _kill(command: Command) -> None:
    pid, command.pid = command.pid, 0
    try:
        light.killpg(pid, signal.SIGKILL)
        light.waitpid(pid, 0)
    except (ProcessLookupError, PermissionError, ChildProcessError):  # gone already
        pass


def _find(path: str, roots: Collection[str]) -> tuple[str, str]:
    """Return git, and a PATH without the folders that lie in a project of the agent."""
    folders = [folder for folder in path.split(":") if not _is_in_any(folder, roots)]
    for folder in folders:
        program = light.join(folder, "git")
        if light.isfile(program) and light.access(program, light.X_OK):
            return program, ":".join(folders)
    raise Unknown(NO_GIT)


def _is_in_any(folder: str, roots: Collection[str]) -> bool:
    """Tell whether a folder of the PATH lies in a project; relative ones do, in the agent's."""
    real = f"{light.realpath(folder)}/"
    return not light.isabs(folder) or any(real.startswith(f"{root}/") for root in roots)


def own_environ() -> dict[str, str]:
    """Return the environment without what leads git elsewhere, or has it read globs otherwise."""
    return {name: value for name, value in light.variables().items() if name not in LEFT_OUT}
