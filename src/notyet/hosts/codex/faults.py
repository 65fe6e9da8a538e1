"""What keeps Codex from running our hook: its switch, managed hooks, and its trust.

Codex runs a hook only if the user approved its hash, and skips every other one silently. The
approved hashes are in its `config.toml`.
"""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING

from notyet.git.worktrees import in_main_worktree
from notyet.hosts.codex import trust
from notyet.hosts.faults import Checks, managed_only

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notyet.install.settings import Registration
    from notyet.status.facts import HostFacts
    from notyet.status.fault import Fault

_APPROVE = "start codex here, type /hooks and approve it; or run: notyet install codex --trust"
_APPROVE_PLUGIN = "start codex here, type /hooks and approve the hooks of the plugin notyet"
_SKIPPED = {
    "project-untrusted": (
        "Codex does not know yet that you trust this project, so it reads nothing from it.",
        "start codex here once and accept the project, or run: notyet install codex",
    ),
    "hook-untrusted": (
        "You have not approved notyet's hook, so Codex skips it silently.",
        _APPROVE,
    ),
    "hook-modified": ("notyet's hook changed since you approved it, so Codex skips it.", _APPROVE),
    "hook-disabled": (
        "notyet's hook is switched off in Codex's /hooks.",
        "start codex here, type /hooks and switch it on",
    ),
}


class CodexChecks(Checks):
    """The checks of Codex."""

    def faults(self, facts: HostFacts) -> Iterator[Fault]:
        """Yield what keeps Codex from running our entries."""
        off = [*_disabled(facts), *_managed_only(facts)]
        yield from off
        if off:
            return
        for entry in facts.entries:
            code = _why_skipped(facts, entry)
            if code:
                what, fix = _SKIPPED[code]
                fix = _APPROVE_PLUGIN if entry.is_plugin else fix
                yield facts.entry_fault(code, entry, what, fix)

    def is_accepted(self, facts: HostFacts) -> bool:
        """Return True: what Codex runs was approved entry by entry."""
        del facts
        return True

    def argv(self, entry: Registration) -> tuple[str, ...]:
        """Return how Codex starts a command: by the user's shell."""
        try:
            shell = pwd.getpwuid(os.getuid()).pw_shell
        except KeyError:
            shell = ""
        return (shell or "/bin/sh", "-c", entry.command)


CHECKS = CodexChecks()


def _disabled(facts: HostFacts) -> Iterator[Fault]:
    """Find the switch that counts: the one of the nearest file."""
    switches = [
        (content.get("features", name), content.where("features", name))
        for content in facts.files
        for name in ("codex_hooks", "hooks")
        if isinstance(content.get("features", name), bool)
        and (content.file.scope != "project" or _is_trusted_project(facts))
    ]
    if switches and switches[-1][0] is False:
        what = "The feature `hooks` is false, so Codex runs no hook at all."
        yield facts.fault("hooks-disabled", what, where=switches[-1][1], fix="remove it")


def _managed_only(facts: HostFacts) -> Iterator[Fault]:
    if any(entry.file.scope == "managed" for entry in facts.entries):
        return
    for content in facts.files:
        name = os.path.basename(content.file.path)
        if name == "requirements.toml" and content.get("allow_managed_hooks_only") is True:
            yield managed_only(facts, content, "allow_managed_hooks_only")


def _is_trusted_project(facts: HostFacts) -> bool:
    """Return True if the user's settings trust this folder, its main work tree, or a parent."""
    here = Path(facts.cwd).resolve()
    starts = (Path(facts.cwd), here, Path(in_main_worktree(str(here))))
    folders = {str(one) for start in starts for one in (start, *start.parents)}
    return any(
        content.get("projects", folder, "trust_level") == "trusted"
        for content in facts.files
        if content.file.scope != "project"
        for folder in folders
    )


def _why_skipped(facts: HostFacts, entry: Registration) -> str:
    """Return the code of the fault for which Codex skips an entry; empty if it runs it."""
    if entry.file.scope == "managed":
        return ""
    if entry.file.scope == "project" and not _is_trusted_project(facts):
        return "project-untrusted"
    path = entry.file.path
    paths = dict.fromkeys((in_main_worktree(path), path))  # Codex reads hooks in the main one
    if entry.file.scope == "plugin" and facts.host.plugin is not None:
        paths = {facts.host.plugin.trust_name: None}
    keys = [trust.key(one, entry.event, *entry.position) for one in paths]
    approved = None
    for content in facts.files:
        for state in (content.get("hooks", "state", key) for key in keys):
            if content.file.scope == "user" and isinstance(state, dict):
                if state.get("enabled") is False:
                    return "hook-disabled"
                approved = state.get("trusted_hash")
                if entry.file.scope == "plugin" and "trusted_content_hash" not in state:
                    approved = None  # Codex trusts all of the plugin's files, or none
    if approved is None:
        return "hook-untrusted"
    expected = trust.hash_of(entry.event, entry.handler, entry.matcher)
    return "" if approved == expected else "hook-modified"
