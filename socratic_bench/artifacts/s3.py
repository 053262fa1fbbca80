"""Artifacts in an S3 bucket, with the caller's own credentials."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from socratic_bench.errors import ArtifactError, UsageError
from socratic_bench.secrecy import learn_headers

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

MISSING = ("404", "NoSuchBucket", "NotFound")
CHECK_TIMEOUT_S = 2

# What no key can carry whole, and parts of a path that some readers would resolve.
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]|(^|/)\.\.?(/|$)")


class S3Store:
    """Keeps each key as an object under `prefix`. The SDK's standard retries serve uploads."""

    def __init__(self, bucket: str, *, prefix: str, region: str) -> None:
        if prefix and _UNFIT.search(prefix):
            problem = "must hold no control characters, and neither '.' nor '..' as a part."
            raise UsageError([f"The S3 prefix {prefix!r} {problem}"])
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._region = region
        self._session = _session(region)
        self._client = self._connect(read_timeout=60, retries={"mode": "standard"})

    def _connect(self, **options: Any) -> "S3Client":  # noqa: ANN401 -- the SDK's own options
        config = Config(connect_timeout=CHECK_TIMEOUT_S, tcp_keepalive=True, **options)
        with _usable():
            return self._session.client("s3", config=config)

    def check(self) -> None:
        """Raise `UsageError` if the bucket is surely missing; what cannot be told may pass."""
        client = self._connect(
            read_timeout=CHECK_TIMEOUT_S, retries={"total_max_attempts": 1, "mode": "standard"}
        )
        try:
            client.head_bucket(Bucket=self._bucket)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in MISSING:
                raise UsageError(
                    [f"No such bucket: {self._bucket} (RUNNER_S3_BUCKET)."],
                    hint=f"Make it (aws s3 mb s3://{self._bucket} --region {self._region}) or "
                    "unset the variable to run without S3.",
                ) from error
        except BotoCoreError:
            # Best effort: a check that fails by itself decides nothing.
            return
        finally:
            client.close()

    def put(self, key: str, body: bytes) -> None:
        try:
            self._client.put_object(
                Bucket=self._bucket,
                Key=self._prefix + key,
                Body=body,
                ContentType="application/json",
            )
        except (ClientError, BotoCoreError) as error:
            raise ArtifactError(
                f"{self.location(key)} could not be written: {error}",
                hint="Check that the bucket is there and that s3:PutObject is allowed on it.",
            ) from error

    def location(self, key: str) -> str:
        return f"s3://{self._bucket}/{self._prefix}{key}"


def _session(region: str) -> boto3.Session:
    with _usable():
        session = boto3.Session(region_name=region)
    session.events.register("before-send", _note_secrets)
    return session


def _note_secrets(**event: Any) -> None:  # noqa: ANN401 -- the SDK's own fields
    learn_headers(dict(event["request"].headers))


@contextmanager
def _usable() -> Iterator[None]:
    """What the SDK's own environment does not allow is the user's to mend."""
    try:
        yield
    except (BotoCoreError, ValueError) as error:
        raise UsageError([f"There is no way to S3: {error}."]) from error
