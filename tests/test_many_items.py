"""Many items at once: what becomes of one ends no other; what is missing is asked again."""

import json
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from socratic_bench import CancelToken, Gate, RunConfig, RunResult, UsageError, run
from socratic_bench.emulator import Emulator, Settings
from socratic_bench.generation import GenerateConfig
from socratic_bench.journal.replay import ReplayLog
from socratic_bench.ports.benchmark import ClosingQuestion, EpisodeContext, EpisodeResult
from socratic_bench.runs import prepare
from socratic_bench.runs.context import Listener
from socratic_bench.runs.dry_run import dry_run
from socratic_bench.runs.items import MOST_LOST_IN_A_ROW
from socratic_bench.turns import Turn
from socratic_bench.types import CallKey, Message, Request, Tool
from tests.command import ROOT, account, daily
from tests.fakes import (
    PATIENCE_S,
    RUBRIC,
    FakeBedrock,
    answer,
    breaches,
    refusal,
    scored,
    stored,
)
from tests.many_items import CONFIG, PARTS, SumEpisode, Sums, asked, question_of, sums

GONE = refusal(503, "ServiceUnavailableException")
TOO_LONG = refusal(400, "ValidationException", "Input is too long for requested model.")
BAD = refusal(400, "ValidationException", "No such thing.")
ON_DEMAND = "Invocation of model ID x with on-demand throughput isn't supported."
REFUSED = answer("", "content_filtered")
MODEL = "emulator.socratic-v1:0"


def play(config: RunConfig = CONFIG, benchmark: Any = None, **more: Any) -> RunResult:
    result = run(replace(config, **more), benchmark=benchmark or Sums())
    assert breaches("run", result.document, PARTS) == []
    assert breaches("brief", result.brief, PARTS) == []
    return result


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def items_asked(service: FakeBedrock) -> Counter[int]:
    # A process that was killed may leave half a request.
    return Counter(asked(sent) for sent in service.of("tutor") if sent.raw)


class Others(Listener):
    """Hears of turns; `are_told` once it has heard of so many, which are then measured and kept."""

    def __init__(self, n_others: int) -> None:
        self.heard: list[int] = []
        self.are_told = threading.Event()
        self._n_others = n_others
        self._look()

    def on_turn(self, turn: Turn) -> None:
        self.heard.append(turn.index)
        self._look()

    def _look(self) -> None:
        if len(self.heard) == self._n_others:
            self.are_told.set()


# --- what becomes of items ---


def test_every_item_is_asked_once_and_told_in_its_place(service, out):
    service.scripts["tutor"] = sums()
    result = play(output_dir=str(out))
    document = result.document

    assert (result.status, result.exit_code, document["n_turns"]) == ("completed", 0, 60)
    assert document["metrics"] == {"accuracy": 1.0, "by_subject": {"even": 1.0, "odd": 1.0}}
    assert [turn["question"] for turn in document["turns"]] == [str(2 * n) for n in range(60)]
    assert items_asked(service) == Counter(range(60))
    raw = f"raw/runs/{result.run_id}"
    files = [f"{raw}/turn_{number:03d}.json" for number in range(60)]
    assert {*stored(out, PARTS)} == {*files, f"curated/runs/{result.run_id}.json"}


@pytest.mark.parametrize("at_once", [1, 5, 16])
def test_so_many_are_asked_at_once_and_no_more(service, at_once):
    """Each waits for as many others as may be under way: fewer would wait for ever."""
    lock, under_way, most, all_there = threading.Lock(), set(), [0], threading.Event()

    def script(sent):
        with lock:
            under_way.add(asked(sent))
            most[0] = max(most[0], len(under_way))
            if len(under_way) == at_once:
                all_there.set()
        assert all_there.wait(PATIENCE_S)
        time.sleep(0.02)
        with lock:
            under_way.discard(asked(sent))
        return answer(str(2 * asked(sent)))

    service.scripts["tutor"] = script
    result = play(turns=32, max_concurrency=at_once)

    assert (result.exit_code, most[0]) == (0, at_once)


def test_items_are_published_in_whatever_order_they_end(service, out):
    """The first answer comes last: only once all others are there."""
    others = Others(19)
    service.scripts["tutor"] = sums({0: answer("0", held=others.are_told)})
    result = run(replace(CONFIG, turns=20, output_dir=str(out)), benchmark=Sums(), listener=others)

    heard = others.heard
    assert (result.exit_code, heard[-1], sorted(heard)) == (0, 0, [*range(20)])
    assert [turn["turn"] for turn in result.document["turns"]] == [*range(20)]


def test_refused_cut_and_unreadable_answers_are_outcomes(service, out):
    odd = {
        3: REFUSED,
        5: answer("1", "guardrail_intervened"),
        7: TOO_LONG,
        9: answer("1", "max_tokens"),
        11: answer("eleven and eleven"),
        13: answer("", "malformed_model_output"),
        15: answer("31"),
    }
    service.scripts["tutor"] = sums(odd)
    result = play(turns=20, output_dir=str(out))
    document = result.document
    outcomes = {turn["turn"]: turn["outcome"] for turn in document["turns"]}

    assert (result.status, result.exit_code, result.end_reason) == ("completed", 0, "max_turns")
    assert {n: outcome for n, outcome in outcomes.items() if outcome != "answered"} == {
        3: "refused",
        5: "refused",
        7: "refused",
        9: "truncated",
        11: "unparsed",
        13: "unparsed",
    }
    assert document["items"] == {
        "total": 20,
        "answered": 14,
        "refused": 3,
        "truncated": 1,
        "unparsed": 2,
        "missing": [],
    }
    assert document["metrics"]["accuracy"] == 13 / 20
    refused = stored(out, PARTS)[f"raw/runs/{result.run_id}/turn_007.json"]
    assert (refused["outcome"], refused["ai_response"], refused["stop_reason"]) == (
        "refused",
        "",
        "context_window",
    )
    # Its request is in the bill, where it may have cost something.
    assert document["usage"]["model"] | {"attempts": 20, "calls": 19} == document["usage"]["model"]


def test_a_refusal_stays_the_outcome_of_a_run_that_is_read_again(service, out):
    service.scripts["tutor"] = sums({7: TOO_LONG})
    first = play(turns=10, output_dir=str(out))
    again = play(turns=10, output_dir=str(out), resume_run_id=first.run_id)

    assert again.document["turns"] == first.document["turns"]
    assert (again.exit_code, len(service.sent)) == (0, 10)


def test_what_is_lost_is_missing_and_the_rest_is_played(service, out):
    lost = (0, 21, 22, 59)
    service.scripts["tutor"] = sums(dict.fromkeys(lost, GONE))
    cut = play(output_dir=str(out))
    document = cut.document

    assert (cut.status, cut.exit_code, cut.end_reason) == ("partial", 4, "unavailable")
    assert (document["n_turns"], document["items"]["missing"]) == (56, [*lost])
    assert document["metrics"]["accuracy"] == 1.0
    assert document["error"]["message"].startswith("4 of 60 items have no answer. ")
    assert document["error"]["retryable"] is True
    assert document["error"]["code"] == "items_missing"
    assert f"socratic-runner resume {cut.run_id}" in document["error"]["hint"]
    assert not any("curated" in name for name in stored(out, PARTS))

    service.reset()
    service.scripts["tutor"] = sums()
    whole = play(output_dir=str(out), resume_run_id=cut.run_id)
    assert items_asked(service) == Counter(lost)
    assert (whole.exit_code, whole.document["n_turns"]) == (0, 60)
    assert whole.document["items"]["missing"] == []
    assert whole.document["usage"]["model"]["attempts"] == 64
    assert any("curated" in name for name in stored(out, PARTS))


@pytest.mark.parametrize("at_once", daily([1, 16], 16))
def test_however_many_requests_are_refused_the_others_are_asked(service, out, at_once):
    refused = range(MOST_LOST_IN_A_ROW + 20)
    service.scripts["tutor"] = sums({**dict.fromkeys(refused, BAD), 130: GONE})
    cut = play(turns=150, output_dir=str(out), max_concurrency=at_once)
    missing = cut.document["items"]["missing"]

    assert (cut.end_reason, missing) == ("unavailable", [*refused, 130])
    assert items_asked(service) == Counter(range(150))

    service.reset()
    service.scripts["tutor"] = sums({3: BAD})
    more = play(turns=150, output_dir=str(out), resume_run_id=cut.run_id)
    assert items_asked(service) == Counter(missing)
    assert (more.end_reason, more.document["items"]["missing"]) == ("refused_request", [3])


def test_requests_that_are_refused_between_hide_no_outage(service):
    service.scripts["tutor"] = lambda sent: BAD if asked(sent) % 2 else GONE
    result = play(turns=1000)

    assert (result.exit_code, result.end_reason) == (4, "unavailable")
    assert len(service.sent) <= 2 * (MOST_LOST_IN_A_ROW + CONFIG.max_concurrency)


def test_a_setting_that_every_request_has_is_not_refused_to_every_item(service):
    service.scripts["tutor"] = [refusal(400, "ValidationException", ON_DEMAND)]
    result = play(turns=1000)

    assert (result.exit_code, result.document["error"]["code"]) == (3, "items_missing")
    assert len(service.sent) <= MOST_LOST_IN_A_ROW + CONFIG.max_concurrency


def test_what_would_befall_all_others_ends_them(service):
    service.scripts["tutor"] = [refusal(403, "AccessDeniedException")]
    result = play(max_concurrency=4)

    assert (result.status, result.exit_code, result.end_reason) == ("failed", 3, "access")
    assert len(service.sent) <= 4
    assert len(result.document["items"]["missing"]) == 60


def test_an_outage_that_lasts_is_not_asked_of_every_item(service):
    service.scripts["tutor"] = lambda sent: answer("0") if asked(sent) == 0 else GONE
    result = play(turns=1000)

    assert (result.exit_code, result.document["n_turns"]) == (4, 1)
    # Before the one answer, however late it came, and after it.
    assert len(service.sent) <= 2 * (MOST_LOST_IN_A_ROW + CONFIG.max_concurrency)
    assert "999 of 1000 items have no answer." in result.document["error"]["message"]


def test_a_defect_in_one_ends_the_run_with_all_that_was_played(service):
    class Tripping(SumEpisode, frozen=True, kw_only=True):
        def ask(self, context, index):
            if index == 10:
                raise KeyError("oh")
            return super().ask(context, index)

    service.scripts["tutor"] = sums()
    result = play(turns=40, benchmark=Sums(episode=Tripping), max_concurrency=2)

    assert (result.end_reason, result.exit_code) == ("internal", 1)
    assert 10 <= result.document["n_turns"] <= 12


class Unmeasurable(SumEpisode, frozen=True, kw_only=True):
    def measure(self, turns, index):
        if index == self.opening.n_items - 1:
            raise ZeroDivisionError("oh")
        return super().measure(turns, index)


class Slow:
    """A clock that a measure takes half a second of; the first one ends the run."""

    def __init__(self) -> None:
        self.ahead_s = 0.0
        self.token = CancelToken(monotonic_s=lambda: time.monotonic() + self.ahead_s)

    def episode(self, service: FakeBedrock) -> type[SumEpisode]:
        clock = self

        class Measured(SumEpisode, frozen=True, kw_only=True):
            def measure(self, turns: Sequence[Turn], index: int) -> Turn:
                while len(service.sent) < 60:
                    time.sleep(0.01)
                clock.token.interrupt(15)
                time.sleep(0.05)
                clock.ahead_s += 0.5
                return super().measure(turns, index)

        return Measured


def test_a_run_that_was_told_to_end_does_not_wait_for_all_measures(service, out):
    service.scripts["tutor"] = sums()
    slow, config = Slow(), replace(CONFIG, output_dir=str(out))
    cut = run(config, benchmark=Sums(episode=slow.episode(service)), cancel_token=slow.token)

    (said,) = cut.document["notices"]
    told = re.match(r"(\d+) turns could not be measured \(the run had ended\), and metrics", said)
    assert cut.status == "partial"
    assert 0 < int(told[1]) < cut.document["n_turns"]
    whole = play(config, resume_run_id=cut.run_id)
    assert (whole.document["n_turns"], whole.document["metrics"]["accuracy"]) == (60, 1.0)


@dataclass(frozen=True)
class Uncountable(Sums):
    def summarise(self, config, turns):
        if turns:
            raise ZeroDivisionError("oh")
        return super().summarise(config, turns)


@dataclass(frozen=True)
class NeverCountable(Sums):
    def summarise(self, config, turns):
        raise ZeroDivisionError("oh")


@pytest.mark.parametrize("n_items", [1, 3])
def test_a_defect_in_measuring_one_leaves_metrics_of_the_others_and_all_that_was_paid(
    service, out, n_items
):
    """The last answer comes once all others are told."""
    others = Others(n_items - 1)
    service.scripts["tutor"] = sums(
        {0: answer("7"), n_items - 1: answer("7", held=others.are_told)}
    )
    config = replace(CONFIG, turns=n_items, output_dir=str(out))
    cut = run(config, benchmark=Sums(episode=Unmeasurable), listener=others)
    document = cut.document

    assert breaches("run", document, PARTS) == []
    assert (cut.end_reason, cut.exit_code, cut.status) == ("internal", 1, "partial")
    assert document["usage"]["model"]["attempts"] == len(service.sent) == n_items
    assert (document["n_turns"], document["items"]["missing"]) == (n_items, [])
    n_others = n_items - 1
    assert document["metrics"]["accuracy"] == ((n_others - 1) / n_others if n_others else None)
    assert document["notices"] == [
        f"1 turn could not be measured (ZeroDivisionError), and metrics are without: {n_others}."
    ]
    assert "Run again with debug for the traceback" in document["error"]["hint"]
    assert f"socratic-runner resume {cut.run_id}" in document["error"]["hint"]

    whole = play(config, resume_run_id=cut.run_id)
    assert (whole.exit_code, whole.document["n_turns"]) == (0, n_items)
    assert len(service.sent) == n_items


@pytest.mark.parametrize("benchmark", [Uncountable(), NeverCountable()])
@pytest.mark.parametrize("n_items", [1, 3])
def test_a_defect_in_the_metrics_leaves_none_and_all_that_was_paid(service, n_items, benchmark):
    service.scripts["tutor"] = sums()
    cut = play(turns=n_items, benchmark=benchmark)
    document = cut.document

    assert (cut.end_reason, cut.exit_code, cut.status) == ("internal", 1, "partial")
    assert document["usage"]["model"]["attempts"] == len(service.sent) == n_items
    assert (document["n_turns"], document["metrics"]["accuracy"]) == (n_items, None)
    assert document["notices"] == [
        "The metrics could not be summed up (ZeroDivisionError): there are none."
    ]
    assert "ZeroDivisionError" in document["error"]["message"]
    assert document["error"]["hint"].endswith("socratic-runner resume_from FILE.")

    whole = run(replace(CONFIG, turns=n_items), benchmark=Sums(), document=document)
    assert (whole.exit_code, len(service.sent)) == (0, n_items)


def test_no_index_is_published_twice(service):
    class Doubling(SumEpisode, frozen=True, kw_only=True):
        def ask(self, context, index):
            return replace(super().ask(context, index), index=0)

    service.scripts["tutor"] = sums()
    assert play(turns=4, benchmark=Sums(episode=Doubling)).end_reason == "internal"


def test_a_signal_ends_it_at_once_while_calls_hang(service, out):
    cancel_token, hanging = CancelToken(), threading.Event()

    def script(sent):
        if len(service.sent) == 30:
            cancel_token.interrupt(15)
        return answer(str(2 * asked(sent)), held=hanging if asked(sent) > 20 else None)

    service.scripts["tutor"] = script
    result = run(replace(CONFIG, output_dir=str(out)), benchmark=Sums(), cancel_token=cancel_token)
    hanging.set()

    assert (result.exit_code, result.status) == (143, "partial")
    assert result.document["items"]["total"] == 60
    done = {turn["turn"] for turn in result.document["turns"]}
    service.reset()
    service.scripts["tutor"] = sums()
    whole = play(output_dir=str(out), resume_run_id=result.run_id)
    assert (whole.exit_code, {*items_asked(service)} & done) == (0, set())


# --- budgets, gates, bounds ---


def budget_for(calls: int) -> float:
    """Enough for so many of the emulator's answers, by what they are foretold to cost."""
    whole = dry_run(prepare(config_of(60), benchmark=Sums()))
    return float(whole["high"]["cost_usd"]) / 60 * calls


def config_of(turns: int, **more: Any) -> RunConfig:
    return replace(CONFIG, model=MODEL, turns=turns, offline=True, region=None, **more)


def test_a_budget_ends_it_and_keeps_what_it_bought(service, out):
    config = config_of(60, max_cost_usd=budget_for(30), output_dir=str(out))
    cut = play(config)

    assert (cut.exit_code, cut.end_reason, cut.status) == (6, "budget", "partial")
    assert 0 < cut.document["n_turns"] < 60
    assert cut.document["cost"]["total"]["total_usd"] <= config.max_cost_usd
    whole = play(config_of(60, output_dir=str(out), resume_run_id=cut.run_id))
    # The embedded model answers in words, which are no sums.
    assert (whole.exit_code, whole.document["usage"]["model"]["attempts"]) == (5, 60)


def test_a_dry_run_plays_them_side_by_side_with_a_budget():
    plan = prepare(config_of(60), benchmark=Sums())
    alone = prepare(config_of(60, max_concurrency=1), benchmark=Sums())
    whole, slow = dry_run(plan), dry_run(alone)

    assert breaches("dry_run", whole, PARTS) == []
    assert (whole["n_turns"], whole["usage"]["model"]["calls"]) == (60, 60)
    assert whole["usage"] == slow["usage"]
    started = 0.15  # seconds until the first request, which are the same in both
    paths = [document["duration_seconds"] - started for document in (whole, slow)]
    assert paths == [pytest.approx(4 * 0.007, abs=0.001), pytest.approx(60 * 0.007, abs=0.001)]

    short = config_of(60, max_cost_usd=budget_for(30))
    foretold = dry_run(prepare(short, benchmark=Sums()))
    played = play(short).document
    assert (foretold["end_reason"], foretold["budget"]["covers_high"]) == ("budget", False)
    assert foretold["n_turns"] == pytest.approx(played["n_turns"], abs=CONFIG.max_concurrency)


def test_a_dry_run_with_a_judge_and_a_budget_comes_to_its_end():
    config = config_of(200, judge_model=MODEL, max_cost_usd=0.5)
    foretold = dry_run(prepare(config, benchmark=Sums(rubric=RUBRIC)))

    assert foretold["end_reason"] == "budget"
    assert 0 < foretold["usage"]["judge"]["calls"] <= foretold["n_turns"] < 200


class SomeTooLong(SumEpisode, frozen=True, kw_only=True):
    """Ten items are refused for their length."""

    def ask(self, context: EpisodeContext, index: int) -> Turn:
        text = question_of(index) + " long words" * 200_000 * (5 <= index < 15)
        request = Request(messages=(Message.user(text),), config=GenerateConfig(max_tokens=20))
        reply = context.tested.complete(request, CallKey(role="model", index=index))
        return Turn(index=index, prompt=question_of(index), reply=reply)


@pytest.mark.parametrize("at_once", [1, 8])
def test_items_that_are_refused_take_nothing_from_a_budget_in_a_dry_run(at_once):
    config = config_of(40, max_cost_usd=10.0, max_concurrency=at_once)
    foretold = dry_run(prepare(config, benchmark=Sums(episode=SomeTooLong)))

    assert foretold["usage"]["model"]["calls"] == 30


class OwnThreads(SumEpisode, frozen=True, kw_only=True):
    """Asks from threads of its own, and publishes by itself."""

    def play(self, context: EpisodeContext) -> EpisodeResult:
        def one(index: int) -> None:
            context.publish(self.ask(context, index))

        threads = [
            threading.Thread(target=one, args=(index,)) for index in range(self.opening.n_items)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return EpisodeResult(end_reason="max_turns")


def test_threads_of_an_episode_s_own_are_served_and_foretold(service):
    service.scripts["tutor"] = sums()
    result = play(turns=20, benchmark=Sums(episode=OwnThreads))
    config = config_of(20, max_cost_usd=budget_for(40))
    foretold = dry_run(prepare(config, benchmark=Sums(episode=OwnThreads)))

    assert (result.exit_code, result.document["n_turns"]) == (0, 20)
    assert (foretold["n_turns"], foretold["end_reason"]) == (20, "max_turns")


def test_a_run_is_not_complete_without_all_of_its_items(service):
    class Lazy(SumEpisode, frozen=True, kw_only=True):
        def play(self, context: EpisodeContext) -> EpisodeResult:
            context.publish(self.ask(context, 0))
            return EpisodeResult(end_reason="context_window")

    service.scripts["tutor"] = sums()
    result = play(turns=20, benchmark=Sums(episode=Lazy))

    assert (result.status, result.exit_code) == ("partial", 1)
    assert result.document["error"]["message"] == "The benchmark published 1 of 20 items."


def test_a_run_whose_items_are_published_by_other_numbers_is_not_complete(service, out):
    class FromOne(SumEpisode, frozen=True, kw_only=True):
        def ask(self, context, index):
            return replace(super().ask(context, index), index=index + 1)

    service.scripts["tutor"] = sums()
    result = play(turns=6, benchmark=Sums(episode=FromOne), output_dir=str(out))

    assert (result.status, result.exit_code) == ("partial", 1)
    assert result.document["items"]["missing"] == [0]
    assert result.document["error"]["message"] == "The benchmark published 5 of 6 items."
    assert not any("curated" in name for name in stored(out, PARTS))


def test_gates_hold_for_metrics_that_are_known_once_items_are_read(service):
    service.scripts["tutor"] = sums({1: answer("0")})
    gates = (Gate("by_subject.even", 1.0), Gate("by_subject.odd", 1.0))
    missed = play(turns=4, gates=gates)

    assert (missed.exit_code, missed.shortfalls) == (
        5,
        ("by_subject.odd is 0.5, but must be at least 1.",),
    )
    with pytest.raises(UsageError) as refused:
        prepare(replace(CONFIG, turns=1, gates=gates), benchmark=Sums())
    assert refused.value.problems == (
        "gates names no metric: 'by_subject.odd'. Available: accuracy, by_subject.even.",
    )


def test_of_items_that_cannot_be_read_no_metric_is_missed():
    with pytest.raises(UsageError) as refused:
        prepare(replace(CONFIG, prompt="Hm?", gates=(Gate("by_subject.odd", 1),)), benchmark=Sums())
    assert refused.value.problems == ("There is no prompt here.",)


@pytest.mark.parametrize("turns", [0, 10_001])
def test_the_bound_of_turns_is_the_benchmark_s_own(turns):
    with pytest.raises(UsageError) as refused:
        prepare(replace(CONFIG, turns=turns), benchmark=Sums())
    assert refused.value.problems == (f"turns is {turns}, but must lie in 1..10000.",)


# --- judging ---


def judged_by(service: FakeBedrock) -> list[Any]:
    return [sent.body for sent in service.of("judge")]


def test_a_judge_hears_of_no_dialogue_where_there_is_none(service):
    service.scripts = {"tutor": sums(), "judge": [scored(3, 0, 4)]}
    alone = replace(RUBRIC, speakers=("user", "model"))
    result = play(turns=6, benchmark=Sums(rubric=alone), judge_model="judge")

    assert (result.exit_code, result.document["judge"]["coverage"]) == (0, 1.0)
    told = json.dumps(judged_by(service), ensure_ascii=False)
    assert "dialogue" not in told
    assert "what the reply answers between <context-…>" in told


class AskedAsAWhole(SumEpisode, frozen=True, kw_only=True):
    def closing_question(
        self, turns: Sequence[Turn], closing: str | None
    ) -> ClosingQuestion | None:
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        return ClosingQuestion(
            instructions="Count the sums.",
            prompt="How many are right?",
            lines=tuple((f"sum {turn.index}", turn.reply.message.text) for turn in turns),
            index=turns[-1].index,
            tool=Tool(name="record_count", description="How many.", input_schema=schema),
            read=lambda said: ({"n": said["n"]},),
        )


def test_nor_where_it_is_asked_about_all_of_them(service):
    counted = answer([{"toolUse": {"toolUseId": "1", "name": "record_count", "input": {"n": 6}}}])
    service.scripts = {"tutor": sums(), "judge": [*[scored(3, 0, 4)] * 6, counted]}
    alone = replace(RUBRIC, speakers=("user", "model"))
    play(turns=6, benchmark=Sums(rubric=alone, episode=AskedAsAWhole), judge_model="judge")

    (closing,) = [one for one in judged_by(service) if "record_count" in json.dumps(one)]
    assert "dialogue" not in json.dumps(closing)


def test_each_item_may_have_a_rubric_of_its_own(service, out):
    def rubric(name: str, sha256: str) -> Any:
        one = replace(RUBRIC.dimensions[0], name=name)
        return replace(
            RUBRIC, id=name, instructions=f"Look at {name}.", dimensions=(one,), sha256=sha256 * 64
        )

    def judge(sent):
        name = "warmth" if "Look at warmth." in sent.raw.decode() else "logic"
        use = {"toolUseId": "1", "name": "record_verdict", "input": {name: 2, "rationale": {}}}
        return answer([{"toolUse": use}], "tool_use")

    service.scripts = {"tutor": sums({4: REFUSED}), "judge": judge}
    rubrics = {
        number: rubric(("warmth", "logic")[number % 2], "ab"[number % 2]) for number in range(5)
    }
    benchmark = Sums(rubrics=rubrics)
    result = play(turns=6, benchmark=benchmark, judge_model="judge", output_dir=str(out))
    document = result.document

    assert [turn["scores"] for turn in document["turns"]] == [
        {"warmth": 2.0},
        {"logic": 2.0},
        {"warmth": 2.0},
        {"logic": 2.0},
        {"warmth": None},
        {},
    ]
    assert [turn["unjudged_reason"] for turn in document["turns"]] == [*[None] * 4, "refused", None]
    told = document["judge"]
    assert (told["coverage"], told["judged_turns"], told["unjudged_turns"]) == (0.8, 4, 1)
    assert len(told["rubric_sha256"]) == 64
    assert len(judged_by(service)) == 4
    again = play(
        turns=6,
        benchmark=benchmark,
        judge_model="judge",
        output_dir=str(out),
        resume_run_id=result.run_id,
    )
    assert again.document["turns"] == document["turns"]
    foretold = dry_run(prepare(replace(CONFIG, turns=6, judge_model="judge"), benchmark=benchmark))
    assert foretold["usage"]["judge"]["calls"] == 5


def test_verdicts_do_not_wait_for_each_other(service):
    """As many are asked for at once as items: four would wait for ever."""
    all_there = threading.Event()

    def judge(_sent):
        if len(service.of("judge")) == 10:
            all_there.set()
        assert all_there.wait(PATIENCE_S)
        return scored(3, 0, 4)

    service.scripts = {"tutor": sums(), "judge": judge}
    result = play(turns=10, benchmark=Sums(rubric=RUBRIC), judge_model="judge")

    assert result.document["judge"]["coverage"] == 1.0


# --- kills ---


def under_way(folder) -> tuple[str, set[int], set[int]]:
    """The run that a folder's journal holds, the items that were answered, and those asked."""
    (journal,) = folder.glob("journal/runs/*.jsonl")
    entries = [json.loads(line) for line in journal.read_bytes().split(b"\n")[:-1]]
    by_kind: dict[str, set[int]] = {"asked": set(), "answered": set()}
    for entry in entries:
        by_kind.setdefault(entry["kind"], set()).add((entry.get("key") or {}).get("index"))
    return journal.stem, by_kind["answered"], by_kind["asked"]


@pytest.mark.parametrize(
    "seed",
    [1, pytest.param(2, marks=pytest.mark.torture), pytest.param(3, marks=pytest.mark.torture)],
)
def test_a_run_that_is_killed_goes_on_with_what_it_lacks(seed, service, out, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    n_before = random.Random(seed).randrange(5, 50)
    reached, hanging = threading.Event(), threading.Event()

    def script(sent):
        if len(service.sent) > n_before:
            reached.set()
        return answer(str(2 * asked(sent)), held=hanging if reached.is_set() else None)

    service.scripts["tutor"] = script
    given = json.dumps({"output_dir": str(out)})
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.many_items", given], cwd=ROOT, stdout=subprocess.DEVNULL
    )
    assert reached.wait(PATIENCE_S)
    process.kill()
    process.wait()
    hanging.set()
    run_id, answered, started = under_way(out)
    assert len(started - answered) <= CONFIG.max_concurrency

    service.reset()
    service.scripts["tutor"] = sums()
    whole = play(output_dir=str(out), resume_run_id=run_id)
    assert (whole.exit_code, whole.document["metrics"]["accuracy"]) == (0, 1.0)
    # One of the process that was killed may come in late, but none that was answered.
    assert {*items_asked(service)} == {*range(60)} - answered


# --- ten thousand ---


@pytest.mark.torture
def test_ten_thousand_are_foretold():
    document = dry_run(prepare(replace(CONFIG, turns=10_000), benchmark=Sums()))

    assert (document["n_turns"], document["usage"]["model"]["calls"]) == (10_000, 10_000)
    assert breaches("dry_run", document, PARTS) == []


@pytest.mark.torture
def test_a_journal_holds_a_run_of_more_turns_than_a_dialogue_may_have(service, out):
    service.scripts["tutor"] = sums({500: GONE})
    cut = play(turns=501, output_dir=str(out))
    whole = play(turns=501, output_dir=str(out), resume_run_id=cut.run_id)
    (journal,) = out.glob("journal/runs/*.jsonl")
    entries = [json.loads(line) for line in journal.read_bytes().splitlines()]

    assert (cut.document["items"]["missing"], ReplayLog(entries).turns) == ([500], 501)
    assert (whole.status, whole.document["items"]["missing"]) == ("partial", [500])
    assert items_asked(service)[500] == 2


PEAK = """
import resource, subprocess, sys
child = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, child.returncode)
"""
UNREAD = 5  # the exit code: a Socratic model's answers are no numbers, of which one may be unread


def peak_kb(turns: int, folder: Path) -> int:
    """The most memory of a process that plays so many items and keeps them in a folder."""
    given = {"model": MODEL, "turns": turns, "output_dir": str(folder)}
    words = [sys.executable, "-m", "tests.many_items", json.dumps(given)]
    # By a small process between: a child's peak begins with the memory of whoever started it.
    measured = subprocess.run(
        [sys.executable, "-c", PEAK, *words], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    peak, exit_code = map(int, measured.stdout.split())
    assert exit_code == (UNREAD if turns > 1 else 0)
    return peak


@pytest.mark.torture
def test_ten_thousand_take_memory_by_their_number_and_are_read_again(tmp_path, monkeypatch):
    with Emulator(Settings(any_model=True)) as emulator:
        env = account(emulator.url, MODEL)
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        none, few, many = (peak_kb(n, tmp_path / str(n)) for n in (1, 2_500, 10_000))
    folder = tmp_path / "10000"
    (journal,) = folder.glob("journal/runs/*.jsonl")
    config = replace(CONFIG, model=MODEL, turns=10_000, output_dir=str(folder))
    again = play(config, resume_run_id=journal.stem)  # nobody is there to be asked

    # Four times as many; their square would be sixteen times as much.
    assert many - none < 6 * (few - none)
    assert (again.exit_code, again.document["n_turns"]) == (UNREAD, 10_000)
