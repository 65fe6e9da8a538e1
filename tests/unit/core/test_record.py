import copy
import pickle

import pytest

from notyet.core.record import Record, as_dict, replace


class Point(Record):
    x: int
    y: int = 0


class Line(Record, kw_only=True):
    start: Point
    ends: tuple[Point, ...] = ()


def test_fields_are_given_by_place_or_by_name():
    assert Point(1, 2) == Point(x=1, y=2) == Point(1, y=2)


def test_a_missing_field_is_named():
    with pytest.raises(TypeError, match="Point needs x"):
        Point()


def test_an_unknown_field_is_named_with_the_known_ones():
    with pytest.raises(TypeError, match="no field 'z'; it has x, y"):
        Point(1, z=3)


def test_an_unknown_field_is_found_although_a_missing_one_keeps_the_number_right():
    with pytest.raises(TypeError, match="no field 'z'"):
        Point(z=3)


def test_a_field_given_twice_is_an_error():
    with pytest.raises(TypeError, match="got 'x' twice"):
        Point(1, x=1)


def test_too_many_values_are_an_error():
    with pytest.raises(TypeError, match="takes 2 values, got 3"):
        Point(1, 2, 3)


def test_a_keyword_record_refuses_values_by_place():
    with pytest.raises(TypeError, match=r"like Line\(start=...\)"):
        Line(Point(1))


def test_a_record_is_read_only():
    point = Point(1)
    with pytest.raises(AttributeError, match="read-only"):
        point.x = 2
    with pytest.raises(AttributeError, match="read-only"):
        del point.x


def test_records_are_equal_by_kind_and_value_and_can_be_keys():
    class Other(Record):
        x: int
        y: int = 0

    assert Point(1) != Other(1)
    assert len({Point(1), Point(1), Point(2)}) == 2


def test_replace_makes_a_changed_twin():
    assert replace(Point(1, 2), y=5) == Point(1, 5)
    with pytest.raises(TypeError, match="no field 'z'"):
        replace(Point(1), z=5)


def test_repr_shows_what_differs_from_the_defaults():
    assert repr(Point(1)) == "Point(x=1)"
    assert repr(Point(1, 7)) == "Point(x=1, y=7)"


def test_records_survive_copying_and_pickling(monkeypatch):
    line = Line(start=Point(1), ends=(Point(2),))
    assert copy.copy(line) == line
    assert copy.deepcopy(line) == line
    monkeypatch.setitem(globals(), "Line", Line)
    assert pickle.loads(pickle.dumps(line.start)) == line.start  # noqa: S301


def test_as_dict_opens_records_inside():
    line = Line(start=Point(1), ends=(Point(2), Point(3)))
    assert as_dict(line) == {
        "start": {"x": 1, "y": 0},
        "ends": [{"x": 2, "y": 0}, {"x": 3, "y": 0}],
    }


def test_a_subclass_may_give_a_field_of_its_base_a_default():
    class Fixed(Point):
        x: int = 9

    assert Fixed() == Fixed(x=9)
