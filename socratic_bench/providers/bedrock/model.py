"""A model on Bedrock as a `Model`: call, retry, remember what it refuses."""

from functools import partial
from typing import TYPE_CHECKING

from socratic_bench.errors import ModelError, Stopped
from socratic_bench.providers.bedrock.capabilities import capabilities_of
from socratic_bench.providers.bedrock.connection import RENEWABLE, Connection
from socratic_bench.providers.bedrock.context import CallContext, Options
from socratic_bench.providers.bedrock.kinds import ERROR_KINDS
from socratic_bench.providers.bedrock.observed import ObservedCapabilities
from socratic_bench.providers.bedrock.rate_limiter import RateLimiter
from socratic_bench.providers.bedrock.sending import CallState, Sender
from socratic_bench.providers.bedrock.settings import explained
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
        rate_limiter: RateLimiter,
        max_attempts: int,
        context: CallContext,
        options: Options | None = None,
    ) -> None:
        self.model_id = model_id
        self._connection = connection
        self._max_attempts = max_attempts
        self._context = context
        options = options or Options()
        can = options.limit(capabilities_of(model_id))
        self._options = options
        self._sender = Sender(
            connection,
            model_id,
            observed=ObservedCapabilities(model_id, can, notice=context.notice),
            rate_limiter=rate_limiter,
            context=context,
            options=options,
        )

    def complete(self, request: Request, key: CallKey) -> Completion:
        """See `Model.complete`. An error carries the requests that were sent."""
        state = CallState(key)
        try:
            return self._answer(request, state)
        except Stopped as stopped:
            stopped.attempts = tuple(state.attempts)
            raise
        except ModelError as error:
            error.attempts = tuple(state.attempts)
            if hint := self._connection.hint(error, self.model_id):
                error.hint = hint
            raise

    def _answer(self, request: Request, state: CallState) -> Completion:
        """The answer, at once or after retries; the last error if there is none."""
        begun_s = self._context.monotonic_s()
        try:
            return self._try(request, state)
        except ModelError as failed:
            if not ERROR_KINDS[failed.code].retried:
                raise
            from socratic_bench.providers.bedrock.retry import RETRY_WINDOW_S, retrying, try_again

            loop = retrying(
                max_attempts=self._max_attempts,
                sleep=partial(self._pause, state),
                uniform=self._context.uniform,
                window_s=RETRY_WINDOW_S - (self._context.monotonic_s() - begun_s),
            )
            return try_again(failed, lambda: self._try(request, state), loop)

    def _pause(self, state: CallState, seconds: float) -> None:
        state.wait_ms += seconds * 1000
        self._context.sleep(seconds)

    def _try(self, request: Request, state: CallState) -> Completion:
        """One try of the retry budget; a field refused or a credential spent uses up none of it."""
        while True:
            client = self._connection.client
            try:
                return self._sender.send(client, request, state)
            except ModelError as error:
                if state.drops or self._renews(error, client, state):
                    continue
                told = explained(
                    error,
                    request,
                    is_tested=state.key.role == self._options.tested,
                    metadata=bool(self._options.metadata),
                )
                if told is error:
                    raise
                raise told from error

    def _renews(self, error: ModelError, spent: "BedrockRuntimeClient", state: CallState) -> bool:
        """Whether there are credentials to go on with; a call asks for them once."""
        if error.code not in RENEWABLE or state.has_renewed:
            return False
        state.has_renewed = True
        return self._connection.renew(spent)
