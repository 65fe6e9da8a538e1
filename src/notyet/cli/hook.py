"""`notyet hook`: what an agent's host calls when the agent wants to stop.

Every stop is a cold start, and most need nothing: no gate is configured where the agent works, or
none for subagents. This is the door, which answers those by itself. All others go on to the line,
`hook_line`, with what was read here: whatever is unusual about a call, it is for the line to say.
"""

from __future__ import annotations

import sys

from notyet import light
from notyet.config.find import projects_files
from notyet.hook.payload import Call, Options, Unreadable, of_wrong_kind
from notyet.hook.process import OutOfTime, answer_host, be_undisturbed
from notyet.hosts import HOSTS, SILENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from notyet.hosts import Reply

SUMMARY = "answer an agent's stop event, read from stdin (hosts call this)"
EXAMPLES = (
    ("notyet hook --host claude < payload.json", "answer as Claude Code would be answered"),
    (
        "notyet hook --host codex --config other.toml < payload.json",
        "with these gates instead of others",
    ),
)
_MARKS = ("NOTYET_INSIDE", "NOTYET_SUPERVISED", "NOTYET_PROBE")  # of whom the line must know
_EVENTS = ("Stop", "SubagentStop", "SessionStart", "SubagentStart")


def _prepared() -> None:
    """Prepare for the gates, where there is nothing to prepare."""


def main(
    argv: Sequence[str],
    read: Callable[[], bytes],
    environ: Mapping[str, str],
    prepare: Callable[[], None] = _prepared,
) -> Reply:
    """Answer one event; whatever happens, with a reply that the host understands."""
    call = Call(Options(argv), environ, read)
    try:
        if _needs_nothing(call):
            return SILENCE[call.host]
    except OutOfTime:
        call.is_out_of_time = True
    except Exception:  # noqa: BLE001, S110  # the line meets it too, and says so
        pass
    while True:
        try:
            if call.is_out_of_time:
                be_undisturbed()
            from notyet.hook.line import Hook, answered

            return answered(Hook(call, prepare))
        except OutOfTime:  # while that was loaded, or what gives up
            call.is_out_of_time = True


def _needs_nothing(call: Call) -> bool:
    """Tell whether there is nothing to ask, to tell or to remember, and nothing to say of that.

    Where it is not sure, it says no.
    """
    options, environ = call.options, call.environ
    if options.warnings or options.said or not environ.keys().isdisjoint(_MARKS):
        return False
    try:
        payload = call.payload()
    except Unreadable:
        return False
    if not call.host:
        from notyet.hosts.detect import detect

        call.is_from(detect(payload))
    if call.host not in SILENCE or call.said or of_wrong_kind(payload):
        return False
    name, cwd = payload.get("hook_event_name"), payload.get("cwd") or ""
    if name not in _EVENTS or not light.isabs(cwd) or not light.isdir(cwd):
        return False
    project = environ.get("CLAUDE_PROJECT_DIR", "")
    files = projects_files(cwd, call.host, environ, only=options.config, project=project)
    if not files:
        return files is not None
    if name != "SubagentStop":  # for whom gates mostly are
        return False
    from notyet.config.records import are_silent

    return are_silent(files, "subagent", environ)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options, for `--help` only: the hook reads its own command line."""
    parser.add_argument("--host", choices=HOSTS, help="who calls; else the payload tells")
    parser.add_argument("--config", metavar="FILE", help="a notyet.toml to use instead of others")
    parser.add_argument("--timeout", metavar="S", help="seconds the host waits for an answer")
    parser.add_argument("--event", metavar="NAME", help="what the payload is about: Stop, ...")
    parser.add_argument("--agent", metavar="NAME", help="the name of the agent that is stopping")


def run(_args: argparse.Namespace) -> int:
    """Answer a host."""
    return serve(sys.argv[2:])


def serve(argv: Sequence[str]) -> int:
    """Read stdin, answer on stdout, and return the exit code."""
    from notyet.hook.process import adopt

    return answer_host(lambda read: main(argv, read, light.variables(), adopt))
