"""Programs that run agents but are no hosts: how to run them and how to recognise their payloads.

`install` writes no hooks for them. `notyet with` gates those that have a command line; the others
are known so that their payloads and their agents' commands are recognised. A program that gets
hooks moves into a module of its own, and its name into `HOSTS`.
"""

from __future__ import annotations

from notyet.hosts import all_hosts
from notyet.hosts.host import ClaudeLike, CommandLine, Host

OTHERS = (
    Host(
        name="amp",
        title="Amp",
        program="amp",
        cannot="it has no hooks that are commands, only plugins",
    ),
    Host(
        name="antigravity",
        title="Antigravity",
        signs=("conversationId workspacePaths",),
        cannot="nothing about its Stop hook could be verified",
    ),
    Host(
        name="auggie",
        title="Auggie",
        program="auggie",
        signs=("agent_stop_cause",),
        cannot="it runs its Stop hook and does not use the answer (0.36)",
    ),
    Host(
        name="cline",
        title="Cline",
        program="cline",
        cannot="its hook runs after the task has ended (3.0.65)",
    ),
    Host(
        name="crush",
        title="Crush",
        program="crush",
        inside=("CRUSH",),
        cannot="its hooks are for tools only",
    ),
    ClaudeLike(
        name="junie",
        title="Junie",
        signs=("project_path",),
        cannot="its Stop hook names no session, so send-backs could not be counted",
    ),
    Host(
        name="letta",
        title="Letta Code",
        program="letta",
        signs=("event_type working_directory",),
        cannot="its Stop hook names no session, and headless runs do not call it (0.25.9)",
    ),
    Host(name="neovate", title="Neovate", program="neovate"),
    Host(
        name="windsurf",
        title="Windsurf",
        signs=("agent_action_name",),
        cannot="its hook after a response only observes",
    ),
    Host(name="xum", title="Xum", program="xum"),
    # Claude Code's payloads have these keys, so it is told by what it lacks.
    Host(
        name="kiro",
        title="Kiro",
        signs=("hook_event_name !session_id !conversation_id",),
        cannot="its Stop hook only observes (CLI v3)",
    ),
)


def every_program() -> list[Host]:
    """Return all programs that are known to run agents."""
    return [*all_hosts(), *OTHERS]


def headless() -> dict[str, tuple[str, CommandLine]]:
    """Return the programs that `notyet with` can run: by name, the program and how to run it."""
    return {
        host.name: (host.program, host.command_line)
        for host in every_program()
        if host.command_line is not None
    }
