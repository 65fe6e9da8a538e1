"""Names of files as people write them down, and paste them."""

from __future__ import annotations

from notyet import system
from notyet.config.files import CONCLAUDE, FOLDERS, NAME


def is_config_name(path: str) -> bool:
    """Tell whether a path can only be meant as a file of configuration, not as a folder."""
    folder, name = system.path.split(path)
    return name in (NAME, *CONCLAUDE) or system.path.basename(folder) in FOLDERS


def quoted(word: str) -> str:
    """Return a word as it can be pasted into a shell."""
    if all(sign.isalnum() or sign in "-_./:@[]" for sign in word) and word.isascii():
        return word if "[" not in word else f"'{word}'"
    return "'" + word.replace("'", "'\\''") + "'"
