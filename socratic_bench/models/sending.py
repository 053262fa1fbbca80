"""Sends one request in a thread of its own, which is left behind once nobody waits for it."""

from functools import partial

from socratic_bench.concurrency import start_thread
from socratic_bench.models.cancel_token import CancelToken
from socratic_bench.ports.provider import Answer, AnswerTimeoutError, Provider
from socratic_bench.types import Request

# Added to a request's time, so that the provider's own timeouts, which tell more, come first.
GRACE_S = 1.0


def send_in_time(
    provider: Provider,
    model_id: str,
    request: Request,
    *,
    timeout_s: float,
    cancel_token: CancelToken,
) -> Answer:
    """The answer to the request.

    Raises what sending raises, `AnswerTimeoutError`, or what ends the run meanwhile.
    """
    sending = start_thread(partial(provider.send, model_id, request, timeout_s))
    try:
        return cancel_token.result(sending, timeout_s + GRACE_S)
    except TimeoutError as error:
        raise AnswerTimeoutError(model_id, timeout_s) from error
