"""The calls of a run, recorded so that another process can resume it.

`Log` writes them, `ReplayLog` reads them back, `Identity` says which runs are the same.
"""

from socratic_bench.journal.identity import Identity
from socratic_bench.journal.log import Log
from socratic_bench.journal.replay import ReplayLog

__all__ = ["Identity", "Log", "ReplayLog"]
