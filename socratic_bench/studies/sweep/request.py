"""The sweep that a command line asks for: settings that its runs share, axes, and prompts."""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig
from socratic_bench.catalogue.prices import PriceTable
from socratic_bench.documents.sweep_plan import LONGEST_ID, PromptLine
from socratic_bench.documents.usage import ShardShare
from socratic_bench.errors import MOST_SHOWN, Problem, UsageError, Words
from socratic_bench.models.rate_target import RateTarget
from socratic_bench.runs.prepare import BUILT_IN, read_prices
from socratic_bench.settings import MAX_TEXT_BYTES, Sources, read_bounded, read_config, table
from socratic_bench.settings.reader import Flags, Reader
from socratic_bench.settings.table import SettingField
from socratic_bench.studies.gates import FigureBound
from socratic_bench.studies.sweep.grid import MODEL, Axis, Cell, Grid, axis_settings
from socratic_bench.studies.sweep.plan_file import NO_PLAN, TARGETS, PlanFile, likely_keys
from socratic_bench.studies.sweep.settings import SweepSettings, part_of, share_of, with_share
from socratic_bench.types import Json

# Settings that resume a single run: a sweep finds its runs by itself.
TEMPERATURES, SHIFTS = "temperatures", "temperature-shifts"
NOT_OF_CELLS = ("resume", "resume-from")


class SweepRequest(Struct, frozen=True, kw_only=True):
    """A sweep as it is asked for; `unread` are axes, by field, of which no value is one, or that
    are needed and not given, and settings that the plan gives wrongly. `bounds` are those on
    figures over all runs of a model. Of a shard, settings and grid have its `share` of limits.
    """

    settings: SweepSettings
    grid: Grid
    plan: PlanFile = NO_PLAN
    unread: tuple[str, ...] = ()
    bounds: tuple[FigureBound, ...] = ()
    share: ShardShare | None = None
    sweep_max_cost_usd: float | None = None  # what `grid.base` has is the shard's

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Those that this command plays: all of the grid, or those of its shard."""
        cells = self.grid.cells()
        return part_of(cells, self.share) if self.share else cells

    def price_tables(self) -> dict[str, PriceTable]:
        """What runs of the sweep are to know of prices: the plan's own, over those of a file.
        Raises `UsageError` with all mistakes in that file.
        """
        tables: dict[str, PriceTable] = {}
        below = read_prices(self.grid.base, tables)
        prices = self.plan.prices(below)
        return {self.grid.base.prices_file or BUILT_IN: prices} if prices else tables

    def targets(self) -> tuple[RateTarget, ...]:
        """Limits a minute, of models that are named and of each other model, whoever calls."""
        requests = {target.model: target.per_min for target in self.settings.target_rpm}
        tokens = {target.model: target.per_min for target in self.settings.target_tpm}
        return tuple(
            RateTarget(
                model=name,
                requests_per_minute=requests.get(name, requests.get(None)),
                tokens_per_minute=tokens.get(name, tokens.get(None)),
            )
            for name in {**requests, **tokens}
        )


def read_sweep(
    flags: Flags, sources: Sources, plan: PlanFile = NO_PLAN, *, keeps: bool = True
) -> tuple[SweepRequest, list[Words]]:
    """The sweep that flags ask for, and a plan where there is no flag, as far as they can be read,
    and every mistake in them. One that `keeps` its runs needs a store.
    """
    # What the plan gives wrongly and no flag gives instead, with the axes of such flags.
    left = {name: flag for name, flag in plan.misread.items() if flag not in flags}
    misgiven = [*left, *(f.name for f in axis_settings() if f.setting.axis in left.values())]
    chosen = {f.name for f in axis_settings() if f.setting.axis in flags or f.flag in flags}
    flags = _with_shifts({**plan.flags, **flags})
    problems: list[Words] = []
    reader = Reader(SweepSettings, replace(sources, flags=flags))
    settings = SweepSettings(**{name: reader.read(name) for name in table(SweepSettings)})
    problems.extend(reader.problems)
    axes = [*_axes(flags, sources, settings, problems)]
    base, misread = read_config(RunConfig, replace(sources, flags=_of_cells(flags, axes)))
    problems.extend(misread)
    problems.extend(_problems_of_sweep(settings, base, axes, keeps=keeps))
    problems.extend(_contradictions(plan, axes))
    bounds = tuple(map(FigureBound.of, base.all_gates))
    base = replace(
        base, gates=(), gates_over=(), **{axis.name: axis.values[0] for axis in axes if axis.values}
    )
    # An axis with one value holds for the models of a plan that have none of their own.
    own = {name for own_settings in plan.by_model.values() for name in own_settings}
    grid = Grid(
        base=base,
        axes=tuple(a for a in axes if a.values and not (len(a.values) == 1 and a.name in own)),
        repeats=max(1, settings.repeats),
        by_model=plan.by_model,
        # A flag gives all models the same values.
        ways={
            model: [{n: value for n, value in way.items() if n not in chosen} for way in ways]
            for model, ways in plan.ways.items()
        },
    )
    problems = [
        *plan.mistakes,
        *(problem for problem in problems if not names_any(problem, misgiven)),
    ]
    unread = [*misgiven, *(axis.name for axis in axes if not axis.values)]
    if not any(axis.name == MODEL for axis in axes):
        unread.append(MODEL)
    request = SweepRequest(
        settings=settings,
        grid=grid,
        plan=plan,
        unread=tuple(unread),
        bounds=bounds,
        sweep_max_cost_usd=base.max_cost_usd,
    )
    return _with_share(request, sources, problems), problems


def _with_share(request: SweepRequest, sources: Sources, problems: list[Words]) -> SweepRequest:
    """The part of a sweep that a shard plays, if it asks for one."""
    settings, grid = request.settings, request.grid
    if settings.shard is None:
        return request
    try:
        shard = settings.shard.resolve(sources.environ)
    except UsageError as error:
        problems.extend(error.sentences)
        return request
    share, too_small = share_of(shard, settings, grid.base.max_cost_usd, grid.n_cells)
    problems.extend(too_small)
    base = replace(grid.base, max_cost_usd=share.max_cost_usd)
    return replace(
        request,
        settings=with_share(settings, share),
        grid=replace(grid, base=base),
        share=share,
    )


def _with_shifts(flags: Flags) -> Flags:
    """Flags in which temperatures such as "25%" stand as shifts of the items' own."""
    words = flags.get(TEMPERATURES, ())
    words = [words] if isinstance(words, str) else words if isinstance(words, list | tuple) else ()
    shifts = [word for word in words if word.endswith("%")]
    if not shifts:
        return flags
    plain = [word for word in words if word not in shifts]
    flags = {name: value for name, value in flags.items() if name != TEMPERATURES}
    return {**flags, **({TEMPERATURES: plain} if plain else {}), SHIFTS: [",".join(shifts)]}


def names_any(problem: Words, settings: Collection[str]) -> bool:
    """Whether a mistake is about one of the settings, by field."""
    return isinstance(problem, Problem) and not {*problem.settings}.isdisjoint(settings)


def _of_cells(flags: Flags, axes: Sequence[Axis]) -> Flags:
    """The flags of one of its runs: with the first word of each axis, so that what is wrong with
    the setting as such is found.
    """
    of_axes = {field.setting.axis: field for field in axis_settings()}
    sweep_flags = {field.flag for field in table(SweepSettings).values()}
    run_flags = {
        flag: value
        for flag, value in flags.items()
        if flag not in of_axes and flag not in sweep_flags and flag not in NOT_OF_CELLS
    }
    given = {axis.name for axis in axes}
    first = {
        field.flag: words[0]
        for axis, field in of_axes.items()
        if field.name in given and field.flag and not field.setting.expand
        if isinstance(words := flags.get(axis), list) and words
    }
    return {**run_flags, **first}


def _axes(
    flags: Flags, sources: Sources, settings: SweepSettings, problems: list[Words]
) -> Iterator[Axis]:
    for field in axis_settings():
        if field.name == "prompt":
            if settings.prompts:
                prompts: tuple[str, ...] = ()
                try:
                    prompts = tuple(prompt.text for prompt in read_prompts(settings.prompts))
                except UsageError as error:
                    problems.extend(error.sentences)
                yield Axis(field.name, prompts)
        elif words := flags.get(field.setting.axis):
            axis_words = words if isinstance(words, list | tuple) else [str(words)]
            readings = (_values(field, word, sources, problems) for word in axis_words)
            values = [value for values in readings for value in values]
            text = f"{{{field.name}}} names {{value!r}} more than once: {{repeats}} repeats runs."
            repeated = dict.fromkeys(value for value in values if values.count(value) > 1)
            problems.extend(Problem.of(text, value=value) for value in repeated)
            yield Axis(field.name, tuple(dict.fromkeys(values)))


def _values(
    field: SettingField, word: str, sources: Sources, problems: list[Words]
) -> Sequence[Any]:
    """The values that a word of an axis stands for."""
    if field.setting.expand is not None:
        try:
            return field.setting.expand(word)
        except UsageError as error:
            problems.extend(error.sentences)
            return ()
    reader = Reader(RunConfig, replace(sources, flags={field.flag or field.name: word}))
    value = reader.read(field.name)
    problems.extend(reader.problems)
    return () if reader.problems else (value,)


def _contradictions(plan: PlanFile, axes: Sequence[Axis]) -> Iterator[Problem]:
    for axis in (axis for axis in axes if len(axis.values) > 1):
        for model in (model for model, settings in plan.by_model.items() if axis.name in settings):
            yield Problem.of(
                f"{{{axis.name}}} names several values, but the plan gives {{model!r}} one of its "
                "own: keep one of both.",
                model=model,
            )


def _problems_of_batches(settings: SweepSettings, base: RunConfig) -> Iterator[Problem]:
    if (base.via, base.judge_via) == ("now", "now"):
        return
    way = "via" if base.via != "now" else "judge_via"
    if settings.shard:
        yield Problem.of(f"{{shard}} is not for {{{way}}}: one job has the calls of all cells.")
    if "batch" in (base.via, base.judge_via) and base.max_cost_usd is not None:
        yield Problem.of(
            f"{{max_cost_usd}} of a sweep is not for {{{way}}} batch: one job has the calls "
            "of all cells, and none of them can wait for what others cost."
        )


def _problems_of_sweep(
    settings: SweepSettings, base: RunConfig, axes: Sequence[Axis], *, keeps: bool
) -> Iterator[Problem]:
    given = {field: getattr(settings, name) for name, field in table(SweepSettings).items()}
    # Runs have seeds that follow from it, and tell nothing of the seed itself.
    for field, value in (*given.items(), (table(RunConfig)["seed"], base.seed)):
        if problem := field.bounds_problem(value):
            yield problem
    if not any(axis.name == MODEL for axis in axes):
        yield Problem.of("No models to test: give {model} with one Bedrock model id or more.")
    if keeps and not (base.output_dir or base.s3_bucket):
        yield Problem.of(
            "A sweep needs {output_dir} or {s3_bucket} for its runs; {resume} continues it there."
        )
    yield from _problems_of_targets(settings)
    if settings.retry_failed and not (settings.resume or settings.shard):
        yield Problem.of("{retry_failed} is given without {resume}.")
    yield from _problems_of_batches(settings, base)
    if settings.shards_at_once and not settings.shard:
        yield Problem.of("{shards_at_once} is given without {shard}.")


def _problems_of_targets(settings: SweepSettings) -> Iterator[Problem]:
    for name in TARGETS:
        named = [target.model for target in getattr(settings, name)]
        for model in dict.fromkeys(model_id for model_id in named if named.count(model_id) > 1):
            whom = "models in general" if model is None else repr(model)
            yield Problem.of(
                f"{{{name}}} is given more than once for {{whom}}: keep one.", whom=whom
            )


MAX_FILE_BYTES = 64 * 2**20
MAX_PROMPTS = 100_000
MAX_LINES = 2 * MAX_PROMPTS
JSONL = ".jsonl"
COMMENT = "#"


class Prompt(Struct, frozen=True):
    """Opening words, the line of the file in which they stand, counted from 1, and their name."""

    text: str
    line: int
    id: str | None = None


class _Mistake(Struct, frozen=True):
    """What is wrong with a line; settings stand in the text as in `Problem`."""

    line: int
    text: str


def read_prompts(path: Path | str) -> tuple[Prompt, ...]:
    """The prompts of a file: JSONL if its name ends with `.jsonl`, otherwise text with one a line.
    Raises `UsageError` with all mistakes in it.
    """
    lines = [*_read(path)]
    prompts = [line for line in lines if isinstance(line, Prompt)]
    mistakes = [line for line in lines if isinstance(line, _Mistake)]
    mistakes += [*_repeated_prompts(prompts)]
    if mistakes:
        mistakes.sort(key=lambda mistake: mistake.line)
        raise _error(path, *(f"line {mistake.line}: {mistake.text}" for mistake in mistakes))
    if not prompts:
        raise _error(path, "there is no prompt in it: give one a line.")
    if (n := len(prompts)) > MAX_PROMPTS:
        raise _error(path, f"it has {n} prompts, but at most {MAX_PROMPTS} are taken.")
    return tuple(prompts)


def _error(path: Path | str, *texts: str) -> UsageError:
    return UsageError([Problem(text, (("path", path),), "{path}") for text in texts])


def _read(path: Path | str) -> Iterator[Prompt | _Mistake]:
    read_line = _json_line if str(path).lower().endswith(JSONL) else _text_line
    for number, line in enumerate(_lines(path), start=1):
        try:
            text = line.decode().strip()
        except UnicodeDecodeError as error:
            yield _Mistake(number, f"it is not UTF-8 text (byte {error.start + 1} of the line).")
            continue
        if text:
            yield from read_line(number, text)


def _lines(path: Path | str) -> list[bytes]:
    """Raises `UsageError` if the file cannot be read, or is too long."""
    try:
        content = read_bounded(path, bound=MAX_FILE_BYTES)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise _error(path, f"it cannot be read: {why}.") from error
    if (n_lines := content.count(b"\n")) > MAX_LINES:
        raise _error(path, f"it has {n_lines} lines, but at most {MAX_LINES} are read.")
    return content.removeprefix(b"\xef\xbb\xbf").split(b"\n")


def _text_line(number: int, text: str) -> Iterator[Prompt | _Mistake]:
    if text.startswith(COMMENT):
        return
    if text.startswith('{"'):
        yield _Mistake(number, f"it looks like JSON: name the file so that it ends with {JSONL}.")
    else:
        yield from _prompt(number, text, None)


def _json_line(number: int, text: str) -> Iterator[Prompt | _Mistake]:
    try:
        value: Json = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        yield _Mistake(number, f"it is not JSON ({_escaped(error.msg)}, column {error.colno}).")
        return
    if not isinstance(value, dict):
        yield _Mistake(number, 'it must be an object, such as {{"prompt": "Why is it so?"}}.')
        return
    wrong = [*_wrong(value)]
    yield from (_Mistake(number, mistake) for mistake in wrong)
    prompt, name = value.get("prompt"), value.get("id")
    if not wrong and isinstance(prompt, str):
        yield from _prompt(number, prompt, name if isinstance(name, str) else None)


def _wrong(value: dict[str, Json]) -> Iterator[str]:
    strange = (name for name in value if name not in PromptLine.__struct_fields__)
    for name in islice(strange, MOST_SHOWN):
        near = likely_keys(name, PromptLine.__struct_fields__)
        hint = f"did you mean {near[0]}?" if near else "a line has prompt, and may have id."
        yield f"{_escaped(repr(name[:LONGEST_ID]))} is not known; {hint}"
    if "prompt" not in value:
        yield "prompt is missing."
    elif not isinstance(value["prompt"], str):
        yield "prompt must be text."
    given = value.get("id")
    if given is not None and not isinstance(given, str):
        yield "id must be text."
    elif given is not None and not (
        given.strip() and given.isprintable() and len(given) <= LONGEST_ID
    ):
        yield f"id must have 1 to {LONGEST_ID} characters that can be printed, not blanks alone."


def _prompt(number: int, text: str, name: str | None) -> Iterator[Prompt | _Mistake]:
    if not text.strip():
        yield _Mistake(number, "the prompt is empty.")
    elif len(text.encode()) > MAX_TEXT_BYTES:
        yield _Mistake(number, f"the prompt has more than {MAX_TEXT_BYTES} bytes.")
    else:
        yield Prompt(text, number, name)


def _repeated_prompts(prompts: list[Prompt]) -> Iterator[_Mistake]:
    seen: dict[tuple[str, str], int] = {}
    for prompt in prompts:
        if (line := seen.setdefault(("text", prompt.text), prompt.line)) != prompt.line:
            what = f"the prompt is that of line {line}: keep one; {{repeats}} repeats each."
            yield _Mistake(prompt.line, what)
        if prompt.id is None:
            continue
        if (line := seen.setdefault(("id", prompt.id), prompt.line)) != prompt.line:
            what = f"the id {_escaped(repr(prompt.id))} is that of line {line}: keep one."
            yield _Mistake(prompt.line, what)


def _escaped(words: str) -> str:
    """As it stands in the text of a `Problem`, where braces name settings."""
    return words.replace("{", "{{").replace("}", "}}")
