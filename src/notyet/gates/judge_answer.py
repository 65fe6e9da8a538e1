"""Read the answer of a judge, whatever its program prints around it.

An answer is a JSON object with the id of its call. The id is random, and the prompt does not
contain it in a valid answer, so neither a diff that imitates an answer nor a program that echoes
its prompt can answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from notyet.core.text import clean, first_line, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_REASON = 2 * 1024  # bytes
_LONGEST_ANSWER = 16 * 1024  # characters
_MOST_IDS = 32  # occurrences of the id in one text that are looked at, from its end
_MOST_BRACES = 64  # before each of them
_MOST_VALUES = 100_000  # in what a program prints
_MOST_TOKENS = 10**12
# Claude Code counts cached tokens apart, Codex as input.
_COUNTED = (
    *("input_tokens", "output_tokens"),
    *("cache_creation_input_tokens", "cache_read_input_tokens"),
)


class UnclearAnswer(Exception):  # noqa: N818  # the program did it, not we
    """There is no valid answer; the text says why."""


@dataclass(frozen=True)
class Judgement:
    """What a judge decided."""

    ok: bool
    reason: str  # cleaned, bounded; empty only if ok


def judgement_in(printed: str, call_id: str) -> Judgement:
    """Return the last answer with this id. Raises UnclearAnswer if it is missing or not valid."""
    answers = _answers(printed, call_id)
    if not answers:
        said = first_line(clean(printed)) or "nothing"
        raise UnclearAnswer(f"it printed no answer with the id of this call, but: {said}")
    if any(not isinstance(answer.get("ok"), bool) for answer in answers):
        raise UnclearAnswer('`ok` in its answer must be true or false, e.g. {"ok": false}')
    if len({answer["ok"] for answer in answers}) > 1:
        raise UnclearAnswer("it gave two answers that contradict each other")
    last = answers[-1]
    given = last.get("reason")
    reason = shortened(clean(given).strip(), _LONGEST_REASON) if isinstance(given, str) else ""
    if not last["ok"] and not reason:
        raise UnclearAnswer("it said no and gave no reason")
    return Judgement(last["ok"], reason)


def tokens_in(printed: str) -> int:
    """Return how many tokens the program says it used; 0 if it does not say."""
    usage: dict[str, Any] = {}
    for value in _values(printed):
        for entry in value if isinstance(value, list) else [value]:
            if isinstance(entry, dict) and isinstance(entry.get("usage"), dict):
                usage = entry["usage"]  # the last one is about all
    if "total_tokens" in usage:
        return _whole(usage["total_tokens"])
    return sum(_whole(usage.get(name)) for name in _COUNTED)


def _whole(value: object) -> int:
    """Return a plausible count; 0 for anything else."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS:
        return value
    return 0


def _answers(printed: str, call_id: str) -> list[dict[str, Any]]:
    """Return all objects with the id: in the text itself, or in the texts of an envelope."""
    answers = _objects_in(printed, call_id)
    for value in _values(printed):
        for inside in _inside(value):
            if isinstance(inside, str) and call_id in inside:
                answers += _objects_in(inside, call_id)
            elif isinstance(inside, dict) and inside.get("id") == call_id:
                answers.append(inside)
    return answers


def _objects_in(text: str, call_id: str) -> list[dict[str, Any]]:
    """Return the objects with the id that stand in a text, in their order."""

    def of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(pairs)
        # Of two values for one key, JSON does not say which counts.
        return table if len(table) == len(pairs) else table | {"ok": None}

    decoder = json.JSONDecoder(object_pairs_hook=of_pairs)
    found: dict[int, dict[str, Any]] = {}
    at = len(text)
    for _ in range(_MOST_IDS):
        at = text.rfind(call_id, 0, at)
        if at < 0:
            break
        brace = at
        for _ in range(_MOST_BRACES):
            brace = text.rfind("{", max(0, at - _LONGEST_ANSWER), brace)
            if brace < 0:
                break
            try:
                value, _ = decoder.raw_decode(text[brace : brace + 2 * _LONGEST_ANSWER])
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict) and value.get("id") == call_id:
                found[brace] = value
                break
    return [found[brace] for brace in sorted(found)]


def _values(printed: str) -> Iterator[Any]:
    """Yield the JSON that a program printed: one value, or one in each line."""
    whole, is_json = _parsed(printed)
    if is_json:
        yield whole
        return
    for line in printed.split("\n"):
        if line.lstrip()[:1] in ("{", "["):
            value, is_json = _parsed(line)
            if is_json:
                yield value


def _parsed(text: str) -> tuple[Any, bool]:
    try:
        return json.loads(text), True
    except (ValueError, RecursionError):
        return None, False


def _inside(value: Any) -> Iterator[Any]:
    """Yield a value and all that is in it, in the order of the text."""
    todo = [value]
    for _ in range(_MOST_VALUES):
        if not todo:
            return
        value = todo.pop()
        yield value
        if isinstance(value, dict):
            todo += reversed(value.values())
        elif isinstance(value, list):
            todo += reversed(value)
