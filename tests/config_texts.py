"""Random TOML, JSON and YAML texts whose every position is known, because we wrote them here."""

import json

from hypothesis import strategies as st

PLAIN = st.text("abcdefgh_-12", min_size=1, max_size=5)
ODD = st.text("aé😀 .#=\"'[]{},:\t\\x", max_size=6)
KEYS = st.one_of(PLAIN, ODD)
BLANKS = ("", " ", "\t", "  ")


class Pen:
    """Writes a text and knows where it stands."""

    def __init__(self, draw):
        self.draw = draw
        self.parts = []
        self.line = self.column = 1
        self.places = {}

    @property
    def text(self):
        return "".join(self.parts)

    def write(self, text):
        self.parts.append(text)
        breaks = text.count("\n")
        self.line += breaks
        after = len(text) - text.rfind("\n") - 1 if breaks else len(text)
        self.column = after + 1 if breaks else self.column + after

    def mark(self, path):
        self.places[path] = (self.line, self.column)

    def one(self, *choices):
        return self.draw(st.sampled_from(choices))

    def blank(self):
        self.write(self.one(*BLANKS))

    def new_keys(self, strategy=KEYS, most=3):
        return self.draw(st.lists(strategy, max_size=most, unique=True))


@st.composite
def toml_texts(draw):
    """A TOML text, and the place of every key and item in it."""
    pen = Pen(draw)
    end = pen.one("\n", "\r\n")
    _toml_pairs(pen, (), draw(st.integers(0, 2)), end)
    for name in pen.new_keys():
        path = (f"t{name}",)
        if pen.one("table", "array") == "table":
            _toml_header(pen, path, "[", end)
            pen.places[path] = pen.places.pop("header")
            _toml_pairs(pen, path, 2, end)
            continue
        for number in range(draw(st.integers(1, 3))):
            _toml_header(pen, path, "[[", end)
            place = pen.places.pop("header")
            pen.places.setdefault(path, place)
            pen.places[*path, number] = place
            _toml_pairs(pen, (*path, number), 1, end)
            if pen.one("no", "yes") == "yes":
                inner = (*path, number, "sub")
                _toml_header(pen, (*path, "sub"), "[", end)
                pen.places[inner] = pen.places.pop("header")
                _toml_pairs(pen, inner, 1, end)
    return pen.text, pen.places


def _toml_header(pen, names, bracket, end):
    _toml_noise(pen, end)
    pen.write(bracket)
    for number, name in enumerate(names):
        if number:
            pen.write(".")
        pen.blank()
        pen.mark("header")
        _toml_key(pen, name)
        pen.blank()
    pen.write("]" * len(bracket))
    _toml_end(pen, end)


def _toml_noise(pen, end):
    pen.write(pen.one("", end, f"# [not.a.table] é{end}", f"\t{end}"))
    pen.blank()


def _toml_end(pen, end):
    pen.blank()
    pen.write(pen.one("", "# a = 1 ]") + end)


def _toml_key(pen, key):
    bare = key and all(c in "abcdefghijklmnopqrstuvwxyz_-0123456789" for c in key)
    if bare and pen.one(0, 1, 2):
        pen.write(key)
    elif "'" in key or "\t" in key or pen.one(0, 1):
        pen.write(json.dumps(key, ensure_ascii=False))
    else:
        pen.write(f"'{key}'")


def _toml_pairs(pen, path, depth, end):
    for key in pen.new_keys():
        _toml_noise(pen, end)
        inner = (*path, key)
        pen.mark(inner)
        _toml_key(pen, key)
        if pen.one("simple", "simple", "dotted") == "dotted":
            pen.write(pen.one(".", " . "))
            inner = (*inner, "dot")
            pen.mark(inner)
            pen.write("dot")
        pen.write(pen.one("=", " = ", "\t="))
        pen.blank()
        _toml_value(pen, inner, depth, end)
        _toml_end(pen, end)


def _toml_value(pen, path, depth, end):
    kind = pen.one("scalar", "scalar", *(("array", "inline") if depth else ()))
    if kind == "array":
        pen.write("[")
        size = pen.draw(st.integers(0, 3))
        for number in range(size):
            pen.write(pen.one("", " ", f" # ] é{end}", end))
            pen.mark((*path, number))
            _toml_value(pen, (*path, number), depth - 1, end)
            pen.write(pen.one("", " ", end))
            if number < size - 1:
                pen.write(",")
        pen.write(pen.one("", ",", f",{end}") if size else pen.one("", end))
        pen.write("]")
    elif kind == "inline":
        pen.write("{")
        for number, key in enumerate(pen.new_keys()):
            pen.write("," if number else "")
            pen.blank()
            pen.mark((*path, key))
            _toml_key(pen, key)
            pen.write(" = ")
            _toml_value(pen, (*path, key), 0, end)
            pen.blank()
        pen.write("}")
    else:
        pen.write(pen.one(*_TOML_SCALARS).replace("\n", end))


_TOML_SCALARS = (
    "1",
    "-0.5e3",
    "true",
    "nan",
    "1979-05-27 07:32:00",
    "07:32:00",
    '""',
    '"a \\" # ] = é"',
    "'\\'",
    "''",
    '"""\nb = 1\n[c]\n\\""" x ""\\\n  """',
    '"""a"""""',
    '""""""',
    "'''\n]]]'\n''x'''''",
    "''''''",
)


@st.composite
def json_texts(draw):
    """A JSON text, and the place of every key and item in it."""
    pen = Pen(draw)
    _json_value(pen, (), 3)
    return pen.text, pen.places


def _json_blank(pen):
    pen.write(pen.one("", "", " ", "\n", "\r\n", "\t", "\n  "))


def _json_value(pen, path, depth):
    _json_blank(pen)
    kind = pen.one("table", "list", "scalar") if depth else "scalar"
    if path and isinstance(path[-1], int):
        pen.mark(path)
    if kind == "scalar":
        pen.write(json.dumps(pen.one(1, -2.5, True, None, "é\n\\", "😀", ""), ensure_ascii=False))
    elif kind == "list":
        pen.write("[")
        for number in range(draw_size(pen)):
            pen.write("," if number else "")
            _json_value(pen, (*path, number), depth - 1)
        _json_blank(pen)
        pen.write("]")
    else:
        pen.write("{")
        for number, key in enumerate(pen.new_keys()):
            pen.write("," if number else "")
            _json_blank(pen)
            pen.mark((*path, key))
            pen.write(json.dumps(key, ensure_ascii=pen.one(True, False)))
            _json_blank(pen)
            pen.write(":")
            _json_value(pen, (*path, key), depth - 1)
            _json_blank(pen)
        _json_blank(pen)
        pen.write("}")
    _json_blank(pen)


def draw_size(pen):
    return pen.draw(st.integers(0, 3))
