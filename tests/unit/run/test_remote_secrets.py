"""What a command elsewhere can see, and what others on its machine can: under every shell."""

import pytest

from notyet.run.ssh_script import PECULIAR
from scripts_there import There, is_clean

# Says for every word that somebody there can see that it had ended well.
FORGING = r"""
words() { cat /proc/$PPID/environ /proc/$PPID/cmdline /proc/self/environ; ls -l /proc/$PPID/fd; }
for word in $(words 2>/dev/null | tr -c '0-9a-f' '\n' | grep -E '^[0-9a-f]{24}$' | sort -u); do
  printf '\n%s 0\n%s\n' $word $word
  printf '\n%s \n%s\n' $word $word >&2
done
exit 1
"""
PLAIN = "PATH HOME ENV BASH_ENV CDPATH PS4 TERM MAIL POSIXLY_CORRECT path status ny_t ny_x IFS"
RECORDING = """#!/bin/sh
tr '\\0' '\\n' < /proc/$$/cmdline >> %s
exec %s "$@"
"""


@pytest.mark.rule("M1")
def test_nothing_that_a_command_can_see_makes_its_output_an_ending(shell):
    there = There(shell, "/bin/sh", "-c", FORGING, environ={"X": "1"}, stdin=b"x")
    code, out, _ = there.end()
    assert code == "1"
    assert there.token.encode() in out  # it did try
    assert there.secret.encode() not in out
    there.hang_up()


def test_a_variable_is_on_no_command_line(shell, tmp_path):
    log = tmp_path / "log"
    for name in ("setsid", "env"):
        (tmp_path / name).write_text(RECORDING % (log, f"/usr/bin/{name}"))
        (tmp_path / name).chmod(0o755)
    environ = {"API_KEY": "hunter2", "lower": "hunter2", "IFS": "hunter2", "a.b": "seen"}
    text = 'echo "$API_KEY $lower"'
    there = There(shell, "/bin/sh", "-c", text, environ=environ, path=tmp_path)
    assert there.end() == ("0", b"hunter2 hunter2\n", b"")
    there.hang_up()
    assert "a.b=seen" in log.read_text()  # that one no shell can hand on
    assert "hunter2" not in log.read_text()


@pytest.mark.rule("M4")
@pytest.mark.parametrize("value", ["x y", "07"])
def test_a_variable_arrives_whatever_it_means_to_a_shell(shell, value):
    names = [*PECULIAR, *PLAIN.split(), "LC_ALL", "a.b", "BASH_FUNC_x%%"]
    environ = dict.fromkeys(names, value)
    there = There(shell, "/usr/bin/env", environ=environ)
    code, out, err = there.end()
    assert (code, err) == ("0", b"")
    seen = dict(pair.split("=", 1) for pair in out.decode().split("\n") if "=" in pair)
    assert {name: seen.get(name) for name in names} == environ
    there.hang_up()


def test_a_program_is_found_before_its_path_counts(shell, tmp_path):
    (tmp_path / "own").write_text("#!/bin/sh\necho $PATH\n")
    (tmp_path / "own").chmod(0o755)
    environ = {"PATH": str(tmp_path), "LINES": "3"}
    there = There(shell, "own", environ=environ)
    assert there.end() == ("0", f"{tmp_path}\n".encode(), b"")
    there.hang_up()
    assert is_clean(there.token)
