"""`--format` of `check` and `validate`: results for people, programs, GitHub and JUnit readers."""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from notyet.cli.person import refuse
from notyet.cli.streams import readable
from notyet.core.remote import is_remote
from notyet.core.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Literal, TextIO

    Status = Literal["passed", "failed", "error", "warning", "skipped"]
    Printers = Mapping[str, Callable[[TextIO], None]]

_STDOUT = "-"
FORMATS = ("text", "json", "github", "junit")
_LEVELS = {"failed": "error", "error": "error", "warning": "warning"}  # of annotations
_ELEMENTS = {"failed": "failure", "error": "error", "warning": "skipped", "skipped": "skipped"}
_MAX_LINES = 40  # of an annotation's details
_MAX_LINE = 400  # characters
_COLOUR = re.compile("\x1b\\[[0-9;]*m")
_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Output:
    """A format, and the file it is written to; no file: stdout."""

    format: str
    path: str = ""

    @classmethod
    def parse(cls, text: str) -> Output:
        """Parse `FORMAT` or `FORMAT=FILE`. Raises ArgumentTypeError."""
        name, equals, path = text.partition("=")
        if name not in FORMATS:
            raise argparse.ArgumentTypeError(f"one of {', '.join(FORMATS)}, not {name!r}")
        if equals and not path:
            raise argparse.ArgumentTypeError(f"a file name must follow {text!r}")
        return cls(name, "" if path == _STDOUT else path)


@dataclass(frozen=True, kw_only=True)
class Case:
    """The result of one gate, or one mistake of a file."""

    name: str
    status: Status
    message: str = ""
    details: str = ""
    seconds: float = 0.0
    file: str = ""
    line: int = 0
    column: int = 0


def add_format_options(parser: argparse.ArgumentParser) -> None:
    """Add `--format` and `--json`."""
    parser.add_argument(
        "--format",
        action="append",
        dest="outputs",
        type=Output.parse,
        metavar="FORMAT[=FILE]",
        help="text, json, github (annotations) or junit (XML); with =FILE into a file",
    )
    parser.add_argument(
        "--json",
        action="append_const",
        dest="outputs",
        const=Output("json"),
        help="for programs: --format json",
    )


def chosen(args: argparse.Namespace) -> list[Output]:
    """Return the outputs; text goes to stdout if nothing else does. Raises ValueError."""
    outputs = list(dict.fromkeys(args.outputs or ()))
    on_stdout = [output.format for output in outputs if not output.path]
    if len(on_stdout) > 1:
        said = " and ".join(on_stdout)
        raise ValueError(f"{said} cannot both go to stdout; write --format {on_stdout[-1]}=FILE")
    return outputs if on_stdout else [Output("text"), *outputs]


def write_all(command: str, outputs: Sequence[Output], printers: Printers) -> bool:
    """Write each output that has a printer; return False if a file cannot be written."""
    is_ok = True
    for output in outputs:
        if output.format not in printers:
            continue
        if not output.path:
            printers[output.format](sys.stdout)
            continue
        text = io.StringIO()
        printers[output.format](text)
        try:
            with open(output.path, "w", encoding="utf-8", errors="replace") as file:
                file.write(_COLOUR.sub("", text.getvalue()))  # which FORCE_COLOR asks for
        except OSError as error:
            refuse(command, f"{readable(output.path)}: {error.strerror}")
            is_ok = False
    return is_ok


def ci_printers(command: str, cases: Sequence[Case], words: str) -> Printers:
    """Return what prints the results for GitHub and as JUnit XML; `words` sum them up."""
    title = f"notyet {command}"
    return {
        "github": lambda stream: print(github(title, cases, words), file=stream),
        "junit": lambda stream: print(junit(title, cases, words), file=stream),
    }


def refused(command: str, outputs: Sequence[Output], why: str, code: int) -> int:
    """Refuse a command, also in the formats for CI; return its exit code."""
    case = Case(name=f"notyet {command}", status="error", message=why)
    write_all(command, outputs, ci_printers(command, [case], why))
    return refuse(command, why, code)


def relative(path: str, cwd: str) -> str:
    """Return a path relative to a folder, if it is below it."""
    return path.removeprefix(os.path.realpath(cwd).rstrip("/") + "/")


def github(title: str, cases: Sequence[Case], words: str) -> str:
    """Return workflow commands that annotate files, and a line that sums up."""
    lines = []
    for case in cases:
        if case.status not in _LEVELS:
            continue
        values = {
            "file": case.file and _in_repository(case.file),
            "line": case.line or "",
            "col": case.column or "",
            "title": title,
        }
        names = ",".join(f"{name}={_value(str(v))}" for name, v in values.items() if v)
        details = clean(case.details).rstrip("\n").split("\n")[-_MAX_LINES:]
        text = "\n".join([case.message, *(line[:_MAX_LINE] for line in details)]).rstrip()
        lines.append(f"::{_LEVELS[case.status]} {names}::{_data(clean(text))}")
    return str(readable("\n".join([*lines, words])))


def _data(text: str) -> str:
    """Escape a message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _value(text: str) -> str:
    """Escape a property of a workflow command."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _in_repository(path: str) -> str:
    """Return a path as GitHub knows it, relative to the checkout; empty on another machine."""
    if is_remote(path):
        return ""
    top = os.environ.get("GITHUB_WORKSPACE") or os.getcwd()
    full = os.path.abspath(path)
    below = os.path.relpath(full, os.path.realpath(top))
    return full if below.split(os.sep)[0] == os.pardir else below


def junit(title: str, cases: Sequence[Case], words: str) -> str:
    """Return JUnit XML in ASCII, which is right in whatever encoding it is written."""
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.status == "failed" for case in cases)),
        "errors": str(sum(case.status == "error" for case in cases)),
        "skipped": str(sum(_ELEMENTS.get(case.status) == "skipped" for case in cases)),
        "time": f"{sum(case.seconds for case in cases):.3f}",
    }
    root = ET.Element("testsuites", {"name": title, **counts})
    suite = ET.SubElement(root, "testsuite", {"name": title, **counts})
    for case in cases:
        file = {"file": _xml(case.file)} if case.file else {}
        line = {"line": str(case.line)} if case.line else {}
        test = ET.SubElement(
            suite,
            "testcase",
            {
                "name": _xml(case.name),
                "classname": _xml(case.file or title),
                "time": f"{case.seconds:.3f}",
                **file,
                **line,
            },
        )
        if case.status == "passed":
            if case.details:
                ET.SubElement(test, "system-out").text = _xml(case.details)
            continue
        attributes = {"message": _xml(case.message)}
        ET.SubElement(test, _ELEMENTS[case.status], attributes).text = _xml(case.details)
    ET.SubElement(suite, "system-out").text = _xml(words)
    ET.indent(root)
    return str(ET.tostring(root, encoding="us-ascii", xml_declaration=True), "ascii")


def _xml(text: str) -> str:
    """Return a text with only those characters that XML can hold."""
    return _NOT_XML.sub("\ufffd", clean(text))
