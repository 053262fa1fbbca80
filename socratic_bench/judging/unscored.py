"""Why a judge's outcome is not known: its answer cannot be used, or it was never answered."""

from collections.abc import Sequence

from socratic_bench.errors import ModelError, Stopped
from socratic_bench.judging.verdict import Unreadable, raw_text
from socratic_bench.turns import Unscored
from socratic_bench.types import Completion


def unusable(found: Unreadable, last: Completion) -> Unscored:
    """Of an answer that holds no verdict; `last` is that answer."""
    return Unscored(
        reason=found.reason,
        message=f"The judge's answer cannot be used: {found.problem}",
        raw_reply=raw_text(last),
    )


def unanswered(error: ModelError | Stopped, calls: Sequence[Completion]) -> Unscored:
    """Of a call that failed, after the `calls` that were answered."""
    return Unscored(
        reason=error.end_reason,
        message=error.message,
        raw_reply=raw_text(calls[-1]) if calls else None,
        hints=error.hints,
    )
