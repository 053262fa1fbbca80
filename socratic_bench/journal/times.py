"""How long a run's processes were at work, as the entries of its journal tell it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from socratic_bench.journal.figures import MOST

# What lies behind leaves a clock no room to go on.
LAST_YEAR = 9000


def read_moment(found: object) -> datetime:
    """A time of day as a journal has it. Raises `ValueError` or `TypeError` for anything else."""
    if not isinstance(found, str):
        raise TypeError("no text")
    moment = datetime.fromisoformat(found)
    if moment.tzinfo is None:
        raise ValueError("no time zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("no year that can be told in UTC") from error


def read_duration_s(found: object) -> float | None:
    """Seconds that can have passed; `None` for anything else, as clocks that were set back left."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if 0 <= found <= MOST else None


class Times:
    """Sums the processes up, each by the clock that nobody sets, up to its last entry.

    `latest` is the last time of day that any entry tells.
    """

    def __init__(self, started_at: datetime) -> None:
        self.latest = started_at
        self._began_at = started_at
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

    def take(self, entry: Mapping[str, Any]) -> None:
        """An entry of the process, which has been read before."""
        written_at = _written_at(entry)
        elapsed_s = read_duration_s(entry.get("elapsed_s"))
        if written_at:
            self._see(written_at)
            if elapsed_s is None:  # of an earlier version, which only had the time of day
                elapsed_s = read_duration_s((written_at - self._began_at).total_seconds())
        self._process_s = max(self._process_s, elapsed_s or 0.0)

    def _see(self, moment: datetime) -> None:
        if moment.year <= LAST_YEAR:
            self.latest = max(self.latest, moment)


def _written_at(entry: Mapping[str, Any]) -> datetime | None:
    """The time of day that an entry tells of its end, if it does."""
    kind = entry.get("kind")
    if kind == "asked":
        return read_moment(entry["at"])
    if kind == "answered":
        return read_moment(entry["completion"]["finished_at"])
    return read_moment(entry["completed_at"]) if kind == "end" else None
