"""`notyet hosts`: whose agents notyet can send back, how that is known, and what is installed."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from notyet.cli.streams import json_line
from notyet.cli.terminal import Style, folded, table, width
from notyet.config.document import did_you_mean
from notyet.core.text import bounded, visible
from notyet.hosts import host_named
from notyet.hosts.acp_agents import acp_of
from notyet.hosts.known_programs import every_program
from notyet.install.settings import installable, settings_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.cli.terminal import Cell
    from notyet.hosts.host import Host

    Installed = tuple[dict[str, str], list[str]]

SUMMARY = "whose agents can be sent back, how that was proven, and where notyet is installed"
EXAMPLES = (
    ("notyet hosts", "the table of all hosts"),
    ("notyet hosts --json", "one JSON object per host, for programs"),
)
LEGEND = {
    "main, subagents": "whether notyet can send this agent back when it stops",
    "cap": "how many send-backs in a row the host takes; notyet's limit is never higher. "
    '"ours": it takes any number, so only notyet\'s limits end them',
    "installed": "the settings that register notyet, in this folder",
    "proven": "the day on which tests drove the real program. "
    '"by source": derived from its source or documentation, and never run',
    "settings": "the file of `notyet install HOST`; with --project the same path in the project",
    "over ACP": "the agent that `notyet acp --` gates behind an editor, "
    "whether notyet is installed in it or not",
}
_RUN_CHECK = "run `notyet check` yourself, or tell the agent to run it before it ends"
_WIDE = 110  # columns from which the settings fit beside the rest
_INDENT = "  "
_COLOURS = {"yes": "green", "no": "yellow"}


@dataclass(frozen=True, kw_only=True)
class HostRow:
    """What the table says about one host, wherever it is shown."""

    name: str
    title: str
    proof: str  # proven, source, or empty if its agents cannot be sent back
    tested: str
    tested_on: str
    derived_from: str
    main: str
    subagents: str
    cap: int  # the send-backs in a row that it takes; 0: any number
    cap_variable: str
    settings: dict[str, str]  # scope: the file below the home or the project
    installed_as: str  # the host whose settings these are
    cannot: str
    instead: str  # what to use where its agents cannot be sent back
    acp: dict[str, str]  # its agent for editors: command, install, tested, tested_on

    @property
    def shown_cap(self) -> str:
        """The cap as the table shows it."""
        return str(self.cap) if self.cap else "ours"

    @property
    def shown_proof(self) -> str:
        """How and when it was proven, as the table shows it."""
        return (self.tested_on or "yes") if self.proof == "proven" else "by source"

    @property
    def shown_settings(self) -> str:
        """Where its settings are, as the table shows it."""
        user, project = (self.settings.get(scope, "") for scope in ("user", "project"))
        if not user:
            return f"project: {project}" if project else "see its page"
        more = "" if user == project else f"; project: {project}" if project else " only"
        return f"~/{user}{more}"


def host_rows() -> list[HostRow]:
    """Return every host that can be held, the proven ones first, then those that cannot be."""
    rows = [_row(host) for host in every_program() if host.proof or host.cannot]
    order = ("proven", "source", "")
    return sorted(rows, key=lambda row: (order.index(row.proof), row.name))


def _row(host: Host) -> HostRow:
    kept = host_named(host.installed_as).settings if host.installed_as else host.settings
    return HostRow(
        name=host.name,
        title=host.title,
        proof="" if host.cannot else host.proof,
        tested=host.tested,
        tested_on=host.tested_on,
        derived_from=host.derived_from,
        main="no" if host.cannot else host.holds.get("agent", "no"),
        subagents="no" if host.cannot else host.holds.get("subagent", "no"),
        cap=max(0, host.cap - 1),  # the next one it overrides
        cap_variable=host.cap_variable,
        settings=dict(kept),
        installed_as=host.installed_as or host.name,
        cannot=host.cannot,
        instead=_instead(host) if host.cannot else "",
        acp=_acp(host),
    )


def _acp(host: Host) -> dict[str, str]:
    agent = acp_of(host.name)
    if agent is None:
        return {}
    names = ("command", "install", "tested", "tested_on")
    return {name: str(getattr(agent, name)) for name in names}


def _instead(host: Host) -> str:
    if host.command_line is not None:
        return f"notyet with {host.name}"
    return "notyet check"


def host_argument(name: str) -> str:
    """Return the name of a host on a command line; refuse one whose agents cannot be held."""
    for row in host_rows():
        if row.name != name:
            continue
        if row.installed_as != name:
            raise argparse.ArgumentTypeError(
                f"{row.title} runs the hooks of {host_named(row.installed_as).title}; "
                f"name {row.installed_as}, which is for both"
            )
        if row.cannot:
            do = f"use `{row.instead}`" if row.instead != "notyet check" else _RUN_CHECK
            raise argparse.ArgumentTypeError(
                f"agents of {row.title} cannot be sent back: {row.cannot}; {do}"
            )
    if name not in installable():
        hint = did_you_mean(name, installable()) or "list them with: notyet hosts"
        raise argparse.ArgumentTypeError(
            f"{visible(bounded(name, 40))!r} is not a host that notyet installs itself in; {hint}"
        )
    return name


def add_host(parser: argparse.ArgumentParser, words: str = "", nargs: str | None = None) -> None:
    """Add the host as an argument; there are too many to name them all."""
    names = installable()
    words += f"{' or '.join(names[:2])}, or another host that `notyet hosts` lists"
    parser.add_argument(
        "host", type=host_argument, choices=names, metavar="HOST", help=words, nargs=nargs
    )


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object per host, for programs"
    )


def run(args: argparse.Namespace) -> int:
    """Print the table; exit 0."""
    cwd = os.getcwd()
    rows = [(row, _installed(row, cwd, os.environ)) for row in host_rows()]
    if args.json:
        for row, (installed, unreadable) in rows:
            here = {"installed": installed, "unreadable": unreadable}
            print(json_line(asdict(row) | here))
        return 0
    _Screen().show(rows)
    return 0


def _installed(row: HostRow, cwd: str, environ: Mapping[str, str]) -> Installed:
    """Return the settings files that register notyet, by scope, and those that are unreadable."""
    if not row.settings:
        return {}, []
    ours, mistakes = settings_of(row.installed_as).found(cwd, environ)
    main = [one for one in ours if one.is_main]
    found: dict[str, str] = {
        "plugin" if one.is_plugin else one.file.scope: one.file.path for one in main
    }
    return found, [mistake.file for mistake in mistakes]


class _Screen:
    """Prints the table, the hosts that cannot be held, and a legend."""

    def __init__(self) -> None:
        self._style = Style(sys.stdout)

    def show(self, rows: list[tuple[HostRow, Installed]]) -> None:
        """Print everything."""
        held = [(row, installed) for row, installed in rows if not row.cannot]
        columns: dict[str, list[Cell]] = {
            "host": [row.name for row, _ in held],
            "tested": [row.tested for row, _ in held],
            "main": [(row.main, _COLOURS.get(row.main, "yellow")) for row, _ in held],
            "subagents": [
                (row.subagents, _COLOURS.get(row.subagents, "yellow")) for row, _ in held
            ],
            "cap": [row.shown_cap for row, _ in held],
            "installed": [_where(installed) for _, installed in held],
            "proven": [
                (row.shown_proof, "" if row.proof == "proven" else "yellow") for row, _ in held
            ],
            "settings": [row.shown_settings for row, _ in held],
        }
        if width() < _WIDE:
            rest = {name: columns.pop(name) for name in ("tested", "settings")}
            self._table(columns)
            self._table({"host": columns["host"], **rest})
        else:
            self._table(columns)
        over_acp = [row for row, _ in rows if row.acp]
        print(folded("over ACP, behind editors that speak it: `notyet acp -- AGENT`", 0) + "\n")
        self._table(
            {
                "host": [row.name for row in over_acp],
                "agent": [row.acp["command"] for row in over_acp],
                "tested": [row.acp["tested"] for row in over_acp],
                "proven": [row.acp["tested_on"] for row in over_acp],
            }
        )
        cannot = [row for row, _ in rows if row.cannot]
        print(folded("their agents cannot be sent back, so nothing can be installed:", 0) + "\n")
        self._table(
            {
                "host": [row.name for row in cannot],
                "use": [row.instead for row in cannot],
                "because": [row.cannot for row in cannot],
            }
        )
        widest = max(map(len, LEGEND)) + 2
        for word, meaning in LEGEND.items():
            label = self._style.paint(f"{word:<{widest}}", "dim")
            print(f"{_INDENT}{label}{folded(meaning, len(_INDENT) + widest)}")

    def _table(self, columns: dict[str, list[Cell]]) -> None:
        rows = list(zip(*columns.values(), strict=True))
        lines = table(tuple(columns), rows, self._style, columns=width() - len(_INDENT), wrap=True)
        for line in lines:
            print(f"{_INDENT}{line}".rstrip())
        print()


def _where(here: Installed) -> Cell:
    installed, unreadable = here
    if unreadable:
        return "unreadable", "red"
    return (", ".join(installed), "green") if installed else ("no", "dim")
