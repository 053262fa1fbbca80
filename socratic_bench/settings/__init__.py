"""Flags and environment become one frozen configuration; every mistake is found, all at once."""

from socratic_bench.settings.composing import WholeConfig, composed, part_of
from socratic_bench.settings.core import (
    CALL_TIMEOUT_MAX_S,
    CALL_TIMEOUT_S,
    MAX_ATTEMPTS,
    MAX_SEED,
    MAX_TURNS,
    MOST_TURNS,
    CoreConfig,
)
from socratic_bench.settings.files import (
    MAX_STORED_BYTES,
    MAX_TEXT_BYTES,
    S3,
    absolute,
    is_folder,
    open_regular,
    read_bounded,
    read_open,
    read_system_prompt,
)
from socratic_bench.settings.judging import Gate
from socratic_bench.settings.loading import read_config
from socratic_bench.settings.problems import (
    NOTHING_TO_RESUME,
    model_problems,
    prefix_problems,
    typed,
)
from socratic_bench.settings.reader import Reader, Sources
from socratic_bench.settings.readers import BEDROCK, OFFLINE_REGION
from socratic_bench.settings.stored import (
    before,
    continued,
    editions,
    from_stored,
    to_plain,
    to_stored,
)
from socratic_bench.settings.table import Declared, Kind, fields_of, flag_names, foreign, table

__all__ = [
    "BEDROCK",
    "CALL_TIMEOUT_MAX_S",
    "CALL_TIMEOUT_S",
    "MAX_ATTEMPTS",
    "MAX_SEED",
    "MAX_STORED_BYTES",
    "MAX_TEXT_BYTES",
    "MAX_TURNS",
    "MOST_TURNS",
    "NOTHING_TO_RESUME",
    "OFFLINE_REGION",
    "S3",
    "CoreConfig",
    "Declared",
    "Gate",
    "Kind",
    "Reader",
    "Sources",
    "WholeConfig",
    "absolute",
    "before",
    "composed",
    "continued",
    "editions",
    "fields_of",
    "flag_names",
    "foreign",
    "from_stored",
    "is_folder",
    "model_problems",
    "open_regular",
    "part_of",
    "prefix_problems",
    "read_bounded",
    "read_config",
    "read_open",
    "read_system_prompt",
    "table",
    "to_plain",
    "to_stored",
    "typed",
]
