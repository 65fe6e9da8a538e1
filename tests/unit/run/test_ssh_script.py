"""The script that runs commands elsewhere, under every shell that may be `/bin/sh` there."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from commands import until
from notyet.core.remote import Remote
from notyet.run import ssh_script
from notyet.run.ssh_job import RemoteJob, new_token
from notyet.run.ssh_runner import Records
from notyet.run.ssh_script import Upload, conversation, quoted, upload_path
from scripts_there import PATIENCE, There, is_clean, left

CANNOT_START = (
    ("true", "/no/such/folder", "gone-folder"),
    ("true", "/etc/passwd", "no-folder"),
    ("no-such-program", "/", "no-program"),
    ("/no/such/program", "/", "gone-program"),
    ("./no-such", "/", "gone-program"),
    ("/etc", "/", "folder-program"),
    ("/etc/passwd", "/", "closed-program"),
)
HOSTILE = 'it\'s "$HOME" `id` \\ \\\\ !x \n\n\t*?~#;&|<>(){}[] %s é \udcff\udcfe\n'
UPLOADS = [Upload(name="one", content=b"x" * 5000), Upload(name="two", content=b"y" * 5000)]
CLINGING = "trap '' TERM HUP; sleep 1000 & (setsid sleep 1001 &); while :; do sleep 1; done"
# Prints a good ending for every word that it can see.
FORGING = r"""
words() { cat /proc/$PPID/environ /proc/$PPID/cmdline /proc/self/environ; ls -l /proc/$PPID/fd; }
for word in $(words 2>/dev/null | tr -c '0-9a-f' '\n' | grep -E '^[0-9a-f]{24}$' | sort -u); do
  printf '\n%s 0\n%s\n' $word $word
done
exit 1
"""
# Kills all that its parent has started, but not itself.
ALONE = "for p in $(cat /proc/$PPID/task/$PPID/children); do [ $p = $$ ] || kill -9 $p; done;"
NAMES = """
_ BASHOPTS BASH_ARGC BASH_VERSINFO COLUMNS EPOCHSECONDS EUID FUNCNAME GROUPS HISTSIZE KSHUID LANG
LC_ALL LINENO LINES MAILCHECK OPTIND PIPESTATUS PPID RANDOM SECONDS SHELLOPTS SHLVL TMOUT UID
PATH HOME ENV BASH_ENV CDPATH PS4 TERM POSIXLY_CORRECT status ny_x ny_secret IFS a.b BASH_FUNC_x%%
"""
RECORDING = """#!/bin/sh
tr '\\0' '\\n' < /proc/$$/cmdline >> %s
exec %s "$@"
"""
SECRET = "0123456789abcdef"  # noqa: S105  # the mark of records


@pytest.mark.rule("M4")
def test_arguments_variables_and_input_arrive_unchanged(shell, tmp_path):
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
def test_files_and_a_long_input_arrive_unchanged(shell):
    token, sent = new_token(), os.urandom(100_000)
    uploads = [
        Upload(name="one", content=b"\0\xff\n"),
        Upload(name="t w'o", content=sent),
        Upload(name="none", content=b""),
    ]
    text = f"cd {upload_path(token, '')}; cat; cat one t*o none; ls -ld . | cut -c1-10"
    there = There(shell, "/bin/sh", "-c", text, stdin=sent, uploads=uploads, token=token)
    assert there.end() == ("0", sent + b"\0\xff\n" + sent + b"drwx------\n", b"")
    there.hang_up()
    assert is_clean(token)


@pytest.mark.rule("M4")
@pytest.mark.parametrize("value", ["x y", "07"])
def test_a_variable_arrives_whatever_it_means_to_a_shell(shell, value):
    environ = dict.fromkeys(NAMES.split(), value)
    there = There(shell, "/usr/bin/env", environ=environ)
    code, out, err = there.end()
    assert (code, err) == ("0", b"")
    seen = dict(pair.split("=", 1) for pair in out.decode().split("\n") if "=" in pair)
    assert {name: seen.get(name) for name in environ} == environ
    there.hang_up()


def test_a_variable_is_on_no_command_line(shell, tmp_path):
    log = tmp_path / "log"
    for name in ("setsid", "env"):
        (tmp_path / name).write_text(RECORDING % (log, f"/usr/bin/{name}"))
        (tmp_path / name).chmod(0o755)
    environ = {"API_KEY": "hunter2", "lower": "hunter2", "IFS": "hunter2", "a.b": "seen"}
    path = f"{tmp_path}:{os.environ['PATH']}"
    there = There(
        shell, "/bin/sh", "-c", 'echo "$API_KEY"', environ={**environ, "PATH": path}, path=tmp_path
    )
    assert there.end() == ("0", b"hunter2\n", b"")
    there.hang_up()
    assert "a.b=seen" in log.read_text()  # no shell can pass that one on
    assert "hunter2" not in log.read_text()


@pytest.mark.rule("M1")
def test_an_exit_code_is_reported_unchanged(shell):
    for code in (0, 2, 127, 137, 255):
        there = There(shell, "/bin/sh", "-c", f"exit {code}", stdin=b"x")
        assert there.end() == (str(code), b"", b"")
        assert there.ending() == (code, 0, "")
        there.hang_up()


@pytest.mark.rule("M1")
def test_a_signal_is_reported_by_shells_that_know(shell):
    there = There(shell, "/bin/sh", "-c", "sleep 1000 & echo said; kill -11 $$")
    assert there.end()[1:] == (b"said\n", b"")
    # Those two do not know; an exit code blocks the agent as well.
    is_known = shell[0] not in {"bash", "mksh"}
    assert there.ending()[:2] == ((None, 11) if is_known else (139, 0))
    there.hang_up()


@pytest.mark.rule("M1")
def test_a_command_cannot_forge_an_ending(shell):
    there = There(shell, "/bin/sh", "-c", FORGING, environ={"X": "1"}, stdin=b"x")
    code, out, _ = there.end()
    assert code == "1"
    assert there.token.encode() in out  # it did try
    assert there.secret.encode() not in out
    there.hang_up()


@pytest.mark.rule("M3")
def test_what_cannot_start_has_a_reason(shell):
    for argv, folder, word in CANNOT_START:
        there = There(shell, argv, folder=folder)
        assert there.end() == (word, b"", b"")
        assert there.ending()[2].startswith("on box: ")
        there.hang_up()


@pytest.mark.rule("E4", "M1")
def test_a_flood_is_cut_while_it_runs_and_in_the_record(shell):
    there = There(shell, "/bin/sh", "-c", "echo first; yes | head -c 200000000; sleep 1; echo last")
    code, out, _ = there.end()
    assert code == "0"
    assert len(out) < 300_000
    assert out.startswith(b"first\ny\n")
    assert out.endswith(b"y\nlast\n")
    assert b"\n... more was printed here, and left out ...\n" in out
    there.hang_up()


@pytest.mark.rule("M2")
def test_background_processes_end_with_their_command(shell, tmp_path):
    left = "sleep 1000 & (setsid sleep 1001 &) & nohup setsid sleep 1002 >/dev/null 2>&1 &"
    there = There(shell, "/bin/sh", "-c", f"{left} exit 3", folder=tmp_path)
    assert there.end()[0] == "3"
    there.hang_up()
    assert is_clean(there.token)


@pytest.mark.rule("M2")
@pytest.mark.parametrize("moment", [0.0, 0.3])
def test_the_end_of_the_lifeline_ends_everything(shell, moment):
    there = There(shell, "/bin/sh", "-c", CLINGING, uploads=UPLOADS)
    time.sleep(moment)
    there.hang_up()
    assert is_clean(there.token)


@pytest.mark.rule("M2")
def test_a_number_on_the_lifeline_ends_that_command_and_its_output_comes(shell):
    there = There(shell, "/bin/sh", "-c", f"echo up; {CLINGING}")
    assert until(lambda: len(left(there.token, ["environ"])) >= 3)
    there.stop()
    assert there.end()[1:] == (b"up\n", b"")
    there.hang_up()
    assert is_clean(there.token)


@pytest.mark.rule("M2")
def test_a_timeout_ends_everything_without_a_word_from_us(shell, monkeypatch):
    monkeypatch.setattr(ssh_script, "_SPARE", 0)
    there = There(shell, "/bin/sh", "-c", CLINGING, uploads=UPLOADS, timeout=1.0)
    assert until(lambda: len(left(there.token, ["environ"])) >= 3)
    there.process.wait(PATIENCE)
    assert until(lambda: not left(there.token, ["environ"]))
    there.hang_up()  # as sshd does when the script has exited
    assert is_clean(there.token)


@pytest.mark.rule("M2")
def test_a_script_that_is_killed_while_it_receives_leaves_no_folder(shell):
    there = There(shell, "true", uploads=UPLOADS, sent=7000)
    assert until(lambda: Path(upload_path(there.token, "all")).exists())
    there.process.kill()
    there.hang_up()
    assert is_clean(there.token)


@pytest.mark.rule("M2")
def test_a_command_that_kills_its_guards_leaves_nothing(shell):
    there = There(shell, "/bin/sh", "-c", f"{ALONE} kill -9 $PPID; exec sleep 1000")
    there.hang_up()
    assert is_clean(there.token)


@pytest.mark.rule("M3")
@pytest.mark.parametrize("program", ["tail", "head"])
def test_a_file_that_did_not_arrive_whole_is_a_problem(shell, tmp_path, program):
    (tmp_path / program).write_text("#!/bin/sh\nexit 9\n")
    (tmp_path / program).chmod(0o755)
    there = There(shell, "cat", stdin=b"z" * 50_000, uploads=UPLOADS, path=tmp_path)
    assert there.end() == ("room", b"", b"")
    there.hang_up()
    assert is_clean(there.token)


@pytest.mark.rule("M2")
def test_a_script_that_arrives_in_part_is_not_run_in_part(shell):
    secret, token = new_token(), new_token()
    box = Remote(host="box", path="/")
    job = RemoteJob(argv=("true",), dir="/", environ={}, token=token, remote=box)
    _, script, _ = conversation(secret, [job], None)
    command = {"args": shell, "capture_output": True, "timeout": PATIENCE}
    half = script[: script.rindex(b"kill $ny_guard")]
    assert secret.encode() not in subprocess.run(input=half, **command).stdout
    assert secret.encode() in subprocess.run(input=script, **command).stdout
    assert is_clean(token)


@pytest.mark.rule("M5")
def test_what_several_commands_are_given_is_sent_once():
    box = Remote(host="box", path="/")
    known = {"dir": "/", "environ": {}, "token": "t", "remote": box, "uploads": UPLOADS}
    jobs = [RemoteJob(argv=("a",), stdin=b"z" * 50_000, **known) for _ in range(3)]
    _, script, files = conversation("s", jobs, None)
    assert [len(content) for content in files] == [5000, 5000, 50_000]
    assert script.count(b"exec </tmp/notyet-t/1.in\n") == 3


def test_half_a_character_is_passed_on_as_a_question_mark():
    assert quoted("a\ud800b'") == b"'a?b'\\'''"


@pytest.mark.rule("M1")
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_record_is_found_however_it_is_cut(size):
    mark = f"\n{SECRET}".encode()
    said = b"a\n" + mark[:8] + b"\n\n" + mark[:-1] + b"\n" + bytes(range(256)) + b"\n"
    content = b"banner%s\n" % mark[1:] + b"%s 2 0\n%s%s\nerr%s\n" % (mark, said, mark, mark) * 2
    records, found = Records(SECRET), []
    for at in range(0, len(content), size):
        records.add(content[at : at + size])
        found += records.take()
    assert records.preamble == b"banner"
    assert found == [(2, "0", said, b"err")] * 2


def test_a_banner_without_end_is_kept_in_part():
    records = Records(SECRET)
    records.add(b"x" * 10_000)
    assert (records.has_begun, len(records.preamble), [*records.take()]) == (False, 4096, [])
