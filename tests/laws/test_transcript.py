"""Laws of transcripts: nothing raises, and reading backwards finds what reading it all does."""

import json
import os
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notyet.hosts import transcript
from notyet.hosts.transcript import last_message

pytestmark = pytest.mark.rule("L3")

texts = st.text(max_size=20)
blocks = st.lists(
    st.one_of(
        st.builds(lambda text: {"type": "text", "text": text}, texts),
        st.builds(lambda text: {"type": "thinking", "thinking": text}, texts),
        st.builds(lambda text: {"type": "tool_use", "input": {"assistant": text}}, texts),
    ),
    max_size=3,
)
roles = st.sampled_from(["assistant", "user"])
entries = st.one_of(
    st.builds(lambda r, c: {"type": r, "message": {"role": r, "content": c}}, roles, blocks),
    st.builds(lambda r, c: {"type": "message", "message": {"role": r, "content": c}}, roles, texts),
    st.builds(lambda r, p: {"id": "m", "role": r, "parts": p}, roles, blocks),
    st.builds(
        lambda r, c: {"type": "response_item", "payload": {"type": "message", "role": r} | c},
        roles,
        st.builds(lambda t: {"content": [{"type": "output_text", "text": t}]}, texts),
    ),
    st.builds(
        lambda t: {"type": "event_msg", "payload": {"type": "agent_message", "message": t}}, texts
    ),
)
lines = st.one_of(
    entries.map(lambda entry: json.dumps(entry).encode()),
    entries.map(lambda entry: json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace")),
    entries.map(lambda entry: json.dumps(entry).encode()[:-5]),
    st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")),
    st.sampled_from([b"", b"{}", b"assistant", b'{"role":"assistant"}', b"\0\0"]),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts | st.sampled_from(["assistant", "text"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "message", "role", "content", "parts", "payload", "text"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def read(content, block=64 * 1024):
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        before, transcript._BLOCK = transcript._BLOCK, block
        try:
            return last_message(file.name)
        finally:
            transcript._BLOCK = before


def naive(content):
    """Read everything, forwards, with the `json` package."""
    answer = None
    for line in content.decode("utf-8", "replace").split("\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        text = naive_text(entry) if isinstance(entry, dict) else ""
        if text.strip():
            answer = text.encode("utf-8", "replace").decode()
    return answer


def naive_text(entry):
    payload = entry.get("payload", {})
    if payload.get("type") == "agent_message":
        return payload["message"]
    message = entry.get("message") or payload or entry
    if message.get("role") != "assistant":
        return ""
    content = message.get("content", message.get("parts", []))
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block.get("text"))


@given(st.lists(lines, max_size=12), st.integers(1, 300), st.booleans())
def test_reading_backwards_finds_what_reading_everything_finds(lines, block, ended):
    content = b"\n".join(lines) + (b"\n" if ended else b"")
    assert read(content, block) == naive(content)


@given(st.binary(max_size=500), st.integers(1, 64))
def test_no_bytes_raise(content, block):
    assert read(content, block) is None or b"ass" in content or b"agent" in content


@given(st.lists(json_values, max_size=4))
def test_no_json_raises(values):
    content = b"\n".join(json.dumps(value | {"x": "assistant"}).encode() for value in values
                         if isinstance(value, dict))  # fmt: skip
    answer = read(content)
    assert answer is None or answer.strip()


@given(st.text(max_size=30))
def test_no_path_raises(path):
    known = os.path.isfile(path) if "\0" not in path and path.isascii() else False
    assert last_message(path) is None or known
