"""Faults of our own side: variables, the switch, configuration files, the ledger."""

from __future__ import annotations

import os
import tempfile
from shlex import quote
from typing import TYPE_CHECKING

from notyet.config.files import ConfigFile, native_files, real_folder, root_of
from notyet.config.find import OFF_VARIABLE, has_record, state_folder
from notyet.config.host_files import host_files
from notyet.config.lint import lint
from notyet.config.off import switched_off
from notyet.config.records import read_record
from notyet.config.settings import Settings
from notyet.config.trust import candidate
from notyet.core.gate import Match, place_of
from notyet.core.record import replace
from notyet.core.remote import is_remote
from notyet.core.text import visible
from notyet.errors import LedgerBusy, LedgerError, LedgerNeedsRepair
from notyet.hook.unusual import PROBE
from notyet.hosts.files import ABOVE
from notyet.ledger.connection import default_path
from notyet.ledger.repair import on_a_network
from notyet.ledger.stops import Ledger
from notyet.status.fault import fault
from notyet.status.fault import place as at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from notyet.config.load import Setup
    from notyet.config.trust import Candidate
    from notyet.status.fault import Fault

_OFF_VARIABLES = {
    OFF_VARIABLE: "agents started with it are not checked",
    "NOTYET_INSIDE": "it marks the work of a gate, which is not checked",
    PROBE: "it marks stops that `notyet status` makes up",
}
_PATIENCE = 2.0  # seconds for the ledger


def own_faults(
    cwd: str, environ: Mapping[str, str], setup: Setup, *, is_asked: bool = False
) -> list[Fault]:
    """Return what is wrong on our side; `is_asked`: the gates just ran, wherever they are."""
    return [
        *variable_faults({name: (environ.get(name, ""), "") for name in _OFF_VARIABLES}),
        *_switch(cwd, environ),
        *_configuration(cwd, environ, setup),
        *(() if is_asked else _workspace(setup)),
        *ledger_faults(environ),
    ]


def variable_faults(added: Mapping[str, tuple[str, str]]) -> Iterator[Fault]:
    """Yield the variables that keep every hook from checking, given with their places."""
    for name, effect in _OFF_VARIABLES.items():
        value, where = added.get(name, ("", ""))
        is_on = bool(switched_off("", {name: value})) if name == OFF_VARIABLE else value
        if is_on:
            fix = "remove it" if where else f"run: unset {name}"
            yield fault("off-by-variable", f"{name} is set: {effect}.", where=where, fix=fix)


def _switch(cwd: str, environ: Mapping[str, str]) -> Iterator[Fault]:
    others = {name: value for name, value in environ.items() if name != OFF_VARIABLE}
    off = switched_off(cwd, others)
    if off:
        everywhere = " --global" if " everywhere" in off else ""
        yield fault("switched-off", f"notyet is {off}.", fix=f"run: notyet on{everywhere}")


def _configuration(cwd: str, environ: Mapping[str, str], setup: Setup) -> Iterator[Fault]:
    told = set()
    for file in _files(cwd, environ, setup):
        for found in _file(file, environ, setup):
            told.add(file.path)
            yield found
    for path in setup.unreadable:
        if path not in told:
            told.add(path)
            yield _unreadable(path)
    yield from _programs(setup, environ)
    if not setup.gates and not told:
        what = "No gate is in force here, so agents are not checked."
        yield fault("no-gates", what, fix="run: notyet init")


def _workspace(setup: Setup) -> Iterator[Fault]:
    if setup.workspace:
        what = f"The files of agents here are in {setup.workspace}, which was not connected to."
        fix = f"to see whether it can be reached, run: notyet trust --show {quote(setup.workspace)}"
        yield fault("workspace-not-asked", what, fix=fix)


def _programs(setup: Setup, environ: Mapping[str, str]) -> Iterator[Fault]:
    """Yield the gates whose program or folder is missing."""
    for gate in setup.gates:
        source = gate.source
        if source is None or is_remote(source.file) or place_of(gate, setup.workspace):
            continue
        only = Settings(file=source.file, gates=(replace(gate, paths=(), match=Match()),))
        for warning in lint(only, None, (), environ):
            where = at(source.file, source.line)
            fix = "install it, or correct the gate; then run: notyet check"
            yield fault("gate-may-not-start", f"{warning.message}.", where=where, fix=fix)


def _unreadable(path: str) -> Fault:
    """Return the fault of a file that cannot be read, and that is not among those of this place."""
    if os.path.basename(path) not in ABOVE:
        what = "It cannot be read, so none of its gates is in force."
        return fault("config-unreadable", what, where=at(path), fix="make it readable")
    what = "It was trusted with another version of notyet, and must be trusted again."
    fix = f"run: {ConfigFile(path=path, kind=ABOVE[os.path.basename(path)]).command}"
    return fault("config-unreadable", what, where=at(path), fix=fix)


def _files(cwd: str, environ: Mapping[str, str], setup: Setup) -> list[ConfigFile]:
    """Return the configuration files of this place, as the hook finds them."""
    state = state_folder(environ)

    def is_trusted(path: str) -> bool:
        return has_record(state, path)

    place = real_folder(cwd)
    files = native_files(place, environ, is_trusted)
    for host in dict.fromkeys(name for file in files for name in _hosts_read(file, environ)):
        files += host_files(host, root_of(place), environ, is_trusted)
    known = {file.path for file in files}
    return files + [file for file in setup.untrusted if file.path not in known]


def _hosts_read(file: ConfigFile, environ: Mapping[str, str]) -> tuple[str, ...]:
    try:
        return () if file.is_gone else candidate(file, environ).settings.read_hosts
    except OSError:
        return ()


def _file(file: ConfigFile, environ: Mapping[str, str], setup: Setup) -> Iterator[Fault]:
    where = at(file.path)
    if file.is_gone:
        what = "It was trusted and then removed; what was trusted stays in force."
        fix = f"put it back, or run: {file.command} --revoke"
        yield fault("config-removed", what, where=where, fix=fix)
        return
    try:
        found = candidate(file, environ)
    except OSError as error:
        stays = _stays(was_trusted=read_record(state_folder(environ), file.path) is not None)
        what = f"It cannot be read: {error.strerror or error}{stays}."
        is_missing = isinstance(error, FileNotFoundError)
        fix = "write it, or name another file" if is_missing else "make it readable"
        yield fault("config-unreadable", what, where=where, fix=fix)
        return
    is_untrusted = any(one.path == file.path for one in setup.untrusted)
    yield from _judged(found, where, is_untrusted=is_untrusted)


def _judged(found: Candidate, where: str, *, is_untrusted: bool) -> Iterator[Fault]:
    stays = _stays(was_trusted=found.before is not None and not found.file.own and not is_untrusted)
    mistake = next(iter(found.settings.mistakes), None)
    command = f"run: {found.file.command}"
    if mistake is not None:
        more = len(found.settings.mistakes) - 1
        others = f" (and {more} more)" if more else ""
        hint = mistake.hint or "correct it"
        yield fault(
            "config-invalid",
            f"It has a mistake{others}: {visible(mistake.message)}{stays}.",
            where=at(mistake.file, mistake.line, mistake.column),
            fix=hint if found.file.own else f"{hint}, and {command}",
        )
    elif is_untrusted:
        what = "It is not trusted, so none of its gates is in force."
        yield fault("config-untrusted", what, where=where, fix=command)
    elif not found.file.own and not found.is_trusted:
        what = "It changed since you trusted it, and the changes are not in force"
        yield fault("config-changed", f"{what}{stays}.", where=where, fix=command)


def _stays(*, was_trusted: bool) -> str:
    return "; what was trusted stays in force" if was_trusted else ""


def ledger_faults(environ: Mapping[str, str]) -> Iterator[Fault]:
    """Yield what is wrong with the ledger, without which no agent is sent back."""
    path = default_path(environ)
    fix = "set NOTYET_LEDGER to a file on a local disk that you can write"
    effect = "without the ledger no agent is sent back"
    if not path:
        what = f"There is no home folder to keep the ledger in; {effect}."
        yield fault("ledger-unusable", what, fix="set HOME, or XDG_STATE_HOME")
        return
    try:
        warnings = _tried(path)
    except LedgerNeedsRepair as error:
        what = f"The ledger cannot be read: {_detail(error)}."
        yield fault("ledger-at-risk", what, where=at(path), fix="nothing, it is done for you")
    except LedgerBusy as error:
        yield fault("ledger-at-risk", f"{_detail(error)}.", where=at(path), fix="try again")
    except (LedgerError, OSError) as error:
        what = f"The ledger cannot be written: {_detail(error)}; {effect}."
        yield fault("ledger-unusable", what, where=at(path), fix=fix)
    else:
        for warning in warnings:
            yield fault("ledger-at-risk", f"{visible(warning)}.", where=at(path), fix=fix)


def _tried(path: str) -> tuple[str, ...]:
    """Open the ledger as a stop would, and write nothing; return its warnings."""
    path = os.path.realpath(path)
    if not os.path.lexists(path):
        folder = os.path.dirname(path)
        while folder and not os.path.lexists(folder):
            folder = os.path.dirname(folder)
        with tempfile.TemporaryFile(dir=folder):
            return ()
    if os.path.isfile(path) and not os.path.getsize(path):  # a stop is creating it
        return on_a_network(path)
    ledger = Ledger(path, patience=_PATIENCE, repair=False)
    try:
        ledger.connection.write(lambda _db: None)
    finally:
        ledger.connection.close()
    return on_a_network(path)


def _detail(error: LedgerError | OSError) -> str:
    if isinstance(error, LedgerError):
        return visible(error.detail)
    return str(error.strerror or error)
