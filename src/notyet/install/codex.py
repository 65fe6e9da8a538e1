"""Codex: `hooks.json`, or `[hooks]` of `config.toml`, of the user and of the project."""

from __future__ import annotations

import os

from notyet.config.document import Mistake, name_of
from notyet.config.files import above, real_folder, root_of
from notyet.core.record import replace
from notyet.install import codex_trust, hooks_file
from notyet.install.edit import is_hook, kept_and_others
from notyet.install.entry import EVENTS
from notyet.install.place import Place, distinct, is_inside, no_home, user_folder
from notyet.install.planning import change_of
from notyet.install.refused import CannotInstall
from notyet.install.registered import handlers, registrations
from notyet.install.worktree import in_main

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from notyet.config.document import Document
    from notyet.install.change import Change
    from notyet.install.entry import Entry
    from notyet.install.place import Scope
    from notyet.install.registered import Registration

NAME = "codex"
TITLE = "Codex"
PROGRAM = "codex"
SCOPES: tuple[Scope, ...] = ("user", "project")
TRUSTS = True
APPROVE = "start codex, type /hooks, and approve the four hooks of notyet there"
MANAGED = "/etc/codex"
_KEYS = ("description", "hooks")  # all that may stand in a `hooks.json`


def places(cwd: str, environ: Mapping[str, str]) -> list[Place]:
    """Return the files that Codex would read in a folder; they add up."""
    found = [Place(scope="managed", path=os.path.join(MANAGED, "requirements.toml"), form="toml")]
    found += _layer("managed", MANAGED)
    user = home(environ)
    if user:
        found += _layer("user", user)
    here = real_folder(cwd)
    root = root_of(here)
    for folder in reversed(above(here)):
        if len(folder) >= len(root):
            found += _layer("project", os.path.join(folder, ".codex"))
    return distinct(found)


def home(environ: Mapping[str, str]) -> str:
    """Return Codex's folder by the name that it uses in its keys of trust; empty: there is none."""
    folder = user_folder(environ, "CODEX_HOME", ".codex")
    if not folder:
        return ""
    if environ.get("CODEX_HOME"):
        return os.path.realpath(folder)
    return "/" + os.path.normpath(folder).lstrip("/")  # with the links in it


def _layer(scope: Scope, folder: str) -> list[Place]:
    return [
        Place(scope=scope, path=os.path.join(folder, "hooks.json")),
        Place(scope=scope, path=os.path.join(folder, "config.toml"), form="toml"),
    ]


def target(scope: Scope, cwd: str, environ: Mapping[str, str]) -> Place:
    """Return the file that is for these. Raises CannotInstall.

    That is the one with entries of ours, else the one that has hooks, else `hooks.json`: Codex
    warns where one folder has hooks in both.
    """
    user = home(environ)
    if scope == "user" and not user:
        raise CannotInstall(no_home(environ, "CODEX_HOME"))
    if scope == "local":
        raise CannotInstall(
            "Codex has no file that is for you in one project only; use --user or --project"
        )
    own = os.path.join(root_of(real_folder(cwd)), ".codex")
    json, toml = _layer(scope, user if scope == "user" else own)
    if scope == "project" and user and (is_inside(json.path, user) or is_inside(toml.path, user)):
        raise CannotInstall("this folder's settings are your own; use --user, or go to a project")
    for place in (json, toml):
        if any(is_hook(one) for one in hooks_file.found_in(NAME, [place])[0]):
            return place
    return toml if not os.path.lexists(json.path) and _has_hooks(toml) else json


def _has_hooks(place: Place) -> bool:
    text = hooks_file.text_of(place)
    hooks = hooks_file.document_of(text, place).value.get("hooks") if text else None
    return isinstance(hooks, dict) and any(isinstance(groups, list) for groups in hooks.values())


def added(text: str, place: Place, entries: Sequence[Entry]) -> str:
    """Return the file's text with our entries. Raises CannotInstall."""
    if place.form == "json":
        _check_readable(text, place)
    return hooks_file.added(NAME, text, place, entries)


def _check_readable(text: str, place: Place) -> None:
    """Refuse a `hooks.json` of which Codex would take nothing, our entries included."""
    if text.startswith("\ufeff"):
        message = "Codex reads no file that begins with a byte order mark"
        hint = "save it as UTF-8 without one"
        raise CannotInstall(Mistake(file=place.path, line=1, column=1, message=message, hint=hint))
    document = hooks_file.document_of(text, place)
    for finding in document.findings:
        message = f"{finding.message.partition(';')[0]}, so Codex reads nothing of this file"
        line, column = finding.line, finding.column
        raise CannotInstall(
            Mistake(file=place.path, line=line, column=column, message=message, hint=finding.hint)
        )
    for name in document.value:
        if name not in _KEYS:
            line, column = document.locate((name,))
            message = f"Codex does not know {name_of((name,))}, so it reads nothing of this file"
            hint = "remove it"
            raise CannotInstall(
                Mistake(file=place.path, line=line, column=column, message=message, hint=hint)
            )


def removed(text: str, place: Place) -> str:
    """Return the file's text without our entries. Raises CannotInstall."""
    return hooks_file.removed(NAME, text, place)


def found(cwd: str, environ: Mapping[str, str]) -> tuple[list[Registration], list[Mistake]]:
    """Return our entries in all places, and what is wrong with files."""
    return hooks_file.found_in(NAME, places(cwd, environ))


def approval(place: Place, text: str, environ: Mapping[str, str]) -> Change | None:
    """Return what writes Codex's trust in our entries of this text. Raises CannotInstall."""
    config = _config(environ)
    if config is None:
        return None
    read = _read_instead(place)
    if read:
        raise CannotInstall(
            f"Codex reads the hooks of this work tree from {read}, so trust in {place.path} would "
            "not count; run this in the main work tree"
        )
    before = hooks_file.text_of(config)
    after = text if config.path == place.path else before or ""
    return change_of(config.path, before, codex_trust.trusted(after, config, hashes(place, text)))


def disapproval(place: Place, before: str, after: str, environ: Mapping[str, str]) -> Change | None:
    """Return what follows from a change for what Codex trusts. Raises CannotInstall.

    Its trust is by position: that in entries which go must go, and that in entries behind them
    must move, or Codex would silently skip them. Where both stand in one file, this is all of it.
    """
    config = _config(environ)
    gone, moved = _moves(place, before, after)
    known = hooks_file.text_of(config) if config and (gone or moved) else None
    if config is None or known is None:
        return None
    base = after if config.path == place.path else known
    text = codex_trust.forgotten(base, config, gone, moved)
    if text == base:
        return None
    note = ""
    if text != codex_trust.forgotten(base, config, gone, ()):
        note = f"hooks after ours move up in {place.path}, and {TITLE}'s trust in them moves along"
    return replace(change_of(config.path, known, text or None), note=note)


def _moves(place: Place, before: str, after: str) -> tuple[dict[str, str], list[codex_trust.Move]]:
    """Return the keys that go, with their hashes, and what of others moves."""
    old, new = (hooks_file.document_of(text, place) for text in (before, after))
    ours = [one for one in registrations(NAME, place, old) if is_hook(one)]
    stay = any(is_hook(one) for one in registrations(NAME, place, new))
    gone = kept_and_others(ours)[1] if stay else ours
    places = {(one.event, one.group, one.index) for one in gone}
    moved = []
    for event in {event for event, *_ in handlers(old.value)}:
        was = {at: one for at, one in _positions(old, event).items() if (event, *at) not in places}
        for left, right in zip(was, _positions(new, event), strict=False):  # new ones come last
            if left != right:
                keys = _key(place, event, left), _key(place, event, right)
                moved.append((*keys, was[left]))
    return _hashes(place, gone), moved


def _positions(document: Document, event: str) -> dict[tuple[int, int], str]:
    """Return where entries of an event stand, in their order, with their hashes."""
    return {
        (at, index): _hash(event, group, handler)
        for name, at, group, index, handler in handlers(document.value)
        if name == event
    }


def _hash(event: str, group: Mapping[str, Any], handler: Mapping[str, Any]) -> str:
    """Return an entry's hash; nothing for one that is no command."""
    return codex_trust.hash_of(event, handler, group.get("matcher")) if "command" in handler else ""


def _key(place: Place, event: str, at: tuple[int, int]) -> str:
    return codex_trust.key(place.path, event, *at)


def _config(environ: Mapping[str, str]) -> Place | None:
    """Return the one file in which trust counts."""
    folder = home(environ)
    return _layer("user", folder)[1] if folder else None


def hashes(place: Place, text: str) -> dict[str, str]:
    """Return what Codex would have to trust, for our entries of this text. Raises CannotInstall."""
    ours = registrations(NAME, place, hooks_file.document_of(text, place))
    return _hashes(place, [one for one in ours if is_hook(one)])


def _hashes(place: Place, entries: Iterable[Registration]) -> dict[str, str]:
    found = {
        _key(place, one.event, (one.group, one.index)): codex_trust.hash_of(
            one.event, one.handler, one.matcher
        )
        for one in entries
        if one.event in EVENTS
    }
    return {key: value for key, value in found.items() if value}


def advice(place: Place, cwd: str) -> list[str]:
    """Return what a person still has to do, besides approving."""
    del cwd
    if place.scope != "project":
        return []
    read = _read_instead(place)
    said = f"codex reads the hooks of this work tree from {read}; merge these, or install there"
    return [
        *([said] if read else []),
        "codex reads these hooks only in a project that you trust; it asks when it starts",
        f"commit {place.path}, for everybody who works here",
    ]


def _read_instead(place: Place) -> str:
    """Return the file that Codex reads instead: of a linked work tree, that of the main one."""
    folder, name = os.path.split(place.path)
    main = in_main(folder) if place.scope == "project" else folder
    return os.path.join(main, name) if main != folder else ""
