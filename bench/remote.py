"""Gates on another machine: a real sshd on the loopback, in multiples of ssh's own client."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import Effort, Missing, Result, Row, interleaved
from notyet.core.remote import remote_from
from notyet.run.command_runner import run_together
from notyet.run.ssh_job import remote_job

if TYPE_CHECKING:
    from collections.abc import Iterator

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from sshd import Sshd, missing  # type: ignore[import-not-found]  # the sshd of the tests

TEN = 10


def measure(effort: Effort) -> list[Result]:
    """Run a gate there, ten at once, and one that has to connect first."""
    reason = missing()
    if reason:
        return [Missing("gates over SSH", reason)]
    with _box() as box:
        shared = ["-o", f"ControlPath={box.runtime}/bench"]
        # It goes to the background once it is connected.
        _spawn(["-N", *shared, "-o", "ControlMaster=yes", "-o", "ControlPersist=yes", "box"], box)
        floor = [*shared, "-o", "ControlMaster=no", "box", "true"]
        _gates(box, TEN)  # connect
        warm = interleaved(
            effort.rounds(40),
            1,
            floor=lambda: _spawn(floor, box),
            one=lambda: _gates(box, 1),
            ten=lambda: _gates(box, TEN),
            ten_clients=lambda: _spawn(floor, box, TEN),
        )
        cold = interleaved(
            effort.rounds(10),
            1,
            floor=lambda: _spawn(["-o", "ControlPath=none", "box", "true"], box),
            ours=lambda: _connecting(box),
        )
    over = "ssh -o ControlPath=... host true"
    return [
        Row("one gate there", over, warm["floor"], warm["one"], 1.5),
        Row("ten gates there at once", over, warm["floor"], warm["ten"], 3.0),
        # Ten of the floor: how much of the ratio above is the machine's, with its few cores.
        Row("the same", "ten of these clients at once", warm["ten_clients"], warm["ten"]),
        Row("one gate that connects first", "ssh host true", cold["floor"], cold["ours"]),
    ]


@contextmanager
def _box() -> Iterator[Sshd]:
    folder = tempfile.mkdtemp(prefix="notyet-bench-")
    box = Sshd(folder + "/sshd", options=["MaxSessions 20"])  # the last ten may still be leaving
    before = dict(os.environ)
    try:
        box.start()
        with box.as_box():
            os.environ.update(box.environ)
            os.environ.pop("SSH_AUTH_SOCK", None)
            yield box
    finally:
        os.environ.clear()
        os.environ.update(before)
        box.close()
        shutil.rmtree(folder, ignore_errors=True)


def _spawn(words: list[str], box: Sshd, count: int = 1) -> None:
    argv = ["ssh", "-F", box.config, "-o", "BatchMode=yes", *words]
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
    pids = [os.posix_spawnp("ssh", argv, os.environ, file_actions=null) for _ in range(count)]
    if any(os.waitpid(pid, 0)[1] for pid in pids):
        raise RuntimeError(f"ssh failed: {argv}")


def _gates(box: Sshd, count: int) -> None:
    place = remote_from(box.url())
    jobs = [
        remote_job(place, argv=("true",), dir=place.path, environ={}, stdin=b"{}", timeout=60)
        for _ in range(count)
    ]
    ended = run_together(jobs)
    if any(one.code != 0 for one in ended):
        raise RuntimeError(f"a gate there failed: {ended}")


def _connecting(box: Sshd) -> None:
    """Run a gate in a control folder in which nobody has connected yet."""
    with tempfile.TemporaryDirectory(prefix="c", dir=box.runtime) as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        try:
            _gates(box, 1)
        finally:
            os.environ["XDG_RUNTIME_DIR"] = box.runtime
