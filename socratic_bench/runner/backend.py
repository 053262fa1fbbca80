"""Connects a run to Bedrock, or to the endpoint that is embedded for runs without an account."""

import random
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from socratic_bench.benchmarks import RunConfig
from socratic_bench.errors import ModelError
from socratic_bench.ports import CostLimit, Model
from socratic_bench.runner.cancel_token import CancelToken
from socratic_bench.runner.clock import utc_now
from socratic_bench.settings import OFFLINE_REGION
from socratic_bench.types import CallKey, Completion, Request, Role

if TYPE_CHECKING:
    from socratic_bench.providers.bedrock.context import CallContext, Options
    from socratic_bench.providers.bedrock.session import Endpoint, SdkSession

ModelFactory = Callable[[str], Model]


class LazyModel(Struct, frozen=True):
    """A model that is connected to once it is asked something: what is remembered needs none."""

    model_id: str
    connect: Callable[[], ModelFactory]

    def complete(self, request: Request, key: CallKey) -> Completion:
        return self.connect()(self.model_id).complete(request, key)


def lazy_models(connect: Callable[[], ModelFactory]) -> ModelFactory:
    """Models that `connect` gives, each and all, at the first call that has to be made."""
    lock = threading.Lock()
    made: list[ModelFactory] = []

    def once() -> ModelFactory:
        with lock:
            if not made:
                made.append(connect())
            return made[0]

    return lambda model_id: LazyModel(model_id, once)


def early_session(
    config: RunConfig, environ: Mapping[str, str]
) -> "SdkSession | ModelError | None":
    """The SDK's session, opened before anything is written, so that what a prompt may hold of its
    credentials is masked there, too; or why there is none. `None` where variables alone tell them.
    """
    if config.offline or environ.get("AWS_ACCESS_KEY_ID"):
        return None
    from socratic_bench.providers.bedrock.session import open_session

    try:
        return open_session(_endpoint(config, None))
    except ModelError as error:
        return error


@contextmanager
def bedrock_models(
    config: RunConfig,
    cancel_token: CancelToken,
    context: "CallContext",
    session: "SdkSession | ModelError | None" = None,
    *,
    tested: Role,
) -> Iterator[ModelFactory]:
    """A factory of models by id, all on one client. Imports the SDK; makes no call yet.

    `context` is that of `call_context`, `session` what `early_session` gave, `tested` the role of
    the model under test.
    """
    if isinstance(session, ModelError):
        raise session
    from socratic_bench.providers.bedrock.context import Options

    options = Options.of(config, tested)
    if not config.offline:
        yield _factory(
            options, _endpoint(config, None), config.max_attempts, cancel_token, context, session
        )
        return
    from socratic_bench.emulator import Emulator, Settings

    with Emulator(Settings(any_model=True)) as emulator:
        endpoint = _endpoint(config, emulator.url)
        yield _factory(options, endpoint, config.max_attempts, cancel_token, context)


def call_context(
    cancel_token: CancelToken,
    notice: Callable[[str], None],
    cost_limit: CostLimit | None = None,
    *,
    now: Callable[[], datetime] = utc_now,
) -> "CallContext":
    """What the calls of a run take from it; `now` tells the time of day."""
    from socratic_bench.providers.bedrock.context import CallContext

    return CallContext(
        now=now,
        monotonic_s=cancel_token.monotonic_s,
        sleep=cancel_token.sleep_in_call,
        result=cancel_token.result_in_call,
        uniform=random.Random().uniform,
        notice=notice,
        cost_limit=cost_limit,
    )


def _factory(
    options: "Options",
    endpoint: "Endpoint",
    max_attempts: int,
    cancel_token: CancelToken,
    context: "CallContext",
    session: "SdkSession | None" = None,
) -> ModelFactory:
    from socratic_bench.providers.bedrock.connection import Connection
    from socratic_bench.providers.bedrock.model import BedrockModel
    from socratic_bench.providers.bedrock.rate_limiter import RateLimiter

    # A program of the user's own that gives credentials may take its time.
    opener = ThreadPoolExecutor(1, thread_name_prefix="open")
    opened = opener.submit(Connection, endpoint, notice=context.notice, session=session)
    opener.shutdown(wait=False)
    connection = cancel_token.result(opened)
    rate_limiter = RateLimiter(monotonic_s=context.monotonic_s, sleep=context.sleep)
    made: dict[str, Model] = {}

    def model(model_id: str) -> Model:
        if model_id not in made:
            made[model_id] = BedrockModel(
                connection,
                model_id,
                rate_limiter=rate_limiter,
                max_attempts=max_attempts,
                context=context,
                options=options,
            )
        return made[model_id]

    return model


def _endpoint(config: RunConfig, url: str | None) -> "Endpoint":
    from socratic_bench.providers.bedrock.session import Endpoint

    return Endpoint(
        region=config.region or OFFLINE_REGION,
        url=url,
        assume_role_arn=config.assume_role_arn,
        call_timeout_s=config.call_timeout_s,
    )
