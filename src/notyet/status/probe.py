"""The made-up stop: one synthetic stop through the installed command line, run as its host runs it.

It finds what no reading of files can: that the line starts, reaches this notyet, and is answered.
The hook recognises the stop by its session (`NOTYET_PROBE`), runs no gate and records nothing;
with `ask` it runs the gates, with a ledger that is thrown away. A line is run only if the user
approved it: it may stand in a repository that was just cloned.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from notyet import __version__
from notyet.config.find import real_folder, root_of
from notyet.config.off import switched_off
from notyet.core.event import StopEvent
from notyet.core.text import clean, first_line
from notyet.core.verdict import UNCHECKED
from notyet.git.worktrees import main_worktree
from notyet.hook.hook import PROBE, PROBE_SESSION
from notyet.hook.probe import WOULD_RUN_NOTHING, would_run
from notyet.hosts.detect import detect
from notyet.hosts.faults import checks_of
from notyet.install.notyet_line import ISOLATED, notyet_line
from notyet.run.command_runner import run_together
from notyet.run.spawn import Job

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from notyet.config.load import Setup
    from notyet.core.gate import Exit
    from notyet.hosts.host import Host
    from notyet.install.settings import Registration
    from notyet.status.facts import HostFacts
    from notyet.status.fault import Fault

TIMEOUT = 20.0  # seconds; a cold start takes a tenth of one
_EXTRA = 10.0  # seconds beyond the host's timeout, to see that the answer would have been too late
_OF_PROJECTS = ("project", "local")
_HARMLESS = ("NOTYET_", "CLAUDE_CODE_")  # variables that do not change which program runs
_VERSION = re.compile(r"notyet (\S+): ")
_SAYS = ("systemMessage", "system_message", "reason", "stopReason")
_ASSIGNED = re.compile(r"""(?<![\w-])([A-Za-z_]\w*)=(?:'[^']*'|"[^"]*"|[^\s'";|&])+""")
_OFF = f"notyet: {UNCHECKED}: off "  # followed by a time that may differ by a minute
_NOT_FOR_AGENTS = ("NOTYET_INSIDE", "NOTYET_SUPERVISED")  # faults of their own


@dataclass(frozen=True, kw_only=True)
class Probe:
    """How the installed command answered a stop."""

    command: str
    stdout: str = ""
    stderr: str = ""
    code: int | None = None
    seconds: float = 0.0
    problem: str = ""  # why that is no answer
    says: str = ""  # what a user would read
    foretold: str = ""  # which gates it said it would run
    asked: bool = False  # the gates ran


def why_not_run(facts: HostFacts, entry: Registration) -> str:
    """Return why no stop is sent through a line; empty if one is."""
    line = notyet_line(entry.command)
    if line is None or not line.is_plain:
        return "it also runs other commands"
    if checks_of(facts.host.name).is_accepted(facts):
        return ""
    if entry.file.scope in _OF_PROJECTS and not _is_from_outside(facts, line.start):
        return "it is in a project that you have not accepted"
    names = ", ".join(
        name
        for content in facts.files
        if content.file.scope in _OF_PROJECTS and isinstance(content.get("env"), dict)
        for name in content.get("env")
        if not name.startswith(_HARMLESS)
    )
    return f"a project that you have not accepted sets {names} for it" if names else ""


def _is_from_outside(facts: HostFacts, start: tuple[str, ...]) -> bool:
    """Return True if a line starts a notyet that is not in the project."""
    if start == ("notyet",):
        return True
    here = real_folder(facts.cwd)
    roots = [os.path.realpath(root) for root in (root_of(here), main_worktree(here)) if root]
    is_isolated = len(start) == 1 or start[1:-1] == ISOLATED
    return is_isolated and all(
        os.path.isabs(path) and os.path.commonpath([name, root]) != root
        for path in (start[0], start[-1])
        for name in (os.path.normpath(path), os.path.realpath(path))
        for root in roots
    )


def probe(facts: HostFacts, entry: Registration) -> Probe:
    """Send a stop that runs no gate, and return what came back."""
    session = _session()
    done = _run(facts, entry, session, {PROBE: session}, TIMEOUT)
    words = _words(done) or _on_stderr(facts, entry, done)
    problem = _unanswered(done, TIMEOUT)
    if not problem and not words.startswith("notyet"):
        answer = first_line(clean(done.stdout.decode("utf-8", "replace")))
        problem = f"its answer is not notyet's: {answer}" if answer else "it answered nothing"
        problem += _complaint(done) if not answer else ""
    return Probe(**_of(entry, done), problem=problem, says=words, foretold=words)


def ask(facts: HostFacts, entry: Registration) -> Probe:
    """Send a stop for which the gates run, and return what came back."""
    first = probe(facts, entry)
    if first.problem:
        return first
    timeout = (entry.timeout or facts.host.timeout) + _EXTRA
    with tempfile.TemporaryDirectory(prefix="notyet-status-") as folder:
        ledger = {"NOTYET_LEDGER": os.path.join(folder, "ledger.db")}
        done = _run(facts, entry, _session(), ledger, timeout)
    return Probe(
        **_of(entry, done),
        problem=_unanswered(done, timeout),
        says=_words(done) or "the agent may stop",
        foretold=first.foretold,
        asked=True,
    )


def probe_faults(
    facts: HostFacts, entry: Registration, probed: Probe, setup: Setup | None
) -> Iterator[Fault]:
    """Compare an answer with what is in force; no `setup`: that is unknown for this line."""
    again = facts.install_again(entry)
    if probed.problem:
        what = f"A made-up stop was sent through the installed command, and {probed.problem}."
        yield facts.entry_fault("no-reply", entry, what, f"try: {probed.command}; or {again}")
        return
    version = _VERSION.match(probed.foretold)
    is_other = version is not None and version[1] != __version__
    if version is not None and is_other:
        what = f"The installed command is notyet {version[1]}; this is notyet {__version__}."
        yield facts.entry_fault("other-version", entry, what)
    if setup is None:
        return
    expected = _expected(facts, entry, setup)
    is_same = probed.foretold == expected
    if is_other:  # the texts may differ
        is_same = (WOULD_RUN_NOTHING in probed.foretold) == (WOULD_RUN_NOTHING in expected)
    if not is_same and not (expected.startswith(_OFF) and probed.foretold.startswith(_OFF)):
        what = f"The installed command says `{probed.foretold}` instead of `{expected}`."
        fix = f"see what else its line or its environment does; or {again}"
        yield facts.entry_fault("asks-otherwise", entry, what, fix)


def _expected(facts: HostFacts, entry: Registration, setup: Setup) -> str:
    """Return what the installed command should answer."""
    off = switched_off(facts.cwd, facts.hook_environ)
    if off:
        return f"notyet: {UNCHECKED}: {off}"
    payload, _ = facts.host.write_event(_event(facts, entry, ""), facts.cwd)
    event = facts.host.read_event(payload, facts.hook_environ)
    assert isinstance(event, StopEvent)
    return " ".join(clean(would_run(event, setup)).split())


def without_values(command: str) -> str:
    """Return a command with the values of its variables masked: they may be secrets."""
    return _ASSIGNED.sub(r"\1=***", command)


def _session() -> str:
    return f"{PROBE_SESSION}{os.urandom(8).hex()}"


def _event(facts: HostFacts, entry: Registration, session: str) -> StopEvent:
    scope = facts.host.stops[entry.event]
    return StopEvent(
        host=facts.host.name,
        scope=scope,
        session_id=session,
        turn_id=session,
        agent_id=None if scope == "agent" else "notyet-status",
        agent_type=None if scope == "agent" else "general-purpose",
        cwd=facts.cwd,
        transcript_path=os.devnull,  # some hosts are recognised by having none
        stop_hook_active=False,
        last_message="This stop was made up by `notyet status`.",
    )


def _run(
    facts: HostFacts, entry: Registration, session: str, extra: Mapping[str, str], timeout: float
) -> Exit:
    event = _event(facts, entry, session)
    payload, variables = facts.host.write_event(event, facts.cwd)
    line = notyet_line(entry.command)
    if line is None or not line.host:
        payload = _recognisable(facts.host, payload)
    environ = {n: value for n, value in facts.hook_environ.items() if n not in _NOT_FOR_AGENTS}
    job = Job(
        argv=checks_of(facts.host.name).argv(entry),
        dir=facts.cwd,
        environ={**environ, **variables, **extra},
        stdin=json.dumps(payload).encode("utf-8", "replace"),
        timeout=timeout,
    )
    (done,) = run_together([job])
    return done


def _recognisable(host: Host, payload: dict[str, Any]) -> dict[str, Any]:
    """Return a payload with what tells its host, where the line does not: keys of a sign."""
    plain = [sign.split() for sign in host.signs if not set(sign) & {"!", "=", "~"}]
    if not plain or detect(payload) == host.name:
        return payload
    return {**dict.fromkeys(plain[0], ""), **payload}


def _unanswered(done: Exit, timeout: float) -> str:
    """Return why there is no answer; empty if the command ended as it should."""
    if done.problem:
        return f"it could not be started: {done.problem}"
    if done.timed_out:
        return f"it did not answer within {timeout:g} s"
    if done.code != 0:
        ended = f"exit code {done.code}" if done.code is not None else f"signal {done.signal}"
        return f"it ended with {ended}{_complaint(done)}"
    return ""


def _complaint(done: Exit) -> str:
    line = first_line(clean(done.stderr.decode("utf-8", "replace")))
    return f": {line}" if line else ""


def _words(done: Exit) -> str:
    """Return what a user would read of an answer; empty if there is nothing."""
    try:
        reply = json.loads(done.stdout.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return ""
    texts = [reply.get(name) for name in _SAYS] if isinstance(reply, dict) else []
    return next((" ".join(clean(t).split()) for t in texts if isinstance(t, str) and t.strip()), "")


def _on_stderr(facts: HostFacts, entry: Registration, done: Exit) -> str:
    """Return the answer to a host that reads stderr only, or that shows its user nothing."""
    line = notyet_line(entry.command)
    has_no_place = not facts.host.note or (line is not None and line.verb != "hook")
    if not has_no_place or done.stdout.strip():
        return ""
    return " ".join(clean(done.stderr.decode("utf-8", "replace")).split())


def _of(entry: Registration, done: Exit) -> dict[str, Any]:
    return {
        "command": without_values(entry.command),
        "stdout": clean(done.stdout.decode("utf-8", "replace")).strip(),
        "stderr": clean(done.stderr.decode("utf-8", "replace")).strip(),
        "code": done.code,
        "seconds": round(done.seconds, 3),
    }
