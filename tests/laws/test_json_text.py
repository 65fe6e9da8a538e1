"""Our own reader of JSON agrees with the `json` package, whatever it is given."""

import json

from hypothesis import given
from hypothesis import strategies as st

from notyet.light import dumps, loads, loads_strictly

WILD = st.text(st.characters(), max_size=30)  # with halves of characters
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WILD,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WILD, inner, max_size=4),
)


def outcome(read, text):
    try:
        return read(text)
    except ValueError:
        return ValueError


@given(JSON.map(json.dumps) | WILD | st.text('{}[]",:0123456789.eE+- \n\tnulltrefas\\u\ud800'))
def test_json_is_read_as_the_json_package_reads_it(text):
    def expected(strict):
        def refuse(name):
            raise ValueError(name)

        return outcome(lambda t: json.loads(t, strict=strict, parse_constant=refuse), text)

    # Compared as text, in which 1, 1.0 and True differ.
    assert repr(outcome(loads, text)) == repr(expected(strict=False))
    assert repr(outcome(loads_strictly, text)) == repr(expected(strict=True))


FINITE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | WILD,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WILD, inner, max_size=4),
)


@given(FINITE)
def test_what_is_written_as_json_is_read_as_it_was(value):
    text = dumps(value)
    assert text == json.dumps(value)
    assert repr(loads(text)) == repr(loads_strictly(text)) == repr(value)
