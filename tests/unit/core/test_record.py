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


WRONG = {
    "a missing field": (Point, "missing 1 required positional argument: 'x'"),
    "an unknown field": (lambda: Point(1, z=3), "unexpected keyword argument 'z'"),
    "an unknown one in a missing one's place": (lambda: Point(z=3), "unexpected keyword .* 'z'"),
    "one given twice": (lambda: Point(1, x=1), "multiple values for argument 'x'"),
    "too many values": (lambda: Point(1, 2, 3), "takes from 2 to 3 positional arguments"),
    "values by place for names": (lambda: Line(Point(1)), "takes 1 positional argument but 2"),
    "no name at all": (Line, "missing 1 required keyword-only argument: 'start'"),
}


@pytest.mark.parametrize(("make", "words"), WRONG.values(), ids=WRONG)
def test_wrong_fields_are_refused_in_pythons_own_words_at_first_and_later(make, words):
    for _ in range(3):
        with pytest.raises(TypeError, match=words):
            make()


def test_a_record_that_is_made_often_is_still_the_same():
    class Often(Record):
        x: int
        y: tuple[int, ...] = (1,)

        def _validate(self):
            if self.x < 0:
                raise ValueError("negative")

    made = [Often(3) for _ in range(200)]
    assert all(each == made[0] and each.y is Often.y for each in made)
    assert repr(made[-1]) == "Often(x=3)"
    assert Often(x=1, y=(2,)) == Often(1, (2,))
    with pytest.raises(ValueError, match="negative"):
        Often(-1)


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
    with pytest.raises(TypeError, match="Point has no field 'z'"):
        replace(Point(1), z=5)


def test_repr_shows_what_differs_from_the_defaults():
    assert repr(Point(1)) == "Point(x=1)"
    assert repr(Point(1, 7)) == "Point(x=1, y=7)"


def test_records_survive_copying_and_pickling(monkeypatch):
    line = Line(start=Point(1), ends=(Point(2),))
    assert copy.copy(line) == line
    assert copy.deepcopy(line) == line
    monkeypatch.setitem(globals(), "Line", Line)
    assert pickle.loads(pickle.dumps(line.start)) == line.start


def test_as_dict_opens_records_inside():
    line = Line(start=Point(1), ends=(Point(2), Point(3)))
    assert as_dict(line) == {
        "start": {"x": 1, "y": 0},
        "ends": [{"x": 2, "y": 0}, {"x": 3, "y": 0}],
    }


def test_a_subclass_may_give_a_field_of_its_base_a_default():
    class Fixed(Point):
        x: int = 9

    for _ in range(100):
        Point(1)
    assert Fixed() == Fixed(x=9)
