"""Mux (rules W3, G3, H2). It was renamed to Xum; both names are in use."""

from __future__ import annotations

from notyet.hosts.host import ClaudeLike, HookFiles


def _either(scope: str, name: str, kind: str) -> tuple[tuple[str, str, str], ...]:
    return tuple((scope, f"{folder}/{name}", kind) for folder in (".xum", ".mux"))


HOST = ClaudeLike(
    name="mux",
    title="Mux",
    program="mux",
    tested="0.24.0",
    signs=("transcript_path~/.mux/sessions/|/.xum/sessions/",),
    context={},
    note="",
    timeout=10.0,
    waits_by_hook=True,
    hook_files=HookFiles(
        groups=(
            _either("user", "settings.json", "mux"),
            _either("project", "settings.json", "mux"),
            _either("local", "settings.local.json", "mux"),
            _either("project", "stop", "mux-stop") + _either("user", "stop", "mux-stop"),
            _either("project", "subagent_stop", "mux-subagent-stop")
            + _either("user", "subagent_stop", "mux-subagent-stop"),
        ),
        formats={"mux": "hooks", "mux-stop": "executable", "mux-subagent-stop": "executable"},
        hook_shell="bash",
        same_command="replaces",
    ),
    inside=("MUX_WORKSPACE_ID", "XUM_RUNTIME", "XUM_WORKSPACE_ID"),
)
