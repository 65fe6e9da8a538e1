"""Programs that cannot be fetched: a skip with its cause, unless something is wrong."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ASKING = "from clients.programs import CODEX, path_of; print(path_of(CODEX))"
LOCKED = """
from pathlib import Path
from clients import programs
programs.LOCKS = Path.home() / "locks"
it = programs.Program("it", "1.0", lock={lock!r}, inside={inside!r})
programs._cache = lambda: Path.home()
programs.node_of = lambda program: None
print(programs.path_of(it))
"""


@pytest.fixture
def place(tmp_path):
    """An empty cache, and a folder for an npm of the test's own."""
    (tmp_path / "bin").mkdir()
    return tmp_path


def npm(place, script):
    path = place / "bin" / "npm"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def ask(place, code=ASKING, **environ):
    """Ask for Codex in a process of its own, as a test process would."""
    known = {
        "PATH": f"{place}/bin:{os.environ['PATH']}",
        "PYTHONPATH": str(TESTS),
        "HOME": str(place),
        "XDG_CACHE_HOME": str(place),
    }
    return subprocess.run(
        [sys.executable, "-c", code],
        env=known | environ,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_what_cannot_be_fetched_is_skipped_with_its_cause(place):
    npm(place, "echo 'npm error network getaddrinfo ENOTFOUND' >&2; exit 1")
    done = ask(place)
    assert done.stdout.startswith("codex 0.166.0: "), done.stderr
    assert done.stdout.strip().endswith("npm error network getaddrinfo ENOTFOUND")


def test_another_file_than_the_pinned_one_is_no_skip(place):
    with tarfile.open(place / "it.tgz", "w:gz") as file:
        file.add(place / "bin", "package")
    to = 'while [ "$1" ]; do [ "$1" = --pack-destination ] && to=$2; shift; done'
    npm(place, f'{to}\n[ -z "$to" ] || cp {place}/it.tgz "$to"')
    done = ask(place)
    assert done.returncode == 1
    assert "it.tgz is not what was pinned" in done.stderr


@pytest.mark.parametrize("says", ["codex-cli 0.166.0", "codex-cli 0.1.0"])
def test_a_variable_must_name_the_version_that_the_tests_are_about(place, says):
    program = place / "codex"
    program.write_text(f"#!/bin/sh\necho {says}\n")
    program.chmod(0o755)
    done = ask(place, CODEX_BIN=str(program))
    if says.endswith("0.166.0"):
        assert done.stdout == f"{program}\n"
    else:
        assert "CODEX_BIN must name codex 0.166.0; " in done.stderr


def locked(place):
    """Write a lock of npm and one of pip."""
    folder = place / "locks" / "it"
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"dependencies": {"it": "1.0"}}')
    (folder / "package-lock.json").write_text("{}")
    (place / "locks" / "it.txt").write_text("it==1.0 --hash=sha256:00\n")


def test_a_lock_of_npm_is_installed_as_a_whole_and_only_once(place):
    locked(place)
    install = "mkdir -p node_modules/.bin && echo >node_modules/.bin/it"
    npm(
        place,
        f'[ "$1" = ci ] || exit 0\n[ -e package-lock.json ] && {install}\necho >>{place}/done',
    )
    code = LOCKED.format(lock="it", inside="node_modules/.bin/it")
    first, again = ask(place, code), ask(place, code)
    assert first.stdout == again.stdout
    assert Path(first.stdout.strip()).is_file(), first.stderr
    assert (place / "done").read_text() == "\n"


def test_another_package_than_the_lock_names_is_no_skip(place):
    locked(place)
    npm(place, '[ "$1" = ci ] || exit 0\necho npm error code EINTEGRITY >&2; exit 1')
    done = ask(place, LOCKED.format(lock="it", inside="node_modules/.bin/it"))
    assert done.returncode == 1
    assert "a package is not what was pinned" in done.stderr


def test_a_program_of_python_is_skipped_where_no_python_is_new_enough(place):
    locked(place)
    done = ask(place, LOCKED.format(lock="it.txt", inside="bin/it"), PATH=f"{place}/bin")
    assert done.stdout == "it 1.0: it needs Python 3.12 or newer, which is not installed\n", (
        done.stderr
    )


def test_a_program_of_python_gets_an_environment_which_is_moved_as_a_whole(place):
    locked(place)
    python = place / "bin" / "python3.12"  # one that makes an environment with a pip of its own
    own = '#!/bin/sh\nprintf "#!$0\\n" >"${0%/*}/it"'
    python.write_text(
        f'#!/bin/sh\n[ "$2" = venv ] || exit 0\nmkdir "$3/bin"\n'
        f'cat >"$3/bin/python" <<\'END\'\n{own}\nEND\nchmod +x "$3/bin/python"\n'
    )
    python.chmod(0o755)
    done = ask(place, LOCKED.format(lock="it.txt", inside="bin/it"))
    program = Path(done.stdout.strip())
    assert program.read_text() == f"#!{program.parent}/python\n", done.stderr
