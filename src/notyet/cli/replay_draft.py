"""The file of `notyet replay --config`: read and compared, and run only if it is trusted."""

from __future__ import annotations

from notyet.config.compile import compile_text
from notyet.config.drafts import Draft
from notyet.config.files import NATIVE, known_as
from notyet.config.read_file import read_file
from notyet.config.store import read_record, state_folder
from notyet.core.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Unusable(Exception):  # noqa: N818  # said to whoever asked, and never raised further
    """What was asked for cannot be found out; says why."""


def draft_of(path: str, environ: Mapping[str, str], *, is_run: bool) -> Draft:
    """Read a file that somebody has in mind. Raises Unusable: for mistakes, each in a line."""
    text, fault = read_file(path)
    if fault is not None or text is None:
        raise Unusable(visible(str(fault)))
    name = known_as(path)
    mistakes = compile_text(text, name, NATIVE).mistakes
    if mistakes:
        lines = "\n".join(f"  {visible(str(mistake))}" for mistake in mistakes)
        raise Unusable(f"{visible(path)} has mistakes, so it cannot be in force:\n{lines}")
    if is_run:
        known = read_record(state_folder(environ), name)
        if known is None or not known.at or known.content != text:
            raise Unusable(
                f"{visible(path)} is not trusted, so nothing of it is run; leave out --run, or "
                f"run: notyet trust {visible(path)}"
            )
    return Draft(text=text, path=name)
