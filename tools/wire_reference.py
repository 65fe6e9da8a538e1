"""Writes docs/reference/wire/*.md: what each dialect reads and writes, from code and vectors.

Without arguments it checks that the pages are fresh; with --write it rewrites them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from notyet import BackgroundTask, StopEvent
from notyet.hosts import HOSTS, command_dialect, host_named

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "reference" / "wire"
VECTORS = ROOT / "tests" / "vectors"
EXAMPLES = {
    "Stop": StopEvent(
        session_id="s-1",
        turn_id="turn-7",
        cwd="/home/u/shop",
        last_message="Done.",
        transcript_path="/home/u/s-1.jsonl",
        stop_hook_active=False,
        permission_mode="default",
        model="model-x",
    ),
    "SubagentStop": StopEvent(
        scope="subagent",
        session_id="s-1",
        turn_id="turn-7",
        agent_id="a-2",
        agent_type="coder",
        cwd="/home/u/shop",
        last_message="Report: all done.",
        transcript_path="/home/u/s-1.jsonl",
        agent_transcript_path="/home/u/a-2.jsonl",
        stop_hook_active=True,
        permission_mode="default",
        model="model-x",
        background_tasks=(BackgroundTask(id="b-1", type="shell"),),
    ),
}


def page(name: str) -> str:
    """Return one host's page."""
    host = host_named(name)
    spoken: Any = command_dialect(name)
    runs_hooks = hasattr(spoken, "read_reply")
    return "\n".join(
        [
            f"# {host.title}: what goes over the wire",
            "",
            "Generated from the code and its test vectors by `make docs`.",
            "",
            str(spoken.__doc__).strip(),
            "",
            *_events(name),
            *(_replies(name) if runs_hooks else []),
            *_hosts(name),
        ]
    )


def _events(name: str) -> list[str]:
    host = host_named(name)
    runs_hooks = hasattr(command_dialect(name), "read_reply")
    heading = "What a hook command is given" if runs_hooks else "What the host sends"
    lines = [f"## {heading}", ""]
    for event, example in EXAMPLES.items():
        if not host.event_name(example.scope) and not runs_hooks:
            continue
        payload, environ = host.write_event(example, "/home/u/shop")
        called = event if runs_hooks else host.event_name(example.scope)
        lines += [f"{called}, on stdin:", "", "```jsonc", json.dumps(payload, indent=2), "```", ""]
        shown = {key: value for key, value in environ.items() if not key.endswith("_JSON")}
        if shown:
            lines += ["In its environment:", "", "```sh"]
            lines += [f"{key}={value}" for key, value in sorted(shown.items())]
            lines += ["```", ""]
    return lines


def _replies(name: str) -> list[str]:
    vectors = _load(name, "replies.json")
    lines = ["## How its answer is read", "", "| case | exit | stdout | stderr | means |"]
    lines.append("|---|---|---|---|---|")
    for vector in vectors:
        ended = vector.get("exit", {})
        how = f"signal {ended['signal']}" if ended.get("signal") else str(ended.get("code", "-"))
        if ended.get("timed_out"):
            how = "out of time"
        if ended.get("problem"):
            how = "not started"
        cells = [vector["id"], how, _code(ended.get("stdout")), _code(ended.get("stderr"))]
        lines.append(f"| {' | '.join([*map(_cell, cells[:2]), *cells[2:], _means(vector)])} |")
    return [*lines, ""]


def _means(vector: dict[str, Any]) -> str:
    expect = vector.get("expect", {})
    said = [str(expect.get("answer", expect.get("context", "")))]
    said += [
        _code(str(expect[key]))
        for key in ("prompt", "reason", "problem", "kind", "tell_user")
        if expect.get(key)
    ]
    return " ".join(_cell(part) if not part.startswith("`") else part for part in said) or "nothing"


def _hosts(name: str) -> list[str]:
    vectors = _load(name, "hosts.json")
    if not vectors:
        return []
    lines = ["## How the host is answered", "", "| case | verdict | stdout | exit |"]
    lines.append("|---|---|---|---|")
    for vector in vectors:
        expect = vector["expect"]
        stdout = expect.get("stdout")
        written = _code(json.dumps(stdout)) if stdout is not None else "nothing"
        kind = vector["verdict"]["kind"]
        lines.append(f"| {_cell(vector['id'])} | {kind} | {written} | {expect.get('code', 0)} |")
    return [*lines, ""]


def _load(name: str, file: str) -> list[dict[str, Any]]:
    path = VECTORS / name / file
    data: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    return data


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _code(text: object) -> str:
    """Return a text as code in a cell, bounded, with what a terminal would not show escaped."""
    if not isinstance(text, str) or not text:
        return ""
    shown = json.dumps(text)[1:-1].replace('\\"', '"').replace("|", "\\|").replace("`", "'")
    return f"`{shown[:100]}{'...' if len(shown) > 100 else ''}`"  # noqa: PLR2004  # a cell's width


def main(write: bool) -> int:  # noqa: FBT001  # the option of a command line
    """Check or rewrite the pages."""
    stale = []
    for name in HOSTS:
        path = PAGES / f"{name}.md"
        text = page(name)
        if write:
            PAGES.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(str(path.relative_to(ROOT)))
    print(f"stale: {', '.join(stale)}; run make docs" if stale else "the wire pages are fresh")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
