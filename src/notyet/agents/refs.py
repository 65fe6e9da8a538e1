"""What the `ref` of a session with a program may hold, and how it is read again.

A ref may come from another version of notyet: what is odd in it counts as unknown, so that
nothing is found out only when an agent has run. It is kept in the ledger, so no secret is in it.
"""

from __future__ import annotations

from notyet.agents.reading import FIGURES, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NOBODY = (0, "", "")  # no process: its number, when it started, and its mark
_TELLTALES = ("key", "token", "secret", "pass", "credential", "auth", "bearer", "_pat", "pat=")
_SHAPES = ("sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "akia", "eyj")


def may_hold_secrets(args: Iterable[str]) -> bool:
    """Tell whether an argument names something that should not be written down."""
    return any(word in arg.casefold() for arg in args for word in (*_TELLTALES, *_SHAPES))


def text(ref: Mapping[str, object], name: str) -> str:
    """Return a text that has to be there. Raises ValueError."""
    value = ref[name]
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} is text, not {value!r}")
    return value


def args(ref: Mapping[str, object]) -> list[str] | None:
    """Return the arguments; None when they were not kept."""
    found = ref.get("args", [])
    return [str(arg) for arg in found] if isinstance(found, list) else None


def totals(ref: Mapping[str, object]) -> dict[str, int] | None:
    """Return what the conversation had spent; None when that is not known."""
    found = ref.get("totals")
    if not isinstance(found, dict) or not all(map(_is_count, found.values())):
        return None
    return {str(name): value for name, value in found.items() if name in FIGURES}


def orphan(ref: Mapping[str, object]) -> tuple[int, str, str]:
    """Return the process that may have been left behind."""
    pid, started, mark = ref.get("pid"), ref.get("started"), ref.get("mark", "")
    if not _is_count(pid) or not isinstance(started, str) or not isinstance(mark, str):
        return NOBODY
    return whole(pid), started, mark


def _is_count(value: object) -> bool:
    return type(value) is int and whole(value) == value
