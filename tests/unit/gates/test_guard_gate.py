"""The gate `guard = "tests"` on real repositories: the start of a session against the files now."""

import dataclasses
from pathlib import Path

import pytest

from conftest import git
from notyet.core.event import StopEvent
from notyet.gates.guard import GROUPS, RULES
from notyet.gates.guard.gate import check
from notyet.gates.kinds import GROUPS_OF_GUARD
from notyet.gates.question import Question
from notyet.git.snapshot_store import take_first

TESTS = (
    "def test_adds():\n    assert add(1, 1) == 2\n\n\n"
    "def test_multiplies():\n    assert multiply(2, 2) == 4\n"
)
FEWER = "def test_adds():\n    assert add(1, 1) == 2\n"
SCRIPT = "#!/bin/sh\nset -e\npytest -q\n"


@pytest.fixture
def state(tmp_path, monkeypatch):
    """Have a state of notyet of its own."""
    folder = tmp_path / "state"
    folder.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return folder / "notyet"


@pytest.fixture
def root(git_project, state):
    """Return a repository with two committed tests and a script."""
    top = Path(git_project)
    (top / "tests").mkdir()
    (top / "tests" / "test_sums.py").write_text(TESTS)
    (top / "check.sh").write_text(SCRIPT)
    (top / "notes.txt").write_text("before\n")
    git(top, "add", ".")
    git(top, "commit", "-qm", "tests")
    return top


@pytest.fixture
def begun(root, state):
    """Begin a session: from here on, the agent works."""
    state.mkdir(exist_ok=True)
    taken = take_first(
        str(state), host="claude", session_id="s1", agent_id="", root=str(root), patience=30.0
    )
    assert taken is not None
    return root


def ask(root, message="Done.", *, commands=(), **options):
    event = StopEvent(host="claude", session_id="s1", cwd=str(root), last_message=message)
    return check(
        Question(
            event=event,
            gate="guard",
            options={"guard": "tests", "kind": "guard"} | options,
            folder=str(root),
            commands=tuple(commands),
        )
    )


def passes(answer):
    return not answer.reason and not answer.problem


def test_a_session_that_weakens_nothing_passes(begun):
    (begun / "notes.txt").write_text("after\n")
    (begun / "tests" / "test_sums.py").write_text(TESTS + "\n\ndef test_more():\n    assert True\n")
    answer = ask(begun)
    assert passes(answer)
    assert answer.tell == ""
    assert answer.note == "since the session began: nothing is weaker"


def test_a_removed_test_sends_the_agent_back_with_its_place_and_what_was_there(begun):
    (begun / "tests" / "test_sums.py").write_text(FEWER)
    answer = ask(begun)
    assert "since the session began" in answer.reason
    assert "tests/test_sums.py:5" in answer.reason
    assert "test_multiplies" in answer.reason
    assert "name each file or test (in quotes) in your final message" in answer.reason
    assert answer.tell.startswith("weakened: tests/test_sums.py:5")


def test_what_is_committed_during_the_session_still_counts(begun):
    (begun / "tests" / "test_sums.py").unlink()
    git(begun, "commit", "-qam", "simplify")
    assert "tests/test_sums.py" in ask(begun).reason


@pytest.mark.parametrize(
    "message",
    [
        "I removed `test_multiplies`, because multiplication is gone.",
        "tests/test_sums.py has one test fewer: multiplication is gone.",
    ],
)
def test_a_declared_change_passes_and_the_user_is_told(begun, message):
    (begun / "tests" / "test_sums.py").write_text(FEWER)
    answer = ask(begun, message)
    assert passes(answer)
    assert answer.tell.startswith("declared: tests/test_sums.py")
    assert answer.note == "since the session began: 1 declared, 0 told"


def test_a_message_that_names_no_file_and_no_test_declares_nothing(begun):
    (begun / "tests" / "test_sums.py").write_text(FEWER)
    assert ask(begun, "I cleaned up the tests.").reason
    assert ask(begun, "I touched tests, tests/ and multiplies.").reason


@pytest.mark.parametrize(
    ("message", "is_declared"),
    [
        ("The cart now adds prices as it should.", False),
        ('I removed the test "adds prices": carts have no prices.', True),
        ("I removed **adds prices**: carts have no prices.", True),
        ("test/cart.test.js has one test fewer.", True),
    ],
)
def test_a_title_in_plain_words_must_be_in_quotes(root, message, is_declared):
    (root / "test").mkdir()
    cart = root / "test" / "cart.test.js"
    cart.write_text("it('adds prices', () => {\n  expect(total([1])).toBe(1);\n});\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "cart")
    cart.write_text("")
    assert passes(ask(root, message)) is is_declared


def test_one_declaration_does_not_cover_another_file(begun):
    (begun / "tests" / "test_sums.py").write_text(FEWER)
    (begun / "tests" / "conftest.py").write_text('collect_ignore = ["test_sums.py"]\n')
    answer = ask(begun, "I removed test_multiplies.")
    assert "conftest.py" in answer.reason
    assert "test_multiplies" not in answer.reason
    assert "declared: tests/test_sums.py" in answer.tell


def test_a_strict_guard_does_not_accept_words(begun):
    (begun / "tests" / "test_sums.py").write_text(FEWER)
    answer = ask(begun, "I removed `test_multiplies`.", strict=True)
    assert answer.reason.endswith("Restore it.")


def test_a_group_in_tell_does_not_block_and_one_in_block_does(begun):
    (begun / "tests" / "test_sums.py").write_text(FEWER)
    answer = ask(begun, tell=["removed"])
    assert passes(answer)
    assert answer.tell.startswith("weakened: ")
    (begun / "tests" / "test_sums.py").write_text(TESTS.replace("== 4", "> 3"))
    assert passes(ask(begun))
    assert ask(begun, block=["weaker"]).reason


def test_files_in_allow_are_not_looked_at(begun):
    (begun / "tests" / "test_sums.py").write_text(FEWER)
    answer = ask(begun, allow=["tests/**"])
    assert passes(answer)
    assert answer.tell == ""


def test_an_edit_of_the_script_that_a_gate_runs_blocks(begun):
    command = {"gate": "tests", "line": "./check.sh", "dir": "", "file": str(begun / "x.toml")}
    (begun / "check.sh").write_text("#!/bin/sh\nexit 0\n")
    answer = ask(begun, commands=[command])
    assert "check.sh:2: a script that a gate runs was changed" in answer.reason
    assert "before: set -e" in answer.reason
    assert passes(ask(begun))  # without a gate that runs it, it is only told


def test_without_a_snapshot_it_compares_with_the_last_commit_and_says_so(root):
    (root / "tests" / "test_sums.py").write_text(FEWER)
    assert "since the last commit (" in ask(root).reason
    git(root, "commit", "-qam", "fewer tests")
    answer = ask(root)
    assert answer.note.startswith("since the last commit (")
    assert "compared only with the last commit (no snapshot was taken when" in answer.tell


def test_outside_of_git_it_is_a_problem_with_the_reason(tmp_path, state):
    answer = ask(tmp_path)
    assert answer.problem == (
        "the guard cannot compare the files: the folder is not in a git repository"
    )


def test_a_test_file_renamed_with_its_tests_passes(begun):
    git(begun, "mv", "tests/test_sums.py", "tests/test_numbers.py")
    assert passes(ask(begun))


def test_a_removed_copy_of_a_test_in_an_unchanged_file_passes(root):
    (root / "tests" / "test_copy.py").write_text(TESTS)
    git(root, "add", ".")
    git(root, "commit", "-qm", "copy")
    (root / "tests" / "test_sums.py").write_text(FEWER)
    assert passes(ask(root))
    (root / "tests" / "test_copy.py").unlink()
    assert ask(root).reason


def test_new_files_that_cannot_be_read_are_told(begun):
    (begun / "tests" / "test_large.py").write_text("#" * 5_000_000)
    (begun / "tests" / "test_binary.py").write_bytes(b"\0" * 100)
    answer = ask(begun)
    assert passes(answer)
    assert "2 changed files were not read" in answer.tell


@pytest.mark.parametrize("content", [b"\0" * 100, b"#" * 5_000_000, b"def test_adds(:\n"])
def test_a_test_file_that_can_no_longer_be_read_blocks(begun, content):
    (begun / "tests" / "test_sums.py").write_bytes(content)
    assert "so its tests were not compared" in ask(begun).reason


@pytest.mark.parametrize("into", ["tests/test_sums.py.bak", "sums.txt", "tests/.off/test_sums.py"])
def test_a_test_file_renamed_so_that_nothing_runs_it_blocks(begun, into):
    (begun / into).parent.mkdir(exist_ok=True)
    git(begun, "mv", "tests/test_sums.py", into)
    reason = ask(begun).reason
    assert "test_adds, test_multiplies" in reason
    assert "tests/test_sums.py:1" in reason


def test_a_large_change_does_not_keep_a_test_that_was_there_from_being_read(begun):
    for number in range(20):
        (begun / "tests" / f"test_a{number}.py").write_text("#" * 3_900_000)
    (begun / "tests" / "test_sums.py").write_text(FEWER)
    assert "test_multiplies" in ask(begun).reason


def test_what_was_declared_at_one_stop_need_not_be_named_at_the_next(begun):
    (begun / "tests" / "test_sums.py").write_text(FEWER)
    assert passes(ask(begun, "I removed `test_multiplies`."))
    (begun / "notes.txt").write_text("after\n")
    answer = ask(begun, "The notes are written.")
    assert passes(answer)
    assert answer.tell == ""
    assert answer.note == "since the session began: 1 declared, 0 told"
    assert "[test-removed, declared]" in answer.output
    assert ask(begun, strict=True).reason
    (begun / "tests" / "test_sums.py").write_text("")
    assert "test_adds" in ask(begun, "The notes are written.").reason


def test_a_declared_edit_of_a_gate_script_does_not_cover_the_next_edit(begun):
    command = {"gate": "tests", "line": "./check.sh", "dir": "", "file": str(begun / "x.toml")}
    (begun / "check.sh").write_text(SCRIPT.replace("-q", "-qq"))
    assert passes(ask(begun, "check.sh is quieter.", commands=[command]))
    (begun / "check.sh").write_text(SCRIPT.replace("pytest -q", "exit 0"))
    assert "check.sh:3" in ask(begun, commands=[command]).reason


def test_odd_names_and_encodings_do_not_stop_it(begun):
    (begun / "tests" / "test_ä b.py").write_bytes(b"def test_x():\n    assert '\xff'\n")
    (begun / "tests" / "test_\nline.py").write_text("x = 1\n")
    (begun / "tests" / "test_sums.py").write_text(FEWER)
    assert "tests/test_sums.py:5" in ask(begun).reason


def test_the_groups_of_the_schema_are_those_of_the_rules():
    assert set(GROUPS_OF_GUARD) == {rule.group for rule in RULES.values()} == set(GROUPS)
    for rule in RULES.values():
        assert GROUPS[rule.group] is rule.blocks, dataclasses.astuple(rule)
