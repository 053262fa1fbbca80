"""One run, from configuration to result: play, judge, sum up, store, report."""

from socratic_bench.models.cancel_token import CancelToken, in_time
from socratic_bench.runs.prepare import Plan, prepare
from socratic_bench.runs.resume import document_entries, earlier_config, stored_config
from socratic_bench.runs.run import perform, run

__all__ = [
    "CancelToken",
    "Plan",
    "document_entries",
    "earlier_config",
    "in_time",
    "perform",
    "prepare",
    "run",
    "stored_config",
]
