"""One S3 bucket below one prefix: whole objects, and writes on conditions."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from botocore.exceptions import ClientError

from socratic_bench.artifacts.bucket_clients import Clients, Notice
from socratic_bench.artifacts.bucket_faults import (
    ACTIONS,
    SDK_ERRORS,
    BucketContext,
    explain,
)
from socratic_bench.errors import UsageError
from socratic_bench.values import dataclass

# What no key can carry whole, and parts of a path that some readers would resolve.
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]|(^|/)\.\.?(/|$)")
_MISSING = ("404", "NoSuchKey")
# "NoSuchKey": a write that must replace an object which is gone.
_REFUSED = ("412", "PreconditionFailed", "NoSuchKey", "404")


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as it was read. `age_s`: since it was written, by the server's own clock."""

    body: bytes
    etag: str
    age_s: float | None


class Bucket:
    """Sends each request once: whether and when it is sent again is decided by the caller.

    Every method raises `StoreOutageError` if a later try may pass, else `ArtifactError`.
    """

    def __init__(
        self,
        name: str,
        *,
        prefix: str,
        region: str,
        kms_key_id: str | None = None,
        notice: Notice = lambda _: None,
    ) -> None:
        if prefix and _UNFIT.search(prefix):
            problem = "must hold no control characters, and neither '.' nor '..' as a part."
            raise UsageError([f"The S3 prefix {prefix!r} {problem}"])
        self.name = name
        self._prefix = f"{prefix}/" if prefix else ""
        self._encryption: dict[str, Any] = (
            {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": kms_key_id} if kms_key_id else {}
        )
        self._kms_key_id = kms_key_id
        self.clients = Clients(name, region, notice)

    def location(self, key: str) -> str:
        return f"s3://{self.name}/{self._prefix}{key}"

    def put(self, key: str, body: bytes) -> None:
        """Keep `body` whole, whatever was there."""
        self._write(key, body)

    def put_if(self, key: str, body: bytes, *, etag: str | None) -> str | None:
        """Keep `body` if the object still is the one with this ETag; `None`: if there is none.

        Returns the new object's ETag, or `None` if the condition does not hold.
        """
        condition = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}
        return self._write(key, body, **condition)

    def get(self, key: str) -> Stored | None:
        """The object, or `None` if there is none."""
        answer = self._call("get_object", key, _MISSING, lambda told: told["Body"].read(), Key=key)
        if answer is None:
            return None
        told, body = answer
        return Stored(body, told["ETag"], _age_s(told))

    def keys(self, below: str) -> Iterator[str]:
        """The key of every object below a folder, in the order of their names."""
        more: dict[str, Any] = {}
        while True:
            told, _ = self._call("list_objects_v2", below, (), Prefix=below, **more) or ({}, None)
            for entry in told.get("Contents", ()):
                yield entry["Key"].removeprefix(self._prefix)
            if not told.get("IsTruncated"):
                return
            more = {"ContinuationToken": told["NextContinuationToken"]}

    def _write(self, key: str, body: bytes, **more: Any) -> str | None:  # noqa: ANN401 -- the SDK's
        answer = self._call(
            "put_object",
            key,
            _REFUSED if more else (),
            Key=key,
            Body=body,
            ContentType="application/json",
            ChecksumAlgorithm="SHA256",
            **self._encryption,
            **more,
        )
        return answer[0].get("ETag", "") if answer else None

    def _call(
        self,
        operation: str,
        key: str,
        refusals: tuple[str, ...],
        finish: Callable[[Any], Any] = lambda _: None,
        **parameters: Any,  # noqa: ANN401 -- the SDK's own
    ) -> tuple[Any, Any] | None:
        """What S3 answered and what `finish` made of it; `None` for one of the refusals."""
        for name in parameters.keys() & {"Key", "Prefix"}:
            parameters[name] = self._prefix + parameters[name]
        try:
            return self.clients.send(operation, finish, Bucket=self.name, **parameters)
        except SDK_ERRORS as error:
            if isinstance(error, ClientError) and error.response["Error"]["Code"] in refusals:
                return None
            location = self.location(key)
            context = BucketContext(self.name, location, ACTIONS[operation], self._kms_key_id)
            raise explain(error, context) from error


def _age_s(told: Any) -> float | None:  # noqa: ANN401 -- the SDK's own answer
    try:
        sent_at = parsedate_to_datetime(told["ResponseMetadata"]["HTTPHeaders"]["date"])
    except (KeyError, TypeError, ValueError):
        return None
    if sent_at.tzinfo is None:
        sent_at = sent_at.replace(tzinfo=UTC)
    written_at: datetime | None = told.get("LastModified")
    return (sent_at - written_at).total_seconds() if written_at else None
