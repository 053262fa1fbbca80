"""The quick dataclass does what the standard one does."""

import copy
import dataclasses
import inspect
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


def _line(decorator):
    @decorator(frozen=True, slots=True)
    class Line:
        start: int
        end: int = 9
        marks: list[int] = field(default_factory=list)
        label: str = field(default="plain", kw_only=True)

    return Line


ARGUMENTS = {
    "by place": ((1, 2), {}),
    "by name": ((), {"end": 2, "start": 1}),
    "both": ((1,), {"label": "bold", "marks": [3]}),
    "what can be left out": ((1,), {}),
    "nothing": ((), {}),
    "one is missing": ((), {"end": 2}),
    "an unknown one": ((1,), {"colour": "red"}),
    "one twice": ((1,), {"start": 1}),
    "too many": ((1, 2, [], "bold"), {}),
    "too many, and one is missing by name": ((1, 2, [], 4), {"label": "bold"}),
}


@pytest.mark.parametrize(("values_given", "named"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_takes_and_refuses_the_arguments_that_the_standard_one_does(values_given, named):
    def made(decorator):
        try:
            return asdict(_line(decorator)(*values_given, **named))
        except TypeError:
            return "refused"

    assert made(values.dataclass) == made(dataclasses.dataclass)


@pytest.mark.parametrize(
    ("values_given", "named", "told"),
    [
        ((), {"end": 2}, "missing: start"),
        ((1,), {"colour": "red"}, "unknown: colour"),
        ((1,), {"start": 1}, "given twice: start"),
        ((1, 2, [], "bold"), {}, "too many: 'bold'"),
    ],
)
def test_says_which_argument_is_wrong(values_given, named, told):
    with pytest.raises(TypeError, match=told):
        _line(values.dataclass)(*values_given, **named)


@pytest.mark.parametrize("shape", [_point, _line])
def test_shows_the_constructor_as_the_standard_one_does(shape):
    def shown(decorator):
        return str(inspect.signature(shape(decorator))).removesuffix(" -> None")

    assert shown(values.dataclass) == shown(dataclasses.dataclass)


def test_each_instance_has_defaults_of_its_own():
    line = _line(values.dataclass)
    one, other = line(1), line(1)
    one.marks.append(2)

    assert other.marks == []


def test_a_class_may_check_what_it_was_given():
    @values.dataclass(frozen=True, slots=True)
    class Even:
        n: int

        def __post_init__(self) -> None:
            if self.n % 2:
                raise ValueError(self.n)

    assert Even(2).n == 2
    with pytest.raises(ValueError, match="3"):
        Even(3)
