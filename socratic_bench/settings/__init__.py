"""Settings of a run: one table of them becomes flags, variables, `RunConfig` and documents.

Every mistake in flags, environment and values is found, all at once.
"""

from socratic_bench.settings.config import (
    WholeConfig,
    compose,
    continued,
    from_stored,
    part_of,
    to_plain,
    to_stored,
)
from socratic_bench.settings.core import (
    CALL_TIMEOUT_MAX_S,
    CALL_TIMEOUT_S,
    MAX_ATTEMPTS,
    MAX_SEED,
    MAX_TURNS,
    MOST_TURNS,
    CoreConfig,
    Gate,
)
from socratic_bench.settings.endpoints import BEDROCK, models_of, provider_of
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
from socratic_bench.settings.problems import (
    EMULATOR_PREFIX,
    NOTHING_TO_RESUME,
    model_problems,
    nearest_models,
    prefix_problems,
)
from socratic_bench.settings.reader import OFFLINE_REGION, Reader, Sources, read_config
from socratic_bench.settings.table import (
    Kind,
    SettingField,
    convert_values,
    fields_of,
    flag_names,
    settings_of_other_benchmarks,
    table,
)

__all__ = [
    "BEDROCK",
    "CALL_TIMEOUT_MAX_S",
    "CALL_TIMEOUT_S",
    "EMULATOR_PREFIX",
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
    "Gate",
    "Kind",
    "Reader",
    "SettingField",
    "Sources",
    "WholeConfig",
    "absolute",
    "compose",
    "continued",
    "convert_values",
    "fields_of",
    "flag_names",
    "from_stored",
    "is_folder",
    "model_problems",
    "models_of",
    "nearest_models",
    "open_regular",
    "part_of",
    "prefix_problems",
    "provider_of",
    "read_bounded",
    "read_config",
    "read_open",
    "read_system_prompt",
    "settings_of_other_benchmarks",
    "table",
    "to_plain",
    "to_stored",
]
