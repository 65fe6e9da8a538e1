"""The last message of an agent, from a transcript of any size: it is read from its end."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import Amount, Curve, Effort, Point, Result, interleaved
from bench.progress import say
from notyet.hosts.transcript import last_message

if TYPE_CHECKING:
    from collections.abc import Callable

MEGABYTE = 1_000_000
SIZES = (1, 10, 100, 1_000, 2_000)  # MB
DISTANCES = (0, 1, 4, 16, 60)  # MB from the answer to the end; no more than 64 MiB are read
LONG_LINE = 50  # MB
WORDS = "Done."


def measure(effort: Effort) -> list[Result]:
    """Read the last message from files that differ in size, and in how far back it is."""
    with tempfile.TemporaryDirectory(prefix="notyet-bench-") as folder:
        return [
            _by_size(Path(folder), effort),
            _by_distance(Path(folder), effort),
            _without_answer(Path(folder), effort),
            _long_line(Path(folder), effort),
        ]


def _by_size(folder: Path, effort: Effort) -> Curve:
    """Grow a file before its answer."""
    readers = {}
    for size in effort.sizes(SIZES):
        say(f"the last message of a transcript of {size:,} MB")
        file = folder / f"size{size}"
        _write(file, empty=size - 1, filled=1, answer=True)
        readers[size] = _reader(file, WORDS)
    points = _points(readers, effort.rounds(60), 20)
    return Curve("the last message, by the size of the transcript", "MB", points, "flat")


def _by_distance(folder: Path, effort: Effort) -> Curve:
    """Let more and more follow the answer."""
    readers = {}
    for distance in effort.sizes(DISTANCES):
        file = folder / f"back{distance}"
        _write(file, empty=0, filled=1, answer=True)
        with file.open("ab") as end:
            end.write(_lines(distance))
        readers[distance] = _reader(file, WORDS)
    points = _points(readers, effort.rounds(20), 1)
    return Curve("the last message, by how far back it is", "MB", points, "linear")


def _without_answer(folder: Path, effort: Effort) -> Curve:
    """Grow a file in which nobody has answered: the search gives up after 64 MiB."""
    readers = {}
    for size in effort.sizes(SIZES):
        file = folder / f"none{size}"
        _write(file, empty=max(0, size - 70), filled=min(size, 70), answer=False)
        readers[size] = _reader(file, None)
    points = _points(readers, effort.rounds(15), 1)
    note = "from 64 MB on it is the same: no more is read"
    what = "no message at all, by the size of the transcript"
    return Curve(what, "MB", points, "linear", note=note)


def _long_line(folder: Path, effort: Effort) -> Amount:
    """End a file with one line that is longer than any that is read."""
    file = folder / "long"
    _write(file, empty=0, filled=1, answer=True)
    with file.open("ab") as end:
        message = {"role": "assistant", "content": "x" * (LONG_LINE * MEGABYTE)}
        end.write(json.dumps({"type": "assistant", "message": message}).encode() + b"\n")
    figures = interleaved(effort.rounds(20), 1, ours=_reader(file, WORDS))
    what = f"the last message before a line of {LONG_LINE} MB"
    return Amount(what, figures["ours"].over(1_000), "ms")


def _points(readers: dict[int, Callable[[], None]], rounds: int, times: int) -> tuple[Point, ...]:
    subjects = {f"at{size}": reader for size, reader in readers.items()}
    figures = interleaved(rounds, times, **subjects)
    return tuple(Point(max(size, 0.1), figures[f"at{size}"]) for size in readers)


def _reader(file: Path, words: str | None) -> Callable[[], None]:
    def read() -> None:
        assert last_message(str(file)) == words, "what is not found is quick"

    return read


def _write(file: Path, *, empty: int, filled: int, answer: bool) -> None:
    """Write a file of so many megabytes of nothing, so many of lines, and an answer."""
    with file.open("wb") as out:
        if empty:
            out.truncate(empty * MEGABYTE)  # takes no room on the disk
            out.seek(0, 2)
            out.write(b"\n")
        out.write(_lines(filled))
        if answer:
            content = [{"type": "text", "text": WORDS}]
            message = {"role": "assistant", "content": content}
            out.write(json.dumps({"type": "assistant", "message": message}).encode() + b"\n")


def _lines(megabytes: int) -> bytes:
    """Return lines of which none is an answer."""
    result = {"type": "tool_result", "content": "x" * 900}
    line = json.dumps({"type": "user", "message": {"role": "user", "content": [result]}}) + "\n"
    return line.encode() * (megabytes * MEGABYTE // len(line))
