"""Episodes of many items, played at once: the failure of one ends no other."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, overload

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.errors import ModelError
from socratic_bench.ports.benchmark import EpisodeContext, PlayItem
from socratic_bench.ports.provider import INVALID_REQUEST, Model
from socratic_bench.turns import Turn, Unscored, recorded_reply
from socratic_bench.types import REFUSED_STOPS, CallKey, Completion, Message, Request, Role

REFUSED = "refused"  # the reason why an item without a reply has no verdict
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
        return replace(turn, unscorable=Unscored(reason=REFUSED, message=message))

    def end(self, error: BaseException) -> None:
        """Play no more items; the first error counts."""
        with self._lock:
            self._ended = self._ended or error

    def finish(self) -> None:
        """After the last item: raise what ended the play, or how many items have no answer. An
        outage counts before a refusal, since it passes.
        """
        if self._ended:
            raise self._ended
        if not self._lost:
            return
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
        raise missing from first

    def _lose(self, index: int, error: ModelError) -> None:
        if error.end_reason not in _SINGLE_ITEM_FAILURES:
            self.end(error)
            return
        with self._lock:
            self._lost[index] = error
            self._n_lost_in_a_row += error.code != INVALID_REQUEST


class AnsweringModel(Struct, frozen=True):
    """A model that replies without words where a request is too long for it, or is refused by a
    filter. However often such an item is asked again, it would be refused again.
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
            if error.end_reason not in REFUSED_STOPS:
                raise
            last = error.attempts[-1] if error.attempts else None
            took_ms = last.duration_ms if last else 0.0
            took = timedelta(milliseconds=took_ms)
            return replace(
                recorded_reply("", error.end_reason),
                message=Message("assistant", ()),
                latency_ms=took_ms,
                attempts=error.attempts,
                finished_at=last.started_at + took if last else self.now(),
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

    @property
    def run_id(self) -> str | None:
        return self.outer.run_id

    def watched(self, listener: Callable[[Any], None]) -> Model:
        return AnsweringModel(self.outer.watched(listener), self.now)

    def check(self) -> None:
        self.outer.check()

    def store(self, name: str, body: bytes) -> None:
        self.outer.store(name, body)

    def wait_since(self, moment: datetime, seconds: float) -> None:
        self.outer.wait_since(moment, seconds)

    def publish(self, turn: Turn) -> None:
        self.outer.publish(turn)

    def play_items(self, play: PlayItem) -> None:
        self.outer.play_items(play)


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
