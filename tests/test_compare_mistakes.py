"""`compare`: what is refused, flagged, or told of, with stored runs that were never played."""

import json

import pytest

from socratic_bench.emulator import Emulator, Settings, parse_fault
from socratic_bench.errors import UsageError
from socratic_bench.studies.compare import ComparisonRequest, compare
from socratic_bench.studies.gates import MaxDrop
from tests.command import account, assert_valid, run
from tests.curated_runs import curated_run, judge_entry, student_entry, write_runs

OURS, THEIRS = "maker.ours-v1:0", "maker.theirs-v1:0"
STEADY, BROKEN = "emulator.socratic-v1:0", "emulator.lecturer-v1:0"
SCENARIOS = ("one", "two", "three")


def some(model: str, score: float = 8.0, *, start: int = 0, scenarios=SCENARIOS, **keys: object):
    """One run in each scenario; scores differ by scenario."""
    return [
        curated_run(
            start + n, model, name, {"overall_score": score + n / 4, "usefulness": 0.5}, **keys
        )
        for n, name in enumerate(scenarios)
    ]


def compared(folder, **asked):
    return compare(ComparisonRequest(arguments=(str(folder),), **asked), region=str)


def differing(*jurors: str, **judge: object):
    return {"judge": judge_entry(*jurors, **judge)}


def student(**keys: object):
    return {"student": student_entry(**keys)}


class TestConditions:
    @pytest.mark.parametrize(
        ("path", "ours", "theirs"),
        [
            (
                "judge.rubric",
                differing(rubric="plain-disposition"),
                differing(rubric="socratic-disposition-2"),
            ),
            ("judge.rubric_sha256", differing(rubric_sha256="a"), differing(rubric_sha256="b")),
            ("judge.model", differing(model="a"), differing(model="b")),
            (
                "judge.model",
                differing("b", "a", model="a"),
                differing("a", model="a"),
            ),
            ("judge.samples", differing(), differing(samples=3)),
            ("judge.rule", differing(rule="median"), differing(rule="mean")),
            ("student.model", student(model="a"), student(model="b")),
            ("student.mode", student(mode="model"), student(mode="scripted")),
            ("student.pressure", student(pressure="high"), student()),
            ("student.edition", student(edition="1"), student(edition="2")),
            ("n_turns", {"n_turns": 20}, {"n_turns": 40}),
        ],
    )
    def test_what_was_played_otherwise_is_refused_or_flagged(self, path, ours, theirs, tmp_path):
        write_runs(tmp_path, [*some(OURS, **ours), *some(THEIRS, start=50, **theirs)])
        with pytest.raises(UsageError, match=rf"{path} differs: ") as refused:
            compared(tmp_path)
        allowed = compared(tmp_path, allows_differences=True)

        assert "allow compares" in refused.value.hint
        assert path in [one.name for one in allowed.conditions]
        assert path in allowed.notices[-1]

    def test_refused_and_flagged_it_is_told_in_the_same_words(self, tmp_path):
        ours, theirs = student(pressure="high"), {"student": None}
        write_runs(tmp_path, [*some(OURS, **ours), *some(THEIRS, start=50, **theirs)])
        refused, flagged = (run("compare", str(tmp_path), *words) for words in ((), ("--allow",)))
        said = f"student.pressure differs: high of {OURS}; null of {THEIRS}"

        assert (refused.exit_code, said in refused.stderr) == (2, True)
        assert (flagged.exit_code, said in flagged.stderr) == (0, True)

    def test_the_order_of_jurors_is_no_difference(self, tmp_path):
        panels = [differing(*pair) for pair in ("ab", "ba")]
        write_runs(tmp_path, [*some(OURS, **panels[0]), *some(THEIRS, start=50, **panels[1])])

        assert compared(tmp_path).conditions == []


class TestMistakes:
    def test_all_are_told_at_once(self, tmp_path):
        write_runs(tmp_path / "a", some(OURS))
        write_runs(tmp_path / "b", some(OURS))
        (tmp_path / "broken.json").write_text("{")
        places = [str(tmp_path / name) for name in ("a", "b", "broken.json", "nowhere")]
        words = ("--metrics", "usefulnes", "--max-drop", "x=y", "--max-drop", "overall_score=nan")
        outcome = run("compare", *places, places[0], "", "s3://", *words)

        assert outcome.exit_code == 2
        for said in (
            "--max-drop needs a --baseline",
            "'x=y' is not METRIC=VALUE",
            "'overall_score=nan' is not METRIC=VALUE",
            "broken.json is not a JSON document",
            f"no file or folder {places[3]}",
            "An argument is empty",
            "s3:// names no bucket",
            "usefulnes is no metric of socratic",
        ):
            assert said in outcome.stderr

    def test_runs_of_two_benchmarks_are_refused(self, tmp_path):
        runs = [*some(OURS), *some(THEIRS, start=50, benchmark="other")]
        outcome = run("compare", str(write_runs(tmp_path, runs)))

        assert outcome.exit_code == 2
        assert "several benchmarks" in outcome.stderr
        assert "socratic" in outcome.stderr

    def test_a_benchmark_that_there_is_not_is_named(self, tmp_path):
        with pytest.raises(UsageError, match="No benchmark 'gone'"):
            compared(write_runs(tmp_path, some(OURS, benchmark="gone")))


class TestSamples:
    def test_one_scenario_with_one_opening_has_no_interval_and_says_so(self, tmp_path):
        write_runs(
            tmp_path, [*some(OURS, scenarios=["one"]), *some(THEIRS, scenarios=["one"], start=9)]
        )
        outcome = run("compare", str(tmp_path))
        found = outcome.document["pairs"][0]["differences"]["overall_score"]

        assert (outcome.exit_code, found["n"], found["mean"]) == (0, 1, 0.0)
        assert (found["low"], found["high"]) == (None, None)
        assert "No confidence interval with one scenario" in outcome.stderr

    def test_a_constant_difference_has_no_interval(self, tmp_path):
        names = [f"scenario-{number}" for number in range(6)]
        ours = some(OURS, 9.0, scenarios=names)
        write_runs(tmp_path, [*ours, *some(THEIRS, start=9, scenarios=names)])
        differences = compared(tmp_path).pairs[0].differences

        for name, mean in (("overall_score", 1), ("usefulness", 0)):
            found = differences[name]
            assert (found.mean, found.low, found.high) == (mean, None, None)
            assert found.no_interval_because == "no_spread"

    @pytest.mark.parametrize(
        ("scenarios", "reason"),
        [(["one"], "one sample has no interval"), (SCENARIOS, "all samples differ alike")],
    )
    def test_a_drop_whose_limit_is_not_known_says_why_and_fails(self, scenarios, reason, tmp_path):
        ours = write_runs(tmp_path / "ours", some(OURS, 9.0, scenarios=scenarios))
        base = write_runs(tmp_path / "base", some(THEIRS, scenarios=scenarios, start=9))
        drops = (MaxDrop(metric="overall_score", max_drop=9, of="low"),)
        document = compared(ours, baseline=str(base), drops=drops)
        (gate,) = document.gates

        assert (gate.drop, gate.passed, gate.reason) == (None, False, reason)
        assert f"is null ({reason})" in document.error.message

    def test_no_difference_is_a_drop_of_0_and_not_of_minus_0(self, tmp_path):
        ours = write_runs(tmp_path / "ours", some(OURS))
        base = write_runs(tmp_path / "base", some(OURS, start=50))
        words = ("--max-drop", "overall_score=0", "-q")
        outcome = run("compare", str(ours), "--baseline", str(base), *words)

        assert outcome.exit_code == 0
        assert [str(one["drop"]) for one in outcome.document["gates"]] == ["0.0"]

    def test_runs_without_a_counterpart_count_in_means_alone(self, tmp_path):
        ours = [*some(OURS), *some(OURS, 4.0, start=20, seed=2)]
        write_runs(tmp_path, [*ours, *some(THEIRS, 7.0, start=50)])
        outcome = run("compare", str(tmp_path))
        (pair,) = outcome.document["pairs"]
        means = {
            one["name"]: one["metrics"]["overall_score"]["mean"]
            for one in outcome.document["contenders"]
        }

        assert means == {OURS: 6.25, THEIRS: 7.25}
        assert (pair["n_pairs"], pair["n_unpaired"]) == (3, 3)
        sign = 1 if pair["first"] == OURS else -1
        assert pair["differences"]["overall_score"]["mean"] == sign
        assert "Some runs have no counterpart" in outcome.stderr


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """A sweep in which one model was played and one could not be called."""
    folder = tmp_path_factory.mktemp("half") / "runs"
    faults = (parse_fault(f"unavailable:model={BROKEN}"),)
    with Emulator(Settings(faults=faults)) as emulator:
        run(
            *("sweep", "--models", STEADY, BROKEN, "--scenarios", "ai-ethics", "career-change"),
            *("--turns", "2", "--seed", "7", "--max-attempts", "1", "-q"),
            *("--judge-model", "emulator.judge-v1:0", "--output-dir", str(folder)),
            env=account(emulator.url, STEADY, BROKEN),
        )
    return folder


class TestFailedCells:
    def test_a_model_without_a_complete_run_is_named(self, half, tmp_path):
        seeds = [json.loads(path.read_bytes()) for path in (half / "curated/runs").glob("*.json")]
        other = [{**one, "model": OURS, "run_id": f"run-{n:026d}"} for n, one in enumerate(seeds)]
        base = write_runs(tmp_path, other)
        compared = run("compare", str(half), str(base))
        gated = run(
            *("compare", str(half), "--baseline", str(base), "--max-drop", "overall_score=9"),
            *("--fail-under", "overall_score=0", "-q"),
        )

        assert compared.exit_code == 0
        assert_valid("comparison", compared.document)
        failed = [{"model": BROKEN, "source": str(half), "n_failed": 2}]
        assert compared.document["failed"] == failed
        assert f"{BROKEN} of {half} has no complete run: 2 runs failed." in compared.stderr
        gates = {one["name"]: one for one in gated.document["gates"]}
        assert gated.exit_code == 5
        assert [gates[name]["passed"] for name in (STEADY, BROKEN)] == [True, False]
        assert f"overall_score of {BROKEN} is null" in gated.stderr
        minima = {one["name"]: one for one in gated.document["figure_gates"]}
        assert [minima[name]["passed"] for name in (STEADY, BROKEN)] == [True, False]
        assert minima[BROKEN]["reason"] in gated.stderr

    def test_a_baseline_whose_runs_of_a_model_failed_is_no_baseline_for_it(self, half, tmp_path):
        base = write_runs(tmp_path, some(BROKEN))
        outcome = run("compare", str(base), "--baseline", str(half), "--allow")

        assert outcome.exit_code == 2
        assert f"The baseline has no runs of {BROKEN}" in outcome.stderr
