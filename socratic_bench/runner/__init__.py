"""One run, from configuration to result: play, judge, sum up, store, report."""

from socratic_bench.calling.cancel_token import CancelToken, in_time
from socratic_bench.runner.plan import Plan, prepare
from socratic_bench.runner.resume import document_entries, earlier_config, stored_config
from socratic_bench.runner.run import perform, run

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
