""""""

from typing import Any

import pytest
from msgspec.structs import replace

from socratic_bench import RunConfig
from socratic_bench.generation import Guardrail
from socratic_bench.runs import prepare
from tests.reading import (
    BY_FLAG,
    BY_VARIABLE,
    CONFIG,
    ENVIRON,
    FLAGS,
    OFFLINE_MODELS,
    read,
    read_environ,
    read_in,
    sources,
)


def test_the_documented_command_gets_the_documented_defaults():
    documented = RunConfig(
        model="m",
        prompt="Hello.",
        scenario=None,
        scenario_file=None,
        turns=40,
        judge_model="anthropic.claude-3-5-sonnet-20241022-v1:0",
        student_model=None,
        seed=None,
        model_ids=("m", "n"),
        region="us-east-1",
        assume_role_arn=None,
        output_dir=None,
        s3_bucket=None,
        s3_prefix="",
        s3_kms_key_id=None,
        system_prompt_file=None,
        temperature=None,
        top_p=None,
        max_tokens=1024,
        thinking_budget_tokens=None,
        service_tier=None,
        latency_profile=None,
        guardrail=None,
        request_metadata=(),
        stream=True,
        prompt_cache=True,
        max_attempts=10,
        call_timeout_s=300.0,
        deadline_s=None,
        max_cost_usd=None,
        prices_file=None,
        offline=False,
        compliance_threshold=3.0,
        half_life_threshold=8.0,
        min_judge_coverage=0.9,
        gates=(),
        benchmark="socratic",
    )

    assert read() == (documented, ())
    assert documented.problems() == ()


FIELD_OF = {
    "call_timeout": "call_timeout_s",
    "deadline": "deadline_s",
    "prices": "prices_file",
    "fail_under": "gates",
}


@pytest.mark.parametrize("flag", BY_FLAG)
def test_each_flag_sets_its_field_and_no_other(flag):
    word, value = BY_FLAG[flag]

    assert read(**{flag: word}) == (replace(CONFIG, **{FIELD_OF.get(flag, flag): value}), ())


def test_the_switches_of_the_wire():
    assert read(no_stream=True) == (replace(CONFIG, stream=False), ())
    assert read(no_prompt_cache=True) == (replace(CONFIG, prompt_cache=False), ())


def test_a_guardrail_may_be_an_arn():
    arn = "arn:aws:bedrock:us-east-1:123456789012:guardrail/abc123"

    assert read(guardrail=f"{arn}:7") == (replace(CONFIG, guardrail=Guardrail(arn, "7")), ())


@pytest.mark.parametrize(
    ("flags", "budget", "max_tokens"),
    [
        ({}, 1024, 2048),
        ({"thinking_budget_tokens": "4000"}, 4000, 5024),
        ({"thinking_budget_tokens": "4000", "max_tokens": "4001"}, 4000, 4001),
        ({"temperature": "1"}, 1024, 2048),
    ],
)
def test_thinking_comes_on_top_of_the_default_bound(flags, budget, max_tokens):
    config, problems = read(enable_thinking=True, **flags)

    assert (config.thinking_budget_tokens, config.max_tokens) == (budget, max_tokens)
    assert problems == config.problems() == ()


@pytest.mark.parametrize("variable", BY_VARIABLE)
def test_each_variable_sets_its_field_and_its_flag_beats_it(variable):
    field, word, value, flag_word, flag_value = BY_VARIABLE[variable]

    assert read_environ(**{variable: word}) == (replace(CONFIG, **{field: value}), ())
    flags = {**FLAGS, field.replace("_", "-"): flag_word}
    beaten = read_in(sources(flags, {**ENVIRON, variable: word}))
    assert beaten == (replace(CONFIG, **{field: flag_value}), ())


@pytest.mark.parametrize("variable", [name for name in BY_VARIABLE if name != "AWS_REGION"])
def test_an_empty_variable_counts_as_unset(variable):
    assert read_environ(**{variable: ""}) == (CONFIG, ())


def test_the_region_comes_from_the_flag_then_both_variables_then_the_profile():
    environ = {
        **ENVIRON,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-2",
    }
    without_one = {**environ, "AWS_REGION": ""}
    without_both = {**without_one, "AWS_DEFAULT_REGION": ""}

    found = [
        read_in(sources(flags, variables, profile_region="us-west-2"))[0].region
        for flags, variables in (
            ({**FLAGS, "region": "us-west-1"}, environ),
            (FLAGS, environ),
            (FLAGS, without_one),
            (FLAGS, without_both),
        )
    ]
    assert found == ["us-west-1", "us-east-1", "us-east-2", "us-west-2"]


def test_the_profile_is_not_read_where_a_region_is_given():
    def unread() -> str | None:
        raise AssertionError("the profile was read")

    given = replace(sources(FLAGS), profile_region=unread)

    assert read_in(given) == (CONFIG, ())


def test_a_dash_reads_the_prompt_from_standard_input():
    found = read_in(sources({"model": "m", "prompt": "-"}, stdin="From a pipe.\n"))

    assert found == (replace(CONFIG, prompt="From a pipe."), ())


def test_standard_input_is_left_alone_without_a_dash():
    def unread(_bound: int) -> bytes:
        raise AssertionError("standard input was read")

    assert read_in(replace(sources(FLAGS), read_stdin=unread)) == (CONFIG, ())


@pytest.mark.parametrize(
    ("flags", "environ", "student"),
    [
        ({}, {}, None),
        ({"student": "scripted"}, {}, None),
        ({"student": "scripted"}, {"RUNNER_STUDENT_MODEL": "s"}, None),
        ({"student": "model"}, {"RUNNER_STUDENT_MODEL": "s"}, "s"),
        ({"student": "model", "student-model": "t"}, {"RUNNER_STUDENT_MODEL": "s"}, "t"),
        ({"student-model": "t"}, {}, "t"),
    ],
)
def test_the_student_is_scripted_unless_a_model_is_given(flags, environ, student):
    config, misread = read_in(sources({**FLAGS, **flags}, {**ENVIRON, **environ}))

    assert (config, misread) == (replace(CONFIG, student_model=student), ())


def test_no_judge_beats_the_judge_of_the_environment():
    flags = {**FLAGS, "no-judge": True}

    found = read_in(sources(flags, {**ENVIRON, "RUNNER_JUDGE_MODEL": "j"}))
    assert found == (replace(CONFIG, judge_model=None), ())


def test_judge_and_student_need_not_be_among_the_tested_ids():
    config, misread = read(judge_model="elsewhere", student_model="elsewhere")

    assert misread == ()
    assert config.problems() == ()


class TestOffline:
    def test_everything_has_a_stand_in(self):
        config = read_in(sources({**FLAGS, "model": OFFLINE_MODELS[0], "offline": True}, {}))

        assert config == (
            replace(
                CONFIG,
                model=OFFLINE_MODELS[0],
                offline=True,
                model_ids=OFFLINE_MODELS,
                judge_model="emulator.judge-v1:0",
                region="us-east-1",
            ),
            (),
        )

    def test_what_the_user_sets_counts_but_a_role_is_never_assumed(self):
        environ = {
            **ENVIRON,
            "AWS_REGION": "eu-west-1",
            "RUNNER_JUDGE_MODEL": "j",
            "BEDROCK_ASSUME_ROLE_ARN": "arn:aws:iam::123456789012:role/R",
            "RUNNER_S3_BUCKET": "bucket",
        }
        config = read_in(sources({**FLAGS, "offline": True}, environ))

        assert config == (
            replace(CONFIG, offline=True, region="eu-west-1", judge_model="j", s3_bucket="bucket"),
            (),
        )

    def test_not_even_by_the_flag(self):
        config, _ = read(offline=True, assume_role_arn="arn:aws:iam::123456789012:role/R")

        assert config.assume_role_arn is None

    def test_the_profile_is_not_asked_for_a_region(self):
        config, _ = read_in(sources({**FLAGS, "offline": True}, {}, profile_region="ap-south-1"))

        assert config.region == "us-east-1"

    def test_the_default_judge_is_not_the_one_of_an_account(self):
        config, _ = read_in(sources({**FLAGS, "offline": True}, {}))

        assert config.judge_model != CONFIG.judge_model


def test_a_drawn_seed_stands_in_the_plan():
    plan = prepare(replace(CONFIG, seed=None))

    assert plan.config.seed is not None
    assert plan.config == replace(CONFIG, seed=plan.config.seed)


class TestOpening:
    """What a prompt and a scenario make of each other."""

    OPENING = "I'm considering a career change but unsure where to start."

    def opening(self, **values: Any) -> tuple[str, str]:
        found = prepare(replace(CONFIG, **values)).episode.opening
        return found.id, found.prompt

    def test_an_opening_finds_its_scenario_white_space_and_case_aside(self):
        typed = f"  {self.OPENING.upper().replace(' ', '  ')}\n"

        assert self.opening(prompt=self.OPENING) == ("career-change", self.OPENING)
        assert self.opening(prompt=typed) == ("career-change", typed)

    def test_any_other_prompt_is_custom(self):
        assert self.opening(prompt="Why is the sky blue?") == ("custom", "Why is the sky blue?")

    def test_a_scenario_opens_with_its_first_opening(self):
        assert self.opening(prompt=None, scenario="career-change") == (
            "career-change",
            self.OPENING,
        )

    def test_a_prompt_replaces_the_opening_of_a_scenario(self):
        assert self.opening(prompt="Well?", scenario="career-change") == ("career-change", "Well?")
