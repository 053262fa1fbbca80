"""What one call came to, as figures are made of it: of a turn, or of a stored document."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

from msgspec import Struct

from socratic_bench.benchmarks.execution.answers import Letter
from socratic_bench.benchmarks.execution.items import Kind, Program, other
from socratic_bench.benchmarks.execution.settings import Level

# What became of a call: an answer that is right, the other program's, or neither; or none at all.
Outcome = Literal["correct", "reversion", "other_wrong", "unparsed", "truncated", "refused"]
WHOLE: tuple[Outcome, ...] = ("correct", "reversion", "other_wrong")
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


class ItemOutcome(Struct, frozen=True, kw_only=True):
    """See `Item`. `problem` is its id, and has `n_cases`; `chosen` is `None` where nothing was."""

    kind: Kind
    problem: str
    n_cases: int
    case: int
    round: int
    program: Program
    level: Level
    can_revert: bool
    outcome: Outcome
    chosen: Letter | None

    @property
    def about(self) -> Program:
        """The program whose output was asked for: the one that was shown, or chosen."""
        is_b = self.kind == "choice" and self.chosen == "B"
        return other(self.program) if is_b else self.program

    @property
    def is_whole(self) -> bool:
        """Whether there is an answer, be it right or wrong."""
        return self.outcome in WHOLE

    @property
    def is_right(self) -> bool:
        return self.outcome == "correct"

    @property
    def is_reversion(self) -> bool:
        return self.outcome == "reversion"


Readings = Sequence[ItemOutcome]


def with_program(some: Readings, program: Program) -> Readings:
    """The calls that show one program; those choices in which it is A."""
    return [one for one in some if one.program == program]


def readings_in(document: Mapping[str, Any]) -> Iterator[ItemOutcome]:
    """Of the document of a complete run, in which no case is missing."""
    turns = document["turns"]
    n_cases: dict[str, int] = {}
    for turn in turns:
        name = turn["problem_id"]
        n_cases[name] = max(n_cases.get(name, 0), turn["case"] + 1)
    for turn in turns:
        yield ItemOutcome(
            kind=turn["task"],
            problem=turn["problem_id"],
            n_cases=n_cases[turn["problem_id"]],
            outcome=turn["heuristics"]["outcome"],
            **{name: turn[name] for name in _ALIKE},
        )


_ALIKE = ("case", "round", "program", "level", "can_revert", "chosen")
