"""One judge model: asked for a verdict, once more if it cannot be used, and never guessed for."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.errors import ModelError, Stopped
from socratic_bench.judging.request import ask, delimiter_code, verdict_request
from socratic_bench.judging.verdict import Unreadable, raw_text, read_verdict
from socratic_bench.ports.benchmark import JudgeInput
from socratic_bench.ports.provider import Model
from socratic_bench.turns import Judged, Rubric, Unscored, Verdict
from socratic_bench.types import JUDGE, CallKey, Completion

# Failures that leave only this turn unjudged. Any other failure would hit every other turn, too.
_TURN_REASONS = ("context_window", "unavailable", "budget")


class Judge(Struct, frozen=True, kw_only=True):
    """A model that scores replies by `rubric`.

    The delimiters around a reply are derived from `seed` and the judge's input. `n_answered`
    returns how many answers earlier processes of the run got to a closing call. `juror` is the id
    as one of a jury, empty for a judge alone. `sample` counts the verdicts on one reply; where
    there are several (`is_sampled`), the model's own temperature leaves room for them to differ.
    """

    model: Model
    rubric: Rubric
    seed: int
    now: Callable[[], datetime]
    n_answered: Callable[[CallKey], int] = lambda _: 0
    juror: str = ""
    sample: int = 0
    is_sampled: bool = False

    def judge(self, judge_input: JudgeInput, index: int) -> Judged:
        """The verdict on turn `index`, or why there is none.

        A judge whose retries are used up leaves the turn unjudged with the reason `unavailable`, a
        call that the budget does not allow with `budget`.
        Raises `ModelError` for what would fail for every turn (access, unknown model).
        """
        key = CallKey(role=JUDGE, index=index, part=self.juror, repeat=2 * self.sample)
        code = delimiter_code(self.seed, key, judge_input)
        request = verdict_request(self.rubric, judge_input, code=code)
        if self.is_sampled:
            request = replace(request, temperature_if_taken=None)
        calls: list[Completion] = []
        try:
            answer = ask(self.model, request, key, partial(self._read, judge_input), calls)
        except (ModelError, Stopped) as error:
            if error.end_reason not in _TURN_REASONS:
                raise
            return self._result_of(unanswered(error, calls), calls)
        if isinstance(answer, Unreadable):
            return self._result_of(unusable(answer, calls[-1]), calls)
        return self._result_of(answer, calls)

    def _read(self, judge_input: JudgeInput, completion: Completion) -> Verdict | Unreadable:
        return read_verdict(
            completion, self.rubric, judge_model=self.model.model_id, reply=judge_input.reply
        )

    def _result_of(self, outcome: Verdict | Unscored, calls: list[Completion]) -> Judged:
        finished_at = calls[-1].finished_at if calls else self.now()
        return Judged(outcome=outcome, calls=tuple(calls), finished_at=finished_at)


def unusable(problem: Unreadable, answer: Completion) -> Unscored:
    """No verdict, since the answer holds none."""
    return Unscored(
        reason=problem.reason,
        message=f"The judge's answer cannot be used: {problem.problem}",
        raw_reply=raw_text(answer),
    )


def unanswered(error: ModelError | Stopped, calls: Sequence[Completion]) -> Unscored:
    """No verdict, since a call failed after the `calls` that were answered."""
    return Unscored(
        reason=error.end_reason,
        message=error.message,
        raw_reply=raw_text(calls[-1]) if calls else None,
        hints=error.hints,
    )
