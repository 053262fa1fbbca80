"""Stored runs judged again: new verdicts beside the first, and how they differ."""

import json
import shutil
from contextlib import closing
from pathlib import Path
from statistics import fmean

import pytest

from cli.terminal import number
from socratic_bench.emulator import Emulator, Settings, parse_fault
from socratic_bench.studies.report.study import read_rows
from tests.command import PLAIN_RUBRIC, account, assert_valid, environment, run
from tests.resuming import Service, bodies, start, wait_for_calls
from tests.sweep_kills import under_way

TUTORS = ("emulator.socratic-v1:0", "emulator.drift-5-v1:0")
PLAIN, HARSH = "emulator.judge-v1:0", "emulator.judge-bias--5-v1:0"
NOISY = "emulator.judge-noise-5-v1:0"
ALONE = ("--scenario", "time-management", "--turns", "3", "--quiet")


def tree(folder):
    root = Path(folder)
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def firsts(folder):
    return {name: body for name, body in tree(folder).items() if "/judgings/" not in name}


@pytest.fixture(scope="module")
def endpoint():
    with Emulator(Settings(keep_bodies=True)) as served:
        yield served


@pytest.fixture(scope="module")
def kept(tmp_path_factory, endpoint):
    """Two judged runs and one that nobody judged, and their files as they were."""
    folder = str(tmp_path_factory.mktemp("kept"))
    asked = ((TUTORS[0], "7"), (TUTORS[1], "7"), (TUTORS[0], "8", "--no-judge"))
    for tutor, seed, *words in asked:
        outcome = run(
            *("--model", tutor, "--seed", seed, *ALONE, *words, "--output-dir", folder),
            env=account(endpoint.url, tutor),
        )
        assert outcome.exit_code == 0
    return folder, firsts(folder)


def judge(endpoint, *words, faults=()):
    if faults:
        settings = Settings(keep_bodies=True, faults=tuple(map(parse_fault, faults)))
        with Emulator(settings) as served:
            outcome = run("judge", *words, "--quiet", env=account(served.url))
            return outcome, list(served.requests)
    begun = len(endpoint.requests)
    outcome = run("judge", *words, "--quiet", env=account(endpoint.url))
    return outcome, list(endpoint.requests)[begun:]


@pytest.fixture(scope="module")
def again(endpoint, kept):
    """All three, by a jury."""
    outcome, requests = judge(endpoint, kept[0], "--judge-model", HARSH, "--judge-model", NOISY)
    assert outcome.exit_code == 0, outcome.document["error"]
    return outcome.document, requests


def stored(folder, run_id, name, file):
    return json.loads((Path(folder) / f"raw/runs/{run_id}/judgings/{name}/{file}").read_bytes())


def test_the_document_is_valid_and_only_judges_are_asked(again):
    document, requests = again
    assert_valid("judgings", document)
    assert {one.model_id for one in requests} == {HARSH, NOISY}
    assert (document["n_runs"], document["n_judged_runs"]) == (3, 3)
    assert document["settings"]["jurors"] == [HARSH, NOISY]
    assert {one["model"]: one["usage"]["calls"] for one in document["jurors"]} == {
        name: sum(one.model_id == name for one in requests) for name in (HARSH, NOISY)
    }
    assert document["cost_usd"] == pytest.approx(sum(o["cost_usd"] for o in document["jurors"]))


def test_the_first_verdicts_are_never_touched(kept, again):
    folder, before = kept
    assert firsts(folder) == before
    for one in again[0]["runs"]:
        names = [path.name for path in Path(one["judging"]).iterdir()]
        assert {"judging.json", "judge_000.json", "judge_002.json"} <= {*names}
        assert not [name for name in names if name.startswith("turn_")]


def test_its_name_tells_judge_rubric_and_settings(again):
    name = again[0]["name"]
    judges, rubric, digits = name.rsplit("_", 2)
    assert "judge-bias--5" in judges
    assert rubric == "socratic-disposition-2"
    assert len(digits) == 8
    assert int(digits, 16) >= 0


def test_differences_are_those_of_the_stored_verdicts(kept, again):
    folder, before = kept
    pairs = []
    for one in again[0]["runs"]:
        curated = json.loads(before[f"curated/runs/{one['run_id']}.json"])
        if curated["judge"] is None:
            continue
        for turn in curated["turns"]:
            file = f"judge_{turn['turn']:03d}.json"
            new = stored(folder, one["run_id"], again[0]["name"], file)
            assert_valid("judge", new)
            pairs.append((turn["scores"], new["scores"]))
    changed = again[0]["dimensions"]
    for name in ("form", "substance", "purity"):
        differences = [new[name] - old[name] for old, new in pairs]
        assert changed[name]["n_turns"] == len(pairs) == 6
        assert changed[name]["mean_difference"] == pytest.approx(fmean(differences), abs=1e-4)
        assert changed[name]["absolute_error"] == pytest.approx(
            fmean(map(abs, differences)), abs=1e-4
        )
    assert changed["overall_score"]["mean_difference"] < 0
    assert -1 <= changed["overall_score"]["alpha"] <= 1


def test_a_run_that_nobody_judged_gets_its_first_figures(kept, again):
    document = again[0]
    (bare,) = [one for one in document["runs"] if one["first"]["overall_score"] is None]
    assert bare["second"]["overall_score"] is not None
    judging = stored(kept[0], bare["run_id"], document["name"], "judging.json")
    assert_valid("curated", judging)
    assert judging["overall_score"] == bare["second"]["overall_score"]
    first = json.loads(kept[1][f"curated/runs/{bare['run_id']}.json"])
    assert judging["student"] == first["student"]
    for old, new in zip(first["turns"], judging["turns"], strict=True):
        alike = ("student", "question", "heuristics", "student_policy", "flaw", "stop_reason")
        assert {key: old[key] for key in alike} == {key: new[key] for key in alike}
    assert document["figures"]["overall_score"]["n_runs"] == 2


def test_given_again_it_asks_nothing_and_says_the_same(endpoint, kept, again):
    outcome, requests = judge(endpoint, kept[0], "--judge-model", HARSH, "--judge-model", NOISY)
    assert requests == []
    assert outcome.document == again[0]


def test_people_read_the_document_s_figures(endpoint, kept, again):
    words = ("judge", kept[0], "--judge-model", HARSH, "--judge-model", NOISY)
    told = [line.split() for line in run(*words, env=account(endpoint.url)).stderr.splitlines()]
    form = again[0]["dimensions"]["form"]
    keys = ("first", "second", "mean_difference", "absolute_error", "alpha")
    assert ["form", "6", *(number(form[key]) for key in keys)] in told
    assert number(again[0]["cost_usd"]) in told[-2]
    assert len(told) <= 10


def test_what_was_cut_short_is_gone_on_with(endpoint, kept):
    words = (kept[0], "--judge-model", PLAIN, "--judge-samples", "2", "--max-attempts", "1")
    cut, first = judge(endpoint, *words, faults=["unavailable:after=5"])
    assert cut.exit_code == 4
    assert cut.document["n_judged_runs"] < 3
    whole, rest = judge(endpoint, *words)
    assert (whole.exit_code, whole.document["n_judged_runs"]) == (0, 3)
    asked = [one.body_sha256 for one in (*first, *rest) if one.fault is None]
    assert len(asked) == len({*asked})


def test_a_killed_judging_repeats_only_what_was_under_way(kept, again, tmp_path):
    """Of three runs that a jury judges one after another."""
    folder, service = tmp_path / "kept", Service()
    shutil.copytree(kept[0], folder, ignore=shutil.ignore_patterns("judgings"))
    words = ("judge", str(folder), "--judge-model", HARSH, "--judge-model", NOISY, "--quiet")
    with closing(service):
        service.reset(latency_ms=30)
        process = start(*words, env=account(service.url))
        wait_for_calls(service, len(again[1]) // 2)
        process.kill()
        process.communicate()
        journals = [*folder.glob("raw/runs/*/judgings/*/journal/runs/*.jsonl")]
        n_lost = sum(map(under_way, journals))
        finished = {path: path.read_bytes() for path in folder.rglob("judging.json")}
        whole = run(*words, env=account(service.url))
        asked = bodies(service)
    assert journals
    assert whole.exit_code == 0
    for key in ("n_judged_runs", "dimensions", "figures", "name"):
        assert whole.document[key] == again[0][key]
    assert len(asked) == len({one.body_sha256 for one in again[1]})
    assert asked.total() - len(asked) <= n_lost
    assert all(path.read_bytes() == body for path, body in finished.items())


def test_closing_verdicts_that_cannot_be_used_are_not_asked_again(endpoint, kept, tmp_path):
    folder = tmp_path / "kept"
    shutil.copytree(kept[0], folder, ignore=shutil.ignore_patterns("judgings"))
    faults = ("prose_verdict:role=judge",)
    first, requests = judge(endpoint, str(folder), "--judge-model", PLAIN, faults=faults)
    again, repeated = judge(endpoint, str(folder), "--judge-model", PLAIN, faults=faults)

    assert requests
    assert repeated == []
    assert again.document == first.document


def test_another_rubric_keeps_the_judge(endpoint, kept):
    words = (kept[0], "--judge-model", PLAIN, "--rubric", PLAIN_RUBRIC)
    outcome, _ = judge(endpoint, *words)
    document = outcome.document
    assert outcome.exit_code == 0
    assert document["settings"]["rubric"] == "plain-disposition"
    assert document["name"].split("_")[1] == "plain-disposition"


def test_a_budget_holds_for_all_runs_together(endpoint, kept):
    words = (kept[0], "--judge-model", HARSH)
    begun = len(endpoint.requests)
    dry = run("judge", *words, "--dry-run", env=account(endpoint.url))
    asked = list(endpoint.requests)[begun:]
    (juror,), (told, total) = dry.document["jurors"], dry.stderr.splitlines()[-2:]
    assert f"{HARSH}: {juror['usage']['calls']} calls, {juror['cost_usd']:.4f} USD" in told
    assert f"expected {dry.document['cost_usd']:.4f} USD" in total
    assert_valid("judgings_dry_run", dry.document)
    assert {one.operation for one in asked} <= {"CountTokens"}
    assert dry.document["n_turns"] == 9
    limit = dry.document["cost_usd"] / 2
    cut, _ = judge(endpoint, *words, "--max-cost-usd", f"{limit:.6f}")
    assert cut.exit_code == 6
    assert cut.document["cost_usd"] <= limit
    assert cut.document["runs"][-1]["status"] in ("left", "partial")
    whole, _ = judge(endpoint, *words)
    assert limit < whole.document["cost_usd"] <= dry.document["high_usd"]
    calls = sum(one["usage"]["calls"] for one in dry.document["jurors"])
    assert whole.document["jurors"][0]["usage"]["calls"] == calls


def test_comparisons_choose_a_judging(kept, again):
    folder, name = kept[0], again[0]["name"]
    by_first = run("compare", folder, "--quiet", "--allow").document
    by_second = run("compare", folder, "--quiet", "--judging", name).document

    def mean(document, tutor):
        (one,) = [c for c in document["contenders"] if c["model"] == tutor]
        return one["metrics"]["overall_score"]["mean"]

    second = {one["run_id"]: one["second"]["overall_score"] for one in again[0]["runs"]}
    curated = [json.loads(p.read_bytes()) for p in Path(folder).glob("curated/runs/*.json")]
    of_drift = [second[one["run_id"]] for one in curated if one["model"] == TUTORS[1]]
    assert mean(by_second, TUTORS[1]) == pytest.approx(fmean(of_drift), abs=1e-4)
    assert mean(by_second, TUTORS[1]) < mean(by_first, TUTORS[1])

    unknown = run("compare", folder, "--quiet", "--judging", "nobody_x_00000000")
    assert unknown.exit_code == 2
    assert name in unknown.document["error"]["message"]


def test_reports_choose_a_judging_with_each_jurors_verdict(kept, again):
    folder, name = kept[0], again[0]["name"]
    rows = read_rows([folder], lambda: "us-east-1", name)
    second = {one["run_id"]: one["second"]["overall_score"] for one in again[0]["runs"]}
    assert {run.run_id: run.metrics["overall_score"] for run in rows.runs} == second
    for run_row in rows.runs:
        assert run_row.at("timestamps.started_at")
        for turn in run_row.turns:
            file = stored(folder, run_row.run_id, name, f"judge_{turn.turn:03d}.json")
            assert [one.juror for one in turn.verdicts] == [HARSH, NOISY]
            assert [one.scores for one in turn.verdicts] == [o["scores"] for o in file["jurors"]]
            assert turn.scores == file["scores"]
            assert turn.latency_ms is not None  # of the run itself


def test_a_document_leads_to_its_folder(endpoint, kept, again, tmp_path):
    run_id = again[0]["runs"][0]["run_id"]
    file = tmp_path / "run.json"
    file.write_bytes((Path(kept[0]) / f"curated/runs/{run_id}.json").read_bytes())
    outcome, asked = judge(endpoint, str(file), "--judge-model", HARSH, "--judge-model", NOISY)
    assert asked == []
    assert [one["run_id"] for one in outcome.document["runs"]] == [run_id]


def test_all_mistakes_are_told_at_once(endpoint, tmp_path):
    words = (
        "--judge-model",
        PLAIN,
        "--judge-model",
        PLAIN,
        "--quorum",
        "3",
        "--judge-samples",
        "x",
    )
    curated = tmp_path / "curated" / "runs"
    curated.mkdir(parents=True)
    (curated / "run-01M84E0MBN3NQY7FV77BJTRAWG.json").write_text('{"kind": "curated", "tur')
    outcome, asked = judge(endpoint, str(tmp_path / "nowhere"), str(tmp_path), *words)
    message = outcome.document["error"]["message"]
    assert (outcome.exit_code, asked) == (2, [])
    for said in (
        "nowhere",
        "BJTRAWG.json is not a JSON document",
        "twice",
        "--quorum is 3",
        "--judge-samples",
    ):
        assert said in message
    nothing, _ = judge(endpoint)
    assert nothing.exit_code == 2
    assert "Missing argument RUNS" in nothing.document["error"]["message"]
    assert "--runs" not in nothing.document["error"]["message"]  # it is no flag here


def test_a_value_of_another_type_in_a_judging_is_told_with_its_file(kept, again, tmp_path):
    folder, name = shutil.copytree(kept[0], tmp_path / "runs"), again[0]["name"]
    path = next(folder.glob(f"raw/runs/*/judgings/{name}/judging.json"))
    document = json.loads(path.read_bytes())
    path.write_text(json.dumps(document | {"metrics": {"usefulness": "much"}}))
    told = run("compare", str(folder), "--judging", name)

    assert told.exit_code == 2
    said = f"{path.relative_to(folder)}: metrics.usefulness: Expected `float | null`, got `str`."
    assert said in told.stderr


def test_verdicts_of_a_bucket_s_runs_lie_beside_them(client, bucket, moto_url):
    keys = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "example"}
    env = environment(AWS_ENDPOINT_URL_S3=moto_url, AWS_REGION="us-east-1", **keys)
    words = ("--offline", "--model", TUTORS[1], "--seed", "7", *ALONE)
    played = run(*words, "--s3-bucket", bucket, "--s3-prefix", "team", env=env)
    run_id = played.document["run_id"]
    place = f"s3://{bucket}/team"
    first = run("judge", place, "--quiet", "--judge-model", HARSH, env=env)
    assert (first.exit_code, first.document["n_judged_runs"]) == (0, 1)
    name = first.document["name"]
    rows = client.list_objects_v2(Bucket=bucket)["Contents"]
    folder = f"team/raw/runs/{run_id}/judgings/{name}/"
    assert first.document["runs"][0]["judging"] == f"s3://{bucket}/{folder}"
    found = {row["Key"].removeprefix(folder) for row in rows if row["Key"].startswith(folder)}
    assert {"judge_000.json", "judge_002.json", "closing_verdict.json", "judging.json"} <= found

    again = run("judge", place, "--quiet", "--judge-model", HARSH, env=env)
    assert again.document == first.document
    n_now = len(client.list_objects_v2(Bucket=bucket)["Contents"])
    assert n_now - len(rows) <= 2  # a process's entry in the journal, and its lease
    unknown = run("compare", place, "--judging", "nobody_x_00000000", "--quiet", env=env)
    assert name in unknown.document["error"]["message"]
