"""OpenHands' `hooks.json`, whose events have two forms: `{"hooks": {"Stop": []}}`, which notyet
writes, and `{"stop": []}`. A file that mixes them loses hooks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from notyet.config.document import name_of
from notyet.install import settings
from notyet.install.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from notyet.config.document import Path
    from notyet.install.settings import Entry, SettingsFile

_EVENTS = {
    "pre_tool_use": "PreToolUse",
    "post_tool_use": "PostToolUse",
    "user_prompt_submit": "UserPromptSubmit",
    "session_start": "SessionStart",
    "session_end": "SessionEnd",
    "stop": "Stop",
}


class Settings(settings.Settings):
    """The settings of OpenHands."""

    def check(self, text: str, file: SettingsFile) -> None:
        """Refuse a file with events that OpenHands ignores, or which it does not load."""
        document = read_settings(text, file)
        for path, message in _mixed(document.value):
            wanted = name_of(("hooks", _EVENTS[_snake(path[-1])]))
            hint = f"move its hooks to {wanted}, and those of other events likewise"
            raise file.refusal(message, document.locate(path), hint)

    def text_with(self, text: str, file: SettingsFile, entries: Sequence[Entry]) -> str:
        """Return a file's text with our entries. Raises CannotInstall if they would mix forms."""
        new = super().text_with(text, file, entries)
        self.check(new, file)
        return new


def _mixed(value: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield events that are not run, or keep all others from being run, and why."""
    events = value.get("hooks", value)
    for name in value:
        if "hooks" in value and _snake(name) in _EVENTS:
            path = (name,)
            yield path, f"OpenHands ignores {name_of(path)} beside `hooks`, where notyet's belong"
    for name in events if isinstance(events, dict) else ():
        twin = _EVENTS.get(name, "")
        if twin in events:
            above = ("hooks",) if "hooks" in value else ()
            both = f"{name_of((*above, name))} and {name_of((*above, twin))}"
            yield (*above, name), f"OpenHands does not load a file that has both {both}"


def _snake(name: str | int) -> str:
    """Return an event's name as OpenHands compares it."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", str(name)).lower()
