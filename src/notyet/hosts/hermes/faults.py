"""What keeps Hermes from running our hook: it runs only commands that its user consented to."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from notyet.hosts.faults import Checks
from notyet.hosts.hermes.settings import CONSENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notyet.status.facts import HostFacts
    from notyet.status.fault import Fault

_YES = ("1", "true", "yes", "on")


class HermesChecks(Checks):
    """The checks of Hermes."""

    def faults(self, facts: HostFacts) -> Iterator[Fault]:
        """Yield the entries that Hermes skips."""
        accepts = [content.get("hooks_auto_accept") for content in facts.files]
        accepts.append(facts.environ.get("HERMES_ACCEPT_HOOKS", ""))
        if any(str(value).lower() in _YES for value in accepts):
            return
        for entry in facts.entries:
            if (entry.event, entry.command) not in _approved(os.path.dirname(entry.file.path)):
                what = "You have not approved notyet's hook, so Hermes skips it."
                yield facts.entry_fault("hook-untrusted", entry, what, CONSENT)


def _approved(folder: str) -> list[tuple[object, object]]:
    try:
        text = Path(folder, "shell-hooks-allowlist.json").read_text(encoding="utf-8")
        approvals = json.loads(text)["approvals"]
        return [(one.get("event"), one.get("command")) for one in approvals]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return []


CHECKS = HermesChecks()
