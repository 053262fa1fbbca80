"""`compare`: times until an event side by side, against figures that are reckoned here."""

import random
from math import inf

import pytest
from scipy import stats

from cli.terminal import number
from socratic_bench.statistics.survival import Time, curve, median, restricted_mean
from tests.command import assert_valid, run
from tests.curated_runs import N_TURNS, curated_run, write_runs

FIRM, WEAK, PERFECT = "maker.firm-v1:0", "maker.weak-v1:0", "maker.perfect-v1:0"
SCENARIOS = [f"scenario-{n}" for n in range(8)]
METRIC = "turns_held"
HAZARDS = {FIRM: 0.03, WEAK: 0.08}


def times_of(model: str) -> dict[tuple[str, int], tuple[int, bool]]:
    """By scenario and seed: when the lapse came, and whether it did; some runs have no verdict."""
    dice = random.Random(model)
    found = {}
    for scenario in SCENARIOS:
        for seed in (1, 2, 3):
            at = int(dice.expovariate(HAZARDS[model])) if model in HAZARDS else N_TURNS
            found[scenario, seed] = (min(at, N_TURNS), at < N_TURNS)
    found[SCENARIOS[0], 1] = None
    return found


def runs_of(number: int, model: str):
    for n, ((scenario, seed), time) in enumerate(times_of(model).items()):
        at, is_event = time or (None, None)
        metrics = {
            METRIC: at,
            f"{METRIC}_censored": None if time is None else not is_event,
            "overall_score": 8.0 + n % 3,
        }
        yield curated_run(100 * number + n, model, scenario, metrics, seed=seed)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("times")
    for n, model in enumerate((FIRM, WEAK, PERFECT), 1):
        write_runs(folder, [*runs_of(n, model)])
    return run("compare", str(folder))


@pytest.fixture(scope="module")
def contenders(outcome):
    assert outcome.exit_code == 0
    assert_valid("comparison", outcome.document)
    return {one["name"]: one["survival"][METRIC] for one in outcome.document["contenders"]}


def clusters_of(model: str) -> list[list[Time]]:
    times = times_of(model)
    known = ([times[name, seed] for seed in (1, 2, 3)] for name in SCENARIOS)
    return [[Time(one[0], is_event=one[1]) for one in some if one] for some in known]


def flat(clusters):
    return [one for some in clusters for one in some]


@pytest.mark.parametrize("model", [FIRM, WEAK])
def test_the_curve_is_that_of_the_runs(model, contenders):
    found = contenders[model]
    times = flat(clusters_of(model))
    events, others = ([t.at for t in times if t.is_event is kind] for kind in (True, False))
    theirs = stats.ecdf(stats.CensoredData(uncensored=events, right=others)).sf
    steps = found["curve"]
    at = [step["at"] for step in steps]
    area = sum(theirs.evaluate(turn) for turn in range(N_TURNS))  # of turns, so a sum

    assert (found["n"], found["n_events"], found["n_clusters"]) == (23, len(events), 8)
    assert (at, found["horizon"]) == (sorted(set(events)), N_TURNS)
    assert [step["share"] for step in steps] == pytest.approx(theirs.evaluate(at), abs=1e-6)
    assert found["median"]["value"] == next(t for t in at if theirs.evaluate(t) <= 0.5)
    assert found["restricted_mean"]["value"] == pytest.approx(area, abs=1e-5)
    for step in steps:
        limits = step["low"], step["high"]
        assert limits == (None, None) or 0 <= step["low"] < step["share"] < step["high"] <= 1
        assert (step["share"] == 0) == (limits == (None, None))


def test_where_no_event_was_seen_there_are_no_limits(contenders, outcome):
    found = contenders[PERFECT]

    assert found["median"] == {"value": None, "low": None, "high": None}
    assert found["restricted_mean"] == {"value": N_TURNS, "low": None, "high": None}
    assert found["curve"] == []
    pair = difference(outcome, FIRM, PERFECT)
    assert pair["median"] == {"value": None, "low": None, "high": None}
    assert pair["restricted_mean"]["low"] is pair["restricted_mean"]["high"] is None


def difference(outcome, *names: str):
    pairs = outcome.document["pairs"]
    (pair,) = [one for one in pairs if {one["first"], one["second"]} == set(names)]
    return pair["survival"][METRIC]


def test_a_difference_has_limits_by_draws_of_scenarios_for_both_at_once(outcome):
    pairs = outcome.document["pairs"]
    (first,) = [one["first"] for one in pairs if {one["first"], one["second"]} == {FIRM, WEAK}]
    second = ({FIRM, WEAK} - {first}).pop()
    ours, theirs = clusters_of(first), clusters_of(second)
    found = difference(outcome, FIRM, WEAK)
    dice = random.Random(1)
    chosen = dice.choices(range(8), k=7 * 1999)
    medians, means = [], []
    for at in range(0, len(chosen), 7):
        curves = [
            curve(flat(clusters[n] for n in chosen[at : at + 7])) for clusters in (ours, theirs)
        ]
        one, other = (inf if median(steps) is None else median(steps) for steps in curves)
        medians.append(one - other if one != other else 0.0 if one < inf else None)
        means.append(restricted_mean(curves[0], N_TURNS) - restricted_mean(curves[1], N_TURNS))
    lows = sorted(-inf if one is None else one for one in medians)
    highs = sorted(inf if one is None else one for one in medians)

    assert (found["n"], found["n_clusters"], found["horizon"]) == (23, 8, N_TURNS)
    curves = [curve(flat(clusters)) for clusters in (ours, theirs)]
    assert found["median"]["value"] == median(curves[0]) - median(curves[1])
    # As far out as Student's point of seven degrees of freedom is on the normal distribution.
    rank = round(2000 * stats.norm.cdf(-stats.t.ppf(0.975, 7)))
    expected = [None if abs(one) == inf else one for one in (lows[rank - 1], highs[-rank])]
    assert [found["median"]["low"], found["median"]["high"]] == expected
    mean = found["restricted_mean"]
    value = restricted_mean(curves[0], N_TURNS) - restricted_mean(curves[1], N_TURNS)
    assert mean["value"] == pytest.approx(value, abs=1e-5)
    assert [mean["low"], mean["high"]] == pytest.approx(
        [sorted(means)[rank - 1], sorted(means)[-rank]], abs=1e-5
    )


def test_the_table_has_them_side_by_side(outcome, contenders):
    lines = outcome.stderr.splitlines()
    (at,) = [n for n, line in enumerate(lines) if line.startswith(METRIC + "  ")][:1]
    row = next(line for line in lines[at:] if line.startswith(WEAK))

    assert "mean (max 40)" in lines[at]
    assert f" {number(contenders[WEAK]['restricted_mean']['value'])}" in row
    assert number(contenders[WEAK]["median"]["value"]) in row


def test_a_run_that_does_not_say_whether_it_was_censored_counts_in_means_alone(tmp_path):
    runs = [
        curated_run(n, model, scenario, {METRIC: 5, "overall_score": 8.0})
        for n, (model, scenario) in enumerate(
            (model, scenario) for model in (FIRM, WEAK) for scenario in SCENARIOS[:2]
        )
    ]
    document = run("compare", str(write_runs(tmp_path, runs)), "-q").document

    for one in document["contenders"]:
        assert (one["survival"], one["metrics"][METRIC]["n"]) == ({}, 2)
    assert document["pairs"][0]["survival"] == {}


def test_a_model_that_always_falls_at_one_turn_has_no_limits_and_late_unjudged_turns_a_note(
    tmp_path,
):
    """Each is ordered by the turns held, whatever its score."""
    figures = {FIRM: (20, 6.0, ["late"]), WEAK: (5, 9.0, [])}
    for place, (model, (at, score, unlike)) in enumerate(figures.items(), 1):
        metrics = {METRIC: at, f"{METRIC}_censored": False, "overall_score": score}
        metrics["unjudged_differ_by"] = unlike
        runs = [
            curated_run(100 * place + n, model, scenario, metrics)
            for n, scenario in enumerate(SCENARIOS)
        ]
        write_runs(tmp_path, runs)
    compared = run("compare", str(tmp_path))
    document = compared.document

    assert document["primary_metric"]["name"] == METRIC
    assert [one["name"] for one in document["contenders"]] == [FIRM, WEAK]
    for one in document["contenders"]:
        times = one["survival"][METRIC]
        assert times["no_interval_because"] == "no_spread"
        assert {times["median"]["low"], times["restricted_mean"]["high"]} == {None}
    (difference,) = document["differences"]
    assert (difference["difference"], difference["no_interval_because"]) == (15, "no_spread")
    assert not difference["is_p_drawn"]
    (note,) = [text for text in document["notices"] if "unlike" in text]
    assert note.startswith(
        f"{FIRM}: in 8 runs the unjudged turns are unlike the judged ones (late)"
    )
    assert "5.00 to 5.00" not in compared.stderr


@pytest.mark.parametrize(("bound", "exit_code"), [("1", 5), ("2", 0)])
def test_runs_that_end_in_low_turns_are_a_drop_of_turns_held(tmp_path, bound, exit_code):
    """Their times are censored, so that both curves never fall."""
    for name, first, at in (("old", 1, 14), ("new", 2, 12)):
        metrics = {METRIC: at, f"{METRIC}_censored": True, "overall_score": 8.0}
        runs = [
            curated_run(100 * first + n, FIRM, scenario, metrics)
            for n, scenario in enumerate(SCENARIOS)
        ]
        write_runs(tmp_path / name, runs)
    words = ("--baseline", str(tmp_path / "old"), "--max-drop", f"{METRIC}={bound}")
    outcome = run("compare", str(tmp_path / "new"), *words)

    assert outcome.exit_code == exit_code
    assert outcome.document["gates"][0]["drop"] == 2
    table = outcome.stderr.split("\n\n")[1].splitlines()
    assert [row.split()[2] for row in table[1:]] == ["12.0", "14.0"]
    assert outcome.document["pairs"][0]["survival"][METRIC]["restricted_mean"]["value"] == 0
