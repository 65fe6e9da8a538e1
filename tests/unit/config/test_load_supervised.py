"""What is in force for an agent that a supervisor runs."""

import os

import pytest

from config_places import READS, hooks, write, write_own, write_user_toml
from notyet.config.load import load

CONCLAUDE = "stop:\n  commands:\n    - run: conclaude's\n"
CODEX_TOML = '[[hooks.{}]]\n[[hooks.{}.hooks]]\ntype = "command"\ncommand = "{}"\n'


def supervised(cwd, agent="scripted"):
    return load(str(cwd), "notyet", os.environ, agent=agent)


def lines(entries):
    return [entry.check.line for entry in entries]


def write_all(folder, event="Stop", **options):
    write(folder, ".claude/settings.json", hooks("claude's", event=event), **options)
    write(folder, ".codex/hooks.json", hooks("codex's", event=event), **options)
    write(folder, ".mux/settings.json", hooks("mux's", event=event), **options)


@pytest.mark.rule("J8")
@pytest.mark.parametrize(
    ("agent", "read"),
    [
        ("scripted", ["ours", "claude's", "codex's", "mux's", "conclaude's"]),
        ("gemini", ["ours", "claude's", "codex's", "mux's", "conclaude's"]),
        ("claude", ["ours", "codex's", "mux's", "conclaude's"]),
        ("codex", ["ours", "claude's", "mux's", "conclaude's"]),
    ],
)
def test_a_supervisor_reads_all_files_but_those_its_agent_runs_itself(tmp_path, agent, read):
    pytest.importorskip("yaml")
    write_all(tmp_path)
    write(tmp_path, ".conclaude.yaml", CONCLAUDE)
    write(tmp_path, "notyet.toml", '[gates]\na = "ours"\n')
    assert lines(supervised(tmp_path, agent).gates) == read
    assert lines(load(str(tmp_path), "notyet", os.environ).gates) == ["ours"]


@pytest.mark.rule("J8", "N5")
def test_untrusted_gates_do_not_run_and_are_reported(tmp_path):
    write_all(tmp_path, trusted=False)
    write_own(".mux/settings.json", hooks("the user's"))
    found = supervised(tmp_path)
    assert lines(found.gates) == ["the user's"]
    assert found.distrust == [
        f"{tmp_path}/.claude/settings.json is not trusted; run: notyet trust --read claude",
        f"{tmp_path}/.codex/hooks.json is not trusted; run: notyet trust --read codex",
        f"{tmp_path}/.mux/settings.json is not trusted; run: notyet trust --read mux",
    ]


@pytest.mark.rule("J8")
@pytest.mark.parametrize("host", ["claude", "codex"])
def test_personal_hooks_for_other_hosts_are_read_only_where_read_names_the_host(tmp_path, host):
    write_own(".claude/settings.json", hooks("claude"))
    write_own(".codex/hooks.json", hooks("codex"))
    write_own(".mux/settings.json", hooks("mux"))
    assert lines(supervised(tmp_path).gates) == ["mux"]
    write_user_toml(READS.format(host))
    assert lines(supervised(tmp_path).gates) == [*sorted([host, "mux"])]


def test_a_file_that_runs_nothing_needs_no_trust(tmp_path):
    write(tmp_path, ".claude/settings.json", '{"permissions": {}}', trusted=False)
    write(tmp_path, ".codex/config.toml", 'model = "x"\n', trusted=False)
    assert supervised(tmp_path).untrusted == ()
    write(tmp_path, ".claude/settings.json", "{broken", trusted=False)
    write(tmp_path, ".codex/config.toml", CODEX_TOML.format(*["SessionStart"] * 2, "x"))
    assert [file.kind for file in supervised(tmp_path).untrusted] == ["claude"]
    write(tmp_path, "notyet.toml", "", trusted=False)
    assert [file.kind for file in supervised(tmp_path).untrusted] == ["notyet", "claude"]


@pytest.mark.rule("F13-claude", "F13-codex", "J1", "J4", "J8")
def test_start_hooks_of_trusted_files_are_starters_where_an_agent_is_supervised(tmp_path):
    write_own(".claude/settings.json", hooks("both", "user's", event="SessionStart"))
    write_user_toml(READS.format("claude"))
    write(tmp_path, ".claude/settings.json", hooks("both", event="SessionStart"))
    write(tmp_path, ".claude/settings.local.json", hooks("both", event="SubagentStart"))
    write(tmp_path, ".codex/hooks.json", hooks("codex's", "codex's", event="SessionStart"))
    toml = CODEX_TOML.format("SubagentStart", "SubagentStart", "toml's")
    write(tmp_path, ".codex/config.toml", toml)
    write(tmp_path, ".mux/settings.json", hooks("mux has none", event="SessionStart"))
    found = supervised(tmp_path)
    assert lines(found.starters) == ["both", "user's", "both", "codex's", "codex's", "toml's"]
    assert [starter.scope for starter in found.starters].count("subagent") == 2
    assert lines(supervised(tmp_path, "claude").starters) == ["codex's", "codex's", "toml's"]
    assert lines(supervised(tmp_path, "codex").starters) == ["both", "user's", "both"]
    assert load(str(tmp_path), "notyet", os.environ).starters == ()


@pytest.mark.rule("N5")
def test_untrusted_start_hooks_do_not_count(tmp_path):
    path = write(tmp_path / "p", ".claude/settings.json", hooks("seen", event="SessionStart"))
    path.write_text(hooks("not seen", event="SessionStart"))
    found = supervised(tmp_path / "p")
    assert lines(found.starters) == ["seen"]  # the last version trusted
    assert "changed since it was trusted" in found.warnings[0]
    write(tmp_path / "q", ".claude/settings.json", hooks("x", event="SessionStart"), trusted=False)
    found = supervised(tmp_path / "q")
    assert found.starters == ()
    assert len(found.untrusted) == 1
