"""Which installed lines may be run to see their answer: never what nobody has approved.

A line of ours may stand in a repository that was just cloned, and run anything besides us.
"""

from __future__ import annotations

import json
import os
import re
import tempfile

from notyet import __version__
from notyet.config.files import real_folder, root_of
from notyet.config.off import switched_off
from notyet.core.event import StopEvent
from notyet.core.record import Record
from notyet.core.text import clean, first_line
from notyet.hook.unusual import PROBE, PROBE_SESSION, WOULD_RUN_NOTHING, would_run
from notyet.hosts import PATIENCE, host_named
from notyet.hosts.own_line import ISOLATED, own_line
from notyet.install.worktree import main_root
from notyet.run.spawn import Job
from notyet.run.stage import run_together
from notyet.status.faults.claude_folder import is_accepted
from notyet.status.faults.entries import install_again, spoken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from notyet.config.load import Setup
    from notyet.core.gate import Exit
    from notyet.install.registered import Registration
    from notyet.status.faults.fault import Fault
    from notyet.status.faults.look import Look

_OF_PROJECTS = ("project", "local")
# Variables that a project's settings may set without changing which program is run.
_HARMLESS = ("NOTYET_", "CLAUDE_CODE_")


def is_skipped(look: Look, entry: Registration) -> bool:
    """Tell whether the host itself would not run an entry, of which it is told elsewhere."""
    return entry.where in look.skipped


def why_not_sent(look: Look, entry: Registration) -> str:
    """Say why no stop is sent through a line; empty when one is."""
    if not _is_only_ours(entry.command):
        return "it also runs other commands"
    if look.host == "codex" or is_accepted(look):  # then the host runs it whenever it stops
        return ""
    if entry.place.scope in _OF_PROJECTS and not _is_plain(look, entry.command):
        return "it stands in a project that you have not accepted"
    names = ", ".join(_added(look))
    return f"a project that you have not accepted sets {names} for it" if names else ""


def not_probed(look: Look, entry: Registration, why: str) -> Fault:
    """Return that a line was not tried."""
    fix = "start claude here once, and accept the folder"
    if not _is_only_ours(entry.command):
        fix = "look whether it answers, or keep notyet in a line of its own"
    what = f"The installed command was not tried, because {why}."
    return look.fault("not-probed", what, where=entry.where, fix=fix)


def _is_only_ours(command: str) -> bool:
    line = own_line(command)
    return line is not None and line.is_plain


def _is_plain(look: Look, command: str) -> bool:
    """Return True if a line starts a notyet from outside the project, and does nothing else."""
    line = own_line(command)
    if line is None or not line.start:
        return False
    if line.start == ("notyet",):
        return True
    is_isolated = len(line.start) == 1 or line.start[1:-1] == ISOLATED
    return is_isolated and all(_is_outside(look, line.start[at]) for at in (0, -1))


def _is_outside(look: Look, path: str) -> bool:
    here = real_folder(look.cwd)
    roots = [os.path.realpath(root) for root in (root_of(here), main_root(here)) if root]
    names = (os.path.normpath(path), os.path.realpath(path))
    return os.path.isabs(path) and not any(
        os.path.commonpath([name, root]) == root for name in names for root in roots
    )


def _added(look: Look) -> Iterator[str]:
    for content in look.contents:
        said = content.get("env")
        if content.place.scope in _OF_PROJECTS and isinstance(said, dict):
            yield from (name for name in said if not name.startswith(_HARMLESS))


# One synthetic stop through the installed command line, run as its host would run it.
#
# It shows what no reading of files can: that the line starts, finds us, and is answered. The hook
# knows the stop by its session (`NOTYET_PROBE`), asks no gate, and writes nothing down; `ask` lets
# it ask the gates, and write into a ledger that is thrown away.


_PATIENCE = 20.0  # seconds; a cold start takes a tenth of one
_SPARE = 10.0  # seconds beyond what the host would wait, to see that it would have been too late
_VERSION = re.compile(r"notyet (\S+): ")
_SAYS = ("systemMessage", "reason", "stopReason")
_ASSIGNED = re.compile(r"""(?<![\w-])([A-Za-z_]\w*)=(?:'[^']*'|"[^"]*"|[^\s'";|&])+""")
_OFF = "notyet: off "  # it may be off for another minute more or less
_NOT_OF_AGENTS = ("NOTYET_INSIDE", "NOTYET_SUPERVISED")  # told of by themselves


class Probe(Record, kw_only=True):
    """How the installed command answered a stop."""

    command: str
    stdout: str = ""
    stderr: str = ""
    code: int | None = None
    seconds: float = 0.0
    problem: str = ""  # why that is no answer
    says: str = ""  # what a user would read of it
    foretold: str = ""  # what it said that it would ask
    asked: bool = False  # with `ask`: the gates themselves answered


def probe(look: Look, entry: Registration) -> Probe:
    """Send a stop that asks nothing, and return what came back."""
    mark = _session()
    done = _run(look, entry, mark, {PROBE: mark}, _PATIENCE)
    said = _said(done)
    if spoken(look, entry) == "conclaude" and not done.stdout.strip():  # it speaks on stderr only
        said = {"reason": done.stderr.decode("utf-8", "replace")}
    problem = _unanswered(done, _PATIENCE) or _strange(done, said)
    words = _words_probe(said)
    return Probe(**_of(entry, done), problem=problem, says=words, foretold=words)


def ask(look: Look, entry: Registration) -> Probe:
    """Send a stop for which the gates are asked, and return what came back."""
    first = probe(look, entry)
    if first.problem:  # so nobody would be asked
        return first
    waits = (entry.timeout or PATIENCE[look.host]) + _SPARE
    with tempfile.TemporaryDirectory(prefix="notyet-status-") as folder:
        ledger = {"NOTYET_LEDGER": os.path.join(folder, "ledger.db")}
        done = _run(look, entry, _session(), ledger, waits)
    says = _words_probe(_said(done)) or "the agent may stop"
    return Probe(
        **_of(entry, done),
        problem=_unanswered(done, waits),
        says=says,
        foretold=first.foretold,
        asked=True,
    )


def probe_faults(
    look: Look, entry: Registration, probed: Probe, setup: Setup | None
) -> Iterator[Fault]:
    """Judge an answer; `setup` is what is in force for that command, if it can be known."""
    if probed.problem:
        yield look.fault(
            "no-reply",
            f"A stop was sent through the installed command, and {probed.problem}.",
            where=entry.where,
            fix=f"try it: {probed.command}; or {install_again(look, entry)}",
        )
        return
    version = _VERSION.match(probed.foretold)
    is_other = version is not None and version[1] != __version__
    if version is not None and is_other:
        yield look.fault(
            "other-version",
            f"The installed command is notyet {version[1]}; this is notyet {__version__}.",
            where=entry.where,
            fix=install_again(look, entry),
        )
    expected = _expected(look, entry, setup) if setup is not None else probed.foretold
    is_same = probed.foretold == expected
    if is_other:  # which may say it in other words
        is_same = (WOULD_RUN_NOTHING in probed.foretold) == (WOULD_RUN_NOTHING in expected)
    if not is_same and not (expected.startswith(_OFF) and probed.foretold.startswith(_OFF)):
        yield look.fault(
            "asks-otherwise",
            f"The installed command says `{probed.foretold}`, and not `{expected}`, as it should "
            "in this folder.",
            where=entry.where,
            fix=f"see what its line does besides calling notyet; or {install_again(look, entry)}",
        )


def _expected(look: Look, entry: Registration, setup: Setup) -> str:
    """Return what the installed command should answer."""
    environ = look.environ_of_hooks
    off = switched_off(look.cwd, environ)
    if off:
        return f"notyet: {off}"
    payload, _ = host_named(look.host).write_event(_event(look, entry, ""), look.cwd)
    event = host_named(look.host).read_event(payload, environ)
    assert isinstance(event, StopEvent)
    return " ".join(clean(would_run(event, setup)).split())


def masked(command: str) -> str:
    """Return a command without the values that it gives to variables: they may be secrets."""
    return _ASSIGNED.sub(r"\1=***", command)


def _session() -> str:
    return f"{PROBE_SESSION}{os.urandom(8).hex()}"


def _event(look: Look, entry: Registration, session: str) -> StopEvent:
    is_main = entry.event == "Stop"
    return StopEvent(
        host=look.host,
        scope="agent" if is_main else "subagent",
        session_id=session,
        turn_id=session,
        agent_id=None if is_main else "notyet-status",
        agent_type=None if is_main else "general-purpose",
        cwd=look.cwd,
        transcript_path=os.devnull,  # hosts name one, and some are known by naming none
        stop_hook_active=False,
        last_message="This stop was made up by `notyet status`.",
    )


def _run(
    look: Look, entry: Registration, session: str, extra: Mapping[str, str], patience: float
) -> Exit:
    event = _event(look, entry, session)
    payload, variables = host_named(look.host).write_event(event, look.cwd)
    environ = look.environ_of_hooks
    environ = {name: value for name, value in environ.items() if name not in _NOT_OF_AGENTS}
    if look.host == "claude" and look.version.text:
        variables["AI_AGENT"] = f"claude-code_{look.version.text.replace('.', '-')}_agent"
    job = Job(
        argv=_argv(look, entry),
        dir=look.cwd,
        environ={**environ, **variables, **extra},
        stdin=json.dumps(payload).encode("utf-8", "replace"),
        timeout=patience,
    )
    (done,) = run_together([job])
    return done


def _argv(look: Look, entry: Registration) -> tuple[str, ...]:
    """Return how the host starts the command: Codex in the login shell, without logging in."""
    arguments = entry.handler.get("args")
    if look.host == "claude" and isinstance(arguments, list):
        return (str(entry.handler["command"]), *arguments)
    shell = entry.handler.get("shell") if look.host == "claude" else None
    if shell == "powershell":
        return ("pwsh", "-NoProfile", "-Command", entry.command)
    if shell == "bash":
        return ("bash", "-c", entry.command)
    return (_login_shell() if look.host == "codex" else "/bin/sh", "-c", entry.command)


def _login_shell() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    except KeyError:
        return "/bin/sh"


def _said(done: Exit) -> dict[str, Any] | None:
    try:
        said = json.loads(done.stdout.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _unanswered(done: Exit, patience: float) -> str:
    """Say why there is no answer; empty when the command ended as it should."""
    if done.problem:
        return f"it could not be started: {done.problem}"
    if done.timed_out:
        return f"it did not answer within {patience:g} s"
    if done.code != 0:
        ended = f"exit code {done.code}" if done.code is not None else f"signal {done.signal}"
        return f"it ended with {ended}{_complaint(done)}"
    return ""


def _strange(done: Exit, said: dict[str, Any] | None) -> str:
    """Say why an answer is not ours; empty when it is."""
    if _words_probe(said).startswith("notyet"):
        return ""
    if not done.stdout.strip():
        return f"it answered nothing{_complaint(done)}"
    answer = first_line(clean(done.stdout.decode("utf-8", "replace")))
    return f"its answer is not notyet's: {answer}"


def _complaint(done: Exit) -> str:
    said = first_line(clean(done.stderr.decode("utf-8", "replace")))
    return f": {said}" if said else ""


def _words_probe(said: dict[str, Any] | None) -> str:
    for name in _SAYS:
        value = (said or {}).get(name)
        if isinstance(value, str) and value.strip():
            return " ".join(clean(value).split())
    return ""


def _of(entry: Registration, done: Exit) -> dict[str, Any]:
    return {
        "command": masked(entry.command),
        "stdout": clean(done.stdout.decode("utf-8", "replace")).strip(),
        "stderr": clean(done.stderr.decode("utf-8", "replace")).strip(),
        "code": done.code,
        "seconds": round(done.seconds, 3),
    }
