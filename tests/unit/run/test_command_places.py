"""Where a command runs, with what environment, and what is said when it cannot start."""

import errno
import os
import signal
import sys

import pytest

from commands import ENVIRON, program, python, run, script
from notyet import light
from notyet.run.command_runner import run_together
from notyet.run.spawn import Job, pipe, start_failure

pytestmark = pytest.mark.rule("E7")

NAMES = ["plain", "with space", "quo'te\"s", "new\nline", "-dash", "$HOME `x`", "ümläut", "a=b"]


@pytest.fixture
def tool(tmp_path):
    """Write an executable file and return its path."""

    def write(name, text, mode=0o755):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        path.chmod(mode)
        return path

    return write


@pytest.mark.parametrize("name", NAMES)
def test_a_command_runs_in_its_folder_whatever_its_name(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "mark").write_text("here")
    ended = run(script('cat mark; printf %s "$PWD"', folder, environ={"CDPATH": "/usr:/"}))
    assert (ended.stdout.decode(), ended.stderr) == (f"here{folder}", b"")


@pytest.mark.parametrize("name", ["-", "-dash", "sub folder"])
def test_a_folder_may_be_relative_to_where_we_are(tmp_path, monkeypatch, name):
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OLDPWD", "/")
    assert run(script("pwd -P", name)).stdout.decode().strip() == str(tmp_path / name)


def test_we_stay_where_we_are(tmp_path):
    before = os.getcwd()
    run(script("cd /", tmp_path))
    assert os.getcwd() == before


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_command_has_exactly_the_environment_it_was_given(tmp_path, monkeypatch, elsewhere):
    monkeypatch.setenv("SECRET", "x")
    given = {"A": "1", "odd-name": "a b", "BASH_FUNC_f%%": "() { :; }", "N": "x\ny", "OLDPWD": "/"}
    folder = tmp_path if elsewhere else os.getcwd()
    seen = run(program("env", "-0", folder=folder, environ=given)).stdout.decode().split("\0")
    found = dict(line.split("=", 1) for line in seen if line)
    assert found.pop("NOTYET_GATE")
    found = {name: found[name] for name in found if name not in {"_", "SHLVL"}}  # a shell's own
    assert found == ENVIRON | given | {"PWD": str(folder)}


def test_no_folder_left_by_the_shell_is_in_the_environment(tmp_path):
    assert b"OLDPWD" not in run(program("env", folder=tmp_path)).stdout


def test_a_command_of_a_command_carries_both_marks():
    ended = run(script("echo $NOTYET_GATE", environ={"NOTYET_GATE": "outer"}))
    outer, inner = ended.stdout.decode().split()
    starter, _, secret = inner.partition("-")
    assert (outer, starter, len(secret)) == ("outer", str(os.getpid()), 24)


def test_a_command_inherits_no_descriptor_but_three():
    leaked, other = os.pipe()
    os.set_inheritable(leaked, True)
    try:
        seen = run(program("ls", "/proc/self/fd")).stdout.split()
    finally:
        os.close(leaked)
        os.close(other)
    assert seen == [b"0", b"1", b"2", b"3"]  # the last is the folder that ls reads


@pytest.mark.rule("E2")
def test_a_descriptor_above_the_limit_keeps_no_command_from_starting():
    code = """
import fcntl, os, resource, sys
sys.path[:0] = sys.argv[1:]
from commands import program, run
os.set_inheritable(fcntl.fcntl(os.pipe()[0], fcntl.F_DUPFD, 200), True)
resource.setrlimit(resource.RLIMIT_NOFILE, (100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
ended = run(program("ls", "/proc/self/fd"))
print(ended.code, ended.stdout.split(), ended.problem)
"""
    ended = run(python(code, *(path for path in sys.path if path)))
    assert (ended.stdout, ended.stderr) == (b"0 [b'0', b'1', b'2', b'3'] \n", b"")


def test_it_works_in_a_program_whose_standard_descriptors_are_closed(tmp_path):
    code = """
import os, sys
sys.path[:0] = sys.argv[2:]
from commands import run, script
for fd in (0, 1, 2):
    os.close(fd)
ended = run(script("cat; echo err >&2", stdin=b"in"))
with open(sys.argv[1], "w") as file:
    print(ended.code, ended.stdout, ended.stderr, ended.problem, file=file)
"""
    said = tmp_path / "said"
    ended = run(python(code, str(said), *(path for path in sys.path if path)))
    assert ended.code == 0
    assert said.read_text() == "0 b'in' b'err\\n' \n"


@pytest.mark.parametrize("elsewhere", [False, True])
class TestAProgram:
    """Behaves alike in our folder, and in another one that is entered through a shell."""

    def go(self, elsewhere, tmp_path, monkeypatch, *argv, **fields):
        folder = tmp_path / "work"
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir("/" if elsewhere else folder)
        return run(program(*argv, folder=folder, **fields))

    def test_is_found_on_the_path_of_its_environment(self, elsewhere, tmp_path, monkeypatch, tool):
        tool("mine", "#!/bin/sh\necho found $1\n")
        path = {"PATH": f"/nowhere::{tmp_path}:/bin"}
        ended = self.go(elsewhere, tmp_path, monkeypatch, "mine", "x", environ=path)
        assert ended.stdout == b"found x\n"

    def test_with_a_slash_is_looked_up_from_its_folder(
        self, elsewhere, tmp_path, monkeypatch, tool
    ):
        tool("mine", "#!/bin/sh\necho found\n")
        assert self.go(elsewhere, tmp_path, monkeypatch, "../mine").stdout == b"found\n"

    def test_without_a_first_line_is_a_shell_script(self, elsewhere, tmp_path, monkeypatch, tool):
        path = str(tool("bare", "echo bare $1; exit 6\n"))
        ended = self.go(elsewhere, tmp_path, monkeypatch, path, "x y")
        assert (ended.code, ended.stdout) == (6, b"bare x y\n")
        assert self.go(elsewhere, tmp_path, monkeypatch, str(tool("empty", ""))).code == 0

    def test_that_is_executable_but_not_readable_runs(self, elsewhere, tmp_path, monkeypatch, tool):
        with open("/bin/true", "rb") as file:
            path = str(tool("hidden", file.read(), 0o111))
        assert self.go(elsewhere, tmp_path, monkeypatch, path).code == 0

    def test_that_cannot_start_says_why(self, elsewhere, tmp_path, monkeypatch, tool):
        def problem(*argv, **fields):
            ended = self.go(elsewhere, tmp_path, monkeypatch, *argv, **fields)
            assert (ended.code, ended.stdout, ended.stderr) == (None, b"", b"")
            return ended.problem

        plain = str(tool("plain", "x", 0o644))
        typo = str(tool("typo", "#!/bin/nosh\r\n"))
        assert "'no-such-program' was not found on the PATH" in problem("no-such-program")
        assert "'' was not found" in problem("")
        assert "the command is empty" in problem()
        assert "'./no' does not exist" in problem("./no")
        assert "cannot be reached: Not a directory" in problem(f"{plain}/x")
        assert "is a folder, not a program" in problem(str(tmp_path))
        assert "'plain' was not found" in problem("plain")
        assert "is not executable; chmod +x" in problem(plain)
        assert "is not executable" in problem("plain", environ={"PATH": str(tmp_path)})
        assert r"names '/bin/nosh\r', which does not exist" in problem(typo)
        assert "cannot be passed on: embedded null" in problem("true", "a\0b")
        assert "cannot be passed on" in problem("true", environ={"A": "a\0b"})
        assert "cannot be passed on" in problem("true", environ={"A=B": "x"})
        assert "too long for this system" in problem("true", "x" * 3_000_000)
        assert "too long for this system" in problem("true", environ={"A": "x" * 3_000_000})


def test_a_folder_that_cannot_be_entered_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    missing = run(script("true", tmp_path / "gone"))
    assert missing.problem == f"the folder to run in, '{tmp_path}/gone', does not exist"
    assert "is not a folder" in run(script("true", tmp_path / "file")).problem
    assert "does not exist" in run(Job(argv=("true",), dir="", environ=ENVIRON)).problem
    assert run(Job(argv=("true",), dir="a\0b", environ=ENVIRON)).problem


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every folder")
def test_a_folder_without_permission_is_named(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    assert "may not be entered" in run(script("true", closed)).problem


def test_our_own_folder_may_be_gone(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert run(script("pwd", tmp_path)).stdout.decode().strip() == str(tmp_path)
    assert run(script("true", ".")).problem


def test_one_that_cannot_start_does_not_keep_the_others_from_running():
    first, second, third = run_together([script("exit 1"), program("no-such"), script("exit 3")])
    assert (first.code, bool(second.problem), third.code) == (1, True, 3)


def test_one_for_which_there_are_no_descriptors_at_all_has_a_problem():
    code = """
import os, resource, sys
sys.path[:0] = sys.argv[1:]
from commands import run_together, script
resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10))
before = sorted(os.listdir("/dev/fd"))
held = [os.open("/", os.O_RDONLY) for _ in range(4)]
(ended,) = run_together([script("exit 7")])
for fd in held:
    os.close(fd)
assert sorted(os.listdir("/dev/fd")) == before
print(ended.problem)
"""
    ended = run(python(code, *(path for path in sys.path if path), timeout=30))
    assert ended.stderr == b""
    assert ended.stdout.startswith(b"too many files are open to start '/bin/sh'")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EMFILE, "too many files are open to start 'x'"),
        (errno.ENFILE, "too many files are open"),
        (errno.EAGAIN, "has no room for another process"),
        (errno.ENOMEM, "has no room for another process"),
        (errno.E2BIG, "too long for this system to start 'x'"),
        (errno.ENOEXEC, "is not a program that this machine can run"),
        (errno.EIO, "'x' could not be started: Input/output error"),
    ],
)
def test_every_refusal_of_the_system_has_its_sentence(number, words):
    assert words in start_failure(OSError(number, os.strerror(number)), ("x",))


def test_a_group_of_its_own_is_enough_where_there_are_no_sessions_to_start(
    tmp_path, clock, monkeypatch
):
    spawn = os.posix_spawn

    def without_setsid(*args, **options):
        if options.pop("setsid", False):
            raise NotImplementedError
        return spawn(*args, **options)

    monkeypatch.setattr(light, "posix_spawn", without_setsid)
    clock.hold_until((tmp_path / "there").exists)
    text = "cut -d ' ' -f 5 /proc/$$/stat; echo $$; touch there; sleep 1000"
    ended = run(script(text, tmp_path, timeout=0.1))
    group, pid = map(int, ended.stdout.split())
    assert (group, ended.timed_out, ended.signal) == (pid, True, signal.SIGTERM)


def test_a_pipe_never_becomes_a_standard_descriptor():
    kept = os.dup(0)
    os.close(0)
    try:
        ends = pipe()
        assert min(ends) > 2
        assert not any(map(os.get_inheritable, ends))
        os.write(ends[1], b"x")
        assert os.read(ends[0], 9) == b"x"
        for end in ends:
            os.close(end)
    finally:
        os.dup2(kept, 0)
        os.close(kept)
