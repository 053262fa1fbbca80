"""Calibrate a judge: score labelled replies as a benchmark of their own, and compare the verdicts
with the labels.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig, load_benchmark
from socratic_bench.documents import encode
from socratic_bench.documents.calibration import (
    CalibratedTurn,
    CalibrationDocument,
    Label,
    LabelsEntry,
)
from socratic_bench.documents.document import ErrorEntry, utc
from socratic_bench.documents.encoding import plain_keys
from socratic_bench.documents.judge import JudgeEntry, silent_jurors
from socratic_bench.documents.judge_status import CalibratedJudge
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
from socratic_bench.statistics.ppi import FEWEST_DIALOGUES
from socratic_bench.storage.stores import Region, open_bucket, open_folder
from socratic_bench.studies.calibrate.agreement import Figures, disagreements, names_of
from socratic_bench.studies.calibrate.labels import (
    RUBRIC,
    LabelledTurn,
    labelled_turns,
    read_annotations,
    read_labels,
)
from socratic_bench.studies.calibrate.readings import (
    JudgedLabel,
    Quantity,
    judge_of,
    match_quantities,
    scenario_names,
    score_of,
    words_of,
)
from socratic_bench.studies.figures import rounded
from socratic_bench.studies.reading import StoredRuns, read_runs
from socratic_bench.studies.rows import RunRow
from socratic_bench.turns import REFERENCE, Rubric, Turn, Unscored, recorded_reply
from socratic_bench.types import JUDGE, Role, plural

CALL_HELP = "See socratic-runner calibrate --help."
NAME = "labels"
# How a judge is shown the first words, if others before the reply are left out.
FIRST_WORDS = ", first words"
FOLDER = "calibrations"


class CalibrationRequest(Struct, frozen=True, kw_only=True):
    """What the user asks for: files of `labels`, and of MRBench's annotations; the `runs` that hold
    the texts of labels without one; the `rubric` by edition or file (default: MRBench's with its
    files, else the benchmark's); for each yes/no label the judge's quantity that it matches; the
    target half-width of intervals.
    """

    labels: tuple[str, ...] = ()
    mrbench: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    rubric: str = ""
    matches: Mapping[str, str] = {}
    half_width: float | None = None


class Calibration(Struct, frozen=True, kw_only=True):
    """A calibration that is ready to start: labels are read, and its run is prepared."""

    request: CalibrationRequest
    plan: Plan
    labels: Sequence[Label]
    turns: Sequence[LabelledTurn]
    rubric: Rubric
    quantities: Mapping[str, Quantity]
    n_repeated: int = 0


class LabelledEpisode(Episode, frozen=True, kw_only=True):
    """An episode that publishes every labelled reply as if a model had just given it."""

    turns: Sequence[LabelledTurn]
    context_exchanges: int

    def play(self, context: EpisodeContext) -> EpisodeResult:
        for index, turn in enumerate(self.turns):
            reply = recorded_reply(turn.first.reply or "", "end_turn")
            context.publish(Turn(index=index, prompt=turn.first.prompt or "", reply=reply))
        return EpisodeResult(end_reason="max_turns")

    def judge_input(self, turns: Sequence[Turn], index: int) -> JudgeInput:
        """What a judge of a run gets: first message, last exchanges, and what the reply answers."""
        label, rubric = self.turns[index].first, self.rubric
        assert rubric is not None  # noqa: S101 -- `prepare` gives one
        asking, tested = rubric.speakers
        messages = [(asking if m.role == "user" else tested, m.text) for m in label.history]
        recent = messages[max(0, len(messages) - 2 * self.context_exchanges) :]
        if len(recent) < len(messages):
            recent = [(f"{asking}{FIRST_WORDS}", messages[0][1]), *recent]
        reference = ((REFERENCE, label.reference),) if label.reference else ()
        lines = (*recent, (asking, label.prompt or ""), *reference)
        return JudgeInput(lines, turns[index].reply.message.text)

    def expected_reply(self, role: Role, length: Length) -> str:  # noqa: ARG002
        return "The reply is just what the rubric asks for, in full."


class LabelledReplies(Benchmark):
    """A benchmark whose episode is labelled replies, scored by one rubric."""

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
        # Labels do not change the hash of the replies.
        labels = [turn.first for turn in self._turns]
        replies = [(label.history, label.prompt, label.reply) for label in labels]
        opening = Sample(
            id=NAME,
            label=f"{len(self._turns)} labelled replies",
            prompt="".join(turn.first.prompt or "" for turn in self._turns[:1]),
            n_items=len(self._turns),
            hashes={
                "replies_sha256": sha256(msgspec.json.encode(replies)).hexdigest(),
                "rubric_sha256": self._rubric.sha256,
            },
        )
        return LabelledEpisode(
            turns=self._turns,
            context_exchanges=config.judge_context,
            rubric=self._rubric,
            opening=opening,
        )

    def summarise(self, config: CoreConfig, turns: Sequence[Turn]) -> Metrics:
        del config
        return {"n_labelled": len(turns)}


def prepare_calibration(
    config: RunConfig,
    request: CalibrationRequest,
    problems: Sequence[Words] = (),
    *,
    region: Region = str,
) -> Calibration:
    """Read labels, runs and rubric, and plan the run of the judge. Raises `UsageError` with the
    given problems and all that are found.
    """
    mistakes = Mistakes(problems)
    rubric: Rubric | None = None
    labels, n_repeated = list[Label](), 0
    quantities: Mapping[str, Quantity] = {}
    stored = read_runs(request.runs, region, mistakes)
    with mistakes:
        base = _rubric(config, request, stored)
        rubric = _extended(base, stored)
    with mistakes:
        labels, n_repeated = read_annotations(request.mrbench)
        labels += read_labels(request.labels, rubric) if request.labels else []
    rubric = rubric and _labelled(rubric, base, labels)
    labels = [*_with_runs(labels, stored.runs)]
    turns = labelled_turns(labels)
    if textless := [turn.first for turn in turns if turn.first.reply is None]:
        mistakes.sentences.append(_textless(textless))
    if config.judge_model is None:
        mistakes.sentences.append(Problem.of("A calibration is of a judge: leave {no_judge} out."))
    if rubric is None or config.judge_model is None:
        raise mistakes.error(CALL_HELP)
    if labels:
        answers = {name for label in labels for name in label.events}
        with mistakes:
            quantities = match_quantities(request.matches, answers, rubric)
    with mistakes:
        replies = LabelledReplies(turns, rubric)
        plan = prepare(_run_config(config, len(turns) or 1), benchmark=replies)
    if mistakes.sentences:
        raise mistakes.error(CALL_HELP)
    return Calibration(
        request=request,
        plan=plan,
        labels=labels,
        turns=turns,
        rubric=rubric,
        quantities=quantities,
        n_repeated=n_repeated,
    )


def _rubric(config: RunConfig, request: CalibrationRequest, stored: StoredRuns) -> Rubric:
    """The rubric that is asked for, or else MRBench's, or that of the runs' judge."""
    benchmark = stored.benchmark or load_benchmark(config.benchmark)
    usual = str(getattr(config, "rubric", ""))
    if benchmark.name != config.benchmark:
        usual = next((judge.rubric for run in stored.runs if (judge := judge_of(run))), usual)
    return benchmark.find_rubric(request.rubric or (RUBRIC if request.mrbench else usual))


def _extended(rubric: Rubric, stored: StoredRuns) -> Rubric:
    """The rubric with the dimensions that turns of the runs have of their own."""
    own_keys = (turn.own for run in stored.runs for turn in run.turns)
    return stored.benchmark.extend_rubric(rubric, own_keys) if stored.benchmark else rubric


def _labelled(rubric: Rubric, base: Rubric, labels: Sequence[Label]) -> Rubric:
    """The rubric without dimensions of turns' own that nobody has labelled."""
    names = {*base.names, *(name for label in labels for name in label.scores)}
    return replace(rubric, dimensions=tuple(d for d in rubric.dimensions if d.name in names))


def _with_runs(labels: Sequence[Label], runs: Sequence[RunRow]) -> Iterator[Label]:
    """The labels with the scenario and, where they have none, the texts of their turn, if its run
    is there. A turn of another run has the first message of its dialogue as its scenario.
    """
    runs_by_id, scenarios = {run.run_id: run for run in runs}, scenario_names(runs)
    for label in labels:
        run = runs_by_id.get(label.run_id or "")
        if run and label.reply is None and any(turn.turn == label.turn for turn in run.turns):
            words = words_of(run, label.turn)
            whole = replace(label, **words, author=label.author or run.model)
        else:
            whole = label
        scenario = whole.scenario or scenarios.get(label.run_id or "")
        if not scenario and label.run_id and not label.dialogue:
            scenario = whole.history[0].text if whole.history else whole.prompt
        yield replace(whole, scenario=scenario or None)


def _textless(labels: Sequence[Label]) -> Problem:
    return Problem.of(
        "{n} labels name a turn whose words are not known, first turn {turn} of {run_id}: say "
        "with {runs} where these runs are.",
        n=len(labels),
        turn=labels[0].turn,
        run_id=labels[0].run_id,
    )


def _run_config(config: RunConfig, n_turns: int) -> RunConfig:
    """The configuration of the judge's run, which is stored in a folder of its own, so that a
    comparison of ordinary runs does not include it. No model is under test, so the judge's model
    stands in its place. The seed is fixed, since it only makes delimiters. Earlier calibrations do
    not count.
    """
    judge = "+".join(config.jurors)
    return replace(
        config,
        model=judge,
        model_ids=(judge,),
        benchmark=NAME,
        turns=n_turns,
        seed=0 if config.seed is None else config.seed,
        calibration=None,
        output_dir=str(Path(config.output_dir) / FOLDER) if config.output_dir else None,
        s3_prefix=f"{config.s3_prefix}/{FOLDER}".strip("/") if config.s3_bucket else "",
    )


def document_of(calibration: Calibration, result: RunResult) -> CalibrationDocument:
    """The document of a calibration: agreement of the run's verdicts with the labels."""
    rubric, request = calibration.rubric, calibration.request
    judged = {turn.index: turn.judged for turn in result.turns}
    readings = [
        JudgedLabel(turn=turn, judged=judged.get(index))
        for index, turn in enumerate(calibration.turns)
    ]
    has_alpha = agreement.is_available()
    figures = Figures(rubric=rubric, has_alpha=has_alpha, half_width=request.half_width)
    names = names_of(rubric, {name for label in calibration.labels for name in label.scores})
    judge = JudgeEntry.of(result)
    cost = result.cost.roles[JUDGE] if result.cost else None
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
        turns=[_row(reading, names, calibration) for reading in readings],
        cost_usd=cost.total_usd if cost else None,
        usage=ActorUsage.of_all([result.tallies[JUDGE]]),
        completed_at=utc(result.completed_at),
        notices=[*result.notices, *_notices(calibration, judge, has_alpha=has_alpha)],
        error=ErrorEntry.of(result.error)
        if result.error
        else ErrorEntry.of_gates(
            result.shortfalls, "The calibration is of the replies that were judged."
        ),
    )


def _labels_entry(calibration: Calibration) -> LabelsEntry:
    turns, labels = calibration.turns, calibration.labels
    return LabelsEntry(
        sha256=sha256(msgspec.json.encode(labels)).hexdigest(),
        n=len(labels),
        n_turns=len(turns),
        n_dialogues=_count_dialogues(turns),
        n_scenarios=len({turn.cluster for turn in turns}),
        n_drawn=sum(turn.probability is not None for turn in turns),
        labellers=sorted({label.labeller for label in labels}),
    )


def _count_dialogues(turns: Sequence[LabelledTurn]) -> int:
    return len({turn.first.dialogue_id for turn in turns})


def _row(reading: JudgedLabel, names: Sequence[str], calibration: Calibration) -> CalibratedTurn:
    first, rubric = reading.turn.first, calibration.rubric
    label: dict[str, Any] = {name: rounded(score_of(reading.turn, name, rubric)) for name in names}
    label |= {name: reading.turn.answer(name) for name in calibration.quantities}
    judge: dict[str, Any] = {name: reading.scores.get(name) for name in names}
    judge |= {name: reading.answer(quantity) for name, quantity in calibration.quantities.items()}
    return CalibratedTurn(
        scenario=reading.turn.cluster,
        dialogue=first.dialogue_id,
        run_id=first.run_id,
        turn=first.turn,
        author=first.author,
        probability=reading.turn.probability,
        label={name: value for name, value in label.items() if value is not None},
        judge=judge if reading.verdict else None,
        unjudged_reason=reading.outcome.reason if isinstance(reading.outcome, Unscored) else None,
    )


def _notices(
    calibration: Calibration, judge: JudgeEntry | None, *, has_alpha: bool
) -> Iterator[str]:
    if not has_alpha:
        yield agreement.NO_ALPHA
    if calibration.n_repeated:
        n = plural(calibration.n_repeated, "reply is", "replies are")
        yield f"{n} labelled twice in the files of MRBench: the first label counts."
    n_dialogues = _count_dialogues(calibration.turns)
    if n_dialogues < FEWEST_DIALOGUES:
        yield (
            f"The labels are of {plural(n_dialogues, 'dialogue')} only: it takes "
            f"{FEWEST_DIALOGUES} to call a judge calibrated."
        )

    n_replies = len(calibration.turns)
    for juror in judge.jurors if judge and len(judge.jurors) > 1 else ():
        if missing := n_replies - juror.judged_turns:
            reasons = ", ".join(juror.unjudged_reasons)
            yield f"The juror {juror.model} gave no verdict on {missing} of {n_replies}: {reasons}."


def keep(document: CalibrationDocument, config: CoreConfig) -> None:
    """Write the document into each store. Raises `ArtifactError` if a store refuses it."""
    body = encode(plain_keys(document))
    for store in (open_folder(config), open_bucket(config)):
        if store is not None:
            store.put(f"{document.run_id}.json", body)
