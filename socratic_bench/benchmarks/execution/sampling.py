"""The generation settings of an item, by task and level of reasoning, and mistakes in them."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks.data_settings import HUB
from socratic_bench.benchmarks.execution.items import Item
from socratic_bench.benchmarks.execution.settings import TEMPERATURE, Level, Settings
from socratic_bench.catalogue.models import ThinkingForm, family_of
from socratic_bench.errors import Problem
from socratic_bench.generation import GenerateConfig
from socratic_bench.settings.files import is_folder
from socratic_bench.settings.table import table

# By level, the budget of thinking. A model that has levels of effort instead is asked for the one
# of this name: see `socratic_bench.models.bedrock.request`.
THINKING_TOKENS: dict[Level, int] = {"low": 1024, "medium": 2048, "high": 4096}
# Forms of thinking by which several levels send the same request, and these levels.
_SAME_AT: dict[ThinkingForm, str] = {
    "nova": "medium and high",
    "reasoning_config": "low, medium and high",
}
# With fewer tokens for the reply itself there is a notice.
MIN_REPLY_TOKENS = 1000


class TaskSettings(Struct, frozen=True):
    """The generation settings of one task; `name` is its prefix in `Settings`."""

    name: str
    max_tokens: int
    temperature: float | None
    top_p: float | None


class Sampling(Struct, frozen=True):
    """How a reply is generated; `temperature_if_taken` goes only to models that take one."""

    config: GenerateConfig
    temperature_if_taken: float | None


def _task_settings(settings: Settings) -> Iterator[TaskSettings]:
    """The settings of each task that is played."""
    names = {"pred": settings.task != "choice" or settings.compare_reasoning}
    names |= {"choice": settings.task != "prediction"}
    return (_settings_of(settings, name) for name, is_played in names.items() if is_played)


def sampling_of(settings: Settings, item: Item) -> Sampling:
    task = _settings_of(settings, "choice" if item.is_choice else "pred")
    budget, bound = settings.thinking_budget_tokens, task.max_tokens
    if item.kind == "reasoning":
        budget = level_tokens(settings, item.level)
        bound += budget or 0
    is_default = budget is None and task.temperature is None and task.top_p is None
    config = replace(
        settings.generation,
        max_tokens=bound,
        temperature=task.temperature,
        top_p=task.top_p,
        thinking_budget_tokens=budget,
    )
    return Sampling(config, TEMPERATURE if is_default else None)


def level_tokens(settings: Settings, level: Level) -> int | None:
    """The budget of thinking at a level; `None` for a model that cannot be asked to think."""
    family = family_of(settings.model)
    can_think = family is None or family.thinking is not None
    return THINKING_TOKENS[level] if settings.comparison_thinking and can_think else None


def sampling_problems(settings: Settings) -> Iterator[Problem]:
    """Settings that contradict each other."""
    yield from _unused_problems(settings)
    thinks = settings.thinking_budget_tokens is not None
    for task in _task_settings(settings):
        if task.temperature is not None and task.top_p is not None:
            yield Problem.of(
                f"{{{task.name}_temperature}} and {{{task.name}_top_p}}: models refuse both in one "
                "request; keep one of {given:g} and {other:g}.",
                given=task.temperature,
                other=task.top_p,
            )
        levels = task.name == "pred" and settings.compare_reasoning
        if thinks or (levels and level_tokens(settings, "low") is not None):
            yield from _thinking_problems(settings, task)
    if thinks and settings.compare_reasoning:
        yield Problem.of(
            "{compare_reasoning} gives each level a thinking budget of its own: leave "
            "{enable_thinking} out."
        )


def sampling_notices(settings: Settings) -> Iterator[str]:
    """What users should know about the settings before they read a result."""
    budget = settings.thinking_budget_tokens
    for task in _task_settings(settings):
        if budget is not None and task.max_tokens - budget < MIN_REPLY_TOKENS:
            yield (
                f"Thinking may take {budget} of {task.max_tokens} tokens, which leaves "
                f"{task.max_tokens - budget} for a reply: some may be cut off."
            )
    if settings.compare_reasoning:
        yield from _level_notices(settings)


def _level_notices(settings: Settings) -> Iterator[str]:
    family = family_of(settings.model)
    if level_tokens(settings, "low") is None:
        yield "Reasoning levels differ only in the prompt: the model's own reasoning is off."
    elif family and family.thinking in _SAME_AT:
        yield (
            f"The model is asked to think alike at {_SAME_AT[family.thinking]} reasoning: these "
            "differ by their words and by the bound of a reply."
        )


def _unused_problems(settings: Settings) -> Iterator[Problem]:
    """Settings that are given for something that is not played."""
    declared = table(Settings)
    budget = settings.thinking_budget_tokens or 0
    for name in _unused_names(settings):
        value, default = getattr(settings, name), declared[name].default
        # A bound that is not given follows from other settings.
        is_derived = name.endswith("max_tokens") and value in (
            settings.max_tokens,
            default + budget,
        )
        if value != default and not is_derived:
            yield Problem.of(
                f"{{{name}}} sets nothing where {_WITHOUT[name.partition('_')[0]]}: leave it out.",
                played=settings.task,
            )
    has_splits = settings.dataset.startswith(HUB) or is_folder(settings.dataset)
    if settings.split != declared["split"].default and not has_splits:
        yield Problem.of(
            "{split} sets nothing where {dataset} names neither a folder nor the Hub: leave it out."
        )


_WITHOUT = {
    "choice": "{task} is {played}",
    "pred": "{task} is {played}",
    "comparison": "{compare_reasoning} is not given",
}


def _unused_names(settings: Settings) -> Iterator[str]:
    names = [name for name in settings.__struct_fields__ if name.partition("_")[0] in _WITHOUT]
    played = {task.name for task in _task_settings(settings)}
    for name in names:
        is_levels = settings.task == "choice" and name in ("pred_num_problems", "pred_reasoning")
        group = name.partition("_")[0]
        is_played = settings.compare_reasoning if group == "comparison" else group in played
        if is_levels or not is_played:
            yield name


def _settings_of(settings: Settings, name: str) -> TaskSettings:
    def value_of(setting: str) -> float | None:
        value: float | None = getattr(settings, f"{name}_{setting}")
        return getattr(settings, setting) if value is None else value

    max_tokens: int = getattr(settings, f"{name}_max_tokens")
    return TaskSettings(name, max_tokens, value_of("temperature"), value_of("top_p"))


def _thinking_problems(settings: Settings, task: TaskSettings) -> Iterator[Problem]:
    budget = settings.thinking_budget_tokens
    if budget is not None and budget >= task.max_tokens:
        yield Problem.of(
            f"{{thinking_budget_tokens}} is {{budget}}, but must be less than "
            f"{{{task.name}_max_tokens}} ({{bound}}), which bounds thinking and reply together.",
            budget=budget,
            bound=task.max_tokens,
        )
    family = family_of(settings.model)
    if family is not None and family.thinking not in ("budget", "adaptive"):
        return
    if task.temperature not in (None, 1):
        yield Problem.of(
            f"Thinking allows no {{{task.name}_temperature}} but 1, not {{given:g}}: leave it out.",
            given=task.temperature,
        )
    if task.top_p is not None:
        yield Problem.of(f"Thinking allows no {{{task.name}_top_p}}: leave it out.")
