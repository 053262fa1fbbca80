"""What a reader is told first: two sentences made of figures alone, and what was tested."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from socratic_bench.studies.figures import danger
from socratic_bench.studies.groups import differing
from socratic_bench.studies.report.endurance import Endurance
from socratic_bench.studies.report.parts import counted, listed, percent, usd
from socratic_bench.studies.report.rows import RunRow
from socratic_bench.studies.report.sentences import sentences
from socratic_bench.studies.report.study import Study

FEWEST_SAMPLES = 5


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
    lengths = sorted({run.stored.keys.n_turns for run in runs})
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
    known = [(run.at(path), run.stored.keys.n_turns) for run in runs]
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
    for path, values in differing(study.groups).items():
        told = (f"{', '.join(map(str, some))} for {name}" for name, some in values.items())
        yield f"The models were not played alike: {path} is {'; '.join(told)}."
    for model in study.ranked:
        yield from danger(model, study.primary.title.lower(), study.whole(model).two_groups)
    coverage = [run.at("judge.coverage") for run in study.rows.runs]
    lacking = sum(1 for one in coverage if one is not None and one < 1)
    if lacking:
        yield f"{counted(lacking, 'run')} had turns that no judge could score."
    is_of_parts = any(run.stored.parts for run in study.rows.runs)  # and so are intervals
    if len(study.rows.samples) < FEWEST_SAMPLES and not is_of_parts:
        yield _few(study)


def _few(study: Study) -> str:
    n, sample = len(study.rows.samples), study.views.sample
    if n == 1:
        return f"There is only one {sample}: nothing here tells of others."
    return f"{n} {sample}s are few: read the intervals as rough."
