"""How much of the past this user wants kept: what the `[ledger]` of their own file says."""

from __future__ import annotations

import os

from notyet.config.files import own_native, real_folder
from notyet.config.layers import Loaded
from notyet.config.store import state_folder
from notyet.errors import Refused
from notyet.ledger.retention import Retention

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def retention(environ: Mapping[str, str]) -> Retention:
    """Return it. Raises Refused where the file cannot be read whole.

    A limit that was mistyped must not cost anybody what they wanted to keep.
    """
    loaded = Loaded(state_folder(environ))
    try:
        here = real_folder(os.getcwd())
    except OSError:  # it is gone
        here = ""
    for file in own_native(here, environ):
        loaded.add(file)
    setup = loaded.setup()
    wrong = [*setup.warnings, *setup.distrust, *setup.unreadable]
    if wrong:
        raise Refused(f"nothing is removed until this is mended: {wrong[0]}")
    return Retention(**setup.ledger)
