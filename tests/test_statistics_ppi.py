"""Corrected figures against numpy and against their definitions."""

import numpy as np
import pytest

from socratic_bench.statistics.ppi import Judged, Labelled, Sample, correct, label_estimate

N_CLUSTERS, N_OF_EACH = 120, 3


def sampled(n_labelled, noise, seed=5, shift=0.0):
    """Judged turns of 120 scenarios, with labels of all turns of some of them."""
    dice = np.random.default_rng(seed)
    true = shift + dice.normal(6, 1, (N_CLUSTERS, 1)) + dice.normal(0, 1, (N_CLUSTERS, N_OF_EACH))
    judge = true + 0.7 + dice.normal(0, noise, true.shape)
    judged = [Judged(c, value) for c, row in enumerate(judge.tolist()) for value in row]
    labelled = [
        Labelled(c, float(judge[c, t]), float(true[c, t]))
        for c in range(n_labelled)
        for t in range(N_OF_EACH)
    ]
    return Sample(judged, labelled), judge, true


def influences(values, n):
    parts = np.zeros(N_CLUSTERS)
    parts[:n] = (values[:n] - values[:n].mean()).sum(axis=1) / (n * N_OF_EACH)
    return parts


def shrunken(fixed, moved, freedom):
    """The lambda of the least error, times 1 - 1 / t², t being its own test."""
    slope = -(fixed @ moved) / (moved @ moved)
    rest = fixed + slope * moved
    squared_t = slope**2 * (moved @ moved) / (rest @ rest / freedom)
    return min(1.0, max(0.0, slope)) * max(0.0, 1 - 1 / squared_t)


@pytest.mark.parametrize(("n", "noise"), [(12, 0.5), (12, 3.0), (90, 1.5)])
def test_value_lambda_and_error_are_those_of_the_definition(n, noise):
    sample, judge, true = sampled(n, noise)
    fixed = influences(true, n)
    moved = influences(judge, N_CLUSTERS) - influences(judge, n)
    tuning = shrunken(fixed, moved, n - 1)
    others = [shrunken(np.delete(fixed, c), np.delete(moved, c), n - 2) for c in range(N_CLUSTERS)]
    error = np.sqrt(((fixed + others * moved) ** 2).sum() * n / (n - 1))
    alone = np.sqrt((fixed**2).sum() * n / (n - 1))

    estimate = correct(sample)
    assert estimate.tuning == pytest.approx(tuning)
    value = true[:n].mean() + tuning * (judge.mean() - judge[:n].mean())
    assert estimate.value == pytest.approx(value)
    assert estimate.error == pytest.approx(min(error, alone))
    assert estimate.n_clusters == n


def test_a_worthless_judge_leaves_what_labels_alone_give():
    sample, _, _ = sampled(12, 0.0)
    worthless = [Labelled(t.cluster, (t.cluster * 7) % 5, t.label) for t in sample.labelled]
    judged = [Judged(t.cluster, (t.cluster * 7) % 5) for t in sample.judged]
    estimate, alone = correct(Sample(judged, worthless)), label_estimate(worthless)
    assert estimate.error <= alone.error
    assert estimate.tuning < 0.3


def test_a_judge_that_always_says_the_same_has_no_weight():
    sample, _, _ = sampled(12, 0.0)
    judged = [Judged(turn.cluster, 5.0) for turn in sample.judged]
    labelled = [Labelled(turn.cluster, 5.0, turn.label) for turn in sample.labelled]
    estimate, alone = correct(Sample(judged, labelled)), label_estimate(labelled)
    assert (estimate.tuning, estimate.value) == (0, alone.value)
    assert estimate.error == pytest.approx(alone.error)


def test_a_difference_is_of_the_scenarios_of_both():
    """Two models that people score alike in each scenario differ by a constant, without error."""
    (first, *_), (second, *_) = sampled(20, 0.0), sampled(20, 0.0, shift=-1.0)
    estimate = correct(first, second)
    assert estimate.value == pytest.approx(1)
    assert (estimate.error, estimate.n_clusters) == (0, 20)
