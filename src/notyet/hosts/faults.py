"""What differs between hosts when `notyet status` looks for faults.

A host with faults of its own has a module `faults` in its folder, whose `CHECKS` is an instance
of a subclass of `Checks`.
"""

from __future__ import annotations

import json
import os
import tomllib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from notyet.hosts.host import Host
    from notyet.install.settings import Registration
    from notyet.status.facts import HostFacts, SettingsContent
    from notyet.status.fault import Fault


class Checks:
    """The checks of a host that has nothing of its own."""

    def variables(self, files: Sequence[SettingsContent]) -> dict[str, tuple[str, str]]:
        """Return the variables that settings add for hooks, each with its value and its place."""
        del files
        return {}

    def faults(self, facts: HostFacts) -> Iterator[Fault]:
        """Yield what keeps the host from running our entries."""
        yield from _switched_off(facts)
        yield from _disabled(facts)
        yield from _untrusted(facts)
        yield from _hidden(facts)

    def is_accepted(self, facts: HostFacts) -> bool:
        """Return True if the user accepted this project in the host, with what its files run."""
        has_list = facts.host.folder_trust is not None
        return has_list and is_trusted(facts.host, facts.cwd, facts.environ)

    def argv(self, entry: Registration) -> tuple[str, ...]:
        """Return how the host starts the command of an entry."""
        return ("/bin/sh", "-c", entry.command)


def _switched_off(facts: HostFacts) -> Iterator[Fault]:
    """Find the switches that are off in the nearest file that sets them."""
    for key, off in facts.host.switches.items():
        path = key.split(".")
        setting = [content for content in facts.files if isinstance(content.get(*path), bool)]
        if setting and setting[-1].get(*path) is off:
            yield facts.fault(
                "hooks-disabled",
                f"{key} is {str(off).lower()}, so {facts.host.title} runs no hook at all.",
                where=setting[-1].where(*path),
                fix="remove it",
            )


def _disabled(facts: HostFacts) -> Iterator[Fault]:
    """Find our entries in the lists of hooks that the user disabled."""
    path = facts.host.disabled.split(".")
    ours = [name for entry in facts.entries for name in (entry.handler.get("name"), entry.command)]
    for content in facts.files if facts.host.disabled else ():
        names = content.get(*path)
        for at, name in enumerate(names if isinstance(names, list) else ()):
            if name in ours:
                yield facts.fault(
                    "hooks-disabled",
                    f"{facts.host.disabled} has notyet's hook, so {facts.host.title} does not run "
                    "it.",
                    where=content.where(*path, at),
                    fix="remove it from that list",
                )


def _untrusted(facts: HostFacts) -> Iterator[Fault]:
    """Find our entries that the host skips, because the folder is not trusted."""
    trust = facts.host.folder_trust
    if trust is None or is_trusted(facts.host, facts.cwd, facts.environ):
        return
    for entry in facts.entries:
        if entry.file.scope in {"project", "local"}:
            what = (
                f"{facts.host.title} silently skips hooks in this folder, because you did not "
                "tell it that you trust the folder."
            )
            yield facts.entry_fault("folder-not-trusted", entry, what, trust.how)


def _hidden(facts: HostFacts) -> Iterator[Fault]:
    """Find our entries in the user's file that the host does not read, as the project has one."""
    of_project = [content.file.path for content in facts.files if content.file.scope == "project"]
    if not facts.host.project_hides_user or not any(map(os.path.exists, of_project)):
        return
    known = {entry.event for entry in facts.entries if entry.file.scope == "project"}
    for entry in facts.entries:
        if entry.file.scope == "user":
            what = f"{facts.host.title} does not read this file here, because of {of_project[0]}."
            fix = f"run: notyet install {facts.host.name} --project"
            if entry.event in known:
                fix = "nothing: notyet is registered there too"
            yield facts.entry_fault("file-hidden", entry, what, fix)


def is_trusted(host: Host, folder: str, environ: Mapping[str, str]) -> bool:
    """Return True if the host runs the hooks of a folder: its user trusts it, or one around it."""
    trust = host.folder_trust
    if trust is None:
        return True
    if trust.variable and environ.get(trust.variable) == "true":
        return True
    if trust.switch:
        is_on = _value_in(host, trust.switch[0], trust.switch[1:], environ)
        if not (is_on if isinstance(is_on, bool) else trust.is_on):
            return True
    known = _value_in(host, trust.file, trust.keys, environ)
    refused = _value_in(host, trust.file, trust.refused_keys, environ)
    rules: dict[str, bool] = {}  # of two that are for a folder, the nearest counts
    for names, value in ((refused, False), (known, True)):
        if isinstance(names, list):
            rules |= {os.path.realpath(name): value for name in names if isinstance(name, str)}
    for name, value in known.items() if isinstance(known, dict) else ():
        place = os.path.dirname(name) if value in trust.parents else name
        if value in (*trust.values, *trust.parents, *trust.refused):
            rules[os.path.realpath(place)] = value not in trust.refused
    here = Path(folder).resolve()
    around = map(str, (here, *here.parents))
    return next((rules[place] for place in around if place in rules), False)


def _value_in(host: Host, file: str, keys: Sequence[str], environ: Mapping[str, str]) -> Any:
    """Return what a file of the user has at these keys; None if it has nothing there."""
    moved = environ.get(host.home_variable) if host.home_variable else ""
    below = Path(file).parts[host.home_depth :]
    path = Path(moved, *below) if moved else Path(environ.get("HOME", ""), file)
    try:
        text = path.read_text(encoding="utf-8")
        value: Any = tomllib.loads(text) if path.suffix == ".toml" else json.loads(_plain(text))
    except (OSError, ValueError, RecursionError):
        return None
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _plain(text: str) -> str:
    """Return JSON without lines of comment, with which some hosts begin their files."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))


def managed_only(facts: HostFacts, content: SettingsContent, key: str) -> Fault:
    """Return the fault of a setting that allows only the hooks of an organisation."""
    return facts.fault(
        "managed-hooks-only",
        f"{key} is set, so {facts.host.title} runs only hooks of your organisation.",
        where=content.where(key),
        fix="ask the administrator of this machine to register notyet there",
    )


def checks_of(host: str) -> Checks:
    """Return the checks of a host."""
    try:
        checks: Checks = import_module(f"notyet.hosts.{host}.faults").CHECKS
    except ModuleNotFoundError:
        return Checks()
    return checks
