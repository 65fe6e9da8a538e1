"""Our own command is known by what a shell would run, not by how it is quoted."""

import shlex

from hypothesis import given
from hypothesis import strategies as st

from notyet.hosts.own_command import is_only_hook, ours_in, ours_of

WORDS = st.sampled_from(
    [
        "notyet",
        "hook",
        "conclaude",
        "/x/notyet",
        "env",
        "A=1",
        "sh",
        "-c",
        "-m",
        "-I",
        "python3",
        "echo",
        "uvx",
        "run",
        "exec",
        "--",
        "#",
        ";",
        "'",
        '"',
        "\\",
        "$(",
        "`",
        "/x/notyet/__main__.py",
        "--host",
        "claude",
    ]
)
TEXTS = st.lists(st.one_of(WORDS, st.text(max_size=4)), max_size=8)
NOISE = st.lists(
    st.sampled_from([*"'\"\\`$(){};&|#\n\t =", "notyet", "hook", "sh -c ", "eval "]), max_size=40
)


@given(TEXTS)
def test_quotes_change_nothing(words):
    assert ours_in(shlex.join(words)) == ours_of(words)


@given(TEXTS, st.sampled_from(["; ", " && ", "\n", " | ", " || "]))
def test_what_runs_before_changes_nothing(words, separator):
    whole = f"true{separator}{shlex.join(words)}"
    assert ours_in(whole) == ours_of(words)


@given(TEXTS)
def test_a_shell_around_changes_nothing(words):
    inner = shlex.join(words)
    assert ours_in(f"sh -c {shlex.quote(inner)}") == ours_in(inner)


@given(TEXTS, st.sampled_from(["; ", " && ", "\n", " | ", " || ", " & "]))
def test_with_another_command_beside_it_nothing_is_ours_alone(words, separator):
    ours = shlex.join(words)
    assert not is_only_hook(f"./lint.sh{separator}{ours}")
    assert not is_only_hook(f"{ours}{separator}./lint.sh")
    assert not is_only_hook(f"sh -c {shlex.quote(f'{ours}{separator}./lint.sh')}")
    assert ours_in(ours) or not is_only_hook(ours)


@given(NOISE)
def test_whatever_the_text_it_is_ours_or_not(parts):
    found = ours_in("".join(parts))
    assert found is None or found[1:]
    assert found or not is_only_hook("".join(parts))
