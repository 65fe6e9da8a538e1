"""What counts of a file about which there is something to say.

It changed since it was trusted, or was removed, or nobody trusted it; it cannot be read, or its
record cannot; it is a program, or another host's; or it says that the project is elsewhere.
"""

from __future__ import annotations

from notyet.config.files import NATIVE, parent
from notyet.config.layers import is_by_path, refused
from notyet.config.settings import thaw, thaw_gates
from notyet.config.trust import Trusted, read_record, write_record
from notyet.core.address import LOCAL, is_remote
from notyet.core.gate import Command
from notyet.core.record import replace
from notyet.core.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.config.files import ConfigFile
    from notyet.config.layers import Loaded
    from notyet.config.settings import Settings

_STARTING = ("claude", "codex", "codex-toml")  # kinds of files with hooks for starts


def add_differing(loaded: Loaded, file: ConfigFile) -> None:
    """Add a file of whatever kind, and say what is to be said."""
    text, why = _text_of(loaded, file)
    known = _known(loaded, file, text)
    if _adds_nothing(loaded, file, known, text):
        loaded.project = parent(file.path)
    elif known is None and text is None:
        loaded.unreadable.append(file.path)
        if file.is_gone:
            loaded.warnings.append(
                f"{visible(file.path)} was removed since it was trusted, and what was trusted "
                f"of it cannot be read; run: {file.command} --revoke"
            )
    elif known is None or (known.content != text and not _stays(file, known)):
        if not loaded.agent or _says_something(file, text):
            loaded.untrusted.append(file)
    else:
        _put_in_force(loaded, file, known, text, why)


def add_draft(loaded: Loaded, file: ConfigFile, text: str) -> None:
    """Add what a file would say, for comparing: nobody trusted it, and nothing is kept."""
    settings = _read(file, text)
    loaded.is_new(file)
    loaded.project = parent(file.path)
    draft = Trusted(path=file.path, content=text, compiled={})
    loaded.put(file, _placed(loaded, file, draft, settings))


def read_gates(loaded: Loaded) -> None:
    """Read the gates of unchanged files that were left unread so far."""
    layers, loaded.layers = loaded.layers, []
    for file, settings in layers:
        found = loaded.unread.pop(file.path, None)
        try:
            gates = settings.gates if found is None else thaw_gates(found.gates())
        except (ValueError, TypeError):  # damaged, so that more is to be said
            add_differing(loaded, file)
        else:
            loaded.layers.append((file, replace(settings, gates=gates)))


def _text_of(loaded: Loaded, file: ConfigFile) -> tuple[str | None, str]:
    """Return what a file says, or why nobody knows."""
    if file.is_gone:
        return None, "it was removed"
    if file.tree.unseen and not file.tree.exists(file.path):
        return None, file.tree.unseen
    try:
        return file.tree.text_of(file.path), ""
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error)
        loaded.warnings.append(f"{visible(file.path)} cannot be read: {reason}")
        return None, reason


def _known(loaded: Loaded, file: ConfigFile, text: str | None) -> Trusted | None:
    """Return the record that counts for a file; of the user's own, one made just now."""
    known = read_record(loaded.state, file.path)
    if file.own and text is not None and (known is None or known.content != text):
        return _compiled_anew(loaded, file, text)
    if known is not None and not known.at and not file.own:
        return None  # it was the user's own once; nobody was asked about it
    return known


def _compiled_anew(loaded: Loaded, file: ConfigFile, text: str) -> Trusted | None:
    """Compile a file of the user's own, and keep that for the next stop."""
    from notyet.config.compile import freeze

    settings = _read(file, text)
    loaded.warnings += [str(said) for said in (*settings.mistakes, *settings.warnings)]
    record = Trusted(path=file.path, content=text, compiled=freeze(settings))
    # Mistakes are to be said again, and OpenClaw's file may say another number by then (J9).
    if loaded.state and not settings.mistakes and not settings.openclaw:
        try:
            write_record(loaded.state, record)
        except OSError as error:
            loaded.warnings.append(f"{loaded.state} cannot be written: {error.strerror}")
    return record


def _read(file: ConfigFile, text: str, workspace: str = "") -> Settings:
    from notyet.config.compile import compile_text

    return compile_text(text, file.path, file.kind, file.tree, workspace=workspace)


def _says_something(file: ConfigFile, text: str | None) -> bool:
    """Tell whether a file holds anything that would be run: most settings of hosts do not.

    A supervisor looks at the files of every host, and should not ask to trust them for nothing.
    """
    settings = _read(file, text or "")
    return bool(settings.gates or settings.starters or settings.mistakes or file.kind == NATIVE)


def _adds_nothing(
    loaded: Loaded, file: ConfigFile, known: Trusted | None, text: str | None
) -> bool:
    """Tell whether a file in the workspace says what the one here says that named it.

    Else it would move gates of that one, and keep them as they were. But somebody there could
    get rid of what a person trusted there by such a copy; so the last thing that was trusted
    of both counts.
    """
    named = loaded.named_by
    if named is None or file.kind != NATIVE or not is_remote(file.path):
        return False
    if text is None and known is not None:
        text = known.content
    if text != named.content:
        return False
    if known is None or known.content == text:
        return True
    if known.at >= named.at:
        return False
    loaded.warnings.append(
        f"{visible(file.path)} changed since it was trusted, and says the same as "
        f"{visible(named.path)}: that one alone is in force; run: {file.command} --revoke"
    )
    return True


def _stays(file: ConfigFile, known: Trusted) -> bool:
    """Tell whether the last trusted version may stay in force, now that the file differs.

    Another folder under the same name is another project: nobody trusted it.
    """
    now = file.tree.folder_id(file.path)
    if not now and file.tree.unseen:
        return True
    return file.own or not known.folder or known.folder == now


def _put_in_force(
    loaded: Loaded, file: ConfigFile, known: Trusted, text: str | None, why: str
) -> None:
    settings = _thawed(loaded, file, known)
    if settings is None:
        return
    is_program = any(map(is_by_path, settings.gates))
    if is_program and text is not None and known.content != text:
        # The file is the command, and nobody has seen this one.
        settings = refused(settings, f"{visible(file.path)} changed since it was trusted")
    elif is_program and text is None:
        # It could be any program by now. But it is not forgotten, or whoever can keep us from
        # looking would get rid of it.
        unseen = "was removed" if file.is_gone else f"could not be looked at: {why}"
        settings = refused(settings, f"{visible(file.path)} {unseen}")
        loaded.not_run += [file.path] if file.tree.unseen else []
    _say_what_counts(loaded, file, known, text, is_run=not is_program)
    if file.kind == NATIVE and not file.own and settings.ledger:
        # It would remove what other projects want to look back at.
        loaded.warnings.append(
            f"{visible(file.path)}: [ledger] is obeyed in your own notyet.toml only; move "
            "it to ~/.config/notyet/notyet.toml"
        )
    settings = _placed(loaded, file, known, settings)
    if loaded.agent and file.kind in _STARTING:
        _start(loaded, file, known)
    loaded.put(file, settings)


def _thawed(loaded: Loaded, file: ConfigFile, known: Trusted) -> Settings | None:
    try:
        return thaw(dict(known.compiled))
    except ValueError:  # of another version of notyet, or damaged
        if file.kind != "conclaude":
            return _thawed_anew(loaded, file, known)
    # Reading YAML needs a package that a hook does not look for.
    loaded.unreadable.append(file.path)
    loaded.warnings.append(
        f"{visible(file.path)} was trusted with another version of notyet; run: {file.command}"
    )
    return None


def _thawed_anew(loaded: Loaded, file: ConfigFile, known: Trusted) -> Settings:
    """Compile the trusted text again: another version of notyet wrote the record."""
    settings = _read(file, known.content)
    loaded.warnings += [str(mistake) for mistake in settings.mistakes]
    return settings


def _say_what_counts(
    loaded: Loaded, file: ConfigFile, known: Trusted, text: str | None, *, is_run: bool
) -> None:
    if text is None and file.tree.unseen:
        loaded.unseen.append(file.path)  # which is said once for all files of a machine
    elif file.is_gone:
        stays = "that version stays in force until you"
        rest = stays if is_run else "it cannot be run: put it back, or"
        loaded.warnings.append(
            f"{visible(file.path)} was removed since it was trusted; {rest} run: "
            f"{file.command} --revoke"
        )
    elif text is not None and known.content != text:
        rest = "that version stays in force" if is_run else "it is not run"
        loaded.warnings.append(
            f"{visible(file.path)} changed since it was trusted; {rest} until you run: "
            f"{file.command}"
        )


def _placed(loaded: Loaded, file: ConfigFile, known: Trusted, settings: Settings) -> Settings:
    """Follow what a file says of where the project is; return its settings as they are then."""
    if not settings.workspace or loaded.is_elsewhere:
        return settings
    if loaded.is_here:
        return _read(file, known.content, LOCAL)
    if settings.workspace == LOCAL:
        loaded.workspace, loaded.named_by = "", None
    else:
        loaded.workspace, loaded.named_by = settings.workspace, known
    return settings


def _start(loaded: Loaded, file: ConfigFile, known: Trusted) -> None:
    for starter in _read(file, known.content).starters:
        check = starter.check
        assert isinstance(check, Command)
        if loaded.is_elsewhere and not check.workspace:
            starter = replace(starter, check=replace(check, workspace=LOCAL))  # noqa: PLW2901  # the same one, kept here
        loaded.starters.append((file, starter))
