"""A run whose hook is killed while its gate is at work."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from clients.model.script import Say
from commands import until

if TYPE_CHECKING:
    from clients.model.script import Step
    from clients.runs import Ran
    from clients.world import World

_GATES = """
[gates.slow]
run = "test -e ready || { echo $PPID > hook.pid; sleep 1000; }"
when = "always"
"""


def run_with_killed_hook(world: World, *before: Step) -> Ran:
    """Install a gate, and kill the first hook that asks it; the gate passes afterwards."""
    world.gates(_GATES)
    world.install()
    place = world.project / "hook.pid"
    with world.start([*before, Say("Done.")]) as under_way:
        assert until(lambda: place.exists() and place.read_text().strip(), 60)
        os.kill(int(place.read_text()), signal.SIGKILL)
        ran = under_way.wait()
    (world.project / "ready").touch()
    return ran
