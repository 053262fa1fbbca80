"""Batch inference: jobs over records in S3, in the states of Bedrock, each look at one a step on.

S3 is where the SDK's own environment says (`AWS_ENDPOINT_URL_S3`), such as moto.
"""

import json
import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from botocore.session import Session
from msgspec import Struct

from socratic_bench.emulator.dialogue import JsonObject
from socratic_bench.emulator.errors import ServiceError, invalid, unknown_resource

_ARN = "arn:aws:bedrock:us-east-1:123456789012:model-invocation-job/"
MINIMUM_RECORDS = 100
_STEPS = ("Submitted", "Validating", "Scheduled", "InProgress")
_ENDS = {"job_failed": "Failed", "job_expired": "Expired", "job_stopped": "Stopped"}

# Answers a record's Converse request as the runtime would: its JSON, or raises the error.
AnswerRecord = Callable[[str, JsonObject], JsonObject]


class _Job(Struct):
    body: JsonObject
    number: int
    fault: str | None
    status: str = _STEPS[0]
    message: str = ""
    counts: JsonObject = {}

    @property
    def arn(self) -> str:
        return f"{_ARN}{self.number:012d}"

    @property
    def document(self) -> JsonObject:
        names = ("jobName", "modelId", "roleArn", "inputDataConfig", "outputDataConfig")
        return {
            "jobArn": self.arn,
            "status": self.status,
            "message": self.message,
            "submitTime": "2026-01-01T00:00:00Z",
            "modelInvocationType": "Converse",
            "clientRequestToken": self.body["clientRequestToken"],
            **{name: self.body[name] for name in names},
            **self.counts,
        }


class Jobs:
    """The jobs of one endpoint; safe to use from several threads."""

    def __init__(self, answer: AnswerRecord) -> None:
        self._answer = answer
        self._lock = threading.Lock()
        self._jobs: dict[str, _Job] = {}
        self._by_token: dict[str, _Job] = {}

    def create(self, body: JsonObject, fault: str | None) -> JsonObject:
        """The job with the token of the request, which is made if there is none."""
        token = body.get("clientRequestToken", "")
        with self._lock:
            if body.get("modelInvocationType") != "Converse":
                raise invalid("Only records of the type Converse are played here.")
            if token not in self._by_token:
                job = _Job(body=body, number=len(self._jobs) + 1, fault=fault)
                self._jobs[job.arn] = self._by_token[token] = job
            return {"jobArn": self._by_token[token].arn}

    def look(self, arn: str) -> JsonObject:
        """The job, which each look takes a step on."""
        with self._lock:
            job = self._find(arn)
            if job.status in _STEPS[:-1]:
                job.status = _STEPS[_STEPS.index(job.status) + 1]
            elif job.status == _STEPS[-1]:
                self._finish(job)
            return job.document

    def list(self) -> JsonObject:
        with self._lock:
            return {"invocationJobSummaries": [job.document for job in self._jobs.values()]}

    def _find(self, arn: str) -> _Job:
        if arn not in self._jobs:
            raise unknown_resource("The model invocation job was not found.")
        return self._jobs[arn]

    def _finish(self, job: _Job) -> None:
        source = job.body["inputDataConfig"]["s3InputDataConfig"]["s3Uri"]
        records = [json.loads(line) for line in self._read(source).splitlines()]
        if job.fault == "job_failed" or len(records) < MINIMUM_RECORDS:
            job.status = "Failed"
            job.message = f"The job could not be validated: {len(records)} records."
            return
        n_played = len(records) // 2 if job.fault else len(records)
        rows = [self._row(job.body["modelId"], record) for record in records[:n_played]]
        rows.reverse()  # the service keeps no order
        n_errors = sum("error" in row for row in rows)
        usages = [row["modelOutput"]["usage"] for row in rows if "modelOutput" in row]
        job.counts = {
            "totalRecordCount": len(records),
            "processedRecordCount": len(rows),
            "successRecordCount": len(rows) - n_errors,
            "errorRecordCount": n_errors,
        }
        tokens = {
            "inputTokenCount": sum(usage["inputTokens"] for usage in usages),
            "outputTokenCount": sum(usage["outputTokens"] for usage in usages),
        }
        folder = job.body["outputDataConfig"]["s3OutputDataConfig"]["s3Uri"].rstrip("/")
        folder = f"{folder}/{job.arn.rpartition('/')[2]}"
        name = source.rpartition("/")[2]
        self._write(f"{folder}/{name}.out", "".join(json.dumps(row) + "\n" for row in rows))
        self._write(f"{folder}/manifest.json.out", json.dumps({**job.counts, **tokens}))
        is_partial = n_errors or job.fault == "job_partial"
        default = "PartiallyCompleted" if is_partial else "Completed"
        job.status = _ENDS.get(job.fault or "", default)

    def _row(self, model_id: str, record: JsonObject) -> JsonObject:
        try:
            if "toolConfig" in record["modelInput"]:
                raise invalid("A record of a batch takes no toolConfig.")
            if "cachePoint" in json.dumps(record["modelInput"]):
                raise invalid("A record of a batch takes no cache points.")
            output = self._answer(model_id, record["modelInput"])
        except ServiceError as error:
            failure = {"errorCode": error.status, "errorMessage": error.message}
            return {**record, "error": failure}
        return {**record, "modelOutput": output}

    @cached_property
    def _s3(self) -> Any:  # noqa: ANN401 -- the SDK makes its classes while it runs
        return Session().create_client("s3", region_name="us-east-1")

    def _read(self, address: str) -> bytes:
        parts = urlsplit(address)
        answer = self._s3.get_object(Bucket=parts.netloc, Key=parts.path.lstrip("/"))
        return bytes(answer["Body"].read())

    def _write(self, address: str, text: str) -> None:
        parts = urlsplit(address)
        key = parts.path.lstrip("/")
        self._s3.put_object(Bucket=parts.netloc, Key=key, Body=text.encode())
