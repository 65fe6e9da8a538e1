"""Gates over SSH while somebody is killed, again and again, at any moment.

Each round asks for some gates there that do what they can to stay, kills one of those that take
part (us, a connection, the sshd that serves it, or any process there), and looks: in
the end nothing of it may run, here or there, and nobody who was not killed himself may leave a
folder.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from sshd import Sshd, is_gone, missing  # type: ignore[import-not-found]  # the sshd of the tests

PATIENCE = 20.0  # seconds until the last one must be gone; it takes one or two

GATES = """
import sys
from notyet.run.command_runner import run_together
from notyet.run.groups import adopt_orphans, sweep
from notyet.run.ssh_script import Upload; from notyet.run.ssh_job import remote_job
from notyet.core.remote import remote_from
url, *tokens = sys.argv[1:]
place = remote_from(url)
stay = '''
trap "" TERM HUP INT PIPE
sleep 1000 &
(setsid sleep 1001 &)
(trap "" TERM HUP; setsid sh -c "sleep 1002; sleep 1003" </dev/null >/dev/null 2>&1 &)
while :; do sleep 1004; done
'''
adopt_orphans()
jobs = [
    remote_job(
        place, argv=("/bin/sh", "-c", stay if n % 2 else "cat; exit 3"), dir=place.path, environ={},
        stdin=bytes(40_000), timeout=600.0, token=token,
        uploads=[Upload(name="transcript.jsonl", content=bytes(200_000))],
    )
    for n, token in enumerate(tokens)
]
for n, ended in enumerate(run_together(jobs)):
    assert ended.problem or ended.timed_out or ended.signal or (ended.code == 3 and not n % 2), ended
sweep()
"""


def main() -> int:
    """Run the soak; exit 1 if something was left, or somebody hung."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    args = parser.parse_args()
    reason = missing()
    if reason:
        print(f"skipped: {reason}")
        return 0
    chance = random.Random(args.seed)
    folder = tempfile.mkdtemp(prefix="notyet-soak-")
    # Few sessions: those for whom there is no room go to other connections.
    box = Sshd(folder + "/sshd", options=["MaxSessions 4"])
    broken: list[str] = []
    killed: dict[str, int] = {}
    try:
        box.start()
        with box.as_box():
            ends = time.monotonic() + args.seconds
            while time.monotonic() < ends and not broken:
                who = _round(box, chance, broken).partition(",")[0]
                killed[who] = killed.get(who, 0) + 1
    finally:
        box.close()
        shutil.rmtree(folder, ignore_errors=True)
    rounds = ", ".join(f"{who} {times}" for who, times in sorted(killed.items()))
    print(f"{sum(killed.values())} rounds, killed: {rounds}")
    print(
        "\n".join([*broken, f"seed {args.seed}"] if broken else ["nothing was left, nobody hung"])
    )
    return 1 if broken else 0


def _round(box: Sshd, chance: random.Random, broken: list[str]) -> str:
    """Let somebody be killed, and look; return who it was."""
    tokens = [chance.randbytes(12).hex() for _ in range(chance.randint(1, 10))]
    environ = os.environ | box.environ
    command = [sys.executable, "-c", GATES, box.url(), *tokens]
    us = subprocess.Popen(
        command, env=environ, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    victims = {
        "us": lambda: [us.pid],
        "the connection": box.masters,
        "sshd": box.connections,
        "a process there": box.victims,
        "nobody": list,
    }
    who = chance.choice(list(victims))
    time.sleep(chance.uniform(0.0, 1.2))
    found = list(victims[who]())
    if found:
        _kill(chance.choice(found))
    try:
        complaint = us.communicate(timeout=chance.uniform(0.2, 1.5))[1]
    except subprocess.TimeoutExpired:  # the others go on; so we end, in one way or another
        ours = chance.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
        us.send_signal(ours)
        who += f", then us with {ours.name}"
        complaint = _last_words(us)
    if complaint:
        broken.append(f"after killing {who}: {complaint}")

    def left() -> list[str]:
        folders = [box.tmp() / f"notyet-{token}" for token in tokens]
        # One that is killed while it receives cannot remove what it has; its guard does, later.
        is_told = not who.startswith("a process there")
        found = [str(path) for path in folders if is_told and path.exists()]
        return [*found, *box.processes().values(), *box.sessions().values()]

    if not is_gone(left, PATIENCE):
        broken.append(f"after killing {who}: left {left()}")
    return who


def _last_words(us: subprocess.Popen[str]) -> str:
    try:
        said = us.communicate(timeout=60)[1]
    except subprocess.TimeoutExpired:
        us.kill()
        us.wait()
        return "it hangs"
    return "" if said.rstrip().endswith("KeyboardInterrupt") else said


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
