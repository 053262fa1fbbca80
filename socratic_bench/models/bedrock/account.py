"""Whose credentials calls go with, the role that is taken for them, and what the account may have
of a model: best effort, each by a request with one short try.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from botocore.exceptions import NoCredentialsError
from botocore.session import Session

from socratic_bench.errors import CheckName, CheckResult, CheckStatus, ModelError
from socratic_bench.models.bedrock.credentials import make_ready
from socratic_bench.models.bedrock.error_kinds import TRANSLATED, error_kind
from socratic_bench.models.bedrock.quota_names import quotas_by_model
from socratic_bench.models.bedrock.session import (
    BEARER_TOKEN,
    Endpoint,
    configured_endpoint,
    is_aws,
    open_session,
    single_try_client,
)
from socratic_bench.ports.provider import Quota
from socratic_bench.settings import OFFLINE_REGION, CoreConfig

MAX_WAIT_S = 5
PAGE = 100
MOST_PAGES = 50  # Bedrock has some 15 pages of quotas
STS, QUOTAS = "sts", "service-quotas"
_NAMES = {STS: "AWS STS", QUOTAS: "Service Quotas"}
_VARIABLES = {STS: "AWS_ENDPOINT_URL_STS", QUOTAS: "AWS_ENDPOINT_URL_SERVICE_QUOTAS"}

_IGNORED = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"
_UNNEEDED = {
    STS: "A run does not need to know it. To have it told, let AWS STS be reached "
    "(AWS_ENDPOINT_URL_STS) and allow sts:GetCallerIdentity.",
    QUOTAS: "A run does not need to know them. To have them told, let Service Quotas be reached "
    "(AWS_ENDPOINT_URL_SERVICE_QUOTAS) and allow servicequotas:ListServiceQuotas.",
}


def identities(config: CoreConfig) -> Iterator[CheckResult]:
    """Whose the credentials are; and the role's, if one is taken for calls."""
    if config.offline:
        yield _finding("credentials", "ok", "none", "the embedded endpoint needs none")
        return
    if os.environ.get(BEARER_TOKEN) and not config.assume_role_arn:
        said = f"{BEARER_TOKEN} is set: an API key signs, and AWS STS cannot tell whose it is"
        yield _finding("credentials", "unknown", "API key", said)
        return
    yield _identity("credentials", config, None)
    if config.assume_role_arn:
        yield _identity("role", config, config.assume_role_arn)


def quotas(config: CoreConfig, model_ids: Sequence[str]) -> Mapping[str, Quota]:
    """What the account may have of the models. Raises `ModelError`."""
    if config.offline:
        return {}
    try:
        rows = _quota_rows(config)
    except TRANSLATED as error:
        told = error_kind(error, model_id=_NAMES[QUOTAS]).error
        told.hint = _UNNEEDED[QUOTAS]
        raise told from error
    return quotas_by_model(rows, model_ids)


def _quota_rows(config: CoreConfig) -> list[Mapping[str, Any]]:
    session = open_session(_endpoint(config, config.assume_role_arn))
    client = _client(session, QUOTAS, config.region or OFFLINE_REGION)
    if client is None:
        raise ModelError(_unasked(QUOTAS), code="unknown", end_reason="unavailable")
    return [*_rows(client)]


def _identity(check: CheckName, config: CoreConfig, role_arn: str | None) -> CheckResult:
    subject = role_arn or "the caller"
    try:
        session = open_session(_endpoint(config, role_arn))
        make_ready(session, role_arn)
        if session.get_credentials() is None:
            return _failed_check(check, subject, NoCredentialsError())
        client = _client(session, STS, config.region or OFFLINE_REGION)
        if client is None:
            return _finding(check, "unknown", subject, _unasked(STS))
        told = client.get_caller_identity()
        return _finding(check, "ok", str(told["Arn"]), f"account {told['Account']}")
    except ModelError as error:
        return CheckResult.of(check, "failed", subject, error)
    except (*TRANSLATED, KeyError, TypeError) as error:
        return _failed_check(check, subject, error)


def _failed_check(check: CheckName, subject: str, error: Exception) -> CheckResult:
    """Credentials that are refused fail; a run does not need to know whose they are."""
    if isinstance(error, (KeyError, TypeError)):
        said = "what answers in the place of AWS STS does not say whose they are"
        return _finding(check, "unknown", subject, said)
    told = error_kind(error, model_id=_NAMES[STS]).error
    status: CheckStatus = "failed" if told.end_reason == "credentials" else "unknown"
    if status == "unknown":
        told.hint = _UNNEEDED[STS]
    return CheckResult.of(check, status, subject, told)


def _rows(client: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401 -- the SDK's
    more: dict[str, str] = {}
    for _ in range(MOST_PAGES):
        page = client.list_service_quotas(ServiceCode="bedrock", MaxResults=PAGE, **more)
        yield from page.get("Quotas", ())
        if not page.get("NextToken"):
            return
        more = {"NextToken": page["NextToken"]}


def _client(session: Session, service: str, region: str) -> Any:  # noqa: ANN401 -- the SDK makes its classes while it runs
    """`None` if models are called at another endpoint than AWS's own and the service is not: what
    that endpoint is called with says nothing of an account there.
    """
    if _is_known_elsewhere(service):
        return None
    client = single_try_client(session, service, region, MAX_WAIT_S)
    runtime = configured_endpoint(region)
    if runtime and not is_aws(runtime) and is_aws(client.meta.endpoint_url):
        return None
    return client


def _is_known_elsewhere(service: str) -> bool:
    """Whether variables alone tell it; to make a client takes longer."""
    runtime = os.environ.get("AWS_ENDPOINT_URL_BEDROCK_RUNTIME")
    told = not any(map(os.environ.get, ("AWS_ENDPOINT_URL", _IGNORED, _VARIABLES[service])))
    return bool(told and runtime and not is_aws(runtime))


def _endpoint(config: CoreConfig, role_arn: str | None) -> Endpoint:
    return Endpoint(region=config.region or OFFLINE_REGION, assume_role_arn=role_arn)


def _unasked(service: str) -> str:
    return (
        f"{_NAMES[service]} was not asked: models are called at an endpoint that is not AWS's own, "
        f"and {_VARIABLES[service]} is not set"
    )


def _finding(check: CheckName, status: CheckStatus, subject: str, message: str) -> CheckResult:
    return CheckResult(check=check, status=status, subject=subject, message=message)
