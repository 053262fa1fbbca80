"""What a run cost, and that it never costs more than it may."""

import json

import pytest

from socratic_bench.emulator import Emulator, Settings, parse_fault
from tests.command import CLAUDE, OFFLINE, OPENING, account, assert_valid, environment, run

TUTOR, STUDENT, JUDGE = "emulator.socratic-v1:0", "emulator.student-v1:0", "emulator.judge-v1:0"
KINDS = ("input_usd", "output_usd", "cache_read_usd", "cache_write_usd")
ROLES = ("tutor", "student", "judge")


def play(*words, faults=(), turns=3, tutor=TUTOR, judge=JUDGE, requests=None):
    """A run on an emulator of its own, so that every request can be counted there."""
    settings = Settings(faults=tuple(map(parse_fault, faults)), keep_bodies=True, any_model=True)
    with Emulator(settings) as served:
        outcome = run(
            *("--model", tutor, "--judge-model", judge, "--prompt", OPENING, "--seed", "7"),
            *("--turns", str(turns), "--quiet", *words),
            env=account(served.url, tutor),
        )
        if requests is not None:
            requests.extend(served.requests)
    assert_valid("run", outcome.document)
    return outcome


def at_stand_in_prices(usage):
    """USD by kind, from the counters alone."""
    cached = usage["cache_read_tokens"] + usage["cache_write_tokens"]
    tokens = (
        usage["input_tokens"] - cached,
        usage["output_tokens"],
        usage["cache_read_tokens"],
        usage["cache_write_tokens"],
    )
    return [n * rate / 1e6 for n, rate in zip(tokens, (3, 15, 0.3, 3.75), strict=True)]


def own_prices(tmp_path, models):
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"models": models, "source": {"name": "ours"}}))
    return str(file)


# --- the document ---


def test_cost_follows_from_the_counters_and_adds_up():
    outcome = play("--student-model", STUDENT, turns=5)
    cost, usage = outcome.document["cost"], outcome.document["usage"]

    assert cost["currency"] == "USD"
    for who in (*ROLES, "total"):
        assert [cost[who][kind] for kind in KINDS] == pytest.approx(at_stand_in_prices(usage[who]))
        assert cost[who]["total_usd"] == pytest.approx(sum(cost[who][kind] for kind in KINDS))
        assert cost[who]["total_usd"] > 0
    plain = usage["total"]["input_tokens"] * 3e-6 + usage["total"]["output_tokens"] * 15e-6
    assert cost["without_caching_usd"] == pytest.approx(plain)
    share = usage["total"]["cache_read_tokens"] / usage["total"]["input_tokens"]
    assert cost["cache_hit_share"] == pytest.approx(share, abs=1e-4)
    assert cost["maybe_billed"] == {"attempts": 0, "at_most_usd": 0}
    assert cost["stand_in"] is True
    assert [source["name"] for source in cost["prices"]] == ["litellm"]


def test_a_student_without_a_model_has_cost_nothing_and_that_is_known():
    cost = play().document["cost"]

    assert set(cost["student"].values()) == {0}
    assert cost["total"]["total_usd"] == pytest.approx(
        cost["tutor"]["total_usd"] + cost["judge"]["total_usd"]
    )


def test_an_unknown_model_has_no_cost_and_no_total_leaves_it_out():
    cost = play(judge="unknown.judge-v1:0").document["cost"]

    assert cost["tutor"]["total_usd"] > 0
    assert (cost["judge"], cost["total"], cost["without_caching_usd"]) == (None, None, None)


def test_with_no_price_at_all_there_is_no_cost():
    document = play(tutor="unknown.tutor-v1:0", judge="unknown.judge-v1:0").document

    assert document["usage"]["total"]["input_tokens"] > 0
    assert document["cost"] is None


def test_real_models_have_real_prices_offline_they_are_no_bill():
    ours = json.dumps([CLAUDE])
    words = ("--model", CLAUDE, "--prompt", OPENING, "--turns", "1", "--judge-model", CLAUDE)
    offline = run("--offline", *words, env=environment(BEDROCK_MODEL_IDS=ours)).document["cost"]

    assert play(tutor=CLAUDE, judge=CLAUDE).document["cost"]["stand_in"] is False
    assert offline["stand_in"] is True


def test_prices_of_ones_own_count_first(tmp_path):
    file = own_prices(tmp_path, {"unknown.*": {"default": {"input": 1e6, "output": 0}}})
    document = play("--prices", file, tutor="unknown.tutor-v1:0").document
    cost, usage = document["cost"], document["usage"]

    uncached = usage["tutor"]["input_tokens"] - usage["tutor"]["cache_read_tokens"]
    assert cost["tutor"]["total_usd"] == uncached
    assert cost["judge"]["total_usd"] > 0
    assert [source["name"] for source in cost["prices"]] == ["ours", "litellm"]


@pytest.mark.parametrize(("tier", "factor"), [("flex", 0.5), ("priority", 1.75), ("default", 1)])
def test_each_call_has_the_price_of_the_tier_that_served_it(tier, factor):
    plain, tiered = play().document["cost"], play("--service-tier", tier).document["cost"]

    assert tiered["tutor"]["total_usd"] == pytest.approx(factor * plain["tutor"]["total_usd"])
    assert tiered["judge"] == plain["judge"]


OPTIMIZED = ("--latency-profile", "optimized")
MODEL = "us.amazon.nova-pro-v1:0"


def test_optimized_latency_has_a_price_of_its_own_or_none(tmp_path):
    rates = {"default": {"input": 1, "output": 1}, "optimized": {"input": 10, "output": 10}}
    own = ("--prices", own_prices(tmp_path, {MODEL: rates}))
    unknown = play(*OPTIMIZED, tutor=MODEL).document["cost"]
    standard = play(*own, "--no-prompt-cache", tutor=MODEL).document["cost"]
    optimized = play(*own, *OPTIMIZED, "--no-prompt-cache", tutor=MODEL).document["cost"]

    assert (unknown["tutor"], unknown["total"]) == (None, None)
    assert unknown["judge"]["total_usd"] > 0
    assert optimized["tutor"]["total_usd"] == pytest.approx(10 * standard["tutor"]["total_usd"])
    assert optimized["judge"] == standard["judge"]


def test_a_budget_needs_the_price_of_optimized_latency():
    outcome = play(*OPTIMIZED, "--max-cost-usd", "1", tutor=MODEL)

    assert outcome.exit_code == 2
    assert f"{MODEL} at optimized latency" in outcome.document["error"]["message"]


def test_what_caching_saves_is_told():
    cost = play(turns=24).document["cost"]

    assert cost["cache_hit_share"] > 0.1
    assert cost["tutor"]["cache_read_usd"] > 0
    assert cost["tutor"]["cache_write_usd"] > 0
    assert cost["without_caching_usd"] > cost["total"]["total_usd"]


def test_failed_requests_that_may_be_billed_are_shown_apart():
    clean = play(turns=2).document
    faulty = play(turns=2, faults=["internal:role=tutor:count=2", "throttled:role=judge:count=1"])
    cost = faulty.document["cost"]

    assert cost["total"] == clean["cost"]["total"]
    assert cost["maybe_billed"]["attempts"] == 2
    one = cost["maybe_billed"]["at_most_usd"] / 2
    n_in = faulty.document["turns"][0]["usage"]["tutor"]["input_tokens"]
    assert n_in * 3e-6 + 1024 * 15e-6 < one < n_in * 6 * 3.75e-6 + 1024 * 15e-6


# --- mistakes ---


def test_every_mistake_in_prices_and_budget_is_named_before_the_first_call(tmp_path):
    requests = []
    file = own_prices(tmp_path, {"a": {"default": {"input": -1}}, "b": 1})
    wrong = ("--prices", file, "--max-cost-usd", "0", "--turns", "0")
    outcome = play(*wrong, requests=requests)

    assert (outcome.exit_code, requests) == (2, [])
    message = outcome.document["error"]["message"]
    for part in ("max-cost-usd is 0", "models['a'].default.input", "models['b']", "turns is 0"):
        assert part in message


def test_a_price_file_that_cannot_be_read_is_a_mistake(tmp_path):
    outcome = play("--prices", str(tmp_path / "none.json"))

    assert outcome.exit_code == 2
    assert "none.json cannot be read" in outcome.document["error"]["message"]


def test_a_budget_needs_every_price():
    requests = []
    outcome = play(
        *("--max-cost-usd", "1", "--student-model", "unknown.student-v1:0"),
        tutor="unknown.tutor-v1:0",
        judge="unknown.judge-v1:0",
        requests=requests,
    )

    assert (outcome.exit_code, requests) == (2, [])
    message = outcome.document["error"]["message"]
    for role in ("tutor", "student", "judge"):
        assert f"unknown.{role}-v1:0" in message
    assert "--prices" in message


def test_a_budget_needs_the_price_of_the_tier_that_is_asked_for(tmp_path):
    file = own_prices(tmp_path, {TUTOR: {"default": {"input": 1, "output": 1}}})
    words = ("--prices", file, "--max-cost-usd", "1", "--service-tier", "flex")
    outcome = play(*words)

    assert outcome.exit_code == 2
    assert f"{TUTOR} at the tier flex" in outcome.document["error"]["message"]


def test_a_judge_that_is_left_out_needs_no_price():
    outcome = run(*OFFLINE, "--no-judge", "--turns", "1", "--max-cost-usd", "1", "--quiet")

    assert (outcome.exit_code, outcome.document["end_reason"]) == (0, "max_turns")


# --- the budget ---


def spent_at_most(document):
    return document["cost"]["total"]["total_usd"] + document["cost"]["maybe_billed"]["at_most_usd"]


def test_a_budget_that_is_large_enough_changes_nothing():
    free, bounded = play(turns=4).document, play("--max-cost-usd", "0.2", turns=4).document

    assert bounded["end_reason"] == "max_turns"
    assert bounded["cost"] == free["cost"]
    assert [turn["score"] for turn in bounded["turns"]] == [turn["score"] for turn in free["turns"]]


FAILING = ("internal:p=0.3",)


@pytest.mark.parametrize(
    ("limit", "faults"),
    [
        *(
            (limit, ())
            for limit in ("0.000001", "0.019", "0.025", "0.036", "0.045", "0.06", "0.09")
        ),
        *((limit, FAILING) for limit in ("0.045", "0.09")),
    ],
)
def test_no_request_is_sent_that_could_pass_the_budget(limit, faults):
    requests = []
    outcome = play(
        *("--max-cost-usd", limit, "--student-model", STUDENT, "--max-attempts", "3"),
        turns=40,
        faults=faults,
        requests=requests,
    )
    document = outcome.document

    assert (outcome.exit_code, document["status"], document["end_reason"]) == (
        6,
        "partial",
        "budget",
    )
    assert (document["error"]["code"], document["error"]["retryable"]) == ("budget", False)
    assert "--max-cost-usd" in document["error"]["hint"]
    assert spent_at_most(document) <= float(limit)
    # What was answered was paid for, and all of it is in the document.
    answered = [request for request in requests if request.status == 200]
    assert len(answered) == document["usage"]["total"]["calls"]
    assert len(requests) == document["usage"]["total"]["attempts"]
    judged = [one for one in answered if one.role == "judge" and b"record_verdict" in one.body]
    assert len(judged) == sum(turn["score"] is not None for turn in document["turns"])
    unjudged = {turn["unjudged_reason"] for turn in document["turns"] if turn["score"] is None}
    assert unjudged <= {"budget", "unavailable"}


def test_the_next_call_alone_decides_and_not_what_is_set_aside_for_others():
    """Calls under way hold more than they will cost; who does not fit beside them waits."""
    document = play("--max-cost-usd", "0.25", turns=3).document

    assert document["end_reason"] == "max_turns"
    assert document["cost"]["total"]["total_usd"] < 0.08


def test_retries_count_against_the_budget():
    requests = []
    outcome = play("--max-cost-usd", "0.05", faults=["internal"], requests=requests)
    document = outcome.document

    # One request can cost some 0.019 USD: two fit, a third would not.
    assert (outcome.exit_code, document["end_reason"], len(requests)) == (6, "budget", 2)
    assert document["cost"]["maybe_billed"]["attempts"] == 2
    assert 0.036 < spent_at_most(document) <= 0.05
    assert document["latency"]["tutor"]["unanswered_maybe_billed"] == 2


def test_the_judge_s_rubric_is_written_to_the_cache_once_and_read_ever_after():
    words = ("--offline", "--model", "emulator.socratic-v1:0", "--scenario", "career-change")
    judge = run(*words, "--turns", "10", "--seed", "7", "--quiet").document["usage"]["judge"]

    assert judge["cache_write_tokens"] >= 1024
    assert judge["cache_read_tokens"] == 9 * judge["cache_write_tokens"]


@pytest.mark.parametrize(
    ("kind", "end_reason", "struck"), [("throttled", "max_turns", 6), ("internal", "budget", 2)]
)
def test_throttled_requests_cost_nothing_and_others_may(kind, end_reason, struck):
    """Each role's calls fail once each: the wait before a second try is short."""
    once = [
        f"{kind}:role={role}:after={n}:count=1:ms=1"
        for role in ("tutor", "judge")
        for n in range(3)
    ]
    requests = []
    document = play("--max-cost-usd", "0.25", faults=once, requests=requests).document

    assert document["end_reason"] == end_reason
    assert sum(request.fault == kind for request in requests) >= struck


def test_verdicts_that_were_paid_for_are_kept_as_files(tmp_path):
    document = play("--max-cost-usd", "0.045", "--output-dir", str(tmp_path), turns=40).document
    raw = tmp_path / "raw" / "runs" / document["run_id"]

    assert not list(tmp_path.glob("curated/**/*.json"))
    for turn in document["turns"]:
        kept = json.loads((raw / f"judge_{turn['turn']:03d}.json").read_bytes())
        assert_valid("judge", kept)
        assert kept["overall_score"] == turn["score"]
