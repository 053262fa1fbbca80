"""A problem: a program, calls of it with their outputs, and the same of a mutated program."""

from msgspec import Struct


class Mutation(Struct, frozen=True, kw_only=True):
    """How the mutated program came about; what is not known is `None`."""

    mutation_type: str | None = None
    mutation_id: int | None = None
    coverage_similarity: float | None = None  # 0 to 1: lines that both programs execute


class Problem(Struct, frozen=True, kw_only=True):
    """A row of a data set. Calls and outputs are source text: `peak([1, 2])`, `[2]`.

    `mutated_code` and `mutated_outputs` are both `None`, or neither is; outputs are one for each of
    `inputs`. `sha256` is that of what is executed: codes, inputs and outputs.
    """

    id: str
    function_name: str
    code: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    mutated_code: str | None = None
    mutated_outputs: tuple[str, ...] | None = None
    mutation: Mutation | None = None
    difficulty: str | None = None
    n_lines: int | None = None  # as the data set says
    sha256: str = ""
