"""`calibrate`: a judge held to labels, through the command."""

import csv
import json
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import fmean, stdev

import krippendorff
import pytest
from scipy import stats

from socratic_bench.emulator import Emulator, Settings
from socratic_bench.ports.parts import Parts
from tests.command import PLAIN_RUBRIC, account, assert_valid, environment, run
from tests.labelled import DIMENSIONS, labels, write_csv, write_jsonl
from tests.resuming import (
    Service,
    account_of,
    bodies,
    journal,
    n_answered,
    start,
    wait_for_calls,
    whole_entries,
)
from tests.schemas import breaches
from tests.sweep_kills import under_way

OFFLINE = ("--offline", "--quiet")
MATCH = ("--match", "tells=purity<2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("labels")


@pytest.fixture(scope="module")
def rows():
    return labels()


@pytest.fixture(scope="module")
def calibrated(folder, rows):
    path = write_jsonl(folder / "labels.jsonl", rows)
    kept = str(folder / "kept")
    # What later runs are told of is not there yet.
    return run(
        *("calibrate", "--labels", path, *MATCH, "--plan", "0.05", "--offline"),
        *("--output-dir", kept),
        env=environment(RUNNER_CALIBRATION=kept),
    )


def pairs(document, name):
    """The judge's value and the label of each reply, by dialogue."""
    found = {}
    for turn in document["turns"]:
        if name in turn["label"]:
            pair = (turn["judge"][name], turn["label"][name])
            found.setdefault(turn["dialogue"], []).append(pair)
    return found


def flat(document, name):
    return [pair for some in pairs(document, name).values() for pair in some]


def kappa(found):
    """Cohen's with quadratic weights, from the table of all pairs."""
    n = len(found)
    seen = sum((one - other) ** 2 for one, other in found) / n
    chance = sum((one - other) ** 2 for one, _ in found for _, other in found) / n**2
    return 1 - seen / chance


def left_out(found, figure):
    """The 95 % interval of the jackknife over dialogues."""
    k = len(found)
    without = [
        figure([pair for m, some in enumerate(found.values()) if m != n for pair in some])
        for n in range(k)
    ]
    error = ((k - 1) / k * sum((one - fmean(without)) ** 2 for one in without)) ** 0.5
    whole = figure([pair for some in found.values() for pair in some])
    half = stats.t.ppf(0.975, k - 1) * error
    return whole - half, whole + half


class TestScores:
    @pytest.mark.parametrize("name", [*DIMENSIONS, "overall_score"])
    def test_figures_are_those_reckoned_outside(self, calibrated, name):
        found = calibrated.document["dimensions"][name]
        values = flat(calibrated.document, name)
        errors = [judge - label for judge, label in values]
        judge, label = zip(*values, strict=True)
        expected = {
            "weighted_kappa": kappa(values),
            "alpha": krippendorff.alpha([judge, label], level_of_measurement="ordinal"),
            "mean_absolute_error": fmean(map(abs, errors)),
            "bias": fmean(errors),
            "deviation": stdev(errors),
            "spearman": stats.spearmanr(judge, label).statistic,
        }
        assert {key: found[key]["value"] for key in expected} == pytest.approx(expected, abs=1e-6)
        assert (found["n"], found["n_clusters"]) == (48, 12)
        assert sum(cell["n"] for cell in found["confusion"]) == 48

    def test_dialogues_of_one_scenario_are_one_cluster(self, folder, rows, calibrated):
        """Twelve dialogues of six scenarios have the intervals of six clusters."""
        named = [{**row, "scenario": f"s{int(row['dialogue'][1:]) % 6}"} for row in rows]
        path = write_jsonl(folder / "scenarios.jsonl", named)
        document = run("calibrate", "--labels", path, *MATCH, *OFFLINE).document
        assert (document["labels"]["n_dialogues"], document["labels"]["n_scenarios"]) == (12, 6)
        found = document["dimensions"]["form"]
        by_scenario = {}
        for turn in document["turns"]:
            pair = (turn["judge"]["form"], turn["label"]["form"])
            by_scenario.setdefault(turn["scenario"], []).append(pair)
        low, high = left_out(by_scenario, lambda some: fmean(one - other for one, other in some))
        assert found["n_clusters"] == 6
        assert (found["bias"]["low"], found["bias"]["high"]) == pytest.approx((low, high), abs=1e-6)
        assert found["bias"]["low"] != calibrated.document["dimensions"]["form"]["bias"]["low"]

    def test_intervals_are_clustered_by_dialogue(self, calibrated):
        by_dialogue = pairs(calibrated.document, "form")
        found = calibrated.document["dimensions"]["form"]
        for key, figure in (
            ("bias", lambda some: fmean(one - other for one, other in some)),
            ("weighted_kappa", kappa),
        ):
            low, high = left_out(by_dialogue, figure)
            told = found[key]["low"], found[key]["high"]
            assert told == pytest.approx((max(low, -1), min(high, 1)), abs=1e-6)

    def test_a_person_against_the_other_is_the_ceiling(self, calibrated, rows):
        anna, ben = (
            [row["scores"]["form"] for row in rows if row["labeller"] == who]
            for who in ("anna", "ben")
        )
        human = calibrated.document["dimensions"]["form"]["human"]
        assert human["n"] == 48
        assert human["weighted_kappa"]["value"] == pytest.approx(
            kappa([*zip(anna, ben, strict=True)]), abs=1e-6
        )

    def test_the_plan_says_how_many_more(self, calibrated):
        """As many dialogues more as make the interval that narrow, were they to vary as these."""
        found = calibrated.document["dimensions"]["form"]
        half = (found["bias"]["high"] - found["bias"]["low"]) / 2
        spread = half / stats.t.ppf(0.975, 11) * 12**0.5
        enough = 12 + found["more_labels"]["bias"] // 4
        halves = [stats.t.ppf(0.975, k - 1) * spread / k**0.5 for k in (enough - 1, enough)]
        assert halves[1] <= 0.05 < halves[0]
        assert calibrated.document["dimensions"]["form"]["more_labels"].keys() == {
            "bias",
            "weighted_kappa",
        }


class TestAnswers:
    def test_the_judges_event_stands_beside_the_label_of_its_name(self, calibrated):
        assert_valid("calibration", calibrated.document)
        found = calibrated.document["events"]["answer_disclosed"]
        values = flat(calibrated.document, "answer_disclosed")
        assert found["judged_by"] == "answer_disclosed"
        assert found["confusion"]["both"] == sum(judge and label for judge, label in values) > 0
        assert found["precision"]["value"] == pytest.approx(
            found["confusion"]["both"] / sum(judge for judge, _ in values)
        )

    def test_a_perfect_rate_has_an_interval_and_a_perfect_agreement_has_none(self, folder, rows):
        """No interval has a width of zero."""
        path = write_jsonl(folder / "first.jsonl", rows)
        first = run("calibrate", "--labels", path, *MATCH, *OFFLINE).document
        seen = {
            (turn["dialogue"], n): turn["judge"]["answer_disclosed"]
            for n, turn in enumerate(first["turns"])
        }
        same = [
            {**row, "events": {"answer_disclosed": seen[row["dialogue"], n]}}
            for n, row in enumerate(row for row in rows if row["labeller"] == "anna")
        ]
        path = write_jsonl(folder / "same.jsonl", same)
        found = run("calibrate", "--labels", path, *OFFLINE).document["events"]["answer_disclosed"]
        for key in ("precision", "recall", "specificity"):
            assert found[key]["value"] == found[key]["high"] == 1
            assert 0.5 < found[key]["low"] < 1
        assert found["kappa"] == {"value": 1, "low": None, "high": None}
        never = [{**row, "events": {"off_topic": bool(n % 3)}} for n, row in enumerate(same)]
        path = write_jsonl(folder / "never.jsonl", never)
        kappa = run("calibrate", "--labels", path, *OFFLINE).document["events"]["off_topic"][
            "kappa"
        ]
        assert kappa == {"value": 0, "low": None, "high": None}

    def test_a_score_against_a_bound_has_an_auc(self, calibrated):
        document = calibrated.document
        found = document["events"]["tells"]
        turns = [(one["judge"]["purity"], one["label"]["tells"], one) for one in document["turns"]]
        assert found["judged_by"] == "purity<2"
        assert all(one["judge"]["tells"] == (score < 2) for score, _, one in turns)

        def auc(some):
            yes = [-score for score, label, _ in some if label]
            no = [-score for score, label, _ in some if not label]
            u = stats.mannwhitneyu(yes, no).statistic
            return u, len(yes) * len(no)

        above, n_pairs = auc(turns)
        assert found["auc"]["value"] == pytest.approx(above / n_pairs, abs=1e-6)
        groups = {
            author: auc([one for one in turns if one[2]["author"] == author])
            for author in ("author-0", "author-1", "author-2")
        }
        expected = {author: above / n for author, (above, n) in groups.items()}
        assert found["auc_by_author"] == pytest.approx(expected, abs=1e-6)
        within = sum(above for above, _ in groups.values()) / sum(n for _, n in groups.values())
        assert found["auc_within_authors"]["value"] == pytest.approx(within, abs=1e-6)


class TestOwnJudge:
    """A judge of the test's own, behind the emulator: what it says is known beforehand."""

    MODEL = "own.judge-v1:0"

    def test_the_auc_of_a_noisy_oracle_is_that_reckoned_outside(self, folder, rows):
        rows = [{**row, "events": {"tells": row["events"]["tells"]}} for row in rows]
        path = write_jsonl(folder / "oracle.jsonl", rows)
        dice = Random(5)
        asked = [row for row in rows if row["labeller"] == "anna"]
        truth = [row["events"]["tells"] for row in asked]
        purity = [round(2 * dice.triangular(0, 4, 1 if yes else 3)) / 2 for yes in truth]
        # A reply occurs several times, so that the judge goes by how often it was shown what.
        known = {}
        for row, score in zip(asked, purity, strict=True):
            known.setdefault((row["prompt"], row["reply"]), score)
        said = [known[row["prompt"], row["reply"]] for row in asked]

        def oracle(body):
            shown = body["messages"][0]["content"][0]["text"]
            (score,) = (
                score
                for (prompt, reply), score in known.items()
                if f"\n{reply}\n</reply-" in shown and f"\n{prompt}\n" in shown
            )
            reasons = dict.fromkeys(DIMENSIONS, "So.")
            return {"form": 1, "substance": 2, "purity": score, "rationale": reasons}

        with Emulator(Settings(speakers={self.MODEL: oracle})) as served:
            words = ("--labels", path, *MATCH, "--rubric", PLAIN_RUBRIC, "--quiet")
            outcome = run(
                *("calibrate", *words, "--judge-model", self.MODEL), env=account(served.url)
            )
        assert outcome.exit_code == 0, outcome.document["error"]
        found = outcome.document["events"]["tells"]["auc"]["value"]
        yes = [-score for score, label in zip(said, truth, strict=True) if label]
        no = [-score for score, label in zip(said, truth, strict=True) if not label]
        expected = stats.mannwhitneyu(yes, no).statistic / (len(yes) * len(no))
        assert outcome.document["n_judged"] == len(asked)
        assert 0.5 < found < 1
        assert found == pytest.approx(expected, abs=1e-6)
        assert {one.role for one in served.requests} == {"judge"}


class TestRepeatedVerdicts:
    """Of a judge that is asked several times, or of several judges."""

    MODEL = "emulator.judge-bias-5-noise-10-quirk-5-v1:0"

    @pytest.fixture(scope="class")
    @classmethod
    def repeated(cls, folder):
        path = write_jsonl(folder / "many.jsonl", labels(n_dialogues=10, people=("anna",)))
        words = ("--labels", path, "--match", "tells=purity<2", *OFFLINE)
        return run(
            *("calibrate", *words, "--judge-model", cls.MODEL, "--judge-samples", "4"),
            *("--output-dir", str(folder / "repeated")),
        ).document, path

    def test_deviation_is_split_in_what_stays_and_what_passes(self, folder, repeated):
        document, _ = repeated
        assert document["judge"]["samples"] == 4
        files = (folder / "repeated").glob("calibrations/raw/runs/*/judge_*.json")
        variances = []
        for file in files:
            votes = json.loads(file.read_bytes())["jurors"]
            values = [sample["scores"]["form"] for vote in votes for sample in vote["samples"]]
            assert len(values) == 4
            variances.append(stdev(values) ** 2)
        found = document["dimensions"]["form"]
        passing = fmean(variances)
        whole = stdev([judge - label for judge, label in flat(document, "form")]) ** 2
        assert found["deviation_passing"] == pytest.approx(passing**0.5, abs=1e-5)
        lasting = max(0, whole - passing / 4) ** 0.5
        assert found["deviation_lasting"] == pytest.approx(lasting, abs=1e-5)

    def test_a_jury_is_calibrated_as_one(self, folder, repeated):
        _, path = repeated
        refusing = "emulator.judge-refuses-v1:0"
        jurors = (self.MODEL, "emulator.judge-v1:0", refusing)
        jury = [word for juror in jurors for word in ("--judge-model", juror)]
        words = ("--labels", path, "--match", "tells=purity<2", *OFFLINE, *jury, "--quorum", "2")
        outcome = run("calibrate", *words)
        document = outcome.document
        assert document["judge"]["model"] == "+".join(jurors)
        assert (document["judge"]["rule"], document["n_judged"]) == ("mean", 40)
        assert document["usage"]["calls"] == 80 + 2 * 40  # each of one's is asked for once more
        assert document["judge"]["silent"] == [refusing]
        lost = f"The juror {refusing} gave no verdict on 40 of 40: unreadable_verdict."
        assert lost in document["notices"]

        kept = folder / "jury.json"
        kept.write_bytes(outcome.stdout)
        played = run(*TestStatus.RUN, *jury, "--calibration", str(kept)).document
        assert played["judge"]["calibration"]["reasons"] == []
        whole = {**document, "judge": {**document["judge"], "silent": []}}
        kept.write_text(json.dumps(whole))
        played = run(*TestStatus.RUN, *jury, "--calibration", str(kept)).document
        status = played["judge"]["calibration"]
        assert (status["status"], status["reasons"]) == (
            "stale",
            [f"{refusing} gave no verdict now"],
        )


class TestDocument:
    def test_it_names_judge_rubric_and_labels(self, calibrated):
        document = calibrated.document
        assert (document["status"], document["n_judged"]) == ("completed", 48)
        assert document["judge"]["model"] == "emulator.judge-v1:0"
        assert document["judge"]["rubric"] == "socratic-disposition-2"
        assert document["judge"]["temperature"] == 0.0
        assert document["labels"]["n"] == 96
        assert document["labels"]["labellers"] == ["anna", "ben"]
        assert document["cost_usd"] > 0
        assert document["usage"]["calls"] == 48
        assert "form " in calibrated.stderr

    def test_the_worst_disagreements_come_first_with_both_reasons(self, calibrated):
        found = [one for one in calibrated.document["disagreements"] if one["of"] == "form"]
        sizes = [abs(one["judge"] - one["label"]) for one in found]
        largest = max(abs(a - b) for a, b in flat(calibrated.document, "form"))
        assert sizes[0] == largest
        assert all(one >= other for one, other in pairwise(sizes))
        assert found[0]["judge_reason"]
        assert found[0]["label_reasons"] == ["anna has a reason", "ben has a reason"]

    def test_csv_says_the_same(self, folder, rows, calibrated):
        path = write_csv(folder / "labels.csv", rows)
        found = run("calibrate", "--labels", path, *MATCH, *OFFLINE).document
        assert found["turns"] == calibrated.document["turns"]
        assert found["labels"] == calibrated.document["labels"]

    @pytest.mark.parametrize(
        ("columns", "cells", "said"),
        [
            ("scores.form", "two", "line 2: scores.form is 'two': write a number"),
            ("scores.form,history", "2,nobody", "line 2: history is not valid JSON"),
            ("events.tells", "maybe", "line 2: events.tells is 'maybe': write yes or no"),
            ("scores.form", "2.3", "line 2: form is 2.3: a score is 0 to 3 in steps of 0.5."),
            ("scores.form,scores.form", "1,3", "line 1: two columns have one name: scores.form"),
            ("scores.form,,", "5,,", "line 2: form is 5: a score is 0 to 3 in steps of 0.5."),
        ],
    )
    def test_what_is_wrong_with_a_cell_is_told_by_its_column(self, tmp_path, columns, cells, said):
        path = tmp_path / "labels.csv"
        path.write_text(f"labeller,dialogue,prompt,reply,{columns}\nanna,d,Why?,So.,{cells}\n")
        found = run("calibrate", "--labels", str(path), *OFFLINE)
        assert found.exit_code == 2
        assert said in found.document["error"]["message"]


class TestMoney:
    """The verdicts are those of an ordinary run."""

    def test_a_dry_run_says_what_it_takes(self, folder, calibrated):
        path = str(folder / "labels.jsonl")
        outcome = run("calibrate", "--labels", path, *MATCH, *OFFLINE, "--dry-run")
        found = json.loads(outcome.stdout)
        assert breaches("dry_run", found, Parts()) == []
        assert (found["kind"], found["usage"]["judge"]["calls"]) == ("dry_run", 48)
        expected = calibrated.document["cost_usd"]
        assert found["cost"]["total"]["total_usd"] == pytest.approx(expected, rel=0.02)

    def test_what_a_budget_cut_short_is_gone_on_with(self, folder, calibrated):
        path, out = str(folder / "labels.jsonl"), folder / "out"
        words = ("calibrate", "--labels", path, *MATCH, *OFFLINE, "--output-dir", str(out))
        cut = run(*words, "--max-cost-usd", "0.2", "--max-concurrency", "1")
        assert (cut.exit_code, cut.document["status"]) == (6, "partial")
        assert 0 < cut.document["n_judged"] < 48
        whole = run(*words, "--resume")
        assert (whole.exit_code, whole.document["n_judged"]) == (0, 48)
        assert whole.document["turns"] == calibrated.document["turns"]
        (kept,) = (out / "calibrations").glob("run-*.json")
        assert json.loads(kept.read_bytes()) == whole.document
        assert whole.document["run_id"] == cut.document["run_id"]
        journal = out / "calibrations" / "journal" / "runs" / f"{kept.stem}.jsonl"
        asked = [json.loads(line) for line in journal.read_text().splitlines()]
        answered = [one["key"]["index"] for one in asked if one["kind"] == "answered"]
        assert sorted(answered) == [*range(48)]


def test_a_killed_calibration_repeats_only_what_was_under_way(folder, calibrated):
    out, service = folder / "killed", Service()
    words = ("calibrate", "--labels", str(folder / "labels.jsonl"), *MATCH, "--quiet", "--resume")
    words = (*words, "--judge-model", "emulator.judge-v1:0", "--output-dir", str(out))
    with closing(service):
        service.reset(latency_ms=30)
        process = start(*words, env=account_of(service))
        wait_for_calls(service, 20)
        process.kill()
        process.communicate()
        n_lost = under_way(journal(out / "calibrations"))
        n_finished = n_answered(whole_entries(out / "calibrations"))
        whole = run(*words, env=account_of(service))
        asked = bodies(service)
    assert (whole.exit_code, whole.document["n_judged"]) == (0, 48)
    assert whole.document["turns"] == calibrated.document["turns"]
    assert 0 < n_finished < len(asked) == 48
    assert asked.total() - len(asked) <= n_lost


def test_without_labels_it_says_where_to_read_on():
    error = run("calibrate").document["error"]
    assert (error["message"], error["hint"]) == (
        "No labels: give --labels FILE or --mrbench FILE.",
        "See socratic-runner calibrate --help.",
    )


def test_every_mistake_is_told_at_once(folder):
    rows = labels(n_dialogues=1, n_turns=1, people=("anna",))
    wrong = [
        {**rows[0], "probability": 0},
        {**rows[0], "scores": {"charm": 1}},
        {**rows[0], "labeller": "ben", "scores": {"form": 9}, "run_id": "r"},
        {"labeller": "anna", "dialogue": "d", "scores": {"form": 1}},
        {**rows[0], "colour": "red"},
        {**rows[0], "labeller": "\ud800"},
        {**rows[0], "run_id": "r", "turn": 10**30},
        {**rows[0], "run_id": "r", "turn": 10**7},
    ]
    path = write_jsonl(folder / "wrong.jsonl", wrong)
    missing = str(Path(path).with_name("no.csv"))
    words = ("calibrate", "--labels", path, missing, "--runs", missing)
    found = run(*words, "--rubric", "none", "--plan", "wide", "--quiet", env=environment())
    message = found.document["error"]["message"]
    assert found.exit_code == 2
    for told in (
        "--plan takes",
        "no rubric 'none'",
        "line 1: prob",
        f"no file or folder {missing}",
    ):
        assert told in message, message
    found = run(*words, "--judge-samples", "0", "--quiet", env=environment())
    message = found.document["error"]["message"]
    for line in ("line 1: probability", "line 3: run_id", "line 4: nothing says", "line 5"):
        assert line in message, message
    for line in (
        "line 6: it is not valid JSON",
        "line 7: turn: Expected",
        "line 8: turn: Expected",
    ):
        assert line in message, message
    for told in ("no.csv cannot be read", "--judge-samples is 0", "No region", f"folder {missing}"):
        assert told in message, message
    path = write_jsonl(
        folder / "wrong.jsonl", [wrong[1], {**rows[0], "scores": {"form": 9}, "labeller": "c"}]
    )
    message = run("calibrate", "--labels", path, *OFFLINE).document["error"]["message"]
    for words in ("line 1: 'charm' is not a dimension", "line 2: form is 9: a score"):
        assert words in message, message
    path = write_jsonl(folder / "unmatched.jsonl", rows)
    found = run("calibrate", "--labels", path, *OFFLINE, "--match", "sings=off_topic")
    message = found.document["error"]["message"]
    assert "no event 'tells', which is labelled: say with --match tells=QUANTITY what" in message
    assert "--match names 'sings', which is not labelled." in message


def test_a_bucket_keeps_calibration_and_calls(client, bucket, moto_url, folder, calibrated):
    keys = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "example"}
    env = environment(AWS_ENDPOINT_URL_S3=moto_url, **keys)
    words = ("--labels", str(folder / "labels.jsonl"), *MATCH, *OFFLINE, "--s3-bucket", bucket)
    document = run("calibrate", *words, "--s3-prefix", "team", env=env).document
    found = client.list_objects_v2(Bucket=bucket, Prefix="team/")["Contents"]
    names = {one["Key"] for one in found}
    key = f"team/calibrations/{document['run_id']}.json"
    assert all(name.startswith("team/calibrations/") for name in names)
    assert json.loads(client.get_object(Bucket=bucket, Key=key)["Body"].read()) == document
    assert sum("/judge_" in name for name in names) == 48
    assert document["turns"] == calibrated.document["turns"]

    within = f"s3://{bucket}/team"
    for place in (within, f"{within}/calibrations/", f"s3://{bucket}/{key}"):
        played = run(*TestStatus.RUN, "--calibration", place, env=env).document
        found = played["judge"]["calibration"]
        assert (found["reasons"], found["by"]) == ([], document["run_id"])
    for place, why in (
        (f"s3://{bucket}/elsewhere", "has no calibration (calibrations/run-*.json)"),
        (f"s3://{bucket}/elsewhere.json", "there is no such object"),
        ("s3://", "names no bucket"),
    ):
        refused = run(*TestStatus.RUN, "--calibration", place, env=env)
        assert refused.exit_code == 2
        message = refused.document["error"]["message"]
        assert f"calibration {place} " in message
        assert why in message


class TestStatus:
    """A later run says whether its judge was held to labels."""

    RUN = (
        *("--offline", "--model", "emulator.socratic-v1:0", "--prompt", "Why?"),
        *("--turns", "1", "--seed", "7"),
    )

    @pytest.fixture(scope="class")
    @classmethod
    def file(cls, folder, calibrated):
        path = folder / "calibration.json"
        path.write_bytes(calibrated.stdout)
        return str(path)

    def status(self, *words, env=None):
        document = run(*self.RUN, *words, env=env).document
        return document["judge"]["calibration"]

    def test_the_same_judge_is_calibrated(self, file, calibrated):
        found = self.status("--calibration", file)
        assert found == {
            "status": "calibrated",
            "by": calibrated.document["run_id"],
            "calibrated_at": calibrated.document["completed_at"],
            "n_labelled": 48,
            "n_dialogues": 12,
            "weighted_kappa": calibrated.document["dimensions"]["overall_score"]["weighted_kappa"],
            "reasons": [],
        }
        assert self.status(env=environment(RUNNER_CALIBRATION=file)) == found

    @pytest.mark.parametrize(
        ("words", "status", "reason"),
        [
            (("--rubric", PLAIN_RUBRIC), "stale", "another rubric"),
            (("--judge-context", "1"), "stale", "exchanges shown was 3 then, and is 1 now"),
            (("--judge-samples", "2"), "stale", "number of samples was 1 then, and is 2 now"),
            (
                ("--judge-model", "emulator.judge-bias-5-v1:0"),
                "uncalibrated",
                "is of emulator.judge-v1:0",
            ),
        ],
    )
    def test_another_one_is_not(self, file, words, status, reason):
        found = self.status("--calibration", file, *words)
        assert found["status"] == status
        assert any(reason in one for one in found["reasons"]), found

    def test_of_all_that_a_folder_keeps_the_one_that_fits_counts(self, folder, calibrated):
        """The newer one of another judge is passed over, and taken where that one judges."""
        kept = folder / "several" / "calibrations"
        kept.mkdir(parents=True)
        other = calibrated.document
        last = "Y" if other["run_id"].endswith("Z") else "Z"
        other = {
            **other,
            "run_id": f"{other['run_id'][:-1]}{last}",
            "completed_at": "2999-01-01T00:00:00Z",
            "judge": {**other["judge"], "model": "emulator.judge-bias-5-v1:0"},
        }
        for one in (calibrated.document, other):
            (kept / f"{one['run_id']}.json").write_text(json.dumps(one))
        for place in (kept, kept.parent):
            found = self.status("--calibration", str(place))
            assert (found["status"], found["by"]) == ("calibrated", calibrated.document["run_id"])
        by_other = ("--judge-model", other["judge"]["model"])
        assert self.status("--calibration", str(kept), *by_other)["by"] == other["run_id"]

    def test_sweeps_judgings_and_reports_take_a_folder_too(self, folder, calibrated, tmp_path):
        kept, out = ("--calibration", str(folder / "kept")), ("--output-dir", str(tmp_path))
        grid = ("--models", "emulator.socratic-v1:0", "--scenarios", "ai-ethics")
        swept = run(
            "sweep", *grid, "--repeats", "2", "--turns", "1", *OFFLINE, *kept, *out
        ).document
        runs = [json.loads(one.read_bytes()) for one in tmp_path.glob("curated/runs/*.json")]
        fitting = [one["judge"]["calibration"]["by"] for one in runs]
        assert (swept["n_completed"], fitting) == (2, 2 * [calibrated.document["run_id"]])

        judged = run("judge", str(tmp_path), *OFFLINE, *kept, "--judge-context", "1").document
        (again, _) = tmp_path.glob(f"raw/runs/*/judgings/{judged['name']}/judging.json")
        assert json.loads(again.read_bytes())["judge"]["calibration"]["status"] == "stale"

        page, rows = tmp_path / "report.md", tmp_path / "rows"
        forms = ("--markdown", str(page), "--csv", str(rows))
        for judging, status, words in (
            ((), "calibrated", f"calibrated by {calibrated.document['run_id']}"),
            (("--judging", judged["name"]), "stale", "exchanges shown was 3 then, and is 1 now"),
        ):
            run("report", str(tmp_path), *forms, *kept, *judging, "--quiet")
            assert words in page.read_text()
            with (rows / "runs.csv").open(newline="") as file:
                assert {row["calibration"] for row in csv.DictReader(file)} == {status}
        missing = run("report", str(tmp_path), *forms, "--calibration", "nowhere").document
        assert "--calibration nowhere cannot be read" in missing["error"]["message"]

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (
                {"dimensions": {}},
                "the labels are of answer_disclosed, tells, not of the whole score",
            ),
            ({"labels": {"n_dialogues": 9}}, "the labels are of 9 dialogues: it takes 10"),
        ],
    )
    def test_labels_of_no_score_or_of_few_dialogues_do_not_calibrate_it(
        self, file, tmp_path, change, reason
    ):
        document = json.loads(Path(file).read_bytes())
        labels = {**document["labels"], **change.get("labels", {})}
        kept = tmp_path / "little.json"
        kept.write_text(json.dumps({**document, **change, "labels": labels}))
        found = self.status("--calibration", str(kept))
        assert (found["status"], found["reasons"]) == ("uncalibrated", [reason])

    def test_show_says_by_how_many_labels_and_how_far_it_agrees(self, file, tmp_path, calibrated):
        words = ("--calibration", file, "--output-dir", str(tmp_path), "-q")
        run_id = run(*self.RUN, *words).document["run_id"]
        kappa = calibrated.document["dimensions"]["overall_score"]["weighted_kappa"]["value"]
        shown = run("show", str(tmp_path / f"curated/runs/{run_id}.json")).stderr
        shown = " ".join(shown.split())
        assert f"(calibrated: 48 replies of 12 dialogues, kappa {kappa:.2f})" in shown

    def test_the_same_jurors_are_the_same_jury_in_whatever_order(self, file, tmp_path):
        jurors = ["emulator.judge-v1:0", "emulator.judge-bias-5-v1:0"]
        of_jury = json.loads(Path(file).read_bytes())
        of_jury["judge"] |= {"model": "+".join(jurors), "rule": "mean"}
        kept = tmp_path / "jury.json"
        kept.write_text(json.dumps(of_jury))
        for some in (jurors, jurors[::-1]):
            words = [word for juror in some for word in ("--judge-model", juror)]
            assert self.status("--calibration", str(kept), *words)["status"] == "calibrated"

    def test_one_that_gave_no_verdict_says_so(self, file, tmp_path):
        kept = tmp_path / "silent.json"
        kept.write_text(json.dumps({**json.loads(Path(file).read_bytes()), "n_judged": 0}))
        found = self.status("--calibration", str(kept))
        assert (found["status"], found["reasons"]) == ("uncalibrated", ["it gave no verdict then"])

    def test_without_a_calibration_it_is_uncalibrated(self):
        found = self.status()
        assert (found["status"], found["by"]) == ("uncalibrated", None)

    def test_a_file_that_is_none_is_a_mistake(self, folder):
        path = write_jsonl(folder / "no.json", [{"kind": "run"}])
        found = run(*self.RUN, "--calibration", path, "--quiet")
        assert found.exit_code == 2
        assert "--calibration" in found.document["error"]["message"]
        assert "not a calibration" in found.document["error"]["message"]
