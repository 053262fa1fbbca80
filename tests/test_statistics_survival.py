"""Times until an event that is not always seen: against scipy's curve, and draws one by one."""

import random
from math import inf, isnan

import pytest
from scipy import integrate, stats

from socratic_bench.statistics.intervals import clustered, wilson_interval
from socratic_bench.statistics.survival import (
    Limits,
    Time,
    curve,
    hazard_interval,
    in_fixed_order,
    limits_reason,
    median,
    restricted_mean,
    survival_limits,
)


def some(seed: int, n_clusters: int, share: float = 0.6) -> list[list[Time]]:
    dice = random.Random(seed)
    return [
        [Time(float(dice.randrange(12)), is_event=dice.random() < share) for _ in range(3)]
        for _ in range(n_clusters)
    ]


def flat(clusters):
    return [time for times in clusters for time in times]


def scipys(times):
    events, others = ([t.at for t in times if t.is_event is kind] for kind in (True, False))
    return stats.ecdf(stats.CensoredData(uncensored=events, right=others)).sf


@pytest.mark.parametrize("seed", range(5))
def test_the_curve_is_scipys(seed):
    times = flat(some(seed, 10))
    found, theirs = curve(times), scipys(times)

    assert [one.at for one in found] == sorted({t.at for t in times if t.is_event})
    assert [one.share for one in found] == pytest.approx(theirs.evaluate([s.at for s in found]))


@pytest.mark.parametrize("seed", range(5))
def test_the_restricted_mean_is_the_area_below_it(seed):
    times = flat(some(seed, 10))
    theirs = scipys(times)
    area, _ = integrate.quad(theirs.evaluate, 0, 9.5, points=range(10), limit=200)

    assert restricted_mean(curve(times), 9.5) == pytest.approx(area)


def test_without_censoring_the_restricted_mean_is_the_mean():
    times = [Time(at, is_event=True) for at in (0.0, 2.0, 7.0, 9.0)]

    assert restricted_mean(curve(times), 9.0) == pytest.approx(18 / 4)
    assert median(curve(times)) == 2.0


def test_a_curve_that_reaches_zero_or_never_falls_has_its_figures():
    gone = [[Time(2.0, is_event=True)]] * 3 + [[Time(5.0, is_event=True)]] * 3
    never = [[Time(8.0, is_event=False)] * 2] * 6

    assert curve(flat(gone))[-1].share == 0
    # scipy's log-log band has no limits there, and whoever takes them raw covers nothing.
    with pytest.warns(RuntimeWarning, match="undefined"):
        theirs = scipys(flat(gone)).confidence_interval(method="log-log")
    assert isnan(theirs.low.probabilities[-1])
    assert survival_limits(gone, 5.0).median == Limits(2.0, 5.0)
    assert (median(curve(flat(never))), restricted_mean(curve(flat(never)), 8.0)) == (None, 8.0)
    unknown = survival_limits(never, 8.0)
    assert unknown.median == unknown.restricted_mean == Limits(None, None)


def test_a_half_that_many_draws_do_not_reach_has_no_upper_limit():
    clusters = [[Time(3.0, is_event=True)] * 3] * 3 + [[Time(8.0, is_event=False)] * 3] * 3
    found = survival_limits(clusters, 8.0)

    assert found.median == Limits(3.0, None)
    assert 3.0 <= found.restricted_mean.low < 5.5 < found.restricted_mean.high <= 8.0


def test_fewer_than_six_samples_have_no_limits():
    clusters = some(1, 6)

    assert survival_limits(clusters[:5], 11.0).median == Limits(None, None)
    assert limits_reason(clusters[:5]) == "too_few_scenarios"
    assert limits_reason([[Time(8.0, is_event=False)]] * 6) == "no_event"
    assert limits_reason(clusters) is None


@pytest.mark.parametrize(("n_clusters", "n_turns"), [(4, 20), (4, 1), (10, 12)])
def test_a_rate_of_no_events_leaves_the_same_limits_as_the_time_without_one(n_clusters, n_turns):
    """With a hazard at the limit as many runs would have no event as the curve's limit says."""
    rate = hazard_interval([[0.0] * n_turns * 2] * n_clusters, 2 * n_clusters)
    share = wilson_interval(clustered([[1.0] * 2] * n_clusters))

    assert rate.low == 0
    assert (1 - rate.high) ** n_turns == pytest.approx(share.low)


def test_a_rate_that_is_the_same_everywhere_is_within_its_limits():
    always_in_the_last_of_six = hazard_interval([[0, 0, 0, 0, 0, 1.0]] * 4, 4)

    assert always_in_the_last_of_six.low < 1 / 6 < always_in_the_last_of_six.high


@pytest.mark.parametrize(("seed", "share"), [(1, 0.9), (2, 0.6), (3, 0.3)])
def test_limits_are_percentiles_of_figures_of_whole_clusters_drawn_anew(seed, share):
    clusters = some(seed, 7, share)
    dice = random.Random(1)
    # One cluster less than there are.
    chosen = dice.choices(range(7), k=6 * 1999)
    drawn = [flat(clusters[n] for n in chosen[at : at + 6]) for at in range(0, len(chosen), 6)]
    curves = [curve(times) for times in drawn]

    def limits(values):
        ordered = sorted(inf if value is None else value for value in values)
        # Beyond Student's point of six degrees of freedom lie .72 % of the normal distribution:
        # the 14th of 1,999 from each end.
        assert round(2000 * stats.norm.cdf(-stats.t.ppf(0.975, 6))) == 14
        low, high = ordered[13], ordered[-14]
        return (low, None if high == inf else high)

    found = survival_limits(clusters, 11.0)
    assert (found.median.low, found.median.high) == limits(map(median, curves))
    assert (found.restricted_mean.low, found.restricted_mean.high) == pytest.approx(
        limits(restricted_mean(one, 11.0) for one in curves)
    )


def test_draws_of_the_same_clusters_do_not_depend_on_their_order():
    clusters = some(2, 7, 0.6)
    found = survival_limits(in_fixed_order(clusters), 11.0)
    dice = random.Random(4)

    for _ in range(5):
        dice.shuffle(clusters)
        shuffled = [dice.sample(times, len(times)) for times in clusters]
        assert survival_limits(in_fixed_order(shuffled), 11.0) == found
