"""The settings of this benchmark, in addition to those of every run."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from socratic_bench.benchmarks.data_settings import SHIPPED, Dataset, Split, read_dataset
from socratic_bench.errors import Problem, UsageError
from socratic_bench.setting import Setting
from socratic_bench.settings import MOST_TURNS, CoreConfig, Reader
from socratic_bench.settings.reader import parse_number

PassRule = Literal["mean", "majority"]
Optimization = Literal["none", "optimize_only", "evaluate_both"]
MOST_SHIFT = 100  # per cent

_setting = partial(Setting, "golden", identity="chosen", is_input=True)


def _parse_column(word: str) -> tuple[str, str] | None:
    field, separator, column = word.partition("=")
    return (field.strip(), column.strip()) if separator and field.strip() else None


def _shifts(words: str) -> Sequence[float]:
    """A quarter less, none and a quarter more, for "25%". Raises `UsageError` for other words."""
    shares = [parse_number(word.removesuffix("%")) for word in words.split(",")]
    if not all(share and 0 < share <= MOST_SHIFT for share in shares):
        text = "{temperature_shift} takes a share such as 25%, up to 100%, not {words!r}."
        raise UsageError([Problem.of(text, words=words)])
    lower = {round(-(share or 0) / 100, 6) for share in shares}
    return sorted({*lower, 0.0, *(-shift for shift in lower)})


class Settings(CoreConfig, frozen=True, kw_only=True):
    """The core's settings, and those of items, of their repeats, and of passing."""

    dataset: Dataset = SHIPPED
    split: Split = "train"
    columns: Annotated[
        tuple[tuple[str, str], ...],
        _setting(
            "FIELD=NAME",
            "read FIELD of the items from the column or key NAME",
            flag="column",
            form="FIELD=NAME, such as prompt=question",
            parse=_parse_column,
        ),
    ] = ()
    num_items: Annotated[
        int,
        _setting(
            "N",
            "number of items, from the first on; 0 for all (default {default})",
            low=0,
            high=MOST_TURNS,
        ),
    ] = 0
    invocations: Annotated[
        int, _setting("N", "calls per item (default {default})", low=1, high=1000)
    ] = 1
    wait_between_s: Annotated[
        float,
        _setting(
            "S",
            "seconds between two calls for an item (default {default})",
            flag="wait-between",
            low=0,
            high=86400,
        ),
    ] = 0.0
    temperature_shift: Annotated[
        float,
        _setting(
            "SHARE",
            "change each item's temperature by this share, such as -0.25 (default {default})",
            "change each item's temperature by this share; in a sweep, `--temperatures 25%` runs "
            "it a quarter lower, unchanged and a quarter higher",
            axis="temperature-shifts",
            expand=_shifts,
            low=-1,
            high=1,
        ),
    ] = 0.0
    task_type: Annotated[str | None, _setting("TEXT", "task type for items without one")] = None
    task_criteria: Annotated[
        str | None, _setting("TEXT", "judging criteria for items without any")
    ] = None
    dimensions: Annotated[
        str | None,
        _setting(
            "LIST",
            "scoring dimensions for items without any: NAME or NAME:LOW-HIGH, comma-separated",
        ),
    ] = None
    pass_threshold: Annotated[
        float,
        _setting(
            "SCORE",
            "minimum score in each dimension to pass, {low} to {high} (default {default})",
            "an item passes with this score in each dimension, {low} to {high}; for other ranges, "
            "and for the weight of criteria, the same share counts",
            low=1,
            high=5,
        ),
    ] = 3.0
    pass_rule: Annotated[
        PassRule,
        _setting(
            "RULE",
            "with several judges: their {choices} decides (default {default})",
        ),
    ] = "mean"  # noqa: S105 -- no password
    image_folders: Annotated[
        tuple[str, ...],
        Setting(
            "golden",
            "DIR",
            "additional folder that images may be read from",
            flag="image-folder",
        ),
    ] = ()
    image_hosts: Annotated[
        tuple[str, ...],
        Setting(
            "golden",
            "HOST",
            "host that images may be downloaded from",
            "host that images may be downloaded from; a private one needs its address or network "
            "as another value",
            flag="image-host",
        ),
    ] = ()
    latency_only: Annotated[
        bool, _setting(None, "measure only latency and cost; call no judge")
    ] = False
    prompt_optimization: Annotated[
        Optimization,
        _setting(
            "MODE",
            "{choices}: have Bedrock optimise prompts for the model (default {default})",
        ),
    ] = "none"

    READERS: ClassVar[Mapping[str, Callable[[Reader], Any]]] = {
        **CoreConfig.READERS,
        "dataset": read_dataset,
    }
