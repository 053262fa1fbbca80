"""The report as a whole: its opening (the result, facts, notices) and its sections in order."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from socratic_bench.documents.calibration import CorrectedFigures
from socratic_bench.documents.judge_status import agreement_text
from socratic_bench.statistics.survival import FEWEST_OF_TIMES
from socratic_bench.studies.figures import (
    danger,
    mean_of,
    notices_on_times,
    notices_on_unjudged,
)
from socratic_bench.studies.groups import differing_conditions
from socratic_bench.studies.report.breakdown import (
    breaking_turns,
    by_turn,
    events,
    failures,
    findings,
    kinds,
    samples,
    survival,
)
from socratic_bench.studies.report.differences import differences, result_sentences
from socratic_bench.studies.report.judges import jury, labels_section
from socratic_bench.studies.report.leaderboard import (
    axes,
    board,
    cost,
    groups,
    latency,
)
from socratic_bench.studies.report.parts import Section, count_text, listed, percent, usd
from socratic_bench.studies.report.patches import patches
from socratic_bench.studies.report.study import Study
from socratic_bench.studies.report.tasks import tasks
from socratic_bench.studies.rows import RunRow

NO_STATS = "There are no intervals: install stats for intervals (pip install '.[stats]')."


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


def report_of(study: Study, corrected: CorrectedFigures | None = None) -> Report:
    """The report, without sections that have no data. `corrected` has figures by labels."""
    candidates = (
        differences(study),
        by_turn(study),
        breaking_turns(study),
        board(study),
        *tasks(study),
        *patches(study),
        *kinds(study),
        samples(study),
        axes(study),
        failures(study),
        cost(study),
        survival(study),
        events(study),
        *findings(study),
        groups(study),
        latency(study),
        jury(study),
        labels_section(corrected),
    )
    is_timed = bool(study.survival)
    return Report(
        opening=Opening(
            title=f"How long a model {study.views.endures}" if is_timed else study.primary.title,
            sentences=[*result_sentences(study)],
            facts=[*_facts(study, is_labelled=corrected is not None)],
            notices=[*_notices(study)],
        ),
        models=study.ranked,
        sections=[section for section in candidates if section],
    )


def _facts(study: Study, *, is_labelled: bool) -> Iterator[tuple[str, str]]:
    runs = study.rows.runs
    yield "Models", f"{len(study.ranked)}, {count_text(len(runs), 'complete run')}"
    failed = len(study.rows.failed)
    if failed:
        yield "Failed", f"{count_text(failed, 'run')}, in no figure but those of failures"
    yield f"{study.views.sample}s".capitalize(), str(len(study.rows.samples))
    lengths = sorted({run.n_turns for run in runs})
    turns = str(lengths[0]) if len(lengths) == 1 else f"{lengths[0]} to {lengths[-1]}"
    yield "Turns per run", f"{turns}, counted from 0"
    yield "Judge", _judges(study, is_labelled=is_labelled)
    for fact in study.views.facts:
        value = _share(runs, fact.path) if fact.is_share else _values(runs, fact.path)
        if value:
            yield fact.title, fact.with_unit(value)
    days = sorted({str(run.at("timestamps.started_at") or "")[:10] for run in runs} - {""})
    if days:
        yield "Date", days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
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
        return f"$0 (simulated; {text} at list prices)"
    return text


def _notices(study: Study) -> Iterator[str]:
    yield from _notices_on_intervals(study)
    if study.varied:
        names = listed([name.replace("_", " ") for name in study.varied.values()])
        yield f"Runs of one model differ in {names}: each has its own row."
    for path, values in differing_conditions(study.groups).items():
        if path not in study.varied:
            pairs = (f"{', '.join(map(str, models))} for {name}" for name, models in values.items())
            yield f"The models were run with different settings: {path} is {'; '.join(pairs)}."
    for model, runs in study.runs.items():
        mean = mean_of(runs, study.primary, study.design)
        yield from danger(model, study.primary.title.lower(), mean.two_groups)
        yield from notices_on_unjudged(model, (run.unjudged_differ_by for run in runs))
    coverage = [run.at("judge.coverage") for run in study.rows.runs]
    lacking = sum(1 for share in coverage if share is not None and share < 1)
    if lacking:
        yield f"{count_text(lacking, 'run')} had turns that no judge could score."
    yield from _too_short(study)
    yield from _low_ends(study)
    if len(study.rows.samples) == 1 and not any(run.parts for run in study.rows.runs):
        yield f"There is only one {study.views.sample}: the result may not hold for others."


def _notices_on_intervals(study: Study) -> Iterator[str]:
    if not study.has_limits:
        yield NO_STATS
        return
    yield from notices_on_times(study.survival.values())
    n = min((times.n_clusters for times in study.survival.values()), default=FEWEST_OF_TIMES)
    if n < FEWEST_OF_TIMES:
        yield (
            f"Turns held have no CI: {count_text(n, study.views.sample)} "
            f"{'is' if n == 1 else 'are'} too few, {FEWEST_OF_TIMES} are needed."
        )


def _too_short(study: Study) -> Iterator[str]:
    """Runs that are too short to show an event that begins in their second half."""
    path = study.views.event_turns
    turns = (
        [(run.n_turns, run.at(path) or 0) for run in study.rows.runs if run.times] if path else []
    )
    short = [(n, least) for n, least in turns if n < 2 * least]
    if short:
        n, least = min(short)
        yield (
            f"{count_text(len(short), 'run')} of {n} turns or so are short. A {study.views.breaks} "
            f"takes at least {least} turns, so one that begins after turn {max(0, n - least)} is "
            f"not visible. Run at least {2 * least} turns."
        )


def _low_ends(study: Study) -> Iterator[str]:
    """Runs whose last turns are low, but too few to tell whether that lasts."""
    times = [(run, run.times.get(study.ordering.name)) for run in study.rows.runs]
    n = sum(time is not None and not time.is_event and time.at < run.n_turns for run, time in times)
    if n:
        yield (
            f"{count_text(n, 'run')} {'ends' if n == 1 else 'end'} in low turns, too few to be a "
            f"{study.views.breaks}: {'it counts' if n == 1 else 'they count'} as held until there."
        )
