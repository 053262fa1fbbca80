"""Reads the models of a plan: ids, or tables with what holds for one model alone."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from socratic_bench.benchmarks import RunConfig
from socratic_bench.catalogue.price_file import row_problems
from socratic_bench.concurrency import convert, kind_of
from socratic_bench.documents.sweep_plan import MODELS, ModelPlan
from socratic_bench.errors import Problem
from socratic_bench.settings import table
from socratic_bench.studies.sweep.plan_words import (
    MOST_VALUES,
    WANTED,
    Json,
    is_number,
    named,
    unknown,
)
from socratic_bench.studies.sweep.settings import SweepSettings

TARGETS = ("target_rpm", "target_tpm")
# Settings of a run by their fields, and what a model's table calls them.
_SETTINGS = {"model": "id", "region": "region", "service_tier": "service_tier"}


class Models(Struct, frozen=True):
    """The models of a plan, the ids of all that it names, and every mistake among them."""

    models: tuple[ModelPlan, ...] = ()
    ids: tuple[str, ...] = ()
    mistakes: tuple[str, ...] = ()


def read_models(found: Json, above: Iterable[str]) -> Models:
    """The models of a plan, of which `above` are the keys beside them."""
    if not isinstance(found, list) or not found:
        said = "empty" if found == [] else kind_of(found)
        form = f"a list of ids, or tables, each begun with [[{MODELS}]]"
        return Models(mistakes=(f"{MODELS}: must be {form}, not {said}.",))
    if len(found) > MOST_VALUES:
        told = f"{MODELS}: {len(found)} are given; at most {MOST_VALUES} are taken."
        return Models(mistakes=(told,))
    mistakes: list[str] = []
    models: dict[str, ModelPlan] = {}
    items: dict[str, int] = {}
    for item, row in enumerate(found, start=1):
        place = f"{MODELS}, item {item}"
        table_of = {"id": row} if isinstance(row, str) else row
        wrong, values = _looked_over(place, table_of, above, n_told=len(mistakes))
        mistakes += wrong
        name = values.get("id")
        if isinstance(name, str) and items.setdefault(name, item) != item:
            mistakes.append(
                f"{place}, id: {name!r} is that of item {items[name]}: keep one. regions and "
                "service_tier, as lists, compare a model with itself."
            )
        elif not wrong:
            one = convert(values, ModelPlan)
            models[one.id] = one
    return Models(tuple(models.values()), tuple(items), tuple(mistakes))


def _looked_over(
    place: str, row: Json, above: Iterable[str], *, n_told: int
) -> tuple[list[str], Mapping[str, Json]]:
    """Every mistake in one, and its values."""
    if not isinstance(row, dict):
        return [f"{place}: must be an id or a table, not {kind_of(row)}."], {}
    known = ModelPlan.__struct_fields__
    values, mistakes = named(row, f"{place}, ")
    for word in [word for word in values if word not in known]:
        del values[word]
        mistakes.append(unknown(word, known, f"{place}, ", above, n_told=n_told + len(mistakes)))
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
    yield from (_placed(place, problem) for problem in config.problems())


def _placed(place: str, problem: Problem) -> str:
    """With the place of its setting, or that of the model if it names none."""
    told = problem.render(lambda name: f"{place}, {_SETTINGS.get(name, name)}")
    return told if problem.settings else f"{place}: {told}"


def _in_targets(place: str, values: Mapping[str, Json]) -> Iterator[str]:
    for name in (name for name in TARGETS if name in values):
        value, parse = values[name], table(SweepSettings)[name].setting.parse
        if not is_number(value) or (parse and parse(str(value)) is None):
            said = value if is_number(value) else kind_of(value)
            yield f"{place}, {name}: must be a whole number over 0, not {said}."
