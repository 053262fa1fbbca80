"""Corrected figures, held to what numpy makes of the definitions."""

import numpy as np
import pytest

from socratic_bench.statistics.ppi import (
    Judged,
    Labelled,
    Uncorrectable,
    correct_mean,
    correct_rate,
)
from socratic_bench.studies.calibrate.corrections import Values, three_ways

N_CLUSTERS, N_OF_EACH = 200, 3


def sampled(n_labelled, noise, seed=5):
    """Judged turns of 200 dialogues, and labels of all turns of some of them."""
    dice = np.random.default_rng(seed)
    true = dice.normal(6, 1, (N_CLUSTERS, 1)) + dice.normal(0, 1, (N_CLUSTERS, N_OF_EACH))
    judge = true + 0.7 + dice.normal(0, noise, true.shape)
    judged = [Judged(c, value) for c, row in enumerate(judge.tolist()) for value in row]
    labelled = [
        Labelled(c, float(judge[c, t]), float(true[c, t]))
        for c in range(n_labelled)
        for t in range(N_OF_EACH)
    ]
    return judged, labelled, judge, true


def test_lambda_is_1_below_80_labelled_dialogues_and_fitted_from_there_on():
    assert correct_mean(*sampled(79, 2.0)[:2]).tuning == 1
    fitted = correct_mean(*sampled(80, 2.0)[:2]).tuning
    assert 0 < fitted < 1
    assert correct_mean(*sampled(80, 0.01)[:2]).tuning > 0.5


def test_the_fitted_lambda_has_the_least_error():
    judged, labelled, judge, true = sampled(100, 1.5)
    found = correct_mean(judged, labelled)
    of_label = np.zeros(N_CLUSTERS)
    of_label[:100] = (true[:100] - true[:100].mean()).sum(axis=1) / (100 * N_OF_EACH)
    shift = (judge - judge.mean()).sum(axis=1) / judge.size
    shift[:100] -= (judge[:100] - judge[:100].mean()).sum(axis=1) / (100 * N_OF_EACH)
    errors = {
        tuning: np.sqrt(((of_label + tuning * shift) ** 2).sum() * 100 / 99)
        for tuning in np.linspace(0, 1, 1001)
    }
    best = min(errors, key=errors.get)
    assert found.tuning == pytest.approx(best, abs=0.001)
    assert found.error == pytest.approx(errors[best], rel=1e-4)
    mean = true[:100].mean() + found.tuning * (judge.mean() - judge[:100].mean())
    assert found.value == pytest.approx(mean)


def labels_of(table):
    """Twelve dialogues with the same four counts: (the judge's yes, the label's yes) by number."""
    return [
        Labelled(cluster, float(said), float(true))
        for cluster in range(12)
        for (said, true), n in table.items()
        for _ in range(n)
    ]


GOOD = {(1, 1): 9, (0, 1): 1, (1, 0): 2, (0, 0): 8}


@pytest.mark.parametrize(("rate", "value"), [(0.2, 0.0), (0.55, 0.5), (0.9, 1.0)])
def test_a_rate_by_sensitivity_and_specificity(rate, value):
    n_yes = round(100 * rate)
    judged = [Judged(n % 20, float(n < n_yes)) for n in range(100)]
    found = correct_rate(judged, labels_of(GOOD))
    assert found.value == pytest.approx(value)


@pytest.mark.parametrize(
    ("n_yes", "table", "reason"),
    [
        (1, GOOD, "not within 0 and 1"),
        (99, GOOD, "not within 0 and 1"),
        (50, {(1, 1): 5, (0, 1): 5, (1, 0): 5, (0, 0): 5}, "come to no more than 1"),
        (50, {(1, 1): 9, (0, 1): 1}, "All labels say yes"),
        (50, {(1, 0): 1, (0, 0): 9}, "All labels say no"),
    ],
)
def test_what_cannot_be_is_null_with_its_reason(n_yes, table, reason):
    judged = [Judged(n % 20, float(n < n_yes)) for n in range(100)]
    labelled = labels_of(table)
    values = Values(
        judged=judged, own_labels=labelled, all_labels=labelled, low=0, high=1, is_rate=True
    )
    found = three_ways(values).corrected
    assert (found.value, found.low, found.high) == (None, None, None)
    assert reason in found.reason
    raw = correct_rate(judged, labelled)
    assert isinstance(raw, Uncorrectable) or not 0 <= raw.value <= 1


def test_a_mean_beyond_all_labelled_verdicts_is_flagged():
    judged = [Judged(n % 20, 9.0) for n in range(100)]
    labelled = [Labelled(n, 3.0 + n % 4, 3.0 + n % 3) for n in range(12)]
    values = Values(judged=judged, own_labels=labelled, all_labels=labelled, low=0, high=10)
    assert three_ways(values).corrected.flags == ["outside_labelled_range"]
