"""Settings of a run: one table of them becomes flags, variables, `RunConfig` and documents.

Every mistake in flags, environment and values is found, all at once.
"""

from socratic_bench.settings.config import WholeConfig as WholeConfig
from socratic_bench.settings.config import compose as compose
from socratic_bench.settings.config import continued as continued
from socratic_bench.settings.config import from_stored as from_stored
from socratic_bench.settings.config import part_of as part_of
from socratic_bench.settings.config import to_plain as to_plain
from socratic_bench.settings.config import to_stored as to_stored
from socratic_bench.settings.core import CALL_TIMEOUT_S as CALL_TIMEOUT_S
from socratic_bench.settings.core import MAX_ATTEMPTS as MAX_ATTEMPTS
from socratic_bench.settings.core import MAX_SEED as MAX_SEED
from socratic_bench.settings.core import MAX_TURNS as MAX_TURNS
from socratic_bench.settings.core import MOST_TURNS as MOST_TURNS
from socratic_bench.settings.core import CoreConfig as CoreConfig
from socratic_bench.settings.core import Gate as Gate
from socratic_bench.settings.endpoints import BEDROCK as BEDROCK
from socratic_bench.settings.endpoints import IMPORTED as IMPORTED
from socratic_bench.settings.endpoints import models_of as models_of
from socratic_bench.settings.endpoints import provider_of as provider_of
from socratic_bench.settings.files import MAX_STORED_BYTES as MAX_STORED_BYTES
from socratic_bench.settings.files import MAX_TEXT_BYTES as MAX_TEXT_BYTES
from socratic_bench.settings.files import S3 as S3
from socratic_bench.settings.files import absolute as absolute
from socratic_bench.settings.files import is_folder as is_folder
from socratic_bench.settings.files import open_regular as open_regular
from socratic_bench.settings.files import read_bounded as read_bounded
from socratic_bench.settings.files import read_open as read_open
from socratic_bench.settings.files import read_system_prompt as read_system_prompt
from socratic_bench.settings.problems import EMULATOR_PREFIX as EMULATOR_PREFIX
from socratic_bench.settings.problems import NOTHING_TO_RESUME as NOTHING_TO_RESUME
from socratic_bench.settings.problems import model_problems as model_problems
from socratic_bench.settings.problems import nearest_models as nearest_models
from socratic_bench.settings.problems import prefix_problems as prefix_problems
from socratic_bench.settings.reader import OFFLINE_REGION as OFFLINE_REGION
from socratic_bench.settings.reader import Reader as Reader
from socratic_bench.settings.reader import Sources as Sources
from socratic_bench.settings.reader import read_config as read_config
from socratic_bench.settings.table import Kind as Kind
from socratic_bench.settings.table import SettingField as SettingField
from socratic_bench.settings.table import convert_values as convert_values
from socratic_bench.settings.table import fields_of as fields_of
from socratic_bench.settings.table import flag_names as flag_names
from socratic_bench.settings.table import (
    settings_of_other_benchmarks as settings_of_other_benchmarks,
)
from socratic_bench.settings.table import table as table
