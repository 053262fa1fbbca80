"""The settings of this benchmark, in addition to those of every run."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from socratic_bench.benchmarks.data_settings import SHIPPED, Dataset, Split, read_dataset
from socratic_bench.generation import MIN_THINKING_TOKENS
from socratic_bench.setting import Setting
from socratic_bench.settings import MAX_SEED, MOST_TURNS, CoreConfig, Reader
from socratic_bench.settings.reader import parse_integer

Task = Literal["prediction", "choice", "both"]
Level = Literal["low", "medium", "high"]
# Asked for where the model takes one and nothing else was given.
TEMPERATURE = 0.6

_setting = partial(Setting, "execution", identity="chosen", is_input=True)

Start = Annotated[
    int,
    _setting("N", "index of the first problem (default {default})", low=0, high=MOST_TURNS),
]
MaxTokens = Annotated[
    int,
    _setting(
        "N",
        "output tokens per reply (default: --max-tokens or {default})",
        "maximum output tokens per reply; a reasoning budget is added to the default. Without it, "
        "`--max-tokens` applies if given",
        low=1,
        high=1_000_000,
    ),
]
Temperature = Annotated[
    float | None,
    _setting(
        "T",
        "temperature (default: --temperature or {default})",
        "temperature, {low} to {high}. Without it, `--temperature` applies if given, else 0.6 if "
        "the model accepts one and neither reasoning nor top-p is set",
        default_words="0.6",
        low=0,
        high=1,
    ),
]
TopP = Annotated[
    float | None,
    _setting(
        "P",
        "top-p instead of a temperature (default: --top-p or {default})",
        "top-p, {low} to {high}, instead of a temperature; without it, `--top-p` applies",
        default_words="not sent",
        low=0,
        high=1,
    ),
]
Reasoning = Annotated[
    Level, _setting("LEVEL", "reasoning that the prompt asks for: {choices} (default {default})")
]


def _boolean(flag: str) -> Setting:
    return _setting(None, "also count reversions between True and False", flag=flag)


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

    dataset: Dataset = SHIPPED
    split: Split = "train"
    include_missing_mutations: Annotated[
        bool, _setting(None, "keep problems without a mutated program")
    ] = False
    task: Annotated[
        Task,
        _setting(
            "TASK",
            "prediction (of outputs), choice (of a program) or both (default {default})",
        ),
    ] = "prediction"
    pred_num_problems: Annotated[
        int,
        _setting(
            "N",
            "problems of the prediction task, 0 for all (default {default})",
            low=0,
            high=MOST_TURNS,
        ),
    ] = 20
    pred_start_index: Start = 0
    pred_generations: Annotated[
        int, _setting("N", "predictions per problem (default {default})", low=1, high=1000)
    ] = 5
    pred_reasoning: Annotated[
        Level,
        _setting(
            "LEVEL",
            "reasoning that the prompt asks for: {choices} (default {default})",
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
            "shuffle seed, not sent to the model (default {default})",
            low=0,
            high=MAX_SEED,
        ),
    ] = 42
    pred_skip_boolean: Annotated[bool, _boolean("no-pred-skip-boolean")] = True
    choice_num_problems: Annotated[
        int,
        _setting(
            "N",
            "problems of the choice task, 0 for all (default {default})",
            low=0,
            high=MOST_TURNS,
        ),
    ] = 20
    choice_start_index: Start = 0
    choice_runs: Annotated[
        int,
        _setting(
            "N",
            "choices per test case, in both orders of the programs (default {default})",
            low=1,
            high=1000,
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
            "shuffle seed, not sent to the model (default {default})",
            "shuffle seed, not sent to the model; draws which program comes first if decisions are "
            "odd in number",
            low=0,
            high=MAX_SEED,
        ),
    ] = 123
    choice_skip_boolean: Annotated[bool, _boolean("no-choice-skip-boolean")] = True
    choice_control: Annotated[
        bool,
        _setting(
            None, "skip the control choices between two equal programs", flag="no-choice-control"
        ),
    ] = True
    compare_reasoning: Annotated[
        bool, _setting(None, "also run prediction at low, medium and high reasoning")
    ] = False
    comparison_samples: Annotated[
        int,
        _setting(
            "N",
            "problems for --compare-reasoning, 0 for all (default {default})",
            low=0,
            high=MOST_TURNS,
        ),
    ] = 5
    comparison_thinking: Annotated[
        bool,
        _setting(
            None,
            "--compare-reasoning: vary only the prompt, not the reasoning budget",
            flag="no-comparison-thinking",
        ),
    ] = True

    READERS: ClassVar[Mapping[str, Callable[[Reader], Any]]] = {
        **CoreConfig.READERS,
        "dataset": read_dataset,
        "pred_max_tokens": partial(_max_tokens, "pred_max_tokens"),
        "choice_max_tokens": partial(_max_tokens, "choice_max_tokens"),
    }
