"""The benchmark `execution`: models of known truth come out at their values; answers are read."""

import json
import re
import subprocess
import threading
import warnings
from collections import Counter
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from scipy import stats

from socratic_bench import RunConfig
from socratic_bench.benchmarks.execution.answers import read_choice, read_prediction
from socratic_bench.runs import prepare
from socratic_bench.runs.dry_run import dry_run
from tests.command import CLAUDE, account, assert_valid, begin, daily, run
from tests.execution_runs import (
    ALL,
    MODEL,
    SHIPPED,
    answering,
    data_set,
    emulated,
    fitting,
    many,
    prompt_of,
    row,
    rows,
    tagged,
)
from tests.fakes import PATIENCE_S, FakeBedrock, answer, refusal

TRUTH = {
    "executes": {"oc": 1, "mc": 1, "or": 0, "mr": 0, "answered": 1, "order_consistency": 1},
    "recalls": {"oc": 1, "mc": 0, "or": 0, "mr": 1, "preference": 1, "choice_oc": 1},
    "recalls-25": {"oc": 1, "mc": 0.75, "or": 0},
    "picks-a": {"preference": 0.5, "position_bias": 1, "order_consistency": 0, "choice_correct": 1},
    "truncates": {"truncated": 1, "answered": 0, "oc": None, "mc": None, "preference": None},
}


@cache
def played(model: str, *words: str) -> Any:
    """The document of a run of one of the emulator's models."""
    base = ("--offline", "--benchmark", "execution", "--model", f"emulator.{model}-v1:0")
    outcome = run(*base, "--pred-generations", "2", "--seed", "1", *words)
    assert outcome.exit_code == 0, outcome
    return fitting(json.loads(outcome.stdout))


def both(model: str) -> Any:
    """Both tasks: of the two that figures are checked by, over all problems."""
    whole = model in ("executes", "recalls-25")
    few = ("--pred-num-problems", "6", "--choice-num-problems", "6")
    return played(model, "--task", "both", *(ALL if whole else few))


# --- models of known truth ---


@pytest.mark.parametrize("model", daily(TRUTH, "executes", "recalls-25", "picks-a"))
def test_a_model_of_known_truth_comes_out_at_its_values(model):
    document = both(model)

    assert document["metrics"].items() >= TRUTH[model].items()
    assert document["status"] == "completed"
    assert document["items"]["missing"] == []


def test_the_mixture_recalls_a_quarter_of_the_problems_that_can_tell():
    """Six of twenty-four; those with outputs that are True or False tell no reversion."""
    document = both("recalls-25")
    wrong = {
        turn["problem_id"]
        for turn in document["turns"]
        if turn["task"] == "prediction" and turn["heuristics"]["outcome"] != "correct"
    }
    boolean = {one["id"] for one in rows() if {"True", "False"} & {*_listed(one["output"])}}

    assert len(wrong) == len(rows()) / 4
    told = document["prediction"]["mutated"]["reversion"]
    assert told["successes"] == 2 * len(wrong - boolean)
    assert told["n_problems"] == len(rows()) - document["prediction"]["skipped_reversion"]


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else value


def test_prediction_asks_each_case_of_each_program_so_many_times():
    document = both("executes")
    cases = sum(len(_listed(one["input"])) for one in rows())

    asked = [turn for turn in document["turns"] if turn["task"] == "prediction"]
    assert len(asked) == cases * 2 * 2
    chosen = [turn for turn in document["turns"] if turn["task"] == "choice"]
    assert len(chosen) == cases * 2
    assert sum(turn["program"] == "original" for turn in chosen) == cases
    assert document["prediction"]["original"]["outcomes"]["correct"] == cases * 2


def test_what_was_cut_off_is_no_wrong_answer():
    prediction = both("truncates")["prediction"]

    assert prediction["original"]["correct"]["n"] == 0
    assert prediction["original"]["pass_at_1"]["value"] == 0
    assert prediction["mutated"]["outcomes"]["other_wrong"] == 0
    assert both("truncates")["items"]["truncated"] == both("truncates")["items"]["total"]


def test_a_level_of_reasoning_is_a_sentence_and_a_budget_and_levels_are_compared_in_pairs():
    """The model executes from the second level's budget on, and recalls below it."""
    document = played("hasty", "--compare-reasoning", "--comparison-samples", "6")
    low, medium, high = document["reasoning"]

    assert [one["thinking_budget_tokens"] for one in (low, medium, high)] == [1024, 2048, 4096]
    assert len({one["sentence"] for one in (low, medium, high)}) == 3
    assert low["to_lowest"] is None
    for one in (medium, high):
        assert one["to_lowest"]["mc"]["mean"] == 1
        assert one["to_lowest"]["mr"]["mean"] == -1
        assert one["to_lowest"]["oc"]["mean"] == 0
        assert one["to_lowest"]["mc"]["n_problems"] == 6
        assert one["mean_output_tokens"] > 0
    assert document["metrics"]["mc"] == 0


# --- figures ---


def test_an_interval_is_clustered_by_problem():
    """Wilson's, by its formula, over the problems' own sums."""
    document = both("recalls-25")
    shares: dict[str, list[float]] = {}
    for turn in document["turns"]:
        if (turn["task"], turn["program"]) == ("prediction", "mutated"):
            by_round = shares.setdefault(turn["problem_id"], [])
            by_round.append(turn["heuristics"]["outcome"] == "correct")
    n = 2 * len(shares)  # generations
    right = {name: 2 * all(some) for name, some in shares.items()}
    p = sum(right.values()) / n
    squares = sum((one - 2 * p) ** 2 for one in right.values())
    error = sqrt(squares * len(shares) / (len(shares) - 1)) / n
    z = stats.t.ppf(0.975, len(shares) - 1)
    effective = p * (1 - p) / error**2
    middle = (p + z**2 / (2 * effective)) / (1 + z**2 / effective)
    half = z * sqrt(p * (1 - p) / effective + (z / (2 * effective)) ** 2) / (1 + z**2 / effective)

    told = document["prediction"]["mutated"]["correct"]
    assert (told["value"], told["n"], told["n_problems"]) == (p, n, len(shares))
    assert (told["low"], told["high"]) == pytest.approx((middle - half, middle + half), abs=1e-6)


def test_the_gap_is_of_pairs():
    gap = both("recalls-25")["prediction"]["correct_gap"]
    n = len(rows())
    differences = [1.0] * (n // 4) + [0.0] * (n - n // 4)
    expected = stats.ttest_1samp(differences, 0).confidence_interval(0.95)

    assert (gap["mean"], gap["n_problems"]) == (0.25, n)
    assert (gap["low"], gap["high"]) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_runs_are_compared_problem_by_problem(tmp_path):
    """One run of each model is enough: the problems are the sample."""
    files = [tmp_path / f"{model}.json" for model in ("executes", "recalls-25")]
    for file in files:
        file.write_text(json.dumps(both(file.stem)))
    outcome = run("compare", *map(str, files), "--metrics", "mc", "preference")
    document = fitting(json.loads(outcome.stdout))
    gap = document["pairs"][0]["differences"]["mc"]
    n = len(rows())
    differences = [1.0] * (n // 4) + [0.0] * (n - n // 4)
    expected = stats.ttest_1samp(differences, 0)

    assert (outcome.exit_code, gap["mean"], gap["n_clusters"]) == (0, 0.25, n)
    interval = expected.confidence_interval(0.95)
    assert (gap["low"], gap["high"]) == pytest.approx((interval.low, interval.high), abs=1e-6)
    means = {one["model"]: one["metrics"]["mc"] for one in document["contenders"]}
    told = both("recalls-25")["prediction"]["mutated"]["correct"]
    assert means["emulator.recalls-25-v1:0"]["low"] == pytest.approx(told["low"], abs=1e-6)


def test_a_sweeps_means_are_clustered_by_problem_and_so_are_its_gates(tmp_path):
    models = ("emulator.executes-v1:0", "emulator.recalls-25-v1:0")
    words = ("--benchmark", "execution", "--models", *models, "--pred-num-problems", "0")
    words = (*words, "--pred-generations", "2", "--fail-under", "mc.low=0.6", "--seed", "1")
    outcome = run("sweep", "--offline", *words, "-q", "-o", str(tmp_path))
    groups = {one["value"]: one["metrics"] for one in outcome.document["groups"]["model"]}
    gates = {one["name"]: one for one in outcome.document["figure_gates"]}

    assert_valid("sweep", outcome.document)
    for name, model in zip(("executes", "recalls-25"), models, strict=True):
        found, told = groups[model]["mc"], both(name)["prediction"]["mutated"]["correct"]
        assert (found["n_clusters"], found["scope"]) == (len(rows()), "scenarios like these")
        for key, same in (("mean", "value"), ("low", "low"), ("high", "high")):
            assert found[key] == pytest.approx(told[same], abs=1e-6)
        assert (gates[model]["value"], gates[model]["passed"]) == (found["low"], name == "executes")
    # More runs of the same problems do not narrow it.
    assert {one["runs_to_halve"] for one in groups[models[1]].values()} == {None}
    assert (outcome.exit_code, outcome.document["error"]["code"]) == (5, "gate")
    compared = run("compare", str(tmp_path), "-q").document["contenders"]
    for one in compared:
        assert one["metrics"] == {name: groups[one["model"]][name] for name in one["metrics"]}


def test_a_gate_on_what_a_task_does_not_ask_or_of_one_problem_is_refused(tmp_path):
    words = ("--benchmark", "execution", "--models", "emulator.executes-v1:0", "-o", str(tmp_path))
    gates = ("--fail-under", "preference.low=0.1", "--fail-under", "mc.low=0.1")
    outcome = run("sweep", "--offline", *words, "--pred-num-problems", "1", *gates)

    assert (outcome.exit_code, [*tmp_path.iterdir()]) == (2, [])
    assert "preference.low: nothing of what is asked for has preference" in outcome.stderr
    assert "mc.low: limits of intervals need 2 samples at least, not 1." in outcome.stderr


# --- answers ---


def nested(depth: int) -> Any:
    value: Any = (1,)
    for _ in range(depth - 1):
        value = (value,)
    return value


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("[ANSWER]\nassert f(x=[(1, 2)]) == 5\n[/ANSWER]", 5),
        ("[answer]5[/answer]", 5),
        ("<answer>assert f(1) == [1, 2]</answer>", [1, 2]),
        ("[ANSWER]```python\nassert f(1) == {'a': (1,)}\n```[/ANSWER]", {"a": (1,)}),
        ("[ANSWER]1[/ANSWER] No, wait. [ANSWER]2[/ANSWER] That is it.", 2),
        ("Between [ANSWER] and [/ANSWER], as asked: [ANSWER]assert f(1) == 3[/ANSWER]", 3),
        (
            "[ANSWER]assert f(1) == 'an [ANSWER] in [/ANSWER] it'[/ANSWER]",
            "an [ANSWER] in [/ANSWER] it",
        ),
        ("[ANSWER]assert f(')') == \"it's (a) 'b'\"[/ANSWER]", "it's (a) 'b'"),
        ("[ANSWER]assert f(1) == -1.5e-3, 'said'[/ANSWER]", -0.0015),
        ("[ANSWER]assert f(1) == set()[/ANSWER]", set()),
        ("[ANSWER]assert f(1) == float('-inf')[/ANSWER]", float("-inf")),
        ("[ANSWER]assert f(1) == b'\\x00'[/ANSWER]", b"\0"),
        (f"[ANSWER]assert f(1) == {10**300}[/ANSWER]", 10**300),
        (f"[ANSWER]{'[' * 90}{']' * 90}[/ANSWER]", json.loads("[" * 90 + "]" * 90)),
        ("First, x is 1.\nassert g(1) == 3\nassert f(1) == 4\nSo it is.", 4),
        ("`assert f(1) == 4`", 4),
        ("**assert f(1) == 4**", 4),
        ("**[ANSWER]**\nassert f(1) == 4\n**[/ANSWER]**", 4),
        ("[ANSWER]**4**[/ANSWER]", 4),
        ("assert Solution().f(1) == 4", 4),
        ("[ANSWER]assert f(1) == 'a ```b``` c'[/ANSWER]", "a ```b``` c"),
        ("[ANSWER] `assert f(1) == 6` [/ANSWER]", 6),
        (f"[ANSWER]{'(' * 180}1{',)' * 180}[/ANSWER]", nested(180)),
        ("[ANSWER]\nassert f(1) == None", None),
        ("[ANSWER]\nThe loop ends with 4, so:\nassert f(1) == 4\nThat is all.\n[/ANSWER]", 4),
        ("[ANSWER]So it is:\n```python\nassert f(1) == 4\n```\n[/ANSWER]", 4),
        ("[ANSWER]\nSo it is:\nassert f(1) == [\n    1,\n    2,\n]\n[/ANSWER]", [1, 2]),
        ("[ANSWER]\nassert f(1) == ??\nassert g(1) == 3\nassert f(1) == 4\n[/ANSWER]", 4),
        ("[ANSWER]\nFirst:\nassert f(1) == 4\nOnce more:\nassert f(1) == 4.0\n[/ANSWER]", 4.0),
    ],
)
def test_answers_are_read_as_literals(reply, value):
    found = read_prediction(reply, "f")

    assert found is not None
    assert found.value == value
    assert type(found.value) is type(value)


@pytest.mark.parametrize(
    "form", ["{}", "[ANSWER]{}[/ANSWER]", "[ANSWER]\nSo it is:\n{}\n[/ANSWER]"]
)
def test_odd_escapes_in_answers_are_not_warned_of(form):
    """Whether a warning is told or raised, or goes to stderr, is up to the version of Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read_prediction(form.format(r"assert f('\d') == '\w'"), "f")

    assert found is not None
    assert found.value == "\\w"


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "It is 5.",
        "assert g(1) == 5",
        "[ANSWER]assert f(1) == 2 + 3[/ANSWER]",
        "[ANSWER]assert f(1) == g(2)[/ANSWER]",
        "[ANSWER]assert f(1) == ??[/ANSWER]",
        "[ANSWER]5[/ANSWER] [ANSWER]about six[/ANSWER]",
        f"[ANSWER]{'[' * 50_000}[/ANSWER]",
        "[/ANSWER][ANSWER]",
        "[ANSWER]\nassert f(1) == 4\nNo, rather:\nassert f(1) == 5\n[/ANSWER]",
        "[ANSWER]\nSo it is:\nassert g(1) == 5\n[/ANSWER]",
        "assert f(1) == 3 [ANSWER]It is 5, or so.[/ANSWER]",
    ],
)
def test_what_is_no_literal_is_not_read(reply):
    assert read_prediction(reply, "f") is None


WITHIN = "an [ANSWER] in [/ANSWER] it"


def said(chosen: str, assertion: str = "assert f(1) == 2") -> str:
    return json.dumps({"chosen_program": chosen, "assertion": assertion})


@pytest.mark.parametrize(
    ("reply", "chosen", "value"),
    [
        (said("A"), "A", 2),
        (f"I take it.\n```json\n{said('program b')}\n```", "B", 2),
        (f"{said('A')} or rather {said(' b. ')}", "B", 2),
        (said("B", "assert f('{\"a\": 1}') == {'k': '{'}"), "B", {"k": "{"}),
        (said("A", "[ANSWER]assert f(1) == 7[/ANSWER]"), "A", 7),
        (said("A", "assert f(1) == '[ANSWER]7[/ANSWER]'"), "A", "[ANSWER]7[/ANSWER]"),
        (said("A", "[ANSWER]'an [ANSWER] in [/ANSWER] it'[/ANSWER]"), "A", WITHIN),
        (said("A", "(1, 2)"), "A", (1, 2)),
        (said("A") + ' {"note": "done"}', "A", 2),
        (r"""{"chosen_program": "B", "assertion": "assert f(1) == 'it\'s'"}""", "B", "it's"),
    ],
)
def test_a_choice_is_the_last_object_that_names_a_program(reply, chosen, value):
    found = read_choice(reply)

    assert found is not None
    assert (found.chosen, found.value) == (chosen, value)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "A",
        said("C"),
        said("A", "it is 2"),
        '{"chosen_program": "A"}',
        '{"chosen_program": 1}',
        '{"a":' * 3000,
    ],
)
def test_a_choice_that_names_none_or_has_no_literal_is_not_read(reply):
    assert read_choice(reply) is None


def play(service, script, *words: str, exit_code: int = 0) -> Any:
    service.scripts[MODEL] = script
    base = ("--benchmark", "execution", "--model", MODEL, "--region", "us-east-1")
    outcome = run(*base, "--max-attempts", "1", *words, env=account(service.url, MODEL))
    assert outcome.exit_code == exit_code, outcome
    return fitting(json.loads(outcome.stdout))


DEEP = "[" * 190 + "]" * 190
ODD = [
    ("nan", "1", "[ANSWER]float('nan')[/ANSWER]", "correct"),
    ("{1, 2}", "{1}", tagged("{2, 1}"), "correct"),
    ("((1, (2, [3])),)", "()", tagged("((1, (2, (3,))),)"), "other_wrong"),
    ("-0.0", "1.0", tagged("0"), "correct"),
    ("0.1", "0.30000000000000004", tagged("0.3"), "other_wrong"),
    ("'a\"b\\'c'", "''", tagged("'a\"b\\'c'"), "correct"),
    (str(2**4000), "1", tagged(str(2**4000)), "correct"),
    ("b'\\xff'", "b''", tagged("b''"), "reversion"),
    ("1", "2", tagged("True"), "other_wrong"),
    ("True", "False", tagged("False"), "other_wrong"),
    ("True", "False", tagged("1"), "other_wrong"),
    ("{'a': [1]}", "{}", tagged("dict(a=[1])"), "unparsed"),
    ("3", "3.0", tagged("3.0"), "correct"),
    ("4", "4", tagged("5"), "other_wrong"),
    ("[1]", "[2]", answer(tagged("[1]"), "max_tokens"), "truncated"),
    ("[1]", "[2]", answer("No.", "refusal"), "refused"),
    ("[1]", "[2]", answer("", "content_filtered"), "refused"),
    ("None", "0", tagged("None"), "correct"),
    (DEEP, "[]", tagged(DEEP), "correct"),
    (DEEP, "[]", tagged("[]"), "reversion"),
]


def test_odd_answers_are_what_they_are(service, tmp_path):
    problems = [
        row(f"f{n}", output=output, mutated_output=other)
        for n, (output, other, *_) in enumerate(ODD)
    ]
    said_of = {f"f{n}(1)": reply for n, (*_, reply, _) in enumerate(ODD)}
    place = data_set(tmp_path, *problems)
    words = ("--dataset", place, "--pred-num-problems", "0", "--pred-generations", "1")
    document = play(service, answering(said_of), *words)

    found = {
        turn["problem_id"]: turn["heuristics"]["outcome"]
        for turn in document["turns"]
        if turn["program"] == "original"
    }
    assert found == {f"f{n}": expected for n, (*_, expected) in enumerate(ODD)}
    mismatched = [t["problem_id"] for t in document["turns"] if t["heuristics"]["shape_mismatch"]]
    assert {*mismatched} == {"f2"}
    n_whole = sum(expected in ("correct", "reversion", "other_wrong") for *_, expected in ODD)
    assert document["prediction"]["original"]["correct"]["n"] == n_whole
    assert document["prediction"]["original"]["pass_at_1"]["n"] == len(ODD)
    # Outputs that are equal, or True and False, tell nothing.
    told = document["prediction"]["original"]["reversion"]
    assert (told["n"], told["successes"]) == (n_whole - 4, 2)


def test_a_generation_of_several_cases_is_right_if_all_of_them_are(service, tmp_path):
    place = data_set(
        tmp_path,
        row(input=["f(1)", "f(2)"], output=["2", "3"], mutated_output=["0", "3"]),
        row("g", input=["g(1)", "g(2)"], output=["2", "3"], mutated_output=["0", "1"]),
    )
    replies = {"f(1)": tagged("2"), "f(2)": tagged("3"), "g(1)": tagged("2"), "g(2)": tagged("9")}
    document = play(service, answering(replies), "--dataset", place, "--pred-generations", "3")
    original = document["prediction"]["original"]
    mutated = document["prediction"]["mutated"]

    assert (original["correct"]["value"], original["correct_cases"]["value"]) == (0.5, 0.75)
    # f(2) tells nothing, since both programs return the same there; g(2) is neither's.
    assert (mutated["reversion"]["value"], mutated["reversion"]["n"]) == (0.5, 6)
    assert mutated["reversion_cases"]["value"] == pytest.approx(2 / 3, abs=1e-6)


def test_an_odd_decision_has_an_order_that_the_seed_draws(service, tmp_path):
    """The model picks A and runs the original: right where that is A, else the other's output."""
    place = data_set(tmp_path, *(row(f"f{n}") for n in range(12)))
    replies = {f"f{n}(1)": said("A") for n in range(12)}
    base = ("--dataset", place, "--task", "choice", "--choice-runs", "3", "--no-choice-control")
    first, again, other = (
        play(service, answering(replies), *base, "--choice-seed", seed) for seed in ("1", "1", "2")
    )
    shown = [
        [(t["problem_id"], t["round"], t["program"]) for t in one["turns"]]
        for one in (first, again, other)
    ]

    assert shown[0] == shown[1]
    assert {*shown[0]} != {*shown[2]}
    as_a = sum(program == "original" for *_, program in shown[0])
    assert 12 < as_a < 24
    assert len({(name, program) for name, _, program in shown[0]}) == 24  # each in both orders
    choice = first["choice"]
    assert (first["prediction"], choice["control"], first["oc"]) == (None, None, None)
    assert first["preference"] == choice["preference"]["value"] == round(as_a / 36, 6)
    assert choice["original"]["correct"]["value"] == 1
    assert choice["mutated"]["reversion"]["value"] == 1
    assert choice["preference_as_a"]["value"] == 1
    assert choice["preference_as_b"]["value"] == 0
    assert choice["order_consistency"]["value"] == 0


def test_an_outage_is_missing_and_no_wrong_answer(service, tmp_path, monkeypatch):
    monkeypatch.setenv("BEDROCK_MODEL_IDS", json.dumps([MODEL]))
    place = data_set(tmp_path, row(), row("g"))
    gone = refusal(503, "ServiceUnavailableException")
    words = ("--dataset", place, "--pred-generations", "2", "--output-dir", str(tmp_path / "out"))
    document = play(service, answering({"f(1)": tagged("2"), "g(1)": gone}), *words, exit_code=4)

    assert document["status"] == "partial"
    assert document["prediction"]["original"]["correct"]["value"] == 1
    assert document["prediction"]["original"]["missing"] == 2
    assert len(document["items"]["missing"]) == 4
    service.reset()
    service.scripts[MODEL] = answering({"f(1)": tagged("2"), "g(1)": tagged("2")})
    again = ("resume", document["run_id"], "--output-dir", str(tmp_path / "out"))
    other = run(*again, "--turns", "0", env=account(service.url, MODEL))
    refused = fitting(json.loads(other.stdout))
    assert (refused["benchmark"], refused["model"]) == ("execution", MODEL)
    outcome = run(*again, env=account(service.url, MODEL))
    whole = fitting(json.loads(outcome.stdout))
    assert (outcome.exit_code, len(service.sent)) == (0, 4)
    files = [*(tmp_path / "out").rglob("*.json")]
    kinds = Counter(fitting(json.loads(file.read_bytes()))["kind"] for file in files)
    assert kinds == {"turn": 8, "curated": 1}
    assert whole["metrics"]["oc"] == whole["metrics"]["mr"] == 1


# --- what is asked ---


def settings_sent(service, *words: str) -> Any:
    play(
        service,
        answering({"f(1)": tagged("2")}),
        *("--pred-generations", "1", "--pred-num-problems", "1", *words),
    )
    return [sent.body for sent in service.sent]


@pytest.fixture
def place(tmp_path):
    return data_set(tmp_path, row())


@pytest.mark.parametrize(
    ("words", "inference", "more"),
    [
        ((), {"maxTokens": 4096, "temperature": 0.6}, {}),
        (("--pred-temperature", "0"), {"maxTokens": 4096, "temperature": 0.0}, {}),
        (("--temperature", "0.2"), {"maxTokens": 4096, "temperature": 0.2}, {}),
        (("--pred-top-p", "0.9"), {"maxTokens": 4096, "topP": 0.9}, {}),
        (("--pred-max-tokens", "77"), {"maxTokens": 77, "temperature": 0.6}, {}),
        (("--max-tokens", "99"), {"maxTokens": 99, "temperature": 0.6}, {}),
        (
            ("--latency-profile", "optimized"),
            {"maxTokens": 4096, "temperature": 0.6},
            {"performanceConfig": {"latency": "optimized"}},
        ),
        (
            ("--enable-thinking", "--thinking-budget-tokens", "3000"),
            {"maxTokens": 7096},
            {
                "additionalModelRequestFields": {
                    "thinking": {"type": "enabled", "budget_tokens": 3000}
                }
            },
        ),
    ],
)
def test_settings_reach_the_service(service, place, words, inference, more):
    for body in settings_sent(service, "--dataset", place, *words):
        assert body["inferenceConfig"] == inference
        assert body.items() >= more.items()


def test_a_system_prompt_of_the_users_own_takes_the_place_of_the_level(service, place, tmp_path):
    file = tmp_path / "system.md"
    file.write_text("Be an interpreter.\n")
    for body in settings_sent(service, "--dataset", place, "--system-prompt-file", str(file)):
        assert body["system"] == [{"text": "Be an interpreter."}]


def test_little_room_beside_thinking_is_told(service, place):
    words = ("--enable-thinking", "--pred-max-tokens", "1500", "--pred-generations", "1")
    document = play(service, answering({"f(1)": tagged("2")}), "--dataset", place, *words)

    assert any("leaves 476 for a reply" in one for one in document["notices"])


def test_settings_of_choices_are_their_own(service, tmp_path):
    place = data_set(tmp_path, row())
    words = ("--task", "both", "--choice-temperature", "0.3", "--choice-max-tokens", "88")
    more = ("--pred-top-p", "0.9", "--choice-reasoning", "high", "--dataset", place)
    play(
        service,
        answering({"f(1)": said("A")}),
        *(*words, *more, "--pred-generations", "1"),
        exit_code=5,  # its answers about outputs cannot be read
    )
    found = {
        "Choose the program" in prompt_of(sent): (
            sent.body["inferenceConfig"],
            sent.body["system"][0]["text"],
        )
        for sent in service.sent
    }

    assert found[True][0] == {"maxTokens": 88, "temperature": 0.3}
    assert found[False][0] == {"maxTokens": 4096, "topP": 0.9}
    assert found[True][1] != found[False][1]


def test_a_level_reaches_the_service_as_a_sentence(service, place):
    said = {
        level: settings_sent(service, "--dataset", place, "--pred-reasoning", level)[-1]["system"]
        for level in ("low", "medium", "high")
    }

    assert len({one[0]["text"] for one in said.values()}) == 3


def test_levels_ask_a_model_with_efforts_for_its_own(service, tmp_path):
    """A model that knows no budget is asked for a level of effort, and one that cannot think for
    neither.
    """
    place = data_set(tmp_path, row())
    found = {}
    for model in ("openai.gpt-oss-120b-1:0", "meta.llama3-1-8b-instruct-v1:0"):
        service.reset()
        service.scripts[model] = answering({"f(1)": tagged("2")})
        words = ("--dataset", place, "--compare-reasoning", "--pred-generations", "1")
        base = ("--benchmark", "execution", "--model", model, "--region", "us-east-1")
        assert run(*base, *words, env=account(service.url, model)).exit_code == 0
        bodies = [sent.body for sent in service.sent]
        found[model] = [json.dumps(b.get("additionalModelRequestFields")) for b in bodies]

    efforts, none = found.values()
    assert {re.sub(r".*\"(low|medium|high)\".*", r"\1", one) for one in efforts} == {
        *("low", "medium", "high", "null")  # the run beside the levels does not think
    }
    assert {*none} == {"null"}


@pytest.mark.parametrize(
    ("model", "alike", "n_asked"),
    [("amazon.nova-2-lite-v1:0", "medium and high", 2), ("zai.glm-4.7", "low, medium and high", 1)],
)
def test_levels_that_ask_a_model_for_the_same_are_told(service, place, model, alike, n_asked):
    service.scripts[model] = answering({"f(1)": tagged("2")})
    words = ("--dataset", place, "--compare-reasoning", "--pred-generations", "1")
    base = ("--benchmark", "execution", "--model", model, "--region", "us-east-1")
    outcome = run(*base, *words, env=account(service.url, model))
    document = fitting(json.loads(outcome.stdout))
    asked = {json.dumps(sent.body.get("additionalModelRequestFields")) for sent in service.sent}

    assert len(asked - {"null"}) == n_asked
    assert any(f"think alike at {alike} reasoning" in one for one in document["notices"])


def test_no_prompt_says_that_a_program_is_mutated(service, tmp_path):
    place = data_set(tmp_path, row(code="def f(x):\n    return '{call}' and x + 1\n"))
    replies = {"f(1)": said("A")}
    words = ("--dataset", place, "--task", "both", "--choice-runs", "3")
    outcome = play(service, answering(replies), *words, exit_code=5)
    prompts = [prompt_of(sent) for sent in service.sent]

    assert "10 of 14 answers could not be read, over 10%." in outcome["error"]["message"]
    assert not any(re.search("mutat|original", one, re.IGNORECASE) for one in prompts)
    assert any("'{call}'" in one for one in prompts)
    assert all("assert f(1) == ??" in one for one in prompts)


def test_the_seed_orders_what_is_asked_and_nothing_else(service, tmp_path):
    place = data_set(tmp_path, *(row(f"f{n}") for n in range(12)))
    replies = {f"f{n}(1)": tagged("2") for n in range(12)}
    words = ("--dataset", place, "--pred-generations", "1")
    orders = [
        [turn["problem_id"] for turn in play(service, answering(replies), *words, *seed)["turns"]]
        for seed in ((), ("--pred-seed", "42"), ("--pred-seed", "7"))
    ]

    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2])


def test_rows_without_a_mutation_are_left_out_by_name_or_count_to_oc_alone(service, tmp_path):
    bare = row("bare", mutated_code=None, mutated_output=None, has_mutation=False)
    place = data_set(tmp_path, row(), bare)
    replies = {"f(1)": tagged("2"), "bare(1)": tagged("2")}
    base = ("--dataset", place, "--pred-generations", "1")
    without = play(service, answering(replies), *base)
    with_it = play(service, answering(replies), *base, "--include-missing-mutations")

    assert without["dataset"]["dropped"] == ["bare"]
    assert any("bare" in notice for notice in without["notices"])
    assert without["prediction"]["original"]["correct"]["n_problems"] == 1
    assert with_it["prediction"]["original"]["correct"]["n_problems"] == 2
    assert with_it["prediction"]["mutated"]["correct"]["n_problems"] == 1


MISTAKES = [
    (("--prompt", "Hi"), "--prompt is nothing that execution asks"),
    (
        ("--pred-temperature", "0.5", "--pred-top-p", "0.9"),
        "--pred-temperature and --pred-top-p: models refuse both",
    ),
    (("--temperature", "0.5", "--top-p", "0.9"), "models refuse both"),
    (
        ("--enable-thinking", "--pred-max-tokens", "1000"),
        "--thinking-budget-tokens is 1024, but must be less than --pred-max-tokens (1000)",
    ),
    (("--enable-thinking", "--pred-temperature", "0.5"), "Thinking allows no"),
    (("--enable-thinking", "--pred-top-p", "0.9"), "Thinking allows no --pred-top-p"),
    (("--enable-thinking", "--compare-reasoning"), "leave --enable-thinking out"),
    (("--system-prompt-file", "/nowhere.md"), "/nowhere.md cannot be read"),
    (("--dataset", "/nowhere.jsonl"), "/nowhere.jsonl: cannot be read: No such file"),
    (("--pred-start-index", "99"), "No problem is left to ask"),
    (("--task", "guess"), "--task is 'guess', but must be one of prediction, choice, both."),
    (("--scenario", "career-change"), "--scenario is a setting of socratic"),
]


@pytest.mark.parametrize(("words", "problem"), daily(MISTAKES, first=6))
def test_mistakes_are_told_before_the_first_call(words, problem):
    base = ("--offline", "--benchmark", "execution", "--model", "emulator.executes-v1:0")
    outcome = run(*base, *words)

    assert outcome.exit_code == 2
    assert problem in fitting(json.loads(outcome.stdout))["error"]["message"]


def test_numbers_that_no_run_can_have_are_refused_all_at_once():
    base = ("--offline", "--benchmark", "execution", "--model", "emulator.executes-v1:0")
    huge = {
        "--pred-num-problems": 1_000_000,
        "--pred-start-index": 1_000_000,
        "--pred-seed": 2**53 - 1,
        "--choice-num-problems": 1_000_000,
        "--choice-start-index": 1_000_000,
        "--choice-seed": 2**53 - 1,
        "--comparison-samples": 1_000_000,
    }
    words = [word for flag in huge for word in (flag, "99999999999999999999")]
    outcome = run(*base, "--task", "both", "--compare-reasoning", *words)
    told = fitting(json.loads(outcome.stdout))["error"]["message"]
    negative = run(*base, "--pred-num-problems=-5")

    assert (outcome.exit_code, negative.exit_code) == (2, 2)
    for flag, high in huge.items():
        assert f"{flag} is 99999999999999999999, but must lie in 0..{high}." in told
    refused = fitting(json.loads(negative.stdout))
    assert "--pred-num-problems is -5, but" in refused["error"]["message"]


def test_mistakes_of_a_data_set_are_told_with_all_others_and_say_what_to_do():
    base = ("--offline", "--benchmark", "execution", "--model", "emulator.executes-v1:0")
    words = ("--dataset", "/nowhere.jsonl", "--pred-temperature", "0.5", "--pred-top-p", "0.9")
    error = fitting(json.loads(run(*base, *words).stdout))["error"]

    assert "/nowhere.jsonl: cannot be read" in error["message"]
    assert "models refuse both in one request" in error["message"]
    assert error["hint"] == "Name a file, hf:OWNER/NAME, or shipped."


@pytest.mark.parametrize(
    ("words", "idle"),
    [
        (
            ("--choice-runs", "4", "--choice-max-tokens", "9", "--comparison-samples", "3"),
            ("choice_runs", "choice_max_tokens", "comparison_samples"),
        ),
        (("--task", "choice", "--pred-generations", "2"), ("pred_generations",)),
        (("--split", "dev", "--dataset", str(SHIPPED)), ("split",)),
        (
            ("--task", "choice", "--compare-reasoning", "--pred-reasoning", "low"),
            ("pred_reasoning",),
        ),
    ],
)
def test_settings_of_what_is_not_played_are_refused(words, idle):
    base = ("--offline", "--benchmark", "execution", "--model", "emulator.executes-v1:0")
    told = mistakes(*base, "--max-tokens", "99", *words)

    assert re.findall(r"--([a-z-]+) sets nothing where", told) == [
        name.replace("_", "-") for name in idle
    ]


def mistakes(*words: str) -> str:
    """What a run that is refused for its settings says of them."""
    outcome = run(*words)
    assert outcome.exit_code == 2
    message: str = fitting(json.loads(outcome.stdout))["error"]["message"]
    return message


# --- many items ---


@pytest.mark.parametrize(
    ("n_problems", "n_before"),
    [(8, 37), pytest.param(340, 1700, marks=pytest.mark.torture)],
)
def test_a_killed_run_asks_again_only_what_was_under_way(n_problems, n_before, service, tmp_path):
    """At 32 at once, of ten calls for each problem."""
    out = ("--output-dir", str(tmp_path / "out"))
    kill_at(n_before, service, data_set(tmp_path, *many(n_problems)), *out, env={})
    run_id, answered, asked = under_way(tmp_path / "out")
    assert n_before - 32 <= len(answered)
    assert len(asked - answered) <= 32

    # A service of its own: what the killed process has sent last may not have been read yet.
    with FakeBedrock({MIXTURE: emulated(MIXTURE)}) as anew:
        whole = resumed(run_id, anew, *out, n_items=10 * n_problems, env={})
    assert len(anew.sent) == 10 * n_problems - len(answered)
    assert (whole["metrics"]["oc"], whole["metrics"]["mc"]) == (1, pytest.approx(0.75, abs=0.05))


@pytest.mark.torture
def test_a_killed_run_goes_on_from_a_bucket_alone(service, tmp_path, moto_url, bucket, client):
    """An answer that was kept behind one that was not yet is asked for again, too."""
    env, there = {"AWS_ENDPOINT_URL_S3": moto_url}, ("--s3-bucket", bucket)
    kill_at(1700, service, data_set(tmp_path, *many(340)), *there, env=env)
    n_sent = len(service.sent)
    kept = client.list_objects_v2(Bucket=bucket, Prefix="journal/runs/")["Contents"]
    (run_id,) = {row["Key"].split("/")[2] for row in kept}

    service.reset()
    service.scripts[MIXTURE] = emulated(MIXTURE)
    resumed(run_id, service, *there, n_items=3400, env=env)
    assert n_sent + len(service.sent) <= 3400 + 32


MIXTURE = "emulator.recalls-25-v1:0"


def kill_at(n_before: int, service, place: str, *words: str, env: dict[str, str]) -> None:
    """Play a data set, and end that by SIGKILL once so many calls were sent: the others hang."""
    reached, hanging = threading.Event(), threading.Event()
    said = emulated(MIXTURE)

    def script(sent):
        if len(service.sent) > n_before:
            reached.set()
        return replace(said(sent), held=hanging) if reached.is_set() else said(sent)

    words = ("--benchmark", "execution", "--dataset", place, "--pred-num-problems", "0", *words)
    words += ("--max-concurrency", "32", "--model", MIXTURE)
    service.scripts[MIXTURE] = script
    process = begin(
        *(*words, "--quiet"),
        env=account(service.url, MIXTURE, **env),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert reached.wait(5 * PATIENCE_S)
    process.kill()
    process.wait()
    hanging.set()


def resumed(run_id: str, service, *words: str, n_items: int, env: dict[str, str]) -> Any:
    """The document of a run that goes on, and is played to its end then."""
    outcome = run("resume", run_id, *words, "--quiet", env=account(service.url, MIXTURE, **env))
    whole = fitting(json.loads(outcome.stdout))
    assert (outcome.exit_code, whole["n_turns"]) == (0, n_items)
    assert whole["usage"]["model"]["calls"] == n_items
    return whole


def under_way(folder: Path) -> tuple[str, set[int], set[int]]:
    """The run that a folder's journal holds, the items that were answered, and those asked."""
    (journal,) = folder.glob("journal/runs/*.jsonl")
    entries = [json.loads(line) for line in journal.read_bytes().split(b"\n")[:-1]]
    by_kind: dict[str, set[int]] = {"asked": set(), "answered": set()}
    for entry in entries:
        by_kind.setdefault(entry["kind"], set()).add((entry.get("key") or {}).get("index"))
    return journal.stem, by_kind["answered"], by_kind["asked"]


def test_a_dry_run_foretells_calls_tokens_and_money():
    base = ("--offline", "--benchmark", "execution", "--model", "emulator.executes-v1:0")
    words = ("--task", "both", "--pred-generations", "2", *ALL)
    foretold = fitting(json.loads(run(*base, *words, "--dry-run").stdout))
    found = both("executes")

    assert foretold["usage"]["total"] == {
        name: found["usage"]["total"][name] for name in foretold["usage"]["total"]
    }
    assert foretold["cost"]["total"]["total_usd"] == pytest.approx(
        found["cost"]["total"]["total_usd"]
    )


def test_of_other_models_a_dry_run_expects_replies_of_its_own():
    """What a real model says is not known: few steps, some, or many, and then the answer."""
    config = RunConfig(
        model=CLAUDE, benchmark="execution", region="us-east-1", pred_num_problems=2, seed=1
    )
    document = fitting(dry_run(prepare(config)))

    assert document["n_turns"] == document["usage"]["model"]["calls"] > 0
    replies = document["assumptions"]["replies"]["model"]
    assert 20 < replies["low_tokens"] < replies["tokens"] < replies["high_tokens"]
    assert document["cost"]["total"]["total_usd"] > 0


def test_a_budget_ends_it_with_all_problems_asked_alike(service, tmp_path):
    place = data_set(tmp_path, *(row(f"f{n}") for n in range(5)))
    service.scripts[CLAUDE] = answering({f"f{n}(1)": tagged("2") for n in range(5)})
    base = ("--benchmark", "execution", "--model", CLAUDE, "--region", "us-east-1")
    words = ("--dataset", place, "--pred-generations", "50", "--max-tokens", "100")
    words += ("--max-concurrency", "1", "--max-cost-usd", "0.02")
    outcome = run(*base, *words, env=account(service.url, CLAUDE))
    document = fitting(json.loads(outcome.stdout))

    assert (outcome.exit_code, document["end_reason"], document["status"]) == (
        6,
        "budget",
        "partial",
    )
    assert "ask fewer problems (--pred-num-problems, " in document["error"]["hint"]
    assert "--turns" not in document["error"]["hint"]
    asked = Counter(turn["problem_id"] for turn in document["turns"])
    assert 10 < asked.total() < 500
    assert max(asked.values()) - min(asked[f"f{n}"] for n in range(5)) <= 2
    assert document["prediction"]["original"]["correct"]["value"] == 1
