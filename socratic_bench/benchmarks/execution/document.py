"""The keys that the benchmark execution adds to documents: rates, turns, and the data set."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Self

from msgspec import Struct, field

from socratic_bench.benchmarks.execution.answers import ExecutionTurn
from socratic_bench.benchmarks.execution.choice import Choice, choice
from socratic_bench.benchmarks.execution.dataset.reading import DataSet
from socratic_bench.benchmarks.execution.items import LEVELS, Item, Kind, Program, other_program
from socratic_bench.benchmarks.execution.outcomes import OF_ITEM, Signed
from socratic_bench.benchmarks.execution.prediction import (
    LevelEntry,
    Prediction,
    Turns,
    level_entry,
    prediction,
)
from socratic_bench.benchmarks.execution.settings import Level, Settings
from socratic_bench.documents.cost import Billing, role_usd
from socratic_bench.documents.document import Count, Sha256, Share
from socratic_bench.documents.run import RunResult
from socratic_bench.ports.benchmark import Sample
from socratic_bench.ports.parts import Part, Parts
from socratic_bench.settings import MOST_TURNS, part_of
from socratic_bench.turns import Turn
from socratic_bench.types import doc

Rate = Annotated[Share | None, doc("share; null without an answer")]


class ExecutionSample(Sample, frozen=True, kw_only=True):
    """All items of a run, and their data set."""

    items: tuple[Item, ...]
    data: DataSet


class HeadlinePart(Part, frozen=True, kw_only=True):
    """The metrics at the top level of the document and in its short form."""

    oc: Annotated[Rate, doc("prediction: right on the original program")] = None
    mc: Annotated[Rate, doc("prediction: right on the mutated program")] = None
    or_: Annotated[Rate, doc("prediction: the mutated program's output on the original one")] = (
        field(name="or", default=None)
    )
    mr: Annotated[Rate, doc("prediction: the original program's output on the mutated one")] = None
    preference: Annotated[Rate, doc("choice: the original program was chosen")] = None

    @classmethod
    def of(cls, metrics: Mapping[str, Any]) -> Self:
        values = {"or_" if name == "or" else name: value for name, value in metrics.items()}
        return cls(**{name: values.get(name) for name in cls.__struct_fields__})


class MetricsPart(HeadlinePart, frozen=True, kw_only=True):
    """Shares of readable answers, unless they say otherwise; null without an answer."""

    oc_less_mc: Annotated[
        Signed | None, doc("OC minus MC, mean over problems; null without one")
    ] = None
    oc_pass_at_1: Annotated[Rate, doc("OC over all generations, readable or not")] = None
    mc_pass_at_1: Annotated[Rate, doc("MC over all generations, readable or not")] = None
    answered: Annotated[Rate, doc("share of all replies with a readable answer")] = None
    truncated: Annotated[Rate, doc("share of all replies that were cut off")] = None
    choice_correct: Annotated[Rate, doc("choice: right answers")] = None
    choice_oc: Annotated[Rate, doc("right answers, if the original was chosen")] = None
    choice_mc: Annotated[Rate, doc("right answers, if the mutated one was chosen")] = None
    choice_or: Annotated[Rate, doc("the mutated one's output, if the original was chosen")] = None
    choice_mr: Annotated[Rate, doc("the original's output, if the mutated one was chosen")] = None
    position_bias: Annotated[Rate, doc("choice: A was chosen")] = None
    order_consistency: Annotated[
        Rate, doc("choice: the same program was chosen in both orders")
    ] = None
    control_position_bias: Annotated[Rate, doc("choice between equal programs: A was chosen")] = (
        None
    )


class TurnPart(Part, frozen=True, kw_only=True):
    """The problem and call of a turn, and the answer."""

    task: Annotated[Kind, doc("task; control is a choice between equal programs")]
    problem_id: Annotated[str, doc("id of the problem")]
    case: Annotated[Count, doc("index of the call of the problem, from 0")]
    round: Annotated[Count, doc("index of the generation or decision, from 0")]
    program: Annotated[Program, doc("the program that is shown; in a choice, program A")]
    level: Annotated[Level, doc("requested level of reasoning")]
    test_input: Annotated[str, doc("the call whose value is to be predicted")]
    expected_output: Annotated[str | None, doc("output of the program that was shown or chosen")]
    other_output: Annotated[str | None, doc("output of the other program; null if there is none")]
    can_revert: Annotated[
        bool, doc("whether the other program's output would show recall instead of execution")
    ]
    chosen: Annotated[str | None, doc("A or B; null in prediction, or without a readable answer")]
    prediction: Annotated[str | None, doc("the answer as read; null if unreadable")]

    @classmethod
    def of(cls, turn: Turn) -> Self:
        execution = ExecutionTurn.of(turn)
        item, program, answer = execution.item, execution.target_program, execution.answer
        return cls(
            task=item.kind,
            problem_id=item.problem.id,
            **{name: getattr(item, name) for name in OF_ITEM},
            test_input=item.call,
            expected_output=item.output(program),
            other_output=item.output(other_program(program)) if item.kind != "control" else None,
            chosen=answer.chosen if answer else None,
            prediction=answer.text if answer else None,
        )


class DatasetEntry(Struct, frozen=True, kw_only=True):
    """The data set of the problems."""

    place: Annotated[str, doc("shipped, a file, or hf:OWNER/NAME")]
    sha256: Annotated[Sha256, doc("sha256 of its files")]
    rows: Annotated[Count, doc("number of rows")]
    dropped: Annotated[list[str], doc("ids of rows without a mutated program, which are left out")]


class RunPart(Part, frozen=True, kw_only=True):
    """The figures of each task with their intervals; null for a task that was not run."""

    dataset: Annotated[DatasetEntry | None, doc("data set of the problems; null if not read")] = (
        None
    )
    prediction: Annotated[Prediction | None, doc("prediction of outputs; null if not run")] = None
    choice: Annotated[Choice | None, doc("choice between programs; null if not run")] = None
    reasoning: Annotated[
        list[LevelEntry] | None, doc("by level, lowest first; null without --compare-reasoning")
    ] = None

    @classmethod
    def of(cls, result: RunResult) -> Self:
        sample, settings = result.opening, part_of(result.config, Settings)
        assert isinstance(sample, ExecutionSample)  # noqa: S101 -- this benchmark has no others
        turns = [ExecutionTurn.of(turn) for turn in result.turns]
        compared = [turn for turn in turns if turn.item.kind == "reasoning"]
        predicted = [turn.item_outcome for turn in turns if turn.item.kind == "prediction"]
        chosen = [turn.item_outcome for turn in turns if turn.item.is_choice]

        def items_of(*kinds: Kind) -> list[Item]:
            return [item for item in sample.items if item.kind in kinds]

        return cls(
            dataset=DatasetEntry(
                place=sample.data.place,
                sha256=sample.data.sha256,
                rows=sample.data.n_rows,
                dropped=[*sample.data.dropped],
            ),
            prediction=prediction(predicted, items) if (items := items_of("prediction")) else None,
            choice=choice(chosen, items) if (items := items_of("choice", "control")) else None,
            reasoning=[
                level_entry(level, compared, items, settings, partial(_cost_usd, result))
                for level in LEVELS
            ]
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


def _cost_usd(result: RunResult, turns: Turns) -> float | None:
    """USD of these turns; `None` if unknown."""
    role = result.parts.tested
    billing = Billing.of(result.config, result.parts, result.models, result.prices)
    if not turns or billing.prices(role) is None:
        return None
    return role_usd(billing, role, [turn.reply for turn in turns])
