"""Keeps docs/reference/config.md and the JSON Schemas true: both come from the schema in the code.

Without arguments it checks; with --write it rewrites them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from notyet.cli.schema import pages
from notyet.config import gate_schema, schema
from notyet.hosts.conclaude import schema as conclaude

if TYPE_CHECKING:
    from notyet.config.shapes import Table

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
HEAD = """\
# Configuration reference

Generated from the code by `make docs`. Editors understand the files below with the JSON Schemas in
[schema/](schema/notyet.toml.schema.json). Every mistake in a file is reported at once, with
line and column; what is right is kept, and a gate with a mistake in *what it runs, where, or for
whom* is left out.

Patterns are globs: `*` any run of characters, `?` one, `[a-z]` one of, `[!a-z]` one but. Case
counts, and there are no braces. Time spans are seconds, or strings like `"90s"`, `"10m"`, `"1h30m"`
or `"500ms"`.
"""
EXAMPLE = """\
```toml
[limits]
max_blocks = 3

[gates]
mypy = "uv run mypy src"

[gates.tests]
run = "uv run pytest -q"
slow = true
paths = ["src/**", "tests/**"]
timeout = "10m"
pass_codes = [0, 5]
hint = "Fix the cause, not the assertion."

[gates.reviewed]
python = "gates:was_reviewed"
for = ["coder", "impl-*"]

[observers.log]
run = ["logger", "-t", "notyet"]
```
"""
NOTYET_TOML: dict[str, Table] = {
    "Top level": schema.NOTYET_TABLE,
    "`[limits]`": schema.LIMITS,
    "`[gates.NAME]`": gate_schema.GATE,
    "`[observers.NAME]`": gate_schema.OBSERVER,
    "`[ledger]`": schema.LEDGER,
    "`[share]`": schema.SHARE,
    "`[start]`": schema.START,
    "`[read]`": schema.READ,
    "`[reply]`": schema.REPLY,
}
CONCLAUDE: dict[str, Table] = {
    "Top level of `.conclaude.yaml`": conclaude.CONCLAUDE,
    "`stop`": conclaude.STOP,
    "`stopFailure`": conclaude.STOP_FAILURE,
    "`subagentStop`": conclaude.SUBAGENT_STOP,
    "A command": conclaude.SUBAGENT_COMMAND,
    "`notifications`": conclaude.NOTIFICATIONS,
}
HOOKS: dict[str, Table] = {
    "The file": schema.HOOKS,
    "`hooks`": schema.HOOKS_BLOCK,
    "A group": schema.GROUP,
    "A hook": schema.HANDLER,
}
HOOKS_HEAD = """\
## Hooks of Claude Code, Codex and Mux

As JSON in `settings.json` and `hooks.json`, as TOML in Codex's `config.toml`. Unknown keys and
events are left to the host, which ignores them; a value of the wrong type is a mistake.
"""
CONCLAUDE_HEAD = """\
## `.conclaude.yaml`

Plain words are read as in YAML 1.2: `no` is a text.
`block` is for commands of `subagentStop` only.
"""


def page() -> str:
    """Return the page as it should be."""
    parts = [HEAD, "## `notyet.toml`\n", EXAMPLE, *_sections(NOTYET_TOML)]
    parts += [CONCLAUDE_HEAD, *_sections(CONCLAUDE), HOOKS_HEAD, *_sections(HOOKS)]
    return "\n".join(parts)


def rows(table: Table) -> list[str]:
    """Return a table's keys as rows of a Markdown table: key, type, default, what it does."""
    lines = ["| key | type | default | what it does |", "|---|---|---|---|"]
    for key, field in table.fields.items():
        default = "" if field.default is None else f"`{json.dumps(field.default)}`"
        if field.required:
            default = "required"
        cells = (f"`{key}`", field.shape.words, default, field.doc)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return lines


def _sections(tables: dict[str, Table]) -> list[str]:
    return ["\n".join([f"### {title}\n", *rows(table), ""]) for title, table in tables.items()]


def files() -> dict[Path, str]:
    """Return every generated file with its content as it should be."""
    fresh = {REFERENCE / "config.md": page()}
    for name, content in pages().items():
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        fresh[REFERENCE / "schema" / f"{name}.schema.json"] = text
    return fresh


def main(write: bool) -> int:  # noqa: FBT001  # the one switch of a script
    """Check or rewrite the files."""
    old = []
    for path, fresh in files().items():
        if write:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(fresh, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != fresh:
            old.append(path.name)
    if old:
        print(f"{', '.join(old)} in docs/reference is old: run make docs")
        return 1
    keys = sum(len(t.fields) for tables in (NOTYET_TOML, CONCLAUDE, HOOKS) for t in tables.values())
    print(f"{keys} configuration keys, each documented")
    return 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
