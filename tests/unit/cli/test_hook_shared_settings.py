"""VS Code runs the hooks of GitHub Copilot CLI and of Claude Code: a stop counts once."""

import json

import pytest

from hook_runs import FAILING, ask, new_project
from wire import VECTORS

HOOKS = {
    "copilot": (
        ".github/hooks/notyet.json",
        {"agentStop": [{"bash": "notyet hook --host copilot"}]},
    ),
    "claude": (
        ".claude/settings.json",
        {"Stop": [{"hooks": [{"type": "command", "command": "notyet hook --host claude"}]}]},
    ),
}


@pytest.mark.rule("G6")
@pytest.mark.parametrize("registered", [("copilot",), ("claude",), ("copilot", "claude")])
def test_a_stop_of_vs_code_is_answered_once_and_in_its_words(registered, tmp_path):
    project = new_project(tmp_path / "p", FAILING)
    for host in registered:
        name, hooks = HOOKS[host]
        path = project / name
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"hooks": hooks}))
    payload = json.loads((VECTORS / "payloads" / "vscode" / "Stop.first.json").read_text())
    payload["cwd"] = str(project)
    replies = [ask(payload, "--host", host) for host in registered]
    said = [json.loads(reply.stdout) for reply in replies if reply.stdout]
    assert len(said) == 1
    assert said[0]["hookSpecificOutput"]["decision"] == "block"
    assert not any(reply.stderr for reply in replies)
