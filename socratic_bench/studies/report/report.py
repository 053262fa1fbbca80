"""The report as a whole: its opening (two sentences, facts, notices) and its sections in order."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Any

from msgspec import Struct

from socratic_bench.documents.calibration import CorrectedFigures
from socratic_bench.documents.judge_status import agreement_text
from socratic_bench.studies.figures import danger
from socratic_bench.studies.groups import differing_conditions
from socratic_bench.studies.report.breakdown import events, failures, findings, kinds
from socratic_bench.studies.report.conditions import samples, settings
from socratic_bench.studies.report.effort import cost, latency
from socratic_bench.studies.report.judges import jury, labels_section
from socratic_bench.studies.report.leaderboard import axes, board, groups
from socratic_bench.studies.report.parts import (
    Section,
    between,
    count_text,
    listed,
    number,
    percent,
    usd,
)
from socratic_bench.studies.report.study import (
    Endurance,
    Study,
    endurances,
    short_runs_note,
    time_of,
)
from socratic_bench.studies.report.trajectories import by_turn, single_and_many, survival
from socratic_bench.studies.rows import RunRow

FEWEST_SAMPLES = 5
MOST_NAMED = 3
TINY = 0.001


class Opening(Struct, frozen=True, kw_only=True):
    """`facts` are pairs of a title and a text; `notices` are limits that a reader has to know."""

    title: str
    sentences: Sequence[str]
    facts: Sequence[tuple[str, str]]
    notices: Sequence[str]


class Report(Struct, frozen=True, kw_only=True):
    """What every format of a report shows but transcripts. `models` start with the best."""

    opening: Opening
    models: Sequence[str]
    sections: Sequence[Section]


def report_of(study: Study, correction: CorrectedFigures | None = None) -> Report:
    """Build the report; sections without data are left out. `correction` has figures by labels, if
    there are any.

    Raises `ImportError` without scipy.
    """
    times = endurances(study)
    candidates = (
        board(study, times),
        axes(study),
        by_turn(study),
        survival(study, times),
        single_and_many(study),
        samples(study),
        *kinds(study),
        events(study),
        *findings(study),
        groups(study),
        cost(study),
        latency(study),
        settings(study),
        jury(study),
        labels_section(correction),
        failures(study),
    )
    return Report(
        opening=_opening(study, times, is_labelled=correction is not None),
        models=study.ranked,
        sections=[section for section in candidates if section],
    )


def _opening(
    study: Study, endurances: Mapping[str, Endurance], *, is_labelled: bool = False
) -> Opening:
    return Opening(
        title=f"How long a model {study.views.endures}" if endurances else study.primary.title,
        sentences=[*_sentences(study, endurances)],
        facts=[*_facts(study, is_labelled=is_labelled)],
        notices=[*_notices(study)],
    )


def _sentences(study: Study, endurances: Mapping[str, Endurance]) -> Iterator[str]:
    """Which model is best and how certain that is, and where it breaks."""
    yield from _of_endurance(study, endurances) if endurances else _of_metric(study)


def _facts(study: Study, *, is_labelled: bool) -> Iterator[tuple[str, str]]:
    runs = study.rows.runs
    yield "Models", f"{len(study.ranked)}, {count_text(len(runs), 'complete run')}"
    failed = len(study.rows.failed)
    if failed:
        yield "Failed", f"{count_text(failed, 'run')}, in no figure but those of failures"
    yield f"{study.views.sample}s".capitalize(), str(len(study.rows.samples))
    lengths = sorted({run.n_turns for run in runs})
    turns = str(lengths[0]) if len(lengths) == 1 else f"{lengths[0]} to {lengths[-1]}"
    yield "Turns a run", f"{turns}, counted from 0"
    yield "Judge", _judges(study, is_labelled=is_labelled)
    for fact in study.views.facts:
        value = _share(runs, fact.path) if fact.is_share else _values(runs, fact.path)
        if value:
            yield fact.title, fact.with_unit(value)
    days = sorted({str(run.at("timestamps.started_at") or "")[:10] for run in runs} - {""})
    if days:
        yield "Played", days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    yield "Cost", _cost(runs)


def _judges(study: Study, *, is_labelled: bool) -> str:
    entries = [run.document.get("judge") for run in study.rows.runs]
    judges = [judge for judge in entries if isinstance(judge, Mapping)]
    if not judges:
        return "none"
    names = [*dict.fromkeys(map(_jurors, judges))]
    return f"{listed(names)}, {_calibrated(judges, is_labelled=is_labelled)}"


def _jurors(entry: Mapping[str, object]) -> str:
    jurors = entry.get("jurors")
    names = [str(juror["model"]) for juror in jurors or ()] if isinstance(jurors, list) else []
    return f"a jury of {listed(names)}" if len(names) > 1 else str(entry.get("model"))


def _calibrated(judges: Sequence[Mapping[str, Any]], *, is_labelled: bool) -> str:
    """Whether and by what these judges are calibrated."""
    entries = [entry.get("calibration") or {} for entry in judges]
    fitting = [entry for entry in entries if entry.get("status") == "calibrated"]
    if fitting:
        share = f" in {len(fitting)} of {count_text(len(entries), 'run')}"
        whole = len(fitting) == len(entries)
        return f"calibrated by {_calibrations(fitting)}{'' if whole else share}"
    if is_labelled:
        return "corrected by the labels below"
    if stale := [entry for entry in entries if entry.get("status") == "stale"]:
        reasons = dict.fromkeys(str(reason) for entry in stale for reason in entry["reasons"])
        return f"calibrated otherwise by {_calibrations(stale)}: {'; '.join(reasons)}"
    return "not calibrated"


def _calibrations(entries: Sequence[Mapping[str, Any]]) -> str:
    return listed(sorted({f"{entry['by']} ({agreement_text(entry)})" for entry in entries}))


def _share(runs: Sequence[RunRow], path: str) -> str | None:
    shares = [(run.at(path), run.n_turns) for run in runs]
    counts = [(n, of) for n, of in shares if n is not None and of]
    if not counts:
        return None
    return f"{percent(sum(n for n, _ in counts) / sum(of for _, of in counts))} of turns"


def _values(runs: Sequence[RunRow], path: str) -> str | None:
    values = {run.at(path) for run in runs} - {None}
    texts = {f"{value:g}" if isinstance(value, float) else str(value) for value in values}
    return listed(sorted(texts)) or None


def _cost(runs: Sequence[RunRow]) -> str:
    costs = [run.at("cost.total.total_usd") for run in runs]
    known_costs = [cost for cost in costs if cost is not None]
    if not known_costs:
        return "not known"
    text = f"{usd(sum(known_costs))} USD"
    if len(known_costs) < len(costs):
        text += f" for {len(known_costs)} of {count_text(len(costs), 'run')}; the rest is not known"
    if all(run.at("cost.stand_in") for run in runs):
        text += ", simulated and not billed"
    return text


def _notices(study: Study) -> Iterator[str]:
    for path, values in differing_conditions(study.groups).items():
        unpriced = (f"{', '.join(map(str, models))} for {name}" for name, models in values.items())
        yield f"The models were not played alike: {path} is {'; '.join(unpriced)}."
    if note := short_runs_note(study):
        yield note
    for model in study.ranked:
        yield from danger(model, study.primary.title.lower(), study.whole(model).two_groups)
    coverage = [run.at("judge.coverage") for run in study.rows.runs]
    lacking = sum(1 for share in coverage if share is not None and share < 1)
    if lacking:
        yield f"{count_text(lacking, 'run')} had turns that no judge could score."
    is_of_parts = any(run.parts for run in study.rows.runs)  # and so are intervals
    if len(study.rows.samples) < FEWEST_SAMPLES and not is_of_parts:
        yield _few(study)


def _few(study: Study) -> str:
    n, sample = len(study.rows.samples), study.views.sample
    if n == 1:
        return f"There is only one {sample}: nothing here tells of others."
    return f"{n} {sample}s are few: read the intervals as rough."


def _of_endurance(study: Study, endurances: Mapping[str, Endurance]) -> Iterator[str]:
    best = next(model for model in study.ranked if model in endurances)
    endurance = endurances[best]
    mean, low, high = endurance.turns_held.mean, endurance.turns_held.low, endurance.turns_held.high
    span = f"for {number(mean, 1)} of the first {endurance.horizon:g} turns on average"
    if low is not None or high is not None:
        span += f" (95 % interval {between(low, high, 1)})"
    elif endurance.n_late:
        turns = f"{endurance.horizon:g} turns of {_all(endurance.n)}"
        span = f"without a {study.views.breaks} in the {turns}"
    elif not endurance.n_events:
        span = f"through all {endurance.horizon:g} turns in {_all(endurance.n)}"
    if _all_tied(study):
        yield (
            f"These runs cannot tell which model {study.views.endures} longest: "
            f"{_together(study)}, and {best} stands first, as it does so {span}."
        )
    else:
        longest = " longest:" if len(study.ranked) > 1 else ""
        yield f"{best} {study.views.endures}{longest} {span}, {_certainty(study, best)}."
    yield f"{_breaks(study, best, endurances)}.{_late(endurances)}"


def _all(n: int) -> str:
    return "the only run" if n == 1 else f"all {n} runs"


def _all_tied(study: Study) -> bool:
    return study.tiers is not None and len(study.tiers) == 1 and len(study.ranked) > 1


def _together(study: Study) -> str:
    n = len(study.ranked)
    return f"all {n} are tied" if n > 2 else "both are tied"  # noqa: PLR2004 -- both


def _certainty(study: Study, best: str) -> str:
    """How certain it is that the first model is the best."""
    other_models = [model for model in study.ranked if model != best]
    if not other_models:
        return "with no other model to compare it with"
    p_values = study.p_values(study.ordering.name)
    differences = {model: p_values.get((best, model)) for model in other_models}
    if not any(p is not None for p in differences.values()):
        return "though nothing tells whether that is more than chance: it takes pairs of runs"
    if study.tiers and len(study.tiers[0]) > 1:
        return f"though these runs cannot tell it from {listed(_first(study.tiers[0][1:]))}"
    largest = max(p for p in differences.values() if p is not None)
    whom = {1: "the other model", 2: "both others"}.get(
        len(other_models), f"all {len(other_models)} others"
    )
    return f"and longer than {whom} by more than chance ({_p_at_most(largest)})"


def _first(words: Sequence[str], also: str = "") -> list[str]:
    """The first few words, and the number of the remaining ones."""
    n_more = len(words) - MOST_NAMED
    return [*words[:MOST_NAMED], *([f"{also}{n_more} more"] if n_more > 0 else [])]


def _p_at_most(largest: float) -> str:
    if largest < TINY:
        return "p under .001"
    bound = ceil(largest / TINY) * TINY
    return f"p at most {number(bound, 3).lstrip('0')}"


def _breaks(study: Study, best: str, endurances: Mapping[str, Endurance]) -> str:
    """Where the best model breaks, and when the other ones do."""
    endurance = endurances[best]
    own_sentence = _own_breaks(study, best, endurance)
    other_sentences = [
        f"{model} in {other.n_events} of {count_text(other.n, 'run')}{_when(other)}"
        for model, other in endurances.items()
        if model != best and other.n_events
    ]
    if not other_sentences:
        alone = len(endurances) == 1
        return (
            own_sentence
            if endurance.n_events or alone
            else f"{own_sentence}; nor had one of any other model"
        )
    return f"{own_sentence}. Others break: {'; '.join(_first(other_sentences, 'and '))}"


def _own_breaks(study: Study, best: str, endurance: Endurance) -> str:
    if not endurance.n_events:
        return f"No run of it had a {study.views.breaks}{_sure_of(study, endurance)}"
    runs = count_text(endurance.n, "run")
    sentence = f"It breaks in {endurance.n_events} of its {runs}{_when(endurance)}"
    if endurance.n_events < endurance.n:
        sentence += f", most often in {_worst_sample(study, best)}"
    return sentence


def _sure_of(study: Study, endurance: Endurance) -> str:
    """The lower bound of the share of further runs without the event."""
    share = endurance.without
    if share.low is None:
        return ""
    of_what = count_text(endurance.n, "run")
    if share.n_clusters < endurance.n:
        samples = count_text(share.n_clusters, study.views.sample)
        of_what = f"{samples}, which its {endurance.n} runs repeat,"
    least = f"at least {percent(share.low)} of further runs have none"
    return f"; from {of_what} one can be 95 % sure that {least}"


def _when(endurance: Endurance) -> str:
    """The turn in which the event comes, if it is the same in all runs, or the median turn."""
    turns = {time.at for time in endurance.times if time.is_event}
    if len(turns) == 1:
        return f" at turn {turns.pop():g}"
    return "" if endurance.median is None else f", by turn {endurance.median:g} in half of all"


def _worst_sample(study: Study, model: str) -> str:
    """The sample with the highest share of runs with the event, with counts."""
    events: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    for run in study.runs[model]:
        time = time_of(run, study.ordering)
        if time is not None:
            runs[run.sample_name] += 1
            events[run.sample_name] += time.is_event
    worst = max(sorted(runs), key=lambda sample: events[sample] / runs[sample])
    return f"{worst} ({events[worst]} of {runs[worst]})"


def _late(endurances: Mapping[str, Endurance]) -> str:
    """Runs that end in low turns, where it is unknown whether the lapse would have lasted."""
    sentences = [
        f"{model} in {endurance.n_late} of {count_text(endurance.n, 'run')}"
        for model, endurance in endurances.items()
        if endurance.n_late
    ]
    named = "; ".join(_first(sentences, "and "))
    return f" Under the threshold at the end, too late to count: {named}." if sentences else ""


def _of_metric(study: Study) -> Iterator[str]:
    metric, best = study.primary, study.ranked[0]
    mean = study.mean(metric, study.runs[best])
    if mean is None:
        yield f"Nothing is known of {metric.title.lower()}."
        return
    interval = f" (95 % interval {between(mean.low, mean.high)})" if mean.low is not None else ""
    extreme = "highest" if metric.higher_is_better else "lowest"
    if _all_tied(study):
        yield (
            f"These runs cannot tell which model is best by “{metric.title}”: "
            f"{_together(study)}, and {best} stands first with {number(mean.mean)}{interval}."
        )
        return
    yield (
        f"{best} has the {extreme} value of “{metric.title}”, {number(mean.mean)}{interval}, "
        f"{_certainty(study, best).replace('longer than', 'better than')}."
    )
    worst = _weakest(study, best)
    if worst:
        yield f"It is weakest in {worst}."


def _weakest(study: Study, model: str) -> str | None:
    by_sample: dict[str, list[RunRow]] = {}
    for run in study.runs[model]:
        by_sample.setdefault(run.sample_name, []).append(run)
    means = {name: study.mean(study.primary, runs) for name, runs in by_sample.items()}
    known_means = {name: mean.mean for name, mean in means.items() if mean}
    if len(known_means) < 2:  # noqa: PLR2004 -- of one there is no weakest
        return None
    sign = 1 if study.primary.higher_is_better else -1
    name = min(known_means, key=lambda sample: sign * known_means[sample])
    return f"{name} ({number(known_means[name])})"
