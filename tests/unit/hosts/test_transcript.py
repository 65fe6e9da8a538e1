"""The last message is found in every host's file, and no file can hurt."""

import json
import os
import threading
from pathlib import Path

import pytest

from notyet.hosts import transcript
from notyet.hosts.transcript import last_message, last_message_of
from support import stop, substop

VECTORS = Path(__file__).parents[2] / "vectors" / "transcripts"
EXPECTED = json.loads((VECTORS / "expected.json").read_text())
MIB = 1024 * 1024
SYNTHETIC = {"role": "assistant", "model": "<synthetic>", "content": "No answer."}


def said(text, **more):
    message = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    return json.dumps({"type": "assistant", "message": message} | more).encode() + b"\n"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "transcript.jsonl"


def message_in(file, content):
    file.write_bytes(content)
    return last_message(str(file))


@pytest.mark.rule("L2", "L4")
@pytest.mark.parametrize("name", EXPECTED)
def test_the_last_message_is_found_in_the_file_of_every_host(name):
    assert last_message(str(VECTORS / name)) == EXPECTED[name]["last_message"]


@pytest.mark.rule("L2")
@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"assistant",
        b"{assistant}",
        b'["assistant"]',
        b'{"type":"assistant"}',
        b'{"type":"assistant","message":"assistant"}',
        b'{"type":"assistant","message":{"role":"user","content":"no"}}',
        b'{"type":"assistant","message":{"role":"assistant","content":7}}',
        b'{"type":"assistant","message":{"role":"assistant","content":["text",null,7]}}',
        b'{"type":"assistant","message":{"role":"assistant","content":[{"type":"text"}]}}',
        b'{"type":"assistant","message":{"role":"assistant","content":[{"type":["text"]}]}}',
        b'{"type":["assistant"],"role":["assistant"],"content":"no"}',
        b'{"type":"event_msg","payload":"agent_message"}',
        b'{"type":"event_msg","payload":{"type":"agent_message","message":{"a":1}}}',
        b'{"type":"event_msg","payload":{"type":"assistant","message":"no"}}',
        b'{"type":"response_item","payload":{"type":"reasoning","role":"assistant"}}',
        b'{"type":"response_item","payload":["assistant"]}',
        b'{"role":"assistant","parts":"","content":"parts count"}',
        b'{"assistant":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        b'{"assistant":' + b"9" * 10_000 + b"}",
        b'{"assistant":NaN}',
        b'{"assistant":"\xff\xfe\x00\x01"',
        b"\0" * 5000,
        b"\x89PNG\r\n\x1a\n assistant {\xff}",
    ],
    ids=lambda line: repr(line[:40]),
)
def test_a_line_that_is_no_message_is_skipped(file, line):
    assert message_in(file, said("before") + line) == "before"
    assert message_in(file, said("before") + line + b"\n\n") == "before"
    assert message_in(file, line + b"\n" + said("after")) == "after"


@pytest.mark.rule("L2")
def test_an_earlier_message_counts_when_the_last_one_has_no_text(file):
    assert message_in(file, said("words") + said("") + said(" \n\t")) == "words"


@pytest.mark.rule("L3")
def test_odd_bytes_in_a_message_do_not_lose_it(file):
    line = said("kept").replace(b"kept", b"kept \xff")
    assert message_in(file, line) == "kept \ufffd"
    assert message_in(file, said("half \ud83d smile")) == "half ? smile"
    assert message_in(file, b"\0\0\0" + said("after a crash").strip() + b"\r\n\0\0") == (
        "after a crash"
    )


@pytest.mark.rule("L3")
@pytest.mark.parametrize("distance", [0, 1, 65_535, 65_536, 65_537, 200_000, 9 * MIB])
def test_an_answer_far_from_the_end_is_found(file, distance):
    filler = (b'{"type":"user","message":"' + b"x" * 70 + b'"}\n') * (distance // 99)
    content = said("early") + said("answer") + filler + b"\n" * (distance - len(filler))
    assert message_in(file, content) == "answer"


@pytest.mark.rule("L3")
def test_lines_may_end_anywhere_in_a_block(file, monkeypatch):
    monkeypatch.setattr(transcript, "_BLOCK", 7)
    for length in range(30):
        tail = b"x" * length + b"\n" + b"y" * (29 - length)
        assert message_in(file, said("one") + said("two") + tail) == "two"


@pytest.mark.rule("L3")
def test_a_line_beyond_the_longest_is_skipped_and_one_below_is_read(file, monkeypatch):
    monkeypatch.setattr(transcript, "_BLOCK", 64)
    line = said("x" * 1000).strip()
    for before, after in ((b"", b""), (b"", b"\n"), (said("early"), b""), (said("early"), b"\n")):
        monkeypatch.setattr(transcript, "_LONGEST_LINE", len(line))
        assert message_in(file, before + line + after) == "x" * 1000
        monkeypatch.setattr(transcript, "_LONGEST_LINE", len(line) - 1)
        assert message_in(file, before + line + after) == ("early" if before else None)


@pytest.mark.rule("L3")
def test_what_lies_too_far_back_is_not_looked_for(file):
    with file.open("wb") as out:
        out.write(said("too far"))
        out.truncate(2 * 1024 * MIB)  # sparse: two gigabytes of NULs
    assert last_message(str(file)) is None
    with file.open("ab") as out:
        out.write(b"\n" + said("near"))
    assert last_message(str(file)) == "near"


@pytest.mark.uncounted
@pytest.mark.rule("L3")
def test_a_file_made_of_near_misses_is_given_up(file):
    miss = b'{"role":"assistant" "parts":"no JSON"}\n'
    assert message_in(file, said("behind a few") + miss * 100) == "behind a few"
    assert message_in(file, said("behind them all") + miss * 60_000) is None


@pytest.mark.rule("L3")
def test_a_long_message_is_returned_whole_and_an_endless_one_is_bounded(file):
    assert message_in(file, said("x" * 1_000_000)) == "x" * 1_000_000
    long = message_in(file, said("x" * 1_000_001))
    assert len(long) <= 1_000_000
    assert "characters left out" in long


@pytest.mark.rule("L3")
def test_what_is_not_a_readable_file_has_no_message(tmp_path, file):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    for path in ("fifo", ".", "loop", "missing", "fifo/below", "a\0b", "\ud800", "x" * 5000):
        assert last_message(str(tmp_path / path)) is None, path
    for path in ("", "/dev/null", "/dev/zero", "/dev/tty", "~\0", "~nobody-at-all/x"):
        assert last_message(path) is None, path
    assert message_in(file, b"") is None
    assert message_in(file, b"\n\n\n") is None


def test_a_path_below_the_home_folder_is_understood():
    Path("~/transcript.jsonl").expanduser().write_bytes(said("at home"))
    assert last_message("~/transcript.jsonl") == "at home"


@pytest.mark.rule("L3")
def test_what_was_read_before_a_truncation_is_not_joined_to_what_is_left(file, monkeypatch):
    monkeypatch.setattr(transcript, "_BLOCK", 200)
    left = said("left").strip()
    last = b"the end of a long line\n" + said("gone")
    file.write_bytes(left + b"x" * (400 - len(left) - len(last)) + last)
    handle = os.open(file, os.O_RDONLY)
    try:
        lines = transcript._lines(handle, 400)
        assert next(lines) == said("gone").strip()
        os.truncate(file, len(left))
        assert list(lines) == [left]
    finally:
        os.close(handle)


@pytest.mark.rule("L3")
def test_a_file_that_is_being_written_never_loses_its_answer_nor_goes_back(file):
    file.write_bytes(said("0"))
    done = threading.Event()

    def write():
        with file.open("ab", buffering=0) as out:
            for number in range(1, 300):
                line = said(str(number), padding="x" * 3000)
                for at in range(0, len(line), 700):
                    out.write(line[at : at + 700])
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = [0]
    while not done.is_set():
        seen.append(int(last_message(str(file))))
    writer.join()
    assert seen == sorted(seen)
    assert last_message(str(file)) == "299"


@pytest.mark.rule("L4")
def test_a_side_chain_counts_only_in_a_file_that_is_one_from_the_start(file):
    side = said("side", isSidechain=True)
    main = said("main", isSidechain=False)
    assert message_in(file, main + side * 2) == "main"
    assert message_in(file, side * 2) == "side"
    assert message_in(file, side.replace(b"true", b"  true")) == "side"
    assert message_in(file, said('"isSidechain":true', isSidechain=False) + side) == (
        '"isSidechain":true'
    )
    assert message_in(file, b"x" * 300_000 + b"\n" + side) is None


@pytest.mark.rule("L4")
def test_words_of_claude_code_itself_are_not_the_agents(file):
    for more in ({"isApiErrorMessage": True}, {"message": SYNTHETIC}):
        assert message_in(file, said("agent") + said("API Error: 529", **more)) == "agent"
    assert message_in(file, said("agent", isApiErrorMessage=False)) == "agent"


@pytest.mark.rule("L1")
def test_what_the_host_says_beats_the_transcript(file):
    file.write_bytes(said("from the file"))
    path = str(file)
    assert last_message_of(stop(last_message="from the host", transcript_path=path)) == (
        "from the host"
    )
    for nothing in (None, "", " \n"):
        event = stop(last_message=nothing, transcript_path=path)
        assert last_message_of(event) == "from the file"
    assert last_message_of(stop()) is None


@pytest.mark.rule("L1")
def test_a_subagent_has_its_own_transcript_and_never_its_parents(tmp_path):
    parent, child = tmp_path / "parent.jsonl", tmp_path / "child.jsonl"
    parent.write_bytes(said("parent"))
    child.write_bytes(said("child"))
    both = {"transcript_path": str(parent), "agent_transcript_path": str(child)}
    assert last_message_of(substop(**both)) == "child"
    assert last_message_of(stop(**both)) == "parent"
    for host in ("claude", "codex", "conclaude", "embedded"):
        assert last_message_of(substop(host=host, transcript_path=str(parent))) is None
    child.unlink()
    assert last_message_of(substop(**both)) is None


@pytest.mark.rule("L1")
def test_in_mux_the_transcript_of_a_subagent_is_its_own(file):
    file.write_bytes(said("child"))
    assert last_message_of(substop(host="mux", transcript_path=str(file))) == "child"
