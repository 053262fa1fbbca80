"""Everything that is checked and read before the first call; all mistakes are reported at once."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache, partial
from math import isfinite
from secrets import randbits
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig, load_benchmark
from socratic_bench.catalogue.models import line_of
from socratic_bench.catalogue.price_file import load_prices
from socratic_bench.catalogue.prices import DEFAULT_TIER, OPTIMIZED, PriceTable, builtin_prices
from socratic_bench.concurrency import decode
from socratic_bench.documents.judge_status import StoredCalibration
from socratic_bench.emulator.catalogue import traits_of
from socratic_bench.emulator.models import MODEL_IDS, agent, golden
from socratic_bench.errors import Mistakes, Problem, UsageError, Words
from socratic_bench.journal.identity import Identity
from socratic_bench.models import load_provider
from socratic_bench.ports.benchmark import Benchmark, Episode
from socratic_bench.ports.parts import BenchmarkSpec
from socratic_bench.redaction import look_again
from socratic_bench.runs.gates import gate_problem, unknown_metric
from socratic_bench.settings import (
    IMPORTED,
    MAX_STORED_BYTES,
    MAX_TURNS,
    OFFLINE_REGION,
    S3,
    absolute,
    convert_values,
    is_folder,
    models_of,
    nearest_models,
    provider_of,
    read_bounded,
)
from socratic_bench.storage.keys import JudgingKeys, RunKeys
from socratic_bench.storage.stores import store_at
from socratic_bench.turns import Rubric
from socratic_bench.types import JUDGE, Role

Result = TypeVar("Result")

SEED_BITS = 32
INTERVAL_LIMITS = ("low", "high")
NO_LIMIT = (
    "{word} is on a limit of an interval, which one run does not have. Bound the metric "
    "itself, or bound the limit in socratic-runner sweep or compare."
)
JUDGES_AT_ONCE = 4
JUDGE_SETTINGS = ("judge_model", "min_judge_coverage", "judge_samples", "quorum", "jury_rule")
BUILT_IN = ""  # the place of the built-in prices among those of files, none of which has this name
CALIBRATIONS_FOLDER = "/calibrations"
CALIBRATION_KEYS = "calibrations/run-"
CALIBRATION_SUFFIX = ".json"


class Plan(Struct, frozen=True):
    """A run that may start: its configuration is whole and its episode is read.

    Attributes:
        prices: the user's own; `None` leaves the built-in ones.
        held_judges: the calibrations that the configuration names.
        seed_given: whether the seed was asked for, and not drawn.
        run_id: the run's id, under which it is resumed if a store has it; `None` makes a new id.
        is_rejudged: the turns were played before, and the store is the folder of a judging.
        order: its place among the cells of a sweep, from 1; 0 for a run by itself.
        is_damaged: it was complete, and some of its stored files are not what they were.
    """

    config: RunConfig
    benchmark: Benchmark
    episode: Episode
    prices: PriceTable | None = None
    held_judges: Sequence[StoredCalibration] = ()
    seed_given: bool = True
    run_id: str | None = None
    is_rejudged: bool = False
    order: int = 0
    is_damaged: bool = False

    def keys(self, run_id: str) -> RunKeys:
        """The names of the files of the run with that id."""
        return JudgingKeys(run_id) if self.is_rejudged else RunKeys(run_id)

    @property
    def seed(self) -> int:
        """The seed, given or drawn."""
        assert self.config.seed is not None  # noqa: S101 -- `prepare` draws one
        return self.config.seed

    @property
    def models(self) -> Mapping[Role, str | None]:
        """The model of each role; `None` for a role that takes no part."""
        models = self.benchmark.cast.models(self.config, is_judged=self.rubric is not None)
        return {**models, **dict.fromkeys(self._uncalled)}

    @property
    def requested_models(self) -> Mapping[Role, tuple[str, ...]]:
        """The models of each role: none, one, or a jury's."""
        cast = self.benchmark.cast
        requested = cast.requested_models(self.config, is_judged=self.rubric is not None)
        return {**requested, **dict.fromkeys(self._uncalled, ())}

    @property
    def _uncalled(self) -> tuple[Role, ...]:
        return (self.benchmark.parts.tested,) if self.episode.opening.is_given else ()

    @property
    def speakers(self) -> Mapping[Role, str]:
        """The models that the episode is played with, by role; the judge is none of them."""
        return {role: model for role, model in self.models.items() if model and role != JUDGE}

    @property
    def rubric(self) -> Rubric | None:
        """The usual rubric or, if each item has its own, one of them; `None` if nobody judges."""
        return _rubric_of(self.episode)

    def rubric_of(self, index: int) -> Rubric | None:
        """The rubric of one item or turn; `None` if it is not judged."""
        return self.episode.opening.rubrics.get(index, self.episode.rubric)

    @property
    def judges_at_once(self) -> int:
        """How many verdicts are asked for at once: items and records come all at once."""
        is_recorded = self.is_rejudged or provider_of(self.config.model) == IMPORTED
        has_many = is_recorded or self.episode.opening.n_items is not None
        return max(JUDGES_AT_ONCE, self.config.max_concurrency) if has_many else JUDGES_AT_ONCE

    @property
    def notices(self) -> Iterator[str]:
        """What people should know of the run before it starts."""
        yield from self.episode.opening.notices
        if not self._uncalled:
            yield from load_provider(provider_of(self.config.model)).notices(self.config)
        yield from self._jury_notices()

    @property
    def identity(self) -> Identity:
        """What makes another run the same one, which `--resume` then continues."""
        played = self.benchmark.cast.sample.of(self.episode.opening)
        return Identity.of(self.config, self.episode.opening, played, seed_given=self.seed_given)

    def resumed(self, seed: int, turns: int) -> "Plan":
        """The same plan with the seed that an earlier process has drawn, and that many turns."""
        config = replace(self.config, seed=seed, turns=turns)
        return replace(self, config=config, episode=self.benchmark.prepare(config))

    def _jury_notices(self) -> Iterator[str]:
        """Warn of jurors of the same model family as the model under test."""
        config = self.config
        if self.rubric is None or len(config.jurors) == 1 or config.model == self.models[JUDGE]:
            return  # where the jury itself is tested nobody else is
        line = line_of(config.model)
        if line and (kin := [juror for juror in config.jurors if line_of(juror) == line]):
            yield (
                f"Judges of the same model family as {config.model}: {', '.join(kin)}. Their "
                "scores may have a self-preference bias."
            )


GIVEN = "given-responses"  # in place of a model that is not called


def prepare(
    config: RunConfig,
    problems: Sequence[Words] = (),
    *,
    benchmark: Benchmark | None = None,
    flagged: Collection[str] = (),
    price_tables: dict[str, PriceTable] | None = None,
) -> Plan:
    """Check a configuration, and read all that its episode needs.

    Raises `UsageError` with the given problems and all others.

    Args:
        config: what is asked for.
        problems: mistakes that were found before.
        benchmark: takes the place of the one that the configuration names.
        flagged: settings that a command line gives: one that the run has no use for is a mistake.
        price_tables: prices that were read before, by the names of their files.
    """
    look_again()
    config, mistyped = convert_values(config)
    seed_given = config.seed is not None
    if not seed_given:
        config = replace(config, seed=draw_seed())
    mistakes = Mistakes()
    benchmark = benchmark or _attempt(mistakes, partial(load_benchmark, config.benchmark))
    episode = _attempt(mistakes, partial(benchmark.prepare, config)) if benchmark else None
    called = _called(config, episode)
    mistakes.sentences[:0] = [
        *problems,
        *mistyped,
        *called.problems(benchmark.cast.max_turns if benchmark else MAX_TURNS),
        *_provider_problems(called),
        *(_gate_problems(config, benchmark, episode) if benchmark else ()),
        *(_offline_problems(config, benchmark) if benchmark else ()),
        *(_batch_problems(config, benchmark) if benchmark else ()),
    ]
    is_judged = episode is None or _rubric_of(episode) is not None
    if not is_judged and config.judge_model is not None:
        text = "{{{name}}} does not apply: {{benchmark}} has no judge."
        mistakes.sentences.extend(
            Problem.of(text.format(name=name), benchmark=config.benchmark)
            for name in JUDGE_SETTINGS
            if name in flagged
        )
    held_judges: tuple[StoredCalibration, ...] = ()
    prices: PriceTable | None = None
    cast = benchmark.cast if benchmark else BenchmarkSpec()
    with mistakes:
        if config.calibration is not None:
            region = config.region or OFFLINE_REGION
            held_judges = calibrations_at(config.calibration, lambda: region)
    with mistakes:
        prices = read_prices(config, price_tables)
        mistakes.sentences.extend(unknown_prices(called, prices, cast, is_judged=is_judged))
    if mistakes.sentences or benchmark is None or episode is None:
        raise mistakes.error("See socratic-runner --help.")
    if config.offline:
        for models in (agent, golden):
            models.learn(episode.opening.emulator_rows)
    return Plan(config, benchmark, episode, prices, held_judges, seed_given)


def draw_seed() -> int:
    """A seed for a run that was given none."""
    return randbits(SEED_BITS)


def read_prices(config: RunConfig, known: dict[str, PriceTable] | None = None) -> PriceTable | None:
    """The user's own prices; `None` without any. Raises `UsageError` with all mistakes in them.

    `known` are those that were read before, by the names of their files, to which they are added;
    under `BUILT_IN` it may have some that take the place of the built-in ones.
    """
    known = {} if known is None else known
    if config.prices_file is None:
        return known.get(BUILT_IN)
    name = config.prices_file
    if name not in known:
        try:
            content = read_bounded(name)
        except OSError as error:
            text = "{prices_file} {name} cannot be read: {why}."
            raise UsageError([Problem.of(text, name=name, why=error.strerror)]) from error
        known[name] = load_prices(content, name)
    return known[name]


def unknown_prices(
    config: RunConfig, table: PriceTable | None, cast: BenchmarkSpec, *, is_judged: bool
) -> Iterator[Problem]:
    """A problem for each model without a known price, if the run has a budget."""
    if not config.max_cost_usd or config.max_cost_usd < 0:
        return  # no bound, or a mistake of its own
    table = table or builtin_prices()
    models = cast.requested_models(config, is_judged=is_judged)
    for actor in cast.everyone:
        tiers = cast.tier(actor.name, config).names
        for model in models[actor.name]:
            prices = table.of(model, config.region)
            missing = tiers if prices is None else tiers - prices.tiers.keys()
            if missing:
                yield Problem.of(
                    f"{{max_cost_usd}} needs the price of {{{actor.setting}}} {{id}}"
                    f"{_at_tiers(missing)}, which is unknown: give it with {{prices_file}} "
                    "(format: socratic-runner schema prices).",
                    id=model,
                )


def calibrations_at(name: str, region: Callable[[], str]) -> tuple[StoredCalibration, ...]:
    """The calibration in a file or an object of a bucket, or all of an output folder or prefix.

    `region` gives the region of buckets. Raises `UsageError` if the place cannot be read or has
    none, and `ArtifactError` for a store that fails.
    """
    if name.startswith(S3):
        if not name.removeprefix(S3).strip("/"):
            raise _calibration_error(name, "names no bucket: write s3://BUCKET/PREFIX")
        return _calibrations_in_bucket(name, region())
    bodies: dict[str, bytes | None] = {}
    if is_folder(name):
        bodies = _stored_calibrations(absolute(name), region)
    else:
        try:
            bodies[name] = read_bounded(name, bound=MAX_STORED_BYTES)
        except OSError as error:
            raise _calibration_error(name, f"cannot be read: {error.strerror}") from error
    return tuple(_decode_calibration(*item) for item in bodies.items())


def _called(config: RunConfig, episode: Episode | None) -> RunConfig:
    """The configuration of what is called: where replies are given, any model's id will do."""
    if episode is None or not episode.opening.is_given:
        return config
    return replace(config, model=next(iter(config.jurors), GIVEN), model_ids=None)


def _rubric_of(episode: Episode) -> Rubric | None:
    return episode.rubric or next(iter(episode.opening.rubrics.values()), None)


def _attempt(mistakes: Mistakes, read: Callable[[], Result]) -> Result | None:
    """What `read` returns; `None` if it raises `UsageError`, whose mistakes join the others."""
    with mistakes:
        return read()
    return None


def _provider_problems(config: RunConfig) -> Iterator[Words]:
    for name in dict.fromkeys(map(provider_of, models_of(config))):
        try:
            yield from load_provider(name).problems(config)
        except UsageError as error:
            yield from error.sentences


def _gate_problems(
    config: RunConfig, benchmark: Benchmark, episode: Episode | None
) -> Iterator[Problem]:
    """Gates on metrics that do not exist, and those whose result is certain. Items may have
    metrics, known once they are read.
    """
    if not config.all_gates or (episode is None and benchmark.cast.has_item_metrics):
        return
    item_metrics = episode.opening.metrics if episode else ()
    metrics = {metric.name: metric for metric in (*benchmark.metrics, *item_metrics)}
    highest = benchmark.highest_values(config)
    for gate in (gate for gate in config.all_gates if isfinite(gate.bound)):
        path, _, figure = gate.metric.rpartition(".")
        if gate.metric in metrics:
            problem = gate_problem(
                gate,
                metrics[gate.metric],
                is_judged=bool(config.jurors) or episode is None or _rubric_of(episode) is None,
                highest=highest.get(gate.metric),
                n_parts=episode.opening.n_parts.get(gate.metric, 1) if episode else 1,
            )
            if problem:
                yield problem
        elif figure in INTERVAL_LIMITS and path in metrics:
            yield Problem.of(f"{{{gate.setting}}} {NO_LIMIT}", word=gate.metric)
        else:
            yield unknown_metric(gate, gate.metric, metrics)


def _batch_problems(config: RunConfig, benchmark: Benchmark) -> Iterator[Problem]:
    if config.via == "batch" and not benchmark.has_single_calls:
        yield Problem.of(
            "{via} batch: in {benchmark} each call depends on the answers before it. The judges' "
            "calls do not: {judge_via}.",
            benchmark=config.benchmark,
        )


def _offline_problems(config: RunConfig, benchmark: Benchmark) -> Iterator[Problem]:
    """Models of other roles than the tested one that neither exist nor are allowed by name."""
    cast = benchmark.cast
    models = cast.requested_models(config, is_judged=True) if config.offline else {}
    for actor in cast.everyone:
        for model in models.get(actor.name, ()) if actor.setting != "model" else ():
            if model not in (config.model_ids or ()) and not traits_of(model).is_known:
                yield Problem.of(
                    f"{{{actor.setting}}}: {{offline}} has no model {{id!r}}{{nearest}}.",
                    id=model,
                    nearest=nearest_models(model, MODEL_IDS),
                )


def _at_tiers(missing: AbstractSet[str]) -> str:
    tiers = [f"the tier {name}" for name in sorted(missing - {DEFAULT_TIER, OPTIMIZED})]
    tiers += ["optimized latency"] if OPTIMIZED in missing else []
    return f" at {' and '.join(tiers)}" if tiers else ""


@lru_cache(maxsize=8)
def _calibrations_in_bucket(name: str, region: str) -> tuple[StoredCalibration, ...]:
    """Requested once, and not by each cell of a sweep."""
    if name.endswith(CALIBRATION_SUFFIX):
        root, _, key = name.rpartition("/")
        bodies = {name: store_at(root, lambda: region).get(key)}
    else:
        bodies = _stored_calibrations(name, lambda: region)
    return tuple(_decode_calibration(*item) for item in bodies.items())


def _stored_calibrations(root: str, region: Callable[[], str]) -> dict[str, bytes | None]:
    """All that `calibrate` has stored in an output folder or below a prefix."""
    store = store_at(root.rstrip("/").removesuffix(CALIBRATIONS_FOLDER) or root, region)
    keys = [key for key in store.keys(CALIBRATION_KEYS) if key.endswith(CALIBRATION_SUFFIX)]
    if not keys:
        what = f"{CALIBRATION_KEYS}*{CALIBRATION_SUFFIX}"
        raise _calibration_error(root, f"has no calibration ({what})")
    return {store.location(key): store.get(key) for key in keys}


def _decode_calibration(name: str, body: bytes | None) -> StoredCalibration:
    if body is None:
        raise _calibration_error(name, "cannot be read: there is no such object")
    try:
        return decode(body, StoredCalibration)
    except ValueError as error:
        raise _calibration_error(name, f"is not a calibration: {error}") from error


def _calibration_error(name: str, why: str) -> UsageError:
    return UsageError([Problem.of("{calibration} {name} {why}.", name=name, why=why)])
