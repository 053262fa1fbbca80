"""Whether the folder and the bucket of a run take what it keeps there."""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from socratic_bench.errors import ArtifactError, BenchError, StoreOutageError, UsageError
from socratic_bench.findings import CheckName, Finding, Status
from socratic_bench.retrying import RetryPolicy
from socratic_bench.settings import CoreConfig
from socratic_bench.storage.keys import trial_key
from socratic_bench.storage.s3 import S3Store
from socratic_bench.storage.stores import open_bucket, open_folder

MAX_ATTEMPTS = 3
BODY = b'{"kind": "trial"}\n'
_KEPT = "written only to be read; it may be removed"


def look_at_folder(config: CoreConfig) -> Iterator[Finding]:
    """Nothing without one."""
    folder = open_folder(config)
    if folder is None:
        return
    where = folder.location("")
    try:
        folder.check()
    except UsageError as error:
        yield Finding.of("folder", "failed", where, error)
    else:
        yield Finding(check="folder", status="ok", subject=where, message="can be written")


def look_at_bucket(
    config: CoreConfig, name: str, sleep: Callable[[float], None]
) -> Iterator[Finding]:
    """Write an object of that name, read it back, and take it away; nothing without a bucket."""
    if not config.s3_bucket:
        return
    where = f"s3://{config.s3_bucket}"
    try:
        store = open_bucket(config)
        assert store  # noqa: S101 -- there is a bucket
    except UsageError as error:
        yield Finding.of("bucket_write", "failed", where, error)
        return
    key = trial_key(name)
    written = _tried("bucket_write", store, key, sleep, _write)
    yield written
    if written.status != "ok":
        return
    # A run reads and lists to be resumed, and deletes nothing.
    needed: Status = "failed" if config.resume else "unknown"
    yield _tried("bucket_read", store, key, sleep, _read, needed)
    yield _tried("bucket_delete", store, key, sleep, _delete, "unknown")


def _write(store: S3Store, key: str) -> str:
    """As a journal is written: on the condition that there is no such object."""
    if store.bucket.put_if(key, BODY, etag=None) is None:
        raise ArtifactError(store.location(key), "could not be written: it is there already.")
    return "written"


def _read(store: S3Store, key: str) -> str:
    found = store.bucket.get(key)
    if found is None or found.body != BODY:
        raise ArtifactError(
            store.location(key),
            "could not be read: what is there is not what was written.",
            hint="Check what stands between here and S3, such as a proxy.",
        )
    return "read back"


def _delete(store: S3Store, key: str) -> str:
    store.bucket.delete(key)
    return "deleted"


def _tried(
    check: CheckName,
    store: S3Store,
    key: str,
    sleep: Callable[[float], None],
    work: Callable[[S3Store, str], str],
    denied: Status = "failed",
) -> Finding:
    """What came of it, with a few tries; `denied`: what it means that it was not allowed."""
    where = store.location(key)
    policy = RetryPolicy(max_attempts=MAX_ATTEMPTS, wait_max_s=2.0)
    try:
        done = policy.call(
            lambda: work(store, key),
            passes=lambda error: isinstance(error, StoreOutageError),
            sleep=sleep,
        )
    except BenchError as error:
        found = Finding.of(check, denied, where, error)
        return found if check != "bucket_delete" else _left(found)
    return Finding(check=check, status="ok", subject=where, message=done)


def _left(found: Finding) -> Finding:
    return replace(
        found, message=f"{found.message} It stays there: {_KEPT}. A run deletes nothing."
    )
