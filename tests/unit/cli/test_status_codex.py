"""`notyet status codex`: what only Codex has, its projects, approvals and two kinds of files."""

import json
import shutil

import pytest

from notyet.install import codex_trust
from status_world import World


@pytest.fixture
def world_of(tmp_path, monkeypatch, capsys):
    return lambda host: World(host, tmp_path, monkeypatch, capsys)


def test_a_codex_project_that_is_trusted_is_read(world_of):
    world = world_of("codex")
    world.settings.unlink()
    world.register("project")
    config = f'[projects."{world.project}"]\ntrust_level = "trusted"\n'
    (world.home / ".codex/config.toml").write_text(config)
    world.answer([world.listed(entry) for entry in world.entries("project")])
    assert world.found() == (0, {})


def test_a_strange_project_beside_the_user_s_entry_is_only_a_warning(world_of):
    world = world_of("codex")
    world.register("project")
    code, found = world.found()
    assert code == 0
    assert found["project-untrusted"]["level"] == "warning"
    assert set(found) == {"project-untrusted", "registered-twice"}


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ({}, "hook-untrusted"),
        ({"trusted_hash": "sha256:0"}, "hook-modified"),
        ({"trusted_hash": "right", "enabled": False}, "hook-disabled"),
        ({"trusted_hash": "right"}, None),
    ],
)
def test_without_codex_the_hashes_in_its_files_decide(world_of, state, code):
    world = world_of("codex")
    (world.bin / "codex").unlink()
    lines = []
    for entry in world.entries():
        right = codex_trust.hash_of(entry.event, entry.handler)
        lines.append(f'[hooks.state."{world.listed(entry)["key"]}"]')
        for name, value in state.items():
            value = json.dumps(right if value == "right" else value)  # noqa: PLW2901  # as TOML
            lines.append(f"{name} = {value}")
    (world.home / ".codex" / "config.toml").write_text("\n".join(lines))
    found = world.found()[1]
    assert list(found) == (["program-not-found", code] if code else ["program-not-found"])


def test_an_organisation_s_codex_entry_needs_no_approval(world_of):
    world = world_of("codex")
    (world.bin / "codex").unlink()
    world.managed.mkdir()
    shutil.move(world.settings, world.managed / "hooks.json")
    text = "allow_managed_hooks_only = true\n"
    (world.managed / "requirements.toml").write_text(text)
    assert list(world.found()[1]) == ["program-not-found"]


def test_a_codex_hook_that_is_no_object_drops_the_file(world_of):
    world = world_of("codex")
    world.change(lambda value: value["hooks"]["Stop"].append({"hooks": ["make"]}))
    found = world.found()[1]
    assert found["file-dropped"]["what"].endswith("because a hook is not an object.")


def test_codex_entries_in_toml_are_found_too(world_of):
    from notyet.install import codex
    from notyet.install.entry import entries
    from notyet.install.place import Place

    world = world_of("codex")
    path = world.home / ".codex" / "config.toml"
    place = Place(scope="user", path=str(path), form="toml")
    text = codex.added("# mine\n", place, entries("codex", str(world.notyet), 1800))
    path.write_text(text)
    world.settings.unlink()
    world.serve()
    assert world.found() == (0, {})


def test_codex_says_where_a_file_is_wrong(world_of):
    world = world_of("codex")
    path = world.home / ".codex" / "config.toml"
    path.write_text('model = "a"\n')
    world.answer([], f"{path}:1:9: invalid type: string")
    found = world.found()[1]["file-dropped"]
    assert found["what"] == "Codex takes nothing from it: invalid type: string."
    assert found["where"] == f"{path}:1:9"


def test_a_strange_project_s_broken_file_is_nobody_s_concern(world_of):
    world = world_of("codex")
    (world.project / ".codex").mkdir()
    (world.project / ".codex" / "hooks.json").write_text("{")
    assert world.found() == (0, {})


def test_the_hooks_of_the_main_work_tree_count_for_others(world_of):
    world = world_of("codex")
    world.settings.unlink()
    world.register("project")
    listed = [world.listed(entry) for entry in world.entries("project")]
    shutil.copytree(world.project / ".codex", world.worktree() / ".codex")
    world.answer(listed)
    assert world.found() == (0, {})
    world.answer([])
    assert list(world.found()[1]) == ["project-untrusted"]
    config = f'[projects."{world.project}"]\ntrust_level = "trusted"\n'
    (world.home / ".codex/config.toml").write_text(config)
    assert list(world.found()[1]) == ["hook-not-loaded"]


def test_other_hooks_of_the_main_work_tree_are_not_these(world_of):
    world = world_of("codex")
    world.settings.unlink()
    world.register("project")
    listed = [world.listed(entry) for entry in world.entries("project")]
    shutil.copytree(world.project / ".codex", world.worktree() / ".codex")
    world.answer([hook | {"currentHash": "sha256:0"} for hook in listed])
    code, found = world.found()
    assert (code, list(found)) == (1, ["hook-not-loaded"])
    main = world.project / ".codex" / "hooks.json"
    what = f"Codex takes the hooks of the main work tree, {main}."
    assert found["hook-not-loaded"]["what"] == what


def test_an_unapproved_line_with_others_beside_a_sure_one_is_a_warning(world_of):
    world = world_of("codex")
    line = f"touch {world.folder}/ran && {world.notyet} hook --host codex --timeout 1800"
    mixed = {"hooks": [{"type": "command", "command": line, "timeout": 1800}]}
    world.change(lambda value: value["hooks"]["Stop"].append(mixed))
    hooks = [world.listed(entry) for entry in world.entries()]
    for hook in hooks:
        if hook["key"].endswith(":stop:1:0"):
            hook["trustStatus"] = "untrusted"
    world.answer(hooks)
    code, found = world.found()
    assert (code, set(found)) == (0, {"registered-twice", "hook-untrusted"})
    assert found["hook-untrusted"]["level"] == "warning"
    assert found["hook-untrusted"]["fix"] == "start codex here, type /hooks and approve it"
    assert not (world.folder / "ran").exists()


def test_codex_waits_a_second_at_least(world_of):
    world = world_of("codex")
    world.change(lambda value: value["hooks"]["Stop"][0]["hooks"][0].update(timeout=0))
    assert world.found()[1]["timeout-too-short"]["what"].startswith("Codex waits 1 s ")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"hooks": []}, "because hooks is not an object."),
        ({"hooks": {"Stop": {}}}, "because hooks.Stop is not a list."),
    ],
)
def test_a_shape_that_codex_does_not_take_is_named(world_of, value, why):
    world = world_of("codex")
    world.settings.write_text(json.dumps(value))
    found = world.found()[1]
    assert list(found) == ["file-dropped"]
    assert found["file-dropped"]["what"].endswith(why)


def test_a_place_behind_codex_s_words_is_read(world_of):
    world = world_of("codex")
    said = "invalid type: string, expected a boolean at line 12 column 5"
    world.answer([], f"failed to parse hooks config {world.settings}: {said}")
    found = world.found()[1]["file-dropped"]
    assert found["where"] == f"{world.settings}:12:5"
    assert found["what"] == "Codex takes nothing from it: invalid type: string, expected a boolean."


def test_a_feature_is_told_with_its_place(world_of):
    world = world_of("codex")
    path = world.home / ".codex/config.toml"
    path.write_text("[features]\nplugins = true\nhooks = false\n")
    world.answer([])
    assert world.found()[1]["hooks-disabled"]["where"] == f"{path}:3:1"
