"""Faults of the settings around our entries."""

from planting import plants


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


def older(world, change):
    """Change the settings of a Claude Code that cannot be asked what it thinks of them."""
    world.claude(version="2.1.197 (Claude Code)")
    world.change(change)


@plants("file-dropped", "claude")
def a_switch_that_is_a_text(world, monkeypatch):
    older(world, lambda value: value.update(disableAllHooks="true"))


@plants("file-dropped", "claude")
def another_event_that_is_no_list(world, monkeypatch):
    older(world, lambda value: value["hooks"].update(PreToolUse={}))


@plants("file-dropped", "claude")
def a_group_that_is_a_text(world, monkeypatch):
    older(world, lambda value: value["hooks"].update(Notification=["x"]))


@plants("file-dropped", "claude")
def a_group_without_a_list(world, monkeypatch):
    older(world, lambda value: value["hooks"].update(Notification=[{"hooks": {}}]))


@plants("file-dropped", "claude")
def a_neighbour_that_is_a_text(world, monkeypatch):
    older(world, lambda value: value["hooks"]["Stop"][0]["hooks"].append("x"))


@plants("file-dropped", "claude")
def a_neighbour_of_a_strange_type(world, monkeypatch):
    older(world, lambda value: value["hooks"]["Stop"][0]["hooks"].append({"type": "foo"}))


@plants("file-dropped", "claude")
def a_model_that_is_a_number(world, monkeypatch):
    older(world, lambda value: value.update(model=3))


@plants("file-dropped", "claude")
def days_that_are_a_text(world, monkeypatch):
    older(world, lambda value: value.update(cleanupPeriodDays="x"))


@plants("file-dropped", "claude")
def rules_that_are_a_text(world, monkeypatch):
    older(world, lambda value: value.update(permissions={"allow": "x"}))


@plants("settings-not-asked", "claude")
def a_version_that_cannot_be_asked(world, monkeypatch):
    older(world, lambda value: value["hooks"].update(Foo=3))


@plants("settings-not-asked", "claude")
def a_doctor_that_hangs(world, monkeypatch):
    monkeypatch.setattr("notyet.status.faults.claude.PATIENCE", 0.5)
    world.claude(doctor="sleep 60")


@plants("settings-not-asked", "claude")
def a_doctor_that_fails(world, monkeypatch):
    world.claude(doctor="exit 1")


@plants("settings-not-asked", "claude")
def a_doctor_of_other_words(world, monkeypatch):
    world.claude(doctor="echo hello")


@plants("file-unread", "claude")
def a_byte_that_is_not_utf8(world, monkeypatch):
    text = world.settings.read_bytes()
    world.settings.write_bytes(text.replace(b"{", b'{"x": "\xe9",', 1))


@plants("file-unread", "claude", level="fault")
def deeper_than_we_read(world, monkeypatch):
    deep = "[" * 200 + "]" * 200
    world.settings.write_text(world.settings.read_text().replace("{", f'{{"x": {deep},', 1))


@plants("file-invalid", "codex")
def a_byte_that_codex_does_not_read(world, monkeypatch):
    text = world.settings.read_bytes()
    world.settings.write_bytes(text.replace(b"{", b'{"description": "\xe9",', 1))


@plants("file-invalid", "claude")
def managed_settings_without_which_it_does_not_start(world, monkeypatch):
    world.managed.mkdir()
    (world.managed / "managed-settings.json").write_text("[]")


@plants("hooks-disabled", "claude")
def for_the_user(world, monkeypatch):
    world.change(lambda value: value.update(disableAllHooks=True))


@plants("hooks-disabled", "claude")
def by_the_project(world, monkeypatch):
    world.change(lambda v: v.update(disableAllHooks=True), world.project / ".claude/settings.json")


@plants("hooks-disabled", "claude")
def by_the_organisation(world, monkeypatch):
    world.change(lambda v: v.update(disableAllHooks=True), world.managed / "managed-settings.json")


@plants("hooks-disabled", "claude")
def by_a_variable(world, monkeypatch):
    monkeypatch.setenv("CLAUDE_CODE_SIMPLE", "1")


@plants("hooks-disabled", "claude")
def by_a_variable_of_the_project(world, monkeypatch):
    path = world.project / ".claude/settings.json"
    world.change(lambda value: value.update(env={"CLAUDE_CODE_SIMPLE": True}), path)


@plants("hooks-disabled", "claude")
def by_the_main_work_tree(world, monkeypatch):
    world.worktree()
    local = world.project / ".claude" / "settings.local.json"
    world.change(lambda v: v.update(disableAllHooks=True), local)


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


@plants("managed-hooks-only", "claude")
def only_plugins(world, monkeypatch):
    path = world.managed / "managed-settings.json"
    world.change(lambda value: value.update(strictPluginOnlyCustomization=True), path)


@plants("managed-hooks-only", "claude")
def only_plugins_for_hooks(world, monkeypatch):
    path = world.managed / "managed-settings.json"
    world.change(lambda value: value.update(strictPluginOnlyCustomization=["hooks"]), path)


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


@plants("off-by-variable", "claude")
def switched_off_by_a_boolean(world, monkeypatch):
    world.change(lambda value: value.update(env={"NOTYET_DISABLE": True}))


@plants("off-by-variable")
def a_probe_s_mark_in_the_shell(world, monkeypatch):
    monkeypatch.setenv("NOTYET_PROBE", "a1b2")


@plants("off-by-variable", "claude")
def a_probe_s_mark_in_settings(world, monkeypatch):
    path = world.project / ".claude/settings.local.json"
    world.change(lambda value: value.update(env={"NOTYET_PROBE": "a1b2"}), path)


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


@plants("other-folder", "claude")
def below_a_project_with_local_settings_and_an_older_one(world, monkeypatch):
    world.claude(version="2.1.197 (Claude Code)")
    below_a_project_with_local_settings(world, monkeypatch)


@plants("file-dropped", "claude")
def what_only_claude_code_knows(world, monkeypatch):
    """As its doctor says it: one wrong key costs the file, another only its own entry."""
    world.claude(
        world.complaint("hooks.Stop.7", "Hook matcher must be an object; matcher ignored."),
        world.complaint("permissions.allow", "Expected array, but received string"),
        "  Suggested fix: Permission rules must be in an array.",
    )
