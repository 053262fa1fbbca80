"""The table of models: every model with prices has a family, and every family its sources."""

import json
import re
import subprocess
import sys
import zipfile
from itertools import combinations
from typing import Any, get_args

import pytest
from msgspec.structs import fields

from socratic_bench.catalogue.models import (
    PROFILE_PREFIXES,
    Capabilities,
    ThinkingForm,
    base_id,
    capabilities_of,
    family_of,
)
from socratic_bench.catalogue.prices import builtin_prices
from socratic_bench.emulator import dialogue
from socratic_bench.emulator.catalogue import Traits, listed_models
from socratic_bench.emulator.dialogue import base_model_id
from tests.command import ROOT

TABLE = ROOT / "socratic_bench" / "catalogue" / "models.json"
FAMILIES: list[dict[str, Any]] = json.loads(TABLE.read_bytes())["families"]
PRICED = [name for row in FAMILIES for name in row["prices"]]
SOURCE = re.compile(r"https://\S+|litellm \d+\.\d+\.\d+|assumed: .+|socratic_bench/\S+")


@pytest.mark.parametrize("row", FAMILIES, ids=lambda row: row["family"])
def test_every_model_with_prices_belongs_to_the_family_it_stands_in(row):
    for name in row["prices"]:
        family = family_of(name.rpartition("/")[2])
        assert family is not None
        assert family.name == row["family"]
        assert builtin_prices().of(name) is not None


@pytest.mark.parametrize("row", FAMILIES, ids=lambda row: row["family"])
def test_every_family_says_what_it_takes_and_where_that_is_from(row):
    kinds = {
        field.name: getattr(field.type, "__origin__", field.type) for field in fields(Capabilities)
    }
    takes = {name for name, kind in kinds.items() if kind is bool}

    assert set(row["lacks"]) <= takes
    assert row["thinking"] in (None, *get_args(ThinkingForm))
    assert 512 <= row["cache_minimum"] <= 4096
    assert all(SOURCE.fullmatch(source) for source in row["sources"])
    assert row["sources"]
    if "tools" in row["lacks"]:
        assert {"forced_tool", "streamed_tools"} <= set(row["lacks"])


def test_no_beginning_is_in_two_families():
    for one, other in combinations(FAMILIES, 2):
        assert not set(one["starts"]) & set(other["starts"])


def test_the_table_is_what_the_script_makes_of_its_sources(tmp_path):
    made = tmp_path / "models.json"
    words = ("tools/models.py", "--families", "--output", str(made))
    subprocess.run([sys.executable, *words], check=True, cwd=ROOT)

    assert made.read_bytes() == TABLE.read_bytes()
    assert len(made.read_bytes()) < 80_000


def test_the_script_refuses_prices_of_a_model_that_no_family_knows(tmp_path):
    wheel = tmp_path / "litellm-9.9.9-py3-none-any.whl"
    row = {
        "litellm_provider": "bedrock_converse",
        "mode": "chat",
        "input_cost_per_token": 1e-6,
        "output_cost_per_token": 2e-6,
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(
            "litellm/model_prices_and_context_window_backup.json",
            json.dumps({"us.newcomer.first-v1:0": row}),
        )
    words = ("tools/models.py", "--wheel", str(wheel), "--output", str(tmp_path / "models.json"))
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "us.newcomer.first-v1:0 has prices and no family" in done.stderr
    assert not (tmp_path / "models.json").exists()


@pytest.mark.parametrize("prefix", sorted(PROFILE_PREFIXES))
@pytest.mark.parametrize("head", ["", "arn:aws:bedrock:us-east-1:123456789012:inference-profile/"])
def test_all_who_read_ids_know_every_region(prefix, head):
    name = f"{head}{prefix}.meta.llama3-1-70b-instruct-v1:0"

    assert base_id(name) == base_model_id(name) == "meta.llama3-1-70b-instruct-v1:0"
    assert not capabilities_of(name).forced_tool


def test_the_emulator_finds_the_same_model_behind_every_id():
    """It imports nothing of what it is measured by, so that it has its own list of regions."""
    prefixes = (*PROFILE_PREFIXES, "zz", "uk", "us-east", "US", "")
    names = {name.rpartition("/")[2] for name in PRICED}
    names |= {f"{prefix}.amazon.nova-lite-v1:0" for prefix in prefixes}

    assert dialogue.PROFILE_PREFIXES == PROFILE_PREFIXES

    assert {name: base_model_id(name) for name in names} == {name: base_id(name) for name in names}


@pytest.mark.parametrize("name", ["il.", "mx.", "in."])
def test_regions_that_one_list_or_the_other_had_left_out(name):
    assert family_of(f"{name}anthropic.claude-sonnet-4-5-20250929-v1:0") == family_of(
        "anthropic.claude-sonnet-4-5-20250929-v1:0"
    )


@pytest.mark.parametrize("prefix", ["us", "us-east-1", "usx", ""])
def test_what_only_looks_like_a_region_is_part_of_the_id(prefix):
    assert base_id(f"{prefix}amazon.nova") == f"{prefix}amazon.nova"


def _refused(traits: Traits) -> dict[str, bool]:
    """What a model of the emulator refuses, by the names of `Capabilities`."""
    return {
        "system": not traits.system,
        "tools": not traits.tools,
        "forced_tool": not (traits.tools and traits.tool_choice),
        "prompt_cache": not traits.cache,
        "streaming": not traits.streaming,
        "streamed_tools": not traits.streamed_tools,
        "temperature": traits.sampling == "none",
        "top_p": traits.sampling == "none",
        "both_samplings": traits.sampling == "either",
    }


@pytest.mark.parametrize("traits", listed_models(), ids=lambda traits: traits.base_id)
def test_the_table_knows_what_the_emulator_s_models_refuse(traits):
    can = capabilities_of(traits.base_id)

    known = {field for field, refused in _refused(traits).items() if refused}
    assert not {field for field in known if getattr(can, field)}
    assert can.thinking != "budget" or (traits.thinking and not traits.adaptive_thinking)
    assert not can.prompt_cache or can.cache_minimum == traits.cache_minimum


@pytest.mark.parametrize(
    ("model_id", "name"),
    [
        ("anthropic.claude-opus-4-20250514-v1:0", "Claude 3.7 Sonnet, Opus 4, Sonnet 4"),
        ("anthropic.claude-opus-4-6-v1", "Claude Haiku 4.5, Opus 4.5, Opus 4.6"),
        ("us.anthropic.claude-opus-5-5", "Claude Opus 5.5, Sonnet 5.5, Fable 5.1"),
        ("anthropic.claude-opus-7", "Claude Opus 5, Haiku 5, Fable, Mythos and later"),
        ("qwen.qwen3-coder-next", "Qwen3 Coder Next, Next, VL"),
        ("qwen.qwen3-coder-30b-a3b-v1:0", "Qwen3"),
        ("openai.gpt-oss-20b-1:0", "gpt-oss"),
        ("global.openai.gpt-6-sol", "GPT"),
        ("in.moonshotai.kimi-k3", "Kimi K3 and later"),
        ("moonshot.kimi-k2-thinking", "Kimi K2"),
        ("us-gov.nvidia.nemotron-super-3-120b", "Nemotron Super"),
        ("us.deepseek.r1-v1:0", "DeepSeek R1"),
    ],
)
def test_of_two_families_the_one_that_knows_more_of_an_id_has_it(model_id, name):
    family = family_of(model_id)

    assert family is not None
    assert family.name == name


@pytest.mark.parametrize("model_id", ["nobody.knows-v1:0", "", "us.", "arn:aws:bedrock:x"])
def test_what_nobody_knows_is_of_no_family_and_counts_as_modern(model_id):
    assert family_of(model_id) is None
    assert capabilities_of(model_id) == Capabilities()
