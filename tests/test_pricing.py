"""Prices and tokens become amounts; what is not known stays unknown."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from socratic_bench.catalogue.price_file import load_prices
from socratic_bench.catalogue.prices import (
    PRICED,
    Cost,
    ModelPrices,
    PricingTier,
    Rates,
    Step,
    builtin_prices,
    dearest_usd,
    price,
)
from socratic_bench.catalogue.tokens import most_input_tokens
from socratic_bench.documents.cost import billed_tier
from socratic_bench.errors import UsageError
from socratic_bench.generation import GenerateConfig
from socratic_bench.types import Message, Request, Text, Tool, ToolResult, ToolUse, Usage
from tests.command import ROOT, assert_valid
from tests.fakes import breaches, completion

SOURCE = ROOT / "tests" / "data" / "price_source.json"
BUILTIN = ROOT / "socratic_bench" / "catalogue" / "models.json"
CLAUDE = Rates(input=3, output=15, cache_read=0.3, cache_write=3.75)
MILLION = 1_000_000


def usd(**kinds: float) -> Cost:
    return Cost(**{f"{kind}_usd": value for kind, value in kinds.items()})


# --- arithmetic ---


def test_each_token_is_charged_once_by_its_kind():
    usage = Usage(
        input_tokens=6 * MILLION,
        output_tokens=MILLION,
        cache_read_tokens=2 * MILLION,
        cache_write_tokens=3 * MILLION,
    )

    cost = price(usage, CLAUDE)

    assert cost == usd(input=3.0, output=15.0, cache_read=0.6, cache_write=11.25)
    assert cost.total_usd == pytest.approx(29.85)


def test_the_documented_example_of_caching_comes_out():
    """40 turns of 400 + 60 + 200 tokens: 36,254 billed equivalents instead of 221,200."""
    at_input_price = Rates(input=MILLION, output=0, cache_read=0.1 * MILLION, cache_write=1.25e6)
    cached = written = billed = whole = 0
    for turn in range(40):
        prompt = 400 + 60 + turn * 260
        written = prompt if prompt >= 1024 else 0
        usage = Usage(
            input_tokens=prompt,
            cache_read_tokens=cached,
            cache_write_tokens=max(0, written - cached),
        )
        billed += price(usage, at_input_price).total_usd
        whole += prompt
        cached = written

    assert (whole, round(billed)) == (221_200, 36_254)


def test_writing_costs_what_input_costs_where_it_has_no_price_of_its_own():
    nova = Rates(input=0.8, output=3.2, cache_read=0.2)

    assert price(Usage(input_tokens=MILLION, cache_write_tokens=MILLION), nova) == usd(
        cache_write=0.8
    )


def test_reading_at_an_unknown_price_is_unknown_and_not_free():
    plain = Rates(input=2, output=4)

    assert price(Usage(input_tokens=10, cache_read_tokens=5), plain) is None
    assert price(Usage(input_tokens=10), plain) is not None


def test_long_calls_have_rates_of_their_own_for_all_their_tokens():
    rates = Rates(input=1, output=5, over=Step(input_tokens=100, rates=Rates(input=5, output=25)))

    assert price(Usage(input_tokens=100, output_tokens=1), rates) == usd(input=1e-4, output=5e-6)
    assert price(Usage(input_tokens=101, output_tokens=1), rates) == usd(
        input=101 * 5e-6, output=25e-6
    )


counts = st.integers(0, 10**7)


@given(counts, counts, counts, counts, st.sampled_from(["default", "priority", "flex"]))
def test_no_call_costs_more_than_its_worst_case(new, read, write, out, name):
    prices = builtin_prices().of("emulator.socratic-v1:0")
    usage = Usage(
        input_tokens=new + read + write,
        output_tokens=out,
        cache_read_tokens=read,
        cache_write_tokens=write,
    )
    rates = prices.rates(name)

    worst = dearest_usd(usage.input_tokens, out, prices, PricingTier(name))

    assert price(usage, rates).total_usd <= worst * (1 + 1e-9)


def test_the_worst_case_counts_the_tier_that_may_be_served_instead():
    cheap, dear = Rates(input=1, output=1), Rates(input=2, output=2)
    prices = ModelPrices({"default": dear, "flex": cheap})

    assert dearest_usd(MILLION, 0, prices, PricingTier("flex")) == 2
    with pytest.raises(KeyError):
        dearest_usd(1, 1, prices, PricingTier("priority"))


def test_the_bound_on_input_holds_all_bytes_of_a_request():
    text = "Übung 學 \ud800"
    tool = Tool(name="t" * 10, description="d" * 20, input_schema={"type": "object"})
    blocks = (Text(text), ToolUse("1", "t", {"a": "b" * 50}), ToolResult("1", "r" * 30))
    request = Request(
        messages=(Message("user", blocks),),
        config=GenerateConfig(max_tokens=1),
        system="s" * 40,
        tool=tool,
    )

    n_bytes = len(text.encode("utf-8", "replace")) + 50 + 30 + 40 + 10 + 20 + 18
    assert n_bytes < most_input_tokens(request) < n_bytes + 1300


# --- looking prices up ---


def test_the_emulators_prices_are_marked_and_have_the_rates_of_the_caching_arithmetic():
    prices = builtin_prices().of("emulator.anything-v1:0")

    assert prices.stand_in
    assert prices.rates("default") == CLAUDE
    assert all(
        (rates.cache_write / rates.input, rates.cache_read / rates.input)
        == pytest.approx((1.25, 0.1))
        for name, rates in prices.tiers.items()
        if name != "batch"  # where nothing is cached
    )


def test_the_default_judge_has_a_price():
    known = builtin_prices()

    judge = known.of("anthropic.claude-3-5-sonnet-20241022-v1:0", "us-east-1")
    assert judge == known.of("anthropic.claude-3-5-sonnet-20241022-v2:0")
    assert not judge.stand_in


SONNET = "anthropic.claude-sonnet-4-5-20250929-v1:0"
HEAD = "arn:aws:bedrock:eu-west-1:123456789012"


@pytest.mark.parametrize(
    ("asked", "same_as"),
    [
        (f"arn:aws:bedrock:us-east-1::foundation-model/{SONNET}", SONNET),
        (f"{HEAD}:inference-profile/eu.{SONNET}", f"eu.{SONNET}"),
        (f"{HEAD}:inference-profile/global.{SONNET}", f"global.{SONNET}"),
    ],
)
def test_an_arn_that_says_its_model_has_the_models_price(asked, same_as):
    assert builtin_prices().of(asked) == builtin_prices().of(same_as) is not None


@pytest.mark.parametrize(
    "model",
    [
        "no.such-model-v1:0",
        f"{HEAD}:application-inference-profile/a1b2c3",
        f"{HEAD}:application-inference-profile/{SONNET}",
        f"{HEAD}:provisioned-model/{SONNET}",
        "xx.amazon.nova-lite-v1:0",
        "amazon.nova-lite-v1:0.more",
    ],
)
def test_what_is_not_known_has_no_price(model):
    assert builtin_prices().of(model, "eu-west-1") is None


def test_region_and_prefix_make_prices():
    table = builtin_prices()
    plain, eu = (table.of(name + "amazon.nova-lite-v1:0") for name in ("", "eu."))

    assert eu.rates("default").input > plain.rates("default").input
    assert table.of("amazon.nova-lite-v1:0", "us-gov-west-1") != plain
    assert table.of("amazon.nova-lite-v1:0", "us-east-1") == plain
    gov = "arn:aws-us-gov:bedrock:us-gov-west-1::foundation-model/amazon.nova-lite-v1:0"
    assert table.of(gov, "us-east-1") == table.of("amazon.nova-lite-v1:0", "us-gov-west-1")


def test_tiers_have_prices_of_their_own_or_none():
    nova = builtin_prices().of("amazon.nova-pro-v1:0")

    assert [nova.rates(t).input for t in (None, "default", "priority", "flex")] == [
        0.8,
        0.8,
        1.4,
        0.4,
    ]
    assert nova.rates("reserved") is None


@pytest.mark.parametrize(
    ("asked", "tier", "profile", "billed"),
    [
        (PricingTier(None, "optimized"), None, None, "optimized"),
        (PricingTier(None, "optimized"), "default", "optimized", "optimized"),
        # The service has served it at standard latency instead.
        (PricingTier(None, "optimized"), None, "standard", "default"),
        (PricingTier(None, "optimized"), "flex", "standard", "flex"),
        (PricingTier("priority", "optimized"), None, "standard", "priority"),
        (PricingTier("flex"), None, None, "flex"),
        (PricingTier("flex"), "default", "standard", "default"),
        (PricingTier(), None, "optimized", "optimized"),
        (PricingTier(), None, None, "default"),
    ],
)
def test_a_call_is_billed_as_it_was_served(asked, tier, profile, billed):
    call = replace(completion("Why?"), served_tier=tier, served_latency_profile=profile)

    assert billed_tier(call, asked).name == billed


def test_the_worst_case_counts_the_tier_for_which_optimized_latency_may_be_left():
    rates = {name: Rates(input=usd, output=usd) for usd, name in enumerate(PRICED, start=1)}
    dearest_tier = ModelPrices({**rates, "priority": Rates(input=9, output=9)})

    assert dearest_usd(MILLION, 0, dearest_tier, PricingTier("priority", "optimized")) == 9
    assert dearest_usd(MILLION, 0, dearest_tier, PricingTier(None, "optimized")) == 5
    with pytest.raises(KeyError):
        dearest_usd(1, 1, ModelPrices({"optimized": Rates(input=1, output=1)}), PricingTier("flex"))


# --- a user's own file ---


def own(models, **more):
    return load_prices(json.dumps({"models": models, **more}).encode(), "own.json")


def test_a_file_of_ones_own_counts_before_the_built_in_prices():
    profile = f"{HEAD}:application-inference-profile/a1b2c3"
    table = own(
        {
            SONNET: {"default": {"input": 1, "output": 2}},
            profile: {"default": {"input": 3, "output": 4, "cache_read": 0.5}},
            "my.*": {"flex": {"input": 5, "output": 6}},
            "my.special*": {"flex": {"input": 7, "output": 8}},
        },
        source={"name": "contract", "version": "2", "date": "2026-11-01"},
    )

    assert table.of(SONNET).rates(None) == Rates(input=1, output=2)
    assert table.of(profile).rates(None) == Rates(input=3, output=4, cache_read=0.5)
    assert table.of("my.model").rates("flex").input == 5
    assert table.of("my.special-model").rates("flex").input == 7
    assert table.of("my.model").rates("default") is None
    assert table.of("amazon.nova-lite-v1:0") == builtin_prices().of("amazon.nova-lite-v1:0")
    assert (table.source.name, table.source.date) == ("contract", "2026-11-01")


def test_a_step_takes_over_what_it_does_not_change():
    over = {"input_tokens": 1000, "input": 9}
    rates = own({"m": {"default": {"input": 1, "output": 2, "over": over}}}).of("m").rates(None)

    assert (rates.of(1000), rates.of(1001)) == (rates, Rates(input=9, output=2))


BROKEN = {
    "no object": ([], ["it must be a JSON object."]),
    "nothing in it": ({}, ["models: Expected `object`, got `null`."]),
    "more digits than a float has": (
        {"models": {"a": {"default": {"input": 10**400, "output": 1}}}},
        ["models['a'].default.input: Number out of range."],
    ),
    "many": (
        {
            "kind": "costs",
            "schema_version": 2,
            "source": {"name": 1, "date": "today"},
            "currency": "EUR",
            "models": {
                "a": {"default": {"input": -1, "output": "2"}},
                "b": {"turbo": {}, "stand_in": 1},
                "c": {"default": {"input": 1}, "flex": []},
                "d": [],
                "e": {"default": {"input": True, "output": 1, "over": {"input_tokens": 0.5}}},
            },
        },
        [
            "currency is not known; available: kind, schema_version, source, models.",
            "kind: Invalid enum value 'costs'.",
            "schema_version: Invalid enum value 2.",
            "source.name: Expected `str | null`, got `int`.",
            "source.date: Expected `str` matching regex '^[0-9]{4}-[0-9]{2}-[0-9]{2}$'.",
            "models['a'].default.input: Expected `float` >= 0.0.",
            "models['a'].default.output: Expected `float`, got `str`.",
            f"models['b'].turbo is not known; available: {', '.join(PRICED)}, stand_in.",
            "models['b'].stand_in: Expected `bool`, got `int`.",
            "models['b'] has no tier: give default, priority, flex, batch, optimized.",
            "models['c'].default.output is missing.",
            "models['c'].flex must be an object.",
            "models['d'] must be an object.",
            "models['e'].default.input: Expected `float`, got `bool`.",
            "models['e'].default.over.input_tokens: Expected `int`, got `float`.",
        ],
    ),
    "a truth for a number": (
        {"schema_version": True, "models": {"a": {"default": {"input": 1, "output": 1}}}},
        ["schema_version: Expected `int`, got `bool`."],
    ),
    "a null for an object": (
        {"source": None, "models": {"a": {"default": {"input": 1, "output": 1}}}},
        ["source must be an object."],
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_every_mistake_in_a_price_file_is_named_and_the_schema_finds_it_too(case):
    found, problems = BROKEN[case]

    with pytest.raises(UsageError) as refused:
        load_prices(json.dumps(found).encode(), "own.json")

    assert list(refused.value.problems) == [
        f"prices_file own.json: {problem}" for problem in problems
    ]
    assert breaches("prices", found) != []


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 100_000])
def test_a_price_file_that_is_no_json_is_refused(content):
    with pytest.raises(UsageError, match="not JSON"):
        load_prices(content, "own.json")


# --- the table in the package ---


def made(tmp_path: Path, *words: str) -> dict[str, Any]:
    """What the script makes of its source: a price file's source and models."""
    output = tmp_path / "models.json"
    subprocess.run(
        [sys.executable, "tools/models.py", "--output", output, "--date", "2026-11-21", *words],
        check=True,
        cwd=ROOT,
    )
    return price_file(output)


def price_file(table: Path) -> dict[str, Any]:
    found = json.loads(table.read_bytes())
    models = {name: model for row in found["families"] for name, model in row["prices"].items()}
    return {"source": found["prices"], "models": models}


def test_the_script_makes_the_tables_rows_from_its_source(tmp_path):
    wheel = tmp_path / "litellm-1.109.1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(SOURCE, "litellm/model_prices_and_context_window_backup.json")

    found = made(tmp_path, "--wheel", str(wheel))
    whole = price_file(BUILTIN)

    assert found["source"] == whole["source"]
    assert sorted(found["models"]) == [
        "amazon.nova-lite-v1:0",
        "amazon.nova-pro-v1:0",
        "amazon.optimize-prompt*",
        "anthropic.claude-3-5-sonnet-20241022-v1:0",
        "anthropic.claude-3-5-sonnet-20241022-v2:0",
        "anthropic.claude-instant-v1",
        "emulator.*",
        "us-gov-west-1/amazon.nova-lite-v1:0",
        "us.amazon.nova-lite-v1:0",
        "us.anthropic.claude-haiku-5-5",
    ]
    assert found["models"].items() <= whole["models"].items()


def test_the_tables_prices_fit_the_schema_and_the_rules_of_price_files():
    whole = price_file(BUILTIN)
    content = json.dumps(whole).encode()

    assert_valid("prices", whole)
    assert load_prices(content, "prices.json").models == builtin_prices().models
    assert len(whole["models"]) > 300
    assert len(content) < 64_000
