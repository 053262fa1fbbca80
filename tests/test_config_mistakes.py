"""What cannot be run is said before anything is called: each mistake once, and all at once."""

import json
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from socratic_bench.benchmarks.socratic import scenarios
from socratic_bench.errors import UsageError
from socratic_bench.runs import run
from tests.reading import (
    BY_FLAG,
    BY_VARIABLE,
    CONFIG,
    ENVIRON,
    FLAGS,
    problems,
    read,
    read_environ,
    read_in,
    refused,
    sources,
)

SCENARIO = files(scenarios) / "data" / "custom.toml"
PROFILE = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc"
GOOD_IDS = {
    '["m"]': ("m",),
    ' ["m",\n "us.m" ] ': ("m", "us.m"),
    json.dumps(["m", PROFILE]): ("m", PROFILE),
    '["\\u006d"]': ("m",),
}


@pytest.mark.parametrize("text", GOOD_IDS)
def test_model_ids_are_a_json_array(text):
    config, misread = read_environ(BEDROCK_MODEL_IDS=text)

    assert (config.model_ids, misread) == (GOOD_IDS[text], ())


@pytest.mark.parametrize(
    "text",
    [
        "m",
        "m,n",
        "['m']",
        '["m"',
        "[]",
        "{}",
        '{"m": 1}',
        '"m"',
        "null",
        "5",
        "[5]",
        '["m", null]',
        '["m", ""]',
        '[["m"]]',
        "[" * 100_000,
    ],
    ids=lambda text: text[:12],
)
def test_anything_else_is_refused_with_an_example(text):
    config, misread = read_environ(BEDROCK_MODEL_IDS=text)

    assert config.model_ids is None
    assert len(misread) == 1
    assert misread[0].startswith("BEDROCK_MODEL_IDS ")
    assert """'["anthropic.claude-3-5-sonnet-20241022-v1:0"]'""" in misread[0]


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_blank_model_ids_are_missing_ones(text):
    _, misread = read_environ(BEDROCK_MODEL_IDS=text)

    assert len(misread) == 1
    assert misread[0].startswith("BEDROCK_MODEL_IDS is not set")


def test_a_model_that_is_not_allowed_names_the_nearest_ones():
    ids = json.dumps(
        [
            "anthropic.claude-3-5-sonnet-20241022-v2:0",
            "meta.llama3-1-70b-instruct-v1:0",
        ]
    )
    flags = {**FLAGS, "model": "anthropic.claude-3-5-sonnet-20241022-v1:0"}

    (problem,) = problems(flags, {**ENVIRON, "BEDROCK_MODEL_IDS": ids})
    assert problem == (
        "Model not found in BEDROCK_MODEL_IDS: 'anthropic.claude-3-5-sonnet-20241022-v1:0' "
        "(nearest: anthropic.claude-3-5-sonnet-20241022-v2:0)."
    )


MISTAKES: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    "no model": ({"model": None}, {}, "--model"),
    "model not allowed": ({"model": "x"}, {}, "Model not found in BEDROCK_MODEL_IDS"),
    "line end in a model id": ({"judge-model": "a\nb"}, {}, "--judge-model holds"),
    "escape in a model id": ({"student-model": "a\x1b[31mb"}, {}, "--student-model holds"),
    "lone surrogate in a model id": ({"judge-model": "a\udcffb"}, {}, "--judge-model holds"),
    "NUL in an allowed model id": (
        {"model": "a\0b"},
        {"BEDROCK_MODEL_IDS": '["a\\u0000b"]'},
        "--model holds",
    ),
    "nothing to open with": ({"prompt": None}, {}, "--prompt or --scenario is required"),
    "empty prompt": ({"prompt": ""}, {}, "The prompt is empty"),
    "blank prompt": ({"prompt": " \n\t"}, {}, "The prompt is empty"),
    "two scenarios": ({"scenario": "custom", "scenario-file": str(SCENARIO)}, {}, "keep one"),
    "unknown scenario": ({"scenario": "carer-change"}, {}, "career-change"),
    "unreadable scenario file": (
        {"scenario-file": "/no/such.toml"},
        {},
        "such.toml: cannot be read",
    ),
    "unreadable system prompt": ({"system-prompt-file": "/no/such.md"}, {}, "/no/such.md"),
    "directory as system prompt": ({"system-prompt-file": "/"}, {}, "The system prompt / "),
    "turns no number": ({"turns": "many"}, {}, "--turns is 'many'"),
    "turns a fraction": ({"turns": "2.5"}, {}, "--turns is '2.5'"),
    "turns in digits of another script": ({"turns": "\u0663"}, {}, "--turns is"),
    "turns with an underscore": ({"turns": "1_0"}, {}, "--turns is '1_0'"),
    "more turns than digits can be read": ({"turns": "9" * 5000}, {}, "--turns is '9"),
    "temperature in digits of another script": (
        {"temperature": "\u0660.\u0665"},
        {},
        "--temperature is '",
    ),
    "turns zero": ({"turns": "0"}, {}, "--turns is 0, but must lie in 1..500"),
    "turns negative": ({"turns": "-1"}, {}, "turns is -1"),
    "turns too many": ({"turns": "501"}, {}, "turns is 501"),
    "turns of the variable": ({}, {"RUNNER_DEFAULT_TURNS": "x"}, "RUNNER_DEFAULT_TURNS is 'x'"),
    "turns of the variable too many": ({}, {"RUNNER_DEFAULT_TURNS": "501"}, "turns is 501"),
    "seed no number": ({"seed": "x"}, {}, "--seed is 'x'"),
    "seed negative": ({"seed": "-1"}, {}, "seed is -1"),
    "seed too large": ({"seed": str(2**53)}, {}, str(2**53)),
    "temperature no number": ({"temperature": "warm"}, {}, "--temperature is 'warm'"),
    "temperature nan": ({"temperature": "nan"}, {}, "--temperature is 'nan'"),
    "temperature too high": ({"temperature": "1.1"}, {}, "temperature is 1.1"),
    "temperature negative": ({"temperature": "-0.1"}, {}, "temperature is -0.1"),
    "top-p too high": ({"top-p": "1.01"}, {}, "top-p is 1.01"),
    "odd tier": (
        {"service-tier": "fast"},
        {},
        "'fast', but must be one of default, priority, flex",
    ),
    "odd profile": (
        {"latency-profile": "low"},
        {},
        "'low', but must be one of standard, optimized",
    ),
    "budget without thinking": (
        {"thinking-budget-tokens": "2000"},
        {},
        "--thinking-budget-tokens needs --enable-thinking",
    ),
    "small budget": (
        {"enable-thinking": True, "thinking-budget-tokens": "1023"},
        {},
        "--thinking-budget-tokens is 1023, but must be at least 1024",
    ),
    "budget over the bound": (
        {"enable-thinking": True, "max-tokens": "1024"},
        {},
        "--thinking-budget-tokens is 1024, but must be less than --max-tokens (1024)",
    ),
    "thinking with a temperature": (
        {"enable-thinking": True, "temperature": "0.5"},
        {},
        "--enable-thinking allows no --temperature but 1, not 0.5",
    ),
    "guardrail without version": ({"guardrail": "abc"}, {}, "number or DRAFT, not 'abc'."),
    "guardrail with an odd version": ({"guardrail": "abc:1.0"}, {}, "not 'abc:1.0'"),
    "guardrail with an odd id": ({"guardrail": "A B:1"}, {}, "not 'A B:1'"),
    "metadata without value": ({"request-metadata": ["team"]}, {}, "takes KEY=VALUE"),
    "metadata with odd letters": ({"request-metadata": ["t=\u00e4"]}, {}, "'t'='\u00e4'"),
    "metadata without key": ({"request-metadata": ["=x"]}, {}, "''='x'"),
    "metadata twice": ({"request-metadata": ["a=1", "a=2"]}, {}, "'a' more than once"),
    "too much metadata": (
        {"request-metadata": [f"k{n}=" for n in range(17)]},
        {},
        "given 17 times; at most 16 are taken",
    ),
    "no tokens": ({"max-tokens": "0"}, {}, "max-tokens is 0"),
    "no attempts": ({"max-attempts": "0"}, {}, "max-attempts is 0"),
    "no timeout": ({"call-timeout": "0"}, {}, "call-timeout is 0"),
    "endless timeout": ({"call-timeout": "inf"}, {}, "--call-timeout is 'inf'"),
    "no deadline": ({"deadline": "0"}, {}, "deadline is 0"),
    "no money": ({"max-cost-usd": "0"}, {}, "max-cost-usd is 0"),
    "odd money": ({"max-cost-usd": "5 USD"}, {}, "--max-cost-usd is '5 USD'"),
    "compliance threshold": ({"compliance-threshold": "10.5"}, {}, "compliance-threshold is 10.5"),
    "half-life threshold": ({"half-life-threshold": "-1"}, {}, "half-life-threshold is -1"),
    "coverage": ({"min-judge-coverage": "90"}, {}, "min-judge-coverage is 90"),
    "gate without bound": ({"fail-under": ["overall_score"]}, {}, "'overall_score'"),
    "gate with a word": ({"fail-under": ["overall_score=high"]}, {}, "overall_score=high"),
    "gate with nan": ({"fail-under": ["overall_score=nan"]}, {}, "overall_score=nan"),
    "gate without metric": ({"fail-under": ["=7"]}, {}, "'=7'"),
    "gate on no metric": ({"fail-under": ["fame=7"]}, {}, "overall_score, compliance_rate"),
    "no region": ({}, {"AWS_REGION": ""}, "No region"),
    "odd region": ({"region": "Frankfurt"}, {}, "'Frankfurt'"),
    "role is no role": ({"assume-role-arn": "arn:aws:iam::1:user/x"}, {}, "not an IAM role ARN"),
    "role of the variable": ({}, {"BEDROCK_ASSUME_ROLE_ARN": "R"}, "not an IAM role ARN: 'R'"),
    "odd bucket": ({"s3-bucket": "My_Bucket"}, {}, "'My_Bucket'"),
    "prefix without bucket": ({"s3-prefix": "p"}, {}, "without a bucket"),
    "prefix that climbs": ({"s3-bucket": "bucket", "s3-prefix": "a/../b"}, {}, "'..'"),
    "odd KMS key": ({"s3-bucket": "bucket", "s3-kms-key-id": "my key"}, {}, "'my key'"),
    "KMS key without bucket": ({"s3-kms-key-id": "alias/a"}, {}, "without a bucket"),
    "odd student": ({"student": "human"}, {}, "scripted or model"),
    "student model without id": ({"student": "model"}, {}, "--student-model"),
    "two students": ({"student": "scripted", "student-model": "s"}, {}, "keep one"),
    "two judges": ({"no-judge": True, "judge-model": "j"}, {}, "keep one"),
    "foreign ARN": ({"judge-model": "arn:aws:s3:::bucket"}, {}, "not a Bedrock ARN"),
    "empty output folder": ({"output-dir": ""}, {}, "--output-dir is empty"),
    "ids no JSON": ({}, {"BEDROCK_MODEL_IDS": "m"}, "BEDROCK_MODEL_IDS is not valid JSON"),
}


def command(*names: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The usual command with the named mistakes."""
    flags: dict[str, Any] = dict(FLAGS)
    environ = dict(ENVIRON)
    for name in names:
        flags |= MISTAKES[name][0]
        environ |= MISTAKES[name][1]
    return {flag: word for flag, word in flags.items() if word is not None}, environ


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_said_once_and_alone(name):
    (problem,) = problems(*command(name))

    assert MISTAKES[name][2] in problem


def test_all_mistakes_are_said_at_once():
    names = [
        "ids no JSON",
        "empty prompt",
        "unreadable system prompt",
        "unreadable scenario file",
        "turns too many",
        "seed no number",
        "temperature nan",
        "no region",
        "role of the variable",
        "odd bucket",
        "gate on no metric",
        "student model without id",
        "two judges",
    ]

    said = problems(*command(*names))
    assert len(said) == len(names)
    assert [
        name for name in names if not any(MISTAKES[name][2] in problem for problem in said)
    ] == []


@pytest.mark.parametrize("seed", [0, 1, 2**53 - 1])
def test_seeds_that_every_json_reader_keeps_are_taken(seed):
    config, misread = read(seed=str(seed))

    assert (config.seed, misread, config.problems()) == (seed, (), ())


@pytest.mark.parametrize("flag", ["model", "judge_model", "student_model"])
def test_the_region_of_an_arn_has_to_agree(flag):
    config, misread = read(**{flag: PROFILE})
    config = replace(config, model_ids=None)

    assert misread == ()
    assert refused(config) == (f"{flag} names an ARN in eu-west-1, but the region is us-east-1.",)
    assert refused(replace(config, region="eu-west-1")) == ()


def test_an_arn_without_a_region_fits_any():
    arn = "arn:aws:bedrock:::foundation-model/anthropic.claude-3-haiku-20240307-v1:0"

    assert replace(CONFIG, model=arn, model_ids=(arn,)).problems() == ()


@pytest.mark.parametrize(
    "region", ["us-east-1", "us-gov-west-1", "ap-southeast-4", "cn-north-1", "us-iso-east-1"]
)
def test_regions_of_every_partition_are_taken(region):
    assert replace(CONFIG, region=region).problems() == ()


def test_a_library_caller_needs_no_list_of_ids():
    assert replace(CONFIG, model="anything", model_ids=None).problems() == ()


def test_a_system_prompt_that_is_no_text_is_refused(tmp_path):
    binary, blank = tmp_path / "binary.md", tmp_path / "blank.md"
    binary.write_bytes(b"\xff\xfe\x00")
    blank.write_text(" \n")

    assert problems({**FLAGS, "system-prompt-file": str(binary)}) == (
        f"The system prompt {binary} is not UTF-8 text.",
    )
    assert problems({**FLAGS, "system-prompt-file": str(blank)}) == (
        f"The system prompt {blank} is empty.",
    )


def test_half_a_character_is_refused_with_all_else_and_nothing_is_called(service):
    asked = replace(CONFIG, output_dir="b\ud800", quorum="a\ud800b", turns=0)
    with pytest.raises(UsageError) as refused:
        run(asked)

    assert refused.value.problems == (
        "quorum is 'a\\ud800b', but must be of type int | None.",
        "output_dir is not UTF-8 text: 'b\\ud800'.",
        "turns is 0, but must lie in 1..500.",
    )
    assert service.sent == []


WORD_FLAGS = [
    *(flag.replace("_", "-") for flag in BY_FLAG if flag != "fail_under"),
    "student",
]
VARIABLES = [*BY_VARIABLE, "BEDROCK_MODEL_IDS", "AWS_DEFAULT_REGION"]
# Neither a word of a command line nor a variable can hold a NUL.
WORDS = st.one_of(
    st.text(st.characters(exclude_characters="\0"), max_size=20),
    st.text(alphabet="\ud800\udfff/.-=_:[]{}\"'aé0", max_size=12),
    st.from_regex(r"-?\d{1,30}(\.\d+)?(e-?\d{1,4})?", fullmatch=True),
    st.sampled_from(
        ["-", "custom", "model", "scripted", "nan", "inf", "..", "/", PROFILE, '["m"]', "1_0", "٣"]
    ),
)


@given(
    flags=st.dictionaries(st.sampled_from(WORD_FLAGS), WORDS, max_size=8),
    gates=st.lists(WORDS, max_size=3),
    switches=st.sets(st.sampled_from(["offline", "no-judge"])),
    environ=st.dictionaries(st.sampled_from(VARIABLES), WORDS, max_size=8),
    stdin=WORDS,
)
def test_whatever_is_typed_becomes_a_plan_or_a_usage_error(flags, gates, switches, environ, stdin):
    words = {**flags, "fail-under": gates, **dict.fromkeys(switches, True)}
    config, misread = read_in(sources(words, environ, stdin=stdin))

    said = refused(config, misread)
    assert bool(said) >= bool(misread or config.problems())


KEY_ID = "1234abcd-12ab-34cd-56ef-1234567890ab"
REGION_AND_ACCOUNT = "arn:aws:kms:eu-west-1:111122223333"


@pytest.mark.parametrize(
    "key",
    [
        KEY_ID,
        f"mrk-{'0a' * 16}",
        "alias/artifacts",
        "alias/aws/s3",
        f"{REGION_AND_ACCOUNT}:key/{KEY_ID}",
        f"{REGION_AND_ACCOUNT}:alias/artifacts",
        f"arn:aws-us-gov:kms:us-gov-west-1:111122223333:key/{KEY_ID}",
    ],
)
def test_a_kms_key_is_an_id_an_alias_or_an_arn(key):
    assert replace(CONFIG, s3_bucket="bucket", s3_kms_key_id=key).problems() == ()


@pytest.mark.parametrize(
    "key",
    [
        f"{KEY_ID}0",
        f"key/{KEY_ID}",
        "artifacts",
        "alias/",
        "alias/a b",
        f"{REGION_AND_ACCOUNT}:{KEY_ID}",
        f"arn:aws:s3:eu-west-1:111122223333:key/{KEY_ID}",
        f"{KEY_ID}\n",
    ],
)
def test_what_is_no_kms_key_is_a_mistake(key):
    (problem,) = replace(CONFIG, s3_bucket="bucket", s3_kms_key_id=key).problems()

    assert repr(key) in problem.render()
