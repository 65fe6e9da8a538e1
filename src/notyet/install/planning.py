"""What installing and uninstalling would change, file by file."""

from __future__ import annotations

from notyet.config.document import Mistake
from notyet.core.record import replace
from notyet.install.backup import kept
from notyet.install.change import Change
from notyet.install.edit import is_hook
from notyet.install.entry import EVENTS, Entry
from notyet.install.hooks_file import document_of, text_of
from notyet.install.refused import CannotInstall
from notyet.install.registered import registrations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.install.host import Host
    from notyet.install.place import Place


def to_install(host: Host, place: Place, entries: Sequence[Entry]) -> Change:
    """Return the change that registers us in a file. Raises CannotInstall."""
    text = text_of(place)
    change = change_of(place.path, text, host.added(text or "", place, entries))
    return replace(change, is_first=host.removed(text or "", place) == (text or ""))


def to_uninstall(host: Host, place: Place, state: str) -> Change:
    """Return the change that undoes it: to what was there before, or else entry by entry.

    What was there before comes back only if nobody changed anything else since, which is so if
    installing there again would give what is there now. Raises CannotInstall.
    """
    text = text_of(place)
    if text is None:
        return change_of(place.path, None, None)
    without = host.removed(text, place)
    if without == text:
        return change_of(place.path, text, text)
    entries = _entries(host, text, place)
    for content in kept(state, place.path) if entries else ():
        before = _text(content)
        if before is None and content is not None:
            continue
        try:
            had_ours = host.removed(before or "", place) != (before or "")
            if not had_ours and host.added(before or "", place, entries) == text:
                return Change(path=place.path, before=text.encode(), after=content)
        except CannotInstall:  # it was no settings file then
            continue
    return change_of(place.path, text, without)


def change_of(path: str, before: str | None, after: str | None) -> Change:
    """Return a change of texts. Raises CannotInstall for a text that cannot be written."""
    try:
        old, new = (text if text is None else text.encode() for text in (before, after))
    except UnicodeEncodeError:
        message = "what would be written is not UTF-8"
        raise CannotInstall(Mistake(file=path, message=message)) from None
    return Change(path=path, before=old, after=new)


def _text(content: bytes | None) -> str | None:
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        return None


def _entries(host: Host, text: str, place: Place) -> list[Entry]:
    """Return our entries as they stand in a text; none where they are not as we write them."""
    found: dict[str, Entry] = {}
    for one in registrations(host.NAME, place, document_of(text, place)):
        timeout = one.handler.get("timeout")
        if is_hook(one) and one.event in EVENTS and type(timeout) is int:
            entry = Entry(event=one.event, command=one.command, timeout=timeout)
            found.setdefault(one.event, entry)
    return [found[event] for event in EVENTS if event in found]
