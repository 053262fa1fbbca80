"""What a sweep is asked for beside the settings of its runs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.documents.usage import ShardShare
from socratic_bench.errors import Problem
from socratic_bench.setting import Setting
from socratic_bench.settings.reader import parse_integer
from socratic_bench.studies.sweep.shards import Shard, ShardWord

MAX_REPEATS = 1000
MAX_CONNECTIONS = 1024
STALL_MIN = 15.0
EVERY_MODEL = "*"

Item = TypeVar("Item")


class Target(Struct, frozen=True):
    """A limit a minute; of every model that is tested, or of one that it names."""

    per_min: int
    model: str | None = None

    @classmethod
    def parse(cls, word: str) -> "Target | None":
        """`[MODEL=]N`. Ids of models have no "=" in them."""
        model, is_named, number = word.rpartition("=")
        per_min = parse_integer(number)
        if per_min is None or per_min < 1 or (is_named and not model):
            return None
        return cls(per_min, model or None)


class SweepSettings(Struct, frozen=True, kw_only=True):
    """The sweep's own settings. What its runs have in common are settings of a run."""

    prompts: Annotated[
        str | None,
        Setting(
            "sweep",
            "FILE",
            "first student messages: a text file, one per line, or JSONL",
            is_file=True,
        ),
    ] = None
    judge_profiles: Annotated[
        str | None,
        Setting(
            "sweep",
            "FILE",
            "360-Eval judge profiles, with its model profiles as CONFIG",
            "360-Eval's profiles of judges (.jsonl), beside those of models as the config file",
            is_file=True,
        ),
    ] = None
    repeats: Annotated[
        int,
        Setting(
            "sweep",
            "N",
            "runs per combination, with different seeds (default {default})",
            low=1,
            high=MAX_REPEATS,
        ),
    ] = 1
    max_connections: Annotated[
        int,
        Setting(
            "sweep",
            "N",
            "maximum parallel runs and requests (default {default})",
            low=1,
            high=MAX_CONNECTIONS,
        ),
    ] = 64
    target_rpm: Annotated[
        tuple[Target, ...],
        Setting(
            "sweep",
            "[MODEL=]N",
            "maximum requests per minute of each model, or of MODEL",
            form="N or MODEL=N, such as 60",
            parse=Target.parse,
        ),
    ] = ()
    target_tpm: Annotated[
        tuple[Target, ...],
        Setting(
            "sweep",
            "[MODEL=]N",
            "maximum tokens per minute of each model, or of MODEL",
            form="N or MODEL=N, such as 200000",
            parse=Target.parse,
        ),
    ] = ()
    stall_min: Annotated[
        float,
        Setting(
            "sweep",
            "MIN",
            "give up on a model after MIN minutes without an answer (default {default})",
            flag="stall",
            low=0.01,
            high=1440,
        ),
    ] = STALL_MIN
    limit: Annotated[int | None, Setting("sweep", "N", "run at most N now", low=1)] = None
    shard: Annotated[
        ShardWord | None,
        Setting(
            "sweep",
            "I/N",
            "run part I of N, counted from 0; auto or auto/N takes I (and N) from Slurm, AWS Batch "
            "or Kubernetes",
            form="I/N with I from 0 to N - 1, auto/N or auto",
            parse=ShardWord.parse,
        ),
    ] = None
    shards_at_once: Annotated[
        int | None,
        Setting(
            "sweep",
            "K",
            "shards that run in parallel; each gets 1/K of rates and connections (default N)",
            low=1,
        ),
    ] = None
    resume: Annotated[
        bool, Setting("sweep", None, "continue the newest sweep with the same arguments")
    ] = False
    retry_failed: Annotated[
        bool, Setting("sweep", None, "with --resume: repeat failed runs, too")
    ] = False
    strict: Annotated[
        bool,
        Setting("sweep", None, "run the preflight check first; stop if it fails"),
    ] = False


def share_of(
    shard: Shard, settings: SweepSettings, max_cost_usd: float | None, n_runs: int
) -> tuple[ShardShare, list[Problem]]:
    """What a shard has of the limits of a sweep of so many runs, and which limits are too small to
    be divided.
    """
    at_once = min(settings.shards_at_once or shard.count, shard.count)
    n_own = len(range(shard.index, n_runs, shard.count))
    problems = [*_too_small(settings, at_once)]
    share = ShardShare(
        index=shard.index,
        count=shard.count,
        at_once=at_once,
        n_runs_of_sweep=n_runs,
        max_connections=max(1, settings.max_connections // at_once),
        target_rpm=_by_model(settings.target_rpm, at_once),
        target_tpm=_by_model(settings.target_tpm, at_once),
        max_cost_usd=None if max_cost_usd is None else max_cost_usd * n_own / max(1, n_runs),
    )
    return share, problems


def part_of(cells: tuple[Item, ...], share: ShardShare) -> tuple[Item, ...]:
    """The cells that a shard plays."""
    return cells[share.index :: share.count]


def with_share(settings: SweepSettings, share: ShardShare) -> SweepSettings:
    """The settings of a shard. It continues the sweep that the first shard has begun."""
    return replace(
        settings,
        resume=True,
        max_connections=share.max_connections,
        target_rpm=_targets(share.target_rpm),
        target_tpm=_targets(share.target_tpm),
    )


def _too_small(settings: SweepSettings, at_once: int) -> Iterator[Problem]:
    limits = {
        "max_connections": [settings.max_connections],
        "target_rpm": [target.per_min for target in settings.target_rpm],
        "target_tpm": [target.per_min for target in settings.target_tpm],
    }
    for name, values in limits.items():
        for value in (value for value in values if value < at_once):
            yield Problem.of(
                f"{{{name}}} of {{value}} cannot be divided among {{at_once}} shards: give at "
                "least {at_once}, or fewer shards at a time with {shards_at_once}.",
                value=value,
                at_once=at_once,
            )


def _by_model(targets: Sequence[Target], at_once: int) -> dict[str, int]:
    return {target.model or EVERY_MODEL: max(1, target.per_min // at_once) for target in targets}


def _targets(by_model: Mapping[str, int]) -> tuple[Target, ...]:
    return tuple(
        Target(per_min, None if model == EVERY_MODEL else model)
        for model, per_min in by_model.items()
    )
