"""Hints that name names: what is looked up for them, and when nothing is."""

import json
from contextlib import closing
from typing import Any

import pytest
from botocore.exceptions import LoginRefreshRequired

from socratic_bench import RunConfig, run
from socratic_bench.emulator import Emulator, Settings, parse_fault
from socratic_bench.errors import ModelError
from socratic_bench.generation import GenerateConfig
from socratic_bench.models.bedrock.errors import ERROR_KINDS, error_kind
from socratic_bench.models.bedrock.provider import Connection, Listing, better_hint
from socratic_bench.models.bedrock.session import Endpoint, new_session
from socratic_bench.types import CallKey, Message, Request
from tests.calling import Around
from tests.fakes import FakeBedrock, Said, refusal

REQUEST = Request(messages=(Message.user("Hello."),), config=GenerateConfig(max_tokens=100))
SONNET = "anthropic.claude-sonnet-4-5-20250929-v1:0"
DEFAULT_JUDGE = "anthropic.claude-3-5-sonnet-20241022-v1:0"
ON_DEMAND = refusal(400, "ValidationException", "with on-demand throughput isn't supported.")
UNKNOWN = refusal(404, "ResourceNotFoundException", "Could not resolve the foundation model.")


def failure(model_id: str, **endpoint: Any) -> ModelError:
    """How one call fails with the SDK's environment as it is."""
    around = Around()
    there = Endpoint(region="us-east-1", **endpoint)
    with closing(Connection(there)) as connection:
        model = around.model(connection, model_id, max_attempts=1)
        with pytest.raises(ModelError) as failed:
            model.complete(REQUEST, CallKey(role="tutor", index=0))
    return failed.value


def asked(service: FakeBedrock) -> list[str]:
    """What was asked of the control plane."""
    return [sent.path.partition("?")[0] for sent in service.sent if "/model/" not in sent.path]


@pytest.fixture
def emulated(keys, monkeypatch) -> Any:
    """An emulator with these faults, as the endpoint of all services."""

    def start(*faults: str) -> Emulator:
        emulator = Emulator(Settings(faults=tuple(map(parse_fault, faults))))
        monkeypatch.setenv("AWS_ENDPOINT_URL", emulator.url)
        started.append(emulator)
        return emulator

    started: list[Emulator] = []
    yield start
    for emulator in started:
        emulator.close()


class TestNames:
    """Against the emulator, which serves models and listings at one endpoint."""

    def test_the_profiles_of_a_model_that_needs_one(self, emulated):
        emulated()

        error = failure(SONNET)
        assert error.code == "needs_profile"
        assert error.hint == (
            f"Use an inference profile of the model in place of its id: us.{SONNET}, eu.{SONNET}."
        )

    def test_what_is_near_a_model_that_is_not_here(self, emulated):
        emulated("not_found")

        error = failure(DEFAULT_JUDGE)
        assert error.code == "unknown_model"
        assert error.hint.startswith(ERROR_KINDS["unknown_model"].hint)
        assert "Near matches here: anthropic.claude-3-5-sonnet-20241022-v2:0, " in error.hint

    def test_what_is_near_a_model_that_is_retired(self, emulated):
        emulated("legacy")

        error = failure("us.anthropic.claude-3-5-haiku-20241022-v1:0")
        assert error.code == "legacy_model"
        assert "Near matches here: eu.anthropic.claude-3-5-haiku-20241022-v1:0" in error.hint

    def test_nothing_is_near_a_strange_id(self, emulated):
        emulated("not_found")

        assert failure("zzz").hint == ERROR_KINDS["unknown_model"].hint

    def test_a_run_ends_with_the_names(self, emulated):
        emulated("not_found:role=judge")
        config = RunConfig(
            model="emulator.socratic-v1:0",
            judge_model=DEFAULT_JUDGE,
            prompt="Hello.",
            turns=2,
            region="us-east-1",
        )
        found = run(config)

        assert (found.document["end_reason"], found.exit_code) == ("unknown_model", 3)
        assert "anthropic.claude-3-5-sonnet-20241022-v2:0" in found.document["error"]["hint"]


class TestWhetherToAsk:
    def test_not_where_only_the_models_endpoint_is_given(self, service):
        service.scripts = {SONNET: [ON_DEMAND]}

        assert failure(SONNET).hint == ERROR_KINDS["needs_profile"].hint
        assert asked(service) == []

    def test_not_of_the_embedded_endpoint(self, service, monkeypatch):
        monkeypatch.setenv("AWS_ENDPOINT_URL", service.url)
        with FakeBedrock({SONNET: [ON_DEMAND]}) as embedded:
            error = failure(SONNET, url=embedded.url)

        assert error.hint == ERROR_KINDS["needs_profile"].hint
        assert asked(service) + asked(embedded) == []

    def test_where_the_control_planes_endpoint_is_given_too(self, service, monkeypatch):
        service.scripts = {SONNET: [ON_DEMAND]}
        with FakeBedrock({"": [profiles(f"us.{SONNET}")]}) as control:
            monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK", control.url)
            error = failure(SONNET)

        assert error.hint.endswith(f"in place of its id: us.{SONNET}.")
        assert (asked(service), asked(control)) == ([], ["/inference-profiles"])

    def test_where_no_endpoint_is_given_the_services_own_is_asked(self, keys):
        listing = Listing(new_session(), Endpoint(region="us-east-1"))

        assert listing._client.meta.endpoint_url == "https://bedrock.us-east-1.amazonaws.com"

    def test_once_for_many_failures(self, service, monkeypatch):
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK", service.url)
        listing = Listing(new_session(), Endpoint(region="us-east-1"))
        for _ in range(3):
            listing.similar_ids(SONNET)
            listing.profiles_of(SONNET)

        assert sorted(asked(service)) == ["/foundation-models", "/inference-profiles"]

    def test_with_two_seconds_of_patience_and_one_try(self, keys):
        listing = Listing(new_session(), Endpoint(region="us-east-1"))
        config = listing._client.meta.config

        assert (config.connect_timeout, config.read_timeout) == (2, 2)
        assert config.retries["total_max_attempts"] == 1


def profiles(*names: str, **more: Any) -> Said:
    """The control plane's page of these profiles."""
    arn = f"arn:aws:bedrock:us-east-1::foundation-model/{SONNET}"
    row = {"status": "ACTIVE", "type": "SYSTEM_DEFINED", "models": [{"modelArn": arn}]}
    rows = [{**row, "inferenceProfileId": name, **more} for name in names]
    return Said(json.dumps({"inferenceProfileSummaries": rows}).encode())


class TestBrokenListings:
    """Whatever becomes of a look-up, the failure of the call stays what it was."""

    @pytest.mark.parametrize(
        "said",
        [
            refusal(403, "AccessDeniedException"),
            refusal(429, "ThrottlingException"),
            refusal(500, "InternalServerException"),
            refusal(404, "UnknownOperationException"),
            Said(b"<html>"),
            Said(b""),
            Said(b"[]"),
            Said(b"null"),
            Said(b'{"inferenceProfileSummaries": null, "modelSummaries": null}'),
            Said(b'{"inferenceProfileSummaries": [5], "modelSummaries": [5]}'),
            Said(b'{"inferenceProfileSummaries": [{}], "modelSummaries": [{}]}'),
            Said(b'{"inferenceProfileSummaries": [], "modelSummaries": []}'),
        ],
        ids=lambda said: f"{said.status} {said.body.decode()}",
    )
    @pytest.mark.parametrize(
        ("refused", "code"), [(ON_DEMAND, "needs_profile"), (UNKNOWN, "unknown_model")]
    )
    def test_the_kinds_own_hint_is_given(self, service, monkeypatch, said, refused, code):
        service.scripts = {SONNET: [refused]}
        with FakeBedrock({"": [said]}) as control:
            monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK", control.url)
            error = failure(SONNET)

        assert (error.code, error.hint) == (code, ERROR_KINDS[code].hint)
        assert len(error.attempts) == 1

    def test_nobody_is_there(self, service, monkeypatch):
        with FakeBedrock() as gone:
            monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK", gone.url)
        service.scripts = {SONNET: [UNKNOWN]}

        assert failure(SONNET).hint == ERROR_KINDS["unknown_model"].hint

    def test_an_address_that_is_none(self, service, monkeypatch):
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK", "not a url")
        service.scripts = {SONNET: [UNKNOWN]}

        assert failure(SONNET).hint == ERROR_KINDS["unknown_model"].hint

    def test_a_profile_of_ones_own_is_named_by_its_arn_and_one_that_is_gone_is_not(
        self, service, monkeypatch
    ):
        arn = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc"
        service.scripts = {SONNET: [ON_DEMAND]}
        own = profiles("abc", type="APPLICATION", inferenceProfileArn=arn)
        gone = profiles("us.gone", status="DELETED")
        for said, hint in (
            (own, f"Use an inference profile of the model in place of its id: {arn}."),
            (gone, ERROR_KINDS["needs_profile"].hint),
        ):
            with FakeBedrock({"": [said]}) as control:
                monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK", control.url)
                assert failure(SONNET).hint == hint


class TestEndpoint:
    def test_one_that_nobody_answers_at_is_named_without_its_password(self, keys, monkeypatch):
        with FakeBedrock() as gone:
            port = gone.url.rpartition(":")[2]
        monkeypatch.setenv(
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", f"http://user:canary@127.0.0.1:{port}"
        )

        error = failure("m")
        assert error.code == "connection"
        assert error.hint == (
            f"{ERROR_KINDS['connection'].hint} The endpoint is http://127.0.0.1:{port}"
        )

    def test_one_that_breaks_off_is_named(self, keys, monkeypatch):
        with Emulator(Settings(faults=(parse_fault("reset"),))) as emulator:
            monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", emulator.url)
            error = failure("m")

        assert error.hint.endswith(f"The endpoint is {emulator.url}")

    def test_one_without_tls_is_named(self, service, monkeypatch):
        url = service.url.replace("http:", "https:")
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", url)

        error = failure("m")
        assert error.code == "tls"
        assert "AWS_CA_BUNDLE" in error.hint
        assert error.hint.endswith(f"The endpoint is {url}")


class TestLogin:
    @pytest.mark.parametrize(
        ("environ", "hint"),
        [
            ({}, "Log in again with: aws login"),
            ({"AWS_DEFAULT_PROFILE": "work"}, "Log in again with: aws login --profile work"),
        ],
    )
    def test_a_login_to_the_console_has_a_command_of_its_own(self, keys, environ, hint):
        cause = LoginRefreshRequired()
        error = error_kind(cause, model_id="m")
        listing = Listing(new_session(), Endpoint(region="us-east-1"))

        assert error.code == "expired_login"
        assert better_hint(error, cause, model_id="m", environ=environ, listing=listing) == hint
