"""Has a run's journal know of each request before it is sent, and of how each call ended."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

from msgspec import Struct

from socratic_bench.documents.journal import FailedAttemptEntry
from socratic_bench.errors import BenchError
from socratic_bench.journal import Log
from socratic_bench.models.events import (
    AttemptBegan,
    AttemptFailed,
    CallAnswered,
    CallEvent,
    CallFailed,
)

# How long a request waits at most until a store has noted it.
NOTED_WITHIN_S = 2.0


class JournalListener(Struct, frozen=True):
    """Writes the calls of a run down: should the process be killed, a later one knows what may be
    on the bill, and makes no call twice.

    `wait` is `CancelToken.result`: what a store has not yet taken is waited for a moment.
    """

    log: Log
    wait: Callable[[Future[None], float], object]

    def on_call(self, event: CallEvent) -> None:
        match event:
            case AttemptBegan():
                self.log.add_request(
                    event.key,
                    event.model_id,
                    input_tokens_at_most=event.input_tokens_at_most,
                    output_tokens_at_most=event.request.config.max_tokens,
                )
                with suppress(TimeoutError, BenchError):
                    for write in self.log.writes():
                        self.wait(write, NOTED_WITHIN_S)
            case AttemptFailed():
                self.log.add(
                    FailedAttemptEntry(key=event.key, attempt=event.attempt), durable=False
                )
            case CallAnswered():
                self.log.add_answer(event.key, event.request_sha256, event.stored)
            case CallFailed():
                self.log.add_failure(event.key, event.request_sha256, event.error)
            case _:
                pass
