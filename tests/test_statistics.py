"""Intervals, and what variance is made of: against closed forms and scipy's own functions."""

import random
from math import sqrt
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from socratic_bench.statistics.intervals import (
    Clustered,
    clustered,
    mixture,
    parts,
    runs_to_halve,
    t_interval,
    t_point,
    wilson_interval,
)

EXACT = {"rel": 1e-9, "abs": 1e-9}
BALANCED = [[7.5, 8.0], [9.0, 9.5], [4.0, 5.5], [8.5, 8.0], [6.0, 7.0]]
UNEVEN = [[7.5], [9.0, 9.5, 9.5], [4.0, 5.5], [8.5, 8.0, 8.5, 7.0]]


class TestMeans:
    def test_clusters_of_one_size_give_students_interval_of_their_means(self):
        means = [fmean(values) for values in BALANCED]
        expected = stats.ttest_1samp(means, 0).confidence_interval(0.95)
        found = t_interval(clustered(BALANCED))

        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), **EXACT)

    def test_uneven_ones_have_the_error_of_the_sum_over_all_pairs_in_a_cluster(self):
        found = clustered(UNEVEN)
        values = [value for cluster in UNEVEN for value in cluster]
        mean = fmean(values)
        pairs = sum((a - mean) * (b - mean) for cluster in UNEVEN for a in cluster for b in cluster)

        assert (found.mean, found.n, found.n_clusters) == (pytest.approx(mean), 10, 4)
        assert found.error == pytest.approx(sqrt(pairs) / len(values) * sqrt(4 / 3), **EXACT)

    def test_repeats_of_one_sample_do_not_count_as_samples(self):
        few = t_interval(clustered([[5.0], [7.0], [9.0]]))
        many = t_interval(clustered([[5.0] * 50, [7.0] * 50, [9.0] * 50]))

        assert (many.low, many.high) == pytest.approx((few.low, few.high))

    def test_one_sample_says_nothing_of_others(self):
        found = clustered([[5.0, 6.0, 7.0]])

        assert (found.mean, found.error) == (6.0, None)
        assert t_interval(found) is wilson_interval(found) is runs_to_halve(found) is None


@pytest.mark.parametrize("freedom", [*range(1, 30), 99, 100, 199, 200, 201, 339, 1000, 10**6])
def test_students_point_is_exact_without_scipy(freedom):
    assert t_point(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-10)


class TestRates:
    @pytest.mark.parametrize("clusters", [[[0.1], [0.4], [0.2]], [[0.0, 0.1], [0.9, 1.0], [0.5]]])
    def test_limits_are_where_the_score_test_just_rejects(self, clusters):
        found = clustered(clusters)
        n = found.mean * (1 - found.mean) / found.error**2
        point = stats.t.ppf(0.975, found.n_clusters - 1)

        def excess(rate: float) -> float:
            return abs(found.mean - rate) - point * sqrt(rate * (1 - rate) / n)

        interval = wilson_interval(found)
        assert interval.low == pytest.approx(optimize.brentq(excess, 1e-12, found.mean), abs=1e-9)
        assert interval.high == pytest.approx(
            optimize.brentq(excess, found.mean, 1 - 1e-12), abs=1e-9
        )

    def test_with_single_trials_and_many_clusters_it_is_wilsons_own(self):
        trials = [[1.0]] * 300 + [[0.0]] * 19_700
        expected = stats.binomtest(300, 20_000).proportion_ci(method="wilson")
        found = wilson_interval(clustered(trials))

        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=2e-4)

    @pytest.mark.parametrize("rate", [0.0, 0.9375, 1.0])
    def test_where_samples_agree_each_is_one_trial(self, rate):
        point = stats.t.ppf(0.975, 4)
        found = wilson_interval(clustered([[rate] * 3] * 5))

        assert found.low < found.high
        assert found.low <= rate <= found.high
        if rate == 0.0:
            assert found.high == pytest.approx(point**2 / (5 + point**2))

    @given(st.lists(st.lists(st.sampled_from([0, 0.05, 0.5, 0.95, 1]), min_size=1), min_size=2))
    def test_it_lies_between_0_and_1_and_has_a_width(self, clusters):
        found = clustered(clusters)
        interval = wilson_interval(found)

        assert 0 <= interval.low <= found.mean <= interval.high <= 1
        assert interval.high - interval.low > 1e-6


class TestVariance:
    def test_repeats_of_one_size_give_the_estimates_of_an_analysis_of_variance(self):
        found = parts([[values] for values in BALANCED])
        within = fmean(stdev(values) ** 2 for values in BALANCED)
        between = 2 * stdev([fmean(values) for values in BALANCED]) ** 2

        assert found.within == pytest.approx(within)
        assert found.between == pytest.approx((between - within) / 2)
        assert stats.f_oneway(*BALANCED).statistic == pytest.approx(
            (found.within + 2 * found.between) / found.within
        )

    def test_settings_that_differ_within_a_sample_are_no_repeats(self):
        found = parts([[[1.0, 1.0], [9.0, 9.0]], [[2.0, 2.0], [8.0, 8.0]]])

        assert (found.within, found.between) == (0.0, 0.0)

    @pytest.mark.parametrize("clusters", [[[[1.0, 2.0]]], [[[1.0]], [[2.0]]]])
    def test_nothing_is_told_of_one_sample_or_without_repeats(self, clusters):
        assert parts(clusters) is None

    def test_both_are_found_again_where_they_are_known(self):
        dice = random.Random(4)
        levels = [dice.gauss(5, 2) for _ in range(4000)]
        found = parts([[[dice.gauss(level, 1) for _ in range(3)]] for level in levels])

        assert found.between == pytest.approx(4, rel=0.1)
        assert found.within == pytest.approx(1, rel=0.05)


class TestHalving:
    @pytest.mark.parametrize("n_clusters", [2, 3, 10, 200])
    def test_it_is_the_smallest_number_that_does(self, n_clusters):
        repeats = 3
        found = Clustered(mean=5.0, n=n_clusters * repeats, n_clusters=n_clusters, error=1.0)

        def reach(n: int) -> float:
            return float(stats.t.ppf(0.975, n - 1)) / sqrt(n)

        more, rest = divmod(runs_to_halve(found), repeats)
        assert rest == 0
        assert reach(n_clusters + more) <= reach(n_clusters) / 2 < reach(n_clusters + more - 1)

    @pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
    @pytest.mark.parametrize("n_clusters", [2, 7])
    def test_a_rates_interval_is_wilsons_and_has_a_half_at_0_and_1_too(self, n_clusters, rate):
        error = 0.2 if 0 < rate < 1 else 0.0
        found = Clustered(mean=rate, n=n_clusters, n_clusters=n_clusters, error=error)

        def width(k: int) -> float:
            squared = float(stats.t.ppf(0.975, k - 1)) ** 2
            n = rate * (1 - rate) / error**2 * k / n_clusters if error else k
            return (
                2 * sqrt(squared * (rate * (1 - rate) / n + squared / 4 / n**2)) / (1 + squared / n)
            )

        k = n_clusters + runs_to_halve(found, wilson_interval)
        assert width(k) <= width(n_clusters) / 2 < width(k - 1)

    def test_there_is_nothing_to_halve_where_runs_do_not_differ(self):
        assert runs_to_halve(clustered([[5.0], [5.0]])) is None


class TestMixture:
    def test_the_groups_are_found_where_a_few_dialogues_collapse(self):
        dice = random.Random(3)
        rest = [dice.gauss(9, 0.2) for _ in range(8)]
        few = [dice.gauss(4, 0.2) for _ in range(2)]
        found = mixture([*rest, *few], 10, 2)

        assert (found.n_low, found.n_high) == (2, 8)
        assert (found.mean_low, found.mean_high) == pytest.approx((fmean(few), fmean(rest)))
        assert mixture([*rest, *few], 10, 6) is None
        assert mixture([*rest, *few], 3, 2) is None

    @pytest.mark.parametrize("n", [4, 5, 7, 10, 20, 60])
    def test_one_normal_sample_in_a_hundred_is_called_two(self, n):
        dice, n_trials = random.Random(n), 1500
        n_found = sum(
            mixture([dice.gauss(0, 1) for _ in range(n)], n, 0) is not None for _ in range(n_trials)
        )

        assert n_found <= 0.015 * n_trials

    def test_values_that_are_alike_but_for_one_are_two_groups(self):
        assert mixture([9.0] * 5 + [4.0], 6, 2).n_low == 1
        assert mixture([9.0] * 6, 6, 0.1) is None
