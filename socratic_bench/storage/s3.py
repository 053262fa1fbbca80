"""Artifacts in an S3 bucket, with the caller's own credentials."""

from collections.abc import Mapping, Sequence

from botocore.exceptions import ClientError

from socratic_bench.errors import ArtifactError, Problem, StoreOutageError, UsageError
from socratic_bench.storage.bucket import Bucket
from socratic_bench.storage.bucket_clients import Notice
from socratic_bench.storage.bucket_faults import SDK_ERRORS
from socratic_bench.store_ports import StoredObject

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
        """See `socratic_bench.store_ports.ArtifactStore`."""
        return self.bucket.missing({key: found.n_bytes for key, found in kept.items()})

    def location(self, key: str) -> str:
        return self.bucket.location(key)
