"""Every way to hand credentials to a container, against stand-ins that tell who called."""

import hashlib
import json
import os
from datetime import UTC, datetime, timedelta

import pytest

from tests.image.engine import HARDENED, environment, run

pytestmark = pytest.mark.image

MODEL = "emulator.socratic-v1:0"
USER = "4321:8765"
START_URL = "https://example.awsapps.com/start"
ROLE = "arn:aws:iam::123456789012:role/BedrockInvokeRole"


@pytest.fixture
def start_run(bedrock, moto_url):
    """Starts a short run whose only credentials come from the given options."""
    variables = {
        "AWS_REGION": "us-east-1",
        "BEDROCK_MODEL_IDS": f'["{MODEL}"]',
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": bedrock.url,
        "AWS_ENDPOINT_URL_STS": moto_url,
        "AWS_ENDPOINT_URL_SSO": bedrock.url,
        "AWS_ENDPOINT_URL_SSO_OIDC": bedrock.url,
        "AWS_EC2_METADATA_DISABLED": "true",
    }

    def start(*options, **more):
        given = (*environment({**variables, **more}), *options)
        words = [f"--model={MODEL}", "--prompt=I am stuck.", "--turns=2", "--quiet"]
        return run(*words, options=(*HARDENED, "--network=host", f"--user={USER}", *given))

    return start


@pytest.fixture
def home(tmp_path):
    """A user's ~/.aws, which nobody else may read."""
    folder = tmp_path / "aws"
    (folder / "sso" / "cache").mkdir(parents=True)
    return folder


def mounted(home, mode="ro"):
    for path in (home, *home.rglob("*")):
        _own(path)
    return f"--volume={home}:/home/runner/.aws:{mode}"


def _own(path):
    os.chown(path, *map(int, USER.split(":")))
    path.chmod(0o700 if path.is_dir() else 0o600)


def test_variables(start_run, bedrock):
    done = start_run(AWS_ACCESS_KEY_ID="AKIAVARIABLE", AWS_SECRET_ACCESS_KEY="secret")

    assert done.code == 0, done.stderr
    assert {call.access_key for call in bedrock.calls} == {"AKIAVARIABLE"}


def test_temporary_keys_carry_their_token(start_run, bedrock):
    done = start_run(
        AWS_ACCESS_KEY_ID="ASIAVARIABLE",
        AWS_SECRET_ACCESS_KEY="secret",
        AWS_SESSION_TOKEN="session-token",
    )

    assert done.code == 0, done.stderr
    assert {call.headers["x-amz-security-token"] for call in bedrock.calls} == {"session-token"}


def test_profile(start_run, bedrock, home):
    (home / "credentials").write_text(
        "[bench]\naws_access_key_id = AKIAPROFILE\naws_secret_access_key = secret\n"
    )

    done = start_run(mounted(home), AWS_PROFILE="bench")

    assert done.code == 0, done.stderr
    assert {call.access_key for call in bedrock.calls} == {"AKIAPROFILE"}


def test_profile_that_takes_a_role(start_run, bedrock, home):
    (home / "credentials").write_text(
        "[source]\naws_access_key_id = AKIAPROFILE\naws_secret_access_key = secret\n"
    )
    (home / "config").write_text(
        f"[profile bench]\nrole_arn = {ROLE}\nsource_profile = source\nregion = us-east-1\n"
    )

    done = start_run(mounted(home), AWS_PROFILE="bench")

    assert done.code == 0, done.stderr
    assert all(call.access_key.startswith("ASIA") for call in bedrock.calls)


def test_web_identity(start_run, bedrock, tmp_path):
    """As a pod in EKS or a job in GitHub Actions gets it."""
    token = tmp_path / "token"
    token.write_text("a.b.c")
    _own(token)

    done = start_run(
        f"--volume={token}:/var/run/token:ro",
        AWS_WEB_IDENTITY_TOKEN_FILE="/var/run/token",
        AWS_ROLE_ARN=ROLE,
    )

    assert done.code == 0, done.stderr
    assert all(call.access_key.startswith("ASIA") for call in bedrock.calls)


def test_task_role_of_ecs(start_run, bedrock):
    done = start_run(
        AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{bedrock.url}/task-role",
        AWS_CONTAINER_AUTHORIZATION_TOKEN="task-token",
    )

    assert done.code == 0, done.stderr
    assert {call.access_key for call in bedrock.calls} == {"ASIATASKROLE"}


def test_role_of_an_instance(start_run, bedrock):
    done = start_run(
        AWS_EC2_METADATA_DISABLED="false", AWS_EC2_METADATA_SERVICE_ENDPOINT=f"{bedrock.url}/"
    )

    assert done.code == 0, done.stderr
    assert {call.access_key for call in bedrock.calls} == {"ASIAINSTANCE"}


def write_login(home, *, expires_in, **more):
    """What `aws sso login` leaves behind."""
    (home / "config").write_text(
        "[profile bench]\nsso_session = corp\nsso_account_id = 123456789012\n"
        "sso_role_name = Bench\nregion = us-east-1\n\n"
        f"[sso-session corp]\nsso_start_url = {START_URL}\nsso_region = us-east-1\n"
        "sso_registration_scopes = sso:account:access\n"
    )
    login = {
        "startUrl": START_URL,
        "region": "us-east-1",
        "accessToken": "kept",
        "expiresAt": f"{datetime.now(UTC) + expires_in:%Y-%m-%dT%H:%M:%SZ}",
        **more,
    }
    name = hashlib.sha1(b"corp").hexdigest()  # noqa: S324 -- the SDK's way to name the file
    cache = home / "sso" / "cache" / f"{name}.json"
    cache.write_text(json.dumps(login))
    return cache


def test_single_sign_on(start_run, bedrock, home):
    write_login(home, expires_in=timedelta(hours=2))

    done = start_run(mounted(home), AWS_PROFILE="bench")

    assert done.code == 0, done.stderr
    assert {call.access_key for call in bedrock.calls} == {"ASIASSOKEPT"}


REFRESHABLE = {
    "clientId": "client",
    "clientSecret": "secret",
    "registrationExpiresAt": "2199-01-01T00:00:00Z",
    "refreshToken": "refresh",
}


def test_single_sign_on_renews_a_login_where_it_may_write(start_run, bedrock, home):
    cache = write_login(home, expires_in=timedelta(minutes=1), **REFRESHABLE)

    done = start_run(mounted(home, "rw"), AWS_PROFILE="bench")

    assert done.code == 0, done.stderr
    assert {call.access_key for call in bedrock.calls} == {"ASIASSOFRESH"}
    assert json.loads(cache.read_text())["refreshToken"] == "next"


@pytest.mark.parametrize("mode", ["ro", "rw"])
def test_expired_single_sign_on_ends_the_run(start_run, bedrock, home, mode):
    write_login(home, expires_in=timedelta(hours=-2))

    done = start_run(mounted(home, mode), AWS_PROFILE="bench")

    assert done.code == 3, done.stderr
    assert done.document["end_reason"] == "credentials"
    assert not bedrock.calls


def test_no_credentials_at_all(start_run, bedrock):
    done = start_run()

    assert done.code == 3
    assert done.document["end_reason"] == "credentials"
    assert not bedrock.requests


def test_credentials_of_somebody_else_cannot_be_read(start_run, bedrock, home):
    (home / "credentials").write_text(
        "[default]\naws_access_key_id = AKIAPROFILE\naws_secret_access_key = secret\n"
    )

    done = start_run(mounted(home), "--user=10001:10001")

    assert done.code == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert not bedrock.calls
