"""Hermes' settings, which are YAML: our entry stands in a block of its own, between two marks.

A file that has `hooks` of others is not changed; its user is told what to add. Hermes itself may
have rewritten the file without our marks: then `hooks` with our entries alone is ours as a whole.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from notyet.install import settings
from notyet.install.settings import CannotInstall, read_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.install.settings import Entry, Registration, SettingsFile

_BEGIN = "# notyet: begin, written by `notyet install hermes`\n"
_END = "# notyet: end"
# The key, and the indented lines below it that are not comments.
_HOOKS = re.compile(r"^hooks:.*\n?(?:[ \t]+[^#\s].*\n?)*", re.MULTILINE)
CONSENT = "answer Hermes' question at its next start, or start it with --accept-hooks"


class Settings(settings.Settings):
    """The settings of Hermes."""

    def text_with(self, text: str, file: SettingsFile, entries: Sequence[Entry]) -> str:
        """Return a file's text with our block at its end. Raises CannotInstall."""
        registered = {(one.event, one.command, one.given_timeout) for one in self._ours(text, file)}
        if registered == {(one.event, one.command, one.timeout) for one in entries}:
            return text
        rest = self.text_without(text, file)
        before = read_settings(rest, file).value
        body = "hooks:\n" + "".join(map(_lines, entries))
        if "hooks" in before:
            where = read_settings(rest, file).locate(("hooks",))
            message = "`hooks` is there already, and notyet does not change it"
            raise file.refusal(message, where, self._hint(before["hooks"], entries))
        block = f"{_BEGIN}{body}{_END}\n"
        ends_line = not rest or rest.endswith("\n")
        new = rest + block if ends_line else f"{rest}\n{block[:-1]}"
        meant = {one.event: [one.handler(self.host)] for one in entries}
        try:
            is_meant = read_settings(new, file).value == {**before, "hooks": meant}
        except CannotInstall:
            is_meant = False
        if not is_meant:
            hint = f"add `hooks:` yourself, and below it, indented: {self._line(entries)}"
            raise file.refusal("nothing can be added at its end", hint=hint)
        return new

    def text_without(self, text: str, file: SettingsFile) -> str:
        """Return a file's text without our block. Raises CannotInstall."""
        start = text.find(_BEGIN)
        end = text.find(_END, start) + len(_END)
        rest = text
        if 0 <= start < end - len(_END):
            inside = self._ours(text[start:end], file)
            lines = text[start:end].count("\n")
            if lines == 2 + 3 * len(inside):  # `hooks:`, and of each its event and two lines
                is_open = text[end : end + 1] != "\n"  # the file ended within a line
                rest = text[: max(0, start - is_open)] + text[end + (not is_open) :]
        for one in self._ours(rest, file):
            without = self._without_hooks(rest, file)
            if without is not None:
                return without
            raise file.refusal(
                "notyet's entry stands among others", (one.line, one.column), "remove it yourself"
            )
        return rest

    def _without_hooks(self, text: str, file: SettingsFile) -> str | None:
        """Return the text without the lines of `hooks`; None if they hold anything else."""
        before = read_settings(text, file).value
        lists = [items if isinstance(items, list) else [] for items in before["hooks"].values()]
        new = _HOOKS.sub("", text.replace(_BEGIN, "").replace(f"{_END}\n", ""), count=1)
        try:
            now = read_settings(new, file).value
        except CannotInstall:
            return None
        is_ours = all(lists) and sum(map(len, lists)) == len(self._ours(text, file))
        return new if is_ours and {**now, "hooks": before["hooks"]} == before != now else None

    def _hint(self, hooks: object, entries: Sequence[Entry]) -> str:
        """Return what a person does with `hooks` that are there already."""
        (entry,) = entries
        line = self._line(entries)
        if not isinstance(hooks, dict) or not hooks:
            return f"replace it by: hooks: {{{line}}}"
        if entry.event not in hooks:
            return f"add this below it, indented: {line}"
        if not hooks[entry.event] or not isinstance(hooks[entry.event], list):
            return f"replace its `{entry.event}` by: {line}"
        item = json.dumps(entry.handler(self.host))
        return f"add this item to the list of its `{entry.event}`: - {item}"

    def _line(self, entries: Sequence[Entry]) -> str:
        """Return what a person adds, as one line of YAML."""
        (entry,) = entries
        return f"{entry.event}: {json.dumps([entry.handler(self.host)])}"

    def _ours(self, text: str, file: SettingsFile) -> list[Registration]:
        return [one for one in self.registrations(file, read_settings(text, file)) if one.is_hook]

    def advice(self, file: SettingsFile, cwd: str) -> list[str]:
        """Return what a person still has to do after an installation."""
        return [*super().advice(file, cwd), f"{CONSENT}; until then Hermes skips the hook"]


def _lines(entry: Entry) -> str:
    command = json.dumps(entry.command)  # a string of JSON is one of YAML
    return f"  {entry.event}:\n    - command: {command}\n      timeout: {entry.timeout}\n"
