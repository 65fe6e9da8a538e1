"""Reads YAML with positions; PyYAML is needed for it, and loaded only here."""

from __future__ import annotations

from notyet.config.document import TOO_DEEP, BadSyntax, Document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.config.document import Place

NO_PYYAML = "reading {file} needs PyYAML; install it with: pip install PyYAML"


def read(text: str, file: str = "YAML") -> Document:
    """Return what a YAML text says, and where. Raises BadSyntax."""
    try:
        import yaml
    except ImportError:
        raise BadSyntax(NO_PYYAML.format(file=file)) from None
    from notyet.config.yaml_nodes import NodeReader, compose

    try:
        node = compose(text)
    except yaml.MarkedYAMLError as error:
        raise _syntax(error) from None
    except yaml.reader.ReaderError as error:
        raise BadSyntax(f"this is not YAML: {error.reason}", *_place_of(text, error)) from None
    except RecursionError:
        raise BadSyntax(TOO_DEEP) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # PyYAML stumbles over a few texts, such as characters beyond the last one.
        raise BadSyntax(f"this is not YAML: {error}") from None
    return NodeReader().document(node)


def _syntax(error: Any) -> BadSyntax:
    mark = error.problem_mark or error.context_mark
    message = ", ".join(part for part in (error.context, error.problem) if part)
    line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    hint = "indent with spaces" if "\\t" in message else ""
    return BadSyntax(f"this is not YAML: {message}", line, column, hint)


def _place_of(text: str, error: Any) -> Place:
    before = text[: error.position]
    return before.count("\n") + 1, len(before) - before.rfind("\n")
