"""JSON without the `json` package, whose import alone doubles the cost of a stop.

Its C parts, `_json`, are the same ones the package uses. The package itself is loaded only to
say what is wrong with a text.
"""

from __future__ import annotations

try:
    from _json import encode_basestring_ascii, make_encoder, make_scanner
except ImportError:  # an unusual interpreter
    make_encoder = make_scanner = None  # type: ignore[assignment, misc]  # asked for below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BLANK = " \t\n\r"


class _Settings:
    """What `_json.make_scanner` wants to know; the package's own defaults, but for one."""

    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self.memo: dict[str, str] = {}  # asked for by name

    @staticmethod
    def parse_constant(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")


# Control characters inside texts are accepted: some hosts write them.
_LENIENT, _STRICT = _Settings(strict=False), _Settings(strict=True)


def loads(text: str) -> Any:
    """Read one JSON value. Raises ValueError, also for what is nested too deeply."""
    return _read(text, _LENIENT)


def loads_strictly(text: str) -> Any:
    """Do the same as hosts do it, which refuse a line break inside a text."""
    return _read(text, _STRICT)


def _read(text: str, settings: Any) -> Any:
    try:
        start = len(text) - len(text.lstrip(_BLANK))
        value, end = make_scanner(settings)(text, start)
        if not text[end:].strip(_BLANK):
            return value
    except (StopIteration, SystemError, ValueError, TypeError, AttributeError):
        pass  # an unusual interpreter, or not JSON: the package finds out, and has better words
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    import json

    try:
        return json.loads(text, strict=settings.strict, parse_constant=settings.parse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def dumps(value: Any) -> str:
    """Write a value of plain types as JSON in ASCII, on one line. Raises ValueError."""
    try:
        return "".join(_encoder()(value, 0))
    except RecursionError:
        raise ValueError("it is nested too deeply, or holds itself") from None
    except TypeError as error:
        raise ValueError(str(error)) from None


def _encoder() -> Any:
    try:
        return make_encoder(
            None, _refuse, encode_basestring_ascii, None, ": ", ", ", False, False, False
        )
    except (NameError, TypeError):  # an unusual interpreter
        import json

        return json.JSONEncoder(allow_nan=False, default=_refuse).iterencode


def _refuse(value: object) -> Any:
    raise ValueError(f"a {type(value).__name__} has no JSON")
