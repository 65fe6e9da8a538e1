"""Faults of commands, of trust, of time, and of the hosts' programs."""

import json
import os

from hook_runs import trust
from planting import plants
from status_world import GATES

# The command.


@plants("program-missing")
def it_is_gone(world, monkeypatch):
    world.notyet.unlink()


@plants("program-missing")
def it_is_not_on_the_path(world, monkeypatch):
    world.settings.unlink()
    world.notyet.unlink()
    world.register(start="")
    if world.host == "codex":
        world.serve()


@plants("program-not-executable")
def it_lost_its_mode(world, monkeypatch):
    world.notyet.chmod(0o644)


@plants("program-not-executable")
def it_is_a_folder(world, monkeypatch):
    world.notyet.unlink()
    world.notyet.mkdir()


@plants("interpreter-missing")
def python_is_gone(world, monkeypatch):
    world.program("notyet", "", "#!/no/such/python3.11 -I")


@plants("no-reply")
def it_fails(world, monkeypatch):
    world.program("notyet", "echo 'ModuleNotFoundError: notyet' >&2; exit 1")


@plants("no-reply")
def it_says_nothing(world, monkeypatch):
    world.program("notyet", "exit 0")


@plants("no-reply")
def it_says_something_else(world, monkeypatch):
    world.program("notyet", "echo hello")


@plants("no-reply")
def it_is_killed(world, monkeypatch):
    world.program("notyet", "kill -9 $$")


@plants("no-reply")
def it_hangs(world, monkeypatch):
    monkeypatch.setattr("notyet.status.probe._PATIENCE", 0.5)
    world.program("notyet", "sleep 60")


def each_stop(world, line):
    """Write another command for both stops; a Codex that is asked approves of it."""
    for event in ("Stop", "SubagentStop"):
        world.change(lambda value, e=event: value["hooks"][e][0]["hooks"][0].update(command=line))


@plants("asks-otherwise")
def it_is_switched_off_in_its_line(world, monkeypatch):
    each_stop(world, f"NOTYET_DISABLE=1 {world.notyet} hook --host {world.host} --timeout 1800")


@plants("asks-otherwise")
def it_looks_elsewhere(world, monkeypatch):
    line = f"XDG_STATE_HOME={world.folder}/no {world.notyet} hook --host {world.host}"
    each_stop(world, f"{line} --timeout 1800")


@plants("no-reply")
def only_subagents_are_not_answered(world, monkeypatch):
    line = f"{world.notyet} hook --host {world.host} --timeout 1800 >/dev/null"
    world.change(lambda v: v["hooks"]["SubagentStop"][0]["hooks"][0].update(command=line))


@plants("other-version")
def an_older_one(world, monkeypatch):
    world.program("notyet", 'echo \'{"systemMessage": "notyet 0.0.1: would ask lint"}\'')


@plants("program-missing")
def its_launcher_is_gone(world, monkeypatch):
    (world.launch() / "launch.py").unlink()


@plants("program-missing")
def its_launcher_is_no_file(world, monkeypatch):
    path = world.launch() / "launch.py"
    path.unlink()
    path.mkdir()


@plants("launcher-other")
def its_launcher_is_of_another_version(world, monkeypatch):
    path = world.launch() / "launch.py"
    path.write_text(f"{path.read_text()}# of another version\n")


@plants("launcher-other")
def its_launcher_is_of_another_installation(world, monkeypatch):
    folder = world.launch()
    other = folder.with_name("0123456789ab")
    folder.rename(other)
    known = world.settings.read_text()
    world.settings.write_text(known.replace(folder.name, other.name))
    if world.host == "codex":
        world.serve()


@plants("pack-outdated")
def its_pack_was_never_made(world, monkeypatch):
    for pack in world.launch().glob("*.pack"):
        pack.unlink()


@plants("pack-outdated")
def its_pack_is_cut_short(world, monkeypatch):
    for pack in world.launch().glob("*.pack"):
        pack.write_bytes(pack.read_bytes()[:9_000])


@plants("not-probed")
def it_also_runs_others(world, monkeypatch):
    line = f"touch {world.folder}/ran && {world.notyet} hook --host {world.host} --timeout 1800"
    each_stop(world, line)


@plants("not-probed", "claude")
def a_program_of_a_project_that_nobody_accepted(world, monkeypatch):
    world.settings.unlink()
    world.notyet.rename(world.project / "notyet")
    world.register("project", start="./notyet")


# Trust.


@plants("hook-untrusted", "codex")
def nobody_approved(world, monkeypatch):
    world.serve(trustStatus="untrusted")


@plants("hook-modified", "codex")
def it_changed(world, monkeypatch):
    world.serve(trustStatus="modified")


@plants("hook-disabled", "codex")
def switched_off_in_hooks(world, monkeypatch):
    world.serve(enabled=False)


@plants("hook-not-loaded", "codex")
def it_is_not_listed(world, monkeypatch):
    world.answer([])


@plants("project-untrusted", "codex")
def only_in_a_strange_project(world, monkeypatch):
    world.settings.unlink()
    world.register("project")
    world.answer([])


@plants("folder-not-accepted", "claude")
def another_folder_was_accepted(world, monkeypatch):
    known = {"projects": {"/elsewhere": {"hasTrustDialogAccepted": True}}}
    (world.home / ".claude.json").write_text(json.dumps(known))


@plants("trust-not-asked", "codex")
def codex_does_not_answer(world, monkeypatch):
    from notyet.install import codex, codex_trust

    hashes = {
        world.listed(entry)["key"]: codex_trust.hash_of(entry.event, entry.handler)
        for entry in world.entries()
    }
    config = next(p for p in codex.places(".", os.environ) if p.path.endswith(".codex/config.toml"))
    (world.home / ".codex/config.toml").write_text(codex_trust.trusted("", config, hashes))
    world.program("codex", 'test "$1" = --version && echo 0.166.0')


# Time and counts.


@plants("timeout-too-short")
def codex_or_claude_waits_less(world, monkeypatch):
    world.change(lambda value: value["hooks"]["Stop"][0]["hooks"][0].update(timeout=1799))


@plants("gates-too-slow")
def one_after_another(world, monkeypatch):
    text = "".join(
        f'[gates.g{n}]\nrun = "true"\ntimeout = "10m"\npriority = {n}\n' for n in range(4)
    )
    (world.project / "notyet.toml").write_text(text)
    trust(world.project / "notyet.toml")


@plants("limit-above-cap", "claude")
def more_than_claude_code_honours(world, monkeypatch):
    (world.project / "notyet.toml").write_text(f"{GATES}[limits]\nmax_blocks = 9\n")
    trust(world.project / "notyet.toml")


@plants("limit-above-cap", "claude")
def more_than_the_settings_allow(world, monkeypatch):
    cap = {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "2"}
    world.change(lambda value: value.update(env=cap))


# The host's program.


@plants("program-not-found", "claude")
def no_program(world, monkeypatch):
    (world.bin / world.host).unlink()


@plants("version-too-old", "claude")
def of_last_year(world, monkeypatch):
    world.program("claude", "echo '2.0.41 (Claude Code)'")


@plants("version-old", "claude")
def of_this_spring(world, monkeypatch):
    world.program("claude", "echo '2.1.162 (Claude Code)'")


@plants("version-too-old", "codex")
def hooks_were_an_experiment(world, monkeypatch):
    codex = world.bin / "codex"
    codex.write_text(codex.read_text().replace("0.166.0", "0.123.9"))


@plants("version-old", "codex")
def exec_was_different(world, monkeypatch):
    codex = world.bin / "codex"
    codex.write_text(codex.read_text().replace("0.166.0", "0.139.0"))


@plants("version-unknown", "claude")
def it_cannot_start(world, monkeypatch):
    world.program("claude", "echo no >&2; exit 3")


@plants("version-unknown", "claude")
def it_names_none(world, monkeypatch):
    world.program("claude", "head -c 3000000 /dev/urandom | base64 | tr -d 0-9")


@plants("version-unknown", "claude")
def it_never_answers(world, monkeypatch):
    monkeypatch.setattr("notyet.status.faults.programs.PATIENCE", 0.5)
    world.program("claude", "sleep 60")
