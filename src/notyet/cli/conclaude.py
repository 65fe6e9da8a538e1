"""`notyet conclaude`: what hosts call where conclaude was installed before, with its command line.

notyet conclaude SubagentStop < payload.json
notyet conclaude Hooks Stop --agent coder < payload.json
"""

from __future__ import annotations

import sys

from notyet.config.document import did_you_mean
from notyet.hook.main import serve
from notyet.hosts.conclaude import HOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

SUMMARY = "run the commands of a .conclaude.yaml, with conclaude's own command line"
EXAMPLES = (
    ("notyet conclaude Stop < payload.json", "answer by the exit code: 2 sends the agent back"),
    ("notyet conclaude Hooks SubagentStop --agent coder < payload.json", "for a subagent"),
)
_STOPS = (*HOST.stops, *HOST.failures)
# Events that are not about stopping.
_OTHERS = (
    "ConfigChange", "CwdChanged", "Elicitation", "ElicitationResult", "FileChanged",
    "InstructionsLoaded", "MessageDisplay", "Notification", "PermissionDenied",
    "PermissionRequest", "PostCompact", "PostToolBatch", "PostToolUse", "PostToolUseFailure",
    "PreCompact", "PreToolUse", "SessionEnd", "SessionStart", "Setup", "SubagentStart",
    "TaskCompleted", "TaskCreated", "TeammateIdle", "UserPromptExpansion", "UserPromptSubmit",
    "WorktreeCreate", "WorktreeRemove",
)  # fmt: skip


def configure(parser: argparse.ArgumentParser) -> None:
    """Take conclaude's command line as it is."""
    parser.add_argument(
        "event", metavar="EVENT", nargs="+", help="Stop, SubagentStop, Hooks SubagentStop, ..."
    )
    parser.add_argument("--agent", help="the name of the agent that is stopping")


def run(args: argparse.Namespace) -> int:
    """Answer by the exit code: 2 sends the agent back, everything else lets it go (G4)."""
    words = [word for word in args.event if word != "Hooks"]
    if len(words) != 1:
        print("notyet conclaude: name one event, like: Hooks SubagentStop", file=sys.stderr)
        return 1
    if words[0] in _OTHERS:
        return 0  # they are not about stopping
    if words[0] not in _STOPS:
        near = did_you_mean(words[0], (*_STOPS, *_OTHERS))
        hint = f"; {near}" if near else ""
        print(f"notyet conclaude: there is no event {words[0]!r}{hint}", file=sys.stderr)
        return 1

    argv = ["--host", HOST.name, "--event", words[0]]
    if args.agent:
        argv += ["--agent", args.agent]
    return serve(argv)
