"""`Host`: what notyet knows about one program that runs agents, as data.

A host's module makes one instance, `HOST`. `ClaudeLike` has Claude Code's values, which most hosts
copied; their modules say what differs. A host that cannot say it by data overrides a method. These
modules are loaded at every event, so they import nothing else; methods import what they need.
"""

from __future__ import annotations

from notyet.core.record import Record
from notyet.hosts import command_dialect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from notyet.core.event import Scope, StartEvent, StopEvent
    from notyet.core.matcher import Kind
    from notyet.core.verdict import Allow, Block, Halt

    # Where a host keeps a file, its path below that folder, and the kind of file it is.
    File = tuple[str, str, str]


class Reply(Record, kw_only=True):
    """What a host gets from us: stdout, stderr and the exit code."""

    stdout: str = ""
    stderr: str = ""
    code: int = 0


class CommandLine(Record, kw_only=True):
    """How `notyet with` runs a host without its user interface.

    The prompt comes on stdin, or where `{prompt}` stands. `{args}` and `{id}` stand for the user's
    arguments and for the id of the conversation. `output` names the format of stdout, `unknown`
    what the host prints about a conversation it does not have, and `taken` what it prints if it
    already has one of this id.
    """

    start: str
    resume: str
    output: str
    install: str  # the command that installs the host
    unknown: tuple[str, ...] = ()
    taken: str = ""
    judge: str = ""  # arguments with which it answers a prompt on stdin and cannot change a file
    sums_up: bool = False  # its token counts are those of the whole conversation
    takes_names: bool = False  # an id that is not a UUID names a conversation
    renames: bool = False  # its hooks, or a continued conversation, have another id
    answers_early: bool = False  # before hooks that may send it back, and it works on

    @staticmethod
    def words(form: str, args: Sequence[str], session: str, prompt: str = "") -> list[str]:
        """Return the arguments of one turn; `form` is `start` or `resume`."""
        out: list[str] = []
        for word in form.split():
            filled = word.replace("{id}", session).replace("{prompt}", prompt)
            out += args if word == "{args}" else [filled]
        return out

    @property
    def chooses(self) -> bool:
        """Whether we choose the id: then a first turn that was interrupted can be continued."""
        return "{id}" in self.start


class FolderTrust(Record, kw_only=True):
    """Where a host remembers the folders whose hooks its user trusts; it skips others' silently.

    `file` is below the user's home, or moved with the host's own folder there, and holds
    TOML, or JSON that may have lines of comment; at `keys` stands a list of folders, or a table of
    them in which one of `values` means trust. A folder covers those below it, down to one that is
    `refused`, or stands in the list at `refused_keys`; `parents` are values that mean the folder
    around the one that is named.
    """

    file: str
    keys: tuple[str, ...] = ()
    values: tuple[object, ...] = ()
    parents: tuple[object, ...] = ()
    refused: tuple[object, ...] = ()
    refused_keys: tuple[str, ...] = ()
    switch: tuple[str, ...] = ()  # a file there, and keys: with false, every folder is trusted
    is_on: bool = True  # the switch, where the file does not say
    variable: str = ""  # which trusts every folder if it is "true"
    how: str  # what a person does to trust a folder


class Plugin(Record, kw_only=True):
    """How a host keeps notyet's plugin: see `install/host_plugin.py`.

    Paths are below the user's folder of the host. `switches` is the file that says whether plugins
    are on, else its settings files do; `key` is where they say it.
    """

    folder: str = ""  # a pattern of the plugin's folder; empty: it is in the place of the settings
    key: str = "enabledPlugins"
    switches: str = ""
    is_on_by_itself: bool = False  # where no file says it
    trust_name: str = ""  # stands for the path of the hooks where the host trusts them by hash
    remove: str  # what its user does to remove it


class HookFiles(Record, kw_only=True):
    """The files in which people keep hooks for a host, and how the host runs these."""

    # Of each group the first that is there counts. Scopes are user, project, local and above (the
    # project or a folder above it).
    groups: tuple[tuple[File, ...], ...] = ()
    formats: Mapping[str, str] = {}  # kind of file: hooks, hooks-toml, executable, or its own
    matchers: Kind = "claude"  # how matchers are read (D4, D5)
    hook_shell: str = "/bin/sh"
    least_timeout: float = 0.0  # seconds, where a `timeout` says less; 0: the default counts then
    take_args: bool = True  # hooks may have `args`, and are skipped if they have `if`
    others: str = "not run; only commands are"  # said of hooks that are no commands
    same_command: str = ""  # in several files: runs "once", or the later one "replaces" the earlier


class Host(Record, kw_only=True):
    """One host."""

    name: str
    title: str
    program: str = ""  # looked for on PATH; empty: there is none
    proof: str = ""  # "proven" with the real program, or derived from its "source"
    tested: str = ""  # the newest version that was tested, or whose source was read
    tested_on: str = ""  # the day, as 2026-11-16
    derived_from: str = ""  # the source, where it was never run
    cannot: str = ""  # why its agents cannot be sent back, so `install` refuses
    holds: Mapping[Scope, str] = {}  # whose stops it lets us block: "yes", "no", "once a turn", …
    oldest: tuple[int, ...] = ()  # the first version whose hooks can gate
    advised: tuple[int, ...] = ()  # the first version that loses no answer

    # What it sends. A sign tells its payloads from others': see `hosts/detect.py`.
    signs: tuple[str, ...] = ()
    # Keys by which a payload is not its own, though its file ran us; with "!", keys that it lacks.
    foreign: tuple[str, ...] = ()
    stops: Mapping[str, Scope] = {}
    starts: Mapping[str, Scope] = {}
    failures: tuple[str, ...] = ()  # events of a turn that ended with an error
    ignored: tuple[str, ...] = ()  # events that come too, and are allowed without a word
    # Our field: the host's names for it, the first that has a value counts.
    fields: Mapping[str, tuple[str, ...]] = {}
    flag_is_reliable: bool = True  # `stop_hook_active` is right, also after a tool call (B4)
    version_variable: str = ""  # holds the version that runs
    project_variable: str = ""  # names the project, where `cwd` is missing
    cap: int = 0  # the block in a row that the host overrides; 0: none (B8)
    cap_variable: str = ""  # sets another cap
    cap_more: int = 0  # what is added to that value: some count only the blocks that they honour
    caps_subagents: bool = True
    forgets_answers: bool = False  # an answer that we block is taken out of the conversation

    # What it understands: JSON, in which "{text}" and "{event}" are filled in.
    silence: str = ""  # the stdout that allows a stop without a word
    block: Mapping[str, Any] = {}  # empty: the prompt on stderr, and exit code 2
    halt: Mapping[str, Any] = {}  # empty: it cannot end a turn, so its user is told why it should
    context: Mapping[str, Any] = {}  # what a start adds to the first request (F13); empty: nothing
    note: str = ""  # the key for a line to its user; empty: on stderr
    longest_reason: int = 30_000
    measured_in: str = "characters"  # or "utf-8" bytes, or "utf-16" units
    reply_styles: tuple[str, ...] = ()  # ways of blocking that `[reply]` chooses from

    # Its files and its programs.
    settings: Mapping[str, str] = {}  # scope: the file that `notyet install` writes to
    layout: str = "groups"  # how it is laid out: see `install/layouts.py`
    handler: Mapping[str, Any] = {  # one entry in it
        "type": "command",
        "command": "{command}",
        "timeout": "{timeout}",
    }
    matchers: Mapping[str, str] = {}  # event: the matcher of our entry, where it needs one
    beside: Mapping[str, Any] = {}  # what such a file needs beside the hooks
    plugin: Plugin | None = None  # it can install the plugin of notyet's repository
    seconds_below: float = 0.0  # a `timeout` below this counts seconds, whatever its unit
    looks_above: bool = False  # it finds a project's file from the folders below
    takes_one_command: bool = False  # only one plain command in its settings gets the payload
    installed_as: str = ""  # it has no settings of its own, and runs the hooks of this host
    home_variable: str = ""  # names the user's folder of the host
    project_hides_user: bool = False  # where a project has a file, it reads no other
    project_wins: bool = False  # of our entries in both files, it runs the project's
    folder_trust: FolderTrust | None = None
    home_depth: int = 1  # how many folders of the path below the home it stands for; 0: the home
    managed: str = ""  # the folder of the settings of this machine's administrator
    switches: Mapping[str, bool] = {}  # key of a setting: its value with which no hook runs
    disabled: str = ""  # the key of a list of hooks that its user disabled, by name
    timeout: float = 600.0  # seconds that it waits for a hook that does not say (E6, E9)
    waits_by_hook: bool = False  # for each hook as long as its own `timeout` says
    timeout_unit: float = 1.0  # seconds that a `timeout` in its settings counts in
    longest_timeout: float = 0.0  # seconds; 0: as long as we like
    hook_files: HookFiles = HookFiles()
    runs: tuple[str, ...] = ()  # the hosts whose hooks it runs by itself (J8)
    runs_files_of: tuple[str, ...] = ()  # other hosts whose settings it runs as its own
    is_command: bool = False  # it is also called as `notyet NAME EVENT`
    inside: tuple[str, ...] = ()  # variables that it sets for the commands of its agents
    command_line: CommandLine | None = None

    @property
    def notyet_runs_hooks(self) -> bool:
        """Whether notyet runs the hooks in the host's files, because the host does not (J8)."""
        return bool(self.hook_files.groups) and self.name not in self.runs

    def event_name(self, scope: Scope) -> str:
        """Return the host's name for the stop of a main agent or a subagent."""
        return next((name for name, of in self.stops.items() if of == scope), "")

    def start_name(self, scope: Scope) -> str:
        """Return the host's name for the start of a main agent or a subagent."""
        return next((name for name, of in self.starts.items() if of == scope), "")

    def event_in(self, payload: Mapping[str, Any]) -> str:
        """Return the name of a payload's event; empty if it has none."""
        name = self.value(payload, "event")
        return name if isinstance(name, str) and name.strip() else ""

    def is_foreign(self, payload: Mapping[str, Any]) -> bool:
        """Return True if another host, which runs the files of this one, sent a payload."""
        return any(
            key[1:] not in payload if key[0] == "!" else key in payload for key in self.foreign
        )

    def is_repeated(self, payload: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
        """Return True if the host also asks us about this by another file of its own."""
        del payload, environ
        return False

    def value(self, payload: Mapping[str, Any], field: str) -> Any:
        """Return what a payload has for a field of ours, of any type; None if it has nothing."""
        for name in self.fields.get(field, ()):
            if payload.get(name) is not None:
                return payload[name]
        return None

    def read_event(
        self, payload: Mapping[str, Any], environ: Mapping[str, str]
    ) -> StopEvent | StartEvent | None:
        """Read a payload; None for an event that is not about starting or stopping."""
        from notyet.hosts import wire

        return wire.read_event(self, payload, environ)

    def last_message(self, event: StopEvent) -> str | None:
        """Return the last message of a stopping agent, which may stand in its transcript."""
        from notyet.hosts.transcript import last_message_of

        return last_message_of(event)

    def write_event(
        self, event: StopEvent, folder: str = ""
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the payload that this host would send, and the variables that it would set.

        `folder` is that of the hook's project.
        """
        from notyet.hosts import wire

        dialect = command_dialect(self.name)
        if hasattr(dialect, "write_event"):
            return dialect.write_event(event, folder)
        variables = {self.project_variable: event.cwd} if self.project_variable else {}
        return wire.write_event(self, event), variables

    def block_reply(
        self, prompt: str, event: StopEvent, settings: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return the JSON that sends an agent back with a prompt."""
        from notyet.hosts import wire

        del settings  # for hosts whose users choose
        reason = wire.prompt_for(prompt, self.longest_reason, self.measured_in)
        return wire.filled(self.block, reason, self.event_name(event.scope))

    def write_reply(
        self,
        verdict: Allow | Block | Halt,
        note: str,
        event: StopEvent,
        settings: Mapping[str, str],
    ) -> Reply:
        """Return the answer to a stop; `note` is for the user, `settings` from `[reply]`."""
        from notyet.hosts import wire

        return wire.write_reply(self, verdict, note, event, settings)

    def write_context(self, text: str, event: StartEvent, note: str = "") -> Reply:
        """Return the answer that puts a text before a starting agent's first request (F13).

        `note` is for the user. Either may be empty.
        """
        from notyet.hosts import wire

        return wire.write_context(self, text, event, note)


class ClaudeLike(Host, kw_only=True):
    """A host that copied Claude Code's hooks."""

    holds: Mapping[Scope, str] = {"agent": "yes", "subagent": "yes"}
    stops: Mapping[str, Scope] = {"Stop": "agent", "SubagentStop": "subagent"}
    starts: Mapping[str, Scope] = {"SessionStart": "agent", "SubagentStart": "subagent"}
    failures: tuple[str, ...] = ("StopFailure",)
    fields: Mapping[str, tuple[str, ...]] = {
        "event": ("hook_event_name",),
        "session_id": ("session_id",),
        "turn_id": ("prompt_id",),
        "agent_id": ("agent_id",),
        "agent_type": ("agent_type", "subagent_type"),
        "agent_name": ("agent_name",),
        "cwd": ("cwd",),
        "last_message": ("last_assistant_message",),
        "transcript_path": ("transcript_path",),
        "agent_transcript_path": ("agent_transcript_path",),
        "permission_mode": ("permission_mode",),
        "model": ("model",),
        "source": ("source",),
        "error": ("error",),
        "background_tasks": ("background_tasks",),
        "stop_hook_active": ("stop_hook_active",),
    }
    project_variable: str = "CLAUDE_PROJECT_DIR"
    block: Mapping[str, Any] = {"decision": "block", "reason": "{text}"}
    halt: Mapping[str, Any] = {"continue": False, "stopReason": "{text}"}
    context: Mapping[str, Any] = {
        "hookSpecificOutput": {"hookEventName": "{event}", "additionalContext": "{text}"}
    }
    note: str = "systemMessage"
