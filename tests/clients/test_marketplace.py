"""The plugins of this repository, installed in the real programs as their users would do it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from clients.conftest import world_of
from clients.model.script import Run, Say
from clients.world import NOTYET

ROOT = Path(__file__).parents[2]
READY = '[gates.ready]\nrun = "test -e ready"\n'
CLAUDE = "claude-2.1.325"
# What is typed; {market} is a clone of the repository.
LINES = {
    CLAUDE: ("plugin marketplace add {market}", "plugin install notyet@notyet"),
    "codex-0.166.0": ("plugin marketplace add {market}", "plugin add notyet@notyet"),
    "copilot": ("plugin marketplace add {market}", "plugin install notyet@notyet"),
    "droid": ("plugin marketplace add file://{market}", "plugin install notyet@notyet"),
    "gemini": ("extensions install {market}/plugins/gemini --consent",),
    "goose": (),
    "opencode": (),
    "qwen": ("extensions install {market}:notyet --consent",),
}
COPIED = {
    "goose": ("plugins/notyet", ".agents/plugins/notyet"),
    "opencode": ("plugins/opencode", ".config/opencode/plugins"),
}
SHOWS_NOTHING = ("goose",)  # of what a hook says
only_claude = pytest.mark.parametrize("host", [CLAUDE], indirect=True)
each = pytest.mark.parametrize(
    "host",
    [CLAUDE, *(pytest.param(name, marks=pytest.mark.full) for name in LINES if name != CLAUDE)],
    indirect=True,
)


@pytest.fixture(params=LINES)
def host(request, tmp_path):
    """Each host that can install a plugin, with ours, and a folder for notyet on its PATH."""
    with world_of(request.param, tmp_path).scenario() as world:
        world.bin = world.folder / "bin"
        world.bin.mkdir()
        world.search = f"{world.bin}:{world.environ['PATH']}"
        install_plugin(world, request.param)
        yield world


def install_plugin(world, name):
    """Do what a user of the host does; of Codex, also approve the hooks."""
    market = world.folder / "notyet"
    for part in (".claude-plugin", "plugins"):
        shutil.copytree(ROOT / part, market / part)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        run(world, [*git, *words], market)
    if name in COPIED:
        source, target = COPIED[name]
        shutil.copytree(market / source, world.home / target, dirs_exist_ok=True)
    if world.HOST == "codex":
        config = world.config.read_text()
        world.config.write_text(config.replace("plugins = false", "plugins = true"))
    for line in LINES[name]:
        run(world, [str(world.program), *line.format(market=market).split()], world.project)
    if world.HOST == "codex":
        with world._app_server("http://127.0.0.1:1") as server:
            hashes = {
                hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in server.hooks()[0]
            }
            approval = {"keyPath": "hooks.state", "value": hashes, "mergeStrategy": "upsert"}
            server.ask("config/batchWrite", edits=[approval])


def run(world, line, folder):
    """Run a command of the host's."""
    # Gemini CLI asks whether it may trust a folder that it installs from, even with --consent.
    more = {"GEMINI_CLI_TRUST_WORKSPACE": "true"} if world.HOST == "gemini" else {}
    environ = world.environ | world.variables("http://127.0.0.1:9") | more
    done = subprocess.run(
        line,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, (line, done.stdout, done.stderr)


def gated(world):
    """Put notyet on the PATH, and let the project have a gate."""
    (world.bin / "notyet").symlink_to(NOTYET)
    world.gates(READY)
    world.trust()


def test_the_page_names_these_commands():
    page = (ROOT / "docs" / "how-to" / "plugin.md").read_text()
    for name, lines in LINES.items():
        for line in lines:
            assert f"`{name.partition('-')[0]} {line.format(market='/home/ada/notyet')}`" in page
    for name, (source, target) in COPIED.items():
        assert f"copy `{source}" in page, name
        assert f"`~/{target}" in page, name


def test_the_plugin_sends_an_agent_back_until_its_gates_pass(host):
    gated(host)
    said = json.loads(host.notyet("status", host.HOST, "--json", PATH=host.search).stdout)
    assert said["answer"]["state"] == "yes", said["hosts"][0]["faults"]
    ran = host.run([Say("Done!"), Run("touch ready"), Say("Now it is.")], PATH=host.search)
    assert (ran.code, ran.text) == (0, "Now it is."), ran.err
    assert host.outcomes() == ["blocked", "passed"]
    (prompt,) = host.WIRE.prompts(ran.model.asked()[1].news)
    assert "FAILED ready (exit 1" in prompt


@each
@pytest.mark.rule("B12")
def test_the_plugin_and_settings_together_run_and_count_once(host):
    gated(host)
    host.gates('[gates.ready]\nrun = "echo asked >> asked.log; test -e ready"\n')
    host.install("--user")
    ran = host.run([Say("Done!"), Run("touch ready"), Say("Now it is.")], PATH=host.search)
    assert (ran.code, ran.text) == (0, "Now it is."), ran.err
    assert host.outcomes() == ["blocked", "passed"]
    assert (host.project / "asked.log").read_text() == "asked\n" * 2
    assert len(host.WIRE.prompts(ran.model.asked()[1].news)) == 1


@each
def test_without_the_program_the_user_or_the_agent_is_told(host):
    host.ungated = {"main"}
    ran = host.run([Say("Done.")], PATH=host.search)
    assert (ran.code, ran.text) == (0, "Done."), ran.err
    told = ran.out + ran.err + str(ran.model.asked()[0].raw)
    assert ("NOT CHECKED: the program notyet is not on your PATH" in told) == (
        host.HOST not in SHOWS_NOTHING
    )


@only_claude
def test_a_command_shows_the_status_also_if_something_is_wrong(host):
    strictly = ["plugin", "validate", "--strict", str(host.folder / "notyet/plugins/notyet")]
    run(host, [str(host.program), *strictly], host.project)
    (host.bin / "notyet").symlink_to(NOTYET)
    host.ungated = {"main"}
    ran = host.run([Say("Nothing is checked.")], prompt="/notyet:gates", PATH=host.search)
    assert ran.code == 0, ran.err
    told = "\n".join(ran.model.asked()[0].texts)
    assert "NO  No gate is in force here" in told
    assert "Report this to the user" in told
    assert "\n- notyet:notyet: Use when a stop was sent back" in told  # the skill
