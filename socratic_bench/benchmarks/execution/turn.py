"""A turn of this benchmark: one item, and what was read of its reply."""

from msgspec.structs import replace

from socratic_bench.benchmarks.execution.answers import Answer, read_choice, read_prediction
from socratic_bench.benchmarks.execution.items import Item, Program, other, value_of
from socratic_bench.benchmarks.execution.literals import compare
from socratic_bench.benchmarks.execution.reading import ItemOutcome, Outcome
from socratic_bench.turns import Turn


class ExecutionTurn(Turn, frozen=True, kw_only=True):
    """`answer` is what was read of the reply, `None` if nothing was."""

    item: Item
    result: Outcome = "unparsed"
    answer: Answer | None = None

    @classmethod
    def of(cls, turn: Turn) -> "ExecutionTurn":
        """The turn as an episode of this benchmark has published it."""
        assert isinstance(turn, cls)  # noqa: S101 -- there are no other episodes
        return turn

    @property
    def about(self) -> Program:
        """The program whose output was asked for: the one that is shown, or chosen."""
        return self.reading.about

    @property
    def reading(self) -> ItemOutcome:
        item = self.item
        return ItemOutcome(
            kind=item.kind,
            problem=item.problem.id,
            n_cases=len(item.problem.inputs),
            case=item.case,
            round=item.round,
            program=item.program,
            level=item.level,
            can_revert=item.can_revert,
            outcome=self.result,
            chosen=self.answer.chosen if self.answer else None,
        )


def read(turn: ExecutionTurn) -> ExecutionTurn:
    """The turn with its answer, and what that is worth. A reply that was refused or cut off has no
    answer, whatever stands in it.
    """
    item, said = turn.item, turn.answered
    answer = None
    if said == "answered":
        reply = turn.reply.message.text
        answer = (
            read_choice(reply)
            if item.is_choice
            else read_prediction(reply, item.problem.function_name)
        )
    found = replace(turn, answer=answer)
    result, is_mismatch = ("unparsed", None) if said == "answered" else (said, None)
    if answer:
        result, is_mismatch = _judged(found, answer)
    return replace(
        found,
        result=result,
        is_parsed=answer is not None if said == "answered" else None,
        measures={"outcome": result, "shape_mismatch": is_mismatch},
        summary=result.replace("_", " "),
    )


def _judged(turn: ExecutionTurn, answer: Answer) -> tuple[Outcome, bool]:
    """What an answer is worth, and whether it differs from the right one by its brackets alone."""
    item, about = turn.item, turn.about
    expected, recalled = item.output(about), item.output(other(about))
    likeness = compare(answer.value, value_of(expected or ""))
    if likeness == "equal":
        return "correct", False
    is_other = recalled is not None and compare(answer.value, value_of(recalled)) == "equal"
    result: Outcome = "reversion" if is_other and item.can_revert else "other_wrong"
    return result, likeness == "shape_mismatch"
