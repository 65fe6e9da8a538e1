"""Finding an agent by its name."""

import pytest

from notyet.agents import open_session, reopen
from notyet.errors import Refused
from notyet.run.agent_program import _LONGEST, Lines


def test_an_unknown_agent_is_said_with_the_one_that_was_meant():
    with pytest.raises(Refused, match=r"no agent 'cluade'; did you mean `claude`\? \(scripted, "):
        open_session("cluade", cwd=".")
    with pytest.raises(Refused, match=r"no agent 'zzz'; choose one of \(scripted, acp"):
        open_session("zzz", cwd=".")


@pytest.mark.parametrize("ref", [{}, {"agent": "claude"}, {"agent": "scripted", "cwd": 1}])
def test_what_is_no_ref_is_refused(ref):
    with pytest.raises(Refused, match="not the ref of a session"):
        reopen(ref)
    with pytest.raises(Refused, match="no agent 'x'"):
        reopen({"agent": "x"})


def test_a_script_is_an_argument_of_the_scripted_agent(tmp_path, run):
    (tmp_path / "a.toml").write_text('[[turn]]\nsay = "Done."\n')
    session = open_session("scripted", cwd=str(tmp_path), args=("a.toml",))
    assert run(session.send("go", "k")).text == "Done."
    assert reopen(session.ref()).knows("k") is True
    with pytest.raises(Refused, match="takes one argument"):
        open_session("scripted", cwd=str(tmp_path))


def test_without_a_home_a_session_says_what_to_set(monkeypatch):
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "")
    with pytest.raises(Refused, match="set XDG_STATE_HOME"):
        open_session("claude", cwd=".")


def test_lines_are_cut_wherever_the_chunks_end():
    lines = Lines()
    assert lines.add(b"a\nb") == [b"a"]
    assert lines.add(b"c") == []
    assert lines.add(b"d\n\n \ne\n") == [b"bcd", b"e"]
    assert lines.add(b"rest") == []
    assert lines.end() == [b"rest"]
    assert lines.end() == []


def test_a_line_that_is_too_long_is_counted_and_not_kept():
    lines = Lines()
    chunk = b"x" * (1024 * 1024)
    for _ in range(20):
        assert lines.add(chunk) == []
        assert len(lines._held) <= _LONGEST
    assert lines.add(b"tail\nnext\n") == [b"next"]
    assert lines.too_long == 1
