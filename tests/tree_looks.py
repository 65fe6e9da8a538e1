"""Projects to look at (B6, N1)."""

import os
import subprocess

from conftest import git


def new_repository(folder):
    folder.mkdir()
    (folder / "a.txt").write_text("a")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "a")


def plant(project, name, *stages):
    """Have the index say that a folder is another repository, though none is there."""
    (project / name).mkdir(parents=True)
    (project / name / "a.txt").write_text("a")
    head = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=project, text=True).strip()
    entries = "".join(f"160000 {head} {stage}\t{name}\0" for stage in stages or (0,))
    add = ["git", "update-index", "-z", "--index-info"]
    subprocess.run(add, cwd=project, input=entries.encode(), check=True)


def dig(folder):
    """Make folders in a folder that are too deep for anybody to name them."""
    fd = os.open(folder, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("x" * 250, dir_fd=fd)
        deeper = os.open("x" * 250, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = deeper
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)
