"""Configuration files of every host at their places, and what is in force there."""

import json
import os
from pathlib import Path

from hook_runs import trust
from notyet.config.find import user_folder
from notyet.config.load import load

KINDS = {
    ".claude/settings.json": "claude",
    ".claude/settings.local.json": "claude",
    ".mux/settings.json": "mux",
    ".xum/settings.json": "mux",
    ".mux/settings.local.json": "mux",
    ".codex/hooks.json": "codex",
    ".codex/config.toml": "codex-toml",
    ".conclaude.yaml": "conclaude",
    ".conclaude.yml": "conclaude",
    "notyet.toml": "notyet",
    "pyproject.toml": "notyet",
    ".mux/stop": "mux-stop",
    ".xum/stop": "mux-stop",
    ".mux/subagent_stop": "mux-subagent-stop",
}
READS = '[read]\nhosts = ["{}"]\n'


def hooks(*commands, event="Stop", **fields):
    handlers = [{"type": "command", "command": command} | fields for command in commands]
    return json.dumps({"hooks": {event: [{"hooks": handlers}]}})


def write(folder, name, text, *, trusted=True, mode=0o755):
    path = Path(folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if "stop" in path.name:
        path.chmod(mode)
    if trusted:
        trust(path, KINDS[name])
    return path


def write_own(name, text):
    return write(os.environ["HOME"], name, text, trusted=False)


def write_user_toml(text):
    folder = user_folder(os.environ)
    os.makedirs(folder, exist_ok=True)
    return write(folder, "notyet.toml", text, trusted=False)


def setup(cwd, host="notyet"):
    return load(str(cwd), host, os.environ)


def commands(cwd, host="notyet"):
    return [gate.check.line for gate in setup(cwd, host).gates]
