"""The SDK's client of one bucket: in its region, with good credentials, each request once."""

import hashlib
import threading
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, InvalidRegionError
from botocore.session import Session
from msgspec import Struct

from socratic_bench.errors import (
    ArtifactError,
    Problem,
    StoreDeniedError,
    StoreOutageError,
    UsageError,
)
from socratic_bench.models.bedrock.credentials import (
    CredentialsError,
    learn_credentials,
    make_ready,
)
from socratic_bench.models.bedrock.data import make_client, new_session
from socratic_bench.models.bedrock.transport import UnsendableError
from socratic_bench.ports.store import StoredObject
from socratic_bench.settings import prefix_problems
from socratic_bench.storage.bucket_errors import (
    ACTIONS,
    SDK_ERRORS,
    BucketContext,
    explain,
    is_expired,
    named_region,
)

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client


CONNECT_TIMEOUT_S = 2
READ_TIMEOUT_S = 30
POOL_CONNECTIONS = 16
# The request itself, and one that asks for the bucket's region.
CALLS_PER_REQUEST = 2

Notice = Callable[[str], None]


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
        """A new client that sends each request once; the caller closes it."""
        config = Config(
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=read_timeout_s,
            tcp_keepalive=True,
            max_pool_connections=POOL_CONNECTIONS,
            retries={"total_max_attempts": 1, "mode": "standard"},
        )
        with _usable():
            client: S3Client = make_client(
                self._session, "s3", region_name=self.region, config=config
            )
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
        make_ready(self._session)
        return getattr(client, operation)(**parameters)

    def _count(self, **_: Any) -> None:  # noqa: ANN401 -- the SDK's own fields
        # Without this bound the SDK retries for ever with a server that names no region.
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
            try:
                self._session = self._open_session()
                self._client = self.connect(READ_TIMEOUT_S)
            except UsageError as error:
                # Such as a profile that was removed meanwhile: the old error is reported.
                self._notice(error.message)
                return False
            return True

    def _open_session(self) -> Session:
        with _usable():
            session = new_session()
            learn_credentials(session)
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


@contextmanager
def _usable() -> Iterator[None]:
    """Errors of the SDK's environment become `UsageError`s: the user has to correct them."""
    try:
        yield
    except (BotoCoreError, CredentialsError, UnsendableError) as error:
        raise UsageError([f"There is no way to S3: {error}."]) from error


# One S3 bucket below one prefix: whole objects, and writes on conditions.

_MISSING = ("404", "NoSuchKey")
# "NoSuchKey": a write that must replace an object which is gone.
_REFUSED = ("412", "PreconditionFailed", "NoSuchKey", "404")


# Larger than the journal entry of the longest answer that a run accepts.
MAX_OBJECT_BYTES = 64 * 2**20
READERS = 8
_DENIED = -1
# The checksums in an answer to a write that the standard library can compute: not CRC32C, CRC64NVME
# and the xxHashes.
_CHECKSUMS: Mapping[str, Callable[[bytes], bytes]] = {
    "ChecksumSHA256": lambda body: hashlib.sha256(body).digest(),
    "ChecksumSHA512": lambda body: hashlib.sha512(body).digest(),
    "ChecksumSHA1": lambda body: hashlib.sha1(body, usedforsecurity=False).digest(),
    "ChecksumMD5": lambda body: hashlib.md5(body, usedforsecurity=False).digest(),
    "ChecksumCRC32": lambda body: zlib.crc32(body).to_bytes(4),
}
MAX_PAGES = 1000  # of a list, 1000 keys each
MORE_PAGES = 10  # than there are objects to find


class Stored(Struct, frozen=True):
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
        if problems := [*prefix_problems(prefix)]:
            raise UsageError(problems)
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
        answer = self._call("get_object", key, _MISSING, _read_whole, Key=key)
        if answer is None:
            return None
        told, body = answer
        if body is None:
            raise self._enormous(key, f"has more than {MAX_OBJECT_BYTES} bytes")
        return Stored(body, self._etag(told, key), _age_s(told))

    def delete(self, key: str) -> None:
        """Take the object away, which no run does."""
        self._call("delete_object", key, (), Key=key)

    def size(self, key: str) -> int | None:
        """The object's bytes, or `None` if there is none."""
        answer = self._call("head_object", key, _MISSING, Key=key)
        if answer is None:
            return None
        self._etag(answer[0], key)
        size: int | None = answer[0].get("ContentLength")
        return size

    def missing(self, kept: Mapping[str, int]) -> Sequence[str] | None:
        """Which of these objects, told with their bytes, are gone or of another length now.

        `None` if that cannot be told, since neither listing nor HEAD is allowed.
        """
        pages_at_most = MORE_PAGES + len(kept)
        try:
            listed = [self.sizes(below, pages_at_most) for below in _listings(kept)]
        except StoreDeniedError:
            return self._missing_one_by_one(kept)
        found = {key: size for sizes in listed for key, size in sizes.items()}
        return [key for key, size in kept.items() if found.get(key) != size]

    def _missing_one_by_one(self, kept: Mapping[str, int]) -> Sequence[str] | None:
        """Without permission to list, S3 answers 403 for a missing object, so one object that is
        found shows that the others are missing.
        """
        with ThreadPoolExecutor(READERS) as pool:
            first = [*pool.map(self._told_size, [*kept][:READERS])]
            if all(size == _DENIED for size in first):
                return None
            rest = pool.map(self._told_size, [*kept][READERS:])
            found = dict(zip(kept, [*first, *rest], strict=True))
        return [key for key, size in kept.items() if found[key] != size]

    def _told_size(self, key: str) -> int | None:
        try:
            return self.size(key)
        except StoreDeniedError:
            return _DENIED

    def sizes(self, below: str, pages_at_most: int = MAX_PAGES) -> dict[str, int]:
        """The key of every object below a folder, in the order of their names, and its bytes."""
        found: dict[str, int] = {}
        more: dict[str, Any] = {}
        for _ in range(pages_at_most):
            told, _ = self._call("list_objects_v2", below, (), Prefix=below, **more) or ({}, None)
            entries, token = told.get("Contents", ()), told.get("NextContinuationToken")
            is_whole = all({"Key", "Size"} <= entry.keys() for entry in entries)
            if "IsTruncated" not in told or not is_whole or (told["IsTruncated"] and not token):
                raise self._not_s3(below, "read")
            found |= {one["Key"].removeprefix(self._prefix): one["Size"] for one in entries}
            if not told["IsTruncated"]:
                return found
            more = {"ContinuationToken": token}
        raise self._enormous(below, f"holds more than {len(found)} objects")

    def _enormous(self, key: str, what: str) -> ArtifactError:
        return ArtifactError(
            self.location(key),
            f"{what}: no run wrote that.",
            hint="Remove it, or start a new run without resuming.",
        )

    def _etag(self, told: Any, key: str, verb: str = "read") -> str:  # noqa: ANN401 -- the SDK's
        """The ETag, which S3 sends with every answer about an object; an answer without one is not
        from S3.
        """
        etag: str = told.get("ETag") or ""
        if not etag:
            raise self._not_s3(key, verb)
        return etag

    def _not_s3(self, key: str, verb: str) -> ArtifactError:
        return ArtifactError(
            self.location(key),
            f"could not be {verb}: what answers there does not answer as S3 does.",
            hint="Check the endpoint of S3 (AWS_ENDPOINT_URL_S3), and what stands before it, such "
            "as a proxy or a login page.",
        )

    def _write(self, key: str, body: bytes, **more: Any) -> str | None:  # noqa: ANN401 -- the SDK's
        answer = self._call(
            "put_object",
            key,
            _REFUSED if more else (),
            Key=key,
            Body=body,
            ContentType="application/json",
            ChecksumSHA256=_checksum("ChecksumSHA256", body),
            **self._encryption,
            **more,
        )
        if answer is None:
            return None
        etag = self._etag(answer[0], key, "written")
        told = {kind: answer[0][kind] for kind in _CHECKSUMS if kind in answer[0]}
        if any(_checksum(kind, body) != checksum for kind, checksum in told.items()):
            raise StoreOutageError(
                self.location(key),
                "could not be written: S3 tells the checksum of other bytes.",
                hint="Check what stands between here and S3, such as a proxy.",
            )
        return etag

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


def _listings(keys: Collection[str]) -> list[str]:
    """The prefixes to list to find these keys: their folders. A key that is alone in its folder is
    listed by its own name, since other runs may have many keys there.
    """
    folder_of = {key: key[: key.rfind("/") + 1] for key in keys}
    n_in = Counter(folder_of.values())
    return [
        *dict.fromkeys(folder if n_in[folder] > 1 else key for key, folder in folder_of.items())
    ]


def _checksum(kind: str, body: bytes) -> str:
    return b64encode(_CHECKSUMS[kind](body)).decode()


def _read_whole(told: Any) -> bytes | None:  # noqa: ANN401 -- the SDK's own answer
    """The body; nothing of one over the bound."""
    if (told.get("ContentLength") or 0) > MAX_OBJECT_BYTES:
        return None
    body = bytearray()
    # In pieces, as the SDK keeps each that it reads thrice for a while. It compares length and
    # checksum once there is no more to read.
    while piece := told["Body"].read(2**20):
        body += piece
        if len(body) > MAX_OBJECT_BYTES:
            return None
    return bytes(body)


def _age_s(told: Any) -> float | None:  # noqa: ANN401 -- the SDK's own answer
    try:
        sent_at = parsedate_to_datetime(told["ResponseMetadata"]["HTTPHeaders"]["date"])
    except (KeyError, TypeError, ValueError):
        return None
    if sent_at.tzinfo is None:
        sent_at = sent_at.replace(tzinfo=UTC)
    written_at: datetime | None = told.get("LastModified")
    return (sent_at - written_at).total_seconds() if written_at else None


# Artifacts in an S3 bucket, with the caller's own credentials.

MISSING = ("404", "NoSuchBucket", "NotFound")
CHECK_TIMEOUT_S = 2


class S3Store:
    """Keeps each key as an object under `prefix`, encrypted with the KMS key if one is given.

    `setting` is the one that names the bucket, by its field; `None` if no setting does. `notice`
    hears, in a sentence, of what goes another way than asked for.
    """

    def __init__(
        self,
        bucket: str,
        *,
        prefix: str,
        region: str,
        kms_key_id: str | None = None,
        setting: str | None = None,
        notice: Notice = lambda _: None,
    ) -> None:
        self.bucket = Bucket(
            bucket, prefix=prefix, region=region, kms_key_id=kms_key_id, notice=notice
        )
        self._setting = setting

    def check(self) -> None:
        """Raise `UsageError` if the bucket is surely missing; what cannot be told may pass."""
        client = self.bucket.clients.connect(CHECK_TIMEOUT_S)
        try:
            self.bucket.clients.ask(client, "head_bucket", Bucket=self.bucket.name)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in MISSING:
                raise self._missing_bucket() from error
        except SDK_ERRORS:
            # Best effort: a check that fails by itself decides nothing.
            return
        finally:
            client.close()

    def _missing_bucket(self) -> UsageError:
        name, said = self.bucket.name, "No such bucket: {bucket}"
        make = f"Make it (aws s3 mb s3://{name} --region {self.bucket.clients.region})"
        if self._setting is None:
            return UsageError([Problem.of(f"{said}.", bucket=name)], hint=f"{make}.")
        setting = f"{{{self._setting}}}"
        variable = f"RUNNER_{self._setting.upper()}"
        return UsageError(
            [Problem.of(f"{said} ({setting}).", bucket=name)],
            hint=Problem.of(
                f"{{make}}, or leave out {setting} and unset {variable} to run without S3.",
                make=make,
            ),
        )

    def holds(self, key: str) -> bool:
        """Whether there surely is such an object. Raises `StoreOutageError`."""
        try:
            return key in self.bucket.sizes(key)
        except StoreOutageError:
            raise
        except ArtifactError:
            return False

    def put(self, key: str, body: bytes) -> None:
        self.bucket.put(key, body)

    def missing(self, kept: Mapping[str, StoredObject]) -> Sequence[str] | None:
        """See `socratic_bench.ports.store.ArtifactStore`."""
        return self.bucket.missing({key: found.n_bytes for key, found in kept.items()})

    def location(self, key: str) -> str:
        return self.bucket.location(key)
