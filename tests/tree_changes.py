"""Changes to the files of a git project, each of which a fingerprint must show (B6)."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path

from conftest import git


def edit(project):
    (project / "file.txt").write_text("two\n")


def edit_to_the_same_size(project):
    (project / "file.txt").write_text("ONE\n")


def add(project):
    (project / "new.txt").write_text("new")


def add_strangely(project):
    (project / "-rf 'ö\n\"name").write_text("new")


def add_in_a_new_folder(project):
    (project / "deep" / "er").mkdir(parents=True)
    (project / "deep" / "er" / "ö name.txt").write_text("new")


def delete(project):
    (project / "file.txt").unlink()


def rename(project):
    git(project, "mv", "file.txt", "moved.txt")


def stage(project):
    edit(project)
    git(project, "add", ".")


def commit(project):
    git(project, "commit", "--quiet", "--allow-empty", "-m", "two")


def make_executable(project):
    (project / "file.txt").chmod(0o755)


def link(project):
    (project / "link").symlink_to("nowhere")


def link_to_what_never_ends(project):
    (project / "link").symlink_to("/dev/zero")


def become_a_folder(project):
    (project / "file.txt").unlink()
    (project / "file.txt").mkdir()
    (project / "file.txt" / "inside").write_text("x")


def become_a_link(project):
    (project / "file.txt").unlink()
    (project / "file.txt").symlink_to("one")


def add_a_name_of_bytes(project):
    Path(os.fsdecode(os.fsencode(project) + b"/\xff\xfe")).write_text("new")


def intend_to_add(project):
    add(project)
    git(project, "add", "--intent-to-add", "new.txt")


def stage_and_take_back(project):
    stage(project)
    (project / "file.txt").write_text("one\n")


def forget(project):
    git(project, "rm", "--quiet", "--cached", "file.txt")


def conflict(project):
    git(project, "checkout", "--quiet", "-b", "other")
    (project / "file.txt").write_text("theirs\n")
    git(project, "commit", "--quiet", "-am", "theirs")
    git(project, "checkout", "--quiet", "-")
    (project / "file.txt").write_text("ours\n")
    git(project, "commit", "--quiet", "-am", "ours")
    with suppress(subprocess.CalledProcessError):
        git(project, "merge", "--quiet", "other")


def switch(project):
    git(project, "checkout", "--quiet", "-b", "other")


def detach(project):
    git(project, "checkout", "--quiet", "--detach")


def overlook(project):
    git(project, "update-index", "--assume-unchanged", "file.txt")


def skip(project):
    git(project, "update-index", "--skip-worktree", "file.txt")


def overlook_and_skip(project):
    overlook(project)
    skip(project)


def configured(name, value):
    """Return what has the repository say something about how git is to look at its files."""

    def configure(project):
        git(project, "config", name, value)

    configure.__name__ = f"{name} {value}"
    return configure


def edit_to_the_same_size_and_time(project):
    before = (project / "file.txt").stat()
    edit_to_the_same_size(project)
    os.utime(project / "file.txt", ns=(before.st_atime_ns, before.st_mtime_ns))


def edit_again(project):
    (project / "new.txt").write_text("again")


def resolve(project):
    (project / "file.txt").write_text("both\n")


def add_in_capitals(project):
    (project / "FILE.TXT").write_text("one\n")


def end_lines_otherwise(project):
    (project / "file.txt").write_bytes(b"one\r\n")


CHANGES = (
    edit,
    edit_to_the_same_size,
    add,
    add_strangely,
    add_in_a_new_folder,
    add_a_name_of_bytes,
    delete,
    rename,
    stage,
    stage_and_take_back,
    forget,
    intend_to_add,
    conflict,
    commit,
    switch,
    detach,
    make_executable,
    link,
    link_to_what_never_ends,
    become_a_link,
    become_a_folder,
    overlook,
    skip,
)
OF_HEAD_ALONE = (commit, switch, detach)  # no file is any different
# What is changed second must show too, whatever the first has told git.
SECOND_CHANGES = (
    (overlook, edit),
    (overlook, delete),
    (overlook, make_executable),
    (skip, edit_to_the_same_size),
    (skip, become_a_link),
    (skip, delete),
    (overlook_and_skip, edit),
    (intend_to_add, edit_again),
    (conflict, resolve),
    (configured("core.fileMode", "false"), make_executable),
    (configured("core.checkStat", "minimal"), edit_to_the_same_size_and_time),
    (configured("core.trustctime", "false"), edit_to_the_same_size_and_time),
    (configured("core.ignoreCase", "true"), add_in_capitals),
    (configured("core.symlinks", "false"), become_a_link),
    (configured("core.autocrlf", "input"), end_lines_otherwise),
    (configured("core.untrackedCache", "true"), add),
    (configured("status.showUntrackedFiles", "no"), add),
    (configured("core.excludesFile", "/dev/null"), add),
)


def second_id(pair):
    """Name a pair of changes."""
    return " then ".join(change.__name__ for change in pair)


def name_filter(project, program, kind, where):
    """Have the repository name a program that git would run on its files."""
    if where == "included":
        (Path(project) / "more").write_text(f'[filter "x"]\n{kind} = {program}\n')
        git(project, "config", "include.path", "../more")
    else:
        git(project, "config", "extensions.worktreeConfig", "true")
        git(project, "config", where, f"filter.x.{kind}", str(program))
    (Path(project) / ".gitattributes").write_text("* filter=x\n")
