"""Batch inference: one job for all calls of a model, submitted once whatever ends the process."""

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from hashlib import sha256
from typing import Any, Protocol, TypeVar

import orjson
from msgspec import Struct

from socratic_bench.concurrency import start_thread
from socratic_bench.ports.provider import Answer
from socratic_bench.types import CallKey, Request

Item = TypeVar("Item")
Result = TypeVar("Result")
# Each model's default quota, where Service Quotas does not tell it.
MINIMUM_RECORDS = 100
FIRST_POLL_S = 0.25
LONGEST_POLL_S = 60.0
RECORDS_FILE = "records.jsonl"

# Of such jobs all records that were processed are billed, so their answers are collected.
ENDED = ("Completed", "PartiallyCompleted", "Failed", "Stopped", "Expired")


class BatchCall(Struct, frozen=True, kw_only=True):
    """A call of a run that is made as a record of a job."""

    run_id: str
    model_id: str
    key: CallKey
    request: Request

    @property
    def record_id(self) -> str:
        """The call's key in the words that a record id may have; unique within a model's job."""
        part = sha256(self.key.part.encode()).hexdigest()[:8] if self.key.part else ""
        parts = (self.run_id, self.key.role, self.key.index, part, self.key.repeat)
        return "-".join(str(word) for word in parts if word != "")


class Job(Struct, frozen=True, kw_only=True):
    """A job as it is asked for. Whoever submits the same job again gets the one that there is.

    Attributes:
        place: the S3 address of the folder with its records, and with its answers.
        token: the digest of the records and of the attempt, which makes the submission idempotent.
        role_arn: the role in which the service reads and writes the folder.
        run_ids: the runs that the records are of.
    """

    model_id: str
    place: str
    token: str
    role_arn: str
    n_records: int
    run_ids: tuple[str, ...]


class JobState(Struct, frozen=True, kw_only=True):
    """How far a job is; `None`: the service does not say."""

    status: str
    message: str = ""
    n_processed: int | None = None


class BatchService(Protocol):
    """A provider's batch inference. Each method may block, and raises `ModelError`."""

    def record(self, call: BatchCall) -> Mapping[str, Any]:
        """The call as a record of a job."""

    def minimum_records(self, model_id: str) -> int | None:
        """The fewest records that a job may have; `None` if the account's quota cannot be read."""

    def upload(self, address: str, body: bytes) -> None:
        """Write an object to S3."""

    def submit(self, job: Job) -> str:
        """The ARN of the job, which is submitted if there is none with its token."""

    def state(self, arn: str) -> JobState:
        """How far the job is."""

    def answers(self, job: Job, arn: str) -> Iterator[tuple[str, Answer | str]]:
        """What each record was answered, by its id; a text says why it has failed."""


class BatchJobs:
    """Where runs wait for each other, so that their calls become one job per model, which is
    planned, uploaded and submitted once. A run that ends without coming is not waited for. Safe to
    use from several threads.
    """

    def __init__(self, n_runs: int = 1) -> None:
        self._n_runs = n_runs
        self._lock = threading.RLock()
        self._left: set[str] = set()
        self._brought: dict[str, dict[str, Sequence[Any]]] = {}
        self._complete: dict[str, Future[None]] = {}
        self._done: dict[Hashable, Future[Any]] = {}

    def meet(
        self,
        stage: str,
        run_id: str,
        brought: Sequence[Item],
        wait: Callable[["Future[None]"], None],
    ) -> list[Item]:
        """What all runs have brought to this stage, once all have come."""
        with self._lock:
            complete = self._complete.setdefault(stage, Future())
            self._brought.setdefault(stage, {})[run_id] = brought
            self._check()
        wait(complete)
        return [item for _, own in sorted(self._brought[stage].items()) for item in own]

    def leave(self, run_id: str) -> None:
        """The run has ended, or will not come."""
        with self._lock:
            self._left.add(run_id)
            self._check()

    def once(self, key: Hashable, work: Callable[[], Result]) -> "Future[Result]":
        """The result of the work of that name, which is begun by the first who asks for it."""
        with self._lock:
            if key not in self._done:
                self._done[key] = start_thread(work)
            return self._done[key]

    def _check(self) -> None:
        for stage, complete in self._complete.items():
            n_runs = len(self._left | set(self._brought[stage]))
            if n_runs >= self._n_runs and not complete.done():
                complete.set_result(None)


def plan_job(
    calls: Sequence[BatchCall], service: BatchService, *, root: str, role_arn: str
) -> tuple[Job, bytes]:
    """The job of all calls to one model, and its file of records."""
    ordered = sorted(calls, key=lambda call: call.record_id)
    body = b"".join(orjson.dumps(service.record(call)) + b"\n" for call in ordered)
    model_id = ordered[0].model_id
    token = sha256(model_id.encode() + b"\n" + body + b"attempt 1").hexdigest()[:48]
    job = Job(
        model_id=model_id,
        place=f"{root.rstrip('/')}/batches/{token}/",
        token=token,
        role_arn=role_arn,
        n_records=len(ordered),
        run_ids=tuple(sorted({call.run_id for call in calls})),
    )
    return job, body


def polls() -> Iterator[float]:
    """The seconds to wait between looks at a job."""
    seconds = FIRST_POLL_S
    while True:
        yield seconds
        seconds = min(2 * seconds, LONGEST_POLL_S)


def by_model(calls: Iterable[BatchCall]) -> dict[str, list[BatchCall]]:
    """The calls of each model."""
    models: dict[str, list[BatchCall]] = {}
    for call in calls:
        models.setdefault(call.model_id, []).append(call)
    return models
