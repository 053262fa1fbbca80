"""Reads PLAN.toml: a sweep's flags as keys of a file, and settings of single models."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from msgspec import Struct, ValidationError, to_builtins
from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig
from socratic_bench.catalogue.price_file import row_problems
from socratic_bench.catalogue.prices import PriceSource, PriceTable, builtin_prices
from socratic_bench.concurrency import convert, kind_of
from socratic_bench.documents.sweep_plan import (
    ENDPOINTS,
    MODELS,
    EndpointPlan,
    ModelPlan,
    PlanKey,
    key_name,
    plan_keys,
)
from socratic_bench.errors import MOST_SHOWN, Problem, UsageError
from socratic_bench.settings import S3, Reader, Sources, read_bounded, table
from socratic_bench.settings.endpoints import Endpoint
from socratic_bench.settings.files import UnreadableTomlError, parse_toml
from socratic_bench.settings.reader import Flags
from socratic_bench.settings.table import BEDROCK_PREFIX
from socratic_bench.studies.sweep.settings import SweepSettings

Json = Any  # as tomllib has it: dates and times, too

MOST_VALUES = 1000  # of one key
LONGEST_COMPARED = 100  # comparing takes quadratic time
_SECRET = re.compile(r"secret|token|password|credential|access_key|api_key", re.IGNORECASE)
WANTED: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text in quotation marks",
}


def is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def by_key_name(values: Mapping[str, Json], place: str = "") -> tuple[dict[str, Json], list[str]]:
    """The values by key, hyphens as underscores, and a mistake for each key written both ways."""
    words: dict[str, str] = {}
    mistakes = [
        f"{place}{word}: the same as {words[key_name(word)]}: keep one."
        for word in values
        if words.setdefault(key_name(word), word) != word
    ]
    return {name: values[word] for name, word in words.items()}, mistakes


def likely_keys(word: str, keys: Sequence[str]) -> Sequence[str]:
    """The keys that one which is not known may stand for."""
    near = get_close_matches(word[:LONGEST_COMPARED], keys, n=1)
    return near or [name for name in keys if word in name.split("_")]


def unknown_key(
    word: str, keys: Sequence[str], place: str = "", above: Iterable[str] = (), *, n_told: int
) -> str:
    """The mistake of a key that is not known, or that belongs `above` the tables. What may have
    been meant is looked for only as long as not more mistakes are told than are shown.
    """
    if near := likely_keys(word, keys if n_told < MOST_SHOWN else ()):
        return f"{place}{word}: unknown key; did you mean {' or '.join(near)}?"
    if _SECRET.search(word):
        return (
            f"{place}the key {word} is unknown. Credentials come from the environment or an AWS "
            "profile."
        )
    if word in above:
        return f"{place}{word}: belongs above the first table."
    listed = f"keys: {', '.join(keys)}." if place else "see socratic-runner init."
    return f"{place}{word}: unknown key; {listed}"


TARGETS = ("target_rpm", "target_tpm")
# Settings of a run by their fields, and what a model's table calls them.
_SETTINGS = {"model": "id", "region": "region", "service_tier": "service_tier"}


class Models(Struct, frozen=True):
    """The models of a plan, the ids of all that it names, and every mistake among them."""

    models: tuple[ModelPlan, ...] = ()
    ids: tuple[str, ...] = ()
    mistakes: tuple[str, ...] = ()


def read_models(value: Json, above: Iterable[str]) -> Models:
    """The models of a plan, of which `above` are the keys beside them."""
    if not isinstance(value, list) or not value:
        problem = "empty" if value == [] else kind_of(value)
        form = f"a list of ids, or tables, each begun with [[{MODELS}]]"
        return Models(mistakes=(f"{MODELS}: must be {form}, not {problem}.",))
    if len(value) > MOST_VALUES:
        mistake = f"{MODELS}: {len(value)} are given; at most {MOST_VALUES} are taken."
        return Models(mistakes=(mistake,))
    mistakes: list[str] = []
    models: dict[str, ModelPlan] = {}
    items: dict[str, int] = {}
    for item, row in enumerate(value, start=1):
        place = f"{MODELS}, item {item}"
        table_of = {"id": row} if isinstance(row, str) else row
        wrong, values = _check_model(place, table_of, above, n_told=len(mistakes))
        mistakes += wrong
        name = values.get("id")
        if isinstance(name, str):
            name = values["id"] = name.removeprefix(BEDROCK_PREFIX)
        if isinstance(name, str) and items.setdefault(name, item) != item:
            mistakes.append(
                f"{place}, id: {name!r} is that of item {items[name]}: keep one. regions and "
                "service_tier, as lists, compare a model with itself."
            )
        elif not wrong:
            model = convert(values, ModelPlan)
            models[model.id] = model
    return Models(tuple(models.values()), tuple(items), tuple(mistakes))


def _check_model(
    place: str, row: Json, above: Iterable[str], *, n_told: int
) -> tuple[list[str], dict[str, Json]]:
    """Every mistake in one, and its values."""
    if not isinstance(row, dict):
        return [f"{place}: must be an id or a table, not {kind_of(row)}."], {}
    keys = ModelPlan.__struct_fields__
    values, mistakes = by_key_name(row, f"{place}, ")
    for word in [word for word in values if word not in keys]:
        del values[word]
        mistakes.append(unknown_key(word, keys, f"{place}, ", above, n_told=n_told + len(mistakes)))
    if "id" not in values:
        mistakes.append(f'{place}, id: missing; give the model as id = "ID".')
    mistakes += [*_in_settings(place, values), *_in_targets(place, values)]
    if "prices" in values:
        mistakes += row_problems(f"{place}, prices", values["prices"])
    return mistakes, values


def _in_settings(place: str, values: Mapping[str, Json]) -> Iterator[str]:
    given = {name: values[word] for name, word in _SETTINGS.items() if word in values}
    for name, value in [*given.items()]:
        if not isinstance(value, str):
            yield f"{place}, {_SETTINGS[name]}: must be {WANTED[str]}, not {kind_of(value)}."
            del given[name]
        elif not value.strip():
            yield f"{place}, {_SETTINGS[name]}: is empty."
            del given[name]
    # Without a model, the others alone are looked at; offline, none needs a region.
    config = RunConfig(**{"model": "any", **given}, offline=True)
    for problem in config.problems():
        text = problem.render(lambda name: f"{place}, {_SETTINGS.get(name, name)}")
        # With the place of its setting, or that of the model if it names none.
        yield text if problem.settings else f"{place}: {text}"


def _in_targets(place: str, values: Mapping[str, Json]) -> Iterator[str]:
    for name in (name for name in TARGETS if name in values):
        value, parse = values[name], table(SweepSettings)[name].setting.parse
        if not is_number(value) or (parse and parse(str(value)) is None):
            problem = value if is_number(value) else kind_of(value)
            yield f"{place}, {name}: must be a whole number over 0, not {problem}."


def read_endpoints(value: Json) -> tuple[list[str], dict[str, Json], list[str]]:
    """The endpoints of a plan as words of their flag, prices of their models by whole id, and the
    mistakes among them.
    """
    if not isinstance(value, dict):
        form = f"tables, each begun with [{ENDPOINTS}.NAME]"
        return [], {}, [f"{ENDPOINTS}: must be {form}, not {kind_of(value)}."]
    words: list[str] = []
    rows: dict[str, Json] = {}
    mistakes: list[str] = []
    for name, row in value.items():
        place = f"{ENDPOINTS}.{name}"
        prices = row.get("prices") if isinstance(row, dict) else None
        of_prices = [
            mistake
            for model, given in (prices.items() if isinstance(prices, dict) else ())
            for mistake in row_problems(f"{place}, prices.{model}", given)
        ]
        mistakes += of_prices
        try:
            endpoint = convert(row, EndpointPlan)
        except ValidationError as error:
            mistakes += [] if of_prices else [f"{place}: {error}."]
            continue
        word = f"{name}={endpoint.base_url}"
        word += f",{endpoint.key_variable}" if endpoint.key_variable else ""
        if Endpoint.parse(word) is None:
            mistakes.append(
                f"{place}: needs a name of small letters and an http(s) base_url without user, "
                "query and fragment."
            )
            continue
        words.append(word)
        rows |= {f"{name}/{model}": given for model, given in (prices or {}).items()}
    return words, rows, mistakes


KINDS = (RunConfig, SweepSettings)
# The keys by which a plan names its kind, as documents do.
ABOUT = {"kind": "sweep_plan", "schema_version": 1}

Words = str | list[str] | bool


class PlanFile(Struct, frozen=True, kw_only=True):
    """What a plan asks for: `flags` as the command has them, files in them as paths from the
    working folder, and `models`, whose ids and targets stand in `flags`, too; `ids` are also those
    of models that it tells something wrong of. `ways` are the values of axes, by field, that a
    model is run with, if not with all of them. `name` is the file's.

    What is wrong in it stands in `mistakes` alone; `misread` are the settings, by field, of which
    it gives no value that can be used, with their flags.
    """

    name: str
    flags: Flags
    models: tuple[ModelPlan, ...] = ()
    ids: tuple[str, ...] = ()
    ways: Mapping[str, Sequence[Mapping[str, str]]] = {}
    endpoint_prices: Mapping[str, Json] = {}
    mistakes: tuple[Problem, ...] = ()
    misread: Mapping[str, str] = {}

    @property
    def by_model(self) -> Mapping[str, Mapping[str, str]]:
        """By its id, the settings that a run of a model has of its own."""
        names = ("region", "service_tier")
        return {
            model.id: {
                name: setting for name in names if (setting := getattr(model, name)) is not None
            }
            for model in self.models
        }

    def prices(self, below: PriceTable | None = None) -> PriceTable | None:
        """Those of its models over others, or the built-in ones; as `below` if it has none."""
        given = {model.id: to_builtins(model)["prices"] for model in self.models}
        own = {model: row for model, row in given.items() if row is not None}
        rows = {**self.endpoint_prices, **own}
        if not rows:
            return below
        source = PriceSource(self.name, None, None)
        return PriceTable(models=rows, source=source, below=below or builtin_prices())


NO_PLAN = PlanFile(name="", flags={})


def read_plan_file(path: Path | str, *, is_sweep: bool = True) -> PlanFile:
    """The plan in a file, or the flags of a single run, with every mistake that is one by itself:
    those of several settings together are found when runs are prepared, and all are reported at
    once. Raises `UsageError` if none of it can be read.
    """
    try:
        values = parse_toml(read_bounded(path))
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise UsageError([_problem_in_file(path, f"it cannot be read: {why}.")]) from error
    except UnreadableTomlError as error:
        raise UsageError([_problem_in_file(path, f"{error}.")]) from error
    reader = _PlanReader(Path(path), is_sweep=is_sweep)
    plan = reader.read(values)
    mistakes = [_problem_in_file(path, mistake) for mistake in reader.mistakes]
    return replace(plan, mistakes=tuple(mistakes), misread=reader.misread)


def _problem_in_file(path: Path | str, mistake: str) -> Problem:
    return Problem("{mistake}", (("path", path), ("mistake", mistake)), "{path}")


class _PlanReader:
    """Reads the parsed file; collects `mistakes` with places, and settings that are `misread`."""

    def __init__(self, path: Path, *, is_sweep: bool) -> None:
        self.mistakes: list[str] = []
        self.misread: dict[str, str] = {}
        self._path, self._is_sweep = path, is_sweep
        self._keys = plan_keys(KINDS if is_sweep else (RunConfig,), has_axes=is_sweep)

    def read(self, table: Mapping[str, Json]) -> PlanFile:
        values, self.mistakes = by_key_name(table)
        flags: dict[str, Words] = {}
        read = Models()
        prices: Mapping[str, Json] = {}
        for word, value in values.items():
            if word == MODELS and self._is_sweep:
                read = self._models(value)
                flags[MODELS] = [model.id for model in read.models]
            elif word == ENDPOINTS and self._is_sweep:
                flags["endpoint"], prices, mistakes = read_endpoints(value)
                self.mistakes += mistakes
            elif word in ABOUT and self._is_sweep:
                if value != ABOUT[word] or isinstance(value, bool):
                    self.mistakes.append(f"{word}: must be {ABOUT[word]!r}, not {value!r}.")
            elif key := self._keys.get(word):
                if words := self._words(key, value):
                    flags[key.flag] = words
            else:
                self._unknown(word)
        flags |= self._targets(flags, read.models)
        return PlanFile(
            name=str(self._path),
            flags=flags,
            models=read.models,
            ids=read.ids,
            endpoint_prices=prices,
        )

    def _unknown(self, word: str) -> None:
        tables = (MODELS, ENDPOINTS, *ABOUT) if self._is_sweep else ()
        keys = [*self._keys, *tables]
        if len(self.mistakes) < MOST_SHOWN:
            self._misread(likely_keys(word, keys))
        self.mistakes.append(unknown_key(word, keys, n_told=len(self.mistakes)))

    def _models(self, value: Json) -> Models:
        read = read_models(value, self._keys)
        self.mistakes += read.mistakes
        if not read.models:
            self._misread([MODELS])
        if read.mistakes and isinstance(value, list):  # a key below a table is the table's
            below = (word for row in value if isinstance(row, dict) for word in row)
            self._misread({key_name(word) for word in below} - {*ModelPlan.__struct_fields__})
        return read

    def _misread(self, words: Iterable[str]) -> None:
        """Note what the keys would have given: that it is missing is no other mistake."""
        for word in words:
            if word == MODELS:
                self.misread["model"] = MODELS
            elif key := self._keys.get(word):
                self.misread[key.setting.name] = key.flag

    def _targets(
        self, flags: Mapping[str, Words], models: Sequence[ModelPlan]
    ) -> Iterator[tuple[str, Words]]:
        """The flags of targets, with those of single models."""
        for name in TARGETS:
            flag = name.replace("_", "-")
            given = flags.get(flag, [])
            words = [*given] if isinstance(given, list) else []
            flagged = {word.rpartition("=")[0] for word in words}
            targets = {plan.id: getattr(plan, name) for plan in models}
            for model in (model for model, target in targets.items() if target is not None):
                if model in flagged:
                    self.mistakes.append(f"{name}: names {model!r}, which has its own: keep one.")
                    continue
                words.append(f"{model}={targets[model]}")
            if words:
                yield flag, words

    def _words(self, key: PlanKey, value: Json) -> Words | None:
        """What the flag of the key takes; `None` if it is as if it were not given, or a mistake."""
        values = value if key.is_many and isinstance(value, list) else [value]
        mistakes = [*_mistakes(key, values)]
        self.mistakes += dict.fromkeys(mistakes)
        if mistakes:
            self._misread([key.name])
            return None
        if key.kind is bool:
            return True if value else None
        words = [str(value) for value in values]
        if key.setting.setting.is_file:  # files are looked for beside the plan
            words = [w if w.startswith(S3) else str(self._path.parent / w) for w in words]
        is_one = not key.is_many or (key.setting.is_usually_one and len(words) == 1)
        return words[0] if is_one else words


def _mistakes(key: PlanKey, values: Sequence[Json]) -> Iterator[str]:
    """What is wrong with the values of a key: all of the wrong type, or else each by itself."""
    if not values:
        yield f"{key.name}: the list is empty: name one at least."
    if len(values) > MOST_VALUES:
        yield f"{key.name}: {len(values)} values are given; at most {MOST_VALUES} are taken."
        return
    wrong = [value for value in values if not _is_typed(key, value)]
    many = ", or a list of such" if key.is_many else ""
    for value in wrong:
        yield f"{key.name}: must be {WANTED[key.kind]}{many}, not {kind_of(value)}."
    if wrong or key.kind is bool:
        return
    words = [str(value) for value in values]
    if key.switch:
        for word in (word for word in words if key.choices and word not in key.choices):
            yield f"{key.name} is {word!r}, but must be one of {', '.join(key.choices)}."
        return
    yield from (problem.render(lambda _: key.name) for problem in _problems(key, words))


def _is_typed(key: PlanKey, value: Json) -> bool:
    if key.kind is bool:
        return isinstance(value, bool)
    if is_number(value) and (key.kind is float or key.takes_numbers):
        return True
    return isinstance(value, key.kind) and not isinstance(value, bool)


def _problems(key: PlanKey, words: Sequence[str]) -> Iterator[Problem]:
    """What is wrong with the words of a setting, as the table of settings has it."""
    field = key.setting
    if key.is_axis and field.setting.expand:
        for word in words:
            try:
                field.setting.expand(word)
            except UsageError as error:
                yield from (text for text in error.sentences if isinstance(text, Problem))
        return
    kind = next(kind for kind in KINDS if table(kind).get(field.name) == field)
    given: Sequence[str | Sequence[str]] = [words] if field.is_repeatable else words
    for value_words in given:
        reader = Reader(kind, _sources({field.flag or "": value_words}))
        value = reader.read(field.name)
        yield from reader.problems
        if not reader.problems and (problem := field.bounds_problem(value)):
            yield problem


def _sources(flags: Flags) -> Sources:
    """Flags alone."""
    return Sources(
        flags=flags,
        environ={},
        read_stdin=lambda _: b"",
        profile_region=lambda: None,
        offline_models=tuple,
    )
