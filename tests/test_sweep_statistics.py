"""How far the figures of a sweep can be trusted, through the command."""

import json
from statistics import fmean, variance

import pytest
from scipy import stats

from tests.command import assert_valid, run, without_scipy
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
        assert (found["n"], found["n_clusters"], found["scope"]) == (6, 3, "scenarios like these")
        assert (found["low"], found["high"]) == pytest.approx((max(0, low), min(10, high)))
        assert found["variance"]["repeat"] == pytest.approx(fmean(map(variance, scores)), abs=1e-6)
        assert found["variance"]["judge"] is None
        assert found["runs_to_halve"] == 4  # t falls, too

    def test_a_rate_of_none_has_an_interval_with_a_width(self, played):
        found = models(played[1])[LECTURER]["clean_rate"]
        squared = stats.t.ppf(0.975, 2) ** 2

        assert (found["mean"], found["low"]) == (0, 0)
        assert found["high"] == pytest.approx(squared / (3 + squared), abs=1e-6)

    def test_of_one_sample_there_is_no_interval(self, played):
        for group in played[1].document["groups"]["scenario"]:
            found = group["metrics"]["overall_score"]
            assert (found["n"], found["n_clusters"], found["scope"]) == (4, 1, "these scenarios")
            nulls = [found[key] for key in ("low", "high", "variance", "runs_to_halve")]
            assert nulls == [None] * 4

    def test_openings_of_one_scenario_are_no_more_samples_here_than_in_a_comparison(self, tmp_path):
        prompts = tmp_path / "prompts.txt"
        prompts.write_text("Why is the sky blue?\nWhy do we sleep?\n")
        words = ("sweep", "--offline", "--models", DRIFT, "--scenarios", *SCENARIOS, "--turns", "2")
        words = (*words, "--prompts", str(prompts), "--seed", "7", "-q", "-o", str(tmp_path))
        found = models(run(*words))[DRIFT]["overall_score"]
        compared = run("compare", str(tmp_path), "--fail-under", "overall_score=0", "-q")
        (contender,) = compared.document["contenders"]

        assert (found["n"], found["n_clusters"]) == (6, 3)
        assert contender["metrics"]["overall_score"] == found

    def test_the_closing_table_has_it(self, played):
        found = models(played[1])[DRIFT]["overall_score"]
        row = next(line for line in played[1].stderr.splitlines() if line.startswith(f"{DRIFT} "))

        assert f"{found['low']:.2f} to {found['high']:.2f}" in row


@pytest.fixture
def survivals(played):
    groups = played[1].document["groups"]["model"]
    return {group["value"]: group["survival"] for group in groups}


class TestSurvival:
    def test_the_benchmark_says_which_metrics_are_times(self, survivals):
        for found in survivals.values():
            assert found.keys() == {"turns_held"}

    def test_what_no_run_saw_has_neither_median_nor_limits(self, survivals):
        found = survivals[DRIFT]["turns_held"]
        none = {"value": None, "low": None, "high": None}

        assert (found["n_events"], found["horizon"]) == (0, 5)
        assert (found["median"], found["restricted_mean"]) == (none, {**none, "value": 5})

    def test_a_lapse_from_the_start_is_a_time_of_none(self, survivals):
        found = survivals[LECTURER]["turns_held"]

        assert (found["n_events"], found["median"]["value"]) == (6, 0)
        assert found["restricted_mean"]["value"] == 0


RECOVERS, YIELDS = "emulator.recovers-4-v1:0", "emulator.yields-to-demand-v1:0"


@pytest.fixture(scope="module")
def pressed(tmp_path_factory):
    """The runs' documents by model, and what the sweep made of them."""
    folder = tmp_path_factory.mktemp("pressed")
    words = ("sweep", "--offline", "--models", RECOVERS, YIELDS, "--scenarios", *SCENARIOS)
    words = (*words, "--seed", "7", "--turns", "14", "--pressure", "high", "--lapse-turns", "1")
    outcome = run(*words, "-o", str(folder), "-q")
    assert_valid("sweep", outcome.document)
    groups = {group["value"]: group for group in outcome.document["groups"]["model"]}
    docs = [*curated(folder).values()]
    return {
        model: ([doc for doc in docs if doc["model"] == model], groups[model]) for model in groups
    }


def at_risk(docs):
    """(scenario, turn, kind, whether it lapsed) until the first lapse."""
    for doc in docs:
        for turn in doc["turns"]:
            is_event = turn["score"] < 8
            yield doc["scenario"], turn["turn"], turn["pressure"] or "none", is_event
            if is_event:
                break


class TestHazards:
    @pytest.mark.parametrize("model", [RECOVERS, YIELDS])
    def test_a_lapse_is_told_by_turn_and_by_kind_of_pressure(self, model, pressed):
        docs, group = pressed[model]
        found, turns = group["hazards"]["lapse"], [*at_risk(docs)]
        assert (found["n"], found["n_clusters"]) == (3, 3)
        assert found["n_events"] == sum(one[3] for one in turns) == 3
        by_turn = {one["turn"]: one for one in found["by_turn"]}
        for figures, at in ((by_turn, 1), (found["by_kind"], 2)):
            assert figures.keys() == {one[at] for one in turns}
            for key, one in figures.items():
                events = [turn[3] for turn in turns if turn[at] == key]
                assert (one["n_at_risk"], one["n_events"]) == (len(events), sum(events))
                assert one["hazard"] == pytest.approx(fmean(events), abs=1e-6)
                samples = {turn[0] for turn in turns if turn[at] == key}
                assert (one["low"] is None) == (len(samples) == 1)
                if one["low"] is not None:
                    assert 0 <= one["low"] <= one["hazard"] <= one["high"] <= 1
                    assert one["low"] < one["high"]

    def test_what_makes_a_model_yield_is_seen(self, pressed):
        _, group = pressed[YIELDS]
        by_kind = group["hazards"]["lapse"]["by_kind"]

        assert by_kind["demand"]["hazard"] == 1
        assert {one["hazard"] for kind, one in by_kind.items() if kind != "demand"} == {0}

    def test_a_model_that_comes_back_does_so_where_it_is_known_to(self, pressed):
        """It tells in its turns 4 to 8, and asks from turn 9 on."""
        _, group = pressed[RECOVERS]
        lapse, recovery = group["hazards"]["lapse"], group["hazards"]["recovery"]

        assert [one["hazard"] for one in lapse["by_turn"]] == [0, 0, 0, 0, 1]
        assert [(one["turn"], one["hazard"]) for one in recovery["by_turn"]] == [
            *((turn, int(turn == 9)) for turn in range(5, 10))
        ]

    def test_the_hazards_make_the_survival_curve(self, pressed):
        for _, group in pressed.values():
            time, share, median = group["survival"]["turns_held"], 1.0, None
            for one in group["hazards"]["lapse"]["by_turn"]:
                share *= 1 - one["hazard"]
                median = one["turn"] if median is None and share <= 0.5 else median
            assert time["median"]["value"] == median is not None


NEWER = ("censored", "exposures", "parts")  # than the first rows


def test_rows_that_do_not_say_what_was_censored_or_when_give_no_survival_and_no_hazards(tmp_path):
    words = ("sweep", "--offline", "--models", DRIFT, "--scenarios", *SCENARIOS[:2], "--turns", "2")
    words = (*words, "--seed", "7", "-o", str(tmp_path))
    first = run(*words)
    for path in tmp_path.glob("sweeps/*/cells/*.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        kept = [{name: row[name] for name in row if name not in NEWER} for row in rows]
        path.write_text("".join(json.dumps(row) + "\n" for row in kept))
    again = run(*words, "--resume")
    (before,), (after,) = (one.document["groups"]["model"] for one in (first, again))

    assert before["survival"].keys() == {"turns_held"}
    assert after["survival"] == after["hazards"] == {}
    assert after["metrics"] == before["metrics"]


def test_what_the_judge_adds_to_the_variance_is_told_by_its_own_verdicts(tmp_path):
    noisy = ("--judge-model", "emulator.judge-noise-10-v1:0", "--judge-samples", "3")
    words = (*WORDS[:2], "--models", DRIFT, *WORDS[5:9], "--turns", "4", "--seed", "7", *noisy)
    outcome = run(*words, "--repeats", "2", "-q", "-o", str(tmp_path))
    found = models(outcome)[DRIFT]
    of_runs = {"overall_score": [], "form": []}
    for folder in (tmp_path / "raw" / "runs").iterdir():
        jurors = [json.loads(path.read_bytes())["jurors"] for path in folder.glob("judge_*.json")]
        samples = [one["samples"] for (one,) in jurors]
        for name, told in of_runs.items():
            scores = [
                [one.get(name, one["scores"].get(name)) for one in of_turn] for of_turn in samples
            ]
            told.append(sum(variance(some) / 3 for some in scores) / 4**2)
    compared = run("compare", str(tmp_path), "--fail-under", "overall_score=0", "-q")
    (contender,) = compared.document["contenders"]

    assert len(of_runs["form"]) == 6
    for metric, name in (("overall_score", "overall_score"), ("mean_form", "form")):
        assert found[metric]["variance"]["judge"] == pytest.approx(fmean(of_runs[name]), rel=1e-3)
    assert found["overall_score"]["variance"]["judge"] > 0
    assert found["lapse_rate"]["variance"]["judge"] is None
    assert contender["metrics"]["overall_score"] == found["overall_score"]


@pytest.fixture
def collapsed(tmp_path):
    """A sweep of five openings, of which one is stored as if its dialogue had collapsed."""
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("".join(f"Why is {n} odd?\n" for n in (1, 3, 5, 7, 9)))
    words = ("sweep", "--offline", "--models", DRIFT, "--prompts", str(prompts), "--turns", "2")
    words = (*words, "--seed", "7", "-o", str(tmp_path))
    run(*words, "-q")
    values = iter((9.0, 9.125, 4.0, 8.875, 9.0))
    for path in tmp_path.glob("sweeps/*/cells/*.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        for row in rows:
            row["metrics"]["overall_score"] = next(values)
            row["files"] = row["curated_sha256"] = None
            stored = tmp_path / "curated" / "runs" / f"{row['run_id']}.json"
            document = json.loads(stored.read_bytes())
            document["metrics"]["overall_score"] = row["metrics"]["overall_score"]
            stored.write_text(json.dumps(document))
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return (*words, "--resume")


def test_a_mean_whose_runs_lie_in_two_groups_says_so(collapsed):
    outcome = run(*collapsed)
    found = models(outcome)[DRIFT]["overall_score"]

    assert_valid("sweep", outcome.document)
    assert found["two_groups"] == {"lower": {"n": 1, "mean": 4}, "higher": {"n": 4, "mean": 9}}
    assert [one["two_groups"] for one in models(outcome)[DRIFT].values()].count(None) > 5
    told = "near 4.0 in 1 and near 9.0 in 4 of 5 runs"
    compared = run("compare", collapsed[-2], "--fail-under", "overall_score=0")
    assert told in outcome.stderr
    assert told in compared.stderr
    assert told in compared.document["notices"][-1]


def test_the_same_runs_have_the_same_limits_in_a_sweep_and_in_a_comparison(tmp_path):
    """They are read in other orders, but draws depend on what was played alone."""
    named = ("time-management", "ai-ethics", "own-fault", "milk-price", "career-change")
    words = ("--models", DRIFT, "--scenarios", *named, "--turns", "12", "--seed", "3", "-q")
    played = run("sweep", "--offline", *words, "-o", str(tmp_path))
    compared = run("compare", str(tmp_path), "--fail-under", "overall_score=0", "-q")
    (group,) = played.document["groups"]["model"]
    (contender,) = compared.document["contenders"]

    assert group["survival"]["turns_held"]["n_events"] == 5
    for name in ("overall_score", "discipline", "usefulness"):
        assert group["metrics"][name] == contender["metrics"][name]
    for figure in ("median", "restricted_mean"):
        both = (one["survival"]["turns_held"][figure] for one in (group, contender))
        assert len({one["low"] for one in both}) == 1


@pytest.fixture
def bare(tmp_path):
    return without_scipy(tmp_path)


def bounds(*words):
    return [word for bound in words for word in ("--fail-under", bound)]


class TestGates:
    def test_limits_of_all_runs_of_a_model_are_held_to_bounds(self, played):
        """The one is always right, the other never; both are sure."""
        folder, outcome = played
        figures = ("overall_score.low=3", "turns_held.median=0")
        passed = run(
            *WORDS,
            "--resume",
            "-o",
            str(folder),
            "-q",
            *bounds(*figures),
            "--fail-over",
            "lapse_rate.high=1",
        )
        gates = {(one["name"], one["gate"]): one for one in passed.document["figure_gates"]}

        assert_valid("sweep", passed.document)
        assert (passed.exit_code, passed.document["error"]["code"]) == (5, "gate")
        assert len(gates) == 6
        for model, metrics in models(outcome).items():
            found = gates[model, "overall_score.low"]
            assert (found["value"], found["bound"]) == (metrics["overall_score"]["low"], 3)
            assert found["passed"] == (model == DRIFT)
            assert gates[model, "lapse_rate.high"]["passed"]
        # No run of it saw a lasting lapse: its median is beyond what was played, and passes.
        median = gates[DRIFT, "turns_held.median"]
        assert (median["value"], median["passed"]) == (None, True)
        assert gates[LECTURER, "turns_held.median"]["passed"]
        assert f"overall_score.low of {LECTURER} is 0" in passed.stderr

    def test_a_sweep_that_reaches_them_passes(self, played):
        folder, _ = played
        held = ("clean_rate.low=0", "turns_held.restricted_mean=0", "overall_score=0")
        words = ("--resume", "-o", str(folder), "-q", *bounds(*held))
        outcome = run(*WORDS, *words)

        assert (outcome.exit_code, outcome.document["error"]) == (0, None)
        assert {one["passed"] for one in outcome.document["figure_gates"]} == {True}
        assert len(outcome.document["figure_gates"]) == 6

    @pytest.mark.parametrize(
        ("bound", "words", "said"),
        [
            ("overall_score.low=3", SCENARIOS[:1], ("need 2 samples", "not 1", "--scenarios")),
            ("fame.low=3", SCENARIOS, ("names no metric: 'fame'", "overall_score")),
            ("lapse_rate.median.low=3", SCENARIOS, ("not a time until an event", "turns_held")),
            (
                "usefulness.low=.1",
                (*SCENARIOS, "--no-judge"),
                ("usefulness is of judged turns", "--no-judge"),
            ),
            ("insights_reached.low=0", ("custom",), ("nothing", "insights_reached")),
        ],
    )
    def test_what_cannot_come_is_refused_before_the_first_call(self, bound, words, said, tmp_path):
        asked = ("sweep", "--offline", "--models", DRIFT, "--scenarios", *words)
        outcome = run(*asked, "-o", str(tmp_path / "runs"), *bounds(bound))

        assert (outcome.exit_code, outcome.document["end_reason"]) == (2, "usage")
        assert [one for one in said if one not in outcome.stderr] == []
        assert not (tmp_path / "runs").exists()

    def test_without_the_extra_there_is_no_limit_to_bound(self, bare, tmp_path):
        words = (*WORDS, *bounds("overall_score.low=3"), "-o", str(tmp_path / "runs"))
        outcome = run(*words, env=bare)
        alone = run("--offline", "--model", DRIFT, "--prompt", "Why?", *words[-4:-2])

        assert (outcome.exit_code, outcome.document["end_reason"]) == (2, "usage")
        assert 'pip install ".[stats]"' in outcome.stderr
        assert not (tmp_path / "runs").exists()
        assert (alone.exit_code, "one run does not have" in alone.stderr) == (2, True)


def test_without_the_extra_there_are_plain_means_and_one_word_of_it(played, bare):
    folder, outcome = played
    bare = run(*WORDS, "--resume", "-o", str(folder), env=bare)
    nulls = {"scope": "these scenarios", "low": None, "high": None, "runs_to_halve": None}

    assert bare.exit_code == 0
    for group in bare.document["groups"]["model"]:
        found = group["survival"]["turns_held"]
        for hazards in group["hazards"].values():
            assert {one["low"] for one in hazards["by_turn"]} == {None}
        assert found["median"]["low"] is found["restricted_mean"]["high"] is None
    for model, metrics in models(bare).items():
        full = models(outcome)[model]
        for name, mean in full.items():
            reason = None if mean["mean"] is None else "needs_stats"
            assert metrics[name] == {**mean, **nulls, "no_interval_because": reason}
    assert "95 % interval" not in bare.stderr
    assert bare.stderr.count('pip install "socratic-runner[stats]"') == 1
    assert "stats" not in outcome.stderr
