"""`Host`: what notyet knows about one program that runs agents, as data.

Class attributes are Claude Code's values, which most hosts copied. A host's module makes one
instance, `HOST`, that says what differs; a host that needs more overrides a method.
"""

from __future__ import annotations

from notyet.hosts import TABLE, command_face, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.event import Scope, StartEvent, StopEvent
    from notyet.core.matcher import Kind
    from notyet.core.verdict import Allow, Block, Halt
    from notyet.hosts import Reply

    # Where a host keeps a file, its path below that folder, and the kind of file it is.
    File = tuple[str, str, str]


class Host:
    """One host. An attribute that is not given is as in Claude Code."""

    name = ""
    title = ""
    program = ""  # looked for on PATH; empty: there is none
    tested = ""  # the newest version that was tested
    oldest: tuple[int, ...] = ()  # the first version whose hooks can gate
    advised: tuple[int, ...] = ()  # the first version that loses no answer

    # What it sends.
    stops: Mapping[str, Scope] = {"Stop": "agent", "SubagentStop": "subagent"}
    starts: Mapping[str, Scope] = {"SessionStart": "agent", "SubagentStart": "subagent"}
    failures: tuple[str, ...] = ("StopFailure",)  # events of a turn that ended with an error
    # Our field: the host's names for it, the first that has a value counts. An instance's
    # `fields` are merged into these.
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
        "background_tasks": ("background_tasks",),
    }
    flag_is_reliable = True  # `stop_hook_active` is right, also after a tool call (B4)
    subagent_type: str | None = None  # the type of a subagent that has none in its payload
    project_variable = "CLAUDE_PROJECT_DIR"  # names the project, where `cwd` is missing
    cap = 0  # blocks in a row that the host honours; 0: no cap (B8)
    cap_variable = ""  # sets another cap
    cap_loses_answer = True  # the block after the last honoured one costs the final answer

    # What it understands.
    block_word = "block"
    reply_styles: tuple[str, ...] = ()  # ways of blocking that `[reply]` chooses from
    longest_reason = 30_000
    longest_context = 9_000
    measured_in = "characters"  # or "utf-8" bytes, or "utf-16" units
    has_notes = True  # shows `systemMessage` to its user; else notes go to stderr
    has_context = True  # a start may add context, so that start hooks make sense (F13)
    halts = True  # `continue: false` ends the turn

    # Its files. Scopes are user, project, local and above (the project or a folder above it).
    home_variable = ""  # names the user's folder of the host
    timeout_unit = 1.0  # seconds that a `timeout` in its settings counts in
    settings: Mapping[str, str] = {}  # scope: the file that `notyet install` writes to
    settings_module: str = "notyet.install.settings"  # has the class `Settings`, maybe its own
    # Hooks that people wrote for it and that become gates: of each group the first that is there.
    files: tuple[tuple[File, ...], ...] = ()
    formats: Mapping[str, str] = {}  # kind of file: hooks, hooks-toml, executable, or its own
    matchers: Kind = "claude"  # how their matchers are read (D4, D5)
    hook_shell = "/bin/sh"
    least_timeout = 0.0  # seconds, where a hook's `timeout` says less; 0: its default counts then
    hooks_take_args = True  # hooks may have `args`, and are skipped if they have `if`
    other_hooks = "not run; only commands are"  # said of hooks that are no commands
    same_command = ""  # in several files: runs "once", or the later one "replaces" the earlier
    runs: tuple[str, ...] = ()  # the hosts whose files it runs by itself (J8)
    inside: tuple[str, ...] = ()  # variables that it sets for the commands of its agents
    command_line: Mapping[str, Any] = {}  # how to run it headless: see `others.CommandLine`

    def __init__(self, **values: Any) -> None:
        if "fields" in values:
            values["fields"] = {**self.fields, **values["fields"]}
        self.__dict__.update(values)

    @property
    def timeout(self) -> float:
        """How many seconds it waits for a hook whose registration does not say."""
        return TABLE[self.name].timeout

    @property
    def silence(self) -> str:
        """The stdout that allows a stop without a word."""
        return TABLE[self.name].silence or ""

    def event_name(self, scope: Scope) -> str:
        """Return the host's name for the stop of a main agent or a subagent."""
        return next((name for name, of in self.stops.items() if of == scope), "")

    def start_name(self, scope: Scope) -> str:
        """Return the host's name for the start of a main agent or a subagent."""
        return next((name for name, of in self.starts.items() if of == scope), "")

    def read_event(
        self, payload: Mapping[str, Any], environ: Mapping[str, str]
    ) -> StopEvent | StartEvent | None:
        """Read a payload; None for an event that is not about starting or stopping."""
        return wire.read_event(self, payload, environ)

    def write_event(
        self, event: StopEvent, folder: str = ""
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the payload that this host would send, and the variables that it would set.

        `folder` is that of the file with the hook that is called.
        """
        if TABLE[self.name].hooks:
            return command_face(self.name).write_event(event, folder)
        return wire.write_event(self, event), {self.project_variable: event.cwd}

    def block(self, prompt: str, event: StopEvent, settings: Mapping[str, str]) -> dict[str, Any]:
        """Return the JSON that sends an agent back with a prompt."""
        del event, settings  # for hosts that depend on them
        reason = wire.prompt_for(prompt, self.longest_reason, self.measured_in)
        return {"decision": self.block_word, "reason": reason}

    def halt(self, reason: str) -> dict[str, Any]:
        """Return the JSON that ends an agent's turn."""
        return {"continue": False, "stopReason": reason}

    def write_reply(
        self,
        verdict: Allow | Block | Halt,
        note: str,
        event: StopEvent,
        settings: Mapping[str, str],
    ) -> Reply:
        """Return the answer to a stop; `note` is for the user, `settings` from `[reply]`."""
        return wire.write_reply(self, verdict, note, event, settings)

    def write_context(self, text: str, event: StartEvent) -> Reply:
        """Return the answer that puts a text before a starting agent's first request (F13)."""
        return wire.write_context(self, text, event)
