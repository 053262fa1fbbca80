"""The settings that name a data set, for benchmarks that read one."""

from pathlib import Path
from typing import Annotated

from socratic_bench.setting import Setting
from socratic_bench.settings import Reader

SHIPPED = "shipped"
HUB = "hf:"

Dataset = Annotated[
    str,
    Setting(
        "dialogue",
        "PLACE",
        "items: a file of JSON Lines, JSON, CSV or Parquet, hf:OWNER/NAME, or {default} (the "
        "default)",
        is_input=True,
    ),
]
Split = Annotated[
    str, Setting("dialogue", "NAME", "the split of a data set of the Hub (default {default})")
]


def read_dataset(reader: Reader) -> str:
    """The place of the data set; absolute, since a run may go on in another folder."""
    place: str = reader.read("dataset")
    is_file = place != SHIPPED and not place.startswith(HUB)
    return str(Path(place).absolute()) if is_file else place
