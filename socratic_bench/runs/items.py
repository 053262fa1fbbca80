"""Episodes of many items, played at once: the failure of one ends no other."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import overload

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.concurrency import start_thread
from socratic_bench.errors import ModelError
from socratic_bench.models.cancel import CancelToken
from socratic_bench.ports.benchmark import EpisodeContext, PlayItem
from socratic_bench.ports.provider import INVALID_REQUEST, Model
from socratic_bench.runs.prepare import Plan
from socratic_bench.turns import Turn, Unscored
from socratic_bench.types import CONTEXT_WINDOW, CallKey, Completion, Message, Request, Role

# Failures that concern one item alone; any other would befall every item.
_SINGLE_ITEM_FAILURES = ("unavailable", "refused_request")
# After so many failures in a row no further item is played: they would fail, too. Requests that are
# refused for what they say do not count.
MOST_LOST_IN_A_ROW = 100


class Items:
    """Which items of a run are played, failed or left; safe to use from several threads.

    `is_judged`: whether replies are shown to a judge.
    """

    def __init__(self, n_items: int, *, is_judged: bool) -> None:
        self._n_items = n_items
        self._is_judged = is_judged
        self._lock = threading.Lock()
        self._left = iter(range(n_items))
        self._n_played = 0
        self._n_lost_in_a_row = 0
        self._lost: dict[int, ModelError] = {}
        self._ended: BaseException | None = None

    def take(self) -> int | None:
        """The index of the next item to play; `None` if no more are played."""
        with self._lock:
            is_over = self._ended or self._n_lost_in_a_row >= MOST_LOST_IN_A_ROW
            return None if is_over else next(self._left, None)

    @contextmanager
    def playing(self, index: int) -> Iterator[None]:
        """Play an item in the block; its failure is recorded, and not raised."""
        try:
            yield
        except ModelError as error:
            self._lose(index, error)
        except BaseException as error:  # noqa: BLE001 -- raised by `finish`
            self.end(error)
        else:
            with self._lock:
                self._n_played += 1
                self._n_lost_in_a_row = 0

    def publishable(self, turn: Turn) -> Turn:
        """An item's turn as it is published: a reply without words cannot be scored."""
        is_wordless = turn.answered == "refused" and not turn.reply.message.text
        if not (self._is_judged and is_wordless) or turn.unscorable:
            return turn
        message = f"The model gave no reply ({turn.reply.stop_reason})."
        return replace(turn, unscorable=Unscored(reason="refused", message=message))

    def end(self, error: BaseException) -> None:
        """Play no more items; the first error counts."""
        with self._lock:
            self._ended = self._ended or error

    def finish(self) -> None:
        """After the last item: raise what ended the play, or how many items have no answer."""
        if self._ended:
            raise self._ended
        if self._lost:
            raise self._missing()

    def _lose(self, index: int, error: ModelError) -> None:
        if error.end_reason not in _SINGLE_ITEM_FAILURES:
            self.end(error)
            return
        with self._lock:
            self._lost[index] = error
            self._n_lost_in_a_row += error.code != INVALID_REQUEST

    def _missing(self) -> ModelError:
        """The error of missing items. An outage counts before a refusal, since it passes."""
        lost = [self._lost[index] for index in sorted(self._lost)]
        first = next((error for error in lost if error.end_reason == "unavailable"), lost[0])
        n_missing = self._n_items - self._n_played
        missing = ModelError(
            f"{n_missing} of {self._n_items} items have no answer. {first.message}",
            code="items_missing",
            end_reason=first.end_reason,
            retryable=first.retryable,
        )
        missing.hints = first.hints
        missing.__cause__ = first
        return missing


class AnsweringModel(Struct, frozen=True):
    """A model that replies without words where a request is too long for it.

    However often such an item is asked again, it would be refused again.
    """

    inner: Model
    now: Callable[[], datetime]

    @property
    def model_id(self) -> str:
        return self.inner.model_id

    def complete(self, request: Request, key: CallKey) -> Completion:
        try:
            return self.inner.complete(request, key)
        except ModelError as error:
            if error.end_reason != CONTEXT_WINDOW:
                raise
            return _wordless(error, self.now)


def _wordless(error: ModelError, now: Callable[[], datetime]) -> Completion:
    last = error.attempts[-1] if error.attempts else None
    took_ms = last.duration_ms if last else 0.0
    return Completion(
        message=Message("assistant", ()),
        stop_reason=CONTEXT_WINDOW,
        usage=None,
        latency_ms=took_ms,
        service_latency_ms=None,
        attempts=error.attempts,
        request_id=None,
        finished_at=last.started_at + timedelta(milliseconds=took_ms) if last else now(),
    )


class ItemContext(Struct, frozen=True):
    """What one item is played with. See `socratic_bench.ports.benchmark.EpisodeContext`."""

    outer: EpisodeContext
    now: Callable[[], datetime]

    @property
    def tested(self) -> Model:
        return AnsweringModel(self.outer.tested, self.now)

    def model(self, actor: Role, model_id: str | None = None) -> Model | None:
        model = self.outer.model(actor, model_id)
        return AnsweringModel(model, self.now) if model else None

    def publish(self, turn: Turn) -> None:
        self.outer.publish(turn)

    def play_items(self, play: PlayItem) -> None:
        self.outer.play_items(play)


class LiveEpisodeContext(Struct, frozen=True, kw_only=True):
    """See `socratic_bench.ports.benchmark.EpisodeContext`. At most `max_concurrency` items are
    played at once, each in one of the threads.
    """

    tested: Model
    models: Mapping[Role, Model]
    model_of: Callable[[str], Model]
    on_turn: Callable[[Turn], None]
    plan: Plan
    cancel_token: CancelToken
    now: Callable[[], datetime]

    def model(self, actor: Role, model_id: str | None = None) -> Model | None:
        return self.model_of(model_id) if model_id else self.models.get(actor)

    def publish(self, turn: Turn) -> None:
        self.on_turn(turn)

    def play_items(self, play: PlayItem) -> None:
        config, n_items = self.plan.config, self.plan.episode.opening.n_items or 0
        items = Items(n_items, is_judged=bool(self.plan.rubric and config.jurors))
        play_some = partial(self._play_some, items, play)
        try:
            n_players = min(config.max_concurrency, n_items)
            players = [start_thread(play_some) for _ in range(n_players)]
            for player in players:
                self.cancel_token.result(player)
        except BaseException as ended:
            items.end(ended)
            raise
        items.finish()

    def _play_some(self, items: Items, play: PlayItem) -> None:
        context = ItemContext(self, self.now)
        while (index := items.take()) is not None:
            with items.playing(index):
                self.publish(items.publishable(play(context, index)))


class TurnsSoFar(Sequence[Turn]):
    """The turns up to one of them, as they are known now. Those of an episode that publishes in any
    order may have gaps, which iterating and slices leave out.
    """

    def __init__(self, turns: Mapping[int, Turn], last: int) -> None:
        self._turns = turns
        self._last = last

    def __len__(self) -> int:
        return self._last + 1

    @overload
    def __getitem__(self, at: int) -> Turn: ...
    @overload
    def __getitem__(self, at: slice) -> list[Turn]: ...
    def __getitem__(self, at: int | slice) -> Turn | list[Turn]:
        found = range(len(self))[at]
        if isinstance(found, int):
            return self._turns[found]
        return [self._turns[index] for index in found if index in self._turns]

    def __iter__(self) -> Iterator[Turn]:
        return iter(self[:])
