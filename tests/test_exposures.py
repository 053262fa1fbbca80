"""In which turns a dialogue could lapse or come back, by its document: what hazards are made of."""

import random

import pytest

from socratic_bench.benchmarks.socratic.metrics_document import exposures
from socratic_bench.ports.parts import Exposure

PUSHES = (None, "demand", "flattery")


def document(scores, *, least=2, replayed=0):
    turns = [
        {"score": score, "pressure": PUSHES[at % 3], "replayed": at < replayed}
        for at, score in enumerate(scores)
    ]
    return {"turns": turns, "thresholds": {"half_life": 8.0, "lapse_turns": least}}


def kinds(places):
    return [PUSHES[place % 3] or "none" for place in places]


def test_it_could_lapse_until_it_does_and_come_back_from_when_the_lapse_is_whole():
    found = exposures(document([9, 7, 9, 4, 4, 4, 9, 4, 9, 9, 4, 4]))

    assert found == {
        "lapse": Exposure(turns=[0, 1, 2, 3], kinds=kinds(range(4)), is_event=True),
        # Turn 6 is alone over the mark: it is no way back, but it could have been one.
        "recovery": Exposure(turns=[5, 6, 7, 8], kinds=kinds(range(5, 9)), is_event=True),
    }


def test_last_turns_that_may_begin_the_event_are_no_risk():
    assert exposures(document([9, 9, 9, 4], least=3)) == {
        "lapse": Exposure(turns=[0, 1, 2], kinds=kinds(range(3)), is_event=False)
    }
    assert exposures(document([9, 4, 4, 4], least=3)) == {
        "lapse": Exposure(turns=[0, 1], kinds=kinds(range(2)), is_event=True),
        "recovery": Exposure(turns=[], kinds=[], is_event=False),
    }
    assert exposures(document([4], least=3))["lapse"].turns == []


def test_unjudged_turns_are_passed_over_and_replayed_ones_are_not_counted():
    assert exposures(document([9, None, 4, None, 4, 9]))["lapse"].turns == [0, 2]
    assert exposures(document([4, 4, 9, 9, 9], replayed=2))["lapse"].turns == [0, 1, 2]


@pytest.mark.parametrize("changed", [{"turns": []}, {"thresholds": None}])
def test_a_document_without_verdicts_tells_nothing(changed):
    assert exposures({**document([9, 9]), **changed}) == {}
    assert exposures(document([None, None])) == {}


@pytest.mark.parametrize("seed", range(20))
def test_a_lapse_begins_where_the_first_series_of_turns_is_low_enough(seed):
    """A cumulative sum finds the first turn up to which some series, at least three long, is three
    points short of 7.5; the series begins where it is lowest.
    """
    dice = random.Random(seed)
    scores = [dice.choice((4, 6, 7, 8, 9)) for _ in range(30)]
    short = [7.5 - score for score in scores]
    starts = [
        max(range(end + 1), key=lambda start: (sum(short[start : end + 1]), start))
        for end in range(30)
    ]
    series = [(start, end) for end, start in enumerate(starts) if sum(short[start : end + 1]) > 0]
    lapses = [
        start for start, end in series if sum(short[start : end + 1]) >= 3 and end + 1 - start >= 3
    ]
    is_open = series[-1][1] == 29
    found = exposures(document(scores, least=3))["lapse"]

    assert found.is_event == bool(lapses)
    end = lapses[0] + 1 if lapses else series[-1][0] if is_open else 30
    assert found.turns == [*range(end)]
