"""Our own call in commands: however it is written, and what else a command runs."""

import pytest

from notyet.hosts.own_command import is_only_hook, ours_in, ours_of

HOOK = ["notyet", "hook"]


@pytest.mark.parametrize(
    "command",
    [
        "uvx --from notyet notyet hook",
        "uv run --with notyet notyet hook",
        "uv run --python python3.12 notyet hook",
        "pipx run --spec notyet notyet hook",
        "uvx notyet@latest hook",
        "uvx 'notyet[all]>=0.1' hook",
        "uvx --from git+https://x/notyet@main notyet hook",
        "pipx run notyet==0.1 hook",
        "uv tool run notyet@latest hook",
        "bash -o pipefail -c 'notyet hook'",
        "bash -euo pipefail +O extglob --rcfile /x -c 'notyet hook'",
        "busybox sh -c 'notyet hook'",
        'env -S "notyet hook"',
        "env -S A=1 notyet hook",
        "caffeinate -i notyet hook",
        "doas notyet hook",
        "notyet hook>/dev/null",
        "2>/dev/null notyet hook",
        "notyet 2>&1 hook </dev/stdin",
        "notyet hook 2>&- >&2",
        "sudo -u notyet notyet hook",
        "sudo -nu root notyet hook",
        "sudo -uroot notyet hook",
        "sudo --user me notyet hook",
        "env -i notyet hook",
        "uv run --directory notyet notyet hook",
    ],
)
def test_our_call_is_known_behind_every_runner_and_redirection(command):
    assert ours_in(command) == HOOK
    assert is_only_hook(command)


def test_the_launcher_of_windows_and_odd_descriptors_are_known():
    assert ours_in("py -3 -m notyet hook") == ["py", "-3", "-m", "notyet", "hook"]
    assert ours_in("notyet hook 2") == [*HOOK, "2"]


@pytest.mark.parametrize(
    "command",
    [
        "command -v notyet hook",
        "command -pV notyet hook",
        "cat <<END\nnotyet hook\nEND",
        "notyet hook <<END\nx\nEND",
        "bash -o notyet hook",
        "bash -c",
        "uvx notyet-other hook",
        "notyet@latest hook",
        "echo > notyet hook",
        "sudo -u notyet hook",
        "sudo -nu notyet hook",
        "sudo --user notyet hook",
        "env -u notyet hook",
        "uv run --directory notyet hook",
        "uv run --project notyet hook",
        "uvx --directory notyet hook",
    ],
)
def test_a_lookup_a_text_and_a_file_are_not_our_call(command):
    assert ours_in(command) is None
    assert not is_only_hook(command)


@pytest.mark.parametrize(
    "command",
    [
        "notyet hook --host claude --timeout 5",
        "cd /w && notyet hook",
        'cd "$CLAUDE_PROJECT_DIR" && A=1 notyet hook || true',
        "(notyet hook)",
        "if command -v notyet >/dev/null; then notyet hook; fi",
        "[ -x /x/notyet ] && /x/notyet hook; exit 0",
        "test -e notyet.toml || exit 0; export A=1; set -e; notyet hook",
        "sh -c 'command -v notyet >/dev/null 2>&1 || exit 0; exec notyet hook --host codex'",
        "if true; then notyet hook; else :; fi",
        '"$(which notyet)" hook',
        "`command -v notyet` hook",
        "eval 'notyet hook'",
        "notyet hook; notyet hook",
        "exec 2>/dev/null; notyet hook",
        "notyet hook --host codex; exit $?",
    ],
)
def test_a_command_that_is_nothing_but_ours_may_be_replaced(command):
    assert is_only_hook(command)


@pytest.mark.parametrize(
    "command",
    [
        "./lint.sh && notyet hook --host claude",
        "pytest -q; notyet hook",
        "notyet hook || ./notify.sh",
        "notyet hook || exit 2",
        "if command -v notyet; then notyet hook; else ./mine.sh; fi",
        "tee log | notyet hook",
        "notyet hook > >(tee log)",
        "sh -c './mine.sh; notyet hook'",
        "sh ./mine.sh; notyet hook",
        "A=$(./mine.sh) notyet hook",
        "A=$(./mine.sh) sh -c 'notyet hook'",
        'notyet hook --host "$(./mine.sh)"',
        "$(./mine.sh; which notyet) hook",
        "cd `./mine.sh`; notyet hook",
        "notyet hook; notyet conclaude Hooks Stop",
        "sh -c " * 4 + "\"sh -c 'sh -c x'\"; notyet hook",
        "f() { notyet hook; }; f",
        "command lint-verify && notyet hook",
        ": > /tmp/agent-idle && notyet hook",
        'notyet hook > "$(./log-name.sh)"',
        "notyet hook > `./log-name.sh`",
        "notyet hook 2>>log >| out",
        "notyet hook &> log",
        "notyet hook >&log",
        "notyet hook > l1",
        '"$(git rev-parse --show-toplevel)/.venv/bin/notyet" hook',
    ],
)
def test_a_command_that_also_runs_something_else_is_ours_but_not_ours_alone(command):
    assert ours_in(command)
    assert not is_only_hook(command)


@pytest.mark.parametrize("command", ["lint", "", "notyet conclaude Hooks Stop", "echo notyet hook"])
def test_a_command_of_others_is_not_ours_alone(command):
    assert not is_only_hook(command)


def test_arguments_without_a_shell_are_words():
    assert ours_of(["sh", "-c", "./lint.sh; notyet hook"]) == HOOK
    assert ours_of(["notyet>", "hook"]) is None
