"""What keeps Claude Code from running our hook: switches, managed settings, an unknown folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from notyet.hosts.faults import Checks, managed_only

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from notyet.install.settings import Registration
    from notyet.status.facts import HostFacts, SettingsContent
    from notyet.status.fault import Fault

_SIMPLE = "CLAUDE_CODE_SIMPLE"
_ON = ("1", "true", "yes", "on")


class ClaudeChecks(Checks):
    """The checks of Claude Code."""

    def variables(self, files: Sequence[SettingsContent]) -> dict[str, tuple[str, str]]:
        """Return the `env` of the settings."""
        added: dict[str, tuple[str, str]] = {}
        for content in files:
            env = content.get("env")
            for name, value in env.items() if isinstance(env, dict) else ():
                if isinstance(value, str | int | float):
                    text = str(value).lower() if isinstance(value, bool) else str(value)
                    added[name] = (text, content.where("env", name))
        return added

    def faults(self, facts: HostFacts) -> Iterator[Fault]:
        """Yield what keeps Claude Code from running our entries."""
        yield from _disabled(facts)
        yield from _managed_only(facts)
        projects = _projects(facts.environ)
        if projects is not None and not _is_accepted(projects, facts.cwd):
            yield facts.fault(
                "folder-not-accepted",
                "Claude Code does not know yet that you trust this folder; in a terminal it runs "
                "no hook before that (`claude -p` does).",
                where=_memory(facts.environ),
                fix="start claude here once, and accept the folder",
            )

    def is_accepted(self, facts: HostFacts) -> bool:
        """Return True if the user accepted this folder, or one around it."""
        return _is_accepted(_projects(facts.environ) or {}, facts.cwd)

    def argv(self, entry: Registration) -> tuple[str, ...]:
        """Return how Claude Code starts a command: with its arguments, or by a shell."""
        arguments = entry.handler.get("args")
        if isinstance(arguments, list):
            return (str(entry.handler["command"]), *arguments)
        shell = "bash" if entry.handler.get("shell") == "bash" else "/bin/sh"
        return (shell, "-c", entry.command)


CHECKS = ClaudeChecks()


def _disabled(facts: HostFacts) -> Iterator[Fault]:
    """Find the switch that counts: a managed one, or that of the nearest file."""
    switches = [one for one in facts.files if isinstance(one.get("disableAllHooks"), bool)]
    switches.sort(key=lambda content: content.file.scope == "managed")
    if switches and switches[-1].get("disableAllHooks") is True:
        is_managed = switches[-1].file.scope == "managed"
        if is_managed or not _is_registered_by_managers(facts):
            yield facts.fault(
                "hooks-disabled",
                "disableAllHooks is true, so Claude Code runs no hook at all.",
                where=switches[-1].where("disableAllHooks"),
                fix="remove it",
            )
    if facts.hook_environ.get(_SIMPLE, "").strip().lower() in _ON:
        _, where = facts.variables.get(_SIMPLE, ("", ""))
        yield facts.fault(
            "hooks-disabled",
            f"{_SIMPLE} is set, so Claude Code runs no hook at all.",
            where=where,
            fix="remove it" if where else f"run: unset {_SIMPLE}",
        )


def _managed_only(facts: HostFacts) -> Iterator[Fault]:
    managed = [content for content in facts.files if content.file.scope == "managed"]
    for content in () if _is_registered_by_managers(facts) else managed:
        if content.get("allowManagedHooksOnly") is True:
            yield managed_only(facts, content, "allowManagedHooksOnly")
        strict = content.get("strictPluginOnlyCustomization")
        if any(entry.is_plugin for entry in facts.entries):
            continue
        if strict is True or (isinstance(strict, list) and "hooks" in strict):
            yield managed_only(facts, content, "strictPluginOnlyCustomization")


def _is_registered_by_managers(facts: HostFacts) -> bool:
    return any(entry.file.scope == "managed" for entry in facts.entries)


def _projects(environ: Mapping[str, str]) -> dict[str, Any] | None:
    """Return Claude Code's list of folders; None if it has none, or never ran in a terminal."""
    try:
        known = json.loads(Path(_memory(environ)).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    projects = known.get("projects") if isinstance(known, dict) else None
    return projects if isinstance(projects, dict) else None


def _memory(environ: Mapping[str, str]) -> str:
    folder = environ.get("CLAUDE_CONFIG_DIR") or environ.get("HOME", "")
    return os.path.join(folder, ".claude.json")


def _is_accepted(projects: Mapping[str, Any], cwd: str) -> bool:
    for start in (Path(cwd), Path(cwd).resolve()):
        for folder in (start, *start.parents):
            project = projects.get(str(folder))
            if isinstance(project, dict) and project.get("hasTrustDialogAccepted") is True:
                return True
    return False
