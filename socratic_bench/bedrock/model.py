"""A model on Bedrock as a `Model`: call, retry, remember what it refuses."""

from functools import partial
from typing import TYPE_CHECKING

from socratic_bench.bedrock.capabilities import capabilities_of
from socratic_bench.bedrock.connection import RENEWABLE, Connection
from socratic_bench.bedrock.kinds import FAULTS
from socratic_bench.bedrock.learned import Learned
from socratic_bench.bedrock.pace import Pace
from socratic_bench.bedrock.sending import Sender, Trail
from socratic_bench.bedrock.settings import explained
from socratic_bench.bedrock.surroundings import Options, Surroundings
from socratic_bench.errors import ModelError, Stopped
from socratic_bench.types import CallKey, Completion, Request

if TYPE_CHECKING:
    from types_boto3_bedrock_runtime import BedrockRuntimeClient


class BedrockModel:
    """One model id on one connection; calls may come from several threads."""

    def __init__(
        self,
        connection: Connection,
        model_id: str,
        *,
        pace: Pace,
        max_attempts: int,
        surroundings: Surroundings,
        options: Options | None = None,
    ) -> None:
        self.model_id = model_id
        self._connection = connection
        self._max_attempts = max_attempts
        self._around = surroundings
        options = options or Options()
        can = options.limit(capabilities_of(model_id))
        self._sends_metadata = bool(options.metadata)
        self._sender = Sender(
            connection,
            model_id,
            learned=Learned(model_id, can, notice=surroundings.notice),
            pace=pace,
            surroundings=surroundings,
            options=options,
        )

    def complete(self, request: Request, key: CallKey) -> Completion:
        """See `Model.complete`. An error carries the requests that were sent."""
        trail = Trail(key)
        try:
            return self._answer(request, trail)
        except Stopped as stopped:
            stopped.attempts = tuple(trail.attempts)
            raise
        except ModelError as error:
            error.attempts = tuple(trail.attempts)
            if hint := self._connection.hint(error, self.model_id):
                error.hint = hint
            raise

    def _answer(self, request: Request, trail: Trail) -> Completion:
        """The answer, at once or after retries; the last error if there is none."""
        begun_s = self._around.monotonic_s()
        try:
            return self._try(request, trail)
        except ModelError as failed:
            if not FAULTS[failed.code].retried:
                raise
            from socratic_bench.bedrock.retry import RETRY_WINDOW_S, retrying, try_again

            loop = retrying(
                max_attempts=self._max_attempts,
                sleep=partial(self._pause, trail),
                uniform=self._around.uniform,
                window_s=RETRY_WINDOW_S - (self._around.monotonic_s() - begun_s),
            )
            return try_again(failed, lambda: self._try(request, trail), loop)

    def _pause(self, trail: Trail, seconds: float) -> None:
        trail.wait_ms += seconds * 1000
        self._around.sleep(seconds)

    def _try(self, request: Request, trail: Trail) -> Completion:
        """One try of the retry budget; a field refused or a credential spent uses up none of it."""
        while True:
            client = self._connection.client
            try:
                return self._sender.send(client, request, trail)
            except ModelError as error:
                if trail.forgoes or self._renews(error, client, trail):
                    continue
                told = explained(error, request, trail.key, metadata=self._sends_metadata)
                if told is error:
                    raise
                raise told from error

    def _renews(self, error: ModelError, spent: "BedrockRuntimeClient", trail: Trail) -> bool:
        """Whether there are credentials to go on with; a call asks for them once."""
        if error.code not in RENEWABLE or trail.has_renewed:
            return False
        trail.has_renewed = True
        return self._connection.renew(spent)
