"""Agents in linked work trees: trust follows the repository, gates run where the agent works."""

import json
import os
import shutil
from pathlib import Path

import pytest

from conftest import git
from hook_runs import ask, payload, stops, trust
from notyet.cli.main import main
from notyet.config.files import ConfigFile
from notyet.config.load import load
from notyet.config.trust import candidate, grant
from notyet.core.record import replace

# Passes where `main.py` does, and leaves its folder behind.
TOML = """[gates.tests]
run = "pwd -P > ran && python3 main.py"
when = "always"
"""
GOOD, BROKEN = "", "raise SystemExit(1)\n"
NESTED, BESIDE = "project/wt/x", "beside"


def told(reply):
    """Return what the user is told, wherever the host has a place for it."""
    return reply.stderr + (
        json.loads(reply.stdout).get("systemMessage", "") if reply.stdout else ""
    )


def commit(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.{'toml' if name == 'notyet' else 'py'}").write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "work")


@pytest.fixture
def project(tmp_path):
    """A trusted project, committed."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / ".gitignore").write_text("ran\nwt/\n.claude/\n")
    commit(folder, notyet=TOML, main=GOOD)
    trust(folder / "notyet.toml")
    return folder


def linked(project, place, *words):
    """Add a linked work tree to a project; return its folder."""
    git(project, "worktree", "add", "--quiet", *words, str(place))
    return Path(place)


def stop(folder, environ=None, host="claude"):
    """Stop an agent of a session of its own."""
    event = payload(host, folder, session_id=f"s{len(stops())}")
    return ask(event, "--host", host, environ=environ)


@pytest.mark.rule("E7", "N5")
@pytest.mark.parametrize("host", ["claude", "codex", "notyet"])
@pytest.mark.parametrize("place", [NESTED, BESIDE, "project/.claude/worktrees/x"])
def test_gates_run_in_the_work_tree_that_the_agent_works_in(tmp_path, project, place, host):
    tree = linked(project, tmp_path / place)
    (tree / "main.py").write_text(BROKEN)
    stop(tree, host=host)
    (project / "main.py").write_text(BROKEN)
    (tree / "main.py").write_text(GOOD)
    stop(tree / ".git" / "..", host=host)
    assert stops() == [("blocked", "tests"), ("passed", "")]
    assert (tree / "ran").read_text() == f"{tree}\n"
    assert not (project / "ran").exists()


@pytest.mark.rule("E7")
def test_the_project_of_a_gate_is_the_work_tree(tmp_path, project):
    (project / "sub").mkdir()
    said = '[gates.g]\nrun = "echo $NOTYET_PROJECT_DIR $PWD > ran"\ndir = "sub"\nwhen = "always"\n'
    commit(project, notyet=said, **{"sub/a": ""})
    trust(project / "notyet.toml")
    tree = linked(project, tmp_path / NESTED)
    stop(tree)
    assert (tree / "sub/ran").read_text() == f"{tree} {tree}/sub\n"


@pytest.mark.rule("N5")
def test_what_is_trusted_in_a_linked_work_tree_is_trusted_in_the_main_one(tmp_path, project):
    tree = linked(project, tmp_path / BESIDE)
    changed = TOML + "# more\n"
    (tree / "notyet.toml").write_text(changed)
    trust(tree / "notyet.toml")
    (project / "notyet.toml").write_text(changed)
    reply = stop(project)
    assert "trust" not in told(reply)
    assert (project / "ran").read_text() == f"{project}\n"


@pytest.mark.rule("N5")
def test_another_clone_is_not_trusted(tmp_path, project):
    git(tmp_path, "clone", "--quiet", str(project), "clone")
    reply = stop(tmp_path / "clone")
    assert "clone/notyet.toml is not trusted" in told(reply)
    assert stops() == [("skipped", "untrusted")]


@pytest.mark.rule("N5")
def test_a_branch_with_another_file_keeps_the_trusted_version_and_says_so(tmp_path, project):
    tree = linked(project, tmp_path / BESIDE)
    commit(tree, notyet="[gates]\n", main=BROKEN)
    reply = stop(tree)
    assert f"{tree}/notyet.toml changed since it was trusted" in told(reply)
    assert stops() == [("blocked", "tests")]


@pytest.mark.rule("N5", "E7")
@pytest.mark.parametrize("place", [NESTED, BESIDE])
def test_a_file_that_git_ignores_stays_in_force_in_every_work_tree(tmp_path, project, place):
    git(project, "rm", "--quiet", "--cached", "notyet.toml")
    (project / ".gitignore").write_text("notyet.toml\nran\nwt/\n")
    commit(project)
    tree = linked(project, tmp_path / place)
    commit(tree, main=BROKEN)
    reply = stop(tree)
    assert f"{tree}/notyet.toml is not in this work tree; the trusted version stays" in told(reply)
    assert stops() == [("blocked", "tests")]
    assert (tree / "ran").read_text() == f"{tree}\n"


@pytest.mark.rule("N5")
@pytest.mark.parametrize("how", ["shared", "copied", "link", "linked folder"])
def test_a_forged_git_file_inherits_no_trust(tmp_path, project, how):
    tree = linked(project, tmp_path / BESIDE)
    forged = tmp_path / "forged"
    forged.mkdir()
    shutil.copy(project / "notyet.toml", forged)
    shutil.copy(project / "main.py", forged)
    if how == "shared":
        (forged / ".git").write_text(f"gitdir: {project}/.git\n")
    elif how == "copied":
        shutil.copy(tree / ".git", forged)
    elif how == "link":
        (forged / ".git").symlink_to(tree / ".git")
    else:
        (forged / ".git").symlink_to(project / ".git")
    stop(forged)
    assert stops() == [("skipped", "untrusted")]
    assert not (forged / "ran").exists()


@pytest.mark.rule("N5")
def test_a_git_folder_that_does_not_list_the_work_tree_gives_no_trust(tmp_path, project):
    forged = tmp_path / "forged"
    own = forged / "own"
    own.mkdir(parents=True)
    shutil.copy(project / "notyet.toml", forged)
    (forged / ".git").write_text("gitdir: own\n")
    (own / "commondir").write_text(f"{project}/.git\n")
    (own / "gitdir").write_text(f"{forged}/.git\n")
    stop(forged)
    assert stops() == [("skipped", "untrusted")]


@pytest.mark.rule("N5")
def test_a_moved_work_tree_is_trusted_if_git_moved_it(tmp_path, project):
    tree = linked(project, tmp_path / BESIDE)
    git(project, "worktree", "move", str(tree), str(tmp_path / "moved"))
    stop(tmp_path / "moved")
    os.rename(tmp_path / "moved", tmp_path / "lost")
    reply = stop(tmp_path / "lost")
    lost = tmp_path / "lost"
    said = f"{lost}/notyet.toml is not trusted, because git does not list {lost} as a work tree; "
    assert f"{said}run: git worktree repair, or notyet trust" in told(reply)
    git(tmp_path / "lost", "worktree", "repair")
    stop(tmp_path / "lost")
    assert stops() == [("passed", ""), ("skipped", "untrusted"), ("passed", "")]


@pytest.mark.rule("N5")
def test_a_pruned_work_tree_is_not_trusted(tmp_path, project):
    tree = linked(project, tmp_path / BESIDE)
    os.rename(tree, tmp_path / "away")
    git(project, "worktree", "prune")
    os.rename(tmp_path / "away", tree)
    stop(tree)
    assert stops() == [("skipped", "untrusted")]


@pytest.mark.rule("N5")
@pytest.mark.parametrize("text", ["gitdir: /nowhere\n", "hello", "", "gitdir: "])
def test_a_git_file_that_leads_nowhere_means_no_trust_and_hides_no_gate(tmp_path, project, text):
    for place in (tmp_path / NESTED, tmp_path / BESIDE):
        place.mkdir(parents=True)
        shutil.copy(project / "notyet.toml", place)
        (place / ".git").write_text(text)
        assert f"{place}/notyet.toml is not trusted" in told(stop(place))
    assert stops() == [("passed", ""), ("skipped", "untrusted")]  # in the project around


@pytest.mark.rule("N5")
def test_without_the_main_checkout_nothing_is_trusted(tmp_path, project):
    tree, other = (linked(project, tmp_path / name) for name in (BESIDE, "other"))
    stop(tree)
    shutil.rmtree(project)
    assert f"{tree} is no longer in a work tree of {project};" in told(stop(tree))
    assert f"git does not list {other} as a work tree;" in told(stop(other))
    assert stops() == [("passed", ""), ("skipped", "untrusted"), ("skipped", "untrusted")]


@pytest.mark.rule("N5", "E7")
def test_the_work_trees_of_a_bare_repository_share_their_trust(tmp_path, project):
    git(tmp_path, "clone", "--quiet", "--bare", str(project), "bare.git")
    one, two = (linked(tmp_path / "bare.git", tmp_path / name) for name in ("one", "two"))
    stop(one)
    trust(one / "notyet.toml")
    (two / "main.py").write_text(BROKEN)
    stop(two)
    stop(one)
    assert stops() == [("skipped", "untrusted"), ("blocked", "tests"), ("passed", "")]


@pytest.mark.rule("N5")
def test_a_submodule_is_a_repository_of_its_own(tmp_path, project):
    git(tmp_path, "init", "--quiet", "outer")
    outer = tmp_path / "outer"
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(project), "sub")
    stop(outer / "sub")
    trust(outer / "sub/notyet.toml")
    stop(outer / "sub")
    assert stops() == [("skipped", "untrusted"), ("passed", "")]
    assert (outer / "sub/ran").read_text() == f"{outer}/sub\n"


@pytest.mark.rule("N5")
def test_a_work_tree_may_be_reached_by_a_link(tmp_path, project):
    tree = linked(project, tmp_path / BESIDE)
    (tmp_path / "link").symlink_to(tree)
    stop(tmp_path / "link")
    assert stops() == [("passed", "")]
    assert (tree / "ran").read_text() == f"{tree}\n"


@pytest.mark.rule("N5")
def test_git_may_name_work_trees_by_relative_paths(tmp_path, project):
    tree = linked(project, tmp_path / BESIDE)
    (tree / ".git").write_text("gitdir: ../project/.git/worktrees/beside\n")
    (project / ".git/worktrees/beside/gitdir").write_text("../../../../beside/.git\n")
    stop(tree)
    assert stops() == [("passed", "")]


@pytest.mark.rule("N5", "E7")
def test_a_work_tree_in_a_work_tree_stands_alone(tmp_path, project):
    outer = linked(project, tmp_path / BESIDE)
    inner = linked(project, outer / "wt/inner")
    (outer / "main.py").write_text(BROKEN)
    stop(inner)
    assert stops() == [("passed", "")]
    assert (inner / "ran").read_text() == f"{inner}\n"


@pytest.mark.rule("N5")
def test_a_trusted_file_around_another_repositorys_work_tree_still_counts(tmp_path, project):
    """Else an agent could shed its gates by adding a work tree of any repository."""
    git(tmp_path, "init", "--quiet", "other")
    git(tmp_path / "other", "commit", "--quiet", "--allow-empty", "-m", "one")
    tree = linked(tmp_path / "other", project / "wt/other")
    (project / "main.py").write_text(BROKEN)
    stop(tree)
    git(project, "init", "--quiet", "wt/new")
    stop(project / "wt/new")
    assert stops() == [("blocked", "tests")] * 2


@pytest.mark.rule("N5", "E7")
def test_the_hosts_project_is_replaced_by_the_work_tree(tmp_path, project):
    tree = linked(project, tmp_path / BESIDE)
    (project / "main.py").write_text(BROKEN)
    environ = {**os.environ, "CLAUDE_PROJECT_DIR": str(project)}
    reply = stop(tree, environ)
    said = f"the agent works in {tree}, was started in {project}: only the former is checked"
    assert said in told(reply)
    assert stops() == [("passed", "")]


@pytest.mark.rule("N5", "J6")
@pytest.mark.parametrize("host", ["claude", "codex"])
def test_an_agent_that_goes_to_another_work_tree_is_checked_there_and_its_user_told_once(
    tmp_path, project, host
):
    tree = linked(project, tmp_path / NESTED)
    environ = {**os.environ}
    if host == "claude":
        environ["CLAUDE_PROJECT_DIR"] = str(project)
    replies = []
    for place in (project, tree, tree):
        event = payload(host, place, session_id="one")
        replies.append(ask(event, "--host", host, environ=environ))
    words = f"works in {tree}, was started in {project}: only the former is checked"
    assert [words in told(reply) for reply in replies] == [False, True, False]
    assert (tree / "ran").read_text() == f"{tree}\n"


@pytest.mark.rule("N5", "J6")
def test_an_agent_that_leaves_its_work_tree_for_the_main_one_has_the_gates_of_both(
    tmp_path, project
):
    tree = linked(project, tmp_path / BESIDE)
    (tree / "main.py").write_text(BROKEN)
    stop(project, {**os.environ, "CLAUDE_PROJECT_DIR": str(tree)})
    assert [outcome for outcome, _ in stops()] == ["blocked"]


@pytest.mark.rule("N5", "N3")
@pytest.mark.parametrize("how", ["git", "git and toml", "forged"])
@pytest.mark.parametrize("named", [True, False])
def test_a_folder_that_stopped_being_a_work_tree_is_reported(tmp_path, project, how, named):
    """With the gates of the project, if the host names it."""
    tree = linked(project, tmp_path / BESIDE)
    environ = {**os.environ} | ({"CLAUDE_PROJECT_DIR": str(project)} if named else {})
    stop(tree, environ)
    (tree / ".git").unlink()
    if how == "git and toml":
        (tree / "notyet.toml").unlink()
    if how == "forged":
        git(tree, "init", "--quiet")
    (project / "main.py").write_text(BROKEN)
    reply = stop(tree, environ)
    assert f"{tree} is no longer in a work tree of {project};" in told(reply)
    last = ("blocked", "tests") if named else ("skipped", "untrusted")
    assert stops() == [("passed", ""), last]


@pytest.mark.rule("N5")
def test_what_is_no_work_tree_any_more_can_be_trusted_or_forgotten(tmp_path, project, capsys):
    tree = linked(project, tmp_path / BESIDE)
    stop(tree)
    git(project, "worktree", "remove", "--force", str(tree))
    stop(tree)
    assert main(["trust", "--revoke", str(tree / "notyet.toml")]) == 0
    tree.mkdir()
    assert stop(tree).stdout == ""
    assert stops() == [("passed", ""), ("skipped", "untrusted")]
    shutil.copy(project / "notyet.toml", tree)
    shutil.copy(project / "main.py", tree)
    trust(tree / "notyet.toml")
    stop(tree)
    assert stops()[2:] == [("passed", "")]


@pytest.mark.rule("N5")
def test_a_swapped_folder_is_called_one(tmp_path, project):
    shutil.copytree(project, tmp_path / "copy")
    os.rename(project, tmp_path / "old")
    os.rename(tmp_path / "copy", project)
    stop(project)  # the very text that was trusted
    (project / "notyet.toml").write_text("[gates]\n")
    reply = stop(project)
    said = f"{project}/notyet.toml: the folder was replaced since you trusted it; run: notyet trust"
    assert said in told(reply)
    assert stops() == [("passed", ""), ("skipped", "untrusted")]


@pytest.mark.rule("N5", "E7")
def test_all_that_a_record_says_is_about_the_work_tree(tmp_path, project):
    """Paths that a person wrote stay as they are, and so do those on other machines."""
    said = f"""
[gates.here]
run = ["{project}/check.sh"]
[gates.sub]
run = "true"
dir = "sub"
[gates.there]
run = "true"
workspace = "ssh://box{project}/sub"
[observers.o]
run = "true"
[read]
openclaw = "openclaw.json"
"""
    (project / "openclaw.json").write_text(
        '{"agents": {"defaults": {"subagents": {"maxSteerRestarts": 2}}}}'
    )
    commit(project, notyet=said)
    trust(project / "notyet.toml")
    tree = linked(project, tmp_path / BESIDE)
    file = ConfigFile(path=f"{tree}/notyet.toml", kind="notyet")
    found = candidate(file, os.environ)
    assert (found.is_trusted, found.is_outdated) == (True, False)
    gates = {gate.name: gate.check for gate in load(str(tree), "claude", os.environ).gates}
    assert gates["here"].argv == (f"{project}/check.sh",)
    assert gates["here"].dir == str(tree)
    assert gates["sub"].dir == f"{tree}/sub"
    assert gates["there"].dir == f"{project}/sub"
    grant(found, os.environ)
    main = candidate(replace(file, path=f"{project}/notyet.toml"), os.environ)
    assert (main.is_trusted, main.is_outdated) == (True, False)


@pytest.mark.rule("N1")
def test_a_redirected_work_tree_does_not_hide_what_changed(tmp_path, project):
    commit(project, notyet=TOML.replace('when = "always"\n', ""))
    trust(project / "notyet.toml")
    linked(project, tmp_path / BESIDE, "--detach")
    git(project, "config", "core.worktree", "../../beside")
    stop(project)
    (project / "main.py").write_text(BROKEN)
    stop(project)
    assert stops() == [("passed", ""), ("blocked", "tests")]


@pytest.mark.rule("N1")
def test_a_pass_in_one_work_tree_is_none_in_another(tmp_path, project):
    """Files that git ignores may differ."""
    commit(project, notyet=TOML.replace('when = "always"\n', ""))
    trust(project / "notyet.toml")
    tree = linked(project, tmp_path / BESIDE, "--detach")
    stop(project)
    stop(tree)
    (tree / "ran").unlink()
    stop(tree)
    assert not (tree / "ran").exists()
    assert (project / "ran").exists()
    assert [outcome for outcome, _ in stops()] == ["passed", "passed", "passed"]


@pytest.mark.rule("N5", "J6")
@pytest.mark.parametrize("place", [NESTED, BESIDE])
def test_members_of_a_project_are_those_of_the_work_tree(tmp_path, project, place):
    member = project / "packages/a"
    member.mkdir(parents=True)
    (member / "notyet.toml").write_text(TOML.replace('when = "always"\n', ""))
    (member / "main.py").write_text(GOOD)
    commit(project, notyet='members = ["packages/*"]\n')
    trust(project / "notyet.toml")
    trust(member / "notyet.toml")
    tree = linked(project, tmp_path / place)
    ask(payload("claude", tree, session_id="m", hook_event_name="SessionStart", source="startup"))
    (tree / "packages/a/main.py").write_text(BROKEN)
    ask(payload("claude", tree, session_id="m"))
    assert [outcome for outcome, _ in stops()] == ["blocked"]
    assert (tree / "packages/a/ran").read_text() == f"{tree}/packages/a\n"
    assert not (member / "ran").exists()


@pytest.mark.rule("N5", "J6")
def test_a_table_of_pyproject_toml_is_trusted_in_every_work_tree(tmp_path, project):
    git(project, "rm", "--quiet", "notyet.toml")
    said = '[tool.notyet.gates.tests]\nrun = "python3 main.py"\nwhen = "always"\n'
    (project / "pyproject.toml").write_text(said)
    commit(project)
    assert main(["trust", str(project), "--revoke"]) == 0
    trust(project / "pyproject.toml")
    tree = linked(project, tmp_path / BESIDE)
    (tree / "pyproject.toml").write_text(f'[project]\nname = "x"\n{said}')
    (tree / "main.py").write_text(BROKEN)
    assert "trusted" not in told(stop(tree))
    assert stops() == [("blocked", "tests")]


@pytest.mark.rule("N5", "E7")
def test_check_runs_the_gates_of_the_work_tree(tmp_path, project, monkeypatch):
    tree = linked(project, tmp_path / NESTED)
    (tree / "main.py").write_text(BROKEN)
    for place, code in ((tree, 1), (project, 0)):
        monkeypatch.chdir(place)
        assert main(["check"]) == code


@pytest.mark.rule("N5")
def test_files_of_hosts_in_the_main_checkout_do_not_count_in_a_work_tree(tmp_path, project):
    """One that was trusted, and is not in the work tree, counts as removed from it."""
    hooks = {
        "Stop": [{"hooks": [{"type": "command", "command": "pwd -P > hook; echo no >&2; exit 2"}]}]
    }
    (project / ".mux").mkdir()
    (project / ".mux/settings.json").write_text(json.dumps({"hooks": hooks}))
    (project / ".conclaude.yaml").write_text("stop:\n  commands:\n    - run: pwd -P > conclaude\n")
    (project / ".gitignore").write_text("wt/\nran\n.mux/\n.conclaude.yaml\n")
    commit(project, notyet=TOML + '[read]\nhosts = ["mux", "conclaude"]\n')
    trust(project / "notyet.toml")
    trust(project / ".mux/settings.json", "mux")
    trust(project / ".conclaude.yaml", "conclaude")
    tree = linked(project, tmp_path / NESTED)
    stop(tree, host="codex")
    assert [outcome for outcome, _ in stops()] == ["blocked"]
    for name in ("hook", "conclaude"):
        assert (tree / name).read_text() == f"{tree}\n"
        assert not (project / name).exists()


@pytest.mark.rule("E7", "J6")
@pytest.mark.parametrize("glob", ["**", "wt/*"])
def test_a_work_tree_inside_the_project_is_no_member_of_it(tmp_path, project, glob):
    commit(project, notyet=f'members = ["{glob}"]\n{TOML}')
    trust(project / "notyet.toml")
    tree = linked(project, tmp_path / NESTED)
    stop(tree)

    def in_force(place):
        setup = load(str(place), "claude", os.environ)
        return [gate.source.file for gate in setup.gates], setup.warnings, setup.distrust

    for place in (tree, project):
        assert in_force(place) == ([f"{place}/notyet.toml"], (), [])
    git(project, "worktree", "remove", "--force", str(tree))
    assert in_force(project) == ([f"{project}/notyet.toml"], (), [])
