"""The quick dataclass does what the standard one does."""

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, asdict, field, replace

import pytest

from socratic_bench import values
from socratic_bench.types import Text

OPTIONS = {"frozen": True, "slots": True, "kw_only": True}


def _point(decorator):
    @decorator(**OPTIONS)
    class Point:
        x: int
        y: tuple[int, ...] = ()
        note: str = field(default="", compare=False, repr=False)

        @property
        def double(self):
            return self.x * 2

    return Point


@pytest.fixture(params=[dataclasses.dataclass, values.dataclass], ids=["standard", "quick"])
def point(request):
    return _point(request.param)


def test_equal_by_what_is_compared(point):
    one, same, other = point(x=1, note="a"), point(x=1, note="b"), point(x=2)

    assert one == same
    assert one != other
    assert one != (1, ())
    assert hash(one) == hash(same)
    assert len({one, same, other}) == 2


def test_never_equal_to_another_class_of_the_same_shape():
    assert _point(values.dataclass)(x=1) != _point(values.dataclass)(x=1)


def test_nothing_can_be_changed(point):
    one = point(x=1)

    for change in (
        lambda: setattr(one, "x", 2),
        lambda: setattr(one, "z", 2),
        lambda: delattr(one, "x"),
    ):
        with pytest.raises((FrozenInstanceError, TypeError)):
            change()
    assert one.x == 1


def test_representation(point):
    assert repr(point(x=1, y=(2,), note="no")).endswith(".Point(x=1, y=(2,))")


def test_the_tools_of_the_standard_library(point):
    one = point(x=1)

    assert asdict(replace(one, x=3)) == {"x": 3, "y": (), "note": ""}
    assert copy.deepcopy(one) == one
    assert one.double == 2
    with pytest.raises(TypeError):
        point(1)


def test_pickle():
    assert pickle.loads(pickle.dumps(Text("a"))) == Text("a")  # noqa: S301 -- our own


def test_what_is_not_frozen_is_the_standard_one():
    @values.dataclass(slots=True)
    class Counter:
        n: int = 0

    counter = Counter()
    counter.n += 1

    assert counter == Counter(n=1)
