"""What comes on a stream is bounded, also where it seems to be the end of a frame."""

import pytest

from notyet.run.output import Framed

MARK = b"0123456789abcdef"


@pytest.mark.rule("E4")
def test_what_begins_like_an_ending_and_goes_on_is_output():
    stream = Framed(MARK)
    stream.add(MARK + b"\nsaid\n" + MARK + b" ")
    for _ in range(2000):
        stream.add(bytes(10_000))
    assert len(stream.text()) < 1_000_000
    assert stream.text().startswith(b"said\n" + MARK + b" \0")
    stream.add(b"last\n" + MARK + b" 7\n" + MARK + b"\n")
    assert (stream.is_complete, stream.told) == (True, b"7")
    assert stream.text().endswith(b"\0last")
    assert stream.left_out > 19_000_000
