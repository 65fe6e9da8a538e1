"""The script that runs a command elsewhere, under every shell that may be `/bin/sh` there."""

import os
import time

import pytest

from commands import until
from notyet.run import ssh_script
from notyet.run.remote import new_token
from notyet.run.ssh_script import Upload, quoted, upload_path
from scripts_there import PATIENCE, There, is_clean, left

CANNOT_START = (
    ("true", "/no/such/folder", "gone-folder"),
    ("true", "/etc/passwd", "file-folder"),
    ("no-such-program", "/", "no-program"),
    ("/no/such/program", "/", "gone-program"),
    ("./no-such", "/", "gone-program"),
    ("/etc", "/", "folder-program"),
    ("/etc/passwd", "/", "closed-program"),
    ("/etc/passwd/x", "/", "gone-program"),
)
HOSTILE = 'it\'s "$HOME" `id` \\ \\\\ !x \n\n\t*?~#;&|<>(){}[] %s é \udcff\udcfe\n'


@pytest.mark.rule("M4")
def test_arguments_variables_and_input_arrive_as_they_are(shell, tmp_path):
    text = 'printf "%s|" "$0" "$@" "$NOTYET_X" "$ODD" "$PWD"; cat; echo other >&2; exit 7'
    there = There(
        shell,
        *("/bin/sh", "-c", text, HOSTILE, "", "two words"),
        folder=tmp_path,
        environ={"NOTYET_X": HOSTILE, "ODD": HOSTILE},
        stdin=HOSTILE.encode("utf-8", "surrogateescape"),
    )
    code, out, err = there.end()
    said = "|".join([HOSTILE, "", "two words", HOSTILE, HOSTILE, str(tmp_path), HOSTILE])
    assert (code, err) == ("7", b"other\n")
    assert out == said.encode("utf-8", "surrogateescape")
    there.hang_up()
    assert is_clean(there.token)


@pytest.mark.rule("M4")
def test_files_and_a_long_input_arrive_as_they_are(shell):
    token = new_token()
    sent = os.urandom(100_000)
    uploads = [
        Upload(name="one", content=b"\0\xff\n"),
        Upload(name="t w'o", content=sent),
        Upload(name="none", content=b""),
    ]
    text = f"cd {upload_path(token, '')}; cat; cat one t*o none; ls -l | cut -c1-10; umask"
    there = There(shell, "/bin/sh", "-c", text, stdin=sent, uploads=uploads, token=token)
    code, out, _ = there.end()
    assert code == "0"
    assert out.startswith(sent + b"\0\xff\n" + sent)
    assert out.count(b"-rw-------") == 3
    assert not out.strip().endswith(b"077")  # that is only for what is sent
    there.hang_up()
    assert is_clean(token)


@pytest.mark.rule("M1")
def test_an_exit_code_is_told_as_it_is(shell):
    for code in (0, 2, 127, 137, 143, 255):
        there = There(shell, "/bin/sh", "-c", f"exit {code}", stdin=b"x")
        assert there.end() == (str(code), b"", b"")
        assert there.ending() == (code, 0, "")
        there.hang_up()


@pytest.mark.rule("M1")
@pytest.mark.parametrize("stdin", [b"", b"x"])
def test_a_death_by_signal_is_told_by_shells_that_know_and_by_none_on_stderr(shell, stdin):
    for number in (11, 15):
        there = There(
            shell, "/bin/sh", "-c", f"sleep 1000 & echo said; kill -{number} $$", stdin=stdin
        )
        _, out, err = there.end()
        assert (out, err) == (b"said\n", b"")
        # Those two do not know; a code is what holds the agent.
        is_known = shell[0] not in {"bash", "mksh"}
        assert there.ending()[:2] == ((None, number) if is_known else (128 + number, 0))
        there.hang_up()


def test_a_word_that_is_too_long_for_a_system_is_told_as_such(shell):
    there = There(shell, "true", "x" * 131_072)
    assert there.end() == ("long", b"", b"")
    assert "pass long texts in a file" in there.ending()[2]
    there.hang_up()


@pytest.mark.rule("M2")
def test_what_a_command_left_behind_is_ended_with_it(shell, tmp_path):
    left = "sleep 1000 & (setsid sleep 1001 &) & nohup setsid sleep 1002 >/dev/null 2>&1 &"
    there = There(shell, "/bin/sh", "-c", f"{left} exit 3", folder=tmp_path)
    assert there.end()[0] == "3"
    there.hang_up()
    assert is_clean(there.token)


@pytest.mark.rule("M2")
@pytest.mark.parametrize("moment", [0.0, 0.3])
def test_the_end_of_the_lifeline_ends_everything(shell, moment):
    text = "trap '' TERM HUP; sleep 1000 & (setsid sleep 1001 &); while :; do sleep 1; done"
    upload = Upload(name="one", content=b"x" * 1000)
    there = There(shell, "/bin/sh", "-c", text, uploads=[upload])
    time.sleep(moment)
    there.hang_up()
    assert is_clean(there.token)


@pytest.mark.rule("M2")
def test_time_that_is_over_ends_everything_without_a_word_from_us(shell, monkeypatch):
    monkeypatch.setattr(ssh_script, "_SPARE", 0)
    text = "trap '' TERM HUP; (setsid sleep 1001 &); while :; do sleep 1; done"
    upload = Upload(name="one", content=b"x")
    there = There(shell, "/bin/sh", "-c", text, uploads=[upload], timeout=1.0)
    assert until(lambda: len(left(there.token, ["environ"])) >= 3)
    there.process.wait(PATIENCE)
    assert until(lambda: not left(there.token, ["environ"]))
    there.hang_up()  # as sshd does when the script has exited
    assert is_clean(there.token)


@pytest.mark.rule("M3")
def test_what_cannot_start_is_told_apart(shell):
    for argv, folder, word in CANNOT_START:
        there = There(shell, argv, folder=folder)
        assert there.end() == (word, b"", b"")
        there.hang_up()


def test_a_program_is_looked_for_where_its_path_says(shell, tmp_path):
    for name, mode in (("one", 0o755), ("two", 0o644)):
        (tmp_path / name).write_text("#!/bin/sh\necho found $0\n")
        (tmp_path / name).chmod(mode)
    environ = {"PATH": f"/nowhere:{tmp_path}"}
    there = There(shell, "one", environ=environ)
    assert there.end() == ("0", f"found {tmp_path}/one\n".encode(), b"")
    there.hang_up()
    there = There(shell, "two", environ=environ)
    assert there.end()[0] == "closed-program"
    there.hang_up()


def test_a_program_may_have_an_equals_sign_in_its_name(shell, tmp_path):
    (tmp_path / "a=b").write_text('#!/bin/sh\necho "$X" "$@"\n')
    (tmp_path / "a=b").chmod(0o755)
    there = There(shell, "./a=b", "c d", folder=tmp_path, environ={"X": "y"})
    assert there.end() == ("0", b"y c d\n", b"")
    there.hang_up()


def test_half_a_character_is_passed_on_as_a_question_mark():
    assert quoted("a\ud800b'") == b"'a?b'\\'''"
