"""Plan what `install` and `uninstall` change in a host's settings, file by file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from notyet.config.document import Mistake
from notyet.hosts.change import Change, backups
from notyet.hosts.settings import CannotInstall, Entry, read_settings, settings_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.hosts.settings import Place, Settings


def to_install(settings: Settings, place: Place, entries: Sequence[Entry]) -> Change:
    """Return the change that registers us in a file. Raises CannotInstall."""
    text = settings_text(place)
    change = change_of(place.path, text, settings.added(text or "", place, entries))
    return replace(change, is_first=settings.removed(text or "", place) == (text or ""))


def to_uninstall(settings: Settings, place: Place, state: str) -> Change:
    """Return the change that takes us out of a file. Raises CannotInstall.

    It restores a backup byte for byte if nothing else changed since, that is, if installing into
    the backup gives the file as it is now. Otherwise it removes our entries.
    """
    text = settings_text(place)
    if text is None:
        return change_of(place.path, None, None)
    without = settings.removed(text, place)
    if without == text:
        return change_of(place.path, text, text)
    entries = _entries(settings, text, place)
    for content in backups(state, place.path) if entries else ():
        try:
            before = (content or b"").decode()
            had_ours = settings.removed(before, place) != before
            if not had_ours and settings.added(before, place, entries) == text:
                return Change(path=place.path, before=text.encode(), after=content)
        except (CannotInstall, UnicodeDecodeError):  # it was not a settings file then
            continue
    return change_of(place.path, text, without)


def change_of(path: str, before: str | None, after: str | None) -> Change:
    """Return a change of texts. Raises CannotInstall for a text that cannot be encoded."""
    try:
        old, new = (text if text is None else text.encode() for text in (before, after))
    except UnicodeEncodeError:
        message = "what would be written is not UTF-8"
        raise CannotInstall(Mistake(file=path, message=message)) from None
    return Change(path=path, before=old, after=new)


def _entries(settings: Settings, text: str, place: Place) -> list[Entry]:
    """Return our entries as they stand in a text; only those in the form that we write."""
    found: dict[str, Entry] = {}
    for one in settings.registrations(place, read_settings(text, place)):
        timeout = one.handler.get("timeout")
        if one.is_hook and one.event in settings.events and type(timeout) is int:
            entry = Entry(event=one.event, command=one.command, timeout=timeout)
            found.setdefault(one.event, entry)
    return [found[event] for event in settings.events if event in found]
