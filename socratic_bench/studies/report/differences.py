"""The result: which model is better, by how much, how sure that is, and what would decide it."""

from collections.abc import Iterator, Sequence

from socratic_bench.documents.sweep import PairedDifference, Survival
from socratic_bench.studies.primary import NO_INTERVALS, p_text
from socratic_bench.studies.report.leaderboard import most_turns, turns_held
from socratic_bench.studies.report.parts import (
    UNKNOWN,
    Section,
    between,
    figure,
    listed,
    number,
    with_limits,
    words,
)
from socratic_bench.studies.report.study import Study

MOST_SENTENCES = 3
MOST_LISTED = 5


def result_sentences(study: Study) -> Iterator[str]:
    """The best model against each of the next ones, and how often and when each model breaks."""
    if not study.differences:
        yield _of_one(study, study.ranked[0])
    # The best model, or the best of each way to run them, is no other's second.
    seconds = {pair.second for pair in study.differences}
    of_best = [pair for pair in study.differences if pair.first not in seconds]
    most = MOST_SENTENCES * (1 + bool(study.varied))
    for difference in of_best[:most]:
        yield f"{difference.summary}."
    yield from _by_variant(study)
    if study.survival:
        lapses = [_lapses(study, model, it) for model, it in study.survival.items()]
        yield f"Runs with a {study.views.breaks}: {_some(lapses)}."


def undecided_because(study: Study) -> str | None:
    """Why no model is the winner; `None` if one is."""
    if study.winner:
        return None
    if len(study.ranked) == 1:
        return "there is one model"
    if study.varied:
        return f"{listed([*study.varied.values()])} varied: see each way in differences"
    best = study.ranked[0]
    reasons = [
        pair.undecided_because
        for pair in study.differences
        if pair.undecided_because and best in (pair.first, pair.second)
    ]
    return reasons[0] if reasons else "no model was run in the same way as every other"


def _some(texts: Sequence[str]) -> str:
    """The first texts, and how many more there are."""
    more = len(texts) - MOST_LISTED
    return "; ".join([*texts[:MOST_LISTED], *([f"{more} more in the table"] if more > 0 else [])])


def _of_one(study: Study, model: str) -> str:
    if study.survival:
        return (
            f"{model} held {turns_held(study, model)} of {most_turns(study)} turns on average; "
            "there is no other model to compare it with."
        )
    estimate = study.mean(study.primary, study.runs[model])
    if estimate is None:
        return f"Nothing is known of {study.primary.title.lower()}."
    limits = between(estimate.low, estimate.high)
    interval = "" if limits == UNKNOWN else f" (95 % CI {limits})"
    return (
        f"{model}: {study.primary.title.lower()} {number(estimate.mean)}{interval}; there is no "
        "other model to compare it with."
    )


def _by_variant(study: Study) -> Iterator[str]:
    """The rate of each way of asking, of models whose runs ask in several."""
    rates = [
        f"{name} {number(rate.mean)}"
        for name, runs in study.runs_by_variant.items()
        if name not in study.runs and (rate := study.pass_rate(runs))
    ]
    if rates:
        text = f"{study.primary.title} of each way of asking: {_some(rates)}"
        yield f"{text}. Metrics of these models are of the first way."


def _lapses(study: Study, model: str, survival: Survival) -> str:
    """How many runs had the event, and when."""
    counts = f"{model} {survival.n_events} of {survival.n}"
    turns = {
        time.at
        for run in study.runs[model]
        if (time := run.times.get(study.ordering.name)) and time.is_event
    }
    if len(turns) == 1:
        return f"{counts}, from turn {turns.pop():g} on"
    return f"{counts}, the first from turn {min(turns):g} on" if turns else counts


def differences(study: Study) -> Section | None:
    """The difference of each two models in the primary figure."""
    if not study.differences:
        return None
    unit = study.views.prompt if len(study.rows.samples) == 1 else study.views.sample
    if any(run.parts.get(study.ordering.name) for run in study.rows.runs):
        unit = study.views.part
    is_time = bool(study.survival)
    what = "Turns held" if is_time else study.ordering.title
    titles = (words("Models"), "Difference (95 % CI)", "p")
    return Section(
        name="differences",
        title="Differences between models",
        paragraphs=[
            (
                f"The first minus the second, over {unit}s that both ran. p is of an exact "
                "sign-flip test, corrected for the number of pairs (Holm)."
            )
        ],
        figures=[
            figure(
                f"{what}, by pair of models",
                (*titles, f"{unit}s".capitalize(), words("Result")),
                [_row(difference, unit, is_time=is_time) for difference in study.differences],
            )
        ],
    )


def _row(pair: PairedDifference, unit: str, *, is_time: bool) -> list[str]:
    text = with_limits(pair.difference, pair.low, pair.high, 1 if is_time else 2)
    if pair.low is None and pair.no_interval_because:
        text += f" ({NO_INTERVALS[pair.no_interval_because].format(unit=unit)})"
    needed = f"; {pair.scenarios_needed} needed" if pair.scenarios_needed else ""
    return [
        f"{pair.first} minus {pair.second}",
        text,
        p_text(pair.p_adjusted),
        str(pair.n_scenarios),
        f"{pair.winner} is better" if pair.winner else f"undecided{needed}",
    ]
