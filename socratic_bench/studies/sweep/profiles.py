"""Reads 360-Eval's profiles of models and of judges, one JSON object a line, as a sweep's plan.

Their prices are USD per 1,000 tokens, ours per million. A line with no price, or with 0 for both
kinds of token, leaves the model's price to the built-in table.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import orjson
from msgspec import Meta, Struct, ValidationError

from socratic_bench.catalogue.prices import DEFAULT_TIER
from socratic_bench.concurrency import convert
from socratic_bench.documents.sweep_plan import MODELS, ModelPlan
from socratic_bench.errors import Problem, UsageError
from socratic_bench.generation import ServiceTier
from socratic_bench.settings import BEDROCK, read_bounded
from socratic_bench.studies.sweep.plan_file import PlanFile

SUFFIX = ".jsonl"
PER_MILLION = 1000
_PREFIX = f"{BEDROCK}/"
_Cost = Annotated[float, Meta(ge=0)]
_Region = Annotated[str, Meta(pattern=r"^[a-z]{2,}(-[a-z]+)+-\d+$")]


class ModelProfile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model under test; costs are USD per 1,000 tokens."""

    model_id: Annotated[str, Meta(min_length=1)]
    region: _Region | None = None
    input_token_cost: _Cost | None = None
    output_token_cost: _Cost | None = None
    target_rpm: Annotated[float, Meta(ge=1)] | None = None
    service_tier: ServiceTier | None = None
    service_tier_label: str | None = None

    @property
    def prices(self) -> Mapping[str, float] | None:
        return _prices(self.input_token_cost, self.output_token_cost)


class JudgeProfile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A judge. It is called in the region of the run that it judges, whatever `region` says."""

    model_id: Annotated[str, Meta(min_length=1)]
    region: _Region | None = None
    input_cost_per_1k: _Cost | None = None
    output_cost_per_1k: _Cost | None = None

    @property
    def prices(self) -> Mapping[str, float] | None:
        return _prices(self.input_cost_per_1k, self.output_cost_per_1k)


Profile = TypeVar("Profile", ModelProfile, JudgeProfile)


def read_profiles(path: str, judges_path: str | None = None) -> PlanFile:
    """The sweep of all models of a file, judged by those of another one.

    Raises `UsageError` with every mistake, by line and field.
    """
    problems: list[Problem] = []
    models = [*_read(path, ModelProfile, problems)]
    judges = [*_read(judges_path, JudgeProfile, problems)] if judges_path else []
    by_model: dict[str, list[ModelProfile]] = defaultdict(list)
    for profile in models:
        by_model[_id(profile)].append(profile)
    problems += _mistakes(path, by_model)
    if problems:
        raise UsageError(problems, hint="docs/golden.md says what a profile holds.")
    has_several = any(len(profiles) > 1 for profiles in by_model.values())
    ways = _ways(by_model) if has_several else {}
    regions, tiers = (
        [*dict.fromkeys(way[name] for of_model in ways.values() for way in of_model if name in way)]
        for name in ("region", "service_tier")
    )
    targets = [f"{_id(p)}={int(p.target_rpm)}" for p in models if p.target_rpm]
    flags: dict[str, list[str]] = {
        MODELS: [*by_model],
        "regions": regions,
        "service-tier": tiers,
        "target-rpm": [*dict.fromkeys(targets)],
        "judge-model": [*dict.fromkeys(map(_id, judges))],
    }
    return PlanFile(
        name=path,
        flags={name: words for name, words in flags.items() if words},
        models=() if has_several else tuple(_plan(name, p) for name, (p,) in by_model.items()),
        ids=(*by_model,),
        ways=ways,
        endpoint_prices=_price_rows(models, judges),
    )


def _plan(name: str, profile: ModelProfile) -> ModelPlan:
    tier = None if profile.service_tier == DEFAULT_TIER else profile.service_tier
    return ModelPlan(id=name, region=profile.region, service_tier=tier)


def _id(profile: ModelProfile | JudgeProfile) -> str:
    return profile.model_id.removeprefix(_PREFIX)


def _prices(input_usd: float | None, output_usd: float | None) -> Mapping[str, float] | None:
    """USD per million tokens."""
    if not input_usd and not output_usd:
        return None
    names = {"input": input_usd or 0.0, "output": output_usd or 0.0}
    return {name: round(usd * PER_MILLION, 6) for name, usd in names.items()}


def _price_rows(
    models: Sequence[ModelProfile], judges: Sequence[JudgeProfile]
) -> Mapping[str, Any]:
    """Rows of a price file: of models by region and tier, of judges for any region."""
    rows: dict[str, dict[str, Any]] = {
        _id(judge): {DEFAULT_TIER: judge.prices} for judge in judges if judge.prices
    }
    for profile in (profile for profile in models if profile.prices):
        key = f"{profile.region}/{_id(profile)}" if profile.region else _id(profile)
        rows.setdefault(key, {})[profile.service_tier or DEFAULT_TIER] = profile.prices
    return rows


def _read(path: str, kind: type[Profile], problems: list[Problem]) -> Iterator[Profile]:
    try:
        lines = read_bounded(path).split(b"\n")
    except OSError as error:
        problems.append(_problem(path, f"it cannot be read: {error.strerror}."))
        return
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield convert(orjson.loads(line), kind)
        except orjson.JSONDecodeError as error:
            problems.append(_problem(path, f"line {number} is not valid JSON: {error}."))
        except ValidationError as error:
            what, _, where = str(error).partition(" - at `$.")
            field = f", {where.rstrip('`')}" if where else ""
            problems.append(_problem(path, f"line {number}{field}: {what}."))


def _mistakes(path: str, by_model: Mapping[str, Sequence[ModelProfile]]) -> Iterator[Problem]:
    """Profiles that are there twice, and targets that contradict."""
    if not by_model:
        yield _problem(path, "it has no model.")
        return
    ways = {
        name: [(profile.region, profile.service_tier) for profile in profiles]
        for name, profiles in by_model.items()
    }
    for name, of_model in ways.items():
        if len({*of_model}) < len(of_model):
            yield _problem(path, f"{name} is there twice with the same region and service_tier.")
        if len({profile.target_rpm for profile in by_model[name]}) > 1:
            yield _problem(path, f"{name}: target_rpm differs, but holds for all its calls.")


def _ways(by_model: Mapping[str, Sequence[ModelProfile]]) -> Mapping[str, Sequence[dict[str, str]]]:
    """The regions and tiers that each model is run with. A line without a region, as of another
    provider, has the first one; a line without a tier has the default one, if others have one.
    """
    profiles = [profile for of_model in by_model.values() for profile in of_model]
    region = next((profile.region for profile in profiles if profile.region), None)
    has_tiers = any(profile.service_tier for profile in profiles)
    return {
        name: [
            {
                **({"region": profile.region or region} if region else {}),
                **({"service_tier": profile.service_tier or DEFAULT_TIER} if has_tiers else {}),
            }
            for profile in of_model
        ]
        for name, of_model in by_model.items()
    }


def _problem(path: str, mistake: str) -> Problem:
    return Problem("{mistake}", (("path", path), ("mistake", mistake)), "{path}")
