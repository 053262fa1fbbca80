"""How long a run's processes were at work, as the entries of its journal tell it."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from socratic_bench.documents.journal import Answered, EndEntry, JournalEntry, RequestEntry, Timed
from socratic_bench.types import MOST

# Later times leave a clock no room to go on.
LAST_YEAR = 9000


def check_moments(value: object) -> None:
    """Raise `ValueError` for a time of day in a value that cannot be told in UTC."""
    if isinstance(value, datetime):
        try:
            value.astimezone(UTC)
        except OverflowError as error:
            raise ValueError("a year that cannot be told in UTC") from error
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            check_moments(getattr(value, name))
    elif isinstance(value, tuple):
        for item in value:
            check_moments(item)


def possible_s(seconds: float | None) -> float | None:
    """The seconds if they are possible; `None` for others, such as after a clock was set back."""
    return seconds if seconds is not None and 0 <= seconds <= MOST else None


class Times:
    """Sums up how long the processes took, by their monotonic clocks, each up to its last entry.

    `latest` is the last time of day that any entry tells, and as late as the processes took.
    """

    def __init__(self, started_at: datetime) -> None:
        self.latest = started_at
        self._started_at = self._began_at = started_at
        self._before_s = 0.0
        self._process_s = 0.0

    @property
    def worked_s(self) -> float:
        """What all processes took together."""
        return self._before_s + self._process_s

    def begin(self, at: datetime) -> None:
        """Another process goes on."""
        self._before_s, self._process_s = self.worked_s, 0.0
        self._began_at = at
        self._see(at)

    def take(self, entry: JournalEntry) -> None:
        """An entry of the process."""
        if not isinstance(entry, Timed):
            return
        written_at = _written_at(entry)
        elapsed_s = possible_s(entry.elapsed_s)
        if written_at:
            self._see(written_at)
            if elapsed_s is None:  # of an earlier version, which only had the time of day
                elapsed_s = possible_s((written_at - self._began_at).total_seconds())
        self._process_s = max(self._process_s, elapsed_s or 0.0)
        with suppress(OverflowError):
            self._see(self._started_at + timedelta(seconds=self.worked_s))

    def _see(self, moment: datetime) -> None:
        if moment.year <= LAST_YEAR:
            self.latest = max(self.latest, moment)


def _written_at(entry: Timed) -> datetime | None:
    """The time of day that an entry tells of its end, if it does."""
    match entry:
        case RequestEntry():
            return entry.at
        case Answered():
            return entry.completion.finished_at
        case EndEntry():
            return entry.completed_at
        case _:
            return None
