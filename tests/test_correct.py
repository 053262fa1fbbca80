"""`correct`: figures of stored runs as judged, corrected by labels, and of labels alone."""

from collections import defaultdict
from random import Random

import numpy as np
import pytest
from scipy import stats

from socratic_bench.benchmarks.socratic.scenarios.loading import builtin_ids
from tests.command import assert_valid, run, without_scipy
from tests.labelled import DIMENSIONS, write_jsonl
from tests.test_sweep import curated, sweep

MIXED, LECTURER = "emulator.mixture-1-v1:0", "emulator.lecturer-v1:0"
N_TURNS = 4
SCENARIOS = [name for name in builtin_ids() if name != "custom"][:12]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Twelve dialogues of each of two models."""
    folder = tmp_path_factory.mktemp("corrected") / "runs"
    words = ("--scenarios", *SCENARIOS, "--turns", str(N_TURNS), "--seed", "7", "-q")
    assert sweep("--models", MIXED, LECTURER, *words, folder=folder).exit_code == 0
    return folder


@pytest.fixture(scope="module")
def docs(folder):
    return curated(folder)


def probability(turn):
    """The first turn of each dialogue is always labelled."""
    return 1.0 if turn["turn"] == 0 else 0.4 + 0.1 * (turn["turn"] % 3)


def labels_of(docs, model, seed=1):
    """People give a point less for purity, and see a disclosed answer now and then otherwise."""
    dice = Random(seed)
    for run_id, doc in sorted(docs.items(), key=lambda one: one[1]["scenario"]):
        for turn in doc["turns"]:
            if doc["model"] != model or dice.random() >= probability(turn):
                continue
            scores = dict(turn["scores"])
            scores["purity"] = max(0, scores["purity"] - dice.choice((0.5, 1, 1.5)))
            seen = "answer_disclosed" in turn["events"]
            yield {
                "labeller": "anna",
                "run_id": run_id,
                "turn": turn["turn"],
                "scores": scores,
                "events": {"answer_disclosed": seen if dice.random() < 0.8 else not seen},
                "probability": probability(turn),
            }


@pytest.fixture(scope="module")
def labelled(folder, docs):
    rows = [*labels_of(docs, MIXED)]
    return rows, write_jsonl(folder.parent / "labels.jsonl", rows)


@pytest.fixture(scope="module")
def corrected(folder, labelled):
    words = ("--labels", labelled[1], "--rate", "overall_score<8")
    return run("correct", str(folder), *words)


def of_model(document, model):
    return next(one for one in document["models"] if one["model"] == model)


def expected_mean(docs, rows, judge, label):
    """Lambda 1, by the definition: mean of verdicts less the labelled ones' weighted mean error;
    its variance from what each dialogue adds to both.
    """
    said = {
        (run_id, turn["turn"]): judge(turn) for run_id, doc in docs.items() for turn in doc["turns"]
    }
    mean = np.mean([*said.values()])  # all dialogues have as many turns
    weights = np.array([1 / row["probability"] for row in rows])
    errors = np.array([judge_of(said, row) - label(row) for row in rows])
    error = weights @ errors / weights.sum()
    moved = defaultdict(float)
    for (run_id, _), value in said.items():
        moved[run_id] += (value - mean) / len(said)
    for row, weight, one in zip(rows, weights, errors, strict=True):
        moved[row["run_id"]] -= weight * (one - error) / weights.sum()
    k = len({row["run_id"] for row in rows})
    spread = (sum(one**2 for one in moved.values()) * k / (k - 1)) ** 0.5
    half = stats.t.ppf(0.975, k - 1) * spread
    return mean - error, mean - error - half, mean - error + half


def judge_of(said, row):
    return said[row["run_id"], row["turn"]]


class TestMeans:
    def test_as_judged_is_what_the_runs_say(self, docs, corrected):
        assert (corrected.exit_code, corrected.document["n_runs"]) == (0, 24)
        assert_valid("correction", corrected.document)
        figure = of_model(corrected.document, MIXED)["figures"]["overall_score"]["as_judged"]
        means = [doc["metrics"]["overall_score"] for doc in docs.values() if doc["model"] == MIXED]
        assert figure["value"] == pytest.approx(np.mean(means), abs=1e-6)
        low, high = stats.t.interval(0.95, 11, np.mean(means), stats.sem(means))
        assert (figure["low"], figure["high"]) == pytest.approx((low, high), abs=1e-6)
        assert (figure["n"], figure["n_dialogues"]) == (48, 12)

    def test_corrected_is_prediction_powered_with_lambda_1(self, docs, labelled, corrected):
        own = {run_id: doc for run_id, doc in docs.items() if doc["model"] == MIXED}
        found = of_model(corrected.document, MIXED)["figures"]["purity"]["corrected"]
        value, low, high = expected_mean(
            own,
            labelled[0],
            lambda turn: turn["scores"]["purity"],
            lambda row: row["scores"]["purity"],
        )
        assert (found["method"], found["tuning"]) == ("prediction-powered", 1.0)
        told = found["value"], found["low"], found["high"]
        assert told == pytest.approx((value, max(low, 0), min(high, 4)), abs=1e-6)
        assert (found["reason"], found["flags"]) == (None, [])

    def test_of_labels_weighs_each_by_its_drawing(self, labelled, corrected):
        rows, _ = labelled
        found = of_model(corrected.document, MIXED)["figures"]["purity"]["of_labels"]
        weights = [1 / row["probability"] for row in rows]
        mean = np.average([row["scores"]["purity"] for row in rows], weights=weights)
        assert found["value"] == pytest.approx(mean, abs=1e-6)
        assert found["n"] == len(rows)

    def test_a_model_without_labels_takes_those_of_others_and_is_flagged(self, corrected):
        model = of_model(corrected.document, LECTURER)
        found = model["figures"]["purity"]
        assert model["n_labelled"] == 0
        assert found["of_labels"]["value"] is None
        assert "10" in found["of_labels"]["reason"]
        assert "labels_of_others" in found["corrected"]["flags"]
        assert found["corrected"]["value"] is not None or found["corrected"]["reason"]
        assert "corrected by labels of all models" in corrected.stderr


class TestRates:
    @pytest.mark.parametrize("name", ["answer_disclosed", "overall_score<8"])
    def test_rogan_and_gladen_by_the_weighted_labels(self, docs, labelled, corrected, name):
        judge, label = {
            "answer_disclosed": (
                lambda turn: name in turn["events"],
                lambda row: row["events"][name],
            ),
            "overall_score<8": (
                lambda turn: turn["score"] < 8,
                lambda row: sum(row["scores"].values()) < 8,
            ),
        }[name]
        own = {run_id: doc for run_id, doc in docs.items() if doc["model"] == MIXED}
        found = of_model(corrected.document, MIXED)["figures"][name]["corrected"]
        rate = np.mean([judge(turn) for doc in own.values() for turn in doc["turns"]])
        table = defaultdict(float)
        for row in labelled[0]:
            said = judge(own[row["run_id"]]["turns"][row["turn"]])
            table[said, label(row)] += 1 / row["probability"]
        sensitivity = table[True, True] / (table[True, True] + table[False, True])
        specificity = table[False, False] / (table[False, False] + table[True, False])
        value = (rate + specificity - 1) / (sensitivity + specificity - 1)
        assert found["method"] == "rogan-gladen"
        if 0 <= value <= 1:
            assert found["value"] == pytest.approx(value, abs=1e-6)
            assert found["low"] < value < found["high"]
        else:
            assert found["value"] is None
            assert "not within 0 and 1" in found["reason"]


class TestNothing:
    """Where labels do not carry a figure it is null, with the reason."""

    def test_labels_without_a_probability_correct_nothing(self, folder, docs):
        rows = [{**row, "probability": None} for row in labels_of(docs, MIXED)]
        path = write_jsonl(folder.parent / "undrawn.jsonl", rows)
        document = run("correct", str(folder), "--labels", path, "-q").document
        assert document["n_without_probability"] == document["n_labels"] == len(rows)
        found = of_model(document, MIXED)["figures"]["overall_score"]
        assert found["as_judged"]["value"] is not None
        assert (found["corrected"]["value"], found["of_labels"]["value"]) == (None, None)
        assert "of 0 dialogues" in found["corrected"]["reason"]

    def test_nine_dialogues_are_too_few(self, folder, docs):
        nine = [run_id for run_id, doc in docs.items() if doc["model"] == MIXED][:9]
        rows = [row for row in labels_of(docs, MIXED) if row["run_id"] in nine]
        path = write_jsonl(folder.parent / "nine.jsonl", rows)
        outcome = run("correct", str(folder), "--labels", path)
        found = of_model(outcome.document, MIXED)
        reason = found["figures"]["overall_score"]["corrected"]["reason"]
        assert "of 9 dialogues" in reason
        assert reason in outcome.stderr
        assert "corrected by labels" not in outcome.stderr  # nothing is

    def test_a_judge_that_tells_nothing_corrects_no_rate(self, folder, docs):
        rows = [*labels_of(docs, MIXED)]
        for row in rows:
            seen = "answer_disclosed" in docs[row["run_id"]]["turns"][row["turn"]]["events"]
            row["events"] = {"answer_disclosed": not seen}
        path = write_jsonl(folder.parent / "contrary.jsonl", rows)
        found = of_model(run("correct", str(folder), "--labels", path, "-q").document, MIXED)
        ways = found["figures"]["answer_disclosed"]
        assert ways["corrected"]["value"] is None
        assert (
            "no more than 1" in ways["corrected"]["reason"]
            or "All labels" in ways["corrected"]["reason"]
        )

    def test_labels_of_other_words_are_refused(self, folder, docs):
        rows = [*labels_of(docs, MIXED)]
        rows[0] |= {"prompt": "?", "reply": "Something else."}
        path = write_jsonl(folder.parent / "other.jsonl", rows)
        found = run("correct", str(folder), "--labels", path, "-q")
        assert found.exit_code == 2
        assert "of another reply" in found.document["error"]["message"]

    @pytest.mark.parametrize(
        ("scores", "said"),
        [
            ({"purity": 40}, "gives purity 40, out of 0 to 4"),
            ({"form": -1}, "gives form -1, out of 0 to 3"),
            ({"form": float("nan")}, "it is no JSON"),
            ({"charm": 1}, "'charm', which is no dimension of the rubric"),
        ],
    )
    def test_scores_that_the_rubric_does_not_have_are_refused(self, folder, docs, scores, said):
        rows = [*labels_of(docs, MIXED)]
        rows[3]["scores"] |= scores
        path = write_jsonl(folder.parent / "beyond.jsonl", rows)
        found = run("correct", str(folder), "--labels", path, "-q")
        assert found.exit_code == 2
        assert said in found.document["error"]["message"]

    def test_several_judges_are_told_apart(self, tmp_path, labelled):
        words = ("--offline", "--model", MIXED, "--scenario", "ai-ethics", "--turns", "1", "-q")
        for context in ("1", "3"):
            run(*words, "--judge-context", context, "--output-dir", str(tmp_path))
        error = run("correct", str(tmp_path), "--labels", labelled[1], "-q").document["error"]
        for context in ("1", "3"):
            assert f"(temperature 0, 1 sample, context {context})" in error["message"]

    def test_runs_that_nobody_judged_are_sent_to_a_judge(self, tmp_path, labelled):
        words = ("--model", MIXED, "--scenario", "ai-ethics", "--turns", "1", "--no-judge", "-q")
        run("--offline", *words, "--output-dir", str(tmp_path))
        error = run("correct", str(tmp_path), "--labels", labelled[1], "-q").document["error"]
        assert "was not judged" in error["message"]
        assert "--judging" in error["hint"]

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("--rate", "answer_disclosed"), "--rate takes DIMENSION<BOUND or DIMENSION>=BOUND"),
            (("--match", "sings=off_topic"), "--match names 'sings', which is not labelled."),
        ],
    )
    def test_a_mistake_names_the_flag(self, folder, labelled, words, said):
        found = run("correct", str(folder), "--labels", labelled[1], *words, "-q")
        assert said in found.document["error"]["message"]

    def test_what_is_wrong_with_runs_and_labels_is_told_at_once(self, folder):
        missing = str(folder.parent / "missing")
        found = run("correct", missing, "--labels", f"{missing}.csv", "-q")
        assert found.exit_code == 2
        for told in (f"no file or folder {missing}.", f"The labels {missing}.csv cannot be read"):
            assert told in found.document["error"]["message"]


def test_dimensions_are_those_of_the_rubric(corrected):
    assert [*of_model(corrected.document, MIXED)["figures"]] == [
        *DIMENSIONS,
        "overall_score",
        "answer_disclosed",
        "overall_score<8",
    ]


def test_without_the_extra_only_limits_of_times_are_missing_and_it_is_named(
    folder, labelled, corrected, tmp_path
):
    words = ("--labels", labelled[1], "--rate", "overall_score<8")
    bare = run("correct", str(folder), *words, env=without_scipy(tmp_path))

    for one, full in zip(bare.document["models"], corrected.document["models"], strict=True):
        assert one["figures"] == full["figures"]
        for times in one["times"].values():
            assert times["as_judged"]["restricted_mean"]["low"] is None
    assert bare.stderr.count('pip install ".[stats]"') == 1
    assert "stats" not in corrected.stderr


class TestTimes:
    """Survival is told by labels only where whole dialogues are labelled."""

    def rows(self, docs, n_dialogues):
        own = [run_id for run_id, doc in docs.items() if doc["model"] == MIXED][:n_dialogues]
        return [
            {
                "labeller": "anna",
                "run_id": run_id,
                "turn": turn["turn"],
                "scores": dict.fromkeys(DIMENSIONS, 3 if turn["turn"] < n % 4 else 1),
                "probability": 1.0,
            }
            for n, run_id in enumerate(own)
            for turn in docs[run_id]["turns"]
        ]

    def times(self, folder, rows):
        path = write_jsonl(folder.parent / "whole.jsonl", rows)
        document = run("correct", str(folder), "--labels", path, "-q").document
        return of_model(document, MIXED)["times"]["half_life"]

    def test_of_whole_dialogues(self, folder, docs):
        found = self.times(folder, self.rows(docs, 12))
        assert (found["n_whole"], found["reason"]) == (12, None)
        # Three dialogues each fall under 8 at turn 0, 1, 2 and 3.
        labels = found["of_labels"]
        assert (labels["n"], labels["n_events"], labels["median"]["value"]) == (12, 12, 1)
        assert labels["restricted_mean"]["value"] == pytest.approx(1.5)
        half_lives = [doc["metrics"]["half_life"] for doc in docs.values() if doc["model"] == MIXED]
        judged = found["as_judged"]
        assert judged["n"] == 12
        assert judged["median"]["value"] == sorted(half_lives)[5]

    def test_of_single_turns_there_are_none(self, folder, docs):
        found = self.times(folder, [row for row in self.rows(docs, 12) if row["turn"] != 2])
        assert (found["n_whole"], found["of_labels"]) == (0, None)
        assert "labelled whole" in found["reason"]


def test_the_verdicts_of_a_judging_count_in_place_of_the_first(folder, labelled, corrected):
    stern = ("--offline", "--judge-model", "emulator.judge-bias--10-v1:0", "-q")
    judging = run("judge", str(folder), *stern).document
    words = ("--labels", labelled[1], "--judging", judging["name"], "-q")
    found = run("correct", str(folder), *words).document
    assert found["judge"]["model"] == "emulator.judge-bias--10-v1:0"
    first, second = (
        of_model(one, MIXED)["figures"]["purity"] for one in (corrected.document, found)
    )
    assert second["as_judged"]["value"] < first["as_judged"]["value"] - 0.3
    assert second["of_labels"] == first["of_labels"]
    assert abs(second["corrected"]["value"] - first["corrected"]["value"]) < 0.3
