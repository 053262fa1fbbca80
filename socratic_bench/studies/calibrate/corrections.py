"""Correct figures of stored runs by people's labels of some of their turns."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations

from msgspec import Struct

from socratic_bench.documents.calibration import (
    CorrectedFigures,
    CorrectedModel,
    CorrectedPair,
    Estimated,
    ThreeWays,
)
from socratic_bench.documents.judge_status import CalibratedJudge
from socratic_bench.errors import Problem, UsageError, Words
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.statistics.intervals import FEWEST
from socratic_bench.statistics.ppi import (
    FEWEST_CLUSTERS,
    FEWEST_DIALOGUES,
    Estimate,
    Judged,
    Labelled,
    Sample,
    correct,
    judge_estimate,
    label_estimate,
)
from socratic_bench.studies.calibrate.labels import LabelledTurn, labelled_turns, read_labels
from socratic_bench.studies.calibrate.readings import (
    TOTAL,
    Quantity,
    judge_of,
    match_quantities,
    parse_quantity,
    points_of,
    score_of,
)
from socratic_bench.studies.figures import Design, limits_of, rounded
from socratic_bench.studies.groups import Group, design_of, group_by_model
from socratic_bench.studies.rows import RunRow, TurnRow
from socratic_bench.turns import Rubric
from socratic_bench.types import plural

Place = tuple[str | None, int | None]  # a run and a turn of it
NO_VERDICT = "No turn has a verdict."
NO_SPREAD = "All scenarios have the same value, so that there is no interval."
NO_PLACE = "No label is of a turn of these runs: labels name it by run_id and turn."


class CorrectionRequest(Struct, frozen=True, kw_only=True):
    """What the user asks for: files of labels; for each yes/no label the judge's quantity that it
    matches; rates of turns with a score below or above a bound.
    """

    labels: tuple[str, ...]
    matches: Mapping[str, str] = {}
    rates: tuple[str, ...] = ()


class _Value(Struct, frozen=True):
    """A value by the judge; by people, with its sampling probability, where it is labelled."""

    judge: float
    label: float | None
    probability: float | None


class _Figure(Struct, frozen=True, kw_only=True):
    """A figure, which is the mean over runs of the mean of each run's values; and its bounds."""

    name: str
    values: Callable[[RunRow], Sequence[_Value]]
    low: float
    high: float
    is_rate: bool = False


class Corrections(Struct, frozen=True, kw_only=True):
    """Labels of stored runs that are ready to correct figures."""

    judge: CalibratedJudge
    turns: Mapping[Place, LabelledTurn]
    figures: Sequence[_Figure]


class _Data(Struct, frozen=True, kw_only=True):
    """The values of a figure in the runs of one model."""

    name: str
    judged: Sequence[Judged]
    labelled: Sequence[Labelled]
    n_dialogues: int
    n_labelled_dialogues: int


def read_corrections(
    request: CorrectionRequest, runs: Sequence[RunRow], benchmark: Benchmark
) -> Corrections:
    """Read the labels of these runs. Raises `UsageError` with everything that is wrong."""
    judge = _common_judge(runs)
    rubric = benchmark.find_rubric(judge.rubric)
    if rubric.sha256 != judge.rubric_sha256:
        raise UsageError(
            [f"The rubric {rubric.id} is not the one by which these runs were judged."],
            hint="Judge them again, or correct them with the version that judged them.",
        )
    rubric = benchmark.extend_rubric(rubric, (turn.own for run in runs for turn in run.turns))
    labels = read_labels(request.labels, rubric)
    turns = _labels_of_runs(labelled_turns(labels), runs)
    answers = {name for label in labels for name in label.events}
    quantities = match_quantities(request.matches, answers, rubric)
    scored = {name for label in labels for name in label.scores}
    names = [dimension.name for dimension in rubric.dimensions if dimension.name in scored]
    has_total = len(names) == len(rubric.dimensions)
    return Corrections(
        judge=judge,
        turns=turns,
        figures=[
            *(_time_figures(benchmark, runs, turns, rubric) if has_total else ()),
            *(_score(name, turns, rubric) for name in [TOTAL] * has_total + names),
            *(
                _rate_figure(name, quantity, turns, partial(LabelledTurn.answer, name=name))
                for name, quantity in quantities.items()
            ),
            *(_rate(word, turns, rubric) for word in request.rates),
        ],
    )


def _common_judge(runs: Sequence[RunRow]) -> CalibratedJudge:
    """The judge of all runs. Raises `UsageError` if there are several, or none."""
    judges = {judge_of(run) for run in runs}
    judge = next(iter(judges), None)
    if judge is None or None in judges:
        raise UsageError(
            ["Some runs have no judge scores, so labels cannot correct them."],
            hint=Problem.of(
                "Judge them (socratic-runner judge), and name these verdicts with {judging}."
            ),
        )
    if len(judges) > 1:
        # By everything that can differ between two judges of one model.
        texts = sorted(
            f"{judge.model} by {judge.rubric} (temperature "
            f"{'its own' if judge.temperature is None else f'{judge.temperature:g}'}, "
            f"{plural(judge.samples, 'sample')}{f', {judge.rule}' if judge.rule else ''}, "
            f"context {judge.context})"
            for judge in judges
            if judge
        )
        raise UsageError(
            [f"The runs have several judges: {'; '.join(texts)}."],
            hint="Correct the runs of each judge by themselves.",
        )
    return judge


def _labels_of_runs(
    turns: Sequence[LabelledTurn], runs: Sequence[RunRow]
) -> Mapping[Place, LabelledTurn]:
    """Labels of turns of these runs. Raises `UsageError` if there is none, or for other texts."""
    replies: dict[Place, str] = {
        (run.run_id, turn.turn): turn.reply for run in runs for turn in run.turns
    }
    labelled = {turn.place: turn for turn in turns if turn.place in replies}
    problems: list[Words] = [
        f"The label of turn {place[1]} of {place[0]} is of another reply."
        for place, turn in labelled.items()
        if turn.first.reply not in (None, replies[place])
    ]
    if problems or not labelled:
        raise UsageError(problems or [NO_PLACE])
    return labelled


def _of_turns(
    turns: Mapping[Place, LabelledTurn],
    judge: Callable[[TurnRow], float | None],
    label: Callable[[LabelledTurn], float | None],
) -> Callable[[RunRow], Sequence[_Value]]:
    def values(run: RunRow) -> list[_Value]:
        labels = ((turn, turns.get((run.run_id, turn.turn))) for turn in run.turns)
        return [
            _Value(value, label(given) if given else None, given.probability if given else None)
            for turn, given in labels
            if (value := judge(turn)) is not None
        ]

    return values


def _score(name: str, turns: Mapping[Place, LabelledTurn], rubric: Rubric) -> _Figure:
    dimensions = [item for item in rubric.dimensions if name in (TOTAL, item.name)]
    return _Figure(
        name=name,
        values=_of_turns(
            turns,
            lambda turn: points_of(turn).get(name),
            lambda labelled: score_of(labelled, name, rubric),
        ),
        low=sum(dimension.low for dimension in dimensions),
        high=sum(dimension.high for dimension in dimensions),
    )


def _rate(word: str, turns: Mapping[Place, LabelledTurn], rubric: Rubric) -> _Figure:
    """The rate of turns with a score on one side of a bound."""
    quantity = parse_quantity(word, rubric)
    name = quantity.score
    if name is None:
        form = "DIMENSION<BOUND or DIMENSION>=BOUND"
        raise UsageError([Problem.of("{rate} takes {form}, not {word!r}.", form=form, word=word)])

    def label(labelled: LabelledTurn) -> bool | None:
        score = score_of(labelled, name, rubric)
        return None if score is None else quantity.is_yes(quantity.sign * score)

    return _rate_figure(quantity.name, quantity, turns, label)


def _rate_figure(
    name: str,
    quantity: Quantity,
    turns: Mapping[Place, LabelledTurn],
    label: Callable[[LabelledTurn], bool | None],
) -> _Figure:
    def judge(turn: TurnRow) -> float | None:
        strength = quantity.strength(points_of(turn), turn.events)
        return None if strength is None else quantity.is_yes(strength)

    return _Figure(name=name, values=_of_turns(turns, judge, label), low=0, high=1, is_rate=True)


def _time_figures(
    benchmark: Benchmark,
    runs: Sequence[RunRow],
    turns: Mapping[Place, LabelledTurn],
    rubric: Rubric,
) -> Iterator[_Figure]:
    """The time until an event by which models are compared, if scores decide it and some dialogue
    is labelled whole. Such a dialogue counts as drawn if its turns have one probability.
    """
    times_of = benchmark.parts.times
    times = [metric.name for metric in benchmark.metrics if metric.censored_by]
    name = next((name for name in benchmark.compared_metrics if name in times), None)
    if times_of is None or name is None:
        return

    def values(run: RunRow) -> Sequence[_Value]:
        by_judge = run.metrics.get(name)
        if by_judge is None:
            return []
        judged = [turn for turn in run.turns if turn.score is not None]
        labelled = [turns[place] for turn in judged if (place := (run.run_id, turn.turn)) in turns]
        scores = [score_of(turn, TOTAL, rubric) for turn in labelled]
        known_scores = [score for score in scores if score is not None]
        probabilities = {turn.probability for turn in labelled}
        if len(known_scores) < len(judged) or len(probabilities) > 1:
            return [_Value(by_judge, None, None)]
        by_people = times_of(run.document, known_scores)[name].at
        return [_Value(by_judge, by_people, probabilities.pop())]

    if any(value.label is not None for run in runs for value in values(run)):
        yield _Figure(name=name, values=values, low=0, high=max(run.n_turns for run in runs))


def correct_runs(
    request: CorrectionRequest, runs: Sequence[RunRow], benchmark: Benchmark
) -> CorrectedFigures:
    """Each figure of each model, and differences of each two. Raises as `read_corrections` does."""
    groups = group_by_model(runs)
    pairs = combinations([group.name for group in groups], 2)
    corrections = read_corrections(request, runs, benchmark)
    return correct_figures(corrections, groups, [*pairs], design_of(runs, has_limits=False))


def correct_figures(
    corrections: Corrections,
    groups: Sequence[Group],
    pairs: Sequence[tuple[str, str]],
    design: Design,
) -> CorrectedFigures:
    """Each figure of each group, and the differences of pairs of groups by name."""
    figures = corrections.figures
    data = {
        (group.name, figure.name): _data_of(group, figure, design)
        for group in groups
        for figure in figures
    }
    models = [
        CorrectedModel(
            name=group.name,
            figures={
                figure.name: _three_ways(figure, data[group.name, figure.name])
                for figure in figures
            },
        )
        for group in groups
    ]
    names = [figure.name for figure in figures]
    known_names = (
        name
        for name in names
        if all(model.figures[name].corrected.value is not None for model in models)
    )
    return CorrectedFigures(
        judge=corrections.judge,
        n_labels=len(corrections.turns),
        n_without_probability=sum(turn.probability is None for turn in corrections.turns.values()),
        main_figure=next(known_names, names[0]),
        models=models,
        pairs=[
            CorrectedPair(
                first=first,
                second=second,
                differences={
                    figure.name: _three_ways(
                        figure, data[first, figure.name], data[second, figure.name]
                    )
                    for figure in figures
                },
            )
            for first, second in pairs
        ],
    )


def _data_of(group: Group, figure: _Figure, design: Design) -> _Data:
    judged: list[Judged] = []
    labelled: list[Labelled] = []
    dialogues, labelled_dialogues = set(), set()
    for run in group.runs:
        cluster, values = design.cluster(run), figure.values(run)
        for value in values:
            share = 1 / len(values)
            judged.append(Judged(cluster, value.judge, share))
            dialogues.add(run.run_id)
            if value.label is not None and value.probability is not None:
                weight = share / value.probability
                labelled.append(Labelled(cluster, value.judge, value.label, weight))
                labelled_dialogues.add(run.run_id)
    return _Data(
        name=group.name,
        judged=judged,
        labelled=labelled,
        n_dialogues=len(dialogues),
        n_labelled_dialogues=len(labelled_dialogues),
    )


def _three_ways(figure: _Figure, *data: _Data) -> ThreeWays:
    """A figure of one model, or the first's minus the second's."""
    judged = [part.judged for part in data]
    by_judge = _counts(judged, sum(part.n_dialogues for part in data))
    by_labels = _counts(
        [part.labelled for part in data], sum(part.n_labelled_dialogues for part in data)
    )
    if not all(judged):
        unknown = Estimated(value=None, reason=NO_VERDICT, **by_judge)
        return ThreeWays(as_judged=unknown, corrected=unknown, of_labels=unknown)
    to_estimated = partial(_to_estimated, figure=figure, is_difference=len(data) > 1)
    as_judged = to_estimated(judge_estimate(*judged), counts=by_judge, least=FEWEST)
    least = min(data, key=lambda part: part.n_labelled_dialogues)
    if least.n_labelled_dialogues < FEWEST_DIALOGUES:
        reason = (
            f"Labels of {least.name} with a known probability are of "
            f"{plural(least.n_labelled_dialogues, 'dialogue')}: it takes {FEWEST_DIALOGUES}."
        )
        unknown = Estimated(value=None, reason=reason, **by_labels)
        return ThreeWays(as_judged=as_judged, corrected=unknown, of_labels=unknown)
    corrected = correct(*(Sample(part.judged, part.labelled) for part in data))
    labels = label_estimate(*(part.labelled for part in data))
    return ThreeWays(
        as_judged=as_judged,
        corrected=to_estimated(corrected, counts=by_labels),
        of_labels=to_estimated(labels, counts=by_labels),
    )


def _counts(
    values: Sequence[Sequence[Judged] | Sequence[Labelled]], n_dialogues: int
) -> Mapping[str, int]:
    return {
        "n": sum(map(len, values)),
        "n_dialogues": n_dialogues,
        "n_scenarios": min(len({turn.cluster for turn in turns}) for turns in values),
    }


def _to_estimated(
    estimate: Estimate,
    *,
    figure: _Figure,
    counts: Mapping[str, int],
    is_difference: bool,
    least: int = FEWEST_CLUSTERS,
) -> Estimated:
    """The estimate within the figure's bounds, with its interval or why there is none."""
    low, high = figure.low, figure.high
    if is_difference:
        low, high = low - high, high - low
    interval, reason = None, None
    if estimate.n_clusters < least:
        scenarios = plural(estimate.n_clusters, "scenario")
        reason = f"There is no interval of {scenarios}: it takes {least}."
    else:
        is_rate = figure.is_rate and not is_difference
        interval = estimate.interval(low, high, is_rate=is_rate)
        reason = None if interval else NO_SPREAD
    return Estimated(
        value=rounded(min(high, max(low, estimate.value))),
        **limits_of(interval),
        tuning=rounded(estimate.tuning),
        reason=reason,
        **counts,
    )
