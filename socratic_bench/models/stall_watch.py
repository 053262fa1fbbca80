"""Stops a model of which nothing is answered, however often it is called."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from socratic_bench.errors import ModelError
from socratic_bench.models.bedrock.error_table import ERROR_KINDS
from socratic_bench.models.cancel_token import CancelToken
from socratic_bench.models.rate_window import (
    ACTIVE,
    STALLED,
    SUCCEEDED_AT_WORK_US,
    TOUCHED_US,
    US,
    WORK_US,
)
from socratic_bench.models.shared_rows import MOST_PROCESSES, Rows

STALL_S = 900.0
PAUSE_US = 60 * US
STALL = "stalled"  # the kind of error that its runs end by


class StallWatch:
    """Counts the time in which calls of a model are under way, in its row, and ends all runs that
    call it once nothing was answered for `stall_s` of that time; `None`: never.

    Of a time without a call no more than a minute counts, so that a model may rest.
    """

    def __init__(
        self,
        label: str,
        row: memoryview,
        rows: Rows,
        *,
        stall_s: float | None,
        monotonic_s: Callable[[], float],
    ) -> None:
        self._label, self._row, self._rows = label, row, rows
        self._stall_s = stall_s
        self._monotonic_s = monotonic_s
        self._calling: list[CancelToken] = []

    @contextmanager
    def calling(self, cancel_token: CancelToken) -> Iterator[None]:
        """Around a call, with its waits and retries, of a run that the token ends."""
        with self._rows.locked():
            self.touch(begins=True)
            self._row[ACTIVE + self._rows.place] += 1
            self._calling.append(cancel_token)
        try:
            self.end_if_stalled()
            cancel_token.check()
            yield
        finally:
            with self._rows.locked():
                self.touch()
                self._row[ACTIVE + self._rows.place] -= 1
                self._calling.remove(cancel_token)

    def touch(self, *, begins: bool = False) -> None:
        """Count the time until now, if some process had a call under way; the row is locked.

        Once a call `begins` again, a pause counts, too, for as long as a minute's limit does.
        """
        now_us, row = round(self._monotonic_s() * US), self._row
        gone_us = max(0, now_us - row[TOUCHED_US])
        if gone_us > PAUSE_US:
            for place in filter(self._rows.is_gone, range(MOST_PROCESSES)):
                row[ACTIVE + place] = 0
        if any(row[ACTIVE : ACTIVE + MOST_PROCESSES].tolist()):
            row[WORK_US] += gone_us
        elif not begins:
            return
        elif row[TOUCHED_US]:
            row[WORK_US] += min(gone_us, PAUSE_US)
        row[TOUCHED_US] = now_us

    def succeeded(self) -> None:
        """A request was answered; the row is locked."""
        self.touch()
        self._row[SUCCEEDED_AT_WORK_US] = self._row[WORK_US]

    def failed(self) -> None:
        """A request was not; the row is locked."""
        self.touch()
        in_vain_us = self._row[WORK_US] - self._row[SUCCEEDED_AT_WORK_US]
        if self._stall_s is not None and in_vain_us >= self._stall_s * US:
            self._row[STALLED] = 1

    def end_if_stalled(self) -> None:
        """End all runs of this process that call the model, if it has stalled in some process."""
        if self._row[STALLED]:
            for cancel_token in tuple(self._calling):
                cancel_token.end(self._error())

    def _error(self) -> ModelError:
        minutes = (self._stall_s or 0.0) / 60
        return ModelError(
            f"{self._label} was stopped: it was called for {minutes:g} min, and none of its "
            "requests was answered.",
            code=STALL,
            end_reason=ERROR_KINDS[STALL].end_reason,
            retryable=True,
            hint=ERROR_KINDS[STALL].hint,
        )
