"""Changes to the files of a git project, each of which a fingerprint must show (B6)."""

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


CHANGES = (
    edit,
    edit_to_the_same_size,
    add,
    add_strangely,
    add_in_a_new_folder,
    delete,
    rename,
    stage,
    commit,
    make_executable,
    link,
    link_to_what_never_ends,
    become_a_folder,
)


def name_filter(project, program, kind, where):
    """Have the repository name a program that git would run on its files."""
    if where == "included":
        (Path(project) / "more").write_text(f'[filter "x"]\n{kind} = {program}\n')
        git(project, "config", "include.path", "../more")
    else:
        git(project, "config", "extensions.worktreeConfig", "true")
        git(project, "config", where, f"filter.x.{kind}", str(program))
    (Path(project) / ".gitattributes").write_text("* filter=x\n")
