"""What one model was sent in the last minute, and when the next request may be sent.

No minute has more requests or tokens than its target, wherever it begins. Tokens and requests are
counted in buckets of a quarter of a second, and a bucket counts until the last moment of it is more
than a minute ago. Requests are also spaced, as by the generic cell rate algorithm (ITU-T I.371),
so that a service that allows no bursts refuses none.

All state is whole numbers in a row, which several processes may share: see `shared_rows`.
"""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from socratic_bench.documents.throughput import ModelThroughput
from socratic_bench.models.shared_rows import MOST_PROCESSES

US = 1_000_000
BUCKET_US = US // 4
# A request arrives later than it is sent: by up to half a second no minute is over the target.
LATE_US = US // 2
# A bucket counts for so many: a minute, that half second, and the bucket itself.
COUNTED = (60 * US + LATE_US) // BUCKET_US + 1
N_BUCKETS = 256
# Slots are this much further apart than the target says, so that none arrives too soon.
SPACING = 1.01
# So large a share of a minute's requests may be sent at once: what was left unsent for a moment
# is made up for.
BURST_SHARE = 1 / 40

PACE_US, REQUESTS, TOKENS, THROTTLED, WAITED_US = range(1, 6)
WORK_US, TOUCHED_US, SUCCEEDED_AT_WORK_US, STALLED = range(6, 10)
ACTIVE = 10
ASKED_US = ACTIVE + MOST_PROCESSES
SEEN_US = ASKED_US + MOST_PROCESSES
NUMBERS = SEEN_US + MOST_PROCESSES
SENT = NUMBERS + N_BUCKETS
USED = SENT + N_BUCKETS
WIDTH = USED + N_BUCKETS

PerMinute = Annotated[int, Meta(ge=1)]


class RateTarget(Struct, frozen=True, kw_only=True):
    """The most that is sent in any minute: requests of all actors, and tokens, input and output.

    It holds for `model` in `region`, each region by itself; `None`: for all that no other target
    names.
    """

    model: str | None = None
    region: str | None = None
    requests_per_minute: PerMinute | None = None
    tokens_per_minute: PerMinute | None = None

    def is_of(self, model: str, region: str) -> bool:
        """Whether it may hold for a model in a region."""
        return self.model in (None, model) and self.region in (None, region)

    @property
    def n_named(self) -> tuple[bool, bool]:
        """What it names; the model says more than the region."""
        return self.model is not None, self.region is not None

    @property
    def is_limit(self) -> bool:
        """Whether it bounds anything."""
        return self.requests_per_minute is not None or self.tokens_per_minute is not None

    @property
    def slot_us(self) -> int:
        """How far requests are apart."""
        per_minute = self.requests_per_minute
        return round(SPACING * 60 * US / per_minute) if per_minute else 0

    @property
    def burst_us(self) -> int:
        """How much earlier than its slot a request may be sent."""
        return (max(1, int((self.requests_per_minute or 0) * BURST_SHARE)) - 1) * self.slot_us


def target_of(targets: Iterable[RateTarget], model: str, region: str) -> RateTarget:
    """The one that holds for a model in a region: of several the one that names more."""
    fitting = [one for one in targets if one.is_of(model, region)]
    return max(fitting, key=lambda one: one.n_named, default=RateTarget())


class RateWindow(Struct, frozen=True):
    """The last minute of a model, in its row; whoever uses it has locked the row.

    Moments are whole microseconds.
    """

    row: memoryview
    target: RateTarget

    def wait_us(self, now_us: int, n_tokens: int) -> int:
        """How long from now until a request fits, as far as is known; 0: it fits.

        One that is larger than the whole target fits once there are no others.
        """
        early_us: int = self.row[PACE_US] - self.target.burst_us - now_us
        return early_us if early_us > 0 else self._window_wait_us(now_us, n_tokens)

    def take(self, now_us: int, n_tokens: int) -> int:
        """Count a request as sent now; the bucket that it is in."""
        if self.target.requests_per_minute:
            self.row[PACE_US] = max(self.row[PACE_US], now_us) + self.target.slot_us
        bucket = now_us // BUCKET_US
        self.add(bucket, 1, n_tokens)
        return bucket

    def remember(self, sent_us: int, n_tokens: int) -> None:
        """Count a request that was sent earlier: the next one keeps its distance from it."""
        if self.target.requests_per_minute:
            self.row[PACE_US] = max(self.row[PACE_US], sent_us + self.target.slot_us)
        self.add(sent_us // BUCKET_US, 1, n_tokens)

    def add(self, bucket: int, n_requests: int, n_tokens: int) -> None:
        """Count more, or less, in a bucket; nothing in one that is over."""
        row, at = self.row, bucket % N_BUCKETS
        if row[NUMBERS + at] > bucket:
            return
        if row[NUMBERS + at] != bucket:
            row[SENT + at] = row[USED + at] = 0
            row[NUMBERS + at] = bucket
        row[SENT + at] += n_requests
        row[USED + at] += n_tokens

    def is_over(self, bucket: int, now_us: int) -> bool:
        """Whether a bucket counts no more."""
        return now_us // BUCKET_US - bucket >= COUNTED

    def report(self, model: str, region: str) -> ModelThroughput:
        """What it came to so far."""
        row, target = self.row, self.target
        minutes = max(row[WORK_US] / US / 60, 1.0)
        return ModelThroughput(
            model=model,
            region=region or None,
            target_rpm=target.requests_per_minute,
            target_tpm=target.tokens_per_minute,
            rpm=_rounded(row[REQUESTS] / minutes) if row[REQUESTS] else None,
            tpm=_rounded(row[TOKENS] / minutes) if row[REQUESTS] else None,
            requests=row[REQUESTS],
            tokens=row[TOKENS],
            throttled=row[THROTTLED],
            waited_s=_rounded(row[WAITED_US] / US),
            work_s=_rounded(row[WORK_US] / US),
            stalled=bool(row[STALLED]),
        )

    def _window_wait_us(self, now_us: int, n_tokens: int) -> int:
        target = self.target
        most_requests, most_tokens = target.requests_per_minute, target.tokens_per_minute
        current, row = now_us // BUCKET_US, self.row
        numbers = row[NUMBERS : NUMBERS + N_BUCKETS].tolist()
        counted = [at for at, one in enumerate(numbers) if current - COUNTED < one <= current]
        n_sent, n_used = (sum(row[first + at] for at in counted) for first in (SENT, USED))
        requests_over = n_sent + 1 - most_requests if most_requests else 0
        tokens_over = min(n_used + n_tokens - most_tokens, n_used) if most_tokens else 0
        wait_us = 0
        for at in sorted(counted, key=numbers.__getitem__):
            if requests_over <= 0 and tokens_over <= 0:
                break
            requests_over -= row[SENT + at]
            tokens_over -= row[USED + at]
            wait_us = (numbers[at] + COUNTED) * BUCKET_US - now_us
        return max(0, wait_us)


def _rounded(value: float) -> float:
    return round(value, 3)
