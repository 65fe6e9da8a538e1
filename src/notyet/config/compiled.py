"""What a file compiles to, and the record of trust that keeps it.

A record holds the text that was trusted and its compiled form, so a hook parses neither TOML nor
YAML. Records are JSON files in the XDG state folder, under the place of the file they are about.
"""

from __future__ import annotations

from _imp import source_hash  # a hash that is loaded already

from notyet import light
from notyet.config.find import state_folder, text_of, trusted_part
from notyet.config.records import place_of, record_path, work_tree
from notyet.core.record import Record, plain
from notyet.core.verdict import OUTCOMES
from notyet.light import dumps, is_remote, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from notyet.config.document import Mistake
    from notyet.core.event import StopEvent
    from notyet.core.gate import Command, Gate, Source, Starter

FORMAT = 2  # of compiled settings; raise it with every change that an older reader misreads
_MOST_BYTES = 64 * 1024 * 1024
# Keys that mean nothing alone.
_QUIET = frozenset({"format", "file", "limits", "reply", "root", "shares", "start_tell"})
_ENOENT = 2
_SEAL = "\0sealed "
DAMAGED = (ValueError, TypeError, KeyError, AttributeError)  # what reading a damaged record raises


class FileObserver(Record, kw_only=True):
    """A command that gets decisions with the outcomes in `on`, and cannot change them."""

    name: str
    check: Command
    timeout: float = 10.0
    on: tuple[str, ...] = OUTCOMES
    source: Source | None = None


class FileSettings(Record, kw_only=True):
    """One file's gates and settings, without defaults, so that files can be layered."""

    file: str
    gates: tuple[Gate, ...] = ()
    left_out: tuple[str, ...] = ()  # names of gates that were not made: see `thaw`
    starters: tuple[Starter, ...] = ()  # not in the compiled form: only a supervisor runs them
    limits: Mapping[str, Any] = {}
    members: tuple[str, ...] = ()  # globs of folders whose files add gates
    root: bool = False  # files in the folders above do not count
    observers: tuple[FileObserver, ...] = ()
    ledger: Mapping[str, Any] = {}  # how much is kept; ignored but in the user's own file
    # Not in the compiled form: an address may have a password, which is stored nowhere else.
    share: Mapping[str, Any] = {}
    shares: bool = False  # stops are copied to a team's database; ignored but in the user's file
    start_tell: bool | None = None
    read_hosts: tuple[str, ...] = ()
    # Where its gates run, and whose files are read: ssh://host/path, or "local" to override what
    # another file says.
    workspace: str = ""
    openclaw: str = ""  # the path of a file that sets `max_blocks` (J9)
    reply: Mapping[str, str] = {}  # by host
    notifications: Mapping[str, Any] = {}  # of a `.conclaude.yaml`
    mistakes: tuple[Mistake, ...] = ()
    warnings: tuple[Mistake, ...] = ()  # about what is right for its host, and not run by us


def freeze(settings: FileSettings) -> dict[str, Any]:
    """Return settings as plain JSON types, for a record.

    Mistakes, warnings and addresses are left out, and starters: a supervisor compiles them from
    the trusted text, so that hooks need not read them.
    """
    frozen = _said(settings)
    for name in ("mistakes", "warnings", "starters", "share"):
        frozen.pop(name, None)
    return {"format": FORMAT} | frozen


def _said(record: Record) -> dict[str, Any]:
    """Return the fields that are not at their defaults, as plain types."""
    values, defaults = record.__dict__, record._defaults  # noqa: SLF001  # our own
    return {
        name: _plain(values[name])
        for name in record._fields
        if name not in defaults or defaults[name] != values[name]
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return _said(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return dict(value) if hasattr(value, "items") else plain(value)


def thaw(frozen: Mapping[str, Any], event: StopEvent | None = None) -> FileSettings:
    """Return settings from their compiled form. Raises one of DAMAGED.

    Gates that cannot apply to an event are left out, because making all of them takes time.
    """
    values = dict(frozen)
    if values.pop("format") != FORMAT:
        raise ValueError(f"it is not compiled configuration of format {FORMAT}")
    gates = values.get("gates", ())
    if event is not None:
        wanted = [gate for gate in gates if _may_apply(gate.get("match", {}), event)]
        if len(wanted) < len(gates):
            names = {gate["name"] for gate in wanted}
            values["left_out"] = tuple([g["name"] for g in gates if g["name"] not in names])
            gates = wanted
    values["gates"] = tuple([_gate(**gate) for gate in gates])
    values["observers"] = tuple([_observer(**one) for one in values.get("observers", ())])
    values["read_hosts"] = tuple(values.get("read_hosts", ()))
    values["members"] = tuple(values.get("members", ()))
    return FileSettings(**values)


def _may_apply(match: dict[str, Any], event: StopEvent) -> bool:
    """Return False if a gate is certainly not for the agent of an event (D2)."""
    if event.scope not in match.get("events", ("agent",)):
        return False
    # Without an id, a note says that patterns miss it.
    if event.scope != "subagent" or not event.agent_id or "agents" not in match:
        return True
    from notyet.core.matcher import fits

    return bool(fits(match.get("kind", "glob"), tuple(match["agents"]), event))


def _gate(
    *,
    check: dict[str, Any],
    match: dict[str, Any] | None = None,
    source: dict[str, Any] | None = None,
    **rest: Any,
) -> Gate:
    from notyet.core.gate import Command, Gate, Match, Source

    options = check.get("options", {})
    if "when" in options or "paths" in options:
        raise ValueError("it is compiled configuration of an earlier version")
    if match:
        rest["match"] = Match(**match)
    return Gate(check=Command(**check), source=Source(**source) if source else None, **rest)


def _observer(
    *, check: dict[str, Any], source: dict[str, Any] | None = None, **rest: Any
) -> FileObserver:
    from notyet.core.gate import Command, Source

    if "on" in rest:
        rest["on"] = tuple(rest["on"])
    return FileObserver(check=Command(**check), source=Source(**source) if source else None, **rest)


class Trusted(Record, kw_only=True):
    """The record of a file: as it was trusted, and compiled."""

    path: str
    content: str
    compiled: Mapping[str, Any]
    at: float = 0.0  # when a person trusted it; 0: the user's own file, which needs no trust
    folder: str = ""  # the id of the file's folder, which another folder of that name does not have
    work_tree_of: str = ""  # of a note, see `note_work_trees`

    @property
    def is_sealed(self) -> bool:
        """True if the record does not have the text: see `sealed`."""
        return self.content.startswith(_SEAL)


def read_record(state: str, path: str, place: str = "") -> Trusted | None:
    """Return the record about a file; None when there is none that can be read.

    `place` is that of the file in its repository, if it is known.
    """
    if not state:
        return None
    try:
        place = place or place_of(path)
        record = loads(text_of(record_path(state, place), _MOST_BYTES))
        content, compiled, at = record["content"], record["compiled"], record["at"]
        is_sound = isinstance(content, str) and isinstance(compiled, dict)
        if record["path"] != place or not is_sound or not isinstance(at, int | float):
            return None
        folder = str(record.get("folder", ""))
        if place != path:
            compiled = _moved(compiled, *work_tree(path)[::-1])
        return Trusted(
            path=path,
            content=content,
            compiled=compiled,
            at=at,
            folder=folder,
            work_tree_of=str(record.get("work_tree_of", "")),
        )
    except (OSError, *DAMAGED):
        return None


def write_record(state: str, record: Trusted) -> None:
    """Write a record atomically. Raises OSError."""
    if not state:
        raise OSError(_ENOENT, "there is no home folder to store this in; set XDG_STATE_HOME")
    values = {**record.__dict__, "path": place_of(record.path)}
    if values["path"] != record.path:
        values["compiled"] = _moved(record.compiled, *work_tree(record.path))
    write_private(record_path(state, values["path"]), dumps(values))


def _moved(compiled: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    """Return compiled settings as those of the same file in another work tree.

    What a person wrote into the file stays as it is.
    """

    def path(text: str) -> str:
        return new + text[len(old) :] if f"{text}/".startswith(f"{old}/") else text

    def entry(one: Mapping[str, Any]) -> dict[str, Any]:
        check = dict(one["check"])
        if not is_remote(check.get("workspace", "")) and "dir" in check:
            check["dir"] = path(check["dir"])
        if "argv" in check:  # an executable names itself
            check["argv"] = [path(word) if word == file else word for word in check["argv"]]
        moved = {**one, "check": check}
        if one.get("source"):
            moved["source"] = {**one["source"], "file": path(one["source"]["file"])}
        return moved

    file = compiled["file"]
    moved = {name: path(it) if isinstance(it, str) else it for name, it in compiled.items()}
    for name in ("gates", "observers"):
        if name in compiled:
            moved[name] = [entry(one) for one in compiled[name]]
    return moved


def note_work_trees(state: str, paths: Iterable[str]) -> None:
    """Note of files in linked work trees that they were in force there. Raises OSError.

    An agent could remove the link to the repository, and the file. The note gives no trust; but
    with it, that is reported.
    """
    for path in paths:
        record = record_path(state, path)
        if not light.exists(record):
            note = Trusted(path=path, content="\0", compiled={}, work_tree_of=work_tree(path)[1])
            write_private(record, dumps(note.__dict__))


def remove_record(state: str, path: str) -> bool:
    """Remove the record about a file; return False when there was none."""
    if not state:
        return False
    own = read_record(state, path, path)  # of a file that is in a linked work tree only now
    try:
        light.unlink(record_path(state, path if own is not None and own.at else place_of(path)))
    except FileNotFoundError:
        return False
    return True


def write_private(path: str, text: str | bytes, *, is_lasting: bool = True) -> None:
    """Write a file that only its user may read, whole or not at all. Raises OSError.

    One that need not outlast a power failure is written faster.
    """
    from notyet.ledger.connection import make_private

    beside = f"{path}.{light.getpid()}"
    try:
        make_private(beside)
        with open(beside, "wb") as file:
            file.write(text.encode() if isinstance(text, str) else text)
            if is_lasting:
                file.flush()
                light.fsync(file.fileno())
        light.replace(beside, path)
    finally:
        if light.exists(beside):
            light.unlink(beside)


def is_unchanged(record: Trusted, text: str, *, is_users: bool = False) -> bool:
    """Return True if a file with this text is as it was trusted.

    A record of the user's own file, which needed no trust, counts only while `is_users`.
    """
    content = sealed(text) if record.is_sealed else text
    return record.content == content and bool(record.at or is_users)


def sealed(text: str) -> str:
    """Return what a record keeps of a text that may have a password: enough to know it again."""
    return _SEAL + source_hash(0, text.encode("utf-8", "surrogateescape")).hex()


def are_silent(paths: list[str], scope: str, environ: Mapping[str, str]) -> bool:
    """Return True if files are as they were trusted, and nothing in them matters to such an agent.

    `scope` is "agent" or "subagent", as in a StopEvent.
    """
    state = state_folder(environ)
    try:
        for path in paths:
            record = read_record(state, path)
            if record is None or not is_unchanged(record, trusted_part(path, text_of(path))):
                return False
            compiled = dict(record.compiled)
            for gate in compiled.pop("gates", ()):
                if scope in gate.get("match", {}).get("events", ("agent",)):
                    return False
            if compiled["format"] != FORMAT or not _QUIET.issuperset(compiled):
                return False
    except (OSError, *DAMAGED):
        return False
    return True
