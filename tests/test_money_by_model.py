"""An actor that asks several models: each call costs what its own model costs, resumed or not."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from socratic_bench import RunConfig, run
from socratic_bench.generation import GenerateConfig
from socratic_bench.ports.benchmark import (
    Benchmark,
    Episode,
    EpisodeContext,
    EpisodeResult,
    Length,
    MetricInfo,
    Metrics,
    Sample,
)
from socratic_bench.ports.parts import Actor, Parts
from socratic_bench.runs import prepare
from socratic_bench.runs.dry_run import dry_run
from socratic_bench.turns import Turn
from socratic_bench.types import CallKey, Message, Request, Role
from tests.fakes import FakeBedrock, answer

# USD per million tokens, input and output; each call takes 10 and 5.
PRICES = {"cheap": (1, 2), "fair": (10, 20), "dear": (100, 200)}
TESTED_USD = 3 * (10 * 1 + 5 * 2) / 1e6
JURY_USD = {name: (10 * each + 5 * out) / 1e6 for name, (each, out) in PRICES.items()}
REQUEST = Request(messages=(Message.user("Well?"),), config=GenerateConfig(max_tokens=100))


class JuryEpisode(Episode, frozen=True, kw_only=True):
    """Three turns; after the last, each juror is asked once."""

    config: RunConfig

    def play(self, context: EpisodeContext) -> EpisodeResult:
        for index in range(3):
            reply = context.tested.complete(REQUEST, CallKey(role="model", index=index))
            context.publish(Turn(index=index, prompt="Well?", reply=reply))
        for name in PRICES:
            juror = context.model("juror", name)
            assert juror is not None
            juror.complete(REQUEST, CallKey(role="juror", index=2, part=name))
        return EpisodeResult(end_reason="max_turns")

    def expected_reply(self, role: Role, length: Length) -> str:
        return "Fine."


class JuryBenchmark(Benchmark):
    name = "jury"
    parts = Parts(actors=(Actor("model", "model"), Actor("juror", "judge_model")))
    primary_metric = "n"
    metrics = (MetricInfo(name="n", title="Turns", low=0, high=None),)

    def prepare(self, config: RunConfig) -> JuryEpisode:
        return JuryEpisode(config=config, opening=Sample(id="jury", prompt="Well?"))

    def summarise(self, config: RunConfig, turns: Sequence[Turn]) -> Metrics:
        return {"n": len(turns)}


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    models = {
        name: {"default": {"input": each, "output": out}} for name, (each, out) in PRICES.items()
    }
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"models": models}))
    return RunConfig(
        model="cheap",
        judge_model="cheap",
        turns=3,
        seed=1,
        region="us-east-1",
        prices_file=str(prices),
        output_dir=str(tmp_path / "out"),
        prompt="Well?",
    )


@pytest.fixture
def bedrock(service: FakeBedrock) -> FakeBedrock:
    service.scripts = {name: [answer("Fine.")] for name in PRICES}
    return service


def played(config: RunConfig, **changes: Any) -> dict[str, Any]:
    return dict(run(replace(config, **changes), benchmark=JuryBenchmark()).document)


def total_usd(document: dict[str, Any]) -> float:
    total: float = document["cost"]["total"]["total_usd"]
    return total


def test_each_call_costs_what_its_model_costs(bedrock, config):
    cost = played(config)["cost"]

    assert cost["juror"]["total_usd"] == pytest.approx(sum(JURY_USD.values()))
    assert cost["total"]["total_usd"] == pytest.approx(TESTED_USD + sum(JURY_USD.values()))
    by_model = {name: each["total_usd"] for name, each in cost["by_model"]["juror"].items()}
    assert by_model == pytest.approx(JURY_USD)


def test_a_budget_holds_the_price_of_the_model_that_is_asked(bedrock, config):
    """What the tested model and two jurors cost is far below; the dear one could cost more."""
    document = played(config, max_cost_usd=0.01)

    assert (document["end_reason"], document["status"]) == ("budget", "partial")
    assert [len(bedrock.of(name)) for name in PRICES] == [4, 1, 0]


def test_a_resumed_run_reckons_what_was_spent_by_the_same_prices(bedrock, config):
    """The dear juror fails; it may be billed for all it could, at its own price."""
    bedrock.scripts["dear"] = lambda _: answer("cut", stop_reason=5)
    cut = played(config, max_attempts=1)
    lost_usd = cut["cost"]["maybe_billed"]["at_most_usd"]
    assert (cut["end_reason"], total_usd(cut)) == (
        "unavailable",
        pytest.approx(TESTED_USD + JURY_USD["cheap"] + JURY_USD["fair"]),
    )
    assert lost_usd > 100 * 200 / 1e6

    bedrock.scripts["dear"] = [answer("Fine.")]
    # As much as what is left would allow, were what was lost reckoned as the configured model's.
    held = played(config, max_cost_usd=1.5 * lost_usd, resume=True)
    assert (held["end_reason"], len(bedrock.of("dear"))) == ("budget", 1)

    whole = played(config, max_cost_usd=3 * lost_usd, resume=True)
    assert (whole["run_id"], whole["status"]) == (cut["run_id"], "completed")
    assert total_usd(whole) == pytest.approx(TESTED_USD + sum(JURY_USD.values()))
    assert [len(bedrock.of(name)) for name in PRICES] == [4, 1, 2]


def test_without_a_price_a_budget_ends_the_run_and_says_which_is_missing(bedrock, config):
    episode = JuryBenchmark()
    known = json.loads(Path(str(config.prices_file)).read_bytes())
    del known["models"]["dear"]
    Path(str(config.prices_file)).write_text(json.dumps(known))
    document = dict(run(replace(config, max_cost_usd=1.0), benchmark=episode).document)

    assert document["end_reason"] == "budget"
    assert "The price of dear is unknown" in document["error"]["message"]
    assert document["cost"]["juror"]["total_usd"] == pytest.approx(
        JURY_USD["cheap"] + JURY_USD["fair"]
    )


def test_a_dry_run_foretells_it(config):
    document = dry_run(prepare(config, benchmark=JuryBenchmark()))

    assert set(document["cost"]["by_model"]["juror"]) == set(PRICES)
