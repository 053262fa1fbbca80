"""What a sweep has sent in the last minute before it goes on: its targets hold for that, too."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from socratic_bench.catalogue.bounds import most_input_tokens
from socratic_bench.documents.sweep import CellRow
from socratic_bench.errors import BenchError
from socratic_bench.journal import ReplayLog
from socratic_bench.journal.replay_log import LOST
from socratic_bench.models.journaling import NOTED_WITHIN_S
from socratic_bench.models.rate_targets import REMEMBERED_S, SentRequest
from socratic_bench.settings import BEDROCK
from socratic_bench.store_ports import Entry
from socratic_bench.studies.sweep.request import SweepRequest
from socratic_bench.types import Attempt, Completion


def recently_ended(rows: Iterable[CellRow], now: datetime) -> Iterator[str]:
    """The ids of the runs that may have sent something in the last minute, and have ended."""
    since = now - timedelta(seconds=REMEMBERED_S + 1)  # rows have whole seconds
    return (row.run_id for row in rows if datetime.fromisoformat(row.completed_at) >= since)


def sent_requests(journals: Iterable[Sequence[Entry]]) -> list[SentRequest]:
    """All requests that the journals tell. A run whose journal cannot be read says so itself once
    it is to go on.
    """
    return [one for entries in journals for one in _of_journal(entries)]


def with_look(sent: Sequence[SentRequest], asked: SweepRequest) -> list[SentRequest]:
    """With the requests of the look at all models, which no journal tells: each process has had one
    by the time of its last request.
    """
    is_looked_at = asked.settings.strict or not asked.grid.base.offline
    if not (sent and is_looked_at):
        return [*sent]
    from socratic_bench.runs.doctor_calls import distinct
    from socratic_bench.studies.sweep.targets import targets_of

    at = max(one.at for one in sent)
    look = [
        SentRequest(
            provider=target.config.provider,
            region=target.config.region or "",
            model_id=target.model_id,
            at=at,
            n_tokens=most_input_tokens(target.request) + target.request.config.max_tokens,
        )
        for target in distinct(targets_of(asked))
    ]
    return [*sent, *look]


def _of_journal(entries: Sequence[Entry]) -> Iterator[SentRequest]:
    with suppress(BenchError):
        log = ReplayLog(entries)
        where = log.header.config
        for attempt, answer in log.requests():
            if attempt.model_id:
                yield SentRequest(
                    provider=str(where.get("provider", BEDROCK)),
                    region=str(where.get("region") or ""),
                    model_id=attempt.model_id,
                    at=_sent_at(attempt),
                    n_tokens=_n_tokens(attempt, answer),
                )


def _sent_at(attempt: Attempt) -> datetime:
    """No later than then: a request without an outcome was noted before it was sent."""
    is_lost = attempt.error == LOST
    return attempt.started_at + timedelta(seconds=NOTED_WITHIN_S if is_lost else 0.0)


def _n_tokens(attempt: Attempt, answer: Completion | None) -> int:
    if answer and answer.usage:
        return answer.usage.input_tokens + answer.usage.output_tokens
    return (attempt.input_tokens_at_most or 0) + (attempt.output_tokens_at_most or 0)
