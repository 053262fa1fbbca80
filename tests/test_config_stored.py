"""What a run keeps of its configuration, and what of it makes it the run that it is."""

import json
from pathlib import Path

from msgspec.structs import fields, replace

from cli.run import build_parser
from socratic_bench.config import Gate, RunConfig, continued, from_stored, to_stored
from socratic_bench.config.stored import AFRESH, FIELDS
from socratic_bench.journal.identity import CORE, FURTHER
from socratic_bench.types import Guardrail

FULL = RunConfig(
    model="m",
    prompt="Why?",
    scenario_file=str(Path("/data/one.toml")),
    turns=7,
    judge_model=None,
    student_model="s",
    seed=5,
    model_ids=("m",),
    region="us-east-1",
    output_dir="out",
    temperature=0.5,
    top_p=0.9,
    guardrail=Guardrail("abc", "1"),
    request_metadata=(("team", "a"), ("run", "b")),
    gates=(Gate("half_life", 3.0), Gate("mean_form", 1.0)),
    stream=False,
    pressure="low",
    resume=True,
)
# Told by the opening: its words, its scenario, and the digests of what was read.
OPENED = {
    "prompt",
    "scenario",
    "scenario_file",
    "system_prompt_file",
    "transcript",
    "seed",
}
MAY_CHANGE = {
    "turns",
    "s3_kms_key_id",
    "region",
    "assume_role_arn",
    "service_tier",
    "latency_profile",
    "request_metadata",
    "stream",
    "prompt_cache",
    "max_attempts",
    "call_timeout_s",
    "deadline_s",
    "max_cost_usd",
    "prices_file",
    "offline",
    "compliance_threshold",
    "half_life_threshold",
    "min_judge_coverage",
    "gates",
}
# Flags that say how to show or plan a run, and not which one.
NO_FIELD = {"pretty", "brief", "quiet", "debug", "version", "help", "dry-run", "resume-from"}


def test_it_comes_back_as_it_was_but_for_where_it_is_kept():
    kept = json.loads(json.dumps(to_stored(FULL)))
    blank = RunConfig(model="m")
    expected = replace(FULL, **{name: getattr(blank, name) for name in AFRESH})

    assert from_stored(kept) == expected
    assert from_stored(to_stored(blank)) == blank


def test_files_are_found_from_anywhere():
    stored = to_stored(RunConfig(model="m", transcript="talk.json", prices_file="p/prices.json"))

    assert stored["transcript"] == str(Path("talk.json").absolute())
    assert stored["prices_file"] == str(Path("p/prices.json").absolute())
    assert stored["scenario_file"] is None


def test_a_field_of_a_later_version_is_left_out():
    assert from_stored({**to_stored(FULL), "no_such_field": 1}) == from_stored(to_stored(FULL))


def test_what_is_said_anew_counts_and_places_always_do():
    asked = RunConfig(model="other", turns=9, judge_model="j", output_dir="here", seed=1)
    found = continued(FULL, asked, ["turns", "judge-model"])

    changed = {"turns": 9, "judge_model": "j", "output_dir": "here", "model_ids": None}
    assert found == replace(FULL, **changed, resume=False)


def test_every_flag_is_known_by_its_field():
    flags = {
        option.removeprefix("--")
        for action in build_parser()._actions
        for option in action.option_strings
        if option.startswith("--")
    }
    names = {field.name for field in fields(RunConfig)}

    found = {FIELDS.get(flag, flag.replace("-", "_")) for flag in flags - NO_FIELD}
    assert found <= names, found - names


def test_every_field_is_part_of_the_identity_or_may_change():
    names = {field.name for field in fields(RunConfig)}
    parts = [{*CORE}, {*FURTHER}, OPENED, MAY_CHANGE, {*AFRESH}]

    assert set().union(*parts) == names
    assert sum(map(len, parts)) == len(names)
