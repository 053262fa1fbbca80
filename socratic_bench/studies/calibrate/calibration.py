"""From labels and a judge to the document of a calibration."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig, load_benchmark
from socratic_bench.documents import encode
from socratic_bench.documents.calibration import (
    CalibratedJudge,
    CalibratedTurn,
    CalibrationDocument,
    Label,
    LabelsEntry,
)
from socratic_bench.documents.document import ErrorEntry, utc
from socratic_bench.documents.encoding import plain_keys
from socratic_bench.documents.judge import JudgeEntry, silent_jurors
from socratic_bench.documents.run import RunResult
from socratic_bench.documents.usage import ActorUsage
from socratic_bench.errors import Mistakes, Problem, Words
from socratic_bench.ports.benchmark import (
    Benchmark,
    Episode,
    EpisodeContext,
    EpisodeResult,
    JudgeInput,
    Length,
    MetricInfo,
    Metrics,
    Sample,
)
from socratic_bench.ports.parts import Parts
from socratic_bench.runs import Plan, prepare
from socratic_bench.settings import MOST_TURNS, CoreConfig
from socratic_bench.statistics import agreement
from socratic_bench.storage.stores import open_bucket, open_folder
from socratic_bench.studies.calibrate.agreement import Figures, disagreements, names_of, rounded
from socratic_bench.studies.calibrate.labels import (
    LabelledTurn,
    labelled_turns,
    mistaken_scores,
    read_labels,
)
from socratic_bench.studies.calibrate.readings import (
    JudgedLabel,
    JudgedRun,
    Quantity,
    matches,
    read_runs,
    score_of,
)
from socratic_bench.turns import Rubric, Turn, Unscored, recorded_reply
from socratic_bench.types import JUDGE, Role, plural

FEW_DIALOGUES = 10
CALL_HELP = "See socratic-runner calibrate --help."
# Labelled replies as a benchmark of their own: nothing is asked but the judge.

NAME = "labels"
# How a judge is shown the first words, if others before the reply are left out.
FIRST_WORDS = ", first words"
# Where a calibration is kept: beside the run that judged, in its own folder of the stores.

FOLDER = "calibrations"


class CalibrationRequest(Struct, frozen=True, kw_only=True):
    """What is asked for: files of `labels`, the `runs` whose turns labels name without their words,
    the `rubric` by its edition or file (none: the usual one), by label of yes or no what the judge
    says yes by, and the half of intervals that more labels are to reach.
    """

    labels: tuple[str, ...]
    runs: tuple[str, ...] = ()
    rubric: str = ""
    matches: Mapping[str, str] = field(default_factory=dict)
    half_width: float | None = None


class Calibration(Struct, frozen=True, kw_only=True):
    """A calibration that may start: labels are read, and its run is prepared."""

    asked: CalibrationRequest
    plan: Plan
    labels: Sequence[Label]
    turns: Sequence[LabelledTurn]
    rubric: Rubric
    quantities: Mapping[str, Quantity]


class LabelledEpisode(Episode, frozen=True, kw_only=True):
    """Every labelled reply, published as if it had just been given."""

    turns: Sequence[LabelledTurn]
    context_exchanges: int

    def play(self, context: EpisodeContext) -> EpisodeResult:
        for index, one in enumerate(self.turns):
            context.publish(_turn(index, one))
        return EpisodeResult(end_reason="max_turns")

    def judge_input(self, turns: Sequence[Turn], index: int) -> JudgeInput:
        """As in a run: the first words, the last few exchanges, and what is answered."""
        one, rubric = self.turns[index].first, self.rubric
        assert rubric is not None  # noqa: S101 -- `prepare` gives one
        asking, tested = rubric.speakers
        said = [(asking if line.role == "user" else tested, line.text) for line in one.history]
        recent = said[max(0, len(said) - 2 * self.context_exchanges) :]
        if len(recent) < len(said):
            recent = [(f"{asking}{FIRST_WORDS}", said[0][1]), *recent]
        return JudgeInput((*recent, (asking, one.prompt or "")), turns[index].reply.message.text)

    def expected_reply(self, role: Role, length: Length) -> str:  # noqa: ARG002
        return "The reply is just what the rubric asks for, in full."


class LabelledReplies(Benchmark):
    """The labelled replies, to be judged by a rubric."""

    name = NAME
    primary_metric = "n_labelled"
    parts = Parts(max_turns=MOST_TURNS)

    def __init__(self, turns: Sequence[LabelledTurn], rubric: Rubric) -> None:
        self._turns = turns
        self._rubric = rubric

    @property
    def metrics(self) -> Sequence[MetricInfo]:
        return (MetricInfo(name="n_labelled", title="Labelled replies", low=0, high=None),)

    def prepare(self, config: CoreConfig) -> LabelledEpisode:
        return LabelledEpisode(
            turns=self._turns,
            context_exchanges=config.judge_context,
            rubric=self._rubric,
            opening=self._opening(),
        )

    def _opening(self) -> Sample:
        return Sample(
            id=NAME,
            label=f"{len(self._turns)} labelled replies",
            prompt="".join(one.first.prompt or "" for one in self._turns[:1]),
            n_items=len(self._turns),
            hashes={
                "replies_sha256": _fingerprint(self._turns),
                "rubric_sha256": self._rubric.sha256,
            },
        )

    def summarise(self, config: CoreConfig, turns: Sequence[Turn]) -> Metrics:
        del config
        return {"n_labelled": len(turns)}


def prepare_calibration(
    config: RunConfig,
    asked: CalibrationRequest,
    problems: Sequence[Words] = (),
    *,
    region: Callable[[], str] = str,
) -> Calibration:
    """Check everything. Raises `UsageError` with the given mistakes and all others."""
    mistakes = Mistakes(problems)
    rubric: Rubric | None = None
    labels: Sequence[Label] = ()
    quantities: Mapping[str, Quantity] = {}
    with mistakes:
        named = asked.rubric or str(getattr(config, "rubric", ""))  # or the benchmark's usual one
        rubric = load_benchmark(config.benchmark).find_rubric(named)
    with mistakes:
        labels = read_labels(asked.labels)
    with mistakes:
        runs = {run.run_id: run for run in read_runs(asked.runs, region)}
        labels = [_with_words(one, runs.get(one.run_id or "")) for one in labels]
    turns = labelled_turns(labels)
    mistakes.sentences += _textless(turns)
    if config.judge_model is None:
        mistakes.sentences.append(Problem.of("A calibration is of a judge: leave {no_judge} out."))
    if rubric is None or config.judge_model is None:
        raise mistakes.error(CALL_HELP)
    mistakes.sentences += mistaken_scores(labels, rubric)
    if labels:
        answers = {name for one in labels for name in one.events}
        with mistakes:
            quantities = matches(asked.matches, answers, rubric)
    with mistakes:
        run_config = in_its_folder(_run_config(config, len(turns) or 1))
        plan = prepare(run_config, benchmark=LabelledReplies(turns, rubric))
    if mistakes.sentences:
        raise mistakes.error(CALL_HELP)
    return Calibration(
        asked=asked, plan=plan, labels=labels, turns=turns, rubric=rubric, quantities=quantities
    )


def _with_words(label: Label, run: JudgedRun | None) -> Label:
    """One that lacks the words gets those of its turn, where that is of one of the runs."""
    if label.reply is not None or run is None or label.turn not in {one.turn for one in run.turns}:
        return label
    history, prompt, reply = run.words_of(label.turn)
    author = label.author or run.model
    return replace(label, history=history, prompt=prompt, reply=reply, author=author)


def _run_config(config: RunConfig, n_turns: int) -> RunConfig:
    """That of the run which judges: nobody is tested, so the judge's model stands in its place.
    What a seed is for, delimiters, needs none that is drawn anew. No earlier calibration counts.
    """
    judge = "+".join(config.jurors)
    seed = 0 if config.seed is None else config.seed
    return replace(
        config,
        model=judge,
        model_ids=(judge,),
        benchmark=NAME,
        turns=n_turns,
        seed=seed,
        calibration=None,
    )


def _textless(turns: Sequence[LabelledTurn]) -> Iterator[Problem]:
    missing = [one.first for one in turns if one.first.reply is None]
    if missing:
        one = missing[0]
        yield Problem.of(
            "{n} labels name a turn whose words are not known, first turn {turn} of {run_id}: say "
            "with {runs} where these runs are.",
            n=len(missing),
            turn=one.turn,
            run_id=one.run_id,
        )


def document_of(calibration: Calibration, result: RunResult) -> CalibrationDocument:
    """What the run's verdicts and the labels come to."""
    rubric, asked = calibration.rubric, calibration.asked
    judged = {turn.index: turn.judged for turn in result.turns}
    readings = [
        JudgedLabel(turn=turn, judged=judged.get(index))
        for index, turn in enumerate(calibration.turns)
    ]
    has_alpha = agreement.is_available()
    figures = Figures(rubric=rubric, has_alpha=has_alpha, half_width=asked.half_width)
    names = names_of(rubric, {name for one in calibration.labels for name in one.scores})
    judge = JudgeEntry.of(result)
    return CalibrationDocument(
        run_id=result.run_id,
        status=result.status,
        end_reason=result.end_reason,
        judge=CalibratedJudge(
            model="+".join(result.config.jurors),
            rubric=rubric.id,
            rubric_sha256=rubric.sha256,
            temperature=judge.temperature if judge else None,
            samples=result.config.judge_samples,
            rule=judge.rule if judge else None,
            context=result.config.judge_context,
            silent=silent_jurors(judge.jurors) if judge else (),
        ),
        labels=_labels_entry(calibration),
        n_judged=result.n_judged,
        dimensions={name: figures.scores(readings, name) for name in names},
        events={
            name: figures.answers(readings, name, quantity)
            for name, quantity in calibration.quantities.items()
        },
        disagreements=disagreements(readings, names, calibration.quantities, rubric),
        turns=[_row(one, names, calibration) for one in readings],
        cost_usd=_usd(result),
        usage=ActorUsage.of_all([result.tallies[JUDGE]]),
        completed_at=utc(result.completed_at),
        notices=[
            *result.notices,
            *_notices(calibration, has_alpha=has_alpha),
            *_losses(judge, len(result.turns)),
        ],
        error=_error(result),
    )


def _usd(result: RunResult) -> float | None:
    cost = result.cost.roles[JUDGE] if result.cost else None
    return cost.total_usd if cost else None


def _error(result: RunResult) -> ErrorEntry | None:
    if result.error is not None:
        return ErrorEntry.of(result.error)
    if not result.shortfalls:
        return None
    return ErrorEntry(
        code="gate",
        message=" ".join(result.shortfalls),
        hint="The calibration is of the replies that were judged.",
        retryable=False,
    )


def _notices(calibration: Calibration, *, has_alpha: bool) -> Iterator[str]:
    if not has_alpha:
        yield agreement.NO_ALPHA
    n_dialogues = len({one.cluster for one in calibration.turns})
    if n_dialogues < FEW_DIALOGUES:
        yield (
            f"The labels are of {plural(n_dialogues, 'dialogue')} only: with under "
            f"{FEW_DIALOGUES} an interval says little."
        )


def _losses(judge: JudgeEntry | None, n_replies: int) -> Iterator[str]:
    """What jurors that gave no verdict on some replies leave to the others."""
    for one in judge.jurors if judge and len(judge.jurors) > 1 else ():
        if missing := n_replies - one.judged_turns:
            reasons = ", ".join(one.unjudged_reasons)
            yield f"The juror {one.model} gave no verdict on {missing} of {n_replies}: {reasons}."


def _labels_entry(calibration: Calibration) -> LabelsEntry:
    turns, labels = calibration.turns, calibration.labels
    return LabelsEntry(
        sha256=sha256(msgspec.json.encode(labels)).hexdigest(),
        n=len(labels),
        n_turns=len(turns),
        n_dialogues=len({one.cluster for one in turns}),
        n_drawn=sum(one.probability is not None for one in turns),
        labellers=sorted({one.labeller for one in labels}),
    )


def _row(one: JudgedLabel, names: Sequence[str], calibration: Calibration) -> CalibratedTurn:
    first, rubric = one.turn.first, calibration.rubric
    label: dict[str, Any] = {name: rounded(score_of(one.turn, name, rubric)) for name in names}
    label |= {name: one.turn.answer(name) for name in calibration.quantities}
    return CalibratedTurn(
        dialogue=one.turn.cluster,
        run_id=first.run_id,
        turn=first.turn,
        author=first.author,
        probability=one.turn.probability,
        label={name: value for name, value in label.items() if value is not None},
        judge=_judged(one, names, calibration.quantities) if one.verdict else None,
        unjudged_reason=one.outcome.reason if isinstance(one.outcome, Unscored) else None,
    )


def _judged(
    one: JudgedLabel, names: Sequence[str], quantities: Mapping[str, Quantity]
) -> dict[str, bool | float | None]:
    said: dict[str, bool | float | None] = {name: one.scores.get(name) for name in names}
    for name, quantity in quantities.items():
        strength = one.strength(quantity)
        said[name] = None if strength is None else quantity.is_yes(strength)
    return said


def _fingerprint(turns: Sequence[LabelledTurn]) -> str:
    """Of what is judged, in its order, whatever the labels say of it."""
    shown = [(one.first.history, one.first.prompt, one.first.reply) for one in turns]
    return sha256(msgspec.json.encode(shown)).hexdigest()


def _turn(index: int, one: LabelledTurn) -> Turn:
    reply = recorded_reply(one.first.reply or "", "end_turn")
    return Turn(index=index, prompt=one.first.prompt or "", reply=reply)


def in_its_folder(config: RunConfig) -> RunConfig:
    """Apart from runs that were played, so that these can be compared by themselves."""
    folder = str(Path(config.output_dir) / FOLDER) if config.output_dir else None
    prefix = f"{config.s3_prefix}/{FOLDER}".strip("/") if config.s3_bucket else ""
    return replace(config, output_dir=folder, s3_prefix=prefix)


def keep(document: CalibrationDocument, config: CoreConfig) -> None:
    """Raises `ArtifactError` if a store does not take it."""
    body = encode(plain_keys(document))
    for store in (open_folder(config), open_bucket(config)):
        if store is not None:
            store.put(f"{document.run_id}.json", body)
