"""The benchmark: the items of a configuration, an episode that asks them, and its metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar

from msgspec import to_builtins
from msgspec.structs import replace

from socratic_bench.benchmarks.golden.checks import apply
from socratic_bench.benchmarks.golden.document import PARTS, GoldenSample, Rate
from socratic_bench.benchmarks.golden.items import (
    VARIANTS,
    GoldenTurn,
    Item,
    Repeats,
    given_response,
    make_items,
    request_of,
    temperature_of,
)
from socratic_bench.benchmarks.golden.judging import PassMark, base_rubric, rubric_of
from socratic_bench.benchmarks.golden.metrics import (
    METRICS,
    PROCESSED,
    Case,
    metrics_by_item,
    passes_of_all,
    summarise,
)
from socratic_bench.benchmarks.golden.optimising import ROLE, Optimiser
from socratic_bench.benchmarks.golden.rows import DIMENSIONS, Row, read_images, read_rows
from socratic_bench.benchmarks.golden.settings import Settings
from socratic_bench.concurrency import convert
from socratic_bench.errors import Problem, UsageError, Words, with_sentence
from socratic_bench.ports.benchmark import (
    Benchmark,
    Episode,
    EpisodeContext,
    EpisodeResult,
    JudgeInput,
    Length,
    Metrics,
)
from socratic_bench.ports.parts import Caveat, MetricGroup, TaskView, Views
from socratic_bench.settings import CoreConfig, part_of, read_system_prompt
from socratic_bench.turns import REFERENCE, Dimension, Rubric, Turn, recorded_reply
from socratic_bench.types import CallKey, Image, Role, plural

Result = TypeVar("Result")
# A guess for estimates: how many sentences an answer, or a judge's reason, has.
N_SENTENCES: dict[Length, int] = {"short": 1, "likely": 5, "long": 20}
SENTENCE = "This is what the answer says about it. "

VIEWS = Views(
    sample="data set",
    said="prompt",
    expected="golden_answer",
    groups=(
        MetricGroup(title="Dimensions", metrics=DIMENSIONS),
        MetricGroup(
            title="Checks and replies",
            metrics=("checks_met", "criteria_met", "refused", "truncated", "weighted_success_rate"),
        ),
    ),
    facts=(
        Caveat(title="Data set", path="dataset.place"),
        Caveat(title="Passing score", path="thresholds.pass_threshold"),
        Caveat(title="Passing rule", path="thresholds.pass_rule"),
    ),
    tasks=TaskView(
        task="task_type",
        variant="variant",
        item="item_id",
        result="result",
        passed="passed",
        results=PROCESSED,
        others=("refused", "unprocessed"),
        faults="failed_by",
        costs="tasks",
    ),
    events=("declined",),
    parts=metrics_by_item,
    part="item",
)


class GoldenBenchmark(Benchmark):
    """Are a model's answers as good as golden ones, and what do they cost in time and money?"""

    name = "golden"
    metrics = METRICS
    primary_metric = "success_rate"
    compared_metrics = ("success_rate_of_all", "checks_met", "correctness", "completeness")
    conditions = (
        "inputs.dataset_sha256",
        "inputs.num_items",
        "inputs.pass_threshold",
        "inputs.pass_rule",
    )
    shorter = "ask fewer items ({num_items}) or less often ({invocations})"
    has_single_calls = True
    parts = PARTS
    views = VIEWS

    def prepare(self, config: CoreConfig) -> GoldenEpisode:
        """All calls of a run. Raises `UsageError` with all mistakes in settings and data."""
        settings = part_of(config, Settings)
        problems: list[Words] = []
        if settings.prompt is not None:
            problems.append(Problem.of("{prompt} is nothing that golden asks: leave it out."))
        if settings.via == "batch" and settings.prompt_optimization != "none":
            problems.append(
                Problem.of("{via} batch: {prompt_optimization} has calls that depend on others.")
            )
        if settings.via == "batch" and settings.latency_only:
            problems.append(Problem.of("{via} batch has no latencies: leave out {latency_only}."))
        system = _attempt(problems, partial(_read_system, settings))
        data = _attempt(problems, partial(read_rows, settings))
        images = _attempt(problems, partial(read_images, settings, data.rows)) if data else None
        problems += _item_problems(settings, data.rows) if data else ()
        if problems or data is None or images is None:
            raise UsageError(problems)
        items = make_items(settings, data.rows, images)
        mark = PassMark(
            threshold=settings.pass_threshold,
            rule=settings.pass_rule,
            is_judged=bool(settings.jurors) and not settings.latency_only,
            is_checked=not settings.latency_only,
        )
        rubrics = {} if settings.latency_only else _rubrics(items)
        sample = GoldenSample(
            id=f"golden-{data.sha256[:12]}",
            label=f"{plural(len({item.row.id for item in items}), 'item')}, "
            f"{plural(len(items), 'call')}",
            prompt=items[0].row.prompt,
            n_items=len(items),
            rubrics=rubrics,
            hashes={
                "dataset_sha256": data.sha256,
                "rubric_sha256": base_rubric().sha256,
                **({"images_sha256": _images_sha256(images)} if images else {}),
                **({"system_prompt_sha256": sha256(system.encode()).hexdigest()} if system else {}),
            },
            notices=_notices(settings, data.rows),
            emulator_rows=[to_builtins(row) for row in data.rows if row.emulator_answer],
            is_given=all(item.response is not None for item in items),
            items=items,
            mark=mark,
            data=data,
        )
        return GoldenEpisode(
            opening=sample,
            target=settings.model,
            items=items,
            mark=mark,
            system=system,
            wait_between_s=settings.wait_between_s,
        )

    def find_rubric(self, name: str) -> Rubric:
        return base_rubric(name)

    def extend_rubric(self, rubric: Rubric, turns: Iterable[Mapping[str, Any]]) -> Rubric:
        known = {dimension.name for dimension in rubric.dimensions}
        own = (one for turn in turns for one in convert(turn["dimensions"], list[Dimension]))
        added = {dimension.name: dimension for dimension in own if dimension.name not in known}
        return replace(rubric, dimensions=(*rubric.dimensions, *added.values()))

    def summarise(self, config: CoreConfig, turns: Sequence[Turn]) -> Metrics:
        variant, *_ = VARIANTS[part_of(config, Settings).prompt_optimization]
        cases = [Case.of(GoldenTurn.of(turn)) for turn in turns]
        return summarise([case for case in cases if case.variant == variant])

    def falls_short(self, config: CoreConfig, turn: Turn) -> bool:
        del config
        return GoldenTurn.of(turn).result in ("failed", "refused")

    def headline(self, metrics: Metrics) -> Sequence[str]:
        rates = {name: metrics.get(name) for name in ("success_rate", "success_rate_of_all")}
        texts = [f"{name} {rate:.3g}" for name, rate in rates.items() if isinstance(rate, float)]
        return texts or ["nothing was judged"]


class GoldenEpisode(Episode, frozen=True, kw_only=True):
    """Asks the items of `target`; `system` is the user's own prompt, if there is one."""

    target: str
    items: tuple[Item, ...]
    mark: PassMark
    system: str | None = None
    wait_between_s: float = 0.0

    def play(self, context: EpisodeContext) -> EpisodeResult:
        optimiser = Optimiser(self.items, self.target)
        context.play_items(partial(self._ask, optimiser, Repeats(self.wait_between_s)))
        return EpisodeResult(end_reason="max_turns")

    def _ask(
        self, optimiser: Optimiser, repeats: Repeats, context: EpisodeContext, index: int
    ) -> Turn:
        """The turn of one item; a given response is taken as it is."""
        item = self.items[index]
        prompt = item.row.prompt
        # Whatever fails here, the next asking of the item must not wait for this one without end.
        with repeats.asking(context, item) as replies:
            optimised = optimiser.optimised(context, item) if item.variant == "optimized" else None
            if optimised and optimised.prompt:
                prompt = optimised.prompt
            if item.response is not None:
                reply = recorded_reply(item.response, "end_turn")
            else:
                request = request_of(item, prompt, self.system)
                reply = context.tested.complete(request, CallKey(role="model", index=index))
                replies.append(reply)
        is_first = optimiser.first.get(item.row.id) == index
        return GoldenTurn(
            index=index,
            prompt=prompt,
            reply=reply,
            item=item,
            mark=self.mark,
            optimised=optimised,
            others={ROLE: optimised.call} if optimised and optimised.call and is_first else {},
        )

    def measure(self, turns: Sequence[Turn], index: int) -> Turn:
        turn = GoldenTurn.of(turns[index])
        if turn.answered == "refused" or not self.mark.is_checked:
            return turn
        text = turn.reply.message.text
        checks = tuple(apply(check, text) for check in turn.item.row.checks)
        n_met = sum(check.is_met for check in checks)
        measures = {"n_checks": len(checks), "n_checks_met": n_met} if checks else {}
        summary = f"{n_met} of {plural(len(checks), 'check')}" if checks else ""
        return replace(turn, checks=checks, measures=measures, summary=summary)

    def judge_input(self, turns: Sequence[Turn], index: int) -> JudgeInput:
        """The data set's own prompt, also where an optimised one was sent, and golden answer."""
        turn = GoldenTurn.of(turns[index])
        row = turn.item.row
        golden = ((REFERENCE, row.golden_answer),) if row.golden_answer else ()
        lines = (("prompt", row.prompt), *golden)
        images = (turn.item.image,) if turn.item.image else ()
        return JudgeInput(lines, turn.reply.message.text, images)

    def metrics_of_all(self, turns: Sequence[Turn]) -> Metrics:
        own_turns = [GoldenTurn.of(turn) for turn in turns]
        rate = Rate.of(passes_of_all(self.items, self.mark, own_turns))
        return {"success_rate_of_all": rate.value}

    def expected_reply(self, role: Role, length: Length) -> str:
        del role
        return SENTENCE * N_SENTENCES[length]


BENCHMARK = GoldenBenchmark()


def _rubrics(items: Sequence[Item]) -> Mapping[int, Rubric]:
    return {index: rubric_of(item.row) for index, item in enumerate(items)}


def _attempt(problems: list[Words], read: Callable[[], Result]) -> Result | None:
    """What `read` returns, or `None` after its mistakes were added to `problems`."""
    try:
        return read()
    except UsageError as error:
        first, *more_sentences = error.sentences
        problems += [with_sentence(first, error.hint) if error.hint else first, *more_sentences]
        return None


def _read_system(settings: Settings) -> str | None:
    path = settings.system_prompt_file
    return read_system_prompt(path) if path else None


def _images_sha256(images: Mapping[str, Image]) -> str:
    digest = sha256()
    for name, image in images.items():
        digest.update(name.encode() + sha256(image.data).digest())
    return digest.hexdigest()


def _notices(settings: Settings, rows: Sequence[Row]) -> Sequence[str]:
    n_own = sum(row.temperature is not None for row in rows)
    if settings.thinking_budget_tokens is None or not n_own:
        return ()
    return (f"The temperatures of {plural(n_own, 'item')} are not sent, since the model thinks.",)


def _item_problems(settings: Settings, rows: Sequence[Row]) -> Iterator[Words]:
    """What is wrong with items and settings together."""
    bare = [row for row in rows if temperature_of(settings, row) is None]
    if settings.temperature_shift and bare:
        yield Problem.of(
            "{temperature_shift} shifts temperatures, and {items} of {dataset} have none: give "
            "{temperature}.",
            items=plural(len(bare), "item"),
        )
    is_unused = all(row.temperature is not None for row in rows)
    if settings.temperature is not None and settings.thinking_budget_tokens is None and is_unused:
        yield Problem.of(
            "{temperature} is for items that have none, and all of {dataset} have one: leave it "
            "out, or change theirs by {temperature_shift}."
        )
    # Where a data set has responses, each row needs one of the model under test.
    lacking = [row for row in rows if row.responses and given_response(row, settings.model) is None]
    if lacking:
        given = {response.model_identifier for row in rows for response in row.responses}
        yield Problem.of(
            "{dataset} has no response of {model} for {items}, such as {id}: name one of {given}, "
            "or leave modelResponses out to have the model called.",
            items=plural(len(lacking), "item"),
            id=lacking[0].id,
            given=", ".join(sorted(filter(None, given))) or "several without a name",
        )
