"""Everything that is checked before the first call, all mistakes at once."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from secrets import randbits
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig, load_benchmark
from socratic_bench.concurrency import decode
from socratic_bench.documents.judge_status import StoredCalibration
from socratic_bench.errors import Problem, UsageError, Words
from socratic_bench.journal import Identity
from socratic_bench.models.providers import load_provider
from socratic_bench.ports.benchmark import Benchmark, Episode
from socratic_bench.ports.parts import BenchmarkSpec
from socratic_bench.redaction import look_again
from socratic_bench.settings import (
    MAX_STORED_BYTES,
    MAX_TURNS,
    OFFLINE_REGION,
    S3,
    absolute,
    convert_values,
    is_folder,
    read_bounded,
)
from socratic_bench.storage.keys import JudgingKeys, RunKeys
from socratic_bench.storage.stores import store_at
from socratic_bench.turns import Rubric
from socratic_bench.types import JUDGE, Role

if TYPE_CHECKING:
    from socratic_bench.catalogue.prices import PriceTable
    from socratic_bench.documents.judge_status import StoredCalibration


SEED_BITS = 32
LIMIT = ".low"
NO_LIMIT = (
    "{gates} {word} is on a limit of an interval, which one run does not have. Bound the metric "
    "itself, or bound the limit in socratic-runner sweep or compare."
)
JUDGES_AT_ONCE = 4
# Settings of the judge alone.
JUDGES_OWN = ("judge_model", "min_judge_coverage", "judge_samples", "quorum", "jury_rule")


class Plan(Struct, frozen=True):
    """A run that may start: its configuration is whole and its episode is read.

    `prices` are the user's own; `None` leaves the built-in ones. `held_judges` are the
    calibrations that were given.
    `seed_given` tells a seed that was asked for from one that was drawn.
    `run_id` names the run, which is gone on with where a store has it; `None` draws a new name.
    `is_rejudged`: its turns were played and its store is the folder of a judging.
    """

    config: RunConfig
    benchmark: Benchmark
    episode: Episode
    prices: "PriceTable | None" = None
    held_judges: "Sequence[StoredCalibration]" = ()
    seed_given: bool = True
    run_id: str | None = None
    is_rejudged: bool = False

    def keys(self, run_id: str) -> RunKeys:
        """Where its files are."""
        return JudgingKeys(run_id) if self.is_rejudged else RunKeys(run_id)

    @property
    def seed(self) -> int:
        """The seed, given or drawn."""
        assert self.config.seed is not None  # noqa: S101 -- `prepare` draws one
        return self.config.seed

    @property
    def models(self) -> Mapping[Role, str | None]:
        """The model of each role; `None` where none takes part."""
        return self.benchmark.cast.models(self.config, is_judged=self.rubric is not None)

    @property
    def asked_models(self) -> Mapping[Role, tuple[str, ...]]:
        """The models of each role: none, one, or a jury's."""
        return self.benchmark.cast.asked_models(self.config, is_judged=self.rubric is not None)

    @property
    def rubric(self) -> Rubric | None:
        """The usual one or, where items have their own, one of them; `None` if nobody judges."""
        return _rubric_of(self.episode)

    def rubric_of(self, index: int) -> Rubric | None:
        """How one item is judged; `None` if it is not."""
        return self.episode.opening.rubrics.get(index, self.episode.rubric)

    @property
    def judges_at_once(self) -> int:
        """A dialogue has a verdict asked for now and then, many items as often as an answer."""
        many = self.is_rejudged or self.episode.opening.n_items is not None
        return max(JUDGES_AT_ONCE, self.config.max_concurrency) if many else JUDGES_AT_ONCE

    @property
    def speakers(self) -> Mapping[Role, str]:
        """The models that an episode is played with, by role."""
        return {role: model for role, model in self.models.items() if model and role != JUDGE}

    @property
    def jury_notices(self) -> Iterator[str]:
        """What people should know of a jury that has the model under test judged by its own."""
        config = self.config
        if self.rubric is None or len(config.jurors) == 1 or config.model == self.models[JUDGE]:
            return  # nobody is tested where the jury itself is
        # Not needed for a run of one judge.
        from socratic_bench.catalogue.models import line_of

        line = line_of(config.model)
        if line and (kin := [juror for juror in config.jurors if line_of(juror) == line]):
            yield (
                f"Of the family of {config.model} are these jurors, too: {', '.join(kin)}. Models "
                "tend to prefer what their own kind has written."
            )

    @property
    def identity(self) -> Identity:
        played = self.benchmark.cast.sample.of(self.episode.opening)
        return Identity.of(self.config, self.episode.opening, played, seed_given=self.seed_given)

    def going_on(self, seed: int, turns: int) -> "Plan":
        """The same plan with the seed that was drawn earlier, and for so many turns."""
        config = replace(self.config, seed=seed, turns=turns)
        return replace(self, config=config, episode=self.benchmark.prepare(config))


def draw_seed() -> int:
    """A seed for a run that was given none."""
    return randbits(SEED_BITS)


def prepare(
    config: RunConfig,
    problems: Sequence[Words] = (),
    *,
    benchmark: Benchmark | None = None,
    flagged: Collection[str] = (),
    price_tables: "dict[str, PriceTable] | None" = None,
) -> Plan:
    """Check everything and read what the episode needs.

    `flagged` are the settings of which a command line says something: one that the run makes no use
    of is a mistake there. `price_tables` are those that were read by their files' names.
    Raises `UsageError` with the given problems and all others.
    """
    look_again()
    config, mistyped = convert_values(config)
    seed_given = config.seed is not None
    if not seed_given:
        config = replace(config, seed=draw_seed())
    chosen, episode, prices = benchmark, None, None
    try:
        chosen = chosen or load_benchmark(config.benchmark)
        episode = chosen.prepare(config)
        misread: Sequence[Words] = ()
    except UsageError as error:
        misread = error.said
    found: list[Words] = [
        *problems,
        *mistyped,
        *config.problems(chosen.cast.max_turns if chosen else MAX_TURNS),
        *_provider_problems(config),
    ]
    if chosen:
        found.extend(_gate_problems(config, chosen, episode))
    found.extend(misread)
    is_judged = episode is None or _rubric_of(episode) is not None
    if not is_judged and config.judge_model is not None:
        found.extend(_useless(name, config) for name in JUDGES_OWN if name in flagged)
    held_judges = _held_judges(config, found)
    try:
        prices = read_prices(config, price_tables)
        cast = chosen.cast if chosen else BenchmarkSpec()
        found.extend(unknown_prices(config, prices, cast, is_judged=is_judged))
    except UsageError as error:
        found.extend(error.said)
    if found or chosen is None or episode is None:
        raise UsageError(found, hint="socratic-runner --help lists every flag and variable.")
    return Plan(config, chosen, episode, prices, held_judges, seed_given)


def _held_judges(config: RunConfig, found: list[Words]) -> "Sequence[StoredCalibration]":
    if config.calibration is None:
        return ()

    try:
        return read_calibrations(config)
    except UsageError as error:
        found.extend(error.said)
        return ()


def _provider_problems(config: RunConfig) -> Iterator[Words]:
    try:
        yield from load_provider(config.provider).problems(config)
    except UsageError as error:
        yield from error.said


def _useless(name: str, config: RunConfig) -> Problem:
    text = f"{{{name}}} is given, but nobody judges in {{benchmark}}: leave it out."
    return Problem.of(text, benchmark=config.benchmark)


def _rubric_of(episode: Episode) -> Rubric | None:
    return episode.rubric or next(iter(episode.opening.rubrics.values()), None)


def _gate_problems(
    config: RunConfig, benchmark: Benchmark, episode: Episode | None
) -> Iterator[Problem]:
    """Of metrics that are known once items are read nothing is said before they could be."""
    if not config.gates or (episode is None and benchmark.cast.has_item_metrics):
        return
    own = episode.opening.metrics if episode else ()
    names = [metric.name for metric in (*benchmark.metrics, *own)]
    for gate in config.gates:
        if gate.metric.endswith(LIMIT) and gate.metric.removesuffix(LIMIT) in names:
            yield Problem.of(NO_LIMIT, word=gate.metric)
        elif gate.metric not in names:
            yield Problem.of(
                "{gates} names no metric: {metric!r}. There is {known}.",
                metric=gate.metric,
                known=", ".join(names),
            )


# The prices of a run, and whether all that a budget needs are known.

BUILT_IN = ""  # no file has this name


def read_prices(
    config: RunConfig, known: "dict[str, PriceTable] | None" = None
) -> "PriceTable | None":
    """The user's own prices, read once for all runs that know them; `None` without any.

    `known` are those that were read, by their files' names, and under `BUILT_IN` those that stand
    in place of the built-in ones. Raises `UsageError` with all mistakes in them.
    """
    known = {} if known is None else known
    if config.prices_file is None:
        return known.get(BUILT_IN)
    if config.prices_file not in known:
        known[config.prices_file] = _read_price_file(config.prices_file)
    return known[config.prices_file]


def _read_price_file(name: str) -> "PriceTable":
    from socratic_bench.catalogue.price_file import load_prices

    try:
        content = read_bounded(name)
    except OSError as error:
        text = "{prices_file} {name} cannot be read: {why}."
        raise UsageError([Problem.of(text, name=name, why=error.strerror)]) from error
    return load_prices(content, name)


def unknown_prices(
    config: RunConfig, table: "PriceTable | None", cast: BenchmarkSpec, *, is_judged: bool
) -> Iterator[Problem]:
    """A sentence for each model without a known price, if there is a budget."""
    if not config.max_cost_usd or config.max_cost_usd < 0:
        return  # no bound, or a mistake of its own
    from socratic_bench.catalogue.prices import builtin_prices

    table = table or builtin_prices()
    models = cast.asked_models(config, is_judged=is_judged)
    for actor, model in ((one, model) for one in cast.everyone for model in models[one.name]):
        prices = table.of(model, config.region)
        names = cast.tier(actor.name, config).names
        missing = names if prices is None else names - prices.tiers.keys()
        if missing:
            yield Problem.of(
                f"{{max_cost_usd}} needs the price of {{{actor.setting}}} {{id}}{_at(missing)}, "
                "which is not known: give it with {prices_file}, whose form socratic-runner schema "
                "prices tells.",
                id=model,
            )


def _at(missing: AbstractSet[str]) -> str:
    from socratic_bench.catalogue.prices import DEFAULT_TIER, OPTIMIZED

    told = [f"the tier {name}" for name in sorted(missing - {DEFAULT_TIER, OPTIMIZED})]
    told += ["optimized latency"] if OPTIMIZED in missing else []
    return f" at {' and '.join(told)}" if told else ""


# The calibrations that a run's settings name: one by itself, or all that a store has.

FOLDER = "/calibrations"
FILE = ".json"
_KEPT = "calibrations/run-"


def read_calibrations(config: RunConfig) -> tuple[StoredCalibration, ...]:
    """None if none is named. See `calibrations_at`."""
    if config.calibration is None:
        return ()
    return calibrations_at(config.calibration, lambda: config.region or OFFLINE_REGION)


def calibrations_at(name: str, region: Callable[[], str]) -> tuple[StoredCalibration, ...]:
    """The calibration of a file, be it in a bucket, or all that `calibrate` has kept in an output
    folder or below a prefix of a bucket; `region` is that of buckets.

    Raises `UsageError` if it cannot be read, or there is none, and `ArtifactError` for a store.
    """
    if name.startswith(S3):
        if not name.removeprefix(S3).strip("/"):
            raise _mistake(name, "names no bucket: write s3://BUCKET/PREFIX")
        return _in_bucket(name, region())
    if is_folder(name):
        return _kept(absolute(name), region)
    try:
        body = read_bounded(name, bound=MAX_STORED_BYTES)
    except OSError as error:
        raise _mistake(name, f"cannot be read: {error.strerror}") from error
    return (_decoded(body, name),)


@lru_cache(maxsize=8)
def _in_bucket(name: str, region: str) -> tuple[StoredCalibration, ...]:
    """Asked for once, and not by each cell of a sweep."""
    if not name.endswith(FILE):
        return _kept(name, lambda: region)
    root, _, key = name.rpartition("/")
    body = store_at(root, lambda: region).get(key)
    if body is None:
        raise _mistake(name, "cannot be read: there is no such object")
    return (_decoded(body, name),)


def _kept(root: str, region: Callable[[], str]) -> tuple[StoredCalibration, ...]:
    store = store_at(root.rstrip("/").removesuffix(FOLDER) or root, region)
    keys = [key for key in store.keys(_KEPT) if key.endswith(FILE)]
    bodies = {key: body for key in keys if (body := store.get(key)) is not None}
    if not bodies:
        raise _mistake(root, f"has no calibration ({_KEPT}*{FILE})")
    return tuple(_decoded(body, store.location(key)) for key, body in bodies.items())


def _decoded(body: bytes, name: str) -> StoredCalibration:
    try:
        return decode(body, StoredCalibration)
    except ValueError as error:
        raise _mistake(name, f"is no calibration: {error}") from error


def _mistake(name: str, why: str) -> UsageError:
    return UsageError([Problem.of("{calibration} {name} {why}.", name=name, why=why)])
