"""Waits for one request's answer, and gives it up where nobody waits for it any longer."""

from functools import partial

from socratic_bench.calling.cancel_token import CancelToken
from socratic_bench.provider_ports import Answer, OverdueError, Provider, Sending
from socratic_bench.threads import RequestThreads
from socratic_bench.turnstile import Pass
from socratic_bench.types import Request

# What the wait for an answer has on top of a request's time, so that a provider's own timeouts,
# which tell more, come first.
GRACE_S = 1.0


def sent_in_time(  # noqa: PLR0913 -- what a request is sent with
    provider: Provider,
    model_id: str,
    request: Request,
    turn: Pass,
    *,
    timeout_s: float,
    threads: RequestThreads,
    cancel_token: CancelToken,
) -> Answer:
    """The answer, or raise what sending raises, `OverdueError`, or what ends the run meanwhile.

    The request has a thread of its own. If it is given up, its connection ends, and so the thread.
    `turn` is given back once it is on its way.
    """
    under_way = Sending()
    send = partial(under_way.run, partial(provider.send, model_id, request, timeout_s))
    if not provider.tells_when_sent:
        turn.give_back()
    sending = threads.submit(partial(turn.run, send))
    try:
        return cancel_token.result(sending, timeout_s + GRACE_S)
    except TimeoutError as error:
        if sending.done():
            return sending.result()
        raise OverdueError(model_id, timeout_s) from error
    finally:
        under_way.give_up()
