"""One S3 bucket below one prefix: whole objects, and writes on conditions."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, InvalidRegionError
from botocore.session import Session

from socratic_bench.artifacts.bucket_faults import (
    ACTIONS,
    SDK_ERRORS,
    BucketContext,
    explain,
    is_expired,
    named_region,
)
from socratic_bench.bedrock.data import new_session
from socratic_bench.errors import UsageError
from socratic_bench.secrecy import learn_headers

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

CONNECT_TIMEOUT_S = 2
READ_TIMEOUT_S = 30
POOL_CONNECTIONS = 16
# The request itself, and one that asks for the bucket's region.
CALLS_PER_REQUEST = 2

# What no key can carry whole, and parts of a path that some readers would resolve.
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]|(^|/)\.\.?(/|$)")
_MISSING = ("404", "NoSuchKey")
# "NoSuchKey": a write that must replace an object which is gone.
_REFUSED = ("412", "PreconditionFailed", "NoSuchKey", "404")

Notice = Callable[[str], None]


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

    def keys(self, below: str) -> Iterator[tuple[str, str]]:
        """Key and ETag of every object below a folder, in the order of their names."""
        more: dict[str, Any] = {}
        while True:
            told, _ = self._call("list_objects_v2", below, (), Prefix=below, **more) or ({}, None)
            for entry in told.get("Contents", ()):
                yield entry["Key"].removeprefix(self._prefix), entry["ETag"]
            if not told.get("IsTruncated"):
                return
            more = {"ContinuationToken": told["NextContinuationToken"]}

    def close(self) -> None:
        self.clients.close()

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


class Clients:
    """The client of a bucket, in the bucket's own region, with credentials that are renewed once.

    Which region a bucket is in S3 tells by itself; if it is another than the run's, `notice` says
    so, and requests go there.
    """

    def __init__(self, bucket: str, region: str, notice: Notice) -> None:
        self._bucket = bucket
        self.region = region
        self._notice = notice
        self._lock = threading.Lock()
        self._calls = threading.local()
        self._session = self._open_session()
        self._may_renew = False
        self._told_region: str | None = None
        self._client = self.connect(READ_TIMEOUT_S)

    def connect(self, read_timeout_s: float) -> "S3Client":
        """A client of its own that sends each request once; whoever asks closes it."""
        config = Config(
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=read_timeout_s,
            tcp_keepalive=True,
            max_pool_connections=POOL_CONNECTIONS,
            retries={"total_max_attempts": 1, "mode": "standard"},
        )
        with _usable():
            make: Any = self._session.create_client  # makes its classes while it runs
            client: S3Client = make("s3", region_name=self.region, config=config)
            return client

    def send(
        self,
        operation: str,
        finish: Callable[[Any], Any],
        **parameters: Any,  # noqa: ANN401 -- the SDK's own
    ) -> tuple[Any, Any]:
        client = self._current()
        try:
            told = self.ask(client, operation, **parameters)
            done = told, finish(told)
        except SDK_ERRORS as error:
            if not is_expired(error) or not self._renew(client):
                raise
            told = self.ask(self._client, operation, **parameters)
            done = told, finish(told)
        self._may_renew = True
        return done

    def ask(self, client: "S3Client", operation: str, **parameters: Any) -> Any:  # noqa: ANN401
        """One call of the SDK's, with the few that it makes by itself to follow a bucket."""
        self._calls.count = 0
        return getattr(client, operation)(**parameters)

    def close(self) -> None:
        self._client.close()

    def _count(self, **_: Any) -> None:  # noqa: ANN401 -- the SDK's own fields
        # Without this bound the SDK follows a server that names no region for ever.
        self._calls.count = getattr(self._calls, "count", 0) + 1
        if self._calls.count > CALLS_PER_REQUEST:
            raise InvalidRegionError(region_name="")

    def _current(self) -> "S3Client":
        with self._lock:
            if self._told_region and self._told_region != self.region:
                self.region = self._told_region
                self._client = self.connect(READ_TIMEOUT_S)
            return self._client

    def _renew(self, spent: "S3Client") -> bool:
        """Whether there is another client now than one whose credentials have run out."""
        with self._lock:
            if self._client is not spent:
                return True
            if not self._may_renew:
                return False
            self._may_renew = False
            self._notice("The credentials for S3 have run out: the SDK was asked for new ones.")
            self._session = self._open_session()
            self._client = self.connect(READ_TIMEOUT_S)
            return True

    def _open_session(self) -> Session:
        with _usable():
            session = new_session()
        session.register("before-send", _note_secrets)
        session.register("before-parameter-build.s3", self._count)
        session.register("needs-retry.s3", self._heed_region)
        return session

    def _heed_region(self, response: Any = None, **_: Any) -> None:  # noqa: ANN401 -- the SDK's
        headers = response[1].get("ResponseMetadata", {}).get("HTTPHeaders", {}) if response else {}
        region = named_region(headers)
        if region and region not in {self.region, self._told_region}:
            self._told_region = region
            self._notice(
                f"The bucket {self._bucket} is in {region}, not in {self.region}: "
                "S3 is asked there."
            )


def _age_s(told: Any) -> float | None:  # noqa: ANN401 -- the SDK's own answer
    try:
        sent_at = parsedate_to_datetime(told["ResponseMetadata"]["HTTPHeaders"]["date"])
    except (KeyError, TypeError, ValueError):
        return None
    if sent_at.tzinfo is None:
        sent_at = sent_at.replace(tzinfo=UTC)
    written_at: datetime | None = told.get("LastModified")
    return (sent_at - written_at).total_seconds() if written_at else None


def _note_secrets(**event: Any) -> None:  # noqa: ANN401 -- the SDK's own fields
    learn_headers(dict(event["request"].headers))


@contextmanager
def _usable() -> Iterator[None]:
    """What the SDK's own environment does not allow is the user's to mend."""
    try:
        yield
    except (BotoCoreError, ValueError) as error:
        raise UsageError([f"There is no way to S3: {error}."]) from error
