"""Our figures against those of other programs, which `make oracles` has written down."""

import json
import re

import pytest

from socratic_bench.statistics.differences import ALPHA, POWER, holm_factors
from socratic_bench.statistics.intervals import (
    clustered,
    parts,
    t_centre,
    t_interval,
    wilson_interval,
)
from socratic_bench.statistics.survival import (
    Step,
    Time,
    band,
    curve,
    errors,
    median,
    restricted_mean,
)
from tests.command import ROOT

ORACLES = json.loads((ROOT / "tests" / "data" / "oracles.json").read_bytes())
CLOSE = {"rel": 1e-6, "abs": 1e-6}


def cases(name: str):
    return pytest.mark.parametrize("case", ORACLES[name], ids=range(len(ORACLES[name])))


def test_they_are_of_the_pinned_programs():
    pins = re.findall(
        r"^(\w+)==([\d.]+)", (ROOT / "tools" / "oracles.txt").read_text(), re.MULTILINE
    )

    assert ORACLES["versions"].items() <= set(pins)


@cases("means")
def test_clustered_means_are_those_of_a_robust_regression(case):
    found = clustered(case["clusters"])
    interval = t_interval(found)

    ours = {
        "mean": found.mean,
        "error": found.error,
        "low": interval.low,
        "high": interval.high,
    }
    assert ours == pytest.approx({key: case[key] for key in ours}, **CLOSE)


@cases("paired")
def test_a_paired_interval_is_students(case):
    found = clustered([[a - b] for a, b in zip(case["ours"], case["theirs"], strict=True)])
    interval = t_interval(found)

    assert (interval.low, interval.high) == pytest.approx((case["low"], case["high"]), **CLOSE)


@cases("rates")
def test_rates_have_wilsons_interval(case):
    found = clustered(case["clusters"])
    interval = wilson_interval(found)

    assert found.mean == pytest.approx(case["rate"], **CLOSE)
    assert (interval.low, interval.high) == pytest.approx((case["low"], case["high"]), **CLOSE)


@cases("variances")
def test_parts_of_the_variance_are_those_of_its_analysis(case):
    found = parts([[values] for values in case["clusters"]])

    expected = (case["between"], case["within"])
    assert (found.between, found.within) == pytest.approx(expected, **CLOSE)


def times(case):
    return [[Time(at, is_event=is_event) for at, is_event in some] for some in case["clusters"]]


def flat(clusters):
    return [one for some in clusters for one in some]


def known(values, expected):
    """Those that the other program knows."""
    return [value for value, one in zip(values, expected, strict=True) if one is not None]


@cases("survivals")
def test_survival_is_lifelines(case):
    steps = curve(flat(times(case)))

    assert [one.at for one in steps] == case["at"]
    assert [one.share for one in steps] == pytest.approx(case["share"], **CLOSE)
    assert median(steps) == case["median"]
    mean = restricted_mean(steps, case["horizon"])
    assert mean == pytest.approx(case["restricted_mean"], **CLOSE)


@cases("survivals")
def test_errors_of_the_curve_are_greenwoods_and_by_cluster_the_robust_ones(case):
    single = errors([[one] for one in flat(times(case))])
    robust = errors(times(case))

    for ours, theirs in ((single, case["greenwood"]), (robust, case["clustered"])):
        assert known(ours, theirs) == pytest.approx(known(theirs, theirs), **CLOSE)
    ends = [one for one, share in zip(robust, case["share"], strict=True) if share < 1e-12]
    assert ends in ([], [0.0])


@pytest.mark.parametrize("clusters", [1, 5, 6, 30])
@pytest.mark.parametrize(("share", "error"), [(0.0, 0.0), (0.5, 0.2), (0.02, 0.4), (0.5, 0.0)])
def test_a_band_is_within_0_and_1_or_null(share, error, clusters):
    found = band(Step(3.0, share), error, clusters)

    if clusters < 6 or not error:
        assert found is None
    else:
        assert 0 <= found.low < share < found.high <= 1


@cases("holm")
def test_holms_correction(case):
    factors = holm_factors(case["p"])
    corrected = [min(1, p * factor) for p, factor in zip(case["p"], factors, strict=True)]

    assert corrected == pytest.approx(case["corrected"], **CLOSE)


@cases("detectable")
def test_a_detectable_difference_has_its_power(case):
    centre = t_centre(1 - POWER, case["n_clusters"] - 1, ALPHA)

    assert centre == pytest.approx(case["errors"], **CLOSE)
