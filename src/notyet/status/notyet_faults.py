"""Judge our own side: variables, the off switch, configuration files, the ledger."""

from __future__ import annotations

import json
import os
import tempfile
from typing import TYPE_CHECKING

from notyet.config.files import ConfigFile, host_files, toml_files
from notyet.config.find import OFF_VARIABLE, is_off_everywhere, real_folder, root_of, state_folder
from notyet.config.off import switches
from notyet.config.records import has_record, place_of
from notyet.config.trust import candidate
from notyet.core.text import listed, visible
from notyet.errors import LedgerBusy, LedgerError, LedgerNeedsRepair
from notyet.hook.hook import PROBE
from notyet.hosts.files import ABOVE
from notyet.ledger.connection import SHIP_STATE, default_path
from notyet.ledger.ledger import Ledger
from notyet.status.fault import fault
from notyet.status.fault import location as at
from notyet.times import exactly

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from notyet.config.load import Setup
    from notyet.core.gate import Gate
    from notyet.status.fault import Fault

_OFF_VARIABLES = {
    OFF_VARIABLE: "agents started with it are not checked",
    "NOTYET_INSIDE": "it marks the work of a gate, which is not checked",
    PROBE: "it marks stops that `notyet status` makes up",
}
_PATIENCE = 2.0  # seconds for the ledger
_ROOM = 64 * 1024  # bytes that a stop needs on the disk
_NO_GATES = "none of its gates is in force"


def notyet_faults(
    cwd: str, environ: Mapping[str, str], setup: Setup, others: Sequence[tuple[Gate, str]] = ()
) -> list[Fault]:
    """Return what is wrong on our side; `setup` is what is in force here.

    `others` are gates that only other hosts run, and under which.
    """
    return [
        *variable_faults({name: (environ.get(name, ""), "") for name in _OFF_VARIABLES}),
        *_switch(cwd, environ),
        *_configuration(cwd, environ, setup, others),
        *ledger_faults(environ),
        *(_share_faults(environ) if setup.shares else ()),
    ]


def variable_faults(variables: Mapping[str, tuple[str, str]]) -> Iterator[Fault]:
    """Yield the variables that keep every hook from checking; each has a value and a place."""
    for name, effect in _OFF_VARIABLES.items():
        value, where = variables.get(name, ("", ""))
        is_on = is_off_everywhere({name: value}) if name == OFF_VARIABLE else value
        if is_on:
            fix = "remove it" if where else f"run: unset {name}"
            yield fault("off-by-variable", f"{name} is set: {effect}.", where=where, fix=fix)


def _switch(cwd: str, environ: Mapping[str, str]) -> Iterator[Fault]:
    for off in switches(cwd, environ):
        by = f" {visible(off.by)} switched it off." if off.by else ""
        there = "" if off.place in {"", real_folder(cwd)} else f"in {visible(off.place)}, "
        yield fault("switched-off", f"notyet is {off}.{by}", fix=f"{there}run: {off.undo}")


def _configuration(
    cwd: str, environ: Mapping[str, str], setup: Setup, others: Sequence[tuple[Gate, str]]
) -> Iterator[Fault]:
    found: dict[str, Fault] = {}  # by file
    files = _files(cwd, environ, setup)
    for file in files:
        fault_of_file = _file(file, environ, setup)
        if fault_of_file is not None:
            found[file.path] = fault_of_file
    for path in setup.unreadable:
        found.setdefault(path, _unreadable(path))
    yield from found.values()
    for name in setup.replaced:
        sources = [gate.source for gate in setup.gates if gate.name == name and gate.source]
        where = at(sources[0].file, sources[0].line) if sources else ""
        what = f"The gate {visible(name)} replaces the one of that name in your own notyet.toml."
        yield fault("gate-replaced", what, where=where, fix="nothing, or rename one of them")
    if not setup.gates and not found:
        what = "No gate is in force here, so agents are not checked."
        if others:
            named = listed([f"{visible(gate.name)} ({under})" for gate, under in others])
            what = f"The gates here are for other hosts: {named}."
        # `init` would leave a file that is there alone.
        path = next((file.path for file in files if not file.is_users), "")
        update = f"add a gate to {visible(path)}, or run: notyet init --update"
        yield fault("no-gates", what, fix=update if path else "run: notyet init")


def _files(cwd: str, environ: Mapping[str, str], setup: Setup) -> list[ConfigFile]:
    """Return the configuration files of this place, as the hook finds them."""
    state = state_folder(environ)

    def is_recorded(place: str) -> bool:
        return has_record(state, place)

    place = real_folder(cwd)
    files = toml_files(place, environ, is_recorded)
    for host in dict.fromkeys(name for file in files for name in _hosts_read(file, environ)):
        files += host_files(host, root_of(place), environ, is_recorded)
    known = {file.path for file in files}
    return files + [file for file in setup.untrusted if file.path not in known]


def _hosts_read(file: ConfigFile, environ: Mapping[str, str]) -> tuple[str, ...]:
    try:
        return () if file.is_gone else candidate(file, environ).settings.read_hosts
    except OSError:
        return ()


def _file(file: ConfigFile, environ: Mapping[str, str], setup: Setup) -> Fault | None:
    """Return what is wrong with a configuration file; None if nothing is."""
    where, trust = at(file.path), f"run: {file.command}"
    untrusted = next((one for one in setup.untrusted if one.path == file.path), None)
    if untrusted is not None and untrusted.no_work_tree:
        what = f"It is not trusted, so {_NO_GATES}: {visible(untrusted.no_work_tree)}."
        fix = f"run: git worktree repair, or {file.command}"
        return fault("config-untrusted", what, where=where, fix=fix)
    if file.is_gone:
        what = "It was trusted and then removed; what was trusted stays in force."
        fix = f"put it back, or {trust} --revoke"
        return fault("config-changed", what, where=where, fix=fix, level="warning")
    try:
        found = candidate(file, environ)
    except OSError as error:
        stays = _stays(was_trusted=has_record(state_folder(environ), place_of(file.path)))
        what = f"It cannot be read: {error.strerror or error}{stays}."
        return fault("config-invalid", what, where=where, fix="make it readable")
    was_trusted = found.before is not None and not file.is_users and untrusted is None
    stays = _stays(was_trusted=was_trusted)
    for mistake in found.settings.mistakes:
        more = len(found.settings.mistakes) - 1
        others = f" (and {more} more)" if more else ""
        hint = mistake.hint or "correct it"
        return fault(
            "config-invalid",
            f"It has a mistake{others}: {visible(mistake.message)}{stays}.",
            where=at(mistake.file, mistake.line, mistake.column),
            fix=hint if file.is_users else f"{hint}, and {trust}",
        )
    if untrusted is not None:
        why = "Its folder was replaced since you trusted it" if untrusted.is_replaced else ""
        what = f"{why or 'It is not trusted'}, so {_NO_GATES}."
        return fault("config-untrusted", what, where=where, fix=trust)
    if not file.is_users and not found.is_trusted:
        what = f"It changed since you trusted it, and the changes are not in force{stays}."
        return fault("config-changed", what, where=where, fix=trust)
    return None


def _unreadable(path: str) -> Fault:
    """Return the fault of a file that cannot be read, and that is not among those of this place."""
    kind = ABOVE.get(os.path.basename(path), "")
    if not kind:
        what = f"It cannot be read, so {_NO_GATES}."
        return fault("config-invalid", what, where=at(path), fix="make it readable")
    what = "It was trusted with another version of notyet, and must be trusted again."
    fix = f"run: {ConfigFile(path=path, kind=kind).command}"
    return fault("config-untrusted", what, where=at(path), fix=fix)


def _stays(*, was_trusted: bool) -> str:
    return "; what was trusted stays in force" if was_trusted else ""


def ledger_faults(environ: Mapping[str, str]) -> Iterator[Fault]:
    """Yield why the ledger cannot be used: without it no agent is sent back."""
    path = default_path(environ)
    code, effect = "ledger-unusable", "without the ledger no agent is sent back"
    if not path:
        what = f"There is no home folder to keep the ledger in; {effect}."
        yield fault(code, what, fix="set HOME, or XDG_STATE_HOME")
        return
    try:
        _try_ledger(os.path.realpath(path))
    except LedgerNeedsRepair as error:
        what = f"The ledger cannot be read: {visible(error.detail)}."
        fix = "nothing, the next stop does it"
        yield fault(code, what, where=at(path), fix=fix, level="warning")
    except LedgerBusy as error:
        what = f"{visible(error.detail)}."
        yield fault(code, what, where=at(path), fix="try again", level="warning")
    except (LedgerError, OSError) as error:
        detail = visible(error.detail) if isinstance(error, LedgerError) else error.strerror
        what = f"The ledger cannot be written: {detail}; {effect}."
        fix = "set NOTYET_LEDGER to a file on a local disk that you can write"
        yield fault(code, what, where=at(path), fix=fix)


def _share_faults(environ: Mapping[str, str]) -> Iterator[Fault]:
    """Yield why stops are not copied to where the user shares them, as `notyet ship` noted."""
    try:
        with open(default_path(environ) + SHIP_STATE, encoding="utf-8") as file:
            known = json.load(file)
        since, faults = exactly(known["failing_since"]), [str(line) for line in known["faults"]]
    except (OSError, ValueError, TypeError, KeyError):  # nothing was copied yet
        return
    for line in faults:
        why, _, fix = line.rpartition("; ")
        what = f"Stops are not shared since {since}: {visible(why or line)}."
        yield fault("share-failing", what, fix=visible(fix) if why else "run: notyet ship")


def _try_ledger(path: str) -> None:
    """Open the ledger as a stop would, and leave it as it is. Raises LedgerError and OSError."""
    folder = os.path.dirname(path)
    while folder and not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    with tempfile.TemporaryFile(dir=folder) as file:  # SQLite finds out only when it commits
        file.write(bytes(_ROOM))
    if not os.path.lexists(path) or (os.path.isfile(path) and not os.path.getsize(path)):
        return  # a stop will create it, or is creating it
    ledger = Ledger(path, patience=_PATIENCE, repair=False)
    try:
        ledger.connection.write(lambda _db: None)
    finally:
        ledger.connection.close()
