"""What is copied of the transcripts that an event names."""

import os

import pytest

from notyet.core.event import StartEvent
from notyet.run import ssh_job
from notyet.run.ssh_job import read_transcripts
from support import stop, substop

pytestmark = pytest.mark.rule("M5")


def test_what_is_read_is_what_the_files_hold(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "main").write_bytes(b"a\n\xff\0b")
    (tmp_path / "child").write_bytes(b"")
    event = substop(transcript_path="~/main", agent_transcript_path=str(tmp_path / "child"))
    known = {"transcript_path": b"a\n\xff\0b", "agent_transcript_path": b""}
    assert read_transcripts(event).contents == known
    start = StartEvent(transcript_path=str(tmp_path / "main"))
    assert read_transcripts(start).contents == {"transcript_path": b"a\n\xff\0b"}


def test_a_pipe_does_not_hang_it(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    assert read_transcripts(stop(transcript_path=str(tmp_path / "fifo"))).contents == {}


@pytest.mark.parametrize(
    ("most", "copied"),
    [(9, b"one\ntwo\n\n"), (8, b"two\n\n"), (5, b"two\n\n"), (4, b"\n"), (1, b"\n")],
)
def test_a_line_is_copied_whole_or_not_at_all(tmp_path, monkeypatch, most, copied):
    monkeypatch.setattr(ssh_job, "MOST_COPIED", most)
    (tmp_path / "t").write_bytes(b"one\ntwo\n\n")
    read = read_transcripts(stop(transcript_path=str(tmp_path / "t")))
    assert read.contents["transcript_path"] == copied
    assert bool(read.warning) == (copied != b"one\ntwo\n\n")


def test_of_one_endless_line_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(ssh_job, "MOST_COPIED", 100)
    (tmp_path / "t").write_bytes(b"x" * 1000)
    read = read_transcripts(stop(transcript_path=str(tmp_path / "t")))
    assert read.contents == {"transcript_path": b""}
    assert "without its first 1000 bytes" in read.warning
