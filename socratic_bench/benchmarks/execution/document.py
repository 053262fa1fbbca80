"""What this benchmark adds to the keys that every document has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from msgspec import Struct, field

from socratic_bench.benchmarks.execution.answers import ExecutionTurn
from socratic_bench.benchmarks.execution.choice import Choice, choice
from socratic_bench.benchmarks.execution.dataset.reading import DataSet
from socratic_bench.benchmarks.execution.items import Item, Kind, Program, other_program
from socratic_bench.benchmarks.execution.outcomes import Signed
from socratic_bench.benchmarks.execution.prediction import Prediction, prediction
from socratic_bench.benchmarks.execution.reasoning import LevelEntry, Turns, levels
from socratic_bench.benchmarks.execution.settings import Level, Settings
from socratic_bench.documents.cost import Billing, role_usd
from socratic_bench.documents.document import Count, Sha256, Share
from socratic_bench.documents.run import RunResult
from socratic_bench.ports.benchmark import Sample
from socratic_bench.ports.parts import Part, Parts
from socratic_bench.settings import MOST_TURNS, part_of
from socratic_bench.turns import Turn
from socratic_bench.types import doc

Rate = Annotated[Share | None, doc("null of none")]


class ExecutionSample(Sample, frozen=True, kw_only=True):
    """All that is asked, and where it is from."""

    items: tuple[Item, ...]
    data: DataSet


class HeadlinePart(Part, frozen=True, kw_only=True):
    """What a shell loop usually wants."""

    oc: Annotated[Rate, doc("prediction: right on the original program")] = None
    mc: Annotated[Rate, doc("prediction: right on the mutated program")] = None
    or_: Annotated[Rate, doc("prediction: the mutated program's output on the original one")] = (
        field(name="or", default=None)
    )
    mr: Annotated[Rate, doc("prediction: the original program's output on the mutated one")] = None
    preference: Annotated[Rate, doc("choice: for the original program")] = None

    @classmethod
    def of(cls, metrics: Mapping[str, Any]) -> Self:
        named = {"or_" if name == "or" else name: value for name, value in metrics.items()}
        return cls(**{name: named.get(name) for name in cls.__struct_fields__})


class MetricsPart(HeadlinePart, frozen=True, kw_only=True):
    """Shares of readable answers, where nothing else is said; null of none."""

    oc_less_mc: Annotated[Signed | None, doc("OC less MC, mean over problems; null of none")] = None
    oc_pass_at_1: Annotated[Rate, doc("OC of all generations, readable or not")] = None
    mc_pass_at_1: Annotated[Rate, doc("MC of all generations, readable or not")] = None
    answered: Annotated[Rate, doc("readable answers, of all replies")] = None
    truncated: Annotated[Rate, doc("replies that were cut off, of all")] = None
    choice_correct: Annotated[Rate, doc("choice: right answers")] = None
    choice_oc: Annotated[Rate, doc("right, where the original was chosen")] = None
    choice_mc: Annotated[Rate, doc("right, where the mutated one was chosen")] = None
    choice_or: Annotated[Rate, doc("the mutated one's output, where the original was chosen")] = (
        None
    )
    choice_mr: Annotated[Rate, doc("the original's output, where the mutated one was chosen")] = (
        None
    )
    position_bias: Annotated[Rate, doc("choice: for A, whatever it is")] = None
    order_consistency: Annotated[
        Rate, doc("choice: the same program in both orders, of such pairs")
    ] = None
    control_position_bias: Annotated[Rate, doc("choice between equal programs: for A")] = None


class TurnPart(Part, frozen=True, kw_only=True):
    """Which call of which problem it is, and what was answered."""

    task: Annotated[Kind, doc("what it counts to; control is a choice between equal programs")]
    problem_id: Annotated[str, doc("id of the problem")]
    case: Annotated[Count, doc("which call of the problem, from 0")]
    round: Annotated[Count, doc("which generation or decision, from 0")]
    program: Annotated[Program, doc("the program that is shown; in a choice, the one that is A")]
    level: Annotated[Level, doc("level of reasoning that was asked for")]
    test_input: Annotated[str, doc("the call whose value is asked for")]
    expected_output: Annotated[
        str | None, doc("the right answer of the program that was shown, or chosen")
    ]
    other_output: Annotated[str | None, doc("the other program's; null if there is none")]
    can_revert: Annotated[
        bool, doc("whether the other program's output tells recall from execution")
    ]
    chosen: Annotated[str | None, doc("A or B; null in prediction, or without a readable answer")]
    prediction: Annotated[str | None, doc("the answer, as it was read; null if it could not be")]

    @classmethod
    def of(cls, turn: Turn) -> Self:
        own_turn = ExecutionTurn.of(turn)
        item, program, answer = own_turn.item, own_turn.answered_program, own_turn.answer
        return cls(
            task=item.kind,
            problem_id=item.problem.id,
            case=item.case,
            round=item.round,
            program=item.program,
            level=item.level,
            test_input=item.call,
            expected_output=item.output(program),
            other_output=item.output(other_program(program)) if item.kind != "control" else None,
            can_revert=item.can_revert,
            chosen=answer.chosen if answer else None,
            prediction=answer.text if answer else None,
        )


class DatasetEntry(Struct, frozen=True, kw_only=True):
    """Where the problems are from."""

    place: Annotated[str, doc("shipped, a file, or hf:OWNER/NAME")]
    sha256: Annotated[Sha256, doc("of its files")]
    rows: Annotated[Count, doc("rows that it has")]
    dropped: Annotated[list[str], doc("ids of rows that were left out, without a mutated program")]


class RunPart(Part, frozen=True, kw_only=True):
    """The figures of each task, with their intervals; null of one that was not played."""

    dataset: Annotated[
        DatasetEntry | None, doc("where the problems are from; null if not read")
    ] = None
    prediction: Annotated[Prediction | None, doc("of outputs; null if that was not played")] = None
    choice: Annotated[Choice | None, doc("between programs; null if that was not played")] = None
    reasoning: Annotated[
        list[LevelEntry] | None, doc("by level, the lowest first; null without --compare-reasoning")
    ] = None

    @classmethod
    def of(cls, result: RunResult) -> Self:
        sample, settings = result.opening, part_of(result.config, Settings)
        assert isinstance(sample, ExecutionSample)  # noqa: S101 -- there are no other episodes
        turns = [ExecutionTurn.of(turn) for turn in result.turns]
        compared = [turn for turn in turns if turn.item.kind == "reasoning"]
        predicted = [turn.item_outcome for turn in turns if turn.item.kind == "prediction"]
        chosen = [turn.item_outcome for turn in turns if turn.item.is_choice]

        def items_of(*kinds: Kind) -> list[Item]:
            return [item for item in sample.items if item.kind in kinds]

        return cls(
            dataset=_dataset(sample.data),
            prediction=prediction(predicted, items) if (items := items_of("prediction")) else None,
            choice=choice(chosen, items) if (items := items_of("choice", "control")) else None,
            reasoning=levels(compared, items, settings, lambda turns: _cost_usd(result, turns))
            if (items := items_of("reasoning"))
            else None,
        )


PARTS = Parts(
    metrics=MetricsPart,
    headline=HeadlinePart,
    run=RunPart,
    turn=TurnPart,
    turn_file=TurnPart,
    max_turns=MOST_TURNS,
)


def _dataset(data: DataSet) -> DatasetEntry:
    return DatasetEntry(
        place=data.place, sha256=data.sha256, rows=data.n_rows, dropped=[*data.dropped]
    )


def _cost_usd(result: RunResult, turns: Turns) -> float | None:
    """The cost of these turns, `None` if it is not known."""
    role = result.parts.tested
    billing = Billing.of(result.config, result.parts, result.models, result.prices)
    if not turns or billing.prices(role) is None:
        return None
    return role_usd(billing, role, [turn.reply for turn in turns])
