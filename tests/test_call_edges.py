"""Answers with numbers that are none, and what the SDK is given to get credentials from."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from tests.command import CLAUDE, OPENING, account, assert_valid, daily, run
from tests.fakes import FakeBedrock, Said, answer
from tests.test_bedrock_session import ROLE

WORDS = ("--model", CLAUDE, "--prompt", OPENING, "--no-judge", "--max-attempts", "2")

# --- numbers in answers ---------------------------------------------------------------------------

NO_COUNTS = (
    ('"inputTokens": 10', '"inputTokens": 1e999'),
    ('"outputTokens": 5', '"outputTokens": -1e999'),
    ('"inputTokens": 10', '"inputTokens": NaN'),
    ('"latencyMs": 100', '"latencyMs": 1e999'),
)
HUGE = ('"inputTokens": 10', f'"inputTokens": {10**400}')


def with_number(good: str, bad: str) -> Said:
    said = answer("Why?")
    return replace(said, body=said.body.replace(good.encode(), bad.encode()))


def test_an_answer_with_a_number_that_is_none_is_unreadable_and_asked_for_again():
    script = [one for pair in NO_COUNTS for one in (with_number(*pair), answer("Why?"))]
    turns = turns_of([*script, with_number(*HUGE)], "--no-stream")

    attempts = [turn["latency"]["tutor"]["attempts"] for turn in turns]
    assert attempts == [2] * len(NO_COUNTS) + [1]
    assert input_tokens(turns) == [10] * len(NO_COUNTS) + [None], "what is too large counts nothing"


def test_a_number_that_is_none_after_a_streamed_reply_counts_nothing():
    turns = turns_of([with_number(*pair) for pair in (*NO_COUNTS, HUGE)])

    assert [turn["latency"]["tutor"]["attempts"] for turn in turns] == [1] * len(turns)
    assert input_tokens(turns) == [None, None, None, 10, None]
    assert turns[3]["latency"]["tutor"]["service_latency_ms"] is None


def turns_of(script: Sequence[Said], *words: str) -> list[dict[str, Any]]:
    with FakeBedrock({CLAUDE: script}) as service:
        n_turns = str(len(NO_COUNTS) + 1)
        outcome = run(*WORDS, *words, "--turns", n_turns, env=account(service.url, CLAUDE))
    assert_valid("run", outcome.document)
    assert (outcome.exit_code, outcome.document["error"]) == (0, None)
    turns: list[dict[str, Any]] = outcome.document["turns"]
    return turns


def input_tokens(turns: Sequence[Mapping[str, Any]]) -> list[int | None]:
    return [turn["usage"]["tutor"]["input_tokens"] for turn in turns]


# --- what gives credentials -----------------------------------------------------------------------


def given(**fields: object) -> str:
    keys = {"Version": 1, "AccessKeyId": "AKIAEXAMPLE", "SecretAccessKey": "example"}
    return f"echo '{json.dumps({**keys, **fields})}'"


# What the program runs, and what is said of it.
PROGRAMS = {
    "numbers": (given(AccessKeyId=5, SecretAccessKey=6), "access_key is not text"),
    "lists": (given(AccessKeyId=["A"], SecretAccessKey=["B"]), "access_key is not text"),
    "nothing": (given(SecretAccessKey=None), "secret_key is not text"),
    "a token that is true": (given(SessionToken=True), "token is not text"),
    "keys that expire": (given(SecretAccessKey=6, Expiration="2099-01-01T00:00:00Z"), "secret_key"),
    "deeply nested": ("printf '%090000d' 0 | tr 0 '['", "no credentials in JSON"),
}


@pytest.mark.parametrize("name", daily(PROGRAMS, first=3))
def test_a_program_that_gives_no_credentials_is_named(name, tmp_path):
    script, said = PROGRAMS[name]
    program = tmp_path / "gives-keys"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    (tmp_path / "config").write_text(f"[default]\ncredential_process = {program}\n")
    message = refused_credentials({"AWS_CONFIG_FILE": str(tmp_path / "config")})["message"]

    assert "credential_process" in message
    assert "gives-keys" in message
    assert said in message


def refused_credentials(variables: Mapping[str, str]) -> dict[str, str]:
    """The error of a run without keys of its own; nothing else than a model would be asked."""
    with FakeBedrock() as service:
        env = {**account(service.url, CLAUDE), "AWS_ENDPOINT_URL_STS": service.url, **variables}
        del env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"]
        outcome = run(*WORDS, "--turns", "1", env=env)
        assert service.sent == []
    assert_valid("run", outcome.document)
    error: dict[str, str] = outcome.document["error"]
    assert (outcome.exit_code, error["code"]) == (3, "no_credentials"), error
    return error


def test_a_folder_in_the_place_of_a_token_is_named(tmp_path):
    variables = {"AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path), "AWS_ROLE_ARN": ROLE}
    error = refused_credentials(variables)

    assert str(tmp_path) in error["message"]


@pytest.mark.parametrize("name", ["AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"])
def test_a_folder_in_the_place_of_a_file_is_named(name, tmp_path):
    error = refused_credentials({name: str(tmp_path)})

    assert name in error["hint"]
    assert str(tmp_path) in error["hint"]
