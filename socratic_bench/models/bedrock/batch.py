"""Bedrock's batch inference: calls as Converse records in S3, jobs, and the answers of records."""

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import orjson
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session
from msgspec.structs import replace

from socratic_bench.catalogue.models import base_id
from socratic_bench.catalogue.prices import BATCH
from socratic_bench.errors import ModelError
from socratic_bench.models.batch import (
    RECORDS_FILE,
    BatchCall,
    BatchService,
    Job,
    JobState,
)
from socratic_bench.models.bedrock.capabilities import ObservedCapabilities, Options
from socratic_bench.models.bedrock.converse import read_answer
from socratic_bench.models.bedrock.errors import TRANSLATED, error_kind
from socratic_bench.models.bedrock.request import without_tool
from socratic_bench.models.bedrock.session import (
    Endpoint,
    is_aws,
    make_client,
    single_try_client,
    translated_errors,
)
from socratic_bench.ports.provider import Answer, UnreadableAnswerError

# Fields of Converse that a record does not have: the job has the model, and one tier.
_NOT_IN_RECORDS = ("modelId", "serviceTier", "performanceConfig", "toolConfig")
# Models that keep to a JSON Schema (outputConfig); others are asked for JSON in words alone.
_JSON_SCHEMA = re.compile(r"anthropic\.claude-[a-z]+-(4-[5-9]|[5-9])|emulator\.")
# Keywords of JSON Schema that structured output refuses; they stay in the words of the request.
_BOUNDS = ("minimum", "maximum", "multipleOf", "minLength", "maxLength", "maxItems", "minItems")
_MINIMUM = "inimum number of records per batch inference job for "  # in the names of quotas
_MAX_WAIT_S = 5.0
_TRIES = 5
_TIMEOUT_S = 30
_SHORTEST_JOB_H = 24


class BedrockBatches(BatchService):
    """See `BatchService`. The control plane and S3 are called in the session of the runtime."""

    def __init__(self, session: Session, endpoint: Endpoint, options: Options) -> None:
        self._session = session
        self._endpoint = endpoint
        self._options = replace(options, stream=False, prompt_cache=False)

    def record(self, call: BatchCall) -> Mapping[str, Any]:
        """See `BatchService.record`. There are no cache points and no tools: the prompt is not
        cached in a batch, and a record with a `toolConfig` fails.
        """
        tool = call.request.tool
        seen = ObservedCapabilities(call.model_id)
        arguments = seen.shaped(without_tool(call.request), self._options).arguments
        body = {name: value for name, value in arguments.items() if name not in _NOT_IN_RECORDS}
        if tool and _JSON_SCHEMA.match(base_id(call.model_id)):
            schema = orjson.dumps(strict_schema(tool.input_schema)).decode()
            structure = {"jsonSchema": {"name": tool.name, "schema": schema}}
            body["outputConfig"] = {"textFormat": {"type": "json_schema", "structure": structure}}
        return {"recordId": call.record_id, "modelInput": _json(body)}

    def minimum_records(self, model_id: str) -> int | None:
        """See `BatchService.minimum_records`: from Service Quotas, where the account may ask it. A
        quota names its model in words; the one that shares most words with the id is the model's.
        """
        if not is_aws(self._bedrock.meta.endpoint_url):
            return None  # an endpoint of one's own has no quotas
        model_words = _words(base_id(model_id).partition(".")[2])
        minima: dict[int, int] = {}
        try:
            client = single_try_client(
                self._session, "service-quotas", self._endpoint.region, _MAX_WAIT_S
            )
            pages = client.get_paginator("list_service_quotas")
            for page in pages.paginate(ServiceCode="bedrock"):
                for quota in page["Quotas"]:
                    words = _words(quota["QuotaName"].partition(_MINIMUM)[2])
                    if words and words <= model_words:
                        minima[len(words)] = int(quota["Value"])
        except (BotoCoreError, ClientError, ModelError, KeyError):
            return None
        return minima[max(minima)] if minima else None

    def upload(self, address: str, body: bytes) -> None:
        bucket, key = _split(address)
        with _named("S3"):
            self._s3.put_object(Bucket=bucket, Key=key, Body=body)

    def submit(self, job: Job) -> str:
        with _named("batch inference"):
            answer = self._bedrock.create_model_invocation_job(
                jobName=f"socratic-{job.token[:32]}",
                roleArn=job.role_arn,
                clientRequestToken=job.token,
                modelId=job.model_id,
                modelInvocationType="Converse",
                timeoutDurationInHours=_SHORTEST_JOB_H,
                inputDataConfig={
                    "s3InputDataConfig": {
                        "s3InputFormat": "JSONL",
                        "s3Uri": job.place + RECORDS_FILE,
                    }
                },
                outputDataConfig={"s3OutputDataConfig": {"s3Uri": f"{job.place}answers/"}},
            )
        return str(answer["jobArn"])

    def state(self, arn: str) -> JobState:
        with _named("batch inference"):
            job = self._bedrock.get_model_invocation_job(jobIdentifier=arn)
        return JobState(
            status=job["status"],
            message=job.get("message", ""),
            n_processed=job.get("processedRecordCount"),
        )

    def answers(self, job: Job, arn: str) -> Iterator[tuple[str, Answer | str]]:
        address = f"{job.place}answers/{arn.rpartition('/')[2]}/{RECORDS_FILE}.out"
        bucket, key = _split(address)
        with _named("S3"):
            try:
                body = self._s3.get_object(Bucket=bucket, Key=key)["Body"].read()
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") == "NoSuchKey":
                    return  # the job has failed before its first record
                raise
        for line in body.splitlines():
            row = orjson.loads(line)
            yield row["recordId"], _outcome(row)

    @cached_property
    def _bedrock(self) -> Any:  # noqa: ANN401 -- the SDK makes its classes while it runs
        return self._client("bedrock", endpoint_url=self._endpoint.url)

    @cached_property
    def _s3(self) -> Any:  # noqa: ANN401 -- likewise
        return self._client("s3")

    def _client(self, service: str, **options: Any) -> Any:  # noqa: ANN401 -- likewise
        # Each of these calls may be made again: a job's token makes its submission idempotent.
        config = Config(
            retries={"total_max_attempts": _TRIES, "mode": "standard"}, read_timeout=_TIMEOUT_S
        )
        with translated_errors():
            return make_client(
                self._session,
                service,
                region_name=self._endpoint.region,
                config=config,
                **options,
            )


def _words(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z]+|\d+", name.lower()))


def strict_schema(schema: Any) -> Any:  # noqa: ANN401 -- any JSON
    """A JSON Schema as structured output takes it: closed objects, and no bounds of values."""
    if isinstance(schema, list):
        return [strict_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: strict_schema(part) for name, part in schema.items() if name not in _BOUNDS}
    if isinstance(schema.get("properties"), dict):
        # A property may have the name of a bound.
        properties = schema["properties"].items()
        kept["properties"] = {name: strict_schema(part) for name, part in properties}
        kept["additionalProperties"] = False
    return kept


def _outcome(row: Mapping[str, Any]) -> Answer | str:
    if "modelOutput" not in row:
        error = row.get("error") or {}
        return f"{error.get('errorCode', 'error')}: {error.get('errorMessage', 'no answer')}"
    try:
        answer = read_answer(row["modelOutput"], latency_ms=0.0)
    except UnreadableAnswerError as error:
        return str(error)
    return replace(answer, latency_ms=answer.service_latency_ms or 0.0, served_tier=BATCH)


def _json(value: Any) -> Any:  # noqa: ANN401 -- any part of a request
    """The request as JSON: pictures in base64, as in the HTTP request."""
    if isinstance(value, dict):
        return {name: _json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_json(part) for part in value]
    return b64encode(value).decode() if isinstance(value, bytes) else value


def _split(address: str) -> tuple[str, str]:
    parts = urlsplit(address)
    return parts.netloc, parts.path.lstrip("/")


@contextmanager
def _named(service: str) -> Iterator[None]:
    try:
        yield
    except TRANSLATED as error:
        raise error_kind(error, model_id=service).error from error
