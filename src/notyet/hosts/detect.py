"""Which host wrote a payload (G6).

One committed settings file is run by five hosts, so the payload tells, not the file and not the
environment: agents started inside another's terminal inherit its variables. Each host has signs,
of which one must hold. A sign is a list of conditions that all hold:

    key             the payload has this key
    !key            it has not
    key=one|two     its value is one of these texts
    key~one|two     its value contains one of these texts

`signs` has those of all hosts, parsed.
"""

from __future__ import annotations

from notyet.hosts import DEFAULT
from notyet.hosts.signs import SIGNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeAlias

    Sign: TypeAlias = tuple[tuple[str, str, tuple[str, ...]], ...]

UNKNOWN = "unknown"


def detect(payload: Mapping[str, Any]) -> str:
    """Return the name of the host; it may be one whose agents cannot be held, or `UNKNOWN`."""
    for name, signs in SIGNS:
        for sign in signs:
            if fits(payload, sign):
                return name
    return DEFAULT if fits(payload, _DEFAULT_SIGN) else UNKNOWN


def fits(payload: Mapping[str, Any], sign: Sign) -> bool:
    """Return True if all conditions of a sign hold."""
    for key, mark, texts in sign:
        if mark == "!":
            if key in payload:
                return False
        elif key not in payload:
            return False
        elif mark:
            value = payload[key]
            if not isinstance(value, str):
                return False
            if value not in texts if mark == "=" else not any(text in value for text in texts):
                return False
    return True


def parsed(sign: str) -> Sign:
    """Return the conditions of a sign: key, mark and texts."""
    return tuple(_condition(word) for word in sign.split())


def _condition(word: str) -> tuple[str, str, tuple[str, ...]]:
    if word[0] == "!":
        return word[1:], "!", ()
    for mark in "=~":
        key, has_texts, texts = word.partition(mark)
        if has_texts:
            return key, mark, tuple(texts.split("|"))
    return word, "", ()


_DEFAULT_SIGN = parsed("hook_event_name transcript_path")
