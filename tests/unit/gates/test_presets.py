"""The presets that ask git alone."""

import os
import subprocess
from pathlib import Path

import pytest

from conftest import git
from notyet.gates.presets import PRESETS
from notyet.gates.working_tree import split_by_length
from preset_questions import ask, passes, program

CONFLICT = "<<<<<<< ours\none\n=======\ntwo\n>>>>>>> theirs\n"
GIT = [name for name in PRESETS if name.startswith(("git:", "no:conflicts"))]


@pytest.fixture
def root(git_project):
    return Path(git_project)


def conflict(root):
    """Leave a merge with a conflict in file.txt."""
    git(root, "checkout", "-q", "-b", "other")
    (root / "file.txt").write_text("theirs\n")
    git(root, "commit", "-qam", "theirs")
    git(root, "checkout", "-q", "-")
    (root / "file.txt").write_text("ours\n")
    git(root, "commit", "-qam", "ours")
    with pytest.raises(subprocess.CalledProcessError):
        git(root, "merge", "other")


# --- all of them


def test_every_preset_explains_what_passes_what_fails_and_what_it_costs():
    for name, preset in PRESETS.items():
        assert preset.name == name
        assert "\n" not in preset.summary
        assert all(word in preset.explains for word in ("Runs", "Passes", "Fails", "Costs")), name


@pytest.mark.parametrize("name", ["git:nothing", "", 5])
def test_an_unknown_preset_is_a_problem_that_lists_the_known_ones(name, root):
    assert "git:committed" in ask(name, root).problem


@pytest.mark.parametrize("name", PRESETS)
def test_outside_of_a_repository_every_preset_says_so(name, tmp_path):
    assert "is not in a git repository" in ask(name, tmp_path).problem


@pytest.mark.parametrize("name", ["git:committed", "git:clean", "no:conflicts"])
def test_a_fresh_repository_passes(name, root):
    assert passes(ask(name, root))


def test_the_folder_of_the_gate_counts_where_the_agent_has_no_repository(root, tmp_path):
    (root / "file.txt").write_text("two\n")
    assert "file.txt" in ask("git:committed", tmp_path, folder=root).reason


def test_the_agents_own_worktree_counts_and_not_the_folder_of_the_gate(root, tmp_path):
    (root / "file.txt").write_text("two\n")
    git(root, "worktree", "add", "-q", str(tmp_path / "linked"))
    assert passes(ask("git:committed", tmp_path / "linked", folder=root))


@pytest.mark.parametrize("name", GIT)
def test_no_hook_and_no_monitor_of_the_repository_runs(name, root, tmp_path):
    ran = tmp_path / "ran"
    trap = program(tmp_path, "trap", f"#!/bin/sh\ntouch {ran}\n")
    git(root, "config", "core.fsmonitor", str(trap))
    (root / ".git" / "hooks").mkdir(exist_ok=True)
    (root / ".git" / "hooks" / "post-index-change").symlink_to(trap)
    (root / "file.txt").write_text("two\n")
    ask(name, root)
    assert not ran.exists()


@pytest.mark.parametrize("name", GIT)
def test_an_index_that_another_git_locks_does_not_matter(name, root):
    git(root, "remote", "add", "origin", "x")
    (root / ".git" / "index.lock").touch()
    assert not ask(name, root).problem


@pytest.mark.parametrize("name", GIT)
def test_a_damaged_repository_is_a_problem(name, root):
    (root / ".git" / "HEAD").write_text("nonsense\n")
    assert "failed" in ask(name, root).problem


def test_variables_that_name_another_repository_are_ignored(root, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert passes(ask("git:committed", root))


def test_a_git_that_hangs_is_a_problem(root, tmp_path, monkeypatch):
    program(tmp_path / "bin", "git", "#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert "git did not finish" in ask("git:committed", root, seconds=0.5).problem


def test_without_git_there_is_a_problem(root, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git cannot be started" in ask("git:committed", root).problem


# --- git:committed


def test_a_changed_a_staged_and_a_removed_file_are_not_committed(root):
    for name in ("a", "b", "c"):
        (root / name).write_text("one\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "more")
    (root / "a").write_text("two\n")
    (root / "b").write_text("two\n")
    git(root, "add", "b")
    (root / "c").unlink()
    reason = ask("git:committed", root / ".").reason
    assert "not committed:\n  a\n  b\n  c\n" in reason
    assert "Commit your work" in reason


def test_a_new_file_is_not_committed_and_an_ignored_one_does_not_count(root):
    (root / ".gitignore").write_text("ignored\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "ignore")
    (root / "ignored").touch()
    assert passes(ask("git:committed", root))
    (root / "new").touch()
    assert "not in git:\n  new\n" in ask("git:committed", root).reason


def test_ten_names_are_shown_and_the_rest_counted(root):
    for number in range(13):
        (root / f"f{number:02}").touch()
    reason = ask("git:committed", root).reason
    assert "  f09\n  ... and 3 more\n" in reason
    assert "f10" not in reason


def test_an_untracked_folder_is_named_once(root):
    (root / "build").mkdir()
    for number in range(30):
        (root / "build" / str(number)).touch()
    assert "not in git:\n  build/\nCommit" in ask("git:committed", root).reason


def test_before_the_first_commit_staged_files_are_not_committed(tmp_path):
    git(tmp_path, "init", "-q")
    assert passes(ask("git:committed", tmp_path))
    (tmp_path / "a").touch()
    git(tmp_path, "add", "a")
    assert "  a\n" in ask("git:committed", tmp_path).reason


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\nb", r"a\nb"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("quo'\"te", "quo'\"te"),
        ("back\u202eward", r"back\u202eward"),
        (os.fsdecode(b"latin-\xff"), r"latin-\udcff"),
        ("-rf", "-rf"),
        (" lead", " lead"),
    ],
)
def test_a_hostile_name_is_shown_clean(name, shown, root):
    try:
        (root / name).touch()
    except OSError:
        pytest.skip("the file system does not take this name")
    assert f"\n  {shown}\n" in ask("git:committed", root).reason


def test_a_file_that_only_a_submodule_lacks_is_untracked(root, tmp_path):
    git(tmp_path, "init", "-q", "sub")
    git(tmp_path / "sub", "commit", "-q", "--allow-empty", "-m", "x")
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(tmp_path / "sub"))
    git(root, "commit", "-qam", "submodule")
    assert passes(ask("git:committed", root))
    (root / "sub" / "new").touch()
    assert "not in git:\n  sub\n" in ask("git:committed", root).reason


# --- git:clean


def test_a_merge_in_progress_is_not_clean(root):
    conflict(root)
    reason = ask("git:clean", root).reason
    assert "A merge is in progress. Finish it with `git merge --continue`" in reason
    assert "  file.txt\n" in reason


def test_a_rebase_that_stopped_with_everything_committed_is_committed_and_not_clean(root):
    (root / "file.txt").write_text("two\n")
    git(root, "commit", "-qam", "two")
    git(root, "-c", "sequence.editor=sed -i.bak s/^pick/edit/", "rebase", "-q", "-i", "HEAD~1")
    assert passes(ask("git:committed", root))
    assert "A rebase is in progress" in ask("git:clean", root).reason


def test_a_bisect_in_a_linked_worktree_is_not_clean_there_alone(root, tmp_path):
    linked = tmp_path / "linked"
    git(root, "worktree", "add", "-q", str(linked))
    git(linked, "bisect", "start")
    assert "`git bisect reset`" in ask("git:clean", linked).reason
    assert passes(ask("git:clean", root))


# --- git:pushed


@pytest.fixture
def pushed(root, tmp_path):
    git(tmp_path, "init", "-q", "--bare", "server.git")
    git(root, "branch", "-M", "main")
    git(root, "remote", "add", "origin", str(tmp_path / "server.git"))
    git(root, "push", "-q", "-u", "origin", "main")
    return root


def commit(root, text="more\n"):
    (root / "file.txt").write_text(text)
    git(root, "commit", "-qam", text)


def test_what_was_pushed_passes_until_the_next_commit(pushed):
    assert passes(ask("git:pushed", pushed))
    commit(pushed)
    assert ask("git:pushed", pushed).reason == (
        "1 commit of main is not in origin/main. Run `git push`."
    )
    commit(pushed, "again\n")
    assert ask("git:pushed", pushed).reason.startswith("2 commits of main are not")
    git(pushed, "push", "-q")
    assert passes(ask("git:pushed", pushed))


def test_a_branch_without_upstream_is_told_how_to_push(pushed):
    git(pushed, "checkout", "-q", "-b", "topic", "--no-track")
    assert passes(ask("git:pushed", pushed)), "it has nothing that the server lacks"
    commit(pushed)
    assert "`git push -u origin topic`" in ask("git:pushed", pushed).reason


def test_a_local_branch_as_upstream_is_no_remote(pushed):
    git(pushed, "checkout", "-q", "-b", "topic", "--track", "main")
    commit(pushed)
    git(pushed, "branch", "-f", "main", "HEAD")
    assert "`git push -u origin topic`" in ask("git:pushed", pushed).reason


def test_a_detached_head_passes_only_if_a_remote_has_it(pushed):
    git(pushed, "checkout", "-q", "--detach")
    assert passes(ask("git:pushed", pushed))
    commit(pushed)
    assert "HEAD is detached" in ask("git:pushed", pushed).reason


def test_an_upstream_that_was_removed_is_none(pushed):
    commit(pushed)
    git(pushed, "update-ref", "-d", "refs/remotes/origin/main")
    assert "no remote has it" in ask("git:pushed", pushed).reason


def test_a_push_to_a_fork_counts(pushed, tmp_path):
    git(tmp_path, "init", "-q", "--bare", "fork.git")
    git(pushed, "remote", "add", "fork", str(tmp_path / "fork.git"))
    git(pushed, "config", "remote.pushDefault", "fork")
    git(pushed, "config", "push.default", "current")
    commit(pushed)
    assert ask("git:pushed", pushed).reason
    git(pushed, "push", "-q")
    assert passes(ask("git:pushed", pushed))


def test_without_a_commit_or_a_remote_it_says_so(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main")
    assert "has no remote" in ask("git:pushed", tmp_path).problem
    git(tmp_path, "remote", "add", "up", "x")
    reason = ask("git:pushed", tmp_path).reason
    assert reason == "There is no commit yet. Commit, then `git push -u up main`."


# --- no:conflicts


def test_an_unmerged_file_is_a_conflict_even_without_markers(root):
    conflict(root)
    (root / "file.txt").write_text("resolved\n")
    assert "merge conflicts:\n  file.txt\n" in ask("no:conflicts", root).reason
    git(root, "add", "file.txt")
    assert passes(ask("no:conflicts", root))


@pytest.mark.parametrize("name", ["file.txt", "new.txt"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_markers_are_found_with_their_line(name, end, root):
    text = f"first\n{CONFLICT}last\n".replace("\n", end)
    (root / name).write_bytes(text.encode())
    assert f"markers in:\n  {name}:2\n" in ask("no:conflicts", root).reason


@pytest.mark.parametrize(
    "text",
    [
        "Title\n=======\n\n>>>>>>> quoted\n",
        "<<<<<<< only opened\n=======\n",
        ">>>>>>> first\n<<<<<<< then\n",
        "".join(f"  {line}\n" for line in CONFLICT.splitlines()),
        "<<<<<<<<\n=======\n>>>>>>>>\n",
        "",
        "\0" * 100_000 + "<<<<<<< x\n>>>>>>> y\n",
    ],
    ids=["rst", "opening", "order", "indented", "eight", "empty", "not-at-a-line-start"],
)
def test_other_text_has_no_conflict(text, root):
    (root / "new.rst").write_text(text)
    assert passes(ask("no:conflicts", root))


def test_markers_that_were_committed_before_are_content(root):
    (root / "merge.txt").write_text(f"a\n{CONFLICT}")
    git(root, "add", ".")
    git(root, "commit", "-qm", "an example")
    (root / "merge.txt").write_text(f"b\nc\n{CONFLICT}")
    assert passes(ask("no:conflicts", root))
    (root / "merge.txt").write_text(f"b\nc\n{CONFLICT}other\n<<<<<<< x\n>>>>>>> y\n")
    assert "in:\n  merge.txt:9\n" in ask("no:conflicts", root).reason


def test_a_file_may_say_that_markers_are_its_content(root):
    (root / "example.txt").write_text(CONFLICT)
    assert ask("no:conflicts", root).reason
    (root / ".gitattributes").write_text("example.txt conflict-marker-size=32\n")
    assert passes(ask("no:conflicts", root))


def test_a_link_a_pipe_and_an_unreadable_file_are_not_read(root, tmp_path):
    (tmp_path / "outside").write_text(CONFLICT)
    (root / "link").symlink_to(tmp_path / "outside")
    os.mkfifo(root / "pipe")
    (root / "loop").symlink_to("loop")
    assert passes(ask("no:conflicts", root))


# --- names on a command line


def test_a_file_that_is_too_large_to_read_is_told_to_the_user(root):
    with (root / "large.txt").open("wb") as file:
        file.truncate(17 * 1024 * 1024)
        file.seek(0, os.SEEK_END)
        file.write(b"\n<<<<<<< a\n=======\n>>>>>>> b\n")
    answer = ask("no:conflicts", root)
    assert answer.tell == "no:conflicts did not read 1 files over 16 MB"
    assert answer.note == "no conflict in 0 changed files"


def test_names_are_split_so_that_each_part_fits_and_none_is_an_option():
    names = ["-rf", *(f"{number:0200}" for number in range(2000))]
    parts = list(split_by_length(names))
    assert [name for part in parts for name in part] == ["./-rf", *names[1:]]
    assert len(parts) > 1
    assert all(sum(map(len, part)) < 128 * 1024 for part in parts)
    assert list(split_by_length([])) == []
