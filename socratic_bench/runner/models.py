"""What a benchmark plays on: models whose calls are counted and can be ended."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress

from msgspec import Struct, convert

from socratic_bench.documents.encoding import concealed
from socratic_bench.documents.plain import plain_keys
from socratic_bench.documents.usage import RoleUsage
from socratic_bench.errors import BenchError, ModelError
from socratic_bench.journal import Log, ReplayLog
from socratic_bench.journal.codec import StoredCompletion, request_sha256
from socratic_bench.ports import CostLimit, Model, Reservation
from socratic_bench.runner.cancel_token import CancelToken
from socratic_bench.turns import Turn
from socratic_bench.types import Attempt, CallKey, Completion, Request, Role

# How long a request waits at most until a store has noted it.
NOTED_WITHIN_S = 2.0


class UsageTracker:
    """Every call that ended, by role; safe to use from several threads."""

    def __init__(self, roles: Sequence[Role]) -> None:
        self._lock = threading.Lock()
        self._completions: dict[Role, list[Completion]] = {role: [] for role in roles}
        self._failed: dict[Role, list[Attempt]] = {role: [] for role in roles}
        self._under_way = 0
        self._settled = threading.Condition(self._lock)

    @contextmanager
    def call(self) -> Iterator[None]:
        """A call is under way."""
        with self._lock:
            self._under_way += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1
                self._settled.notify_all()

    def settle(self, timeout_s: float) -> None:
        """Wait until no call is under way: when a run is ended, each still notes its attempts."""
        with self._lock:
            self._settled.wait_for(lambda: self._under_way == 0, timeout_s)

    def add(self, role: Role, completion: Completion) -> None:
        with self._lock:
            self._completions[role].append(completion)

    def add_failed(self, role: Role, *attempts: Attempt) -> None:
        with self._lock:
            self._failed[role].extend(attempts)

    def tallies(self) -> Mapping[Role, RoleUsage]:
        with self._lock:
            return {
                role: RoleUsage(completions=tuple(answered), failed=tuple(self._failed[role]))
                for role, answered in self._completions.items()
            }


class CountedModel(Struct, frozen=True):
    """A model whose calls go into the ledger, whether they answer or fail."""

    inner: Model
    usage_tracker: UsageTracker
    on_call: Callable[[CallKey], None]

    @property
    def model_id(self) -> str:
        return self.inner.model_id

    def complete(self, request: Request, key: CallKey) -> Completion:
        self.on_call(key)
        with self.usage_tracker.call():
            try:
                completion = self.inner.complete(request, key)
            except BenchError as error:
                self.usage_tracker.add_failed(key.role, *error.attempts)
                raise
            self.usage_tracker.add(key.role, completion)
            return completion


class ReplayModel(Struct, frozen=True):
    """A model that answers from memory what was answered before, even while the run is ending."""

    inner: Model
    replay_log: ReplayLog
    usage_tracker: UsageTracker

    @property
    def model_id(self) -> str:
        return self.inner.model_id

    def complete(self, request: Request, key: CallKey) -> Completion:
        if not self.replay_log.n_answers:
            return self.inner.complete(request, key)
        try:
            remembered = self.replay_log.recall(request_sha256(request), key)
        except ModelError as error:
            self.usage_tracker.add_failed(key.role, *error.attempts)
            raise
        if remembered is None:
            return self.inner.complete(request, key)
        self.usage_tracker.add(key.role, remembered)
        return remembered


class GuardedModel(Struct, frozen=True):
    """A judge that is asked nothing more once the run is ending, which the journal is told of."""

    inner: Model
    cancel_token: CancelToken

    @property
    def model_id(self) -> str:
        return self.inner.model_id

    def complete(self, request: Request, key: CallKey) -> Completion:
        self.cancel_token.check()
        return self.inner.complete(request, key)


class LoggedModel(Struct, frozen=True):
    """A model whose calls are logged when they end, so that none is made twice."""

    inner: Model
    log: Log

    @property
    def model_id(self) -> str:
        return self.inner.model_id

    def complete(self, request: Request, key: CallKey) -> Completion:
        sha256 = request_sha256(request)
        try:
            completion = self.inner.complete(request, key)
        except BenchError as error:
            self.log.failed(key, sha256, error)
            raise
        kept = convert(concealed(plain_keys(StoredCompletion.of(completion))), StoredCompletion)
        self.log.answered(key, sha256, kept)
        # What can be kept is what counts, so that a resumed run sees what this one saw.
        return kept.completion


class NotedCostLimit(Struct, frozen=True):
    """Notes each request before it is sent, and again if it fails: should the process be killed, a
    later one knows what may be on the bill. See `socratic_bench.ports.CostLimit`.

    `result` is `CancelToken.result_in_call`: what a store has not yet taken is waited for a moment.
    """

    log: Log
    result: Callable[[Future[None], float], object]
    inner: CostLimit | None = None

    def reserve(self, model_id: str, request: Request, key: CallKey) -> Reservation:
        reservation = self.inner.reserve(model_id, request, key) if self.inner else None
        self.log.asked(key, request)
        with suppress(TimeoutError):
            for write in self.log.writes():
                self.result(write, NOTED_WITHIN_S)
        return _Noted(self.log, key, reservation)


class _Noted(Struct, frozen=True):
    log: Log
    key: CallKey
    inner: Reservation | None

    def answered(self, completion: Completion) -> None:
        if self.inner:
            self.inner.answered(completion)

    def failed(self, attempt: Attempt) -> None:
        self.log.attempted(self.key, attempt)
        if self.inner:
            self.inner.failed(attempt)


class CancellableModel(Struct, frozen=True):
    """A model whose caller stops waiting at once when the run ends, whatever the call is doing."""

    inner: Model
    pool: ThreadPoolExecutor
    cancel_token: CancelToken

    @property
    def model_id(self) -> str:
        return self.inner.model_id

    def complete(self, request: Request, key: CallKey) -> Completion:
        self.cancel_token.check()
        return self.cancel_token.result(self.pool.submit(self.inner.complete, request, key))


class LiveEpisodeContext(Struct, frozen=True):
    """See `socratic_bench.ports.EpisodeContext`."""

    tested: Model
    models: Mapping[Role, Model]
    on_turn: Callable[[Turn], None]

    def model(self, actor: Role) -> Model | None:
        return self.models.get(actor)

    def publish(self, turn: Turn) -> None:
        self.on_turn(turn)
