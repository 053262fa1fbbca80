"""Correct a model's figures by people's labels: as judged, corrected, and by labels alone."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, field

from socratic_bench.benchmarks import load_benchmark
from socratic_bench.documents.calibration import (
    CalibratedJudge,
    Corrected,
    CorrectedModel,
    CorrectionDocument,
    Estimated,
    Label,
    ThreeWays,
    Times,
)
from socratic_bench.documents.sweep import Survival
from socratic_bench.errors import Mistakes, Problem, UsageError, Words
from socratic_bench.statistics import intervals
from socratic_bench.statistics.ppi import (
    FEWEST_CLUSTERS,
    Estimate,
    Judged,
    Labelled,
    Uncorrectable,
    correct_mean,
    correct_rate,
    judge_mean,
    label_mean,
)
from socratic_bench.statistics.survival import Time
from socratic_bench.studies.calibrate.agreement import limits, rounded
from socratic_bench.studies.calibrate.labels import (
    LabelledTurn,
    labelled_turns,
    mistaken_scores,
    read_labels,
)
from socratic_bench.studies.calibrate.readings import (
    TOTAL,
    JudgedRun,
    JudgedTurn,
    Quantity,
    match_quantities,
    parse_quantity,
    read_runs,
    score_of,
)
from socratic_bench.studies.times import longest, survival_of
from socratic_bench.turns import Rubric
from socratic_bench.types import plural

Place = tuple[str, int]  # a run and a turn of it
Flag = Literal["labels_of_others", "outside_labelled_range"]
SLACK = 1e-9
TimesOf = Callable[[Mapping[str, Any], Sequence[float]], Mapping[str, Time]]
Found = Mapping[str, list[list[Time]]]


class CorrectionRequest(Struct, frozen=True, kw_only=True):
    """What the user asks for: stored runs, and the judging whose verdicts count (default: the
    first); files of labels; for each yes/no label the judge's quantity that it matches; rates of
    turns with a score below or above a bound.
    """

    runs: tuple[str, ...]
    labels: tuple[str, ...]
    matches: Mapping[str, str] = field(default_factory=dict)
    rates: tuple[str, ...] = ()
    judging: str | None = None


class _FigureSpec(Struct, frozen=True, kw_only=True):
    """A figure: its value by the judge and by people, and its bounds."""

    name: str
    judge: Callable[[JudgedTurn], float | None]
    label: Callable[[LabelledTurn], float | None]
    low: float = 0.0
    high: float = 1.0
    is_rate: bool = False


class Values(Struct, frozen=True, kw_only=True):
    """Data of one figure: `judged` values of the model's turns, labels of the model's own turns,
    and labels of all models' turns. `low` and `high` bound the figure. A rate has yes/no values.
    """

    judged: Sequence[Judged]
    own_labels: Sequence[Labelled]
    all_labels: Sequence[Labelled]
    low: float
    high: float
    is_rate: bool = False


def correct(request: CorrectionRequest, region: Callable[[], str]) -> CorrectionDocument:
    """Correct the figures of stored runs.

    Raises `UsageError` with everything that is wrong, and `ArtifactError` if a store cannot be
    read.
    """
    mistakes = Mistakes()
    runs: Sequence[JudgedRun] = ()
    labels: Sequence[Label] = ()
    with mistakes:
        runs = read_runs(request.runs, region, request.judging)
    with mistakes:
        labels = read_labels(request.labels)
    if mistakes.sentences:
        raise mistakes.error("See socratic-runner correct --help.")
    judge = _judge_of(runs)
    rubric = _rubric_of(runs[0].benchmark, judge)
    quantities = match_quantities(
        request.matches, {name for label in labels for name in label.events}, rubric
    )
    turns = _labelled_of(labelled_turns(labels), runs, rubric)
    names = [dimension.name for dimension in rubric.dimensions]
    labelled = [name for name in names if any(name in label.scores for label in labels)]
    wanted = [
        *_scores([*labelled, TOTAL] if labelled == names else labelled, rubric),
        *(_answer(name, quantity) for name, quantity in quantities.items()),
        *(_rate(word, rubric) for word in request.rates),
    ]
    return CorrectionDocument(
        judge=judge,
        n_runs=len(runs),
        n_labels=len(turns),
        n_without_probability=sum(turn.probability is None for turn in turns.values()),
        models=[*_models(runs, turns, wanted, rubric)],
    )


def _judge_of(runs: Sequence[JudgedRun]) -> CalibratedJudge:
    """The judge of all runs.

    Raises `UsageError` if there are several: their figures cannot be corrected together.
    """
    judges = {run.judge for run in runs if run.judge}
    if unjudged := [run.run_id for run in runs if run.judge is None]:
        raise UsageError(
            [f"{unjudged[0]} was not judged: there is nothing to correct."],
            hint=Problem.of(
                "Judge it (socratic-runner judge), and say with {judging} by which verdicts."
            ),
        )
    if len(judges) > 1:
        judge_texts = sorted(map(_describe, judges))
        raise UsageError(
            [f"The runs have several judges: {'; '.join(judge_texts)}."],
            hint="Correct the runs of each judge by themselves.",
        )
    return judges.pop()


def _describe(judge: CalibratedJudge) -> str:
    """Describe a judge by everything that can differ between two judges of one model."""
    temperature = "its own" if judge.temperature is None else f"{judge.temperature:g}"
    rule = f", {judge.rule}" if judge.rule else ""
    return (
        f"{judge.model} by {judge.rubric} (temperature {temperature}, "
        f"{plural(judge.samples, 'sample')}{rule}, context {judge.context})"
    )


def _rubric_of(benchmark: str, judge: CalibratedJudge) -> Rubric:
    rubric = load_benchmark(benchmark).find_rubric(judge.rubric)
    if rubric.sha256 != judge.rubric_sha256:
        raise UsageError(
            [f"The rubric {rubric.id} is not the one by which these runs were judged."],
            hint="Judge them anew, or correct them with the version that judged them.",
        )
    return rubric


def _labelled_of(
    turns: Sequence[LabelledTurn], runs: Sequence[JudgedRun], rubric: Rubric
) -> Mapping[Place, LabelledTurn]:
    """Labels of turns of these runs.

    Raises `UsageError` for labels of other texts and for scores outside the rubric's range.
    """
    judged_turns = {(run.run_id, turn.turn): turn for run in runs for turn in run.turns}
    labelled: dict[Place, LabelledTurn] = {}
    problems: list[Words] = []
    for turn in turns:
        first = turn.first
        place = (first.run_id or "", -1 if first.turn is None else first.turn)
        if place not in judged_turns:
            continue
        if first.reply is not None and first.reply != judged_turns[place].question:
            problems.append(f"The label of turn {place[1]} of {place[0]} is of another reply.")
        labelled[place] = turn
    if not labelled:
        problems.append("No label is of a turn of these runs: labels say so by run_id and turn.")
    problems += mistaken_scores(
        [label for turn in labelled.values() for label in turn.labels], rubric
    )
    if problems:
        raise UsageError(problems)
    return labelled


def _scores(names: Sequence[str], rubric: Rubric) -> Iterator[_FigureSpec]:
    bounds = {dimension.name: (dimension.low, dimension.high) for dimension in rubric.dimensions}
    bounds[TOTAL] = (
        sum(low for low, _ in bounds.values()),
        sum(high for _, high in bounds.values()),
    )
    for name in names:
        yield _score(name, *bounds[name], rubric)


def _score(name: str, low: float, high: float, rubric: Rubric) -> _FigureSpec:
    return _FigureSpec(
        name=name,
        judge=lambda turn: turn.points.get(name),
        label=lambda turn: score_of(turn, name, rubric),
        low=low,
        high=high,
    )


def _answer(name: str, quantity: Quantity) -> _FigureSpec:
    """The rate of a yes/no label."""

    def label(turn: LabelledTurn) -> float | None:
        answer = turn.answer(name)
        return None if answer is None else float(answer)

    return _FigureSpec(name=name, judge=_judge_answer(quantity), label=label, is_rate=True)


def _judge_answer(quantity: Quantity) -> Callable[[JudgedTurn], float | None]:
    def judge_answer(turn: JudgedTurn) -> float | None:
        strength = quantity.strength(turn.points, turn.events)
        return None if strength is None else float(quantity.is_yes(strength))

    return judge_answer


def _rate(word: str, rubric: Rubric) -> _FigureSpec:
    """The rate of turns with a score on one side of a bound, by the judge and by people."""
    quantity = parse_quantity(word, rubric)
    name = quantity.score
    if name is None:
        form = "DIMENSION<BOUND or DIMENSION>=BOUND"
        raise UsageError([Problem.of("{rate} takes {form}, not {word!r}.", form=form, word=word)])

    def label(turn: LabelledTurn) -> float | None:
        score = score_of(turn, name, rubric)
        return None if score is None else float(quantity.is_yes(quantity.sign * score))

    return _FigureSpec(name=quantity.name, judge=_judge_answer(quantity), label=label, is_rate=True)


def _models(
    runs: Sequence[JudgedRun],
    turns: Mapping[Place, LabelledTurn],
    wanted: Sequence[_FigureSpec],
    rubric: Rubric,
) -> Iterator[CorrectedModel]:
    by_model: dict[str, list[JudgedRun]] = defaultdict(list)
    for run in runs:
        by_model[run.model].append(run)
    labels = {figure.name: [*_labelled_values(runs, turns, figure)] for figure in wanted}
    times_of = load_benchmark(runs[0].benchmark).parts.times
    for model, model_runs in sorted(by_model.items()):
        ids = {run.run_id for run in model_runs}
        sampled = [p for p, turn in turns.items() if p[0] in ids and turn.probability is not None]
        yield CorrectedModel(
            model=model,
            n_runs=len(model_runs),
            n_labelled=len(sampled),
            n_labelled_dialogues=len({run_id for run_id, _ in sampled}),
            figures={
                figure.name: three_ways(
                    Values(
                        judged=[*_judge_values(model_runs, figure)],
                        own_labels=[label for label in labels[figure.name] if label.cluster in ids],
                        all_labels=labels[figure.name],
                        low=figure.low,
                        high=figure.high,
                        is_rate=figure.is_rate,
                    )
                )
                for figure in wanted
            },
            times=times(model_runs, turns, rubric, times_of) if times_of else {},
        )


def _labelled_values(
    runs: Sequence[JudgedRun], turns: Mapping[Place, LabelledTurn], wanted: _FigureSpec
) -> Iterator[Labelled]:
    for run in runs:
        values = {
            turn.turn: value for turn in run.turns if (value := wanted.judge(turn)) is not None
        }
        for index, value in values.items():
            labelled_turn = turns.get((run.run_id, index))
            label = wanted.label(labelled_turn) if labelled_turn else None
            probability = labelled_turn.probability if labelled_turn else None
            if label is not None and probability is not None:
                yield Labelled(run.run_id, value, label, 1 / len(values) / probability)


def _judge_values(runs: Sequence[JudgedRun], wanted: _FigureSpec) -> Iterator[Judged]:
    for run in runs:
        values = [value for turn in run.turns if (value := wanted.judge(turn)) is not None]
        for value in values:
            yield Judged(run.run_id, value, 1 / len(values))


def three_ways(values: Values) -> ThreeWays:
    return ThreeWays(
        as_judged=_judge_estimate(values),
        corrected=_correct_estimate(values),
        of_labels=_label_estimate(values),
    )


def _judge_estimate(values: Values) -> Estimated:
    n_dialogues = _dialogues(values.judged)
    if not values.judged:
        return Estimated(value=None, n=0, n_dialogues=0, reason="No turn has a verdict on it.")
    return _to_estimated(judge_mean(values.judged), values, len(values.judged), n_dialogues)


def _dialogues(values: Sequence[Judged] | Sequence[Labelled]) -> int:
    return len({value.cluster for value in values})


def _to_estimated(estimate: Estimate, values: Values, n: int, n_dialogues: int) -> Estimated:
    interval = limits(estimate.interval(values.low, values.high))
    return Estimated(value=rounded(estimate.value), **interval, n=n, n_dialogues=n_dialogues)


def _correct_estimate(values: Values) -> Corrected:
    """Correct by labels of the model's own turns if these are of enough dialogues, otherwise by
    labels of all models.
    """
    is_own = _dialogues(values.own_labels) >= FEWEST_CLUSTERS
    labelled = values.own_labels if is_own else values.all_labels
    estimate = _estimate(values, labelled)
    flags: list[Flag] = [] if is_own or not labelled else ["labels_of_others"]
    flags += _beyond(values, labelled)
    fields: dict[str, Any] = {
        "method": "rogan-gladen" if values.is_rate else "prediction-powered",
        "n_labels": len(labelled),
        "n_labelled_dialogues": _dialogues(labelled),
        "flags": flags,
    }
    if isinstance(estimate, Uncorrectable):
        return Corrected(value=None, reason=estimate.reason, **fields)
    interval = limits(estimate.interval(values.low, values.high))
    return Corrected(
        value=rounded(estimate.value), **interval, tuning=rounded(estimate.tuning), **fields
    )


def _estimate(values: Values, labelled: Sequence[Labelled]) -> Estimate | Uncorrectable:
    n_dialogues = _dialogues(labelled)
    if n_dialogues < FEWEST_CLUSTERS:
        return Uncorrectable(_too_few_dialogues(n_dialogues, "in all"))
    if not values.judged:
        return Uncorrectable("No turn has a verdict on it.")
    correct = correct_rate if values.is_rate else correct_mean
    estimate = correct(values.judged, labelled)
    if isinstance(estimate, Uncorrectable) or _is_within_bounds(estimate.value, values):
        return estimate
    return Uncorrectable(
        f"The corrected figure, {estimate.value:.3f}, is not within {values.low:g} and "
        f"{values.high:g}."
    )


def _too_few_dialogues(n_dialogues: int, whose: str) -> str:
    return (
        f"Labels drawn with a known probability are of {plural(n_dialogues, 'dialogue')} {whose}: "
        f"it takes {FEWEST_CLUSTERS}."
    )


def _is_within_bounds(figure: float, values: Values) -> bool:
    return values.low - SLACK <= figure <= values.high + SLACK


def _beyond(values: Values, labelled: Sequence[Labelled]) -> Iterator[Flag]:
    """Flag a mean outside the range of labelled verdicts. A rate is never outside, since its
    verdicts are 0 and 1.
    """
    if values.judged and labelled and not values.is_rate:
        mean = judge_mean(values.judged).value
        judged = [pair.judge for pair in labelled]
        if not min(judged) <= mean <= max(judged):
            yield "outside_labelled_range"


def _label_estimate(values: Values) -> Estimated:
    n_dialogues = _dialogues(values.own_labels)
    if n_dialogues < FEWEST_CLUSTERS:
        reason = _too_few_dialogues(n_dialogues, "of this model")
        return Estimated(
            value=None, n=len(values.own_labels), n_dialogues=n_dialogues, reason=reason
        )
    return _to_estimated(label_mean(values.own_labels), values, len(values.own_labels), n_dialogues)


def times(
    runs: Sequence[JudgedRun],
    turns: Mapping[tuple[str, int], LabelledTurn],
    rubric: Rubric,
    times_of: TimesOf,
) -> dict[str, Times]:
    """Times to each event over the runs of one model, by the judge and by labels. Only dialogues
    that are labelled whole count for labels.
    """
    judged: list[Mapping[str, Time]] = []
    labelled: list[Mapping[str, Time]] = []
    chances: set[float | None] = set()
    for run in runs:
        judged_turns = [turn for turn in run.turns if turn.score is not None]
        if not judged_turns:
            continue
        judged.append(times_of(run.document, [turn.points[TOTAL] for turn in judged_turns]))
        labelled_turns = [turns.get((run.run_id, turn.turn)) for turn in judged_turns]
        scores = [score_of(turn, TOTAL, rubric) for turn in labelled_turns if turn]
        known_scores = [score for score in scores if score is not None]
        if len(known_scores) == len(judged_turns):
            labelled.append(times_of(run.document, known_scores))
            chances |= {turn.probability for turn in labelled_turns if turn}
    names = judged[0] if judged else ()
    return {name: _time(name, judged, labelled, chances) for name in names}


def _time(
    name: str,
    judged: Sequence[Mapping[str, Time]],
    labelled: Sequence[Mapping[str, Time]],
    chances: set[float | None],
) -> Times:
    reason = _too_few_whole(len(labelled), len(judged)) or _unlike(chances)
    return Times(
        as_judged=_time_survival(name, judged),
        of_labels=None if reason else _time_survival(name, labelled),
        n_whole=len(labelled),
        reason=reason,
    )


def _too_few_whole(n_labelled: int, n_judged: int) -> str | None:
    if n_labelled >= FEWEST_CLUSTERS:
        return None
    return (
        f"{n_labelled} of {plural(n_judged, 'dialogue')} of this model are labelled whole: "
        f"it takes {FEWEST_CLUSTERS}."
    )


def _unlike(chances: set[float | None]) -> str | None:
    if len(chances) > 1 or None in chances:
        return "Dialogues were not all drawn with the same known probability."
    return None


def _time_survival(name: str, run_times: Sequence[Mapping[str, Time]]) -> Survival:
    clusters = [[times_by_name[name]] for times_by_name in run_times]
    return survival_of(clusters, longest(clusters), has_limits=intervals.is_available())
