"""Flags and environment become one frozen `RunConfig`; every mistake is found here, all at once."""

from socratic_bench.config.loading import Sources, load_config
from socratic_bench.config.run_config import DEFAULT_JUDGE_MODEL, Gate, RunConfig

__all__ = ["DEFAULT_JUDGE_MODEL", "Gate", "RunConfig", "Sources", "load_config"]
