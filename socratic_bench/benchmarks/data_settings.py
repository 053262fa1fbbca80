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
        "data set: JSONL, JSON, CSV or Parquet file, hf:OWNER/NAME (Hugging Face), or {default} "
        "(built in, the default)",
        is_input=True,
    ),
]
Split = Annotated[
    str, Setting("dialogue", "NAME", "split of a Hugging Face data set (default {default})")
]


def read_dataset(reader: Reader) -> str:
    """The place of the data set; absolute, since a run may go on in another folder."""
    place: str = reader.read("dataset")
    is_file = place != SHIPPED and not place.startswith(HUB)
    return str(Path(place).absolute()) if is_file else place
