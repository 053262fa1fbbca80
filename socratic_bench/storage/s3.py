"""Artifacts in an S3 bucket: the store of a run, whole objects, and the SDK's client."""

from __future__ import annotations

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
from socratic_bench.models.bedrock.session import make_client, new_session
from socratic_bench.models.bedrock.transport import UnsendableError
from socratic_bench.ports.store import StoredObject
from socratic_bench.settings import prefix_problems
from socratic_bench.storage.bucket_errors import (
    ACTIONS,
    SDK_ERRORS,
    BucketContext,
    explain,
    is_expired,
    region_in,
)

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client  # stubs, which are there for mypy alone

Notice = Callable[[str], None]

CHECK_TIMEOUT_S = 2
CONNECT_TIMEOUT_S = 2
READ_TIMEOUT_S = 30
POOL_CONNECTIONS = 16
# The request itself, and one that asks for the bucket's region.
CALLS_PER_REQUEST = 2
# Larger than the journal entry of the longest answer that a run accepts.
MAX_OBJECT_BYTES = 64 * 2**20
MAX_PAGES = 1000  # of a list, 1000 keys each
MORE_PAGES = 10  # than there are objects to find
READERS = 8

_NO_BUCKET = ("404", "NoSuchBucket", "NotFound")
_NO_OBJECT = ("404", "NoSuchKey")
# "NoSuchKey": a write that must replace an object which is gone.
_CONDITION_FAILED = ("412", "PreconditionFailed", "NoSuchKey", "404")
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


class Stored(Struct, frozen=True):
    """An object as it was read. `age_s`: since it was written, by the server's own clock."""

    body: bytes
    etag: str
    age_s: float | None


class S3Store:
    """Keeps each key as an object under `prefix`, encrypted with the KMS key if one is given. Sends
    each request once: the caller decides about retries.

    `setting` is the field of the configuration that names the bucket, `None` if none does. `notice`
    gets a sentence about what differs from the settings, such as the region. Every method but
    `check` raises `StoreOutageError` if a later try may pass, else `ArtifactError`.
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
        if problems := [*prefix_problems(prefix)]:
            raise UsageError(problems)
        self._name = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._encryption: dict[str, Any] = (
            {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": kms_key_id} if kms_key_id else {}
        )
        self._kms_key_id = kms_key_id
        self._setting = setting
        self._clients = Clients(bucket, region, notice)

    def check(self) -> None:
        """Raise `UsageError` if the bucket is surely missing; any other failure passes."""
        client = self._clients.connect(CHECK_TIMEOUT_S)
        try:
            self._clients.request(client, "head_bucket", Bucket=self._name)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in _NO_BUCKET:
                raise self._missing_bucket() from error
        except SDK_ERRORS:
            # Best effort: a check that fails by itself decides nothing.
            return
        finally:
            client.close()

    def _missing_bucket(self) -> UsageError:
        name, problem = self._name, "No such bucket: {bucket}"
        make = f"Make it (aws s3 mb s3://{name} --region {self._clients.region})"
        if self._setting is None:
            return UsageError([Problem.of(f"{problem}.", bucket=name)], hint=f"{make}.")
        setting = f"{{{self._setting}}}"
        variable = f"RUNNER_{self._setting.upper()}"
        return UsageError(
            [Problem.of(f"{problem} ({setting}).", bucket=name)],
            hint=Problem.of(
                f"{{make}}, or leave out {setting} and unset {variable} to run without S3.",
                make=make,
            ),
        )

    def holds(self, key: str) -> bool:
        """Whether there surely is such an object. Raises `StoreOutageError`."""
        try:
            return key in self.sizes(key)
        except StoreOutageError:
            raise
        except ArtifactError:
            return False

    def location(self, key: str) -> str:
        """The s3:// URL of a key."""
        return f"s3://{self._name}/{self._prefix}{key}"

    def put(self, key: str, body: bytes) -> None:
        """Store `body`, whatever was there."""
        self._write(key, body)

    def put_if(self, key: str, body: bytes, *, etag: str | None) -> str | None:
        """Store `body` if the object still has this ETag; `None`: if there is no object. Returns
        the new object's ETag, or `None` if the condition does not hold.
        """
        condition = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}
        return self._write(key, body, **condition)

    def get(self, key: str) -> Stored | None:
        """The object, or `None` if there is none."""
        result = self._call("get_object", key, _NO_OBJECT, _read_body, Key=key)
        if result is None:
            return None
        answer, body = result
        if body is None:
            raise self._too_large(key, f"has more than {MAX_OBJECT_BYTES} bytes")
        return Stored(body, self._etag(answer, key), _age_s(answer))

    def delete(self, key: str) -> None:
        """Delete the object, if it is there; no run does so."""
        self._call("delete_object", key, (), Key=key)

    def missing(self, objects: Mapping[str, StoredObject]) -> Sequence[str] | None:
        """See `ArtifactStore`. `None` if neither listing nor HEAD is allowed."""
        max_pages = MORE_PAGES + len(objects)
        try:
            pages = [self.sizes(prefix, max_pages) for prefix in _prefixes_to_list(objects)]
        except StoreDeniedError:
            return self._missing_by_head(objects)
        sizes = {key: size for page in pages for key, size in page.items()}
        return [key for key, stored in objects.items() if sizes.get(key) != stored.n_bytes]

    def _missing_by_head(self, objects: Mapping[str, StoredObject]) -> Sequence[str] | None:
        """As `missing`, object by object. Without permission to list, S3 answers 403 for a missing
        object, so one object that is there shows that the others are missing.
        """
        with ThreadPoolExecutor(READERS) as pool:
            first = [*pool.map(self._size_by_head, [*objects][:READERS])]
            if all(size == _DENIED for size in first):
                return None
            sizes = [*first, *pool.map(self._size_by_head, [*objects][READERS:])]
        return [
            key
            for (key, stored), size in zip(objects.items(), sizes, strict=True)
            if size != stored.n_bytes
        ]

    def _size_by_head(self, key: str) -> int | None:
        try:
            result = self._call("head_object", key, _NO_OBJECT, Key=key)
        except StoreDeniedError:
            return _DENIED
        if result is None:
            return None
        self._etag(result[0], key)
        size: int | None = result[0].get("ContentLength")
        return size

    def sizes(self, prefix: str, max_pages: int = MAX_PAGES) -> dict[str, int]:
        """The key of every object with a prefix, in the order of their names, and its bytes."""
        sizes: dict[str, int] = {}
        more: dict[str, Any] = {}
        for _ in range(max_pages):
            result = self._call("list_objects_v2", prefix, (), Prefix=prefix, **more)
            page = result[0] if result else {}
            entries, token = page.get("Contents", ()), page.get("NextContinuationToken")
            is_whole = all({"Key", "Size"} <= entry.keys() for entry in entries)
            if "IsTruncated" not in page or not is_whole or (page["IsTruncated"] and not token):
                raise self._not_s3(prefix, "read")
            sizes |= {entry["Key"].removeprefix(self._prefix): entry["Size"] for entry in entries}
            if not page["IsTruncated"]:
                return sizes
            more = {"ContinuationToken": token}
        raise self._too_large(prefix, f"holds more than {len(sizes)} objects")

    def _too_large(self, key: str, what: str) -> ArtifactError:
        return ArtifactError(
            self.location(key),
            f"{what}: no run wrote that.",
            hint="Remove it, or start a new run without resuming.",
        )

    def _etag(self, answer: Any, key: str, verb: str = "read") -> str:  # noqa: ANN401 -- the SDK's
        """The ETag, which S3 sends with every answer about an object; an answer without one is not
        from S3.
        """
        etag: str = answer.get("ETag") or ""
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

    def _write(self, key: str, body: bytes, **condition: Any) -> str | None:  # noqa: ANN401 -- SDK's
        result = self._call(
            "put_object",
            key,
            _CONDITION_FAILED if condition else (),
            Key=key,
            Body=body,
            ContentType="application/json",
            ChecksumSHA256=_checksum("ChecksumSHA256", body),
            **self._encryption,
            **condition,
        )
        if result is None:
            return None
        answer = result[0]
        etag = self._etag(answer, key, "written")
        if any(kind in answer and answer[kind] != _checksum(kind, body) for kind in _CHECKSUMS):
            raise StoreOutageError(
                self.location(key),
                "could not be written: S3 tells the checksum of other bytes.",
                hint="Check the network path to S3, such as a proxy.",
            )
        return etag

    def _call(
        self,
        operation: str,
        key: str,
        refusals: tuple[str, ...],
        read: Callable[[Any], Any] = lambda _: None,
        **parameters: Any,  # noqa: ANN401 -- the SDK's own
    ) -> tuple[Any, Any] | None:
        """The answer of S3, and what `read` makes of it; `None` for one of the refusals."""
        for name in parameters.keys() & {"Key", "Prefix"}:
            parameters[name] = self._prefix + parameters[name]
        try:
            return self._clients.send(operation, read, Bucket=self._name, **parameters)
        except SDK_ERRORS as error:
            if isinstance(error, ClientError) and error.response["Error"]["Code"] in refusals:
                return None
            where = (self._name, self.location(key), ACTIONS[operation], self._kms_key_id)
            raise explain(error, BucketContext(*where)) from error


def _prefixes_to_list(keys: Collection[str]) -> list[str]:
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


def _read_body(answer: Any) -> bytes | None:  # noqa: ANN401 -- the SDK's own
    """The body of an object, `None` if it is over the bound."""
    if (answer.get("ContentLength") or 0) > MAX_OBJECT_BYTES:
        return None
    body = bytearray()
    # In pieces, as the SDK keeps each that it reads thrice for a while. It compares length and
    # checksum once there is no more to read.
    while piece := answer["Body"].read(2**20):
        body += piece
        if len(body) > MAX_OBJECT_BYTES:
            return None
    return bytes(body)


def _age_s(answer: Any) -> float | None:  # noqa: ANN401 -- the SDK's own
    try:
        sent_at = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
    except (KeyError, TypeError, ValueError):
        return None
    if sent_at.tzinfo is None:
        sent_at = sent_at.replace(tzinfo=UTC)
    written_at: datetime | None = answer.get("LastModified")
    return (sent_at - written_at).total_seconds() if written_at else None


class Clients:
    """The SDK's client of one bucket, in the bucket's own region. Expired credentials are renewed.

    S3 itself tells in which region a bucket is. If it is another than the run's, `notice` says so,
    and requests go there.
    """

    def __init__(self, bucket: str, region: str, notice: Notice) -> None:
        self._bucket = bucket
        self.region = region
        self._notice = notice
        self._lock = threading.Lock()
        self._calls = threading.local()
        self._session = self._open_session()
        self._may_renew = False
        self._bucket_region: str | None = None
        self._client = self.connect(READ_TIMEOUT_S)

    def connect(self, read_timeout_s: float) -> S3Client:
        """A new client that sends each request once; the caller closes it."""
        config = Config(
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=read_timeout_s,
            tcp_keepalive=True,
            max_pool_connections=POOL_CONNECTIONS,
            retries={"total_max_attempts": 1, "mode": "standard"},
        )
        with _environment_errors():
            client: S3Client = make_client(
                self._session, "s3", region_name=self.region, config=config
            )
            return client

    def send(
        self,
        operation: str,
        read: Callable[[Any], Any],
        **parameters: Any,  # noqa: ANN401 -- the SDK's own
    ) -> tuple[Any, Any]:
        """The answer to a request, and what `read` makes of it. Raises `SDK_ERRORS`."""
        client = self._current()
        try:
            answer = self.request(client, operation, **parameters)
            result = answer, read(answer)
        except SDK_ERRORS as error:
            if not is_expired(error) or not self._renew(client):
                raise
            answer = self.request(self._client, operation, **parameters)
            result = answer, read(answer)
        self._may_renew = True
        return result

    def request(self, client: S3Client, operation: str, **parameters: Any) -> Any:  # noqa: ANN401
        """One call of the SDK, and the few that it makes by itself to follow a bucket."""
        self._calls.count = 0
        make_ready(self._session)
        return getattr(client, operation)(**parameters)

    def _count(self, **_: Any) -> None:  # noqa: ANN401 -- the SDK's own
        # Without this bound the SDK retries for ever with a server that names no region.
        self._calls.count = getattr(self._calls, "count", 0) + 1
        if self._calls.count > CALLS_PER_REQUEST:
            raise InvalidRegionError(region_name="")

    def _current(self) -> S3Client:
        with self._lock:
            if self._bucket_region and self._bucket_region != self.region:
                self.region = self._bucket_region
                self._client = self.connect(READ_TIMEOUT_S)
            return self._client

    def _renew(self, expired: S3Client) -> bool:
        """Whether there is another client now than one whose credentials have expired."""
        with self._lock:
            if self._client is not expired:
                return True
            if not self._may_renew:
                return False
            self._may_renew = False
            self._notice("The credentials for S3 have expired: the SDK was asked for new ones.")
            try:
                self._session = self._open_session()
                self._client = self.connect(READ_TIMEOUT_S)
            except UsageError as error:
                # Such as a profile that was removed meanwhile: the old error is reported.
                self._notice(error.message)
                return False
            return True

    def _open_session(self) -> Session:
        with _environment_errors():
            session = new_session()
            learn_credentials(session)
        session.register("before-parameter-build.s3", self._count)
        session.register("needs-retry.s3", self._note_region)
        return session

    def _note_region(self, response: Any = None, **_: Any) -> None:  # noqa: ANN401 -- the SDK's
        headers = response[1].get("ResponseMetadata", {}).get("HTTPHeaders", {}) if response else {}
        region = region_in(headers)
        if region and region not in {self.region, self._bucket_region}:
            self._bucket_region = region
            self._notice(
                f"The bucket {self._bucket} is in {region}, not in {self.region}: "
                "S3 is asked there."
            )


@contextmanager
def _environment_errors() -> Iterator[None]:
    """Errors of the SDK's environment become `UsageError`s: the user has to correct them."""
    try:
        yield
    except (BotoCoreError, CredentialsError, UnsendableError) as error:
        raise UsageError([f"There is no way to S3: {error}."]) from error
