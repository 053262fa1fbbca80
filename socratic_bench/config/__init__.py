"""Flags and environment become one frozen `RunConfig`; every mistake is found here, all at once."""

from socratic_bench.config.loading import OFFLINE_REGION, read_config
from socratic_bench.config.reader import Sources
from socratic_bench.config.run_config import DEFAULT_JUDGE_MODEL, Gate, RunConfig

__all__ = [
    "DEFAULT_JUDGE_MODEL",
    "OFFLINE_REGION",
    "Gate",
    "RunConfig",
    "Sources",
    "read_config",
]
