"""The SDK's client of one bucket: in its region, with good credentials, each request once."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, InvalidRegionError
from botocore.session import Session

from socratic_bench.errors import UsageError
from socratic_bench.models.bedrock.credentials import (
    CredentialsError,
    learn_credentials,
    make_ready,
)
from socratic_bench.models.bedrock.data import make_client, new_session
from socratic_bench.models.bedrock.transport import UnsendableError
from socratic_bench.storage.bucket_faults import SDK_ERRORS, is_expired, named_region

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
