"""How long a server asks the client to wait."""

from email.utils import parsedate_to_datetime


def retry_after_s(headers: dict[str, str]) -> float | None:
    """Seconds that the server asks to wait: `x-amz-retry-after` (ms), else `retry-after` (s)."""
    for name, unit in (("x-amz-retry-after", 0.001), ("retry-after", 1.0)):
        try:
            wait = float(headers[name]) * unit
        except KeyError:
            continue
        except ValueError:
            wait = _until_s(headers[name], headers.get("date"))
        if 0 <= wait < float("inf"):
            return wait
    return None


def _until_s(when: str, now: str | None) -> float:
    """Seconds from one HTTP date to another, both by the server's clock; negative if unknown."""
    try:
        return (parsedate_to_datetime(when) - parsedate_to_datetime(now or "")).total_seconds()
    except (ValueError, TypeError):
        return -1.0
