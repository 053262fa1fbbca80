"""Records the calls of a run, so that another process can resume it."""

from socratic_bench.journal.identity import Identity
from socratic_bench.journal.log import Log
from socratic_bench.journal.replay_log import ReplayLog

__all__ = ["Identity", "Log", "ReplayLog"]
