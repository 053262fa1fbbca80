"""Models that send nothing: they are given the run's real requests and return expected replies."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from socratic_bench.catalogue.caching import Part, PrefixCache
from socratic_bench.models.bedrock.cache_points import caches_system
from socratic_bench.models.bedrock.capabilities import Capabilities, dropped_field
from socratic_bench.models.bedrock.observed import ObservedCapabilities, Options, ShapedRequest
from socratic_bench.models.bedrock.sizes import request_parts
from socratic_bench.models.bedrock.wire import Wire
from socratic_bench.models.budget import Budget, Reservation
from socratic_bench.models.call_errors import explained
from socratic_bench.runs.clock import utc_now
from socratic_bench.runs.dry_run.event_queue import EventQueue
from socratic_bench.runs.dry_run.latency_models import LatencyModels
from socratic_bench.runs.dry_run.reply_models import ReplyModel
from socratic_bench.types import JUDGE, CallKey, Completion, Request, Role, Usage

Sizes = Callable[[str, Request], Sequence[Part]]  # `Provider.sizes`


class SimulatedModel(Struct, kw_only=True):
    """See `socratic_bench.ports.Model`. Each call advances the event queue.

    `largest` is its largest request, of `most_tokens` estimated input tokens. `warms`: the first
    request writes the shared cache prefix, and the others wait for it.
    """

    model_id: str
    reply_model: ReplyModel
    scale: float
    options: Options
    event_queue: EventQueue
    latency_models: LatencyModels
    tested: Role
    sizes: Sizes | None
    cost_limit: Budget | None
    cache_minimum: int | None
    cache: PrefixCache
    seen: ObservedCapabilities
    largest: Wire | None = None
    most_tokens: int = 0
    warms: bool = False
    calls: dict[Role, list[Completion]] = field(default_factory=lambda: defaultdict(list))

    def complete(self, request: Request, key: CallKey) -> Completion:
        with self.event_queue.lock:
            return self._complete(request, key)

    def _complete(self, request: Request, key: CallKey) -> Completion:
        shaped, reservation = self._accepted(request, key)
        if key.role == JUDGE:
            self.warms = caches_system(request, self._can)
        said = self.reply_model.reply(shaped.arguments, request, key)
        completion = Completion(
            message=said.message,
            stop_reason=said.stop_reason,
            usage=self._usage(request, shaped.arguments, said.output_tokens),
            latency_ms=0.0,
            service_latency_ms=None,
            attempts=(),
            request_id=None,
            finished_at=utc_now(),
            served_tier=request.config.service_tier,
            streamed=shaped.is_streamed,
            model_id=self.model_id,
        )

        call_ms = self.latency_models.of(key.role).call_ms(completion)
        completion = replace(completion, latency_ms=call_ms)

        def ended() -> None:
            self.calls[key.role].append(completion)
            if reservation:
                reservation.answered(completion)

        self.event_queue.call(call_ms, ended)
        return completion

    def _usage(self, request: Request, arguments: Wire, output_tokens: int) -> Usage:
        parts = self._parts(request, arguments)
        tokens = sum(part.tokens for part in parts)
        if tokens > self.most_tokens:
            self.most_tokens, self.largest = tokens, arguments
        read, write = self.cache.use(parts, self.cache_minimum or self._can.cache_minimum)
        return Usage(
            input_tokens=tokens,
            output_tokens=output_tokens,
            cache_read_tokens=read,
            cache_write_tokens=write,
        )

    def _parts(self, request: Request, arguments: Wire) -> Sequence[Part]:
        if self.sizes:
            return self.sizes(self.model_id, request)
        return request_parts(arguments, scale=self.scale)

    def _accepted(self, request: Request, key: CallKey) -> tuple[ShapedRequest, Reservation | None]:
        """The request in the shape that the model takes, and what is reserved for it.

        Each refusal takes as long as the first byte of an answer; later requests know of it. Raises
        `ModelError` where nothing can be left out of what is refused.
        """
        refused: list[str] = []
        while True:
            limit = self.cost_limit
            reservation = limit.reserve(self.model_id, request, key) if limit else None
            shaped = self.seen.shaped(request, self.options, refused)
            kind = self.reply_model.refuses(shaped)
            if kind is None:
                return shaped, reservation
            dropped = dropped_field(kind.code, kind.message, shaped.can)
            if dropped:
                refused.append(dropped)
            learn = partial(self._learn, request, tuple(refused), reservation)
            self.event_queue.call(self.latency_models.of(key.role).first_token_ms, learn)
            if not dropped:
                raise explained(
                    kind.error,
                    kind.refused,
                    request,
                    is_tested=key.role == self.tested,
                    metadata=bool(self.options.metadata),
                )

    def _learn(
        self, request: Request, refused: Sequence[str], reservation: Reservation | None
    ) -> None:
        if reservation:  # what is refused costs nothing
            reservation.unsent()
        self.seen.learn(refused)
        self.warms = self.warms and caches_system(request, self._can)

    @property
    def _can(self) -> Capabilities:
        return self.options.limit(self.seen.now)
