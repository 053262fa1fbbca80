"""What a run keeps of its configuration, and what of it makes it the run that it is."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from socratic_bench import Gate, RunConfig, UsageError
from socratic_bench.benchmarks.socratic.benchmark import BENCHMARK
from socratic_bench.generation import Guardrail
from socratic_bench.journal.identity import Identity
from socratic_bench.ports.benchmark import Sample
from socratic_bench.settings import continued, from_stored, to_stored
from tests.test_contract import FROZEN

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
# What another run has in another way. Prompt, scenario and files are told by the opening.
PARTS = {
    "benchmark",
    "model",
    "student_model",
    "judge_model",
    "temperature",
    "max_tokens",
    "top_p",
    "thinking_budget_tokens",
    "guardrail",
    "pressure",
    "transcript_turns",
    "seed",
}
OPENING = Sample(id="custom", prompt="Why?")
AFRESH = ("output_dir", "s3_bucket", "s3_prefix", "model_ids", "resume", "resume_run_id")


def test_it_comes_back_as_it_was_but_for_where_it_is_kept():
    kept = json.loads(json.dumps(to_stored(FULL)))
    blank = RunConfig(model="m")
    expected = replace(FULL, **{name: getattr(blank, name) for name in AFRESH})

    assert from_stored(RunConfig, kept) == expected
    assert from_stored(RunConfig, to_stored(blank)) == blank


def test_files_are_found_from_anywhere():
    stored = to_stored(RunConfig(model="m", transcript="talk.json", prices_file="p/prices.json"))

    assert stored["transcript"] == str(Path("talk.json").absolute())
    assert stored["prices_file"] == str(Path("p/prices.json").absolute())
    assert stored["scenario_file"] is None


def test_a_field_of_a_later_version_is_left_out():
    assert from_stored(RunConfig, {**to_stored(FULL), "no_such_field": 1}) == from_stored(
        RunConfig, to_stored(FULL)
    )


def test_a_value_that_can_no_longer_be_run_is_refused_with_the_reason():
    stored = {**to_stored(FULL), "student_edition": "socratic-student-2"}

    assert from_stored(RunConfig, stored) == from_stored(RunConfig, to_stored(FULL))
    with pytest.raises(UsageError, match="first edition of students and scenarios"):
        from_stored(RunConfig, {**stored, "student_edition": "socratic-student-1"})
    with pytest.raises(UsageError, match="first edition of the rubric"):
        from_stored(RunConfig, {**stored, "rubric": "socratic-disposition-1"})


def test_what_is_said_anew_counts_and_places_always_do():
    asked = RunConfig(model="other", turns=9, judge_model="j", output_dir="here", seed=1)
    found = continued(FULL, asked, ["turns", "judge-model"])

    changed = {"turns": 9, "judge_model": "j", "output_dir": "here", "model_ids": None}
    assert found == replace(FULL, **changed, resume=False)


def test_a_flag_that_steers_another_is_said_anew_too():
    asked = RunConfig(model="m", judge_model=None, thinking_budget_tokens=2000, stream=False)
    found = continued(RunConfig(model="m"), asked, ["no-judge", "enable-thinking", "no-stream"])

    assert found == asked


@pytest.mark.parametrize("name", FROZEN["library"]["RunConfig"])
def test_what_makes_another_run(name):
    others = {bool: True, int: 5, float: 5.0, str: "x", tuple: ("x",), type(None): "x"}
    value = getattr(RunConfig(model="m", seed=1), name)
    other = replace(RunConfig(model="m", seed=1), **{name: others[type(value)]})

    was, now = (
        Identity.of(config, OPENING, BENCHMARK.parts.sample.of(OPENING), seed_given=True)
        for config in (RunConfig(model="m", seed=1), other)
    )
    assert (was.digest != now.digest) == (name in PARTS)
