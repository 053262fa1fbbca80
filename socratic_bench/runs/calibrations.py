"""The calibrations that a run's settings name: one by itself, or all that a store has."""

from collections.abc import Callable
from functools import lru_cache

from socratic_bench.benchmarks import RunConfig
from socratic_bench.converting import decode
from socratic_bench.documents.judge_status import StoredCalibration
from socratic_bench.errors import Problem, UsageError
from socratic_bench.settings import (
    MAX_STORED_BYTES,
    OFFLINE_REGION,
    S3,
    absolute,
    is_folder,
    read_bounded,
)
from socratic_bench.storage.stores import store_at

FOLDER = "/calibrations"
FILE = ".json"
_KEPT = "calibrations/run-"


def read_calibrations(config: RunConfig) -> tuple[StoredCalibration, ...]:
    """None if none is named. See `calibrations_at`."""
    if config.calibration is None:
        return ()
    return calibrations_at(config.calibration, lambda: config.region or OFFLINE_REGION)


def calibrations_at(name: str, region: Callable[[], str]) -> tuple[StoredCalibration, ...]:
    """The calibration of a file, be it in a bucket, or all that `calibrate` has kept in an output
    folder or below a prefix of a bucket; `region` is that of buckets.

    Raises `UsageError` if it cannot be read, or there is none, and `ArtifactError` for a store.
    """
    if name.startswith(S3):
        if not name.removeprefix(S3).strip("/"):
            raise _mistake(name, "names no bucket: write s3://BUCKET/PREFIX")
        return _in_bucket(name, region())
    if is_folder(name):
        return _kept(absolute(name), region)
    try:
        body = read_bounded(name, bound=MAX_STORED_BYTES)
    except OSError as error:
        raise _mistake(name, f"cannot be read: {error.strerror}") from error
    return (_decoded(body, name),)


@lru_cache(maxsize=8)
def _in_bucket(name: str, region: str) -> tuple[StoredCalibration, ...]:
    """Asked for once, and not by each cell of a sweep."""
    if not name.endswith(FILE):
        return _kept(name, lambda: region)
    root, _, key = name.rpartition("/")
    body = store_at(root, lambda: region).get(key)
    if body is None:
        raise _mistake(name, "cannot be read: there is no such object")
    return (_decoded(body, name),)


def _kept(root: str, region: Callable[[], str]) -> tuple[StoredCalibration, ...]:
    store = store_at(root.rstrip("/").removesuffix(FOLDER) or root, region)
    keys = [key for key in store.keys(_KEPT) if key.endswith(FILE)]
    bodies = {key: body for key in keys if (body := store.get(key)) is not None}
    if not bodies:
        raise _mistake(root, f"has no calibration ({_KEPT}*{FILE})")
    return tuple(_decoded(body, store.location(key)) for key, body in bodies.items())


def _decoded(body: bytes, name: str) -> StoredCalibration:
    try:
        return decode(body, StoredCalibration)
    except ValueError as error:
        raise _mistake(name, f"is no calibration: {error}") from error


def _mistake(name: str, why: str) -> UsageError:
    return UsageError([Problem.of("{calibration} {name} {why}.", name=name, why=why)])
