"""`notyet gates`: what a gate can be, the presets, and the gates that are configured here."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from notyet.cli.person import refuse
from notyet.cli.streams import json_line
from notyet.cli.terminal import Style, table, width, wrapped
from notyet.config.document import did_you_mean
from notyet.config.gate_schema import GATE
from notyet.config.load import NO_LOOK, load
from notyet.core.gate import Command, machine_of
from notyet.core.text import visible
from notyet.gates.kinds import ABOUT_GIT, COMMAND_KEYS, FILES, KINDS, LAST, Kind
from notyet.gates.presets import PRESETS
from notyet.status.overview import agents_of, near, untrusted_gates

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from notyet.cli.terminal import Cell
    from notyet.core.gate import Gate
    from notyet.gates.kinds import Explained
    from notyet.gates.presets import Preset

SUMMARY = "what a gate can be, the presets, and the gates that are configured here"
EXAMPLES = (
    ("notyet gates", "kinds, presets, and what is configured here"),
    ("notyet gates guard", "explain a kind, with lines to paste into notyet.toml"),
    ("notyet gates git:committed", "explain a preset"),
    ("notyet gates tests", "what a gate of this project runs, when, and what follows"),
    ("notyet gates --json", "one JSON object, for programs"),
)
_INDENT = "  "
_LEAST = 24  # columns of a paragraph on the narrowest terminal
_INHERENT = frozenset({"kind", "paths", "hint", "pass_codes", "python", "interpreter"})


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What there is, or what fits a name."""

    kinds: Mapping[str, Explained]
    presets: Mapping[str, Preset]
    gates: list[tuple[Gate, str, bool]]  # with its workspace, and whether it is trusted

    def named(self, name: str) -> _Found:
        """Return what has this name; a gate may be called like a kind or a preset."""
        return _Found(
            kinds={key: kind for key, kind in self.kinds.items() if key == name},
            presets={key: preset for key, preset in self.presets.items() if key == name},
            gates=[one for one in self.gates if one[0].name == name],
        )

    @property
    def names(self) -> list[str]:
        """Every name that can be explained."""
        return [*(one[0].name for one in self.gates), *self.kinds, *self.presets]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    words = "explain this kind, preset or gate of the project"
    parser.add_argument("name", nargs="?", metavar="NAME", help=words)
    parser.add_argument("--json", action="store_true", help="print one JSON object, for programs")


def run(args: argparse.Namespace) -> int:
    """Print the lists, or explain one name; exit 1 if there is no such name."""
    cwd = os.getcwd()
    found = _everything(cwd)
    if args.name is not None:
        known, found = found, found.named(args.name)
        if not found.names:
            hint = did_you_mean(args.name, known.names) or "`notyet gates` lists what there is"
            what = f"there is no kind, preset or gate {args.name!r} here"
            return refuse("gates", visible(f"{what}; {hint}"))
    if args.json:
        print(json_line(_plain(found)))
    elif args.name is None:
        _Lists(cwd).show(found)
    else:
        _Pages(cwd).show(found)
    return 0


def _everything(cwd: str) -> _Found:
    setup = load(cwd, "notyet", os.environ, patience=NO_LOOK)
    gates = [(gate, setup.workspace, True) for gate in setup.gates]
    gates.sort(key=lambda one: (-one[0].priority, one[0].step))
    gates += [(gate, workspace, False) for gate, workspace in untrusted_gates(setup)]
    return _Found(kinds={**COMMAND_KEYS, **KINDS}, presets=PRESETS, gates=gates)


def _keys(name: str) -> Iterator[str]:
    """Yield the keys that belong to a kind: its own, and those that mean nothing without it."""
    if name in GATE.fields:
        yield name
    for part, whole in GATE.needs:
        if whole == name and part not in COMMAND_KEYS:
            yield part


def _doc(key: str) -> str:
    field = GATE.fields[key]
    return f"{field.doc} Default: {field.default}." if field.default else field.doc


def _defaults(kind: Explained) -> dict[str, str]:
    """Return the defaults of a kind that are not those of a command."""
    if not isinstance(kind, Kind):
        return {}
    usual = Kind(summary="", explains="", example="", module="")
    names = ("when", "if_broken")
    return {
        name: getattr(kind, name) for name in names if getattr(kind, name) != getattr(usual, name)
    }


def _runs(gate: Gate) -> str:
    return gate.check.first_line if isinstance(gate.check, Command) else ""


def _own_kind(gate: Gate) -> str:
    """Return the key that explains what a gate does."""
    options: Mapping[str, Any] = gate.check.options if isinstance(gate.check, Command) else {}
    if options.get("kind") in KINDS:
        return str(options["kind"])
    return "python" if "python" in options else "run"


def _when(gate: Gate) -> str:
    if gate.when == "always":
        return "at every stop"
    return f"{', '.join(gate.paths)} changed" if gate.paths else "files changed"


def _if_broken(gate: Gate) -> str:
    return "block" if gate.if_broken == "block" else "NOT CHECKED"


def _options(gate: Gate) -> dict[str, Any]:
    """Return what the file says about a gate beyond what every gate has."""
    if not isinstance(gate.check, Command):
        return {}
    kind = _own_kind(gate)
    options = gate.check.options.items()
    return {key: value for key, value in options if key not in _INHERENT | {kind} and value}


def _more(gate: Gate, workspace: str, *, trusted: bool) -> str:
    """Return what else matters about a gate, in a few words."""
    options = _options(gate)
    place = machine_of(gate, workspace)
    last = [] if gate.priority != LAST else ["last"]
    words = [f"fix: {options['fix']}"] if "fix" in options else []
    words += ["only new failures"] if "new_failures_only" in options else []
    words += ["strict"] if "strict" in options else []
    words += ["observes"] if gate.observe else []
    words += [f"on {place.destination}"] if place else []
    return ", ".join([*words, *last, *([] if trusted else ["not trusted"])])


def _where(gate: Gate, cwd: str) -> str:
    source = gate.source
    if source is None:
        return ""
    return near(f"{source.file}:{source.line}" if source.line else source.file, cwd)


def _plain(found: _Found) -> dict[str, Any]:
    return {
        "kinds": [
            {
                "key": key,
                "summary": kind.summary,
                "explains": kind.explains,
                "keys": list(_keys(key)),
                "defaults": _defaults(kind),
                "example": kind.example,
            }
            for key, kind in found.kinds.items()
        ],
        "presets": [
            {
                "name": name,
                "summary": preset.summary,
                "explains": preset.explains,
                "example": _preset_example(name),
            }
            for name, preset in found.presets.items()
        ],
        "gates": [
            {
                "name": gate.name,
                "kind": _own_kind(gate),
                "runs": gate.check.line if isinstance(gate.check, Command) else "",
                "for": agents_of(gate),
                "when": gate.when,
                "paths": list(gate.paths),
                "if_broken": gate.if_broken,
                "observe": gate.observe,
                "timeout": gate.timeout,
                "options": _options(gate),
                "trusted": trusted,
                "file": gate.source.file if gate.source is not None else "",
                "line": gate.source.line if gate.source is not None else 0,
            }
            for gate, _, trusted in found.gates
        ],
    }


def _preset_example(name: str) -> str:
    title = name.partition(":")[2] or name
    return f'[gates.{title}]\nuses = "{name}"\n'


class _Screen:
    """Prints to standard output, as wide as it is."""

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._style = Style(sys.stdout)

    def title(self, text: str) -> None:
        print(self._style.paint(visible(text), "bold"))

    def paragraph(self, text: str) -> None:
        for line in wrapped(text, max(_LEAST, width() - len(_INDENT))):
            print(f"{_INDENT}{line}")

    def rows(self, head: tuple[str, ...], rows: list[tuple[Cell, ...]], *, heads: bool) -> None:
        lines = table(head, rows, self._style, columns=width() - len(_INDENT), wrap=True)
        for line in lines if heads else lines[1:]:
            print(f"{_INDENT}{line}".rstrip())


class _Lists(_Screen):
    """All kinds, presets and gates, a row for each."""

    def show(self, found: _Found) -> None:
        """Print the three lists."""
        kinds: list[tuple[Cell, ...]] = [(key, one.summary) for key, one in found.kinds.items()]
        presets: list[tuple[Cell, ...]] = [
            (f'"{name}"', one.summary) for name, one in found.presets.items()
        ]
        self.title("What a gate can be:")
        widest = max(len(str(name)) for name, _ in (*kinds, *presets))
        self.rows(("", ""), [(f"{key:<{widest}}", words) for key, words in kinds], heads=False)
        print()
        self.title("Presets, for `uses`:")
        self.rows(("", ""), presets, heads=False)
        print()
        if found.gates:
            self.title("Configured here:")
            self._gates(found)
        else:
            self.title("Configured here: nothing. Write a notyet.toml with: notyet init")
        print()
        print(self._style.paint("Explained with an example by: notyet gates NAME", "dim"))

    def _gates(self, found: _Found) -> None:
        columns: dict[str, list[Cell]] = {
            "gate": [gate.name for gate, _, _ in found.gates],
            "runs": [_runs(gate) for gate, _, _ in found.gates],
            "when": [_when(gate) for gate, _, _ in found.gates],
            "if broken": [_if_broken(gate) for gate, _, _ in found.gates],
            "from": [_where(gate, self._cwd) for gate, _, _ in found.gates],
            "more": [_more(gate, place, trusted=known) for gate, place, known in found.gates],
        }
        columns = {name: cells for name, cells in columns.items() if any(cells)}
        self.rows(tuple(columns), list(zip(*columns.values(), strict=True)), heads=True)


class _Pages(_Screen):
    """A page about each thing that has the name."""

    def show(self, found: _Found) -> None:
        """Print the gates of the project first."""
        shown = [
            *(partial(self._gate, *one) for one in found.gates),
            *(partial(self._kind, *one) for one in found.kinds.items()),
            *(partial(self._preset, one) for one in found.presets.values()),
        ]
        for number, page in enumerate(shown):
            if number:
                print()
            page()

    def _gate(self, gate: Gate, workspace: str, trusted: bool) -> None:  # noqa: FBT001
        kind = _own_kind(gate)
        uses = gate.check.options.get("uses", "") if isinstance(gate.check, Command) else ""
        explained = [uses or kind, *(key for key in _options(gate) if key in COMMAND_KEYS)]
        explained += ["{files}"] if FILES in _runs(gate) + str(_options(gate).get("fix")) else []
        place = machine_of(gate, workspace)
        facts = {
            "runs": _runs(gate),
            "for": agents_of(gate),
            "when": _when(gate),
            "if broken": _if_broken(gate),
            "on": place.destination if place else "",
            **{key: _said(value) for key, value in _options(gate).items()},
            "observes": "it never sends an agent back" if gate.observe else "",
            "trust": "" if trusted else "not trusted, so it does not run; review: notyet trust",
            "explained": ", ".join(f"notyet gates {shlex.quote(name)}" for name in explained),
        }
        where = _where(gate, self._cwd)
        self.title(f"gate {gate.name}" + (f" ({where})" if where else ""))
        shown: list[tuple[Cell, ...]] = [(name, text) for name, text in facts.items() if text]
        self.rows(("", ""), shown, heads=False)

    def _kind(self, key: str, kind: Explained) -> None:
        self.title(f"{key}: {kind.summary}")
        self.paragraph(kind.explains)
        keys: list[tuple[Cell, ...]] = [(one, _doc(one)) for one in _keys(key)]
        if keys[1:]:  # its own alone is explained above
            print()
            self.rows(("", ""), keys, heads=False)
        defaults = ", ".join(f'{name} = "{value}"' for name, value in _defaults(kind).items())
        if defaults:
            print()
            self.paragraph(f"Unlike for a command, the default is: {defaults}")
        if key == "uses":
            print()
            rows: list[tuple[Cell, ...]] = [(one.name, one.summary) for one in PRESETS.values()]
            self.rows(("", ""), rows, heads=False)
        self._example(kind.example)

    def _preset(self, preset: Preset) -> None:
        self.title(f'uses = "{preset.name}": {preset.summary}')
        self.paragraph(preset.explains)
        if preset.name.startswith(ABOUT_GIT):
            print()
            self.paragraph('Unlike for a command, the default is: when = "always"')
        self._example(_preset_example(preset.name))

    def _example(self, text: str) -> None:
        print()
        self.title("In notyet.toml:")
        for line in text.splitlines():
            print(f"{_INDENT}{line}")


def _said(value: object) -> str:
    """Return an option as people would say it."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "yes" if value is True else str(value)
