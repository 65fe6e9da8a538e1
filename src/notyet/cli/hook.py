"""`notyet hook`: the options, for `--help`; what it does is in the package `notyet.hook`."""

from __future__ import annotations

import sys

from notyet.hook.main import serve
from notyet.hosts import HOSTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

SUMMARY = "answer an agent's stop event, read from stdin (hosts call this)"
EXAMPLES = (
    ("notyet hook --host claude < payload.json", "answer as Claude Code would be answered"),
    (
        "notyet hook --host codex --config other.toml < payload.json",
        "with these gates instead of others",
    ),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options, for `--help` only: the hook reads its own command line."""
    parser.add_argument(
        "--host", choices=HOSTS, help="the calling host; default: detected from the payload"
    )
    parser.add_argument("--config", metavar="FILE", help="a notyet.toml to use instead of others")
    parser.add_argument("--timeout", metavar="S", help="seconds the host waits for an answer")
    parser.add_argument("--event", metavar="NAME", help="what the payload is about: Stop, ...")
    parser.add_argument("--agent", metavar="NAME", help="the name of the agent that is stopping")
    parser.add_argument(
        "--via",
        choices=("plugin",),
        help="who calls: a plugin does nothing where the host's settings register notyet, too",
    )


def run(_args: argparse.Namespace) -> int:
    """Answer a host."""
    return serve(sys.argv[2:])
