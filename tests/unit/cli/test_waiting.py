"""What is said while somebody waits."""

import installs


def test_on_a_terminal_status_says_what_it_waits_for_and_takes_it_back(tmp_path, home):
    (home / ".claude").mkdir()
    _, shown = installs.converse(tmp_path, ["status"], [])
    assert shown.startswith("looking at Claude Code ...\rlooking at Codex ...\rnotyet")


def test_elsewhere_it_says_nothing_of_it(tmp_path, home):
    with installs.start(tmp_path, "status") as process:
        _, said = process.communicate(timeout=60)
    assert said in {"", b""}
