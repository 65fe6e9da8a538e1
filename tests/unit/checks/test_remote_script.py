"""The script that runs a command elsewhere, under every shell that may be `/bin/sh` there."""

import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from commands import running, until
from notyet.checks.kept import Framed
from notyet.checks.remote import Upload, new_token, upload_path
from notyet.checks.remote_script import conversation, quoted

SHELLS = {
    "dash": ["dash"],
    "bash": ["bash", "--posix"],
    "busybox": ["busybox", "ash"],
    "mksh": ["mksh"],
    "ksh": ["ksh"],
    "zsh": ["zsh", "--emulate", "sh"],
}
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


@pytest.fixture(params=SHELLS)
def shell(request):
    if shutil.which(SHELLS[request.param][0]) is None:
        pytest.skip(f"there is no {request.param}")
    return SHELLS[request.param]


class There:
    """The script in a process of its own, as sshd would start it."""

    def __init__(self, shell, *argv, folder="/", environ=None, stdin=b"", uploads=(), token=""):
        self.token = token or new_token()
        _, content = conversation(
            self.token,
            argv=argv,
            folder=str(folder),
            environ=environ or {},
            stdin=stdin,
            uploads=uploads,
        )
        blob = sum(len(u.content) for u in uploads)
        blob += len(stdin) if len(stdin) > 16 * 1024 or b"\0" in stdin else 0
        text, rest = content[: len(content) - blob], content[len(content) - blob :]
        # Not by the line for a login shell, which always runs /bin/sh.
        self.process = subprocess.Popen(
            [*shell, "-c", text],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
        )
        self.process.stdin.write(rest)
        self.streams = [Framed(self.token.encode()), Framed(self.token.encode())]

    def end(self):
        """Read all that it says; returns how it ended, and both outputs."""
        pipes = (self.process.stdout, self.process.stderr)
        for pipe, stream in zip(pipes, self.streams, strict=True):
            while not stream.is_complete:
                chunk = pipe.read(65536)
                if not chunk:
                    break
                stream.add(chunk)
        out, err = self.streams
        return (out.told or b"").split(b"\n")[0].decode(), out.text(), err.text()

    def hang_up(self):
        """Close everything, as sshd does when the connection is gone."""
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
        self.process.wait(20)


def is_clean(token):
    """Tell whether soon nobody carries the mark, and no folder is left."""
    return until(lambda: not _left(token) and not os.path.exists(f"/tmp/notyet-{token}"))  # noqa: S108  # it is about that folder


def _left(token, files=("environ", "cmdline")):
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal() and running(int(name)):
            try:
                texts = [Path("/proc", name, file).read_bytes() for file in files]
            except OSError:
                continue
            if any(token.encode() in text for text in texts):
                found.append(name)
    return found


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
    assert out.count(b"-rw-------") == 4
    assert not out.strip().endswith(b"077")  # that is only for what is sent
    there.hang_up()
    assert is_clean(token)


@pytest.mark.rule("M1")
def test_an_exit_code_is_told_as_it_is(shell):
    for code in (0, 2, 127, 255):
        there = There(shell, "/bin/sh", "-c", f"exit {code}")
        assert there.end() == (str(code), b"", b"")
        there.hang_up()


def test_a_death_by_signal_says_nothing_on_stderr(shell):
    there = There(shell, "/bin/sh", "-c", "echo said; kill -SEGV $$")
    code, out, err = there.end()
    assert code in {"139", "267"}
    assert (out, err) == (b"said\n", b"")
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
def test_time_that_is_over_ends_everything_without_a_word_from_us(shell):
    text = "trap '' TERM HUP; (setsid sleep 1001 &); while :; do sleep 1; done"
    there = There(shell, "/bin/sh", "-c", text, uploads=[Upload(name="one", content=b"x")])
    there.process.stdin.write(b"1\n")
    assert until(lambda: len(_left(there.token, ["environ"])) >= 3)
    there.process.wait(20)
    assert until(lambda: not _left(there.token, ["environ"]))
    there.hang_up()  # as sshd does when the script has exited
    assert is_clean(there.token)


@pytest.mark.rule("M2")
def test_whoever_counts_the_time_goes_when_the_command_does(shell):
    there = There(shell, "/bin/sh", "-c", "sleep 0.5; exit 4")
    number = random.randrange(10**6, 10**8)
    there.process.stdin.write(b"%d\n" % number)
    assert there.end()[0] == "4"
    there.hang_up()
    assert is_clean(there.token)
    listed = subprocess.run(["pgrep", "-f", f"sleep {number}"], capture_output=True)
    assert listed.stdout == b""


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
