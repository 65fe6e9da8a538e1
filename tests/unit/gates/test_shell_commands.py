"""What the exit code of a shell text proves about the commands in it."""

from __future__ import annotations

import pytest

from notyet.gates.commands import forms, ran_commands
from notyet.gates.shell_text import NotUnderstood


def proven(script):
    return [command.text for command in ran_commands(script) if command.proven]


@pytest.mark.parametrize(
    "script",
    [
        "pytest -q",
        "cd app && pytest -q",
        "pytest -q && echo done",
        "true; pytest -q",
        "echo begin\npytest -q\n",
        "pytest -q 2>&1",
        "pytest -q > out.txt 2>&1",
        "pytest -q &> /dev/null",
        "pytest -q || exit 1",
        "pytest -q || false",
        "(cd app && pytest -q)",
        "bash -lc 'cd app && pytest -q'",
        '/bin/bash -c "pytest -q"',
        "set -o pipefail; pytest -q | tail -5",
        "set -o pipefail && pytest -q 2>&1 | tail -5",
        "bash -o pipefail -c 'pytest -q | tail'",
        "set -euo pipefail\npytest -q | tail -5\necho done",
        "set -e; pytest -q; echo done",
        "pytest \\\n  -q",
        "pytest -q # the tests",
        "# the tests\npytest -q",
        "cd app && true; pytest -q",
        '"$VENV/bin/pip" list; pytest -q',
        "cat > notes <<'EOF'\npytest || true\nEOF\npytest -q",
        "echo yes | pytest -q",
        "true || false && pytest -q",
    ],
)
def test_a_text_that_exited_with_0_proves_its_test_run(script):
    assert "pytest -q" in [" ".join(text.split()) for text in proven(script)]


@pytest.mark.parametrize(
    "script",
    [
        "pytest -q || true",
        "pytest -q; exit 0",
        "pytest -q; true",
        "pytest -q; echo done",
        "pytest -q\necho done",
        "pytest -q | tail",
        "pytest -q 2>&1 | tail -5",
        "pytest -q |& tail -5",
        "pytest -q &",
        "pytest -q & wait",
        "pytest -q && echo ok || echo no",
        "pytest -q || pytest -q",
        "! pytest -q",
        "exit 0; pytest -q",
        "exit 0 && pytest -q",
        "true || pytest -q",
        "trap 'exit 0' EXIT; pytest -q",
        "alias pytest=true; pytest -q",
        "eval 'pytest() { :; }'; pytest -q",
        "set -n; pytest -q",
        "set -e; set +e; pytest -q; echo done",
        "set -e; pytest -q && echo ok; echo done",
        "set -e; (pytest -q; echo hidden) && echo done",
        "set -o pipefail; set +o pipefail; pytest -q | tail",
        "bash -c 'pytest -q; true'",
        "bash -c 'pytest -q' || true",
        "bash -n -c 'pytest -q'",
        "(pytest -q; true)",
        "(pytest -q) || true",
        "echo pytest -q",
        "echo 'pytest -q'",
        'echo "\npytest -q\n"',
        "cat <<EOF\npytest -q\nEOF",
        "cat <<-EOF\n\tpytest -q\n\tEOF",
        "# pytest -q",
        "echo $(pytest -q)",
        "echo `pytest -q`",
        "X=$(pytest -q) true",
        "true || set -e; pytest -q; echo done",
        "false && set -e; pytest -q; echo done",
        "set -e & pytest -q; echo done",
        "true || set -o pipefail; pytest -q | tail",
        "true || set -o pipefail && pytest -q | tail",
        "set -e; A=1 set +e; pytest -q; echo done",
        "command exit 0; pytest -q",
        "A=1 exit 0; pytest -q",
        "time exit 0; pytest -q",
        "$X; pytest -q",
        "$(echo exit) 0; pytest -q",
    ],
)
def test_a_text_that_exited_with_0_does_not_prove_a_run_that_it_hides(script):
    assert "pytest -q" not in proven(script)


@pytest.mark.parametrize(
    "script",
    [
        "if pytest; then :; fi",
        "for f in a b; do pytest $f; done",
        "while true; do pytest; done",
        "{ pytest; }",
        "pytest() { true; }; pytest",
        "function pytest { true; }\npytest",
        "case x in y) pytest;; esac",
        "[[ -f x && -f y ]] && pytest",
        "((1)) && pytest",
        "diff <(pytest) <(pytest)",
        "pytest 'never closed",
        'pytest "never closed',
        "pytest $(never closed",
        "cat <<EOF\npytest",
        "(pytest",
        "pytest)",
        "&& pytest",
        "pytest && ",
        "pytest ;; true",
        "pytest $'x'",
        "(" * 50 + "pytest" + ")" * 50,
        "x" * 70_000,
    ],
)
def test_a_text_that_is_not_plain_shell_is_not_understood(script):
    with pytest.raises(NotUnderstood):
        ran_commands(script)


def test_an_empty_text_has_no_commands():
    assert ran_commands("") == []
    assert ran_commands(" \n# nothing\n") == []


@pytest.mark.parametrize(
    ("script", "folder"),
    [
        ("cd app && pytest", "app"),
        ("cd app && cd tests && pytest", "app/tests"),
        ("cd /elsewhere && pytest", "/elsewhere"),
        ("(cd app); pytest", ""),
        ('cd "$HOME" && pytest', None),
        ("cd ~/x && pytest", None),
        ("cd - && pytest", None),
        ("cd && pytest", None),
        ("cd app && true; pytest", "app"),
        ("true || cd app; pytest", None),
        ("false && cd app; pytest", None),
        ("cd app & pytest", None),
        ("command cd app; pytest", None),
    ],
)
def test_the_folder_of_a_command_is_followed_through_cd(script, folder):
    assert ran_commands(script)[-1].folder == folder


@pytest.mark.parametrize(
    "script",
    [
        "pytest -q",
        "A=1 B='x y' pytest -q",
        "env A=1 pytest -q",
        "timeout 60 pytest -q",
        "timeout -k 5 60 pytest -q",
        "uv run pytest -q",
        "uv run --frozen --with x --python=3.12 pytest -q",
        "poetry run pytest -q",
        "python -m pytest -q",
        "python3.12 -X dev -m pytest -q",
        "uv run python -m pytest -q",
        "coverage run --branch -m pytest -q",
        "python -m coverage run -m pytest -q",
        ".venv/bin/pytest -q",
        "/usr/bin/time -p pytest -q",
        "npx --yes pytest -q",
        "nice -n 5 pytest -q",
        "pytest '-q'",
    ],
)
def test_a_command_is_found_behind_what_starts_it(script):
    (command,) = ran_commands(script)
    assert ("pytest", "-q") in list(forms(command))


@pytest.mark.parametrize(
    "script",
    [
        "uv run --unknown pytest -q x",
        "python -c pytest",
        "xargs pytest -q",
        "python run.py pytest -q",
        "uv run --directory ../other pytest -q",
        "env -C ../other pytest -q",
    ],
)
def test_a_command_is_not_guessed_behind_options_that_are_not_known(script):
    (command,) = ran_commands(script)
    assert not any(words[0] == "pytest" for words in forms(command))
