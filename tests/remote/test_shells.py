"""Login shells, what they print, and machines with little on them."""

import os
import shutil

import pytest

from remote_runs import (
    Upload,
    new_token,
    nothing_is_left,
    run,
    shells,
    there,
    upload_path,
)

pytestmark = pytest.mark.rule("M1", "M4")

HOSTILE = 'it\'s "$HOME" `id` $(id) \\ ! !! \n\t * ? ~ { } % # ; & | < > é \U0001f600 \\n %s'
LOUD = "echo welcome; echo 'a banner'; echo warning >&2"


@pytest.mark.parametrize("name", shells)
def test_any_login_shell_runs_a_gate_as_it_is(new_box, name):
    box = new_box(login=shells[name][0])
    token = new_token()
    text = 'printf "%s|" "$0" "$@" "$VALUE" "$PWD"; cat; echo other >&2; exit 7'
    job = there(
        box,
        *("/bin/sh", "-c", text, "zero", HOSTILE, ""),
        environ={"VALUE": HOSTILE},
        stdin=HOSTILE.encode() * 2000,
        token=token,
        uploads=[Upload(name="transcript.jsonl", content=b"\0\xff\n")],
    )
    ended = run(job)
    said = f"zero|{HOSTILE}||{HOSTILE}|{box.folder}|".encode() + HOSTILE.encode() * 2000
    assert (ended.problem, ended.code, ended.stderr) == ("", 7, b"other\n")
    assert ended.stdout == said
    assert nothing_is_left(box, token)


@pytest.mark.parametrize("name", ["bash", "fish", "tcsh"])
def test_what_a_login_shell_prints_is_not_the_gates(new_box, name):
    box = new_box(login=shells[name][0], rc={shells[name][1]: f"{_loud(name)}\n"})
    assert b"a banner" in box.ssh("true").stdout  # it does print
    ended = run(there(box, "echo said; echo 'no good' >&2; exit 2"))
    assert (ended.code, ended.stdout, ended.stderr) == (2, b"said\n", b"no good\n")


def _loud(name):
    return "echo welcome; echo 'a banner'" if name == "tcsh" else LOUD


def test_a_login_that_prints_much_on_both_streams_is_borne(new_box):
    much = "i=0; while [ $i -lt 5000 ]; do echo 'line after line of it'; i=$((i+1)); done"
    box = new_box(login="bash", rc={".bashrc": f"{much}\n{{ {much}; }} >&2\n"})
    assert len(box.ssh("true").stdout) > 100_000
    ended = run(there(box, "echo said; echo 'no good' >&2; exit 2"))
    assert (ended.code, ended.stdout, ended.stderr) == (2, b"said\n", b"no good\n")
    assert ended.left_out == 0


def test_a_login_that_prints_no_end_of_line_is_borne(new_box):
    box = new_box(login="bash", rc={".bashrc": "printf 'no end'; printf 'no end' >&2\n"})
    ended = run(there(box, "echo said; echo 'no good' >&2; exit 2"))
    assert (ended.code, ended.stdout, ended.stderr) == (2, b"said\n", b"no good\n")


def test_a_banner_of_sshd_is_not_the_gates(new_box, tmp_path):
    (tmp_path / "banner").write_text("authorized people only\n" * 3000)
    box = new_box(options=[f"Banner {tmp_path / 'banner'}"])
    ended = run(there(box, "echo said; echo 'no good' >&2; exit 2"))
    assert (ended.code, ended.stdout, ended.stderr) == (2, b"said\n", b"no good\n")


def test_a_login_shell_that_refuses_is_a_problem_that_names_the_host(new_box):
    box = new_box(login="bash", rc={".bashrc": "echo 'this account is closed' >&2; exit 1\n"})
    ended = run(there(box, "exit 2"))
    assert ended.code is None
    assert "box" in ended.problem


def test_a_login_shell_that_swallows_its_input_is_waited_for_no_longer_than_the_gate(new_box):
    box = new_box(login="bash", rc={".bashrc": "cat >/dev/null\n"})
    ended = run(there(box, "exit 2", timeout=1.5))
    assert ended.code is None
    assert "box" in ended.problem
    assert nothing_is_left(box)


@pytest.mark.rule("M2")
def test_a_machine_with_few_programs_runs_a_gate(new_box, tmp_path):
    box = new_box(environ={"PATH": str(_few(tmp_path))})
    token = new_token()
    job = there(
        box,
        f"cat {upload_path(token, 'transcript.jsonl')}; sleep 1000 & cat; exit 3",
        stdin=b"x" * 100_000,
        token=token,
        uploads=[Upload(name="transcript.jsonl", content=b"a transcript\n")],
    )
    ended = run(job)
    assert (ended.problem, ended.code) == ("", 3)
    assert ended.stdout == b"a transcript\n" + b"x" * 100_000
    assert nothing_is_left(box, token)


@pytest.mark.rule("M2")
def test_a_machine_with_few_programs_ends_a_gate_that_hangs(new_box, tmp_path):
    box = new_box(environ={"PATH": str(_few(tmp_path))})
    assert run(there(box, "exit 3")).code == 3
    token = new_token()
    ended = run(there(box, "sleep 1000 & sleep 1000", timeout=1.0, token=token))
    assert ended.timed_out
    assert nothing_is_left(box, token)


def _few(folder):
    """Make a PATH with a few programs, and without setsid."""
    path = folder / "bin"
    path.mkdir()
    names = "cat dd env find grep head ls mkdir printf ps rm sh sleep tail tr wc"
    for name in names.split():
        if found := shutil.which(name):
            os.symlink(found, path / name)
    return path
