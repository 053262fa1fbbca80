"""What a sweep is asked for beside the settings of its runs."""

from typing import Annotated

from msgspec import Struct

from socratic_bench.setting import Setting
from socratic_bench.settings.reader import parse_integer

MAX_REPEATS = 1000
MAX_CONNECTIONS = 1024
STALL_MIN = 15.0


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
            "judge profiles of 360-Eval; its model profiles are then the CONFIG",
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
