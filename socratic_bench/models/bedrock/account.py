"""What is known of an account: whose the credentials are, its quotas, and counts of tokens.

All of it is best effort, each by a request with one short try.
"""

import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import suppress
from functools import partial
from typing import Any

from botocore.exceptions import NoCredentialsError
from botocore.session import Session

from socratic_bench.catalogue.models import base_id
from socratic_bench.concurrency import start_thread
from socratic_bench.errors import CheckName, CheckResult, CheckStatus, ModelError
from socratic_bench.models.bedrock.credentials import make_ready
from socratic_bench.models.bedrock.errors import TRANSLATED, error_kind
from socratic_bench.models.bedrock.request import Wire
from socratic_bench.models.bedrock.session import (
    BEARER_TOKEN,
    Endpoint,
    configured_endpoint,
    is_aws,
    open_session,
    runtime_client,
    single_try_client,
)
from socratic_bench.ports.provider import AnswerTimeoutError, Quota
from socratic_bench.settings import OFFLINE_REGION, CoreConfig

MAX_WAIT_S = 5
PAGE_SIZE = 100
MAX_PAGES = 50  # Bedrock has some 15 pages of quotas
COUNT_WAIT_S = 2.0

_STS, _QUOTAS = "sts", "service-quotas"
_SERVICE_NAMES = {_STS: "AWS STS", _QUOTAS: "Service Quotas"}
_NOT_NEEDED = {
    _STS: "A run does not need to know it. To have it told, let AWS STS be reached "
    "(AWS_ENDPOINT_URL_STS) and allow sts:GetCallerIdentity.",
    _QUOTAS: "A run does not need to know them. To have them told, let Service Quotas be reached "
    "(AWS_ENDPOINT_URL_SERVICE_QUOTAS) and allow servicequotas:ListServiceQuotas.",
}

# Such as "Cross-region model inference tokens per minute for Anthropic Claude Sonnet 4.5 V1".
_QUOTA_NAME = re.compile(
    r"(?P<way>on-demand|global cross-region|cross-region)(?: model inference| InvokeModel)? "
    r"(?P<unit>requests|tokens) per minute for (?P<model>.+)",
    re.IGNORECASE,
)
_WORD = re.compile(r"v\d+|[a-z]+|\d+")
_DATE = re.compile(r"\d{8}")
# Words that a quota's name for a model may have and its id may lack, or the other way round.
_OPTIONAL_WORDS = frozenset(("ai", "amazon", "anthropic", "cohere", "meta", "mistral", "v1"))

# What CountTokens takes of a request.
_COUNTED_FIELDS = ("messages", "system", "toolConfig", "additionalModelRequestFields")
# Families that have the operation. It takes no inference profiles, so their model is named.
_COUNTING_FAMILIES = ("anthropic.claude", "emulator.")
_COUNT_OPERATION = "bedrock-runtime.CountTokens"
_COUNT_ERRORS = (*TRANSLATED, ModelError, KeyError, TypeError, AttributeError)


def identities(config: CoreConfig) -> Iterator[CheckResult]:
    """Whose the credentials are; and the role's, if one is taken for calls."""
    if config.offline:
        yield CheckResult("credentials", "ok", "none", "the built-in mock needs none")
        return
    if os.environ.get(BEARER_TOKEN) and not config.assume_role_arn:
        message = f"{BEARER_TOKEN} is set: an API key signs, and AWS STS cannot tell whose it is"
        yield CheckResult("credentials", "unknown", "API key", message)
        return
    yield _identity("credentials", config, None)
    if config.assume_role_arn:
        yield _identity("role", config, config.assume_role_arn)


def quotas(config: CoreConfig, model_ids: Sequence[str]) -> Mapping[str, Quota]:
    """The account's quotas of the models. Raises `ModelError`."""
    if config.offline:
        return {}
    session = open_session(_endpoint(config, config.assume_role_arn))
    client = _client(session, _QUOTAS, config.region or OFFLINE_REGION)
    if client is None:
        raise ModelError(_skip_reason(_QUOTAS), code="unknown", end_reason="unavailable")
    limits = {"PageSize": PAGE_SIZE, "MaxItems": PAGE_SIZE * MAX_PAGES}
    try:
        pages = client.get_paginator("list_service_quotas").paginate(
            ServiceCode="bedrock", PaginationConfig=limits
        )
        rows = [row for page in pages for row in page.get("Quotas", ())]
    except TRANSLATED as error:
        failure = error_kind(error, model_id=_SERVICE_NAMES[_QUOTAS]).error
        failure.hint = _NOT_NEEDED[_QUOTAS]
        raise failure from error
    return quotas_by_model(rows, model_ids)


def quotas_by_model(
    rows: Sequence[Mapping[str, Any]], model_ids: Sequence[str]
) -> dict[str, Quota]:
    """The quotas of each model for the way in which its id is called; empty if no row names it.
    Service Quotas writes models' names for people, and not their ids.
    """
    return {model_id: Quota(**dict(_quota_fields(rows, model_id))) for model_id in model_ids}


def count_tokens(
    requests: Mapping[str, Wire], *, region: str, assume_role_arn: str | None
) -> tuple[Mapping[str, int], int]:
    """Input tokens by model id, as far as the service counts the requests in time, free of charge;
    and how many requests were sent for it.
    """
    countable = {
        model_id: wire
        for model_id, wire in requests.items()
        if base_id(model_id).startswith(_COUNTING_FAMILIES)
    }
    if not countable:
        return {}, 0
    lock, is_over, sent, tokens = threading.Lock(), threading.Event(), [], dict[str, int]()
    endpoint = Endpoint(region=region, assume_role_arn=assume_role_arn, call_timeout_s=COUNT_WAIT_S)

    def note_request(**_event: object) -> None:
        """Note a request that is about to be sent; stop it once nobody waits for it."""
        with lock:
            if is_over.is_set():
                raise AnswerTimeoutError(_COUNT_OPERATION, COUNT_WAIT_S)
            sent.append(True)

    def count(client: Any, model_id: str, arguments: Wire) -> None:  # noqa: ANN401 -- the SDK's
        body = {name: arguments[name] for name in _COUNTED_FIELDS if name in arguments}
        with suppress(*_COUNT_ERRORS):
            answer = client.count_tokens(modelId=base_id(model_id), input={"converse": body})
            if answer["inputTokens"] > 0:
                tokens[model_id] = answer["inputTokens"]

    def count_all() -> None:
        try:
            session = open_session(endpoint)
            client = runtime_client(session, endpoint)
            make_ready(session, assume_role_arn)
        except _COUNT_ERRORS:
            return
        client.meta.events.register(f"before-send.{_COUNT_OPERATION}", note_request)
        counting = [start_thread(partial(count, client, *item)) for item in countable.items()]
        wait(counting, COUNT_WAIT_S)

    # In a thread, so that a name server, login or proxy that hangs is not waited for.
    wait([start_thread(count_all)], COUNT_WAIT_S * 1.5)
    with lock:
        is_over.set()
        return {**tokens}, len(sent)


def _quota_fields(rows: Sequence[Mapping[str, Any]], model_id: str) -> Iterator[tuple[str, float]]:
    """Name and value of each quota of the model."""
    words, way = _words(_DATE.sub("", base_id(model_id))), _way(model_id)
    for row in rows:
        name = _QUOTA_NAME.fullmatch(str(row.get("QuotaName", "")))
        value = row.get("Value")
        if name is None or not isinstance(value, int | float):
            continue
        if name["way"].lower() == way and _words(name["model"]) == words:
            yield f"{name['unit'].lower()}_per_minute", float(value)


def _way(model_id: str) -> str:
    name = model_id.rpartition("/")[2]
    if name == base_id(model_id):
        return "on-demand"
    return "global cross-region" if name.startswith("global.") else "cross-region"


def _words(name: str) -> list[str]:
    """The words that distinguish models, sorted; without the number behind an id's colon."""
    words = _WORD.findall(name.lower().partition(":")[0])
    return sorted(word for word in words if word not in _OPTIONAL_WORDS)


def _identity(check: CheckName, config: CoreConfig, role_arn: str | None) -> CheckResult:
    subject = role_arn or "the caller"
    try:
        session = open_session(_endpoint(config, role_arn))
        make_ready(session, role_arn)
        if session.get_credentials() is None:
            return _check_of_failure(check, subject, NoCredentialsError())
        client = _client(session, _STS, config.region or OFFLINE_REGION)
        if client is None:
            return CheckResult(check, "unknown", subject, _skip_reason(_STS))
        caller = client.get_caller_identity()
        return CheckResult(check, "ok", str(caller["Arn"]), f"account {caller['Account']}")
    except ModelError as error:
        return CheckResult.of(check, "failed", subject, error)
    except (*TRANSLATED, KeyError, TypeError) as error:
        return _check_of_failure(check, subject, error)


def _check_of_failure(check: CheckName, subject: str, error: Exception) -> CheckResult:
    """Credentials that are refused fail; a run does not need to know whose they are."""
    if isinstance(error, (KeyError, TypeError)):
        message = "what answers in the place of AWS STS does not say whose they are"
        return CheckResult(check, "unknown", subject, message)
    failure = error_kind(error, model_id=_SERVICE_NAMES[_STS]).error
    status: CheckStatus = "failed" if failure.end_reason == "credentials" else "unknown"
    if status == "unknown":
        failure.hint = _NOT_NEEDED[_STS]
    return CheckResult.of(check, status, subject, failure)


def _client(session: Session, service: str, region: str) -> Any:  # noqa: ANN401 -- the SDK makes its classes while it runs
    """`None` if models are called at an endpoint that is not AWS's own, and the service is not: the
    credentials for that endpoint say nothing of an account at AWS.
    """
    client = single_try_client(session, service, region, MAX_WAIT_S)
    runtime = configured_endpoint(region)
    if runtime and not is_aws(runtime) and is_aws(client.meta.endpoint_url):
        return None
    return client


def _endpoint(config: CoreConfig, role_arn: str | None) -> Endpoint:
    return Endpoint(region=config.region or OFFLINE_REGION, assume_role_arn=role_arn)


def _skip_reason(service: str) -> str:
    variable = f"AWS_ENDPOINT_URL_{service.upper().replace('-', '_')}"
    return (
        f"{_SERVICE_NAMES[service]} was not asked: models are called at an endpoint that is not "
        f"AWS's own, and {variable} is not set"
    )
