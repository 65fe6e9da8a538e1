"""Codex's settings: `hooks.json` or `[hooks]` of `config.toml`, and its trust in hooks."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from notyet.config.document import name_of
from notyet.config.find import above, root_of
from notyet.git.worktrees import in_main_worktree
from notyet.hosts.codex import HOST, trust
from notyet.install import settings
from notyet.install.change import change_of
from notyet.install.layouts import positions
from notyet.install.settings import (
    CannotInstall,
    SettingsFile,
    distinct,
    kept_and_others,
    read_settings,
    settings_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from notyet.config.document import Document, Path
    from notyet.install.change import Change
    from notyet.install.settings import Registration, SettingsLevel

MANAGED = HOST.managed
_KEYS = ("description", "hooks")  # all that may stand in a `hooks.json`
_TYPES = ("command", "mcp_tool", "prompt", "agent")


class Settings(settings.Settings):
    """Codex reads both files of every folder from the project's root down to its own."""

    approve = "start codex, type /hooks, and approve the four hooks of notyet there"

    def files(self, cwd: str, environ: Mapping[str, str]) -> list[SettingsFile]:
        """Return every settings file that Codex reads in a folder; they add up."""
        requirements = os.path.join(MANAGED, "requirements.toml")
        found = [SettingsFile(scope="managed", path=requirements, form="toml")]
        found += _layer("managed", MANAGED)
        user = self.user_folder(environ)
        found += _layer("user", user) if user else []
        here = os.path.realpath(cwd)
        root = root_of(here)
        for folder in reversed(above(here)):
            if len(folder) >= len(root):
                found += _layer("project", os.path.join(folder, ".codex"))
        return distinct(found)

    def target(self, scope: SettingsLevel, cwd: str, environ: Mapping[str, str]) -> SettingsFile:
        """Return the file with entries of ours, else the one with hooks, else `hooks.json`.

        Codex warns if one folder has hooks in both files. Raises CannotInstall.
        """
        if scope == "local":
            raise CannotInstall(
                "Codex has no file that is for you in one project only; use --user or --project"
            )
        json = super().target(scope, cwd, environ)
        _, toml = _layer(scope, os.path.dirname(json.path))
        for file in (json, toml):
            if any(one.is_hook for one in self.found_in([file])[0]):
                return file
        return toml if not os.path.lexists(json.path) and _has_hooks(toml) else json

    def user_folder(self, environ: Mapping[str, str]) -> str:
        """Return Codex's folder by the name that it uses in its keys of trust."""
        folder = super().user_folder(environ)
        if not folder:
            return ""
        if environ.get(self.host.home_variable):
            return os.path.realpath(folder)
        return "/" + os.path.normpath(folder).lstrip("/")  # with the links in it

    def check(self, text: str, file: SettingsFile) -> None:
        """Refuse a `hooks.json` of which Codex reads nothing, our entries included."""
        if file.form != "json":
            return
        if text.startswith("\ufeff"):
            message = "Codex reads no file that begins with a byte order mark"
            raise file.refusal(message, (1, 1), "save it as UTF-8 without one")
        document = read_settings(text, file)
        for finding in document.findings:
            message = f"{finding.message.partition(';')[0]}, so Codex reads nothing of this file"
            raise file.refusal(message, (finding.line, finding.column), finding.hint)
        for path, hint in self._refused(document.value):
            message = f"Codex does not know {name_of(path)}, so it reads nothing of this file"
            raise file.refusal(message, document.locate(path), hint)

    def _refused(self, value: dict[str, Any]) -> Iterator[tuple[Path, str]]:
        """Yield what makes Codex ignore a whole `hooks.json`, and how to correct it."""
        yield from (((name,), "remove it") for name in value if name not in _KEYS)
        for place in self.layout.places(value):
            if place.handler.get("type") not in _TYPES:
                yield (*place.path, "type"), f"use one of {', '.join(_TYPES)}"
            timeout = place.handler.get("timeout")
            if timeout is not None and (type(timeout) is not int or timeout < 0):
                yield (*place.path, "timeout"), "write whole seconds"

    def _command(self, command: str, arguments: list[str] | None) -> str:
        del arguments  # Codex does not know the key
        return command

    def approval(self, file: SettingsFile, text: str, environ: Mapping[str, str]) -> Change | None:
        """Return the change that makes Codex trust our entries of this text."""
        config = self._config(environ)
        if config is None:
            return None
        read = _read_instead(file)
        if read:
            raise CannotInstall(
                f"Codex reads the hooks of this work tree from {read}, so trust in {file.path} "
                "would not count; run this in the main work tree"
            )
        before = settings_text(config)
        after = text if config.path == file.path else before or ""
        return change_of(config.path, before, trust.trusted(after, config, self.hashes(file, text)))

    def trust_update(
        self, file: SettingsFile, before: str, after: str, environ: Mapping[str, str]
    ) -> Change | None:
        """Return the change of Codex's trust that follows from a change of settings.

        Trust is by position: that in removed entries must go, and that in entries behind them must
        move, or Codex would silently skip them. If both are in one file, this is the whole change.
        """
        config = self._config(environ)
        gone, moved = self._moves(file, before, after)
        known = settings_text(config) if config and (gone or moved) else None
        if config is None or known is None:
            return None
        base = after if config.path == file.path else known
        text = trust.forgotten(base, config, gone, moved)
        if text == base:
            return None
        note = ""
        if text != trust.forgotten(base, config, gone, ()):
            note = (
                f"hooks after ours move up in {file.path}, and {self.title}'s trust in them "
                "moves along"
            )
        return replace(change_of(config.path, known, text or None), note=note)

    def hashes(self, file: SettingsFile, text: str) -> dict[str, str]:
        """Return the keys and hashes of our entries in this text. Raises CannotInstall."""
        ours = self.registrations(file, read_settings(text, file))
        return self._hashes(file, [one for one in ours if one.is_hook])

    def _hashes(self, file: SettingsFile, entries: Iterable[Registration]) -> dict[str, str]:
        found = {
            trust.key(file.path, one.event, *one.position): trust.hash_of(
                one.event, one.handler, one.matcher
            )
            for one in entries
            if one.event in self.events
        }
        return {key: value for key, value in found.items() if value}

    def _moves(
        self, file: SettingsFile, before: str, after: str
    ) -> tuple[dict[str, str], list[trust.Move]]:
        """Return the keys that go, with their hashes, and the moves of other entries."""
        old, new = (read_settings(text, file) for text in (before, after))
        ours = [one for one in self.registrations(file, old) if one.is_hook]
        stay = any(one.is_hook for one in self.registrations(file, new))
        gone = kept_and_others(ours, self.events)[1] if stay else ours
        removed = {(one.event, *one.position) for one in gone}
        moved = []
        for event in {place.event for place in self.layout.places(old.value)}:
            was = self._positions(old, event)
            was = {at: one for at, one in was.items() if (event, *at) not in removed}
            now = self._positions(new, event)  # new ones are last
            for left, right in zip(was, now, strict=False):
                if left != right:
                    old_key = trust.key(file.path, event, *left)
                    new_key = trust.key(file.path, event, *right)
                    moved.append((old_key, new_key, was[left]))
        return self._hashes(file, gone), moved

    def _positions(self, document: Document, event: str) -> dict[tuple[int, ...], str]:
        """Return the hash of each entry of an event by its position; empty for no command."""
        return {
            positions(place.path): _hash(event, place.group, place.handler)
            for place in self.layout.places(document.value)
            if place.event == event
        }

    def _config(self, environ: Mapping[str, str]) -> SettingsFile | None:
        """Return the file that holds Codex's trust."""
        folder = self.user_folder(environ)
        return _layer("user", folder)[1] if folder else None

    def advice(self, file: SettingsFile, cwd: str) -> list[str]:
        """Return what a person still has to do, besides approving."""
        del cwd
        if file.scope != "project":
            return []
        read = _read_instead(file)
        elsewhere = (
            f"codex reads the hooks of this work tree from {read}; merge these, or install there"
        )
        return [
            *([elsewhere] if read else []),
            "codex reads these hooks only in a project that you trust; it asks when it starts",
            f"commit {file.path}, for your whole team",
        ]


def _layer(scope: SettingsLevel, folder: str) -> list[SettingsFile]:
    return [
        SettingsFile(scope=scope, path=os.path.join(folder, "hooks.json")),
        SettingsFile(scope=scope, path=os.path.join(folder, "config.toml"), form="toml"),
    ]


def _has_hooks(file: SettingsFile) -> bool:
    text = settings_text(file)
    hooks = read_settings(text, file).value.get("hooks") if text else None
    return isinstance(hooks, dict) and any(isinstance(groups, list) for groups in hooks.values())


def _hash(event: str, group: Mapping[str, Any], handler: Mapping[str, Any]) -> str:
    return trust.hash_of(event, handler, group.get("matcher")) if "command" in handler else ""


def _read_instead(file: SettingsFile) -> str:
    """Return the file that Codex reads instead: of a linked work tree, that of the main one."""
    folder, name = os.path.split(file.path)
    main = in_main_worktree(folder) if file.scope == "project" else folder
    return os.path.join(main, name) if main != folder else ""
