"""Workspaces: a clone for each task, from a mirror that processes share, in a bounded folder."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import sshd
from conftest import git
from notyet.config.load import load
from notyet.errors import Refused
from notyet.fleet.workspaces import Workspaces, is_git_address, is_trusted
from support import wait_for

GATES = '[gates]\ntests = "true"\n'


@pytest.fixture
def work(tmp_path):
    return Workspaces(str(tmp_path / "work"), keep=2)


@pytest.fixture
def project(git_project):
    """A repository with gates on `main`, and another text on `other`."""
    folder = Path(git_project)
    git(folder, "branch", "-M", "main")
    (folder / "notyet.toml").write_text(GATES)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "gates")
    git(folder, "checkout", "--quiet", "-b", "other")
    change(folder, "two\n")
    git(folder, "checkout", "--quiet", "main")
    return folder


def change(folder, text):
    (folder / "file.txt").write_text(text)
    git(folder, "commit", "--quiet", "-am", text)


def text_in(clone):
    return Path(clone, "file.txt").read_text()


def names(work, kind):
    return sorted(os.listdir(Path(work.folder, kind)))


def mirrors(work):
    return [name for name in names(work, "mirrors") if name.endswith(".git")]


# Addresses.


@pytest.mark.parametrize(
    ("place", "is_address"),
    [
        ("git@host:shop.git#main", True),
        ("me@host.example:~/shop", True),
        ("https://host/shop.git", True),
        ("file:///srv/shop.git#v1", True),
        ("git+ssh://me@host/shop.git", True),
        ("ssh://host/srv/shop", False),
        ("/srv/shop", False),
        ("shop.git", False),
        ("ext::sh -c touch% /tmp/x", False),
        ("me@host://x", False),
        ("", False),
    ],
)
def test_a_git_address_is_told_from_a_folder_and_a_machine(place, is_address):
    assert is_git_address(place) is is_address


@pytest.mark.parametrize(
    ("place", "pattern", "trusted"),
    [
        ("git@host:acme/shop.git#main", "git@host:acme/*", True),
        ("git@host:acme/shop.git#main", "git@host:acme/shop.git", True),
        ("git@host:acme/shop.git#main", "git@host:acme/shop.git#main", True),
        ("git@host:acme/shop.git#main", "git@host:acme/shop.git#release", False),
        ("git@host:evil/shop.git", "git@host:acme/*", False),
        ("https://host/acme/../evil/shop", "https://host/acme/*", False),
        ("https://host/acme/%2E./evil/shop", "https://host/acme/*", False),
        ("https://host/acme%2f../evil/shop", "https://host/acme*", False),
        ("https://host/acme/a..b", "https://host/acme/*", True),
        ("git@host:../evil", "git@host:*", False),
        ("https://bob:s3cret@host/acme/shop.git#main", "https://host/acme/shop.git", True),
        ("https://host@evil/acme/shop.git", "https://host/acme/*", False),
        ("", "*", True),
    ],
)
def test_gates_are_trusted_by_the_address_that_they_came_from(place, pattern, trusted):
    assert is_trusted(place, ["nothing", pattern]) is trusted


# Folders.


def test_a_task_without_an_address_has_an_empty_folder_of_its_own(work):
    one, two = work.prepare("", "t1.1"), work.prepare("ssh://box/srv", "t2.1")
    assert one != two
    assert os.listdir(one) == os.listdir(two) == []
    assert os.stat(work.folder).st_mode & 0o077 == 0


def test_a_folder_of_the_worker_is_used_as_it_is(work, tmp_path):
    assert work.prepare(str(tmp_path), "t1.1") == str(tmp_path)
    with pytest.raises(Refused, match="is not a folder of this worker, nor a git address"):
        work.prepare(str(tmp_path / "missing"), "t1.1")


def test_the_usual_folder_is_in_the_users_state(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert Workspaces().folder == str(tmp_path / "notyet" / "fleet")


# Clones.


def test_each_task_has_a_clone_of_the_newest_commit(work, project):
    url = project.as_uri()
    one = work.prepare(url, "t1.1")
    assert text_in(one) == "one\n"
    change(project, "three\n")
    two = work.prepare(url, "t2.1")
    assert (text_in(one), text_in(two)) == ("one\n", "three\n")
    assert len(mirrors(work)) == 1
    shown = subprocess.run(["git", "remote", "-v"], cwd=two, capture_output=True, text=True)
    assert f"origin\t{url} (push)" in shown.stdout
    git(two, "checkout", "--quiet", "-b", "mine")
    change(Path(two), "mine\n")
    git(two, "push", "--quiet", "origin", "mine")
    assert (
        "mine"
        in subprocess.run(["git", "branch"], cwd=project, capture_output=True, text=True).stdout
    )


def test_a_branch_a_tag_or_a_commit_is_checked_out(work, project):
    git(project, "tag", "v1", "other")
    commit = subprocess.run(
        ["git", "rev-parse", "main"], cwd=project, capture_output=True, text=True
    )
    assert text_in(work.prepare(f"{project.as_uri()}#other", "t1.1")) == "two\n"
    assert text_in(work.prepare(f"{project.as_uri()}#v1", "t2.1")) == "two\n"
    assert text_in(work.prepare(f"{project.as_uri()}#{commit.stdout.strip()}", "t3.1")) == "one\n"


def test_a_branch_that_was_made_or_renamed_since_is_found(work, project):
    work.prepare(project.as_uri(), "t1.1")
    git(project, "branch", "-m", "main", "trunk")
    git(project, "branch", "new", "other")
    assert text_in(work.prepare(project.as_uri(), "t2.1")) == "one\n"
    assert text_in(work.prepare(f"{project.as_uri()}#new", "t3.1")) == "two\n"


def test_a_repository_without_a_commit_is_an_empty_clone(work, tmp_path):
    git(tmp_path, "init", "--quiet", "--bare", "empty.git")
    assert os.listdir(work.prepare((tmp_path / "empty.git").as_uri(), "t1.1")) == [".git"]


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("file:///nowhere/shop.git", "git clone failed: '/nowhere/shop.git' does not appear to be"),
        ("{url}#missing", "git checkout failed: "),
        ("{url}#--orphan=x", "'--orphan=x' is not the name of a branch; write for example #main"),
        ("http://me:geheim@127.0.0.1:1/shop.git", "git clone failed: unable to access 'http://127"),
        ("-uid@host:path", "git clone failed: "),
    ],
)
def test_a_wrong_address_is_said_in_one_sentence(work, project, address, says):
    with pytest.raises(Refused) as raised:
        work.prepare(address.format(url=project.as_uri()), "t1.1")
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "geheim" not in str(raised.value)


def test_a_machine_without_git_says_what_to_install(work, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Refused, match=r"git cannot be started: .*; install git"):
        work.prepare("file:///x", "t1.1")


def test_git_that_hangs_is_given_up(work, monkeypatch, project):
    monkeypatch.setattr("notyet.fleet.workspaces._TIMEOUT", 0.0)
    with pytest.raises(Refused, match="git clone did not finish in 0 min"):
        work.prepare(project.as_uri(), "t1.1")


def test_a_repository_over_ssh_is_cloned(work, project, tmp_path_factory, monkeypatch):
    if reason := sshd.missing():
        pytest.skip(reason)
    box = sshd.Sshd(tmp_path_factory.mktemp("sshd"))
    box.start()
    try:
        monkeypatch.setenv("GIT_SSH_COMMAND", f"ssh -F {box.config} -oBatchMode=yes")
        assert text_in(work.prepare(f"git+ssh://box{project}#other", "t1.1")) == "two\n"
        with pytest.raises(Refused, match="git clone failed: "):
            work.prepare("git+ssh://box/nowhere", "t2.1")
    finally:
        box.close()


# Crashes and other processes.


def test_a_worker_that_died_while_it_cloned_leaves_nothing_in_the_way(work, project):
    """The mirror was half made, then half fetched, and the clone half checked out."""
    url = project.as_uri()
    clone = Path(work.folder, "clones", "t1.1")
    clone.mkdir(parents=True)
    (clone / "half").write_text("")
    assert text_in(work.prepare(url, "t1.1")) == "one\n"
    mirror = Path(work.folder, "mirrors", mirrors(work)[0])
    Path(f"{mirror}.new").mkdir()
    change(project, "three\n")
    (mirror / "packed-refs.lock").write_text("")
    (mirror / "refs" / "heads" / "main.lock").write_text("")
    assert text_in(work.prepare(url, "t2.1")) == "three\n"
    assert not (mirror / "packed-refs.lock").exists()


def test_a_mirror_is_kept_while_its_repository_cannot_be_reached(work, project):
    url = project.as_uri()
    work.prepare(url, "t1.1")
    project.rename(project.with_name("away"))
    with pytest.raises(Refused, match="git clone failed"):
        work.prepare(url, "t2.1")
    assert len(mirrors(work)) == 1


def test_a_process_that_is_killed_while_it_clones_is_followed_by_another(work, project, tmp_path):
    """A git that hangs inside the clone; the lock dies with its process."""
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    wrapper.write_text(
        f'#!/bin/sh\ntouch {tmp_path}/begun\nmkdir -p "$(eval echo \\${{$#}})"\nexec sleep 100\n'
    )
    wrapper.chmod(0o755)
    code = (
        "import sys\nfrom notyet.fleet.workspaces import Workspaces\n"
        "Workspaces(sys.argv[1]).prepare(sys.argv[2], 't1.1')"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, work.folder, project.as_uri()],
        env=os.environ | {"PATH": f"{wrapper.parent}:{os.environ['PATH']}"},
        process_group=0,
    )
    try:
        wait_for((tmp_path / "begun").exists)
        process.kill()
        process.wait()
        assert text_in(work.prepare(project.as_uri(), "t1.1")) == "one\n"
    finally:
        os.killpg(process.pid, signal.SIGKILL)


def test_many_threads_and_folders_share_one_mirror(work, project):
    faults = []

    def prepare(number):
        try:
            assert (
                text_in(Workspaces(work.folder).prepare(project.as_uri(), f"t{number}.1"))
                == "one\n"
            )
        except Exception as error:  # noqa: BLE001  # shown below
            faults.append(error)

    threads = [threading.Thread(target=prepare, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert len(names(work, "clones")) == 6
    assert len(mirrors(work)) == 1


# Bounds.


def aged(work, kind, name, age):
    path = Path(work.folder, kind, name)
    path.mkdir(parents=True, exist_ok=True)
    os.utime(path, (1e9 - age, 1e9 - age))


def test_the_oldest_clones_of_tasks_that_ended_are_deleted(work):
    for age, name in enumerate(["t1.1", "t2.1", "t3.1", "t4.1", "t5.2"]):
        aged(work, "clones", name, age)
    asked = []

    def ended(tasks):
        asked.extend(tasks)
        return set(tasks) - {"t5"}

    work.tidy(ended)
    assert asked == ["t5", "t4", "t3", "t2", "t1"]
    assert names(work, "clones") == ["t1.1", "t2.1", "t5.2"]
    Workspaces(work.folder, keep=0).tidy(lambda tasks: {"t1"})
    assert names(work, "clones") == ["t2.1", "t5.2"]


def test_mirrors_beyond_the_bound_are_deleted_the_least_used_first(work, project, tmp_path):
    made = []
    for number in range(3):
        git(tmp_path, "clone", "--quiet", "--bare", str(project), f"r{number}.git")
        work.prepare((tmp_path / f"r{number}.git").as_uri(), f"t{number}.1")
        (new,) = set(mirrors(work)) - set(made)
        aged(work, "mirrors", new, 10 - number)
        made.append(new)
    work.tidy(set)
    assert mirrors(work) == sorted(made[1:])


def test_a_mirror_in_use_is_not_deleted(work, project):
    work.prepare(project.as_uri(), "t1.1")
    nothing = Workspaces(work.folder, keep=0)
    with work._mirror(project.as_uri()):
        nothing.tidy(set)
        assert len(mirrors(work)) == 1
    nothing.tidy(set)
    assert mirrors(work) == []


# Trust.


def trusted(clone):
    setup = load(clone, "notyet", os.environ)
    return [gate.name for gate in setup.gates], [str(found) for found in setup.distrust]


def test_the_gates_of_a_clone_are_trusted_if_the_operator_says_so(work, project):
    clone = work.prepare(project.as_uri(), "t1.1")
    gates, distrust = trusted(clone)
    assert gates == []
    assert "notyet.toml" in distrust[0]
    work.trust(clone)
    assert trusted(clone) == (["tests"], [])


def test_the_gates_of_a_folder_are_trusted_as_its_first_task_found_them(work, project):
    work.trust(str(project), is_clone=False)
    Path(project, "notyet.toml").write_text('[gates]\nother = "true"\n')  # by an agent
    work.trust(str(project), is_clone=False)
    assert trusted(str(project))[0] == ["tests"]


def test_trust_ends_with_the_clone(work, project):
    clone = work.prepare(project.as_uri(), "t1.1")
    work.trust(clone)
    Workspaces(work.folder, keep=0).tidy(set)
    assert not os.path.exists(clone)
    assert trusted(work.prepare(project.as_uri(), "t1.1"))[0] == []
