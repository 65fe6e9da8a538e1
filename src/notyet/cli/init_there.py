"""What `notyet init` says where there is a `notyet.toml` already: what it lacks, and its trust."""

from __future__ import annotations

import os

from notyet.cli.init_text import Trial, lines
from notyet.cli.person import refuse
from notyet.config.files import NATIVE, ConfigFile, user_folder
from notyet.config.trust import candidate
from notyet.core.command import Command
from notyet.core.record import replace
from notyet.core.text import visible
from notyet.dialects.shell_words import commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notyet.config.trust import Candidate
    from notyet.core.gate import Gate
    from notyet.project.proposal import Proposal


def leave_alone(path: str, found: Sequence[Proposal]) -> int:
    """Say what would be added to a file that is there already, and whether it is in force."""
    link = f" (a link to {visible(os.readlink(path))})" if os.path.islink(path) else ""
    try:
        known = candidate(ConfigFile(path=path, kind=NATIVE), os.environ)
    except OSError as error:
        return refuse("init", f"{visible(path)}{link}: {error.strerror}; it is left alone")
    print(f"{visible(path)}{link} is there already, and is left alone")
    missing = [Trial(proposal=one) for one in _missing(known.settings.gates, found)]
    if missing:
        print("it does not have these gates; to add one, copy it, and run: notyet trust")
        for trial in missing:
            print("\n" + "\n".join(f"  {line}" for line in lines(trial)))
    elif not found and not known.settings.gates:
        print("it has no gate, and nothing that checks this project was found")
    else:
        print("it has a gate for all that was found; see them with: notyet status")
    untrusted = _untrusted(known)
    if untrusted:
        print(f"{untrusted}; look at it, and put it into force with: notyet trust")
    return 1


def _untrusted(known: Candidate) -> str:
    """Say that gates of a file are not in force; nothing where they are."""
    is_own = os.path.dirname(known.file.path) == os.path.realpath(user_folder(os.environ))
    if is_own or known.is_trusted or not known.settings.gates:
        return ""
    if known.before is None:
        return "nobody trusted it yet, so none of its gates is in force"
    return "it changed since it was trusted, so what it said then is in force"


def _missing(gates: Sequence[Gate], found: Sequence[Proposal]) -> list[Proposal]:
    """Return what no gate runs, under names that are free."""
    runs = [run for gate in gates for run in _runs(gate)]
    taken = {gate.name for gate in gates}
    missing = [one for one in found if (one.run.split(), one.dir) not in runs]
    return [
        replace(one, name=f"{one.name}-{one.tool}") if one.name in taken else one for one in missing
    ]


def _runs(gate: Gate) -> Iterator[tuple[list[str], str]]:
    """Yield every command that a gate runs, and the folder in the project where it does."""
    check = gate.check
    if not isinstance(check, Command):
        return
    folder = os.path.dirname(gate.source.file) if gate.source else ""
    below = os.path.relpath(check.dir, folder) if check.dir else "."
    where = "" if below == "." else below
    yield list(check.argv), where
    for words, _ in commands(check.script):
        if words[:1] == ["cd"]:  # what follows runs elsewhere
            return
        yield words, where
