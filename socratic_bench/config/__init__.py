"""Flags and environment become one frozen `RunConfig`; every mistake is found here, all at once."""

from socratic_bench.config.files import (
    MAX_STORED_BYTES,
    MAX_TEXT_BYTES,
    open_regular,
    read_bounded,
    read_open,
)
from socratic_bench.config.loading import OFFLINE_REGION, read_config
from socratic_bench.config.reader import Sources
from socratic_bench.config.run_config import (
    DEFAULT_JUDGE_MODEL,
    MAX_SEED,
    MAX_TURNS,
    PRESSURES,
    Gate,
    Pressure,
    RunConfig,
    prefix_problems,
)
from socratic_bench.config.stored import continued, from_stored, to_plain, to_stored

__all__ = [
    "DEFAULT_JUDGE_MODEL",
    "MAX_SEED",
    "MAX_STORED_BYTES",
    "MAX_TEXT_BYTES",
    "MAX_TURNS",
    "OFFLINE_REGION",
    "PRESSURES",
    "Gate",
    "Pressure",
    "RunConfig",
    "Sources",
    "continued",
    "from_stored",
    "open_regular",
    "prefix_problems",
    "read_bounded",
    "read_config",
    "read_open",
    "to_plain",
    "to_stored",
]
