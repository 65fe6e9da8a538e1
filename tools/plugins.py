"""Writes the plugins of this repository from what notyet itself knows.

`plugins/notyet` is for Claude Code, Codex, Copilot CLI, Droid, goose and Qwen Code, and
`.claude-plugin` makes the repository their marketplace; `plugins/gemini` is Gemini CLI's extension,
`plugins/opencode` a file for OpenCode. Without arguments it checks; with --write it writes them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from notyet import __version__
from notyet.hosts import host_named
from notyet.install.notyet_line import plugin_line
from notyet.install.settings import (
    START_TIMEOUT,
    Entry,
    SettingsFile,
    settings_of,
)

if TYPE_CHECKING:
    from notyet.hosts.host import Host

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT = 900  # seconds of a stop: Qwen Code takes 1000 and more for milliseconds
PLACES = (".claude-plugin", "plugins")  # folders in which every file is written here
ABOUT = "Agents say done; notyet checks, and sends them back to work with the reason."
GATES = "Which checks apply here, and what the last stops came to"
ASK = "Report this to the user in a few sentences, with what to do if something is wrong."

README = """\
# notyet

The stop gate for AI agents: agents say *done*, notyet checks, and sends them back with the reason.

This plugin registers the hook that asks notyet at every stop. It needs the program `notyet` on the
`PATH`, and says so where it is missing. The checks are in the `notyet.toml` of a project:
`notyet init` writes one, `notyet trust` puts it into force, `notyet status` says what applies.

The plugin also has a command, `gates`, which shows the status, and a skill that teaches an agent to
write a `notyet.toml` and to read a send-back.
"""

SKILL = """\
---
name: notyet
description: >-
  Use when a stop was sent back by notyet, or when asked to set up, change or explain the checks
  that run before an agent may stop (gates, notyet.toml).
---

# notyet

notyet runs the checks (gates) of a project when you want to end your turn. If one fails, you get
its output as your next instruction.

## When you were sent back

1. Read the message: it names each gate that failed, its command and the end of its output. Where
   that was cut, `Full output:` names a file with all of it. What passed is listed, too.
2. Fix the cause. Do not weaken, skip, delete or exclude a check, and do not edit `notyet.toml` to
   get past it.
3. Run `notyet check` to run the gates yourself, or the command of the one gate that failed.
4. Finish as usual: the gates run again by themselves. `send-back 1 of 3` counts how often you may
   be sent back.
5. If you cannot fix it, or your user has to decide, answer with a message that starts with
   `BLOCKED:` and say what you need. Then you may stop.

## Writing notyet.toml

It lies at the root of the project. Each gate is a shell command; exit code 0 passes.

```toml
[gates]
lint = "ruff check ."

[gates.tests]
run = "pytest -q --continue-on-collection-errors"
slow = true                        # after the quick gates, and only if they passed
paths = ["src/**", "tests/**"]     # only if the agent changed one of these files
timeout = "10m"
hint = "Fix the cause, not the assertion."
new_failures_only = true           # failures that were there before do not count

[gates.weakened]
guard = "tests"                    # nothing that checks the work is weakened in silence

[gates.report]
run = "test -s report.md"
for = "subagents"                  # the default is the main agent
```

- Take commands that the project already uses (its CI, `package.json`, `Makefile`), that end by
  themselves, and that change no files.
- `notyet init` detects them and writes the file; `notyet gates` lists every kind of gate and key.
- Then run `notyet validate`, which names each mistake with its line, and `notyet check`.
- A person has to put the file into force, with `notyet trust`: ask for that, do not do it yourself.

## Questions about it

- `notyet status`: are agents checked here, by what, and if not, what is wrong.
- `notyet status --why`: which gates the next stop would meet, and why the others do not run.
- `notyet log` lists the last stops, `notyet log 7` shows one with all output.
"""


def hooks(host: Host, unit: float = 1.0, **more: str) -> dict[str, Any]:
    """Return the hooks of a plugin: the events of a host, with timeouts in its unit of seconds."""
    found: dict[str, Any] = {}
    for event in (*host.stops, *host.starts):
        is_start = event in host.starts
        seconds = START_TIMEOUT if is_start else TIMEOUT
        line = plugin_line(f"hook --via plugin --timeout {seconds}", event if is_start else "")
        entry = {"type": "command", **more, "command": line, "timeout": round(seconds / unit)}
        matcher = {"matcher": host.matchers[event]} if event in host.matchers else {}
        found[event] = [{**matcher, "hooks": [entry]}]
    return {"hooks": found}


def opencode() -> str:
    """Return OpenCode's file: its code sees itself that only one of two is used."""
    settings = settings_of("opencode")
    file = SettingsFile(scope="user", path="notyet.js", form="plugin")
    entries = [
        Entry(
            event=event,
            command=plugin_line(f"hook --host opencode --timeout {seconds}"),
            timeout=seconds,
        )
        for event in settings.events
        for seconds in [TIMEOUT if event in settings.host.stops else START_TIMEOUT]
    ]
    return settings.text_with("", file, entries)


def files() -> dict[str, str]:
    """Return every file by its path in the repository."""
    about = {"name": "notyet", "version": __version__, "description": ABOUT}
    author = {"name": "The notyet authors"}
    of_claude = {
        **about,
        "author": author,
        "license": "Apache-2.0",
        "keywords": ["hooks", "stop-hook", "quality-gate", "tests", "agents"],
    }
    market = {
        "name": "notyet",
        "description": "The stop gate for AI agents.",
        "owner": author,
        "plugins": [
            {"name": "notyet", "source": "./plugins/notyet", "description": ABOUT},
        ],
    }
    command = (
        f"---\ndescription: {GATES}\nallowed-tools: Bash(notyet status:*)\n"
        "disable-model-invocation: true\n---\n\n"
        "Here is what `notyet status` says; where only the command stands here, run it:\n\n"
        f"!`notyet status || true`\n\n{ASK}\n"
    )
    of_gemini = (
        f'description = "{GATES}"\nprompt = """\nHere is what `notyet status` says:\n\n'
        f'!{{notyet status || true}}\n\n{ASK}\n"""\n'
    )
    gemini = host_named("gemini")
    return {
        ".claude-plugin/marketplace.json": _json(market),
        "plugins/notyet/.claude-plugin/plugin.json": _json(of_claude),
        "plugins/notyet/plugin.json": _json(about),  # goose reads this one
        "plugins/notyet/hooks/hooks.json": _json(hooks(host_named("claude"))),
        "plugins/notyet/commands/gates.md": command,
        "plugins/notyet/skills/notyet/SKILL.md": SKILL,
        "plugins/notyet/README.md": README,
        "plugins/gemini/gemini-extension.json": _json(about),
        "plugins/gemini/hooks/hooks.json": _json(hooks(gemini, gemini.timeout_unit, name="notyet")),
        "plugins/gemini/commands/notyet/gates.toml": of_gemini,
        "plugins/gemini/skills/notyet/SKILL.md": SKILL,
        "plugins/gemini/README.md": README.replace("plugin", "extension"),
        "plugins/opencode/notyet.js": opencode(),
    }


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


def main(root: Path = ROOT) -> int:
    """Check the plugins, or write them."""
    wanted = files()
    there = {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for place in PLACES
        for path in root.joinpath(place).rglob("*")
        if path.is_file()
    }
    if "--write" in sys.argv:
        for name in there.keys() - wanted.keys():
            root.joinpath(name).unlink()
        for name, text in wanted.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return 0
    for name in sorted(wanted.keys() | there.keys()):
        if wanted.get(name) != there.get(name):
            print(f"{name} is not as tools/plugins.py writes it; run: make docs")
    return int(wanted != there)


if __name__ == "__main__":
    sys.exit(main())
