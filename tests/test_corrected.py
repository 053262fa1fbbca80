"""`compare --labels`: figures and differences as judged, corrected, and by labels alone."""

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
SCENARIOS = [name for name in builtin_ids() if name != "custom"][:7]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Fourteen dialogues of each of two models, in seven scenarios."""
    folder = tmp_path_factory.mktemp("corrected") / "runs"
    words = ("--scenarios", *SCENARIOS, "--repeats", "2", "--turns", str(N_TURNS), "--seed", "7")
    words = (*words, "--lapse-turns", "2")
    assert sweep("--models", MIXED, LECTURER, *words, "-q", folder=folder).exit_code == 0
    return folder


@pytest.fixture(scope="module")
def docs(folder):
    return curated(folder)


def probability(turn):
    """The first turn of each dialogue is always labelled."""
    return 1.0 if turn["turn"] == 0 else 0.4 + 0.1 * (turn["turn"] % 3)


def labels_of(docs, *models):
    """People give a point less for purity, and see a disclosed answer now and then otherwise."""
    dice = Random(1)
    for run_id, doc in sorted(docs.items(), key=lambda item: (item[1]["scenario"], item[0])):
        for turn in doc["turns"]:
            if doc["model"] not in models or dice.random() >= probability(turn):
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
def rows(docs):
    return [*labels_of(docs, MIXED, LECTURER)]


@pytest.fixture(scope="module")
def path(folder, rows):
    return write_jsonl(folder.parent / "labels.jsonl", rows)


@pytest.fixture(scope="module")
def outcome(folder, path):
    return run("compare", str(folder), "--labels", path, "--rate", "overall_score<8")


@pytest.fixture(scope="module")
def corrected(outcome):
    assert outcome.exit_code == 0, outcome
    assert_valid("comparison", outcome.document)
    return outcome.document["corrected"]


def of_model(corrected, model):
    return next(entry for entry in corrected["models"] if entry["name"] == model)["figures"]


def mean_and_parts(values):
    """The weighted mean of (scenario, value, weight), and what each scenario adds to it."""
    weights = [weight for *_, weight in values]
    mean = np.average([value for _, value, _ in values], weights=weights)
    parts = defaultdict(float)
    for scenario, value, weight in values:
        parts[scenario] += weight * (value - mean) / sum(weights)
    return mean, parts


def label_values(docs, rows, model, name):
    return [
        (docs[row["run_id"]]["scenario"], row["scores"][name], 1 / row["probability"])
        for row in rows
        if docs[row["run_id"]]["model"] == model
    ]


def judge_values(docs, model, name):
    return [
        (doc["scenario"], turn["scores"][name], 1)
        for doc in docs.values()
        if doc["model"] == model
        for turn in doc["turns"]
    ]


def test_labels_alone_weigh_each_by_its_probability_and_vary_by_scenario(docs, rows, corrected):
    mean, parts = mean_and_parts(label_values(docs, rows, MIXED, "purity"))
    error = (sum(part**2 for part in parts.values()) * 7 / 6) ** 0.5
    half = stats.t.ppf(0.975, 6) * error

    estimated = of_model(corrected, MIXED)["purity"]["of_labels"]
    expected = (mean, max(0, mean - half), min(4, mean + half))
    assert (estimated["value"], estimated["low"], estimated["high"]) == pytest.approx(expected)
    assert (estimated["n_dialogues"], estimated["n_scenarios"]) == (14, 7)


def test_the_difference_is_of_scenarios_that_both_models_share(docs, rows, corrected):
    (pair,) = corrected["pairs"]
    means = {
        model: mean_and_parts(label_values(docs, rows, model, "purity"))
        for model in (MIXED, LECTURER)
    }
    (mean, parts), (other_mean, other_parts) = means[pair["first"]], means[pair["second"]]
    apart = [parts[scenario] - other_parts[scenario] for scenario in parts]
    half = stats.t.ppf(0.975, 6) * (sum(part**2 for part in apart) * 7 / 6) ** 0.5

    estimated = pair["differences"]["purity"]["of_labels"]
    value = mean - other_mean
    assert estimated["value"] == pytest.approx(value)
    assert estimated["high"] == pytest.approx(min(4, value + half))


@pytest.mark.parametrize("name", [*DIMENSIONS, "overall_score", "answer_disclosed"])
def test_a_correction_is_never_wider_than_labels_alone(corrected, name):
    (pair,) = corrected["pairs"]
    ways = pair["differences"][name]
    # A limit beyond the range of a difference is cut to it, so the longer side counts.
    sides = [
        max(ways[way]["high"] - ways[way]["value"], ways[way]["value"] - ways[way]["low"])
        for way in ("corrected", "of_labels")
    ]
    # Four figures, each rounded to six places.
    assert 0 < sides[0] <= sides[1] + 2.1e-6
    assert 0 <= ways["corrected"]["tuning"] <= 1


def test_corrected_moves_labels_by_the_judges_shift_times_lambda(docs, rows, corrected):
    ways = of_model(corrected, MIXED)["purity"]
    labels, _ = mean_and_parts(label_values(docs, rows, MIXED, "purity"))
    verdicts = judge_values(docs, MIXED, "purity")
    judged = [
        (scenario, docs[row["run_id"]]["turns"][row["turn"]]["scores"]["purity"], weight)
        for row, (scenario, _, weight) in zip(
            [row for row in rows if docs[row["run_id"]]["model"] == MIXED],
            label_values(docs, rows, MIXED, "purity"),
            strict=True,
        )
    ]
    shift = mean_and_parts(verdicts)[0] - mean_and_parts(judged)[0]
    expected = labels + ways["corrected"]["tuning"] * shift
    assert ways["corrected"]["value"] == pytest.approx(expected, abs=1e-5)
    assert ways["as_judged"]["value"] == pytest.approx(mean_and_parts(verdicts)[0])


def test_the_main_difference_is_the_first_line_of_its_table(outcome, corrected):
    (pair,) = corrected["pairs"]
    main = pair["differences"][corrected["main_figure"]]["corrected"]
    assert corrected["main_figure"] == "overall_score"
    assert (
        f"{pair['first']} minus {pair['second']}, corrected by labels of "
        f"{corrected['n_labels']} turns: overall_score {main['value']:.2f} ({main['low']:.2f} to"
    ) in outcome.stderr


def test_figures_are_those_of_the_rubric_the_labels_and_the_flags(corrected):
    names = [*of_model(corrected, MIXED)]
    assert names == ["overall_score", *DIMENSIONS, "answer_disclosed", "overall_score<8"]


def test_a_model_without_labels_of_its_own_has_no_corrected_figure(folder, docs):
    path = write_jsonl(folder.parent / "mixed.jsonl", labels_of(docs, MIXED))
    outcome = run("compare", str(folder), "--labels", path)
    corrected = outcome.document["corrected"]
    (pair,) = corrected["pairs"]
    for ways in (of_model(corrected, LECTURER)["purity"], pair["differences"]["purity"]):
        assert ways["as_judged"]["value"] is not None
        assert ways["corrected"]["value"] is ways["of_labels"]["value"] is None
        assert f"Labels of {LECTURER}" in ways["corrected"]["reason"]
        assert "of 0 dialogues: it takes 10" in ways["corrected"]["reason"]
        assert ways["corrected"]["reason"] in outcome.stderr
    assert of_model(corrected, MIXED)["purity"]["corrected"]["value"] is not None


def test_too_few_scenarios_have_a_value_and_no_interval(folder, docs):
    rows = [
        row for row in labels_of(docs, MIXED) if docs[row["run_id"]]["scenario"] in SCENARIOS[:5]
    ]
    path = write_jsonl(folder.parent / "five.jsonl", rows)
    document = run("compare", str(folder), "--labels", path, "-q").document
    estimated = of_model(document["corrected"], MIXED)["purity"]["corrected"]
    assert (estimated["n_dialogues"], estimated["n_scenarios"]) == (10, 5)
    assert estimated["value"] is not None
    assert estimated["low"] is None
    assert estimated["reason"] == "There is no interval of 5 scenarios: it takes 6."


def test_nine_dialogues_are_too_few(folder, docs):
    nine = [run_id for run_id, doc in docs.items() if doc["model"] == MIXED][:9]
    rows = [row for row in labels_of(docs, MIXED) if row["run_id"] in nine]
    path = write_jsonl(folder.parent / "nine.jsonl", rows)
    document = run("compare", str(folder), "--labels", path, "-q").document
    estimated = of_model(document["corrected"], MIXED)["overall_score"]["corrected"]
    assert (estimated["value"], estimated["n_dialogues"]) == (None, 9)


def test_labels_without_a_probability_correct_nothing(folder, docs):
    rows = [{**row, "probability": None} for row in labels_of(docs, MIXED)]
    path = write_jsonl(folder.parent / "undrawn.jsonl", rows)
    outcome = run("compare", str(folder), "--labels", path)
    assert outcome.exit_code == 0, outcome
    corrected = outcome.document["corrected"]
    assert corrected["n_without_probability"] == corrected["n_labels"] == len(rows)
    ways = of_model(corrected, MIXED)["overall_score"]
    assert (ways["corrected"]["value"], ways["of_labels"]["value"]) == (None, None)


def test_turns_held_are_corrected_where_whole_dialogues_are_labelled(folder, docs):
    metric = "turns_held"
    rows = [
        {
            "labeller": "anna",
            "run_id": run_id,
            "turn": turn["turn"],
            "scores": dict.fromkeys(DIMENSIONS, 1),
            "probability": 0.5,
        }
        for run_id, doc in docs.items()
        for turn in doc["turns"]
    ]
    path = write_jsonl(folder.parent / "whole.jsonl", rows)
    corrected = run("compare", str(folder), "--labels", path, "-q").document["corrected"]
    assert corrected["main_figure"] == metric
    ways = of_model(corrected, MIXED)[metric]
    held = [doc["metrics"][metric] for doc in docs.values() if doc["model"] == MIXED]
    assert ways["as_judged"]["value"] == pytest.approx(np.mean(held), abs=1e-6)
    # People score every turn under the threshold.
    assert (ways["of_labels"]["value"], ways["of_labels"]["low"]) == (0, None)
    assert ways["of_labels"]["reason"].startswith("All scenarios have the same value")
    rows = [row for row in rows if row["turn"] != 2]
    path = write_jsonl(folder.parent / "parts.jsonl", rows)
    corrected = run("compare", str(folder), "--labels", path, "-q").document["corrected"]
    assert metric not in of_model(corrected, MIXED)


def test_one_model_is_enough(tmp_path, folder, docs, path):
    runs = tmp_path / "curated/runs"
    runs.mkdir(parents=True)
    for run_id, doc in docs.items():
        if doc["model"] == MIXED:
            body = (folder / f"curated/runs/{run_id}.json").read_bytes()
            (runs / f"{run_id}.json").write_bytes(body)
    corrected = run("compare", str(tmp_path), "--labels", path, "-q").document["corrected"]
    assert [model["name"] for model in corrected["models"]] == [MIXED]
    assert corrected["pairs"] == []


def test_without_the_extra_figures_are_the_same(folder, path, corrected, tmp_path):
    words = ("--labels", path, "--rate", "overall_score<8")
    bare = run("compare", str(folder), *words, env=without_scipy(tmp_path)).document["corrected"]
    assert bare["models"] == corrected["models"] or bare["models"][::-1] == corrected["models"]


def test_the_verdicts_of_a_judging_count_in_place_of_the_first(folder, path, corrected):
    stern = ("--offline", "--judge-model", "emulator.judge-bias--10-v1:0", "-q")
    judging = run("judge", str(folder), *stern).document
    words = ("--labels", path, "--judging", judging["name"], "-q")
    by_other = run("compare", str(folder), *words).document["corrected"]
    assert by_other["judge"]["model"] == "emulator.judge-bias--10-v1:0"
    first, second = (of_model(figures, MIXED)["purity"] for figures in (corrected, by_other))
    assert second["as_judged"]["value"] < first["as_judged"]["value"] - 0.3
    assert second["of_labels"] == first["of_labels"]
    assert abs(second["corrected"]["value"] - first["corrected"]["value"]) < 0.3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": "?", "reply": "Something else."}, "is of another reply"),
        ({"scores": {"purity": 40}}, "line 1: purity is 40: a score is 0 to 4 in steps of 0.5"),
        ({"scores": {"form": 2.3}}, "line 1: form is 2.3: a score is 0 to 3 in steps of 0.5"),
        ({"scores": {"form": float("nan")}}, "line 1: it is not valid JSON"),
        ({"scores": {"charm": 1}}, "line 1: 'charm' is not a dimension of the rubric"),
        ({"run_id": "run-none"}, "No label is of a turn of these runs"),
    ],
)
def test_labels_that_do_not_fit_are_refused(folder, rows, change, message):
    path = write_jsonl(folder.parent / "other.jsonl", [{**rows[0], **change}])
    outcome = run("compare", str(folder), "--labels", path, "-q")
    assert outcome.exit_code == 2
    assert message in outcome.document["error"]["message"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--rate", "answer_disclosed"), "--rate takes DIMENSION<BOUND or DIMENSION>=BOUND"),
        (("--match", "sings=off_topic"), "--match names 'sings', which is not labelled."),
    ],
)
def test_a_mistake_names_the_flag(folder, path, words, message):
    outcome = run("compare", str(folder), "--labels", path, *words, "-q")
    assert message in outcome.document["error"]["message"]


def test_rates_without_labels_are_a_mistake(folder):
    outcome = run("compare", str(folder), "--rate", "overall_score<8", "-q")
    assert "--match and --rate need --labels." in outcome.document["error"]["message"]


def test_several_judges_are_told_apart(tmp_path, path):
    words = ("--offline", "--model", MIXED, "--scenario", "ai-ethics", "--turns", "1", "-q")
    for context in ("1", "3"):
        run(*words, "--judge-context", context, "--output-dir", str(tmp_path))
    outcome = run("compare", str(tmp_path), "--labels", path, "--allow", "-q")
    for context in ("1", "3"):
        part = f"(temperature 0, 1 sample, context {context})"
        assert part in outcome.document["error"]["message"]


def test_runs_that_nobody_judged_are_sent_to_a_judge(tmp_path, path):
    words = ("--model", MIXED, "--scenario", "ai-ethics", "--turns", "1", "--no-judge", "-q")
    run("--offline", *words, "--output-dir", str(tmp_path))
    error = run("compare", str(tmp_path), "--labels", path, "-q").document["error"]
    assert "have no judge scores" in error["message"]
    assert "--judging" in error["hint"]


@pytest.mark.parametrize(
    ("command", "instead"),
    [("correct", "compare --labels FILE"), ("mrbench", "calibrate --mrbench FILE")],
)
def test_a_command_that_is_gone_names_what_replaces_it(command, instead):
    outcome = run(command, "runs")
    assert outcome.exit_code == 2
    message = outcome.document["error"]["message"]
    assert message == f"The command {command} was removed: use socratic-runner {instead}."
