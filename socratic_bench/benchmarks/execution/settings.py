"""The settings of this benchmark, in addition to those of every run."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from socratic_bench.generation import MIN_THINKING_TOKENS
from socratic_bench.setting import Setting
from socratic_bench.settings import MAX_SEED, MOST_TURNS, CoreConfig, Reader
from socratic_bench.settings.reader import parse_integer

Task = Literal["prediction", "choice", "both"]
Level = Literal["low", "medium", "high"]
SHIPPED = "shipped"
HUB = "hf:"
# Asked for where the model takes one and nothing else was given.
TEMPERATURE = 0.6

_setting = partial(Setting, "execution", identity="chosen", is_input=True)

Start = Annotated[
    int,
    _setting("N", "the first of them, from 0 (default {default})", low=0, high=MOST_TURNS),
]
MaxTokens = Annotated[
    int,
    _setting(
        "N",
        "bound of one reply (default: --max-tokens if given, else {default})",
        "bound of one reply, thinking included, whose budget is added to the default; without it "
        "`--max-tokens` counts if it is given",
        low=1,
        high=1_000_000,
    ),
]
Temperature = Annotated[
    float | None,
    _setting(
        "T",
        "{low} to {high} (default: --temperature if given, else {default})",
        "{low} to {high}; without it `--temperature` counts, and else 0.6 where the model takes "
        "one, unless it thinks or is given a top-p",
        default_words="0.6 where taken",
        low=0,
        high=1,
    ),
]
TopP = Annotated[
    float | None,
    _setting(
        "P",
        "{low} to {high}, in place of a temperature (default: {default})",
        "{low} to {high}, in place of a temperature; without it `--top-p` counts",
        default_words="not sent",
        low=0,
        high=1,
    ),
]
Reasoning = Annotated[
    Level, _setting("LEVEL", "{choices}: how it is asked to reason (default {default})")
]


def _boolean(flag: str) -> Setting:
    return _setting(None, "count reversions where an output is True or False, too", flag=flag)


def _dataset(reader: Reader) -> str:
    """Absolute, since a run may go on in another folder."""
    place: str = reader.read("dataset")
    is_file = place != SHIPPED and not place.startswith(HUB)
    return str(Path(place).absolute()) if is_file else place


def _max_tokens(name: str, reader: Reader) -> int:
    """What is wrong with words of other settings is told where these are read."""
    bound: int = reader.read(name)
    if reader.given(name.replace("_", "-")):
        return bound
    if reader.given("max-tokens"):
        return parse_integer(reader.word("max-tokens") or "") or bound
    if not reader.given("enable-thinking"):
        return bound
    budget = parse_integer(str(reader.sources.flags.get("thinking-budget-tokens")))
    return bound + max(0, MIN_THINKING_TOKENS if budget is None else budget)


class Settings(CoreConfig, frozen=True, kw_only=True):
    """The core's settings, and those of prediction, of choice, and of the comparison of levels."""

    dataset: Annotated[
        str,
        Setting(
            "execution",
            "PLACE",
            "problems: a .jsonl or .parquet file, hf:OWNER/NAME, or {default} (the default)",
            is_input=True,
        ),
    ] = SHIPPED
    split: Annotated[
        str, Setting("execution", "NAME", "the split of a data set of the Hub (default {default})")
    ] = "train"
    include_missing_mutations: Annotated[
        bool, _setting(None, "keep problems without a mutated program, for the original alone")
    ] = False
    task: Annotated[
        Task,
        _setting("TASK", "{choices}: predict outputs, choose between programs (default {default})"),
    ] = "prediction"
    pred_num_problems: Annotated[
        int,
        _setting("N", "problems to predict, 0 for all (default {default})", low=0, high=MOST_TURNS),
    ] = 20
    pred_start_index: Start = 0
    pred_generations: Annotated[
        int, _setting("N", "times that each is asked (default {default})", low=1, high=1000)
    ] = 5
    pred_reasoning: Annotated[
        Level,
        _setting(
            "LEVEL",
            "{choices}: how it is asked to reason (default {default})",
            axis="pred-reasoning",
        ),
    ] = "medium"
    pred_max_tokens: MaxTokens = 4096
    pred_temperature: Temperature = None
    pred_top_p: TopP = None
    pred_seed: Annotated[
        int,
        _setting(
            "N",
            "orders what is asked; no model hears of it (default {default})",
            low=0,
            high=MAX_SEED,
        ),
    ] = 42
    pred_skip_boolean: Annotated[bool, _boolean("no-pred-skip-boolean")] = True
    choice_num_problems: Annotated[
        int,
        _setting(
            "N", "problems to choose in, 0 for all (default {default})", low=0, high=MOST_TURNS
        ),
    ] = 20
    choice_start_index: Start = 0
    choice_runs: Annotated[
        int,
        _setting(
            "N", "decisions on each, in balanced orders (default {default})", low=1, high=1000
        ),
    ] = 2
    choice_reasoning: Reasoning = "medium"
    choice_max_tokens: MaxTokens = 4096
    choice_temperature: Temperature = None
    choice_top_p: TopP = None
    choice_seed: Annotated[
        int,
        _setting(
            "N",
            "orders what is asked, and draws an odd decision's order (default {default})",
            "orders what is asked, and draws which program comes first in an odd decision",
            low=0,
            high=MAX_SEED,
        ),
    ] = 123
    choice_skip_boolean: Annotated[bool, _boolean("no-choice-skip-boolean")] = True
    choice_control: Annotated[
        bool, _setting(None, "ask for no choice between equal programs", flag="no-choice-control")
    ] = True
    compare_reasoning: Annotated[
        bool, _setting(None, "besides, predict at low, medium and high reasoning")
    ] = False
    comparison_samples: Annotated[
        int,
        _setting(
            "N",
            "problems to compare levels on, 0 for all (default {default})",
            low=0,
            high=MOST_TURNS,
        ),
    ] = 5
    comparison_thinking: Annotated[
        bool,
        _setting(None, "let levels differ by their words alone", flag="no-comparison-thinking"),
    ] = True

    READERS: ClassVar[Mapping[str, Callable[[Reader], Any]]] = {
        **CoreConfig.READERS,
        "dataset": _dataset,
        "pred_max_tokens": partial(_max_tokens, "pred_max_tokens"),
        "choice_max_tokens": partial(_max_tokens, "choice_max_tokens"),
    }
