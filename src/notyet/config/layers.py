"""Files of configuration as layers: what of each is in force, and what they come to together."""

from __future__ import annotations

from notyet.config.amended import is_by_path, kept_here, refused
from notyet.config.compiled import thaw
from notyet.config.files import NATIVE, parent
from notyet.config.merging import merged_gates, merged_starters
from notyet.config.setup import Setup
from notyet.config.store import Trusted, has_record, read_record, write_record
from notyet.core.command import Command
from notyet.core.record import replace
from notyet.core.remote import LOCAL, is_remote
from notyet.core.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.config.files import ConfigFile
    from notyet.config.settings import Settings
    from notyet.core.starter import Starter

_STARTING = ("claude", "codex", "codex-toml")  # kinds of files with hooks for starts


def _says_something(file: ConfigFile, text: str | None) -> bool:
    """Tell whether a file holds anything that would be run: most settings of hosts do not.

    A supervisor looks at the files of every host, and should not ask to trust them for nothing.
    """
    settings = _read(file, text or "")
    return bool(settings.gates or settings.starters or settings.mistakes or file.kind == "notyet")


def _read(file: ConfigFile, text: str, workspace: str = "") -> Settings:
    from notyet.config.compile import compile_text

    return compile_text(text, file.path, file.kind, file.tree, workspace=workspace)


class Loaded:
    """Files as they are added, one layer over the other."""

    def __init__(self, state: str, agent: str = "", workspace: str = "") -> None:
        self._state = state
        self._agent = agent
        # Whoever asks says so, not a file.
        self._is_elsewhere, self._is_here = is_remote(workspace), workspace == LOCAL
        self._starters: list[tuple[ConfigFile, Starter]] = []
        self._layers: list[tuple[ConfigFile, Settings]] = []
        self._seen: set[str] = set()
        self._untrusted: list[ConfigFile] = []
        self._unreadable: list[str] = []
        self._unseen: list[str] = []
        self.not_run: list[str] = []  # programs that nobody could look at
        self.warnings: list[str] = []
        self.read_hosts: tuple[str, ...] = ()
        self.project = ""  # the folder of the project's own file that is in force
        self.workspace = workspace if self._is_elsewhere else ""
        self.named_by: Trusted | None = None  # the file that named the workspace
        self.unreached = ""

    def is_trusted(self, path: str) -> bool:
        """Tell whether there is a record about a file, which need not be there itself."""
        return has_record(self._state, path)

    def add(self, file: ConfigFile) -> None:
        """Take a file's compiled settings: of this version, or of the last one trusted."""
        if file.path in self._seen:  # a project in the user's home: their own file
            return
        self._seen.add(file.path)
        text, why = self._text_of(file)
        known = self._known(file, text)
        if self._adds_nothing(file, known, text):
            self.project = parent(file.path)
        elif known is None and text is None:
            self._unreadable.append(file.path)
            if file.is_gone:
                self.warnings.append(
                    f"{visible(file.path)} was removed since it was trusted, and what was trusted "
                    f"of it cannot be read; run: {file.command} --revoke"
                )
        elif known is None or (known.content != text and not self._stays(file, known)):
            if not self._agent or _says_something(file, text):
                self._untrusted.append(file)
        else:
            self._put_in_force(file, known, text, why)

    def add_draft(self, file: ConfigFile, text: str) -> None:
        """Take what a file would say, for comparing: nobody trusted it, and nothing is kept."""
        settings = _read(file, text)
        self._seen.add(file.path)
        self.project = parent(file.path)
        draft = Trusted(path=file.path, content=text, compiled={})
        settings = self._placed(file, draft, settings)
        self._layers.append((file, settings))
        self.read_hosts = (*self.read_hosts, *settings.read_hosts)

    def _adds_nothing(self, file: ConfigFile, known: Trusted | None, text: str | None) -> bool:
        """Tell whether a file in the workspace says what the one here says that named it.

        Else it would move gates of that one, and keep them as they were. But somebody there could
        get rid of what a person trusted there by such a copy; so the last thing that was trusted
        of both counts.
        """
        named = self.named_by
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
        self.warnings.append(
            f"{visible(file.path)} changed since it was trusted, and says the same as "
            f"{visible(named.path)}: that one alone is in force; run: {file.command} --revoke"
        )
        return True

    def _known(self, file: ConfigFile, text: str | None) -> Trusted | None:
        """Return the record that counts for a file; of the user's own, one made just now."""
        known = read_record(self._state, file.path)
        if file.own and text is not None and (known is None or known.content != text):
            return self._compiled_anew(file, text)
        if known is not None and not known.at and not file.own:
            return None  # it was the user's own once; nobody was asked about it
        return known

    def _put_in_force(self, file: ConfigFile, known: Trusted, text: str | None, why: str) -> None:
        settings = self._thawed(file, known)
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
            self.not_run += [file.path] if file.tree.unseen else []
        self._say_what_counts(file, known, text, is_run=not is_program)
        if file.kind == NATIVE and not file.own:
            self.project = parent(file.path)
            if settings.ledger:  # it would remove what other projects want to look back at
                self.warnings.append(
                    f"{visible(file.path)}: [ledger] is obeyed in your own notyet.toml only; move "
                    "it to ~/.config/notyet/notyet.toml"
                )
        settings = self._placed(file, known, settings)
        if self._agent and file.kind in _STARTING:
            self._start(file, known)
        self._layers.append((file, settings))
        self.read_hosts = (*self.read_hosts, *settings.read_hosts)

    def _say_what_counts(
        self, file: ConfigFile, known: Trusted, text: str | None, *, is_run: bool
    ) -> None:
        if text is None and file.tree.unseen:
            self._unseen.append(file.path)  # which is said once for all files of a machine
        elif file.is_gone:
            stays = "that version stays in force until you"
            rest = stays if is_run else "it cannot be run: put it back, or"
            self.warnings.append(
                f"{visible(file.path)} was removed since it was trusted; {rest} run: "
                f"{file.command} --revoke"
            )
        elif text is not None and known.content != text:
            rest = "that version stays in force" if is_run else "it is not run"
            self.warnings.append(
                f"{visible(file.path)} changed since it was trusted; {rest} until you run: "
                f"{file.command}"
            )

    def _placed(self, file: ConfigFile, known: Trusted, settings: Settings) -> Settings:
        """Follow what a file says of where the project is; return its settings as they are then."""
        if not settings.workspace or self._is_elsewhere:
            return settings
        if self._is_here:
            return _read(file, known.content, LOCAL)
        if settings.workspace == LOCAL:
            self.workspace, self.named_by = "", None
        else:
            self.workspace, self.named_by = settings.workspace, known
        return settings

    def _start(self, file: ConfigFile, known: Trusted) -> None:
        for starter in _read(file, known.content).starters:
            check = starter.check
            assert isinstance(check, Command)
            if self._is_elsewhere and not check.workspace:
                starter = replace(starter, check=replace(check, workspace=LOCAL))  # noqa: PLW2901  # the same one, kept here
            self._starters.append((file, starter))

    def _stays(self, file: ConfigFile, known: Trusted) -> bool:
        """Tell whether the last trusted version may stay in force, now that the file differs.

        Another folder under the same name is another project: nobody trusted it.
        """
        now = file.tree.folder_id(file.path)
        if not now and file.tree.unseen:
            return True
        return file.own or not known.folder or known.folder == now

    def _thawed(self, file: ConfigFile, known: Trusted) -> Settings | None:
        try:
            return thaw(dict(known.compiled))
        except ValueError:  # of another version of notyet, or damaged
            if file.kind != "conclaude":
                return self._thawed_anew(file, known)
        # Reading YAML needs a package that a hook does not look for.
        self._unreadable.append(file.path)
        self.warnings.append(
            f"{visible(file.path)} was trusted with another version of notyet; run: {file.command}"
        )
        return None

    def _text_of(self, file: ConfigFile) -> tuple[str | None, str]:
        """Return what a file says, or why nobody knows."""
        if file.is_gone:
            return None, "it was removed"
        if file.tree.unseen and not file.tree.exists(file.path):
            return None, file.tree.unseen
        try:
            return file.tree.text_of(file.path), ""
        except (OSError, ValueError) as error:
            reason = str(getattr(error, "strerror", None) or error)
            self.warnings.append(f"{visible(file.path)} cannot be read: {reason}")
            return None, reason

    def _compiled_anew(self, file: ConfigFile, text: str) -> Trusted | None:
        """Compile a file of the user's own, and keep that for the next stop."""
        from notyet.config.compiled import freeze

        settings = _read(file, text)
        self.warnings += [str(said) for said in (*settings.mistakes, *settings.warnings)]
        record = Trusted(path=file.path, content=text, compiled=freeze(settings))
        # Mistakes are to be said again, and OpenClaw's file may say another number by then (J9).
        if self._state and not settings.mistakes and not settings.openclaw:
            try:
                write_record(self._state, record)
            except OSError as error:
                self.warnings.append(f"{self._state} cannot be written: {error.strerror}")
        return record

    def _thawed_anew(self, file: ConfigFile, known: Trusted) -> Settings:
        """Compile the trusted text again: another version of notyet wrote the record."""
        settings = _read(file, known.content)
        self.warnings += [str(mistake) for mistake in settings.mistakes]
        return settings

    def has_layer(self, machine: str) -> bool:
        """Tell whether a file of that machine is in force, and can be."""
        paths = [file.path for file, _ in self._layers if file.path not in self.not_run]
        return any(path.startswith(machine + "/") for path in paths)

    def _kept(self, file: ConfigFile, settings: Settings) -> tuple[ConfigFile, Settings]:
        """Return a layer; what a file here says, is said of this machine."""
        is_here = self.workspace and not is_remote(file.path)
        return file, kept_here(settings) if is_here else settings

    def setup(self) -> Setup:
        """Merge the layers: what comes later wins."""
        limits: dict[str, Any] = {}
        limit_files: dict[str, str] = {}
        reply: dict[str, str] = {}
        ledger: dict[str, Any] = {}
        tell = False
        for file, settings in self._layers:
            limits |= settings.limits
            limit_files |= dict.fromkeys(settings.limits, file.path)
            reply |= settings.reply
            ledger |= settings.ledger if file.own else {}
            tell = tell if settings.start_tell is None else settings.start_tell
        observers = {o.name: o for _, settings in self._layers for o in settings.observers}
        notifications = [s.notifications for _, s in self._layers if s.notifications]
        return Setup(
            gates=merged_gates([self._kept(*layer) for layer in self._layers]),
            starters=merged_starters(self._starters),
            limits=limits,
            limit_files=limit_files,
            observers=tuple(observers.values()),
            ledger=ledger,
            notifications=tuple(notifications),
            reply=reply,
            start_tell=tell,
            workspace=self.workspace,
            named_by=self.named_by.path if self.named_by is not None else "",
            unreached=self.unreached,
            untrusted=tuple(self._untrusted),
            unreadable=tuple(self._unreadable),
            unseen=tuple(self._unseen),
            warnings=tuple(self.warnings),
        )
