"""A scratch home and a project for one real program, and what became of the stops in it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, ClassVar

from clients.model.script import Request, Say
from clients.model.server import ModelServer
from clients.runs import Ran, Running
from clients.stops import Stop, stops_in
from commands import running, until

NOTYET = Path(sys.prefix) / "bin" / "notyet"
_MARK = "WORLD_OF_A_TEST"
_PATH = "/usr/local/bin:/usr/bin:/bin"
_HUGE, _END = 2_000, 600  # characters; the fewest that are told of a huge text are more


@dataclass
class World:
    """A program in a place of its own. What differs between programs is in the subclasses."""

    program: Path
    version: str
    folder: Path
    node: Path | None = None  # the folder of the Node that runs the program, where one does
    ungated: set[str] = field(default_factory=set)  # actors whose stops no gate was asked about
    is_one_session: bool = False  # each run continues the session of the one before

    HOST: ClassVar[str] = ""
    WIRE: ClassVar[Any] = None  # the module of its protocol, or a `Chat`
    INSTALLS: ClassVar[tuple[str, ...]] = ()  # options of `notyet install` and `uninstall`
    HAS_SUBAGENTS: ClassVar[bool] = False  # which can be sent back
    MOST_BLOCKS: ClassVar[int] = 0  # how often it lets us send an agent back in a row; 0: any
    ASKS_ONCE: ClassVar[bool] = False  # a turn: it has no event of the stop after a send-back
    NAMES_THREADS: ClassVar[bool] = False  # its requests say whose they are: see `thread`
    TELLS_ANSWERS: ClassVar[bool] = True  # its hooks, or its files, have the agent's last message
    RESUME: ClassVar[tuple[str, ...]] = ()  # arguments that continue the last session
    LONGEST_RUN: ClassVar[float] = 60.0  # seconds
    SHOWS_NOTES: ClassVar[bool] = False  # whether a run without a terminal shows our notes
    ITS_FILES: ClassVar[tuple[str, ...]] = ()  # patterns of what the program leaves in TMPDIR

    def __post_init__(self) -> None:
        self.mark = uuid.uuid4().hex
        self.runs: list[Ran] = []
        self.home = self.folder / "home"
        self.project = self.folder / "project"
        self.tmp = self.folder / "tmp"
        self.logs = self.folder / "logs"
        for place in (self.home, self.project, self.tmp, self.logs):
            place.mkdir()
        (self.project / "file.txt").write_text("one\n")
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("commit", "--quiet", "-m", "one")
        self.settle_in()

    # -- what a program must say of itself

    def settle_in(self) -> None:
        """Write the settings that the program needs in a new home."""

    def line(self, prompt: str, args: tuple[str, ...], url: str) -> list[str]:
        """Return the command line of one run without a terminal."""
        raise NotImplementedError

    def variables(self, url: str) -> dict[str, str]:
        """Return what the program needs in its environment."""
        raise NotImplementedError

    def point_at(self, url: str) -> None:
        """Write where the model is into the settings, where only options of `line` say so."""

    def put_on_path(self, folder: Path) -> None:
        """Put the program into a folder of PATH, under the name that its users type."""
        (folder / self.HOST).symlink_to(self.program)

    def answer(self, out: str) -> str:
        """Return the final answer that a run delivered; empty when it delivered none."""
        raise NotImplementedError

    def shows_error(self, ran: Ran) -> bool:
        """Return True if a run ended as it does when the model answers with an error."""
        return ran.code != 0

    def define_agent(self, name: str) -> None:
        """Let the project have a type of subagents."""
        raise NotImplementedError

    def notes(self, ran: Ran) -> list[str]:
        """Return what the program showed its user of our notes; empty where it shows none."""
        raise NotImplementedError

    def tells_user(self, ran: Ran, words: str) -> bool:
        """Tell whether the user could read this; true where the program shows no notes at all."""
        return not self.SHOWS_NOTES or any(words in note for note in self.notes(ran))

    # -- the place

    @property
    def environ(self) -> dict[str, str]:
        """The environment of everything that runs here: nothing of the tester's own."""
        return {
            "PATH": f"{self.node}:{_PATH}" if self.node else _PATH,
            "HOME": str(self.home),
            "TMPDIR": str(self.tmp),
            "LANG": "C.UTF-8",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_SYSTEM": "/dev/null",
            _MARK: self.mark,  # found in all processes, and in nothing that is written down
        }

    @property
    def state(self) -> Path:
        """Where notyet keeps what it remembers."""
        return self.home / ".local" / "state" / "notyet"

    def git(self, *args: str) -> None:
        author = ("-c", "user.name=t", "-c", "user.email=t@localhost")
        subprocess.run(
            ["git", *author, *args],
            cwd=self.project,
            check=True,
            capture_output=True,
            env=self.environ,
        )

    def notyet(self, *args: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run one of our commands in the project, as its user would."""
        return subprocess.run(
            [str(NOTYET), *args],
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            env=self.environ | environ,
        )

    def gates(self, toml: str) -> None:
        """Write the project's notyet.toml. `install` trusts it; later versions `trust` does.

        These agents mostly talk, and change no file; so their gates are asked at every stop (N1).
        """
        (self.project / "notyet.toml").write_text(asked_always(toml))

    def trust(self) -> None:
        done = self.notyet("trust", "--yes")
        assert done.returncode == 0, done.stderr

    def install(self, *options: str) -> None:
        """Let notyet install itself, and trust the gates that are there."""
        done = self.notyet("install", self.HOST, "--yes", *self.INSTALLS, *options)
        assert done.returncode == 0, done.stdout + done.stderr

    def uninstall(self, *options: str) -> None:
        done = self.notyet("uninstall", self.HOST, "--yes", *self.INSTALLS, *options)
        assert done.returncode == 0, done.stdout + done.stderr

    def settings_tree(self) -> dict[Path, bytes | str]:
        """Return all files and folders that `install` may change, as they are now."""
        own = (self.state, self.home / ".local" / "share" / "notyet", self.project / ".git")
        found = [path for top in (self.home, self.project) for path in top.rglob("*")]
        found = [path for path in found if not any(path.is_relative_to(top) for top in own)]
        own_parents = {parent for top in own for parent in top.parents}
        return {
            path: path.read_bytes() if path.is_file() else "a folder"
            for path in found
            if path not in own_parents
        }

    # -- running the program

    def run(
        self,
        script: Any,
        prompt: str = "do it",
        args: tuple[str, ...] = (),
        timeout: float | None = None,
        line: list[str] | None = None,
        **environ: str,
    ) -> Ran:
        """Run the program to its end, and to the end of all that it started."""
        with self.start(script, prompt, args, line, **environ) as under_way:
            return under_way.wait(timeout)

    @contextmanager
    def start(
        self,
        script: Any,
        prompt: str = "do it",
        args: tuple[str, ...] = (),
        line: list[str] | None = None,
        **environ: str,
    ):
        """Start the program, or whatever `line` starts it with; it is gone after the block."""
        with ModelServer(self.WIRE, script) as model:
            line = line or self.line(prompt, args, model.url)
            process = self._spawn(line, model.url, environ)
            under_way = Running(self, process, model)
            try:
                yield under_way
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                self.runs.append(under_way.wait())
                until(lambda: not self.processes(), 10.0)

    def _spawn(self, line: list[str], url: str, environ: dict[str, str]) -> subprocess.Popen[bytes]:
        out, err = self.logs / f"{uuid.uuid4().hex}.out", self.logs / f"{uuid.uuid4().hex}.err"
        with out.open("wb") as out_file, err.open("wb") as err_file:
            process = subprocess.Popen(
                line,
                cwd=self.project,
                stdin=subprocess.DEVNULL,
                stdout=out_file,
                stderr=err_file,
                env=self.environ | self.variables(url) | environ,
                process_group=0,
            )
        out.rename(self.logs / f"{process.pid}.out")
        err.rename(self.logs / f"{process.pid}.err")
        return process

    # -- what became of it

    def stops(self) -> list[Stop]:
        """Return the ledger's rows, oldest first."""
        return stops_in(self.state / "ledger.db")

    def outcomes(self) -> list[str]:
        return [stop.outcome for stop in self.stops()]

    def as_asked(self, *outcomes: str) -> list[str]:
        """Return those of a turn's outcomes that this host asks for."""
        return [*outcomes[:1]] if self.ASKS_ONCE else [*outcomes]

    def processes(self) -> dict[int, str]:
        """Return the processes of this world that still run."""
        mark = f"{_MARK}={self.mark}".encode()
        found = {}
        for place in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (place / "environ").read_bytes() and running(int(place.name)):
                    found[int(place.name)] = (place / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue  # not ours, or gone by now
        return found

    def left_behind(self) -> list[str]:
        """Return what should be gone: processes, and all below TMPDIR but the program's own."""
        paths = {path.relative_to(self.tmp) for path in self.tmp.rglob("*")}
        own = {path for path in paths if any(fnmatch(str(path), p) for p in self.ITS_FILES)}
        own |= {folder for path in own for folder in path.parents}
        return [*self.processes().values(), *sorted(map(str, paths - own))]

    @contextmanager
    def scenario(self):
        """Check after the block what must hold after every scenario, and end what still runs."""
        try:
            yield self
            self.check()
        finally:
            for pid in self.processes():
                os.kill(pid, signal.SIGKILL)

    def check(self) -> None:
        """Check what must hold after every scenario."""
        assert until(lambda: not self.left_behind(), 10.0), self.left_behind()
        for ran in self.runs:
            assert not ran.model.unexpected, ran.model.unexpected
        if self.NAMES_THREADS:
            assert self.story() == self.told_by_ledger()
        else:  # which agent of the ledger is which is not known, only what each did
            assert sorted(self.story().values()) == sorted(self.told_by_ledger().values())
        kept = [path for path in self.state.rglob("*") if path.is_file()]
        assert not [path for path in kept if self.mark.encode() in path.read_bytes()]

    def thread(self, request: Request) -> str:
        """Return by which id the ledger knows the agent that asks the model."""
        raise NotImplementedError

    def story(self) -> dict[str, list[tuple[str, str]]]:
        """Return what the program did: what each agent said, and how it was sent back."""
        threads: dict[str, list[Request]] = {}
        for number, ran in enumerate(self.runs):
            session = 0 if self.is_one_session else number
            for request in ran.model.requests:
                if request.actor not in self.ungated:
                    own = f"{session} {request.actor}"
                    thread = self.thread(request) if self.NAMES_THREADS else own
                    threads.setdefault(thread, []).append(request)
        told = {thread: self._stops_in(requests) for thread, requests in threads.items()}
        return {thread: stops for thread, stops in told.items() if stops}

    def _stops_in(self, requests: list[Request]) -> list[tuple[str, str]]:
        told: list[tuple[str, str]] = []
        is_asked = True
        for request, following in zip(requests, [*requests[1:], None], strict=True):
            if isinstance(request.step, Say) and not is_asked:
                is_asked = True
            elif isinstance(request.step, Say):
                prompts = self.WIRE.prompts(following.news) if following else []
                # A hook that is registered twice says the same twice.
                words = " ".join(dict.fromkeys(plain(prompt) for prompt in prompts))
                told.append((self._answer_told(request.step.text), words))
                is_asked = not (words and self.ASKS_ONCE)
        return told

    def told_by_ledger(self) -> dict[str, list[tuple[str, str]]]:
        """Return the same from the ledger."""
        threads: dict[str, list[tuple[str, str]]] = {}
        for stop in self.stops():
            if stop.why == "supervised":  # the supervisor wrote down the same stop
                continue
            sent_back = stop.prompt if stop.verdict == "block" else ""
            thread = threads.setdefault(stop.agent_id or stop.session_id, [])
            thread.append((self._answer_told(stop.last_message), plain(sent_back)))
        return threads

    def _answer_told(self, text: str) -> str:
        return plain(text) if self.TELLS_ANSWERS else ""


def plain(text: str) -> str:
    """Return the words, however they are broken into lines; of very many, both ends.

    Host and ledger are told less of a huge text than was said, and not equally much.
    """
    words = " ".join(text.split())
    return words if len(words) < _HUGE else f"{words[:_END]} ... {words[-_END:]}"


def asked_always(toml: str) -> str:
    """Return a notyet.toml whose gates are asked whatever changed, unless they say when."""
    tables = []
    for table in re.split(r"(?m)^(?=\[)", toml):
        head, _, body = table.partition("\n")
        if head == "[gates]":  # the short form, a line each
            names = [line.partition(" = ") for line in body.splitlines() if line.strip()]
            tables += [f"[gates.{name}]\nrun = {run}\n{_ALWAYS}\n" for name, _, run in names]
        elif head.startswith("[gates.") and "when = " not in body:
            tables.append(f"{head}\n{_ALWAYS}\n{body}")
        else:
            tables.append(table)
    return "".join(tables)


_ALWAYS = 'when = "always"'
