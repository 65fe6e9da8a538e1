"""Which hosts of this machine `notyet init` offers to register with."""

from __future__ import annotations

import os
import shutil

from notyet.install import HOSTS, host_named
from notyet.install.refused import CannotInstall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def hosts_to_offer(folder: str, environ: Mapping[str, str]) -> list[str]:
    """Return the hosts that are here and do not call us yet, wherever that would be said."""
    return [
        name
        for name in HOSTS
        if _is_here(name, folder, environ) and not host_named(name).found(folder, environ)[0]
    ]


def _is_here(name: str, folder: str, environ: Mapping[str, str]) -> bool:
    host = host_named(name)
    if shutil.which(host.PROGRAM, path=environ.get("PATH")):
        return True
    try:
        place = host.target("user", folder, environ)
    except CannotInstall:
        return False
    return os.path.isdir(os.path.dirname(place.path))
