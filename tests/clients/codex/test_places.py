"""Homes and projects as people really have them: links, folders below, worktrees, odd names."""

import shlex

import pytest

from clients.model.script import Say

ONCE = '[gates.once]\nrun = "test -e fixed || { touch fixed; exit 1; }"\n'


def all_trusted(codex, count=4):
    hooks, warnings = codex.seen_hooks()
    assert not warnings
    assert [hook["trustStatus"] for hook in hooks.values()] == ["trusted"] * count, hooks


def is_gated(codex, **environ):
    codex.run([Say("first"), Say("second")], **environ)
    assert codex.outcomes() == ["blocked", "passed"]


def link_home(codex):
    """Keep Codex's home elsewhere, as people do who version it."""
    real = codex.folder / "dotfiles" / "codex"
    real.parent.mkdir()
    codex.codex_home.rename(real)
    codex.codex_home.symlink_to(real)


def link_file(codex):
    real = codex.folder / "dotfiles"
    real.mkdir()
    (real / "hooks.json").write_text("{}\n")
    codex.hooks.symlink_to(real / "hooks.json")


def link_settings(codex):
    real = codex.folder / "dotfiles"
    real.mkdir()
    codex.config.rename(real / "config.toml")
    codex.config.symlink_to(real / "config.toml")


def name_with_quotes(codex):
    strange = codex.folder / 'it\'s "so" \u00e4 [x] # $HOME'
    codex.home.rename(strange)
    codex.home = strange


@pytest.mark.parametrize("arrange", [link_home, link_file, link_settings, name_with_quotes])
def test_a_home_of_any_kind_is_installed_into_and_trusted(codex, arrange):
    arrange(codex)
    codex.gates(ONCE)
    codex.install()
    all_trusted(codex)
    is_gated(codex)


def test_a_project_that_is_reached_by_a_link(codex):
    real = codex.folder / "elsewhere"
    codex.project.rename(real)
    codex.project.symlink_to(real)
    codex.forget_project()
    codex.configure(projects={str(real): {"trust_level": "trusted"}})
    codex.gates(ONCE)
    codex.install("--project")
    all_trusted(codex)
    is_gated(codex, PATH=codex.path_with_notyet())


def test_a_session_in_a_folder_below_the_project(codex):
    codex.gates(ONCE)
    codex.install("--project")
    root, codex.project = codex.project, codex.project / "below" / "it"
    codex.project.mkdir(parents=True)
    all_trusted(codex)
    is_gated(codex, PATH=codex.path_with_notyet())
    assert (root / "fixed").exists()


def test_a_worktree_has_the_hooks_of_its_root_checkout(codex):
    codex.gates(ONCE)
    codex.install("--project")
    codex.git("add", ".")
    codex.git("commit", "--quiet", "-m", "gates")
    tree = codex.folder / "tree"
    codex.git("worktree", "add", "--quiet", str(tree))
    codex.project = tree
    all_trusted(codex)
    is_gated(codex, PATH=codex.path_with_notyet())
    assert (tree / "fixed").exists()


@pytest.mark.parametrize("is_link", [False, True])
def test_another_home_by_its_variable(codex, is_link):
    other = codex.folder / "other home"
    codex.codex_home.rename(other)
    if is_link:
        link = codex.folder / "link"
        link.symlink_to(other)
        other = link
    codex.gates(ONCE)
    done = codex.notyet("install", "codex", "--yes", "--trust", CODEX_HOME=str(other))
    assert done.returncode == 0, done.stderr
    assert not codex.codex_home.exists()
    is_gated(codex, CODEX_HOME=str(other))


def test_a_program_at_a_place_that_shells_would_read_otherwise(codex):
    data = codex.folder / 'it\'s "my" $HOME & so'
    codex.gates(ONCE)
    done = codex.notyet("install", "codex", "--yes", "--trust", XDG_DATA_HOME=str(data))
    assert done.returncode == 0, done.stderr
    all_trusted(codex)
    for hook in codex.seen_hooks()[0].values():
        words = shlex.split(hook["command"])
        assert words[:2] == ["test", "-r"]
        assert words[2].startswith(f"{data}/notyet/")
    is_gated(codex)
