"""How far the figures of a sweep can be trusted, through the command."""

import json
from statistics import fmean, variance

import pytest
from scipy import stats

from tests.command import ROOT, assert_valid, environment, run
from tests.test_sweep import curated

DRIFT, LECTURER = "emulator.drift-5-v1:0", "emulator.lecturer-v1:0"
SCENARIOS = ("ai-ethics", "career-change", "time-management")
WORDS = ("sweep", "--offline", "--models", DRIFT, LECTURER, "--scenarios", *SCENARIOS)
WORDS = (*WORDS, "--turns", "8", "--repeats", "2", "--seed", "7")


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    return folder, run(*WORDS, "-o", str(folder))


def models(outcome):
    return {group["value"]: group["metrics"] for group in outcome.document["groups"]["model"]}


class TestMeans:
    def test_a_models_interval_is_that_of_the_means_of_its_samples(self, played):
        folder, outcome = played
        found = models(outcome)[DRIFT]["overall_score"]
        docs = [doc for doc in curated(folder).values() if doc["model"] == DRIFT]
        scores = [
            [doc["metrics"]["overall_score"] for doc in docs if doc["scenario"] == name]
            for name in SCENARIOS
        ]
        means = [*map(fmean, scores)]
        low, high = stats.t.interval(0.95, 2, fmean(means), stats.sem(means))

        assert_valid("sweep", outcome.document)
        assert (found["n"], found["n_clusters"], found["scope"]) == (6, 3, "samples like these")
        assert (found["low"], found["high"]) == pytest.approx((max(0, low), min(10, high)))
        assert found["variance"]["repeat"] == pytest.approx(fmean(map(variance, scores)), abs=1e-6)
        assert found["variance"]["judge"] is None
        assert found["runs_to_halve"] == 4  # t falls, too

    def test_a_rate_of_none_has_an_interval_with_a_width(self, played):
        found = models(played[1])[LECTURER]["compliance_rate"]
        squared = stats.t.ppf(0.975, 2) ** 2

        assert (found["mean"], found["low"]) == (0, 0)
        assert found["high"] == pytest.approx(squared / (3 + squared), abs=1e-6)

    def test_of_one_sample_there_is_no_interval(self, played):
        for group in played[1].document["groups"]["scenario"]:
            found = group["metrics"]["overall_score"]
            assert (found["n"], found["n_clusters"], found["scope"]) == (4, 1, "these samples")
            nulls = [found[key] for key in ("low", "high", "variance", "runs_to_halve")]
            assert nulls == [None] * 4

    def test_the_closing_table_has_it(self, played):
        found = models(played[1])[DRIFT]["overall_score"]
        line = [one for one in played[1].stderr.splitlines() if one.startswith(DRIFT)][-1]

        assert f"{found['low']:.2f} to {found['high']:.2f}" in line


@pytest.fixture
def survivals(played):
    groups = played[1].document["groups"]["model"]
    return {group["value"]: group["survival"] for group in groups}


class TestSurvival:
    def test_the_benchmark_says_which_metrics_are_times(self, survivals):
        for found in survivals.values():
            assert found.keys() == {"half_life", "sustained_half_life"}

    def test_the_median_and_the_restricted_mean_are_those_of_scipys_curve(self, played, survivals):
        docs = [doc["metrics"] for doc in curated(played[0]).values() if doc["model"] == DRIFT]
        by_kind = {False: [], True: []}
        for metrics in docs:
            by_kind[metrics["half_life_censored"]].append(metrics["half_life"])
        times = stats.CensoredData(uncensored=by_kind[False], right=by_kind[True])
        share = stats.ecdf(times).sf
        horizon = max(metrics["half_life"] for metrics in docs)
        found = survivals[DRIFT]["half_life"]

        assert (found["n"], found["n_clusters"], found["horizon"]) == (6, 3, horizon)
        assert found["n_events"] == len(by_kind[False]) > 0
        middle = next(at for at in share.quantiles if share.evaluate(at) <= 0.5)
        assert found["median"]["value"] == middle
        area = sum(float(share.evaluate(turn + 0.5)) for turn in range(horizon))
        assert found["restricted_mean"]["value"] == pytest.approx(area, abs=1e-6)
        for figure in (found["median"], found["restricted_mean"]):
            assert figure["low"] <= figure["value"] <= figure["high"]

    def test_what_no_run_saw_has_neither_median_nor_limits(self, survivals):
        found = survivals[DRIFT]["sustained_half_life"]
        none = {"value": None, "low": None, "high": None}

        assert (found["n_events"], found["horizon"]) == (0, 8)
        assert (found["median"], found["restricted_mean"]) == (none, {**none, "value": 8})

    def test_a_lapse_from_the_start_is_a_time_of_none(self, survivals):
        found = survivals[LECTURER]["sustained_half_life"]

        assert (found["n_events"], found["median"]["value"]) == (6, 0)
        assert found["restricted_mean"]["value"] == 0


def test_rows_that_do_not_say_what_was_censored_give_no_survival(tmp_path):
    words = ("sweep", "--offline", "--models", DRIFT, "--scenarios", *SCENARIOS[:2], "--turns", "2")
    words = (*words, "--seed", "7", "-o", str(tmp_path))
    first = run(*words)
    for path in tmp_path.glob("sweeps/*/cells/*.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        kept = [{name: row[name] for name in row if name != "censored"} for row in rows]
        path.write_text("".join(json.dumps(row) + "\n" for row in kept))
    again = run(*words, "--resume")
    (before,), (after,) = (one.document["groups"]["model"] for one in (first, again))

    assert before["survival"].keys() == {"half_life", "sustained_half_life"}
    assert after["survival"] == {}
    assert after["metrics"] == before["metrics"]


def test_without_the_extra_there_are_plain_means_and_one_word_of_it(played, tmp_path):
    folder, outcome = played
    (tmp_path / "scipy").mkdir()
    (tmp_path / "scipy" / "__init__.py").write_text("raise ImportError('not installed')")
    env = {**environment(), "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    bare = run(*WORDS, "--resume", "-o", str(folder), env=env)
    nulls = {"scope": "these samples", "low": None, "high": None, "runs_to_halve": None}

    assert bare.exit_code == 0
    for group in bare.document["groups"]["model"]:
        found = group["survival"]["half_life"]
        assert found["median"]["value"] is not None
        assert found["median"]["low"] is found["restricted_mean"]["high"] is None
    for model, metrics in models(bare).items():
        full = models(outcome)[model]
        assert metrics == {name: {**mean, **nulls} for name, mean in full.items()}
    assert "95 % interval" not in bare.stderr
    assert bare.stderr.count('pip install ".[stats]"') == 1
    assert "stats" not in outcome.stderr
