"""Commands on another machine, over a real sshd: what goes there, and what comes back."""

import os
import signal
import threading
import time

import pytest

from commands import pids_in, run, run_together, running, script, until
from notyet.core.remote import Remote, remote_from
from notyet.run.ssh_job import new_token, remote_job, run_there
from notyet.run.ssh_script import Upload, upload_path
from remote_runs import nothing_is_left, there

pytestmark = pytest.mark.rule("M1")


@pytest.mark.parametrize("code", [0, 2, 130, 255])
def test_an_exit_code_is_told_as_it_is(box, code):
    ended = run(there(box, f"echo said; echo other >&2; exit {code}"))
    assert (ended.code, ended.signal, ended.problem) == (code, 0, "")
    assert (ended.stdout, ended.stderr) == (b"said\n", b"other\n")


def test_a_death_by_signal_is_told_apart_from_an_exit_code(box):
    ended = run(there(box, "kill -SEGV $$"))
    assert (ended.code, ended.signal, ended.problem) == (None, signal.SIGSEGV, "")


@pytest.mark.rule("M4")
def test_ten_megabytes_and_long_values_arrive_unchanged(box):
    sent, token = os.urandom(10_000_000), new_token()
    value = "é'\n\\" * 20_000
    job = there(
        box,
        f'cat > got; printf %s "$V" | cmp - v; cmp got {upload_path(token, "x")}; rm got v',
        stdin=sent,
        environ={"V": value},
        token=token,
        uploads=[Upload(name="x", content=sent)],
    )
    (box.folder / "v").write_text(value)
    ended = run(job)
    assert (ended.code, ended.stdout, ended.stderr) == (0, b"", b"")
    assert nothing_is_left(box, token)


@pytest.mark.rule("M3")
def test_what_cannot_start_there_is_told_in_the_same_words_and_names_the_host(box):
    nowhere, file = "/no/where", "/etc/passwd"
    cases = {
        "the program 'no-such' was not found on the PATH": there(box, "no-such", "x"),
        "the program '/no/such' does not exist": there(box, "/no/such", "x"),
        f"{file!r} is not executable; chmod +x makes it so": there(box, file, "x"),
        "'/etc' is a folder, not a program": there(box, "/etc", "x"),
        f"the folder to run in, {nowhere!r}, does not exist": there(box, "true", dir=nowhere),
        f"the folder to run in, {file!r}, is not a folder": there(box, "true", dir=file),
    }
    ended = run_together(list(cases.values()))
    assert [one.problem for one in ended] == [f"on box: {words}" for words in cases]


def test_what_no_system_can_pass_on_is_a_problem_without_any_connection(box):
    for argv, environ in ((("a\0b",), {}), (("true",), {"A=B": "x"}), ((), {})):
        ended = run(remote_job(remote_from(box.url()), argv=argv, dir="/", environ=environ))
        assert "cannot be passed on" in ended.problem
    assert not box.masters()


def test_commands_here_and_there_run_together(box):
    jobs = [there(box, f"exit {n}") if n % 2 else script(f"exit {n}") for n in range(20)]
    ended = run_together(jobs)
    assert [one.code for one in ended] == list(range(20)), [one.problem for one in ended]
    assert len(box.masters()) == 1


def test_one_command_of_our_own(box):
    ended = run_there(remote_from(box.url()), ("sh", "-c", "pwd; cat"), patience=30)
    assert (ended.code, ended.stdout) == (0, b"/\n")
    much = ("sh", "-c", "head -c 3000000 /dev/zero")
    ended = run_there(remote_from(box.url()), much, patience=30, head=4_000_000)
    assert (len(ended.stdout), ended.left_out) == (3_000_000, 0)


@pytest.mark.rule("M2")
def test_commands_out_of_time_are_told_once_and_ended_and_what_they_said_is_kept(box, tmp_path):
    ends = "trap 'echo bye; exit 9' TERM; echo up; while :; do sleep 0.05; done"
    stays = "trap 'echo told' TERM; echo up; for i in 1 2 3 4 5 6 7 8 9; do sleep 0.3; done"
    without_mark = (
        f"exec env -i /bin/sh -c 'trap \"\" TERM; echo $$ > {tmp_path}/a.pid; sleep 1000; sleep 9'"
    )
    tokens = {text: new_token() for text in (ends, stays, without_mark)}
    jobs = [there(box, text, token=token, timeout=1.5) for text, token in tokens.items()]
    done = run_together(jobs)
    assert [(one.timed_out, one.code, one.problem) for one in done] == [(True, None, "")] * 3
    assert [one.stdout for one in done] == [b"up\nbye\n", b"up\ntold\n", b""]
    (pid,) = pids_in(tmp_path)
    assert until(lambda: not running(pid))
    assert nothing_is_left(box, *tokens.values())


@pytest.mark.rule("M2")
def test_a_connection_that_is_not_there_in_time_is_a_timeout_that_names_the_host(box, monkeypatch):
    slow = box.config_with("slow", "Host box", "  ProxyCommand sleep 1000")
    monkeypatch.setenv("NOTYET_SSH_CONFIG", slow)
    started = time.monotonic()
    ended = run(there(box, "exit 2", timeout=0.8))
    assert ended.timed_out
    assert "no connection to box within " in ended.problem
    assert time.monotonic() - started < 20
    assert until(lambda: not box.clients())


@pytest.mark.rule("M3")
def test_without_a_folder_for_connections_it_is_said_what_to_do(box, monkeypatch):
    monkeypatch.setattr("notyet.run.ssh_connection.control_folder", lambda _environ: "")
    here, elsewhere = run_together([script("exit 3"), there(box, "exit 4")])
    assert here.code == 3
    assert "set XDG_RUNTIME_DIR or HOME to a folder" in elsewhere.problem


def test_a_machine_is_named_as_a_person_would_connect_to_it(box):
    place = Remote(host="127.0.0.1", path="/", user="no'body", port=1)
    ended = run(remote_job(place, argv=("true",), dir="/", environ={}, timeout=20.0))
    assert ended.advice == "try: ssh -p 1 no'body@127.0.0.1"


@pytest.mark.rule("M3")
def test_a_connection_that_is_lost_is_a_problem(box, tmp_path):
    ended = []
    text = f"echo said; touch {tmp_path}/up; sleep 1000"
    thread = threading.Thread(target=lambda: ended.append(run(there(box, text))))
    thread.start()
    assert until((tmp_path / "up").exists)
    time.sleep(0.2)
    for pid in box.masters():
        os.kill(pid, signal.SIGKILL)
    thread.join(30)
    assert ended[0].code is None
    assert ended[0].problem.startswith("the connection to box was lost while it ran")
    assert ended[0].lost  # it did start, and is not said to have not
    assert nothing_is_left(box)


@pytest.mark.rule("M3")
def test_a_login_that_runs_nothing_is_a_problem_with_what_it_said(new_box):
    box = new_box(login="bash", rc={".bashrc": "echo 'this account is closed'; exit 0\n"})
    ended = run(there(box, "exit 2"))
    assert ended.problem == "there is no connection to box: this account is closed"
    assert ended.advice == "try: ssh box"


@pytest.mark.rule("M2", "M3")
def test_a_holder_that_is_stuck_is_a_timeout_and_not_asked_again(box):
    assert run(there(box, "exit 3")).code == 3
    (pid,) = box.masters()
    os.kill(pid, signal.SIGSTOP)
    try:
        ended = run(there(box, "exit 2", timeout=0.7))
        assert ended.timed_out
        assert ended.problem.startswith("box did not begin to run it within ")
        assert run(there(box, "exit 4")).code == 4
    finally:
        os.kill(pid, signal.SIGKILL)


def test_many_runs_leave_no_descriptor_and_no_file(new_box):
    box = new_box(options=["MaxSessions 2"])
    run(there(box, "exit 0"))
    before = sorted(os.listdir("/dev/fd"))
    for _ in range(5):
        ended = run_together([there(box, f"exit {n}") for n in range(5)])
        assert [one.code for one in ended] == list(range(5)), [one.problem for one in ended]
    assert sorted(os.listdir("/dev/fd")) == before
    folder = os.path.join(box.runtime, "notyet", "ssh")
    assert len(os.listdir(folder)) == 1


def test_it_works_from_a_folder_that_is_gone(box, tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert run(there(box, "exit 3")).code == 3
