"""Shards: parts of a sweep that an engine plays as tasks of an array."""

from collections.abc import Mapping

from msgspec import Struct

from socratic_bench.errors import Problem, UsageError
from socratic_bench.settings.reader import parse_integer

AUTO = "auto"


class ArrayVariables(Struct, frozen=True):
    """The variables in which an engine tells a task its index, and the number of tasks if it does.
    Tasks of Slurm need not begin at 0, so its number counts only if they do.
    """

    engine: str
    index: str
    count: str | None = None
    first: str | None = None


ENGINES = (
    ArrayVariables("AWS Batch", "AWS_BATCH_JOB_ARRAY_INDEX"),
    ArrayVariables("Kubernetes", "JOB_COMPLETION_INDEX"),
    ArrayVariables(
        "Slurm", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"
    ),
)


class Shard(Struct, frozen=True):
    """Every `count`-th run, from the one at `index`."""

    index: int
    count: int


class ShardWord(Struct, frozen=True):
    """A shard as a flag gives it; what is `None` is in the variables of an engine."""

    index: int | None
    count: int | None

    @classmethod
    def parse(cls, word: str) -> "ShardWord | None":
        """`I/N`, `auto/N` or `auto`."""
        first, is_counted, last = word.partition("/")
        index, count = parse_integer(first), parse_integer(last)
        if first != AUTO and (index is None or index < 0):
            return None
        if is_counted:
            return cls(index, count) if count and count > (index or 0) else None
        return cls(None, None) if first == AUTO else None

    def resolve(self, environ: Mapping[str, str]) -> Shard:
        """Raises `UsageError` if no engine tells what is missing."""
        if self.index is not None and self.count is not None:
            return Shard(self.index, self.count)
        engine = next((engine for engine in ENGINES if environ.get(engine.index)), None)
        if engine is None:
            names = ", ".join(engine.index for engine in ENGINES)
            raise UsageError(
                [Problem.of("{shard} auto: none of {names} is set.", names=names)],
                hint=Problem.of("Start it as a task of an array, or give {shard} I/N."),
            )
        index = parse_integer(environ[engine.index])
        count = self.count
        if count is None and engine.count and environ.get(engine.first or "") == "0":
            count = parse_integer(environ.get(engine.count, ""))
        if count is None:
            why = "Tasks do not begin at 0" if engine.count else f"{engine.engine} does not tell it"
            raise UsageError(
                [Problem.of("{shard} auto: the number of shards is unknown. {why}.", why=why)],
                hint=Problem.of("Give it as {shard} auto/N."),
            )
        if index is None or not 0 <= index < count:
            raise UsageError(
                [
                    Problem.of(
                        "{shard}: {name} is {value!r}, but must be 0 to {last}.",
                        name=engine.index,
                        value=environ[engine.index],
                        last=count - 1,
                    )
                ]
            )
        return Shard(index, count)
