"""Times as documents write them."""

from datetime import UTC, datetime


def utc(moment: datetime) -> str:
    """ISO 8601 in UTC, whole seconds, with a Z."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def milliseconds(duration_ms: float) -> float:
    """A duration in milliseconds, to the microsecond."""
    return round(duration_ms, 3)


def seconds(duration_s: float) -> float:
    """A duration in seconds, to the millisecond."""
    return round(duration_s, 3)
