"""Faults of our entries, and of the settings around them."""

from planting import plants
from status_world import VERSIONS

# The entry.


@plants("not-registered")
def nothing_of_ours(world, monkeypatch):
    world.settings.write_text("{}")


@plants("partly-registered")
def no_stop_of_subagents(world, monkeypatch):
    world.change(lambda value: value["hooks"].pop("SubagentStop"))


@plants("starts-not-registered")
def no_start(world, monkeypatch):
    world.change(lambda value: value["hooks"].pop("SessionStart"))


@plants("registered-twice")
def in_two_places(world, monkeypatch):
    world.change(lambda value: value["hooks"]["Stop"].append(value["hooks"]["Stop"][0]))
    if world.host == "codex":
        world.serve()


@plants("event-misspelt")
def lower_case(world, monkeypatch):
    world.change(lambda value: value["hooks"].update(stop=value["hooks"].pop("Stop")))


@plants("entry-conditional", "claude")
def with_an_if(world, monkeypatch):
    world.each_entry(**{"if": "Bash(rm *)"})


@plants("entry-async")
def nobody_waits(world, monkeypatch):
    world.each_entry(**{"async": True})


@plants("entry-refused", "claude")
def a_timeout_of_0(world, monkeypatch):
    def change(value):
        value["hooks"]["SessionStart"][0]["hooks"][0]["timeout"] = 0

    world.change(change)


@plants("entry-refused", "claude")
def a_matcher_that_is_a_number(world, monkeypatch):
    world.change(lambda value: value["hooks"]["SubagentStop"][0].update(matcher=5))


@plants("matcher-broken")
def half_a_pattern(world, monkeypatch):
    world.change(lambda value: value["hooks"]["SubagentStop"][0].update(matcher="(a"))


@plants("matcher-restricts")
def only_some_agents(world, monkeypatch):
    world.change(lambda value: value["hooks"]["SubagentStop"][0].update(matcher="reviewer"))


@plants("wrong-host")
def of_another(world, monkeypatch):
    line = f"{world.notyet} hook --host notyet --timeout 1800"
    for event in ("Stop", "SubagentStop"):
        world.change(lambda value, e=event: value["hooks"][e][0]["hooks"][0].update(command=line))
    world.program("notyet", 'echo \'{"systemMessage": "notyet: here"}\'')


# The settings.


@plants("file-invalid")
def half_a_file(world, monkeypatch):
    world.settings.write_text(world.settings.read_text()[:-9])


@plants("file-invalid")
def a_folder(world, monkeypatch):
    world.settings.unlink()
    world.settings.mkdir()


@plants("file-invalid", level="warning")
def half_a_file_of_the_project(world, monkeypatch):
    name = "settings.json" if world.host == "claude" else "hooks.json"
    place = world.project / f".{world.host}" / name
    place.parent.mkdir()
    place.write_text("{")
    config = f'[projects."{world.project}"]\ntrust_level = "trusted"\n'
    (world.settings.parent / "config.toml").write_text(config)


@plants("file-invalid", "codex")
def half_a_config(world, monkeypatch):
    (world.home / ".codex/config.toml").write_text("[features\n")
    world.answer([])


@plants("file-dropped", "codex")
def a_config_that_codex_refuses(world, monkeypatch):
    path = world.home / ".codex/config.toml"
    path.write_text('model = "a"\n')
    world.answer([], f"{path}:1:9: invalid type: string")


@plants("file-dropped", "codex")
def a_strange_key(world, monkeypatch):
    world.change(lambda value: value.update(permissions={}))


@plants("file-dropped", "codex")
def another_timeout_that_is_a_fraction(world, monkeypatch):
    other = {"type": "command", "command": "make", "timeout": 1.5}
    world.change(lambda value: value["hooks"]["Stop"].append({"hooks": [other]}))


@plants("file-dropped", "codex")
def another_of_a_strange_type(world, monkeypatch):
    world.change(lambda value: value["hooks"]["Stop"].append({"hooks": [{"type": "http"}]}))


@plants("file-dropped", "codex")
def a_byte_order_mark(world, monkeypatch):
    world.settings.write_text("\ufeff" + world.settings.read_text())


@plants("file-dropped", "codex")
def only_codex_knows_why(world, monkeypatch):
    world.answer([], f"failed to parse hooks config {world.settings}: it is cursed at line 3")


@plants("file-dropped", "claude")
def a_switch_that_is_a_text(world, monkeypatch):
    world.change(lambda value: value.update(disableAllHooks="true"))


@plants("file-dropped", "claude")
def another_event_that_is_no_list(world, monkeypatch):
    world.change(lambda value: value["hooks"].update(PreToolUse={}))


@plants("hooks-disabled", "claude")
def for_the_user(world, monkeypatch):
    world.change(lambda value: value.update(disableAllHooks=True))


@plants("hooks-disabled", "claude")
def by_the_project(world, monkeypatch):
    world.change(lambda v: v.update(disableAllHooks=True), world.project / ".claude/settings.json")


@plants("hooks-disabled", "claude")
def by_the_organisation(world, monkeypatch):
    world.change(lambda v: v.update(disableAllHooks=True), world.managed / "managed-settings.json")


@plants("hooks-disabled", "codex")
def by_a_feature(world, monkeypatch):
    (world.home / ".codex/config.toml").write_text("[features]\nhooks = false\n")
    world.answer([])


@plants("hooks-disabled", "codex")
def by_the_feature_s_old_name(world, monkeypatch):
    (world.home / ".codex/config.toml").write_text("[features]\ncodex_hooks = false\n")
    world.answer([])


@plants("managed-hooks-only", "claude")
def of_claude_code(world, monkeypatch):
    path = world.managed / "managed-settings.json"
    world.change(lambda value: value.update(allowManagedHooksOnly=True), path)


@plants("managed-hooks-only", "codex")
def of_codex(world, monkeypatch):
    world.managed.mkdir()
    (world.managed / "requirements.toml").write_text("allow_managed_hooks_only = true\n")
    world.answer([])


@plants("off-by-variable")
def switched_off_in_the_shell(world, monkeypatch):
    monkeypatch.setenv("NOTYET_DISABLE", "1")


@plants("off-by-variable")
def inside_a_gate(world, monkeypatch):
    monkeypatch.setenv("NOTYET_INSIDE", "1")


@plants("off-by-variable", "claude")
def switched_off_by_settings(world, monkeypatch):
    path = world.project / ".claude/settings.local.json"
    world.change(lambda value: value.update(env={"NOTYET_DISABLE": "1"}), path)


@plants("other-folder", "claude")
def below_the_project(world, monkeypatch):
    world.settings.unlink()
    world.register("project")
    (world.project / "deeper").mkdir()
    monkeypatch.chdir(world.project / "deeper")


@plants("other-folder", "claude", level="warning")
def below_a_project_with_local_settings(world, monkeypatch):
    world.settings.unlink()
    world.register("local")
    (world.project / "deeper").mkdir()
    monkeypatch.chdir(world.project / "deeper")


@plants("file-dropped", "claude")
def what_only_claude_code_knows(world, monkeypatch):
    """As its doctor says it: one wrong key costs the file, another only its own entry."""
    sign = "\u203a"
    world.change(lambda value: value.update(permissions={"allow": "Bash"}))
    world.program(
        "claude",
        f"""[ "$1" = doctor ] || {{ echo '{VERSIONS["claude"]}'; exit; }}
cat <<'EOF'
Claude Code doctor

Running: native (2.1.325)

Invalid settings
- {world.settings} {sign} hooks.Stop.7: Hook matcher must be an object; matcher ignored.
- {world.settings} {sign} permissions.allow: Expected array, but received string
  Suggested fix: Permission rules must be in an array. Format: ["Tool(specifier)"].

No installation issues found.
EOF""",
    )
