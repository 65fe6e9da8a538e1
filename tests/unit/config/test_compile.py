import json
import os

import pytest

from notyet.config.compile import compile_text


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("notyet", '[gates]\na = "x"\n'),
        ("claude", '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}'),
        ("codex", '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}'),
        ("mux", '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}'),
        ("codex-toml", '[[hooks.Stop]]\nhooks = [{ type = "command", command = "x" }]\n'),
        ("conclaude", "stop:\n  commands:\n    - run: x\n"),
    ],
)
def test_every_kind_of_file_comes_to_gates(kind, text):
    if kind == "conclaude":
        pytest.importorskip("yaml")
    settings = compile_text(text, "/p/f", kind)
    assert [gate.check.line for gate in settings.gates] == ["x"]
    assert settings.mistakes == ()
    assert all(gate.source.file == "/p/f" for gate in settings.gates)


@pytest.mark.rule("J7")
def test_a_matcher_that_is_wrong_is_warned_of_with_its_place():
    handlers = [{"type": "command", "command": "x"}]
    groups = [{"matcher": "(", "hooks": handlers}, {"matcher": "ok", "hooks": handlers}]
    text = json.dumps({"hooks": {"SubagentStop": groups}}, indent=1)
    settings = compile_text(text, "/p/f", "codex")
    assert [gate.match.agents for gate in settings.gates] == [("ok",)]
    assert settings.mistakes == ()  # it is right for Codex, which skips it too
    (mistake,) = settings.warnings
    assert mistake.line > 1
    assert "never run this hook" in mistake.message


@pytest.mark.rule("J3")
def test_an_executable_is_its_own_gate(tmp_path):
    path = tmp_path / ".mux" / "stop"
    path.parent.mkdir()
    path.touch(0o644)
    (mistake,) = compile_text("", str(path), "mux-stop").mistakes
    assert (mistake.hint, mistake.file) == (f"run chmod +x {path}", str(path))
    path.chmod(0o755)
    (gate,) = compile_text("", str(path), "mux-stop").gates
    assert (gate.name, gate.timeout, gate.check.speaks) == ("mux .mux/stop", 10.0, "mux")


@pytest.mark.rule("J3", "N5")
@pytest.mark.parametrize(
    ("text", "shell"),
    [
        ("exit 2\n", "bash"),
        ("#!/bin/sh\nexit 2\n", "sh"),
        ("#! /usr/bin/env bash\nexit 2\n", "bash"),
        ("#!/usr/bin/env python3\n", ""),
        ("#!/bin/sh -e\n", ""),
        ('cd "$(dirname "${BASH_SOURCE[0]}")"\n', ""),
        ("x" * 200_000, ""),
        ("\0", ""),
    ],
)
def test_a_shell_script_is_run_as_its_text_and_another_program_by_its_path(tmp_path, text, shell):
    path = tmp_path / ".mux" / "stop"
    path.parent.mkdir()
    path.touch(0o755)
    (gate,) = compile_text(text, str(path), "mux-stop").gates
    expected = (shell, "-c", text, str(path)) if shell else (str(path),)
    assert gate.check.argv == expected
    assert bool(gate.check.options.get("by_path")) is not bool(shell)


@pytest.mark.rule("J9")
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
        ("{", "has no whole number at agents.defaults.subagents.maxSteerRestarts"),
        ("{a: {maxSteerRestarts: 1}, b: {maxSteerRestarts: 2}}", "no whole number"),
        ("[]", "has no whole number at agents.defaults.subagents.maxSteerRestarts"),
        ('{"agents": {"defaults": {"subagents": {"maxSteerRestarts": true}}}}', "no whole number"),
        ('{"agents": {"defaults": {"subagents": {"maxSteerRestarts": -1}}}}', "no whole number"),
    ],
)
def test_an_openclaw_file_without_the_number_is_a_mistake(tmp_path, content, words):
    if content is not None:
        (tmp_path / "o.json").write_text(content)
    text = '[read]\nopenclaw = "o.json"\n'
    settings = compile_text(text, os.path.join(tmp_path, "notyet.toml"), "notyet")
    (mistake,) = settings.mistakes
    assert mistake.file == str(tmp_path / "o.json")
    assert words in str(mistake)
    assert settings.limits == {}


@pytest.mark.rule("J9")
def test_an_openclaw_file_may_have_comments_and_bare_keys(tmp_path):
    (tmp_path / "o.json5").write_text(
        "// maxSteerRestarts: 9\n{agents: {defaults: {subagents: {maxSteerRestarts: 5,},},},}\n"
    )
    text = '[read]\nopenclaw = "o.json5"\n'
    settings = compile_text(text, os.path.join(tmp_path, "notyet.toml"), "notyet")
    assert (settings.mistakes, settings.limits) == ((), {"max_blocks": 5})
