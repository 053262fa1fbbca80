"""`compare`: stored runs of models side by side, through the command."""

import json
import shutil
from pathlib import Path
from statistics import fmean
from uuid import uuid4

import pytest
from scipy import stats

from tests.command import PLAIN_RUBRIC, account, assert_valid, run, without_scipy
from tests.terminal import run_in_terminal, width
from tests.test_sweep import curated, sweep

STEADY, DRIFT, LECTURER = (
    *("emulator.socratic-v1:0", "emulator.drift-5-v1:0"),
    "emulator.lecturer-v1:0",
)
SCENARIOS = ("ai-ethics", "career-change", "time-management")
GRID = ("--scenarios", *SCENARIOS, "--turns", "7", "--seed", "7", "--repeats", "2", "-q")
SHORT = ("--scenarios", SCENARIOS[0], "--turns", "2", "--seed", "7", "-q")
USUAL = [
    *("overall_score", "discipline", "usefulness", "insights_reached", "turns_held"),
    "lapse_rate",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two models in three scenarios, twice each; in `sweep.json` beside it what was printed."""
    folder = tmp_path_factory.mktemp("compared") / "runs"
    outcome = sweep("--models", STEADY, DRIFT, *GRID, folder=folder)
    (folder.parent / "sweep.json").write_bytes(outcome.stdout)
    return folder


@pytest.fixture(scope="module")
def compared(folder):
    return run("compare", str(folder))


@pytest.fixture(scope="module")
def again(tmp_path_factory):
    """One of the models anew, by the same seeds."""
    folder = tmp_path_factory.mktemp("again")
    sweep("--models", DRIFT, *GRID, folder=folder)
    return folder


@pytest.fixture(scope="module")
def unlike(tmp_path_factory):
    """A third model, asked for the answer by its student and judged by another rubric."""
    folder = tmp_path_factory.mktemp("unlike")
    sweep(
        *("--models", LECTURER, "--pressure", "high", "--rubric", PLAIN_RUBRIC),
        *SHORT,
        folder=folder,
    )
    return folder


def values(folder, model, metric):
    """By scenario and seed."""
    return {
        (doc["scenario"], doc["seed"]): doc["metrics"][metric]
        for doc in curated(folder).values()
        if doc["model"] == model
    }


def by_scenario(folder, metric):
    """The mean difference of each scenario."""
    ours, theirs = (values(folder, model, metric) for model in (STEADY, DRIFT))
    assert ours.keys() == theirs.keys()
    return [
        fmean(ours[kind] - theirs[kind] for kind in ours if kind[0] == name) for name in SCENARIOS
    ]


class TestDocument:
    def test_means_and_scores_by_turn_are_those_of_the_runs(self, folder, compared):
        document = compared.document
        assert compared.exit_code == 0
        assert_valid("comparison", document)
        assert [one["name"] for one in document["contenders"]] == [STEADY, DRIFT]
        for one in document["contenders"]:
            docs = [doc for doc in curated(folder).values() if doc["model"] == one["model"]]
            for metric in USUAL:
                found = one["metrics"][metric]
                mean = fmean(doc["metrics"][metric] for doc in docs)
                assert (found["n"], found["mean"]) == (6, pytest.approx(mean, abs=1e-6))
            scores = [[turn["score"] for turn in doc["turns"]] for doc in docs]
            told = [turn["mean"] for turn in one["score_by_turn"]]
            assert told == pytest.approx([fmean(some) for some in zip(*scores, strict=True)])

    def test_a_difference_is_over_pairs_and_clustered_by_scenario(self, folder, compared):
        (pair,) = compared.document["pairs"]
        assert (pair["first"], pair["second"]) == (STEADY, DRIFT)
        assert (pair["paired_by"], pair["n_pairs"], pair["n_unpaired"]) == ("repeat", 6, 0)
        assert list(pair["differences"]) == USUAL
        for metric in USUAL[:3]:
            means = by_scenario(folder, metric)
            found = pair["differences"][metric]
            assert (found["n"], found["n_clusters"]) == (6, 3)
            assert found["mean"] == pytest.approx(fmean(means), abs=1e-6)
            if stats.sem(means) < 1e-9:  # each scenario says the same: nothing tells how sure it is
                assert metric == "discipline"
                assert found["low"] is found["high"] is None
                assert found["no_interval_because"] == "no_spread"
                continue
            low, high = stats.t.interval(0.95, 2, fmean(means), stats.sem(means))
            assert (found["low"], found["high"]) == pytest.approx((low, high), abs=1e-6)

    def test_the_primary_figure_alone_has_a_p_which_is_corrected_for_pairs(self, folder, unlike):
        document = run("compare", str(folder), str(unlike), "--allow").document
        p_values = sorted(one["p"] for one in document["differences"])
        raw = [min(1, p * (3 - n)) for n, p in enumerate(p_values)]

        assert [one["metric"] for one in document["differences"]] == ["turns_held"] * 3
        assert sorted(one["p_adjusted"] for one in document["differences"]) == pytest.approx(
            [max(raw[: n + 1]) for n in range(3)]
        )
        assert not any(
            "p" in one for pair in document["pairs"] for one in pair["differences"].values()
        )

    def test_a_model_does_not_differ_from_itself(self, folder, again):
        document = run("compare", str(folder), str(again)).document
        names = sorted(f"{DRIFT} ({one})" for one in (folder, again))
        (pair, primary) = (
            next(one for one in document[key] if sorted((one["first"], one["second"])) == names)
            for key in ("pairs", "differences")
        )

        assert {one["mean"] for one in pair["differences"].values()} == {0}
        assert (primary["difference"], primary["winner"]) == (0, None)

    def test_without_the_extra_there_are_tests_but_no_intervals(self, folder, compared, tmp_path):
        env = without_scipy(tmp_path)
        bare = run("compare", str(folder), env=env)
        (pair,), (full,) = bare.document["pairs"], compared.document["pairs"]
        gate = ("--baseline", str(folder), "--max-drop", "usefulness.low=1")
        refused = run("compare", "sweeps", *gate, env=env)

        assert bare.exit_code == 0
        for ours, with_extra in zip(
            *(outcome.document["differences"] for outcome in (bare, compared)), strict=True
        ):
            assert (ours["p"], ours["summary"]) == (with_extra["p"], with_extra["summary"])
        for metric, one in pair["differences"].items():
            assert one["mean"] == full["differences"][metric]["mean"]
            assert (one["low"], one["high"]) == (None, None)
            assert one["no_interval_because"] in ("needs_stats", "no_spread")
        assert bare.stderr.count('pip install ".[stats]"') == 1
        assert (refused.exit_code, "scipy" in refused.stderr) == (2, True)


class TestPlaces:
    def test_sweeps_documents_and_files_are_the_same_runs(self, folder, compared):
        sweep_id = next((folder / "sweeps").iterdir()).name
        expected = compared.document["pairs"]
        for words in ([folder.parent / "sweep.json"], [folder / "sweeps" / sweep_id]):
            assert run("compare", *map(str, words)).document["pairs"] == expected

    def test_runs_of_no_sweep_are_paired_by_their_seeds(self, folder, compared, tmp_path):
        shutil.copytree(folder / "curated", tmp_path / "curated")
        (pair,) = run("compare", str(tmp_path)).document["pairs"]
        (expected,) = compared.document["pairs"]

        assert pair == {**expected, "paired_by": "seed"}

    def test_a_run_is_a_file(self, folder):
        paths = sorted((folder / "curated" / "runs").glob("*.json"))
        alike = [path for path in paths if json.loads(path.read_bytes())["model"] == STEADY][:2]
        document = run("compare", *map(str, alike)).document

        assert [one["n_runs"] for one in document["contenders"]] == [1, 1]
        assert document["pairs"][0]["n_pairs"] == 0
        assert "--seed" in document["notices"][0]

    def test_a_prefix_of_a_bucket_has_the_same_runs(self, folder, compared, client, moto_url):
        bucket = f"bucket-{uuid4().hex}"
        client.create_bucket(Bucket=bucket)
        for name in ("curated", "sweeps"):
            for path in (folder / name).rglob("*.json*"):
                key = f"some/where/{path.relative_to(folder)}"
                client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())
        env = account(moto_url, AWS_ENDPOINT_URL_S3=moto_url)
        outcome = run("compare", f"s3://{bucket}/some/where/", env=env)

        assert outcome.document["pairs"] == compared.document["pairs"]


class TestRefusals:
    def test_all_differences_are_told_at_once(self, folder, unlike):
        refused = run("compare", str(folder), str(unlike))

        assert refused.exit_code == 2
        for said in ("judge.rubric", "student.pressure", "n_turns", "--allow"):
            assert said in refused.stderr

    def test_what_is_allowed_is_flagged(self, folder, unlike):
        outcome = run("compare", str(folder), str(unlike), "--allow")
        found = {one["name"]: one["values"] for one in outcome.document["conditions"]}
        pair = outcome.document["pairs"][1]

        assert_valid("comparison", outcome.document)
        assert found["student.pressure"] == {STEADY: ["none"], DRIFT: ["none"], LECTURER: ["high"]}
        assert found["judge.rubric"][LECTURER] == ["plain-disposition"]
        assert pair["n_pairs"] == 1
        assert "warning: judge.rubric differs" in outcome.stderr

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ((), ["Missing argument RUNS"]),
            (("none.json", "nowhere"), ["none.json", "nowhere"]),
            (("a", "--max-drop", "usefulness=x"), ["needs a --baseline", "'usefulness=x'"]),
            (("{again}", "--baseline", "{again}"), ["nothing to compare"]),
            (
                ("{folder}", "--metrics", "usefulnes"),
                ["usefulnes is no metric of socratic", "usefulness"],
            ),
            (("{again}",), ["nothing to compare"]),
            (("{again}", "{copy}"), ["nothing to compare"]),
            (("{empty}",), ["no complete run"]),
            (("{empty}/sweeps/sweep-1",), ["no sweep-1"]),
            (("{broken}",), ["broken.json is not a JSON document"]),
            (("{foreign}",), ["foreign.json is no complete run: its kind is 'doctor'."]),
        ],
    )
    def test_mistakes_are_named(self, words, said, folder, again, tmp_path):
        (tmp_path / "empty").mkdir()
        (tmp_path / "broken.json").write_text("{")
        (tmp_path / "foreign.json").write_text('{"kind": "doctor"}')
        shutil.copytree(again / "curated", tmp_path / "copy" / "curated")
        made = {name: tmp_path / name for name in ("empty", "copy")}
        made |= {name: tmp_path / f"{name}.json" for name in ("broken", "foreign")}
        outcome = run("compare", *(one.format(folder=folder, again=again, **made) for one in words))

        assert (outcome.exit_code, outcome.document["end_reason"]) == (2, "usage")
        assert [one for one in said if one not in outcome.stderr] == []


class TestGates:
    def gated(self, place: Path, baseline: Path, *drops: str):
        words = [word for drop in drops for word in ("--max-drop", drop)]
        return run("compare", str(place), "--baseline", str(baseline), *words, "-q")

    def test_a_model_is_held_to_its_own_runs(self, folder, again):
        outcome = self.gated(folder, again, "overall_score=0.01", "lapse_rate=0.01")

        assert outcome.exit_code == 0
        assert outcome.document["baseline"] == str(again)
        firsts = [(one["first"], one["second"]) for one in outcome.document["pairs"]]
        mine, theirs = (f"{DRIFT} ({one})" for one in (folder, again))
        assert sorted(firsts) == sorted([(STEADY, theirs), (mine, theirs)])

    def test_a_model_is_held_to_the_only_one_of_the_baseline(self, folder, again, tmp_path):
        (tmp_path / "curated" / "runs").mkdir(parents=True)
        for run_id, doc in curated(folder).items():
            if doc["model"] == STEADY:
                path = tmp_path / "curated" / "runs" / f"{run_id}.json"
                path.write_text(json.dumps(doc))
        drops = ("overall_score=0.01", "lapse_rate=0.01", "usefulness.low=0.9", "recovery_rate=0.9")
        outcome = self.gated(again, tmp_path, *drops)
        gates = {one["metric"]: one for one in outcome.document["gates"]}
        (pair,) = outcome.document["pairs"]

        assert (outcome.exit_code, outcome.document["error"]["code"]) == (5, "gate")
        assert_valid("comparison", outcome.document)
        passed = {metric: one["passed"] for metric, one in gates.items()}
        failed = dict.fromkeys(("overall_score", "lapse_rate", "recovery_rate"), False)
        assert passed == {**failed, "usefulness": True}
        assert gates["overall_score"]["drop"] == -pair["differences"]["overall_score"]["mean"]
        assert gates["lapse_rate"]["drop"] == pair["differences"]["lapse_rate"]["mean"] > 0
        assert gates["usefulness"]["drop"] == -pair["differences"]["usefulness"]["low"]
        unknown = gates["recovery_rate"]
        assert (unknown["drop"], unknown["reason"]) == (None, "no pair of runs has it")
        assert "recovery_rate" in outcome.stderr


class TestMinima:
    def gated(self, *places: Path, bounds: tuple[str, ...], env=None):
        words = [word for bound in bounds for word in ("--fail-under", bound)]
        return run("compare", *map(str, places), *words, "-q", env=env)

    def test_stored_runs_of_one_model_are_held_to_bounds(self, again):
        """The dialogues are those of a sweep; what it came to is told anew from its runs."""
        bounds = ("overall_score.low=3", "turns_held.restricted_mean.low=9", "usefulness=0")
        outcome = self.gated(again, bounds=bounds)
        gates = {one["gate"]: one for one in outcome.document["figure_gates"]}
        (one,) = outcome.document["contenders"]
        found, times = one["metrics"]["overall_score"], one["survival"]["turns_held"]

        assert_valid("comparison", outcome.document)
        assert (outcome.exit_code, outcome.document["error"]["code"]) == (5, "gate")
        assert outcome.document["pairs"] == []
        passed = {gate: one["passed"] for gate, one in gates.items()}
        assert passed == dict(zip(bounds_of(bounds), (True, False, True), strict=True))
        assert gates["overall_score.low"]["value"] == found["low"]
        low = times["restricted_mean"]["low"]
        assert gates["turns_held.restricted_mean.low"]["value"] == low
        scope = (found["scope"], found["variance"] is not None, found["runs_to_halve"] > 0)
        assert scope == ("scenarios like these", True, True)
        assert self.gated(again, bounds=bounds[::2]).exit_code == 0

    def test_a_null_fails_and_a_slip_is_refused(self, again, tmp_path):
        bare = without_scipy(tmp_path)
        unknown = {
            "recovery_rate.low": "no complete run has it",
            "turns_held.median.low": "times of fewer than 6 samples have no interval",
        }
        null = self.gated(again, bounds=tuple(f"{one}=0" for one in unknown))
        gates = null.document["figure_gates"]

        assert null.exit_code == 5
        assert {one["gate"]: one["reason"] for one in gates} == unknown
        assert {(one["value"], one["passed"]) for one in gates} == {(None, False)}
        assert all(f"is null ({why})" in null.stderr for why in unknown.values())
        for bounds, env, said in (
            (("fame.low=3",), None, "fame"),
            (
                ("usefulness.median=3",),
                None,
                "--fail-under usefulness.median: usefulness is not a time until an event",
            ),
            (("usefulness.low",), None, "'usefulness.low' is not METRIC=VALUE"),
            (("usefulness.low=.1",), bare, 'pip install ".[stats]"'),
        ):
            refused = self.gated(again, bounds=bounds, env=env)
            assert (refused.exit_code, said in refused.stderr) == (2, True), refused.stderr


def bounds_of(words):
    return [word.partition("=")[0] for word in words]


@pytest.mark.parametrize("columns", [40, 80, 100])
def test_the_table_fits_the_terminal(columns, folder, compared):
    _, lines = run_in_terminal("compare", str(folder), columns=columns)
    (pair,) = compared.document["pairs"]
    found = pair["differences"]["overall_score"]
    (head,) = [line for line in lines if line.startswith("metric")]
    (row,) = [line for line in lines if line.startswith("overall_score ")]

    assert max(map(width, lines)) <= columns
    assert f" {found['mean']:.2f}" in row
    assert ["difference" in head, "95 % CI" in head or columns == 40] == [True, True]


def test_a_run_that_several_arguments_name_counts_once(folder, again, tmp_path):
    shutil.copytree(folder / "curated", tmp_path / "copy" / "curated")
    once, twice = (
        run("compare", *words).document for words in ([folder], [folder, folder, tmp_path / "copy"])
    )
    assert twice == once


def test_runs_of_different_values_of_an_axis_are_no_repeats_and_no_pairs(tmp_path):
    words = ("--models", STEADY, DRIFT, "--scenarios", *SCENARIOS[:2], "--temperatures", "0", "1")
    printed = sweep(*words, "--turns", "2", "--seed", "7", "-q", folder=tmp_path).document
    runs = curated(tmp_path)
    lost = {
        run_id
        for run_id, document in runs.items()
        if (document["model"], document["inputs"]["temperature"]) in ((STEADY, 0), (DRIFT, 1))
    }
    (begun,) = tmp_path.glob("sweeps/*/sweep.json")
    plan = json.loads(begun.read_text())
    document = run("compare", str(tmp_path)).document
    (pair,) = document["pairs"]
    for run_id in lost:
        (tmp_path / "curated" / "runs" / f"{run_id}.json").unlink()
    (left,) = run("compare", str(tmp_path)).document["pairs"]

    assert plan["axes"] == printed["axes"]
    assert plan["repeats"] == 1
    assert [one["metrics"]["overall_score"]["variance"] for one in document["contenders"]] == [
        None,
        None,
    ]
    assert (pair["n_pairs"], pair["n_unpaired"]) == (4, 0)
    assert (left["n_pairs"], left["n_unpaired"]) == (0, 4)


def test_figures_over_several_pressures_say_so(tmp_path):
    words = ("--models", STEADY, DRIFT, "--scenarios", "career-change", "--turns", "2")
    words += ("--seed", "7", "--repeats", "2", "--pressure", "none", "high")
    played = run("sweep", "--offline", *words, "--output-dir", str(tmp_path), "-q")
    compared = run("compare", str(tmp_path), "-q")

    notice = "Runs of one model differ in pressure: its figures are over all of them."
    for outcome in (played, compared):
        assert notice in outcome.document["notices"]
