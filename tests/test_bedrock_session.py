"""Who a call is made as, and which way it goes, with the real SDK over real HTTP."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import pytest
from botocore.exceptions import SSLError
from msgspec.structs import replace

from socratic_bench.errors import ModelError
from socratic_bench.generation import GenerateConfig
from socratic_bench.models.bedrock.errors import error_kind
from socratic_bench.models.bedrock.provider import Connection
from socratic_bench.models.bedrock.session import Endpoint, profile_region
from socratic_bench.types import CallKey, Completion, Message, Request
from tests.calling import Around
from tests.fakes import FakeBedrock, Said, Sent, answer, refusal

ROLE = "arn:aws:iam::123456789012:role/BedrockInvokeRole"
REQUEST = Request(messages=(Message.user("Hello."),), config=GenerateConfig(max_tokens=100))


def ask(*, times: int = 1, max_attempts: int = 1, **endpoint: Any) -> Completion:
    """Call as a run does, with a client of its own. Raises what a run would get to see."""
    around = Around()
    there = Endpoint(region="us-east-1", **endpoint)
    with closing(Connection(there)) as connection:
        model = around.model(connection, "m", max_attempts=max_attempts)
        for _ in range(times - 1):
            model.complete(REQUEST, CallKey(role="tutor", index=0))
        return model.complete(REQUEST, CallKey(role="tutor", index=0))


def failure(**endpoint: Any) -> ModelError:
    with pytest.raises(ModelError) as failed:
        ask(**endpoint)
    return failed.value


@pytest.fixture
def no_keys(service: FakeBedrock, monkeypatch: pytest.MonkeyPatch) -> FakeBedrock:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    return service


class TestOwnCredentials:
    def test_the_keys_of_the_environment_sign_for_the_region(self, service):
        ask()

        (sent,) = service.sent
        assert sent.key_id == "AKIATESTKEY"
        assert "/us-east-1/bedrock/aws4_request" in sent.headers["Authorization"]

    def test_a_session_token_goes_along(self, service, monkeypatch):
        monkeypatch.setenv("AWS_SESSION_TOKEN", "token-1")
        ask()

        assert service.sent[0].headers["X-Amz-Security-Token"] == "token-1"

    def test_the_region_that_is_given_beats_the_sdks_own(self, service, monkeypatch):
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-3")
        ask()

        assert "/us-east-1/bedrock/" in service.sent[0].headers["Authorization"]

    def test_a_profile_works_as_ever(self, no_keys, monkeypatch, tmp_path):
        shared = tmp_path / "credentials"
        shared.write_text(
            "[work]\naws_access_key_id = AKIAPROFILE\naws_secret_access_key = secret\n"
        )
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(shared))
        monkeypatch.setenv("AWS_PROFILE", "work")
        ask()

        assert no_keys.sent[0].key_id == "AKIAPROFILE"

    def test_no_credentials_at_all_fail_at_once(self, no_keys):
        error = failure(max_attempts=5)

        assert (error.code, error.end_reason, error.retryable) == (
            "no_credentials",
            "credentials",
            False,
        )
        assert no_keys.sent == []

    def test_a_profile_that_does_not_exist_is_a_matter_of_credentials(self, service, monkeypatch):
        monkeypatch.setenv("AWS_PROFILE", "missing")

        error = failure()
        assert (error.code, error.end_reason) == ("no_credentials", "credentials")
        assert "missing" in error.message

    def test_the_program_names_itself(self, service):
        ask()

        assert "socratic-runner/" in service.sent[0].headers["User-Agent"]

    def test_calls_share_a_connection(self, service):
        ask(times=3)

        assert len(service.sent) == 3
        assert service.n_connections == 1

    @pytest.mark.parametrize("mode", ["legacy", "standard", "adaptive"])
    def test_the_sdk_never_retries_whatever_the_environment_says(self, service, monkeypatch, mode):
        monkeypatch.setenv("AWS_RETRY_MODE", mode)
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "5")
        service.scripts["m"] = [refusal(503, "ServiceUnavailableException")]

        failure(max_attempts=2)
        assert len(service.sent) == 2


class TestBearerToken:
    def test_keys_are_used_where_a_token_cannot_be(self, service, monkeypatch):
        """The SDK refuses to send a token without TLS."""
        monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "token-1")
        ask()

        assert service.sent[0].key_id == "AKIATESTKEY"

    def test_the_token_itself_never_goes_without_tls(self, no_keys, monkeypatch):
        monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "token-1")

        error = failure()
        assert (error.end_reason, no_keys.sent) == ("credentials", [])


class TestWay:
    def test_a_proxy_of_the_environment_is_used(self, keys, monkeypatch):
        with FakeBedrock({"m": [answer("By the proxy?")]}) as proxy:
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "http://bedrock.invalid")
            found = ask()

        assert found.message.text == "By the proxy?"
        assert proxy.sent[0].path == "http://bedrock.invalid/model/m/converse-stream"

    def test_no_proxy_is_honoured(self, service, monkeypatch):
        with FakeBedrock() as proxy:
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            monkeypatch.setenv("NO_PROXY", "127.0.0.1")
            ask()

        assert (len(service.sent), proxy.sent) == (1, [])

    def test_the_endpoint_of_all_services_is_used(self, service, monkeypatch):
        monkeypatch.setenv("AWS_ENDPOINT_URL", service.url)
        monkeypatch.delenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME")
        ask()

        assert len(service.sent) == 1

    def test_the_endpoint_of_a_profile_is_used(self, service, monkeypatch, tmp_path):
        config = tmp_path / "config"
        config.write_text(
            "[default]\nservices = here\n"
            f"[services here]\nbedrock_runtime =\n  endpoint_url = {service.url}\n"
        )
        monkeypatch.delenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME")
        monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
        ask()

        assert len(service.sent) == 1

    @pytest.mark.parametrize("url", ["not a url", "http://", "127.0.0.1:80"])
    def test_an_endpoint_that_is_no_url_is_a_refused_request(self, service, monkeypatch, url):
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", url)

        error = failure()
        assert error.end_reason == "refused_request"


CANARIES = {
    "AWS_ACCESS_KEY_ID": "AKIACANARY",
    "AWS_SECRET_ACCESS_KEY": "canary-secret",
    "AWS_SESSION_TOKEN": "canary-token",
    "AWS_BEARER_TOKEN_BEDROCK": "canary-bearer",
    "AWS_PROFILE": "canary-profile",
}


class TestEmbedded:
    """Nothing of the user's goes to the endpoint inside the program."""

    @pytest.fixture
    def canaries(self, service: FakeBedrock, monkeypatch, tmp_path) -> FakeBedrock:
        """The user's own keys, profile, proxy and endpoint; the endpoint of the user's is given."""
        shared = tmp_path / "credentials"
        shared.write_text(
            "[canary-profile]\naws_access_key_id = AKIACANARY2\naws_secret_access_key = canary\n"
        )
        for name, value in CANARIES.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(shared))
        monkeypatch.setenv("HTTP_PROXY", service.url)
        return service

    def test_no_key_token_profile_or_proxy_of_the_user_is_used(self, canaries):
        with FakeBedrock() as embedded:
            ask(url=embedded.url)

        (sent,) = embedded.sent
        assert sent.key_id == "offline"
        assert canaries.sent == []
        assert [text for text in everything(sent) if "canary" in text.lower()] == []

    def test_a_role_is_not_assumed_for_it(self, canaries, monkeypatch):
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", canaries.url)
        with FakeBedrock() as embedded:
            ask(url=embedded.url, assume_role_arn=ROLE)

        assert (embedded.sent[0].key_id, canaries.sent) == ("offline", [])

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("AWS_PROFILE", "missing"),
            ("AWS_USE_FIPS_ENDPOINT", "true"),
            ("AWS_USE_DUALSTACK_ENDPOINT", "true"),
            ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "not a url"),
            ("AWS_CONFIG_FILE", __file__),
            ("AWS_SHARED_CREDENTIALS_FILE", __file__),
        ],
    )
    def test_what_is_broken_outside_is_no_obstacle(self, canaries, monkeypatch, name, value):
        monkeypatch.setenv(name, value)
        with FakeBedrock() as embedded:
            ask(url=embedded.url)

        assert len(embedded.sent) == 1


def everything(sent: Sent) -> list[str]:
    return [*sent.headers.values(), sent.path, sent.raw.decode()]


class TestRole:
    @pytest.fixture
    def sts(self, service: FakeBedrock, moto_url: str, monkeypatch) -> str:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", moto_url)
        return moto_url

    @pytest.fixture
    def sts_with_policies(self, sts: str) -> Iterator[str]:
        """From now on, moto checks who calls, and it knows nobody."""
        _post(f"{sts}/moto-api/reset-auth", b"0")
        yield sts
        _post(f"{sts}/moto-api/reset-auth", b"inf")

    def test_calls_are_made_as_the_role(self, service, sts):
        ask(assume_role_arn=ROLE)

        (sent,) = service.sent
        assert sent.key_id.startswith("ASIA")
        assert sent.headers["X-Amz-Security-Token"]

    def test_the_role_is_taken_once_for_many_calls(self, service, monkeypatch):
        with FakeBedrock({"": [assumed()]}) as sts:
            monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.url)
            ask(assume_role_arn=ROLE, times=5)

        assert len(sts.sent) == 1
        assert {sent.key_id for sent in service.sent} == {"ASIAROLE"}

    def test_it_is_taken_with_the_callers_keys_under_the_programs_name(self, service, monkeypatch):
        with FakeBedrock({"": [assumed()]}) as sts:
            monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.url)
            ask(assume_role_arn=ROLE)

        (sent,) = sts.sent
        assert sent.key_id == "AKIATESTKEY"
        assert "/us-east-1/sts/" in sent.headers["Authorization"]
        assert b"RoleSessionName=socratic-runner" in sent.raw
        assert b"BedrockInvokeRole" in sent.raw

    def test_a_role_that_expires_at_once_is_an_expired_one(self, service, monkeypatch):
        """As it looks on a machine whose clock is wrong."""
        with FakeBedrock({"": [assumed(expiration="2020-01-01T00:00:00Z")]}) as sts:
            monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.url)
            error = failure(assume_role_arn=ROLE)

        assert (error.code, error.end_reason, service.sent) == (
            "expired_credentials",
            "credentials",
            [],
        )

    def test_an_unknown_caller_is_denied_the_role(self, service, sts_with_policies):
        error = failure(assume_role_arn=ROLE, max_attempts=5)

        assert (error.code, error.end_reason, error.retryable) == (
            "role_denied",
            "credentials",
            False,
        )
        assert service.sent == []

    def test_a_denied_role_names_what_was_denied(self, service, monkeypatch):
        denied = refusal_of_sts("AccessDenied", "User is not authorized to perform sts:AssumeRole")
        with FakeBedrock({"": [denied]}) as sts:
            monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.url)
            error = failure(assume_role_arn=ROLE)

        assert (error.code, len(sts.sent), service.sent) == ("role_denied", 1, [])
        assert "not authorized to perform sts:AssumeRole" in error.message

    @pytest.mark.parametrize(
        ("status", "code", "kind"),
        [
            (403, "AccessDenied", ("role_denied", False)),
            (403, "InvalidClientTokenId", ("role_denied", False)),
            (400, "Throttling", ("throttled", True)),
            (503, "ServiceUnavailable", ("server_error", True)),
            (403, "ExpiredToken", ("expired_credentials", False)),
        ],
    )
    def test_what_the_roles_service_says_costs_no_tokens(
        self, service, monkeypatch, status, code, kind
    ):
        said = replace(refusal_of_sts(code, "No."), status=status)
        with FakeBedrock({"": [said]}) as sts:
            monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.url)
            error = failure(assume_role_arn=ROLE, max_attempts=1)

        assert (error.code, error.retryable) == kind
        assert {one.may_have_been_billed for one in error.attempts} == {False}

    def test_without_credentials_there_is_nobody_to_take_a_role(
        self, no_keys, moto_url, monkeypatch
    ):
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", moto_url)

        error = failure(assume_role_arn=ROLE, max_attempts=5)
        assert (error.code, error.end_reason) == ("no_credentials", "credentials")


def _post(url: str, body: bytes) -> None:
    with urlopen(HttpRequest(url, body, {"Content-Type": "text/plain"})) as response:  # noqa: S310
        assert json.loads(response.read())


def assumed(expiration: str = "2099-01-01T00:00:00Z") -> Said:
    body = f"""<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
    <AssumeRoleResult><Credentials><AccessKeyId>ASIAROLE</AccessKeyId>
    <SecretAccessKey>secret</SecretAccessKey><SessionToken>role-token</SessionToken>
    <Expiration>{expiration}</Expiration></Credentials></AssumeRoleResult>
    </AssumeRoleResponse>"""
    return Said(body.encode())


def refusal_of_sts(code: str, message: str) -> Said:
    body = f"""<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
    <Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>
    </ErrorResponse>"""
    return Said(body.encode(), 403)


class TestProfileRegion:
    def test_it_is_the_active_profiles(self, monkeypatch, tmp_path):
        config = tmp_path / "config"
        config.write_text("[default]\nregion = eu-west-1\n[profile work]\nregion = eu-west-2\n")
        monkeypatch.setenv("AWS_CONFIG_FILE", str(config))

        assert profile_region() == "eu-west-1"
        monkeypatch.setenv("AWS_PROFILE", "work")
        assert profile_region() == "eu-west-2"

    def test_no_profile_has_no_region(self):
        assert profile_region() is None

    def test_a_profile_that_does_not_exist_has_no_region(self, monkeypatch):
        monkeypatch.setenv("AWS_PROFILE", "missing")

        assert profile_region() is None

    def test_a_file_that_cannot_be_read_has_no_region(self, monkeypatch, tmp_path):
        config = tmp_path / "config"
        config.write_text("[default\nregion")
        monkeypatch.setenv("AWS_CONFIG_FILE", str(config))

        assert profile_region() is None


def test_login_cache_that_cannot_be_written_is_a_matter_of_credentials():
    """The SDK raises the bare OSError of a read-only `~/.aws` when it has renewed an SSO login."""
    error = error_kind(PermissionError(30, "Read-only file system"), model_id="a.model").error

    assert (error.code, error.end_reason, error.retryable) == (
        "unusable_login",
        "credentials",
        False,
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (
            "[SSL: UNEXPECTED_EOF_WHILE_READING] EOF occurred in violation of protocol",
            "connection_lost",
        ),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", "tls"),
    ],
)
def test_a_connection_that_breaks_inside_tls_is_told_from_a_certificate(words, code):
    broken = SSLError(endpoint_url="https://bedrock.invalid", error=words)

    assert error_kind(broken, model_id="m").code == code
