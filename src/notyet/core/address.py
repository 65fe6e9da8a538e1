"""Whether a name is one of this machine, or an address elsewhere, which `Remote` can read."""

from __future__ import annotations

LOCAL = "local"  # a workspace that is here, whatever a file or an event says
SCHEME = "ssh://"


def is_remote(text: str) -> bool:
    """Tell whether a text is meant to be a workspace elsewhere, or a file in one."""
    return text.startswith(SCHEME)
