"""Which host wrote a payload (G6).

One committed settings file is run by five hosts, so the payload tells, not the file and not the
environment: agents started inside another's terminal inherit its variables. Each host has signs,
of which one must hold. A sign is a list of conditions that all hold:

    key             the payload has this key
    !key            it has not
    key=one|two     its value is one of these texts
    key~one|two     its value contains one of these texts
"""

from __future__ import annotations

from notyet.hosts import DEFAULT
from notyet.hosts.signs import SIGNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

UNKNOWN = "unknown"
_DEFAULT_SIGN = "hook_event_name transcript_path"


def detect(payload: Mapping[str, Any]) -> str:
    """Return the name of the host; it may be one whose agents cannot be held, or `UNKNOWN`."""
    for name, signs in SIGNS:
        if any(fits(payload, sign) for sign in signs):
            return name
    return DEFAULT if fits(payload, _DEFAULT_SIGN) else UNKNOWN


def fits(payload: Mapping[str, Any], sign: str) -> bool:
    """Return True if all conditions of a sign hold."""
    return all(_holds(payload, condition) for condition in sign.split())


def _holds(payload: Mapping[str, Any], condition: str) -> bool:
    if condition[0] == "!":
        return condition[1:] not in payload
    for mark in "=~":
        key, is_about_value, texts = condition.partition(mark)
        if is_about_value:
            value = payload.get(key)
            return isinstance(value, str) and any(
                value == text if mark == "=" else text in value for text in texts.split("|")
            )
    return condition in payload
