"""Several judges, and several verdicts of each: what becomes of their votes, and what they cost."""

import json
from collections import Counter
from pathlib import Path
from statistics import fmean, median, stdev

import pytest

from socratic_bench.emulator import Emulator, Settings, parse_fault
from socratic_bench.emulator.dialogue import input_tokens
from socratic_bench.emulator.simulation import answer
from tests.command import OPENING, account, assert_valid, environment, run

TUTOR = "emulator.drift-5-v1:0"
PLAIN, MILD = "emulator.judge-v1:0", "emulator.judge-bias-10-v1:0"
HARSH, NOISY = "emulator.judge-bias--10-v1:0", "emulator.judge-noise-8-v1:0"
LECTURER, KIN = "emulator.lecturer-v1:0", "emulator.judge-prefers-lecturer-v1:0"
REFUSING = "emulator.judge-refuses-v1:0"
RATES = {TUTOR: (1, 2), PLAIN: (3, 5), HARSH: (7, 11), NOISY: (13, 17)}
HIGHS = {"form": 3, "substance": 3, "purity": 4}
DIMENSIONS = (*HIGHS,)
ALONE = ("--scenario", "time-management", "--seed", "7", "--quiet", "--no-prompt-cache")


def by(*jurors):
    return [word for juror in jurors for word in ("--judge-model", juror)]


def play(*words, faults=(), turns=3, tutor=TUTOR, **variables):
    """On an emulator of its own, and what it was asked."""
    settings = Settings(faults=tuple(map(parse_fault, faults)), keep_bodies=True)
    with Emulator(settings) as served:
        outcome = run(
            *("--model", tutor, "--turns", str(turns), "--max-attempts", "1"),
            *(*ALONE, *words),
            env=account(served.url, tutor, **variables),
        )
        return outcome, list(served.requests)


def files(folder, kind="judge"):
    return [
        json.loads(path.read_bytes()) for path in sorted(Path(folder).glob(f"raw/runs/*/{kind}_*"))
    ]


@pytest.fixture(scope="module")
def prices(tmp_path_factory):
    file = tmp_path_factory.mktemp("prices") / "prices.json"
    rates = {name: {"default": {"input": i, "output": o}} for name, (i, o) in RATES.items()}
    file.write_text(json.dumps({"models": rates, "source": {"name": "ours"}}))
    return str(file)


@pytest.fixture(scope="module")
def jury(tmp_path_factory, prices):
    """Three jurors, two samples each, in a folder: outcome, requests, folder and command line."""
    folder = str(tmp_path_factory.mktemp("jury"))
    words = (*by(PLAIN, HARSH, NOISY), "--judge-samples", "2", "--prices", prices)
    words = (*words, "--output-dir", folder)
    outcome, requests = play(*words)
    assert outcome.exit_code == 0, outcome.document["error"]
    return outcome.document, requests, folder, words


class TestVotes:
    def test_samples_become_a_mean_and_then_jurors(self, jury):
        document, _, folder, _ = jury
        for turn, file in zip(document["turns"], files(folder), strict=True):
            assert_valid("judge", file)
            assert [one["model"] for one in file["jurors"]] == [PLAIN, HARSH, NOISY]
            means = []
            for juror in file["jurors"]:
                samples = [one["scores"] for one in juror["samples"]]
                assert len(samples) == 2
                mean = {name: fmean(one[name] for one in samples) for name in DIMENSIONS}
                assert juror["scores"] == pytest.approx(mean, abs=1e-4)
                scores = [sum(one.values()) for one in samples]
                assert juror["spread"]["overall_score"] == pytest.approx(stdev(scores), abs=1e-4)
                means.append(mean)
            whole = {name: fmean(one[name] for one in means) for name in DIMENSIONS}
            assert file["scores"] == turn["scores"] == pytest.approx(whole, abs=1e-4)
            assert turn["score"] == pytest.approx(sum(whole.values()), abs=1e-4)
            assert file["jury_rule"] == "mean"
            assert (turn["votes"]["n_jurors"], turn["votes"]["n_votes"]) == (3, 3)
            within = turn["votes"]["within_jurors"]
            assert within == {one["model"]: one["spread"] for one in file["jurors"]}
        assert document["overall_score"] == pytest.approx(
            fmean(turn["score"] for turn in document["turns"]), abs=1e-4
        )

    def test_only_a_noisy_juror_differs_from_itself(self, jury):
        entry = jury[0]["judge"]
        retest = {one["model"]: one["retest"] for one in entry["jurors"]}
        assert (entry["model"], entry["rule"]) == (f"{PLAIN}+{HARSH}+{NOISY}", "mean")
        assert (entry["samples"], entry["quorum"]) == (2, 2)
        assert retest[PLAIN]["same_share"] == retest[HARSH]["same_share"] == 1
        assert retest[PLAIN]["deviation"]["overall_score"] == 0
        assert retest[NOISY]["deviation"]["overall_score"] > 0
        assert retest[NOISY]["n_turns"] == 3

    def test_several_samples_are_asked_at_the_models_own_temperature(self, jury):
        asked = [json.loads(one.body) for one in jury[1] if one.role == "judge"]
        verdicts = [one for one in asked if "record_verdict" in json.dumps(one["toolConfig"])]
        closing = [one for one in asked if one not in verdicts]
        assert len(verdicts) == 3 * 3 * 2
        assert {one["inferenceConfig"].get("temperature") for one in verdicts} == {None}
        assert [one["inferenceConfig"].get("temperature") for one in closing] == [0, 0, 0]

    def test_the_median_leaves_out_who_is_far_off(self, tmp_path):
        words = (*by(PLAIN, MILD, HARSH), "--jury-rule", "median", "--output-dir", str(tmp_path))
        document = play(*words, turns=2)[0].document
        for turn, file in zip(document["turns"], files(tmp_path), strict=True):
            scores = [one["scores"] for one in file["jurors"]]
            assert turn["scores"] == {n: median(one[n] for one in scores) for n in DIMENSIONS}
            assert turn["scores"] == scores[0]
        assert document["judge"]["rule"] == "median"

    def test_an_event_and_an_insight_count_by_more_than_half(self, tmp_path):
        """Both jurors read alike, but for the bias of one: so both see the same events."""
        words = (*by(PLAIN, HARSH), "--output-dir", str(tmp_path))
        document = play(*words, turns=7)[0].document
        seen = [set(turn["events"]) for turn in document["turns"]]
        assert any(seen)
        for events, file in zip(seen, files(tmp_path), strict=True):
            votes = Counter(name for one in file["jurors"] for name in one["events"])
            assert events == {name for name, n in votes.items() if n > 1}
        (closing,) = [json.loads(p.read_bytes()) for p in tmp_path.glob("raw/runs/*/closing*")]
        assert_valid("closing_verdict", closing)
        assert [one["model"] for one in closing["jurors"]] == [PLAIN, HARSH]
        assert closing["jurors"][0]["findings"] == closing["findings"]

    @pytest.mark.parametrize(("tutor", "more"), [(LECTURER, 1), (TUTOR, 0)], ids=["own", "other"])
    def test_a_bias_and_a_preference_for_its_own_kind_stand_in_the_votes(
        self, tmp_path, tutor, more
    ):
        words = (*by(PLAIN, HARSH, KIN), "--output-dir", str(tmp_path))
        document = play(*words, tutor=tutor, turns=1)[0].document
        plain, harsh, kin = (one["scores"] for one in files(tmp_path)[0]["jurors"])
        assert harsh == {name: max(0, plain[name] - 1) for name in HIGHS}
        assert kin == {name: min(high, plain[name] + more) for name, high in HIGHS.items()}
        (turn,) = document["turns"]
        assert turn["votes"]["between_jurors"]["overall_score"] == pytest.approx(
            stdev(sum(one.values()) for one in (plain, harsh, kin)), abs=1e-4
        )


class TestMoney:
    def spent(self, requests):
        """USD by model, from what the endpoint was asked and what its models answer to that."""
        usd = Counter()
        for one in requests:
            body = json.loads(one.body)
            tokens = input_tokens(body), answer(one.model_id, body)[1]
            usd[one.model_id] += sum(
                n * r for n, r in zip(tokens, RATES[one.model_id], strict=True)
            )
        return {model: amount / 1e6 for model, amount in usd.items()}

    def test_each_juror_is_paid_its_own_rate(self, jury):
        document, requests, _, _ = jury
        by_model = document["cost"]["by_model"]
        found = {m: c["total_usd"] for of in by_model.values() for m, c in of.items()}
        assert found == pytest.approx(self.spent(requests), abs=1e-8)
        assert set(by_model["judge"]) == {PLAIN, HARSH, NOISY}
        total = sum(found.values())
        assert document["cost"]["total"]["total_usd"] == pytest.approx(total, abs=1e-7)

    def test_a_resumed_one_costs_the_same_and_asks_nothing(self, jury):
        document, _, _, words = jury
        again, requests = play(*words, "--resume")
        assert [one for one in requests if one.role] == []
        assert again.document == {**document, "latency": again.document["latency"]}

    def test_a_dry_run_says_beforehand_what_each_juror_takes(self, jury):
        document, requests, _, words = jury
        outcome, asked = play(*words[:-2], "--dry-run")
        told = outcome.document
        assert [one for one in asked if one.role] == []
        assert_valid("dry_run", told)
        calls = Counter(one.model_id for one in requests)
        jurors = {one["model"]: one for one in told["jurors"]}
        assert {name: one["usage"]["calls"] for name, one in jurors.items()} == {
            name: calls[name] for name in (PLAIN, HARSH, NOISY)
        }
        by_model = document["cost"]["by_model"]["judge"]
        assert {name: one["cost_usd"] for name, one in jurors.items()} == pytest.approx(
            {name: by_model[name]["total_usd"] for name in jurors}, rel=0.01
        )
        assert told["judge_model"] == f"{PLAIN}+{HARSH}+{NOISY}"

    def test_a_budget_needs_each_jurors_price_and_holds_all_of_them(self, jury, prices, tmp_path):
        words = (*by(PLAIN, "unknown.judge-v1:0", "unknown.other-v1:0"), "--max-cost-usd", "1")
        outcome = run(
            *("--model", TUTOR, "--turns", "1", *ALONE, *words),
            env=account("http://127.0.0.1:9", TUTOR),
        )
        message = outcome.document["error"]["message"]
        assert outcome.exit_code == 2
        assert "unknown.judge-v1:0" in message
        assert "unknown.other-v1:0" in message

        whole_usd = jury[0]["cost"]["total"]["total_usd"]
        limit_usd = whole_usd / 2
        words = (*jury[3][:-2], "--output-dir", str(tmp_path))
        cut, first = play(*words, "--max-cost-usd", f"{limit_usd:.6f}")
        assert cut.document["end_reason"] == "budget"
        assert cut.document["cost"]["total"]["total_usd"] <= limit_usd

        whole, rest = play(*words, "--resume")
        assert whole.exit_code == 0
        by_model = whole.document["cost"]["by_model"]
        found = {m: c["total_usd"] for of in by_model.values() for m, c in of.items()}
        assert found == pytest.approx(self.spent([*first, *rest]), abs=1e-8)
        assert whole.document["cost"]["total"]["total_usd"] == pytest.approx(whole_usd, abs=1e-7)


class TestLosses:
    def test_who_is_denied_costs_its_own_votes_and_is_named(self, tmp_path):
        words = (*by(PLAIN, HARSH, NOISY), "--output-dir", str(tmp_path))
        denied = f"access_denied:model={NOISY}"
        outcome, _ = play(*words, faults=[denied])
        document = outcome.document
        assert (outcome.exit_code, document["status"]) == (0, "completed")
        lost = document["judge"]["jurors"][2]
        assert (lost["judged_turns"], lost["unjudged_reasons"]) == (0, {"access": 3})
        assert lost["error"]
        assert any(NOISY in text and "no votes" in text for text in document["notices"])
        assert [turn["votes"]["n_votes"] for turn in document["turns"]] == [2, 2, 2]
        for turn, file in zip(document["turns"], files(tmp_path), strict=True):
            plain, harsh, noisy = file["jurors"]
            assert noisy["unjudged_reason"] == "access"
            assert turn["score"] == (plain["overall_score"] + harsh["overall_score"]) / 2

        again, requests = play(*words, "--resume")
        assert [one for one in requests if one.role] == []
        assert again.document["turns"] == document["turns"]

    def test_without_a_quorum_it_ends_as_with_a_judge_alone(self):
        words = (*by(PLAIN, HARSH, NOISY), "--quorum", "3")
        outcome, _ = play(*words, faults=[f"access_denied:model={NOISY}"])
        assert (outcome.exit_code, outcome.document["end_reason"]) == (3, "access")

    def test_too_few_verdicts_leave_a_turn_unjudged_for_a_reason_of_its_own(self, tmp_path):
        words = (*by(PLAIN, REFUSING, HARSH), "--quorum", "3", "--output-dir", str(tmp_path))
        outcome, _ = play(*words, turns=2)
        document = outcome.document
        assert (outcome.exit_code, document["overall_score"]) == (5, None)
        assert [turn["unjudged_reason"] for turn in document["turns"]] == ["quorum", "quorum"]
        (file, _) = files(tmp_path)
        assert [one["unjudged_reason"] for one in file["jurors"]] == [
            None,
            "unreadable_verdict",
            None,
        ]
        assert "2 of 3 jurors" in file["unjudged_message"]

    def test_who_answers_in_vain_is_not_asked_again_once_the_run_is_complete(self, tmp_path):
        words = (*by(PLAIN, REFUSING, HARSH), "--output-dir", str(tmp_path))
        whole, asked = play(*words, turns=1)
        assert (whole.exit_code, whole.document["turns"][0]["votes"]["n_votes"]) == (0, 2)
        _, lost, _ = whole.document["judge"]["jurors"]
        assert (lost["model"], lost["judged_turns"]) == (REFUSING, 0)
        assert lost["unjudged_reasons"] == {"unreadable_verdict": 1}
        plain, refused, harsh = files(tmp_path)[0]["jurors"]
        score = (plain["overall_score"] + harsh["overall_score"]) / 2
        assert (refused["scores"], whole.document["overall_score"]) == ({}, score)
        assert Counter(one.model_id for one in asked)[REFUSING] == 4  # each call once more
        again, requests = play(*words, "--resume", turns=1)
        assert [one for one in requests if one.role] == []
        assert again.document["usage"] == whole.document["usage"]

    def test_what_a_signal_cut_off_is_no_failure_of_a_juror(self, tmp_path):
        """A juror that hangs is given up when the deadline comes; the resumed run has all votes."""
        words = (*by(PLAIN, HARSH, NOISY), "--output-dir", str(tmp_path))
        hanging = [f"hang:model={NOISY}:ms=600000"]
        cut, _ = play(*words, "--deadline", "4", faults=hanging, turns=1)
        assert cut.document["end_reason"] == "deadline"
        whole, _ = play(*words, "--resume", turns=1)
        assert whole.exit_code == 0
        assert [turn["votes"]["n_votes"] for turn in whole.document["turns"]] == [3]

    def test_a_resume_asks_again_only_where_a_quorum_was_missed(self, tmp_path):
        """One juror is down in all turns, another in the first: that turn alone is judged anew."""
        words = (*by(PLAIN, HARSH, NOISY), "--output-dir", str(tmp_path))
        faults = [f"unavailable:model={NOISY}", f"unavailable:model={HARSH}:count=1"]
        cut, _ = play(*words, faults=faults, turns=4)
        assert (cut.exit_code, cut.document["end_reason"]) == (4, "unavailable")
        missed = [t["turn"] for t in cut.document["turns"] if t["unjudged_reason"] == "quorum"]
        assert len(missed) == 1

        whole, requests = play(*words, "--resume", turns=4)
        assert (whole.exit_code, whole.document["status"]) == (0, "completed")
        asked = Counter(one.model_id for one in requests if one.role == "judge")
        # The closing verdict had its quorum, of which two failed at most.
        assert asked[PLAIN] <= 1
        assert asked[HARSH] == 1
        votes = {turn["turn"]: turn["votes"]["n_votes"] for turn in whole.document["turns"]}
        assert votes == {at: 3 if at in missed else 2 for at in range(4)}
        kept = [t for t in cut.document["turns"] if t["turn"] not in missed]
        assert [t for t in whole.document["turns"] if t["turn"] not in missed] == kept


class TestAsked:
    def test_flags_beat_the_jurys_variable_which_beats_the_judges(self):
        variables = {"RUNNER_JURY_MODELS": json.dumps([PLAIN, HARSH]), "RUNNER_JUDGE_MODEL": NOISY}
        by_variable = play(turns=1, **variables)[0].document["judge"]["model"]
        by_flag = play("--judge-model", MILD, turns=1, **variables)[0].document["judge"]
        assert by_variable == f"{PLAIN}+{HARSH}"
        assert (by_flag["model"], by_flag["rule"]) == (MILD, None)

    def test_all_mistakes_are_told_at_once_before_the_first_call(self):
        words = (*by(PLAIN, PLAIN, "arn:aws:s3:::x"), "--quorum", "4", "--judge-samples", "0")
        outcome = run("--offline", "--model", "emulator.socratic-v1:0", "--prompt", OPENING, *words)
        message = outcome.document["error"]["message"]
        assert outcome.exit_code == 2
        for said in (
            f"names {PLAIN} twice",
            "not a Bedrock ARN",
            "--quorum is 4",
            "--judge-samples",
        ):
            assert said in message

    def test_who_stands_twice_in_the_variable_is_told_by_its_name(self):
        outcome = run(
            *("--offline", "--model", "emulator.socratic-v1:0", "--prompt", OPENING),
            env={**environment(), "RUNNER_JURY_MODELS": json.dumps([PLAIN, HARSH, PLAIN])},
        )
        message = outcome.document["error"]["message"]
        assert (outcome.exit_code, message) == (
            2,
            f"RUNNER_JURY_MODELS names {PLAIN} twice: a juror has one vote.",
        )

    @pytest.mark.parametrize("given", ["{", '"a"', "[]", "[1]"])
    def test_a_jury_is_an_array_of_ids(self, given):
        outcome = run(
            *("--offline", "--model", "emulator.socratic-v1:0", "--prompt", OPENING),
            env={**account("http://127.0.0.1:9"), "RUNNER_JURY_MODELS": given},
        )
        assert outcome.exit_code == 2
        assert "RUNNER_JURY_MODELS" in outcome.document["error"]["message"]

    def test_jurors_of_the_tutors_family_are_named(self):
        claude, nova = "anthropic.claude-3-haiku-20240307-v1:0", "amazon.nova-pro-v1:0"
        words = (*by("anthropic.claude-3-5-sonnet-20240620-v1:0", nova), "--turns", "1")
        with Emulator(Settings()) as served:
            outcome = run(*("--model", claude, *ALONE, *words), env=account(served.url, claude))
        (said,) = outcome.document["notices"]
        assert "anthropic.claude-3-5-sonnet-20240620-v1:0" in said
        assert nova not in said

    def test_a_judge_sees_as_many_exchanges_as_are_asked_for(self):
        def shown(*words):
            requests = play(*words, turns=5)[1]
            bodies = [json.loads(one.body) for one in requests if one.role == "judge"]
            texts = [one["messages"][0]["content"][0]["text"] for one in bodies]
            return max(text.count("[tutor-") for text in texts if "<reply-" in text)

        assert (shown(), shown("--judge-context", "1")) == (3, 1)
