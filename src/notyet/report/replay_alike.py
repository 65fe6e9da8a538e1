"""Whether a recorded stop fails as those before it did, as far as that is known (B6)."""

from __future__ import annotations

from notyet.core.record import Record

UNKNOWN_TREE = "?"  # stands for files that looked somehow


class Alike(Record, kw_only=True):
    """What the stops before this one, in its turn, failed alike with (B6)."""

    key: str = ""
    repeats: int = 0  # where it is not known: at most
    is_known: bool = True


def sameness(alike: Alike, key: str, *, guessed: bool) -> tuple[bool, ...]:
    """Tell whether a stop fails as those before it did; both where nobody knows."""
    if alike.is_known and not alike.key:
        return (False,)
    if guessed or not alike.is_known:
        return (True, False)
    words, tree = _parts(key)
    words_before, tree_before = _parts(alike.key)
    if words != words_before:
        return (False,)
    if UNKNOWN_TREE in {tree, tree_before}:
        return (True, False)
    return (tree == tree_before,)


def next_alike(before: Alike, keys: set[str]) -> Alike:
    """Return what the next stop of the turn is compared with."""
    if len(keys) > 1:
        return Alike(repeats=before.repeats + 1, is_known=False)
    (key,) = keys
    if not key:
        return Alike()
    same = sameness(before, key, guessed=False)
    if len(same) > 1:  # the same words, perhaps of the same files
        return Alike(key=key, repeats=before.repeats + 1, is_known=before.is_known)
    return Alike(key=key, repeats=before.repeats + 1 if same[0] else 1)


def tree_of(repeat_key: str) -> str:
    """Return the fingerprint of the files in what stays equal while nothing moves."""
    return _parts(repeat_key)[1]


def _parts(repeat_key: str) -> tuple[str, str]:
    words, size, tree = [*repeat_key.split("-", 2), "", ""][:3]
    return f"{words}-{size}", tree
