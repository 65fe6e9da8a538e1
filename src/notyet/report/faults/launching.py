"""Whether hooks start by a launcher of this notyet, and as quickly as they can."""

from __future__ import annotations

import os
import sys

from notyet.core.text import visible
from notyet.install.entry import parsed
from notyet.install.launcher import has_pack, installation, is_launcher_of, own_root
from notyet.report.faults.entries import install_again

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from notyet.install.registered import Registration
    from notyet.report.faults.fault import Fault
    from notyet.report.faults.look import Look


def launching_faults(look: Look, entries: Iterable[Registration]) -> Iterator[Fault]:
    """Judge each launcher that these entries have started and that is there."""
    told = set()
    for entry in entries:
        ours = parsed(entry.command)
        if ours is None or ours.launcher in told or not os.path.isfile(ours.launcher):
            continue
        told.add(ours.launcher)
        folder, fix = os.path.dirname(ours.launcher), install_again(look, entry)
        name, is_ours = visible(ours.launcher), os.path.basename(folder) == installation(own_root())
        if not is_ours:
            what = f"{name} belongs to another installation of notyet, and starts that one."
            yield look.fault("launcher-other", what, where=entry.where, fix=fix)
        elif not is_launcher_of(folder, own_root()):
            what = f"{name} is not as this notyet writes it, as after an upgrade."
            yield look.fault("launcher-other", what, where=entry.where, fix=fix)
        is_same_python = os.path.realpath(ours.program) == os.path.realpath(sys.executable)
        if is_ours and is_same_python and not has_pack(folder):
            what = "The pack of modules is missing or out of date, so hooks start slower."
            yield look.fault("pack-outdated", what, where=visible(folder), fix=fix)
