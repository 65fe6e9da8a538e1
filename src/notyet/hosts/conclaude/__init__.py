"""conclaude: what calls us by its name is Claude Code; answers are exit codes (W4, G4)."""

from __future__ import annotations

from notyet.hosts import claude
from notyet.hosts.host import ClaudeLike, HookFiles

HOST = ClaudeLike(
    name="conclaude",
    title="conclaude",
    cap=claude.HOST.cap,
    cap_variable=claude.HOST.cap_variable,
    block={},
    halt={},
    context={},
    note="",
    hook_files=HookFiles(
        groups=(
            (("above", ".conclaude.yaml", "conclaude"), ("above", ".conclaude.yml", "conclaude")),
        ),
        formats={"conclaude": "conclaude"},
    ),
    runs=claude.HOST.runs,
    is_command=True,
)
