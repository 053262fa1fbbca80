"""What a reader is told first: two sentences made of figures alone, and what was tested."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Any

from msgspec import Struct

from socratic_bench.studies.figures import danger
from socratic_bench.studies.groups import differing_conditions
from socratic_bench.studies.report.parts import between, counted, listed, number, percent, usd
from socratic_bench.studies.report.study import Endurance, Study, time_of
from socratic_bench.studies.rows import RunRow

FEWEST_SAMPLES = 5
# The first two sentences of a report, made of figures alone.

MOST_NAMED = 3
TINY = 0.001


def sentences(study: Study, endurances: Mapping[str, Endurance]) -> Iterator[str]:
    """Which model is best and how sure that is, and where it breaks."""
    yield from _of_endurance(study, endurances) if endurances else _of_metric(study)


class Opening(Struct, frozen=True, kw_only=True):
    """`facts` are pairs of a title and what is so; `notices` what a reader has to know."""

    title: str
    sentences: Sequence[str]
    facts: Sequence[tuple[str, str]]
    notices: Sequence[str]


def opening(
    study: Study, endurances: Mapping[str, Endurance], *, is_labelled: bool = False
) -> Opening:
    return Opening(
        title=f"How long a model {study.views.endures}" if endurances else study.primary.title,
        sentences=[*sentences(study, endurances)],
        facts=[*_facts(study, is_labelled=is_labelled)],
        notices=[*_notices(study)],
    )


def _facts(study: Study, *, is_labelled: bool) -> Iterator[tuple[str, str]]:
    runs = study.rows.runs
    yield "Models", f"{len(study.ranked)}, {counted(len(runs), 'complete run')}"
    failed = len(study.rows.failed)
    if failed:
        yield "Failed", f"{counted(failed, 'run')}, in no figure but those of failures"
    yield f"{study.views.sample}s".capitalize(), str(len(study.rows.samples))
    lengths = sorted({run.n_turns for run in runs})
    turns = str(lengths[0]) if len(lengths) == 1 else f"{lengths[0]} to {lengths[-1]}"
    yield "Turns a run", f"{turns}, counted from 0"
    yield "Judge", _judges(study, is_labelled=is_labelled)
    for fact in study.views.facts:
        told = _share(runs, fact.path) if fact.is_share else _values(runs, fact.path)
        if told:
            yield fact.title, fact.with_unit(told)
    days = sorted({str(run.at("timestamps.started_at") or "")[:10] for run in runs} - {""})
    if days:
        yield "Played", days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    yield "Cost", _cost(runs)


def _judges(study: Study, *, is_labelled: bool) -> str:
    entries = [run.document.get("judge") for run in study.rows.runs]
    found = [one for one in entries if isinstance(one, Mapping)]
    if not found:
        return "none"
    names = [*dict.fromkeys(map(_jurors, found))]
    return f"{listed(names)}, {_calibrated(found, is_labelled=is_labelled)}"


def _calibrated(judges: Sequence[Mapping[str, Any]], *, is_labelled: bool) -> str:
    """Whether people's labels say how far these judges can be believed, and by what."""
    entries = [one.get("calibration") or {} for one in judges]
    fitting = [one for one in entries if one.get("status") == "calibrated"]
    if fitting:
        share = f" in {len(fitting)} of {counted(len(entries), 'run')}"
        whole = len(fitting) == len(entries)
        return f"calibrated by {_calibrations(fitting)}{'' if whole else share}"
    if is_labelled:
        return "calibrated by the labels below"
    if stale := [one for one in entries if one.get("status") == "stale"]:
        reasons = dict.fromkeys(str(reason) for one in stale for reason in one["reasons"])
        return f"calibrated otherwise by {_calibrations(stale)}: {'; '.join(reasons)}"
    return "not calibrated"


def _calibrations(entries: Sequence[Mapping[str, Any]]) -> str:
    return listed(sorted({str(one["by"]) for one in entries}))


def _jurors(entry: Mapping[str, object]) -> str:
    jurors = entry.get("jurors")
    names = [str(one["model"]) for one in jurors or ()] if isinstance(jurors, list) else []
    return f"a jury of {listed(names)}" if len(names) > 1 else str(entry.get("model"))


def _values(runs: Sequence[RunRow], path: str) -> str | None:
    known = {run.at(path) for run in runs} - {None}
    told = {f"{one:g}" if isinstance(one, float) else str(one) for one in known}
    return listed(sorted(told)) or None


def _share(runs: Sequence[RunRow], path: str) -> str | None:
    known = [(run.at(path), run.n_turns) for run in runs]
    counts = [(n, of) for n, of in known if n is not None and of]
    if not counts:
        return None
    return f"{percent(sum(n for n, _ in counts) / sum(of for _, of in counts))} of turns"


def _cost(runs: Sequence[RunRow]) -> str:
    costs = [run.at("cost.total.total_usd") for run in runs]
    known = [cost for cost in costs if cost is not None]
    if not known:
        return "not known"
    told = f"{usd(sum(known))} USD"
    if len(known) < len(costs):
        told += f" for {len(known)} of {counted(len(costs), 'run')}; the rest is not known"
    if all(run.at("cost.stand_in") for run in runs):
        told += ", simulated and not billed"
    return told


def _notices(study: Study) -> Iterator[str]:
    for path, values in differing_conditions(study.groups).items():
        told = (f"{', '.join(map(str, some))} for {name}" for name, some in values.items())
        yield f"The models were not played alike: {path} is {'; '.join(told)}."
    for model in study.ranked:
        yield from danger(model, study.primary.title.lower(), study.whole(model).two_groups)
    coverage = [run.at("judge.coverage") for run in study.rows.runs]
    lacking = sum(1 for one in coverage if one is not None and one < 1)
    if lacking:
        yield f"{counted(lacking, 'run')} had turns that no judge could score."
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
    found = endurances[best]
    mean, low, high = found.held.mean, found.held.low, found.held.high
    held = f"for {number(mean, 1)} of the first {found.horizon:g} turns on average"
    if low is not None or high is not None:
        held += f" (95 % interval {between(low, high, 1)})"
    elif found.n_late:
        held = f"without a {study.views.breaks} in the {found.horizon:g} turns of {_all(found.n)}"
    elif not found.n_events:
        held = f"through all {found.horizon:g} turns in {_all(found.n)}"
    if _all_tied(study):
        yield (
            f"These runs cannot tell which model {study.views.endures} longest: "
            f"{_together(study)}, and {best} stands first, as it does so {held}."
        )
    else:
        longest = " longest:" if len(study.ranked) > 1 else ""
        yield f"{best} {study.views.endures}{longest} {held}, {_certainty(study, best)}."
    yield f"{_breaks(study, best, endurances)}.{_late(endurances)}"


def _together(study: Study) -> str:
    n = len(study.ranked)
    return f"all {n} are tied" if n > 2 else "both are tied"  # noqa: PLR2004 -- both


def _sure_of(study: Study, found: Endurance) -> str:
    """For how many further runs those of a model speak in which it never broke."""
    share = found.without
    if share.low is None:
        return ""
    of_what = counted(found.n, "run")
    if share.n_clusters < found.n:
        samples = counted(share.n_clusters, study.views.sample)
        of_what = f"{samples}, which its {found.n} runs repeat,"
    least = f"at least {percent(share.low)} of further runs have none"
    return f"; from {of_what} one can be 95 % sure that {least}"


def _all_tied(study: Study) -> bool:
    return study.tiers is not None and len(study.tiers) == 1 and len(study.ranked) > 1


def _all(n: int) -> str:
    return "the only run" if n == 1 else f"all {n} runs"


def _certainty(study: Study, best: str) -> str:
    """How sure it is that the first is the first."""
    others = [model for model in study.ranked if model != best]
    if not others:
        return "with no other model to compare it with"
    p_values = study.p_values(study.ordering.name)
    known = {model: p_values.get((best, model)) for model in others}
    if not any(p is not None for p in known.values()):
        return "though nothing tells whether that is more than chance: it takes pairs of runs"
    if study.tiers and len(study.tiers[0]) > 1:
        return f"though these runs cannot tell it from {listed(_first(study.tiers[0][1:]))}"
    largest = max(p for p in known.values() if p is not None)
    whom = {1: "the other model", 2: "both others"}.get(len(others), f"all {len(others)} others")
    return f"and longer than {whom} by more than chance ({_p_at_most(largest)})"


def _p_at_most(largest: float) -> str:
    if largest < TINY:
        return "p under .001"
    bound = ceil(largest / TINY) * TINY
    return f"p at most {number(bound, 3).lstrip('0')}"


def _first(words: Sequence[str], also: str = "") -> list[str]:
    """A few of them, and how many more there are."""
    rest = len(words) - MOST_NAMED
    return [*words[:MOST_NAMED], *([f"{also}{rest} more"] if rest > 0 else [])]


def _breaks(study: Study, best: str, endurances: Mapping[str, Endurance]) -> str:
    """Where the first one breaks, and when the others do."""
    found = endurances[best]
    own = _own_breaks(study, best, found)
    others = [
        f"{model} in {one.n_events} of {counted(one.n, 'run')}{_when(one)}"
        for model, one in endurances.items()
        if model != best and one.n_events
    ]
    if not others:
        alone = len(endurances) == 1
        return own if found.n_events or alone else f"{own}; nor had one of any other model"
    return f"{own}. Others break: {'; '.join(_first(others, 'and '))}"


def _own_breaks(study: Study, best: str, found: Endurance) -> str:
    if not found.n_events:
        return f"No run of it had a {study.views.breaks}{_sure_of(study, found)}"
    own = f"It breaks in {found.n_events} of its {counted(found.n, 'run')}{_when(found)}"
    if found.n_events < found.n:
        own += f", most often in {_worst_sample(study, best)}"
    return own


def _late(endurances: Mapping[str, Endurance]) -> str:
    """What fell short at the end of runs, where nobody can say whether it would have lasted."""
    told = [
        f"{model} in {one.n_late} of {counted(one.n, 'run')}"
        for model, one in endurances.items()
        if one.n_late
    ]
    named = "; ".join(_first(told, "and "))
    return f" Under the threshold at the end, too late to count: {named}." if told else ""


def _when(found: Endurance) -> str:
    """At which turn the event comes: in all runs at once, or by when in half of all."""
    turns = {one.at for one in found.times if one.is_event}
    if len(turns) == 1:
        return f" at turn {turns.pop():g}"
    return "" if found.median is None else f", by turn {found.median:g} in half of all"


def _worst_sample(study: Study, model: str) -> str:
    """The sample in most of whose runs the event came, with their number."""
    events: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    for run in study.runs[model]:
        time = time_of(run, study.ordering)
        if time is not None:
            runs[run.sample_name] += 1
            events[run.sample_name] += time.is_event
    worst = max(sorted(runs), key=lambda one: events[one] / runs[one])
    return f"{worst} ({events[worst]} of {runs[worst]})"


def _of_metric(study: Study) -> Iterator[str]:
    metric, best = study.primary, study.ranked[0]
    found = study.mean(metric, study.runs[best])
    if found is None:
        yield f"Nothing is known of {metric.title.lower()}."
        return
    interval = f" (95 % interval {between(found.low, found.high)})" if found.low is not None else ""
    extreme = "highest" if metric.higher_is_better else "lowest"
    if _all_tied(study):
        yield (
            f"These runs cannot tell which model is best by “{metric.title}”: "
            f"{_together(study)}, and {best} stands first with {number(found.mean)}{interval}."
        )
        return
    yield (
        f"{best} has the {extreme} value of “{metric.title}”, {number(found.mean)}{interval}, "
        f"{_certainty(study, best).replace('longer than', 'better than')}."
    )
    worst = _weakest(study, best)
    if worst:
        yield f"It is weakest in {worst}."


def _weakest(study: Study, model: str) -> str | None:
    by_sample: dict[str, list[RunRow]] = {}
    for run in study.runs[model]:
        by_sample.setdefault(run.sample_name, []).append(run)
    found = {name: study.mean(study.primary, runs) for name, runs in by_sample.items()}
    known = {name: one.mean for name, one in found.items() if one}
    if len(known) < 2:  # noqa: PLR2004 -- of one there is no weakest
        return None
    sign = 1 if study.primary.higher_is_better else -1
    name = min(known, key=lambda one: sign * known[one])
    return f"{name} ({number(known[name])})"
