"""The closing verdict of a run: its judge is asked about the episode as a whole."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from socratic_bench.errors import ENDINGS, BenchError
from socratic_bench.ports.benchmark import ClosingQuestion, EpisodeResult, Metrics
from socratic_bench.runs.context import RunScope
from socratic_bench.runs.prepare import Plan
from socratic_bench.turns import ClosingResult, Turn, Unscored
from socratic_bench.types import CONTEXT_WINDOW

if TYPE_CHECKING:
    from socratic_bench.judging.jury import Jury

Outcome = EpisodeResult | BenchError  # a run ends by itself, or by an error
AGAIN = "Resume the run to have it asked again."


def closing_question(plan: Plan, turns: Sequence[Turn], outcome: Outcome) -> ClosingQuestion | None:
    """What is asked of an episode that has ended; `None` if nothing of it was played, or a failure
    ended it. What a budget leaves unfinished is asked about, too, as far as it fits.
    """
    end_reason = outcome.end_reason
    is_over = ENDINGS[end_reason].status == "completed" or end_reason == "budget"
    if not is_over or all(turn.replayed for turn in turns):
        return None
    closing = None if isinstance(outcome, BenchError) else outcome.closing
    return plan.episode.closing_question(turns, closing)


def metrics_of(plan: Plan, turns: Sequence[Turn], concluded: ClosingResult | None) -> Metrics:
    """All of them: over the turns, and those of a closing verdict if there is one."""
    summed_up = plan.benchmark.summarise(plan.config, turns)
    verdict = concluded.verdict if concluded else None
    return {**summed_up, **plan.benchmark.closing_metrics(verdict.findings if verdict else ())}


def with_closing_findings(
    plan: Plan, turns: tuple[Turn, ...], concluded: ClosingResult | None
) -> tuple[Turn, ...]:
    """The turns with what the closing verdict says of each; as they are if there is none."""
    verdict = concluded.verdict if concluded else None
    return tuple(plan.episode.with_findings(turns, verdict.findings)) if verdict else turns


def is_open(concluded: ClosingResult | None) -> bool:
    """Whether it was asked in vain, and may be answered once the run is resumed. For a dialogue
    that is too long it would be refused again.
    """
    outcome = concluded.outcome if concluded else None
    return isinstance(outcome, Unscored) and outcome.reason != CONTEXT_WINDOW


def words_of(concluded: ClosingResult | None) -> str | None:
    """What people are told of a closing verdict that is missing."""
    outcome = concluded.outcome if concluded else None
    if not isinstance(outcome, Unscored):
        return None
    said = f"There is no closing verdict: {outcome.message}"
    return f"{said} {AGAIN}" if is_open(concluded) else said


class ClosingJudging:
    """Has the judge asked once the episode has ended, beside the verdicts on its last turns.

    `keep` stores what came of it. Under a budget it is asked after the verdicts, which so come
    first, whoever is quicker. `judge` tells who judges, `None` where nobody does.
    """

    def __init__(self, scope: RunScope, keep: Callable[[ClosingResult], None]) -> None:
        self.judge: Callable[[], Jury | None] = lambda: None
        self._scope = scope
        self._keep = keep
        self._lock = threading.Lock()
        self._is_final = False
        self._concluded: ClosingResult | None = None

    def wait(self, turns: Sequence[Turn], outcome: Outcome, beside: Sequence[Future[Any]]) -> None:
        """Have it asked, and wait for it and all that is `beside` it. Raises what ends the run."""
        plan = self._scope.plan
        judge = self.judge()
        question = closing_question(plan, turns, outcome) if judge else None
        if judge and question:
            if plan.config.max_cost_usd is not None:
                self._wait(beside)
            self._ask(judge, question)
        self._wait(beside)

    def final(self) -> ClosingResult | None:
        """What came of it; what comes later is dropped, so that document and files agree."""
        with self._lock:
            self._is_final = True
            return self._concluded

    def _ask(self, judge: "Jury", question: ClosingQuestion) -> None:
        try:
            concluded = judge.conclude(question)
        except BenchError as error:
            self._scope.cancel_token.end(error)
            raise
        with self._lock:
            if not self._is_final:
                self._concluded = concluded
                self._keep(concluded)

    def _wait(self, futures: Sequence[Future[Any]]) -> None:
        for future in futures:
            self._scope.cancel_token.result(future)
