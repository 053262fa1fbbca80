"""One run, from configuration to result. `run.py` tells it on one page.

A run is prepared (`prepare`), begun or resumed in its stores (`resume`), played with its models
(`models`, `items`) while its turns are judged (`judge_turns`), and summed up (`finish`). A dry run
simulates it, and the doctor checks beforehand what it needs.
"""

from socratic_bench.models.cancel import CancelToken, run_cancellable
from socratic_bench.runs.prepare import Plan, prepare
from socratic_bench.runs.resume import document_entries, earlier_config, stored_config
from socratic_bench.runs.run import perform, run

__all__ = [
    "CancelToken",
    "Plan",
    "document_entries",
    "earlier_config",
    "perform",
    "prepare",
    "run",
    "run_cancellable",
    "stored_config",
]
