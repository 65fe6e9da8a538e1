"""`notyet schema`: the JSON Schema of the files that notyet reads, for editors and checkers."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from notyet.cli.person import refuse
from notyet.config.json_schema import pages
from notyet.config.schema import FORMATS
from notyet.core.text import visible
from notyet.install.change import replace_file

if TYPE_CHECKING:
    import argparse

SUMMARY = "print the JSON Schema of notyet.toml, or write it for editors"
EXAMPLES = (
    ("notyet schema", "all keys of notyet.toml, with what they do"),
    ("notyet schema conclaude", "of a .conclaude.yaml, as notyet reads it"),
    ("notyet schema --write", "into .notyet/ here, where the first line of notyet.toml points"),
)
_FOLDER = ".notyet"
_NAMES = tuple(name for name in FORMATS if name != "hooks-toml")  # which shares a page


def _file(name: str) -> str:
    page = next(form.page for known, form in FORMATS.items() if known == name)
    return f"{page}.schema.json"


REFERENCE = f"./{_FOLDER}/{_file('notyet')}"  # what `#:schema` in a notyet.toml names


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "format",
        nargs="?",
        default="notyet",
        choices=_NAMES,
        metavar="FORMAT",
        help=f"{', '.join(_NAMES[:-1])} or {_NAMES[-1]} (default: notyet)",
    )
    parser.add_argument(
        "--write", action="store_true", help=f"write it to {_FOLDER}/ here, which git ignores"
    )


def run(args: argparse.Namespace) -> int:
    """Print or write one schema."""
    if not args.write:
        print(text_of(args.format), end="")
        return 0
    try:
        path = write_schema(os.getcwd(), args.format)
    except OSError as error:
        if error.filename is None:  # of a folder that is gone
            raise
        where = visible(os.fsdecode(error.filename))
        return refuse("schema", f"{where}: {error.strerror}; nothing was written")
    print(f"wrote {visible(path)}")
    if args.format == "notyet":
        print(f"for editors, the first line of a notyet.toml is: #:schema {REFERENCE}")
    return 0


def text_of(name: str) -> str:
    """Return the text of a schema."""
    page = next(form.page for known, form in FORMATS.items() if known == name)
    return json.dumps(pages()[page], indent=2, ensure_ascii=False) + "\n"


def write_schema(folder: str, name: str = "notyet") -> str:
    """Write a schema for the editors of one project; return its path. Raises OSError.

    Any clone can make it, so git ignores it.
    """
    place = os.path.join(folder, _FOLDER)
    if os.path.islink(place):  # it may lead anywhere
        raise FileExistsError(17, "it is a link, and links are not followed", place)
    os.makedirs(place, exist_ok=True)
    path = os.path.join(place, _file(name))
    replace_file(path, text_of(name).encode())
    ignore = os.path.join(place, ".gitignore")
    if not os.path.lexists(ignore):
        replace_file(ignore, b"*\n")
    return path
