"""From stored runs and labels to the document of a correction."""

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
    matches,
    parsed,
    read_runs,
    score_of,
)
from socratic_bench.studies.times import longest, survival_of
from socratic_bench.turns import Rubric
from socratic_bench.types import plural

Place = tuple[str, int]  # a run and a turn of it
# One figure of a model, three ways: as judged, corrected by labels, and of labels alone.

Flag = Literal["labels_of_others", "outside_labelled_range"]
SLACK = 1e-9
# Times to an event, as judged and by labels: these only where whole dialogues are labelled.

TimesOf = Callable[[Mapping[str, Any], Sequence[float]], Mapping[str, Time]]
Found = Mapping[str, list[list[Time]]]


class CorrectionRequest(Struct, frozen=True, kw_only=True):
    """What is asked for: stored runs, by the verdicts of a judging if one is named; files of
    labels; by label of yes or no what the judge says yes by; rates of turns whose score is under or
    over a bound.
    """

    runs: tuple[str, ...]
    labels: tuple[str, ...]
    matches: Mapping[str, str] = field(default_factory=dict)
    rates: tuple[str, ...] = ()
    judging: str | None = None


class _FigureSpec(Struct, frozen=True, kw_only=True):
    """A figure: what the judge says of a turn, what people say, its bounds."""

    name: str
    judge: Callable[[JudgedTurn], float | None]
    label: Callable[[LabelledTurn], float | None]
    low: float = 0.0
    high: float = 1.0
    is_rate: bool = False


class Values(Struct, frozen=True, kw_only=True):
    """What there is of one figure: `judged` of the model's turns, labels of `own` turns, and of
    `all` models'. `low` and `high` bound it; a rate is of yes or no.
    """

    judged: Sequence[Judged]
    own: Sequence[Labelled]
    all: Sequence[Labelled]
    low: float
    high: float
    is_rate: bool = False


def correct(asked: CorrectionRequest, region: Callable[[], str]) -> CorrectionDocument:
    """Raises `UsageError` with all that is wrong, `ArtifactError` for a store."""
    mistakes = Mistakes()
    runs: Sequence[JudgedRun] = ()
    labels: Sequence[Label] = ()
    with mistakes:
        runs = read_runs(asked.runs, region, asked.judging)
    with mistakes:
        labels = read_labels(asked.labels)
    if mistakes.sentences:
        raise mistakes.error("See socratic-runner correct --help.")
    judge = _judge_of(runs)
    rubric = _rubric_of(runs[0].benchmark, judge)
    quantities = matches(asked.matches, {name for one in labels for name in one.events}, rubric)
    turns = _labelled_of(labelled_turns(labels), runs, rubric)
    names = [one.name for one in rubric.dimensions]
    labelled = [one for one in names if any(one in label.scores for label in labels)]
    wanted = [
        *_scores([*labelled, TOTAL] if labelled == names else labelled, rubric),
        *(_answer(name, quantity) for name, quantity in quantities.items()),
        *(_rate(word, rubric) for word in asked.rates),
    ]
    return CorrectionDocument(
        judge=judge,
        n_runs=len(runs),
        n_labels=len(turns),
        n_without_probability=sum(one.probability is None for one in turns.values()),
        models=[*_models(runs, turns, wanted, rubric)],
    )


def _judge_of(runs: Sequence[JudgedRun]) -> CalibratedJudge:
    """The one that judged all runs: figures of several cannot be corrected together."""
    judges = {run.judge for run in runs if run.judge}
    if unjudged := [run.run_id for run in runs if run.judge is None]:
        raise UsageError(
            [f"{unjudged[0]} was not judged: there is nothing to correct."],
            hint=Problem.of(
                "Judge it (socratic-runner judge), and say with {judging} by which verdicts."
            ),
        )
    if len(judges) > 1:
        shown = sorted(map(_in_words, judges))
        raise UsageError(
            [f"The runs have several judges: {'; '.join(shown)}."],
            hint="Correct the runs of each judge by themselves.",
        )
    return judges.pop()


def _in_words(judge: CalibratedJudge) -> str:
    """With all that may tell two judges of one model apart."""
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
    """The labels of turns of these runs. Raises `UsageError` for those of other words, and for
    scores that the rubric does not have.
    """
    known = {(run.run_id, turn.turn): turn for run in runs for turn in run.turns}
    found: dict[Place, LabelledTurn] = {}
    problems: list[Words] = []
    for one in turns:
        first = one.first
        place = (first.run_id or "", -1 if first.turn is None else first.turn)
        if place not in known:
            continue
        if first.reply is not None and first.reply != known[place].question:
            problems.append(f"The label of turn {place[1]} of {place[0]} is of another reply.")
        found[place] = one
    if not found:
        problems.append("No label is of a turn of these runs: labels say so by run_id and turn.")
    problems += mistaken_scores([one for turn in found.values() for one in turn.labels], rubric)
    if problems:
        raise UsageError(problems)
    return found


def _scores(names: Sequence[str], rubric: Rubric) -> Iterator[_FigureSpec]:
    bounds = {one.name: (one.low, one.high) for one in rubric.dimensions}
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
    """The rate of a label of yes or no."""

    def label(turn: LabelledTurn) -> float | None:
        answer = turn.answer(name)
        return None if answer is None else float(answer)

    return _FigureSpec(name=name, judge=_said(quantity), label=label, is_rate=True)


def _rate(word: str, rubric: Rubric) -> _FigureSpec:
    """The rate of turns whose score is on one side of a bound, the judge's and people's alike."""
    quantity = parsed(word, rubric)
    name = quantity.score
    if name is None:
        form = "DIMENSION<BOUND or DIMENSION>=BOUND"
        raise UsageError([Problem.of("{rate} takes {form}, not {word!r}.", form=form, word=word)])

    def label(turn: LabelledTurn) -> float | None:
        score = score_of(turn, name, rubric)
        return None if score is None else float(quantity.is_yes(quantity.sign * score))

    return _FigureSpec(name=quantity.name, judge=_said(quantity), label=label, is_rate=True)


def _said(quantity: Quantity) -> Callable[[JudgedTurn], float | None]:
    def said(turn: JudgedTurn) -> float | None:
        strength = quantity.strength(turn.points, turn.events)
        return None if strength is None else float(quantity.is_yes(strength))

    return said


def _models(
    runs: Sequence[JudgedRun],
    turns: Mapping[Place, LabelledTurn],
    wanted: Sequence[_FigureSpec],
    rubric: Rubric,
) -> Iterator[CorrectedModel]:
    by_model: dict[str, list[JudgedRun]] = defaultdict(list)
    for run in runs:
        by_model[run.model].append(run)
    labels = {one.name: [*_labelled_values(runs, turns, one)] for one in wanted}
    times_of = load_benchmark(runs[0].benchmark).parts.times
    for model, some in sorted(by_model.items()):
        ids = {run.run_id for run in some}
        drawn = [p for p, turn in turns.items() if p[0] in ids and turn.probability is not None]
        yield CorrectedModel(
            model=model,
            n_runs=len(some),
            n_labelled=len(drawn),
            n_labelled_dialogues=len({run_id for run_id, _ in drawn}),
            figures={
                one.name: three_ways(
                    Values(
                        judged=[*_judge_values(some, one)],
                        own=[label for label in labels[one.name] if label.cluster in ids],
                        all=labels[one.name],
                        low=one.low,
                        high=one.high,
                        is_rate=one.is_rate,
                    )
                )
                for one in wanted
            },
            times=times(some, turns, rubric, times_of) if times_of else {},
        )


def _judge_values(runs: Sequence[JudgedRun], wanted: _FigureSpec) -> Iterator[Judged]:
    for run in runs:
        said = [value for turn in run.turns if (value := wanted.judge(turn)) is not None]
        for value in said:
            yield Judged(run.run_id, value, 1 / len(said))


def _labelled_values(
    runs: Sequence[JudgedRun], turns: Mapping[Place, LabelledTurn], wanted: _FigureSpec
) -> Iterator[Labelled]:
    for run in runs:
        said = {turn.turn: value for turn in run.turns if (value := wanted.judge(turn)) is not None}
        for index, value in said.items():
            one = turns.get((run.run_id, index))
            label = wanted.label(one) if one else None
            probability = one.probability if one else None
            if label is not None and probability is not None:
                yield Labelled(run.run_id, value, label, 1 / len(said) / probability)


def three_ways(values: Values) -> ThreeWays:
    return ThreeWays(
        as_judged=_judged_estimate(values),
        corrected=_corrected_estimate(values),
        of_labels=_label_estimate(values),
    )


def _judged_estimate(values: Values) -> Estimated:
    n_dialogues = _dialogues(values.judged)
    if not values.judged:
        return Estimated(value=None, n=0, n_dialogues=0, reason="No turn has a verdict on it.")
    return _to_estimated(judge_mean(values.judged), values, len(values.judged), n_dialogues)


def _label_estimate(values: Values) -> Estimated:
    n_dialogues = _dialogues(values.own)
    if n_dialogues < FEWEST_CLUSTERS:
        reason = _too_few_dialogues(n_dialogues, "of this model")
        return Estimated(value=None, n=len(values.own), n_dialogues=n_dialogues, reason=reason)
    return _to_estimated(label_mean(values.own), values, len(values.own), n_dialogues)


def _to_estimated(found: Estimate, values: Values, n: int, n_dialogues: int) -> Estimated:
    interval = limits(found.interval(values.low, values.high))
    return Estimated(value=rounded(found.value), **interval, n=n, n_dialogues=n_dialogues)


def _corrected_estimate(values: Values) -> Corrected:
    """By labels of the model's own turns, where enough dialogues have some; else by all."""
    is_own = _dialogues(values.own) >= FEWEST_CLUSTERS
    labelled = values.own if is_own else values.all
    found = _estimate(values, labelled)
    flags: list[Flag] = [] if is_own or not labelled else ["labels_of_others"]
    flags += _beyond(values, labelled)
    told: dict[str, Any] = {
        "method": "rogan-gladen" if values.is_rate else "prediction-powered",
        "n_labels": len(labelled),
        "n_labelled_dialogues": _dialogues(labelled),
        "flags": flags,
    }
    if isinstance(found, Uncorrectable):
        return Corrected(value=None, reason=found.reason, **told)
    interval = limits(found.interval(values.low, values.high))
    return Corrected(value=rounded(found.value), **interval, tuning=rounded(found.tuning), **told)


def _estimate(values: Values, labelled: Sequence[Labelled]) -> Estimate | Uncorrectable:
    n_dialogues = _dialogues(labelled)
    if n_dialogues < FEWEST_CLUSTERS:
        return Uncorrectable(_too_few_dialogues(n_dialogues, "in all"))
    if not values.judged:
        return Uncorrectable("No turn has a verdict on it.")
    correct = correct_rate if values.is_rate else correct_mean
    found = correct(values.judged, labelled)
    if isinstance(found, Uncorrectable) or _is_within_bounds(found.value, values):
        return found
    return Uncorrectable(
        f"The corrected figure, {found.value:.3f}, is not within {values.low:g} and "
        f"{values.high:g}."
    )


def _is_within_bounds(figure: float, values: Values) -> bool:
    return values.low - SLACK <= figure <= values.high + SLACK


def _beyond(values: Values, labelled: Sequence[Labelled]) -> Iterator[Flag]:
    """Of a rate every judge's answer is among 0 and 1, so that only means can be beyond."""
    if values.judged and labelled and not values.is_rate:
        mean = judge_mean(values.judged).value
        said = [one.judge for one in labelled]
        if not min(said) <= mean <= max(said):
            yield "outside_labelled_range"


def _dialogues(values: Sequence[Judged] | Sequence[Labelled]) -> int:
    return len({one.cluster for one in values})


def _too_few_dialogues(n_dialogues: int, whose: str) -> str:
    return (
        f"Labels drawn with a known probability are of {plural(n_dialogues, 'dialogue')} {whose}: "
        f"it takes {FEWEST_CLUSTERS}."
    )


def times(
    runs: Sequence[JudgedRun],
    turns: Mapping[tuple[str, int], LabelledTurn],
    rubric: Rubric,
    times_of: TimesOf,
) -> dict[str, Times]:
    """By name, of the runs of one model."""
    judged: list[Mapping[str, Time]] = []
    labelled: list[Mapping[str, Time]] = []
    chances: set[float | None] = set()
    for run in runs:
        said = [turn for turn in run.turns if turn.score is not None]
        if not said:
            continue
        judged.append(times_of(run.document, [turn.points[TOTAL] for turn in said]))
        found = [turns.get((run.run_id, turn.turn)) for turn in said]
        scores = [score_of(one, TOTAL, rubric) for one in found if one]
        known = [score for score in scores if score is not None]
        if len(known) == len(said):
            labelled.append(times_of(run.document, known))
            chances |= {one.probability for one in found if one}
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


def _time_survival(name: str, found: Sequence[Mapping[str, Time]]) -> Survival:
    clusters = [[one[name]] for one in found]
    return survival_of(clusters, longest(clusters), has_limits=intervals.is_available())
