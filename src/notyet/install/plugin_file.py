"""Plugins: files of code that we write for hosts whose hooks are no commands.

`hosts/NAME.js` or `hosts/NAME.ts` is the code. A file that `install` writes has a first line with
a checksum of the rest, and our entries as JSON, one event a line:

    const HOOKS = {
      "Stop": {"command": "notyet hook ...", "timeout": 1800}
    }

We replace and remove a file only if its checksum fits: what a person edited or wrote is kept.
"""

from __future__ import annotations

import json
import os
import re
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from notyet.config.document import Document
from notyet.install.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.config.document import Path, Position
    from notyet.install.settings import Entry, SettingsFile

_FIRST = "// notyet plugin {0}: notyet replaces and removes this file only while it is not edited\n"
_MARK = re.compile(_FIRST.format("([0-9a-f]{16})"))
_HOOKS = re.compile(r"^const HOOKS\b.* = (?=\{)", re.MULTILINE)


def read_plugin(text: str) -> Document:
    """Return our entries in a plugin, as a settings file would have them; others have none."""
    found = _HOOKS.search(text)
    if not text.startswith("// notyet plugin ") or found is None:
        return Document(value={})
    try:
        hooks, _ = json.JSONDecoder().raw_decode(text, found.end())
    except ValueError:
        hooks = {}
    positions: dict[Path, Position] = {}
    for event in hooks:
        at = text.index(json.dumps(event), found.end())
        line = text.count("\n", 0, at) + 1
        positions["hooks", event] = (line, at - text.rfind("\n", 0, at))
    return Document(
        value={"hooks": {event: [handler] for event, handler in hooks.items()}},
        positions=positions,
    )


class PluginFile(Settings):
    """The plugin of a host. It is ours as a whole, so it is written and removed as a whole."""

    def text_with(self, text: str, file: SettingsFile, entries: Sequence[Entry]) -> str:
        """Return the plugin with these entries. Raises CannotInstall if it is not ours to write."""
        if text.strip():
            self._check(text, file, "move it away, and run this again")
        name = self.name + os.path.splitext(file.path)[1]
        code = files("notyet.hosts").joinpath(name).read_text("utf-8")
        lines = [
            f"  {json.dumps(entry.event)}: {json.dumps(entry.handler(self.host))}"
            for entry in entries
        ]
        start, end = code.split("= {}\n", 1)
        body = start + "= {\n" + ",\n".join(lines) + "\n}\n" + end
        return _FIRST.format(_digest(body)) + body

    def text_without(self, text: str, file: SettingsFile) -> str:
        """Return nothing for a plugin of ours. Raises CannotInstall if it was edited."""
        if not self.registrations(file, read_plugin(text)):
            return text
        self._check(text, file, "remove it yourself")
        return ""

    def _check(self, text: str, file: SettingsFile, hint: str) -> None:
        mark = _MARK.match(text)
        if mark is None:
            raise file.refusal("it was not written by notyet, so it is kept", hint=hint)
        if mark[1] != _digest(text[mark.end() :]):
            raise file.refusal("it was edited since notyet wrote it, so it is kept", hint=hint)


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
