"""Settings in which runs differ: regions, tiers, temperatures, the hour of the day."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from socratic_bench.documents.usage import Percentiles
from socratic_bench.studies.report.charts import extent, intervals
from socratic_bench.studies.report.leaderboard import MODEL, mark, places_of, shown
from socratic_bench.studies.report.parts import (
    UNKNOWN,
    Chart,
    Figure,
    Section,
    columns,
    number,
    words,
)
from socratic_bench.studies.report.rows import RunRow
from socratic_bench.studies.report.study import Study

HOURS = 3
# Where the service's regions are, by the beginning of their names.
_REGIONS_IN = {
    "America/New_York": "us-east-1 us-east-2 us-gov-east ca-central",
    "America/Los_Angeles": "us-west us-gov-west",
    "America/Edmonton": "ca-west",
    "America/Mexico_City": "mx",
    "America/Sao_Paulo": "sa-east",
    "Europe/Dublin": "eu-west-1",
    "Europe/London": "eu-west-2",
    "Europe/Paris": "eu-west-3",
    "Europe/Stockholm": "eu-north",
    "Europe/Rome": "eu-south-1",
    "Europe/Madrid": "eu-south-2",
    "Europe/Berlin": "eu-central-1",
    "Europe/Zurich": "eu-central-2",
    "Asia/Jerusalem": "il",
    "Asia/Bahrain": "me-south",
    "Asia/Dubai": "me-central",
    "Africa/Johannesburg": "af",
    "Asia/Tokyo": "ap-northeast-1 ap-northeast-3",
    "Asia/Seoul": "ap-northeast-2",
    "Asia/Hong_Kong": "ap-east-1",
    "Asia/Taipei": "ap-east-2",
    "Asia/Kolkata": "ap-south-1 ap-south-2",
    "Asia/Singapore": "ap-southeast-1",
    "Australia/Sydney": "ap-southeast-2",
    "Asia/Jakarta": "ap-southeast-3",
    "Australia/Melbourne": "ap-southeast-4",
    "Asia/Kuala_Lumpur": "ap-southeast-5",
    "Pacific/Auckland": "ap-southeast-6",
    "Asia/Bangkok": "ap-southeast-7",
}
ZONES = {region: zone for zone, regions in _REGIONS_IN.items() for region in regions.split()}


def settings(study: Study) -> Section | None:
    """A figure for each setting that has several values in these runs."""
    figures = [_figure(study, title, value) for title, value in _READ]
    known = [figure for figure in figures if figure]
    if not known:
        return None
    return Section(
        name="settings",
        title="Settings",
        paragraphs=[
            "What differed between runs, one setting at a time; nothing else is held equal."
        ],
        figures=known,
    )


def _figure(study: Study, title: str, value: Callable[[RunRow], str | None]) -> Figure | None:
    values = sorted(
        {known for run in study.rows.runs if (known := value(run)) is not None}, key=_order
    )
    if len(values) < 2:  # noqa: PLR2004 -- one value tells nothing
        return None
    cells = [
        (model, one, [run for run in runs if value(run) == one])
        for model, runs in study.runs.items()
        for one in values
    ]
    metric = study.primary
    rows = [[model, one, *_told(study, runs)] for model, one, runs in cells if runs]
    data = [
        mark(one, model, found, shown(found, places_of(metric)), panel=model)
        for model, one, runs in cells
        if model in study.drawn and (found := study.mean(metric, runs))
    ]
    titles = ("Runs", metric.title, "Last byte, s, p50", "p99")
    name = title.lower().replace(" ", "-")
    return Figure(
        caption=f"By {title.lower()}",
        columns=columns(MODEL, words(title), *titles),
        rows=rows,
        chart=Chart(
            name=f"settings-{name}",
            title=f"{metric.title} by {title.lower()}{study.drawn_words}",
            description="For each model and value, the mean with its 95 % interval. The table has "
            "the figures.",
            specs=intervals(data, study.ranked, metric.title, extent(metric.low, metric.high)),
        )
        if data
        else None,
    )


def _told(study: Study, runs: list[RunRow]) -> Iterator[str]:
    metric = study.primary
    times = Percentiles.of([turn.latency_ms for run in runs for turn in run.turns])
    yield str(len(runs))
    yield shown(study.mean(metric, runs), places_of(metric))
    yield number(times.p50 / 1000) if times else UNKNOWN
    yield number(times.p99 / 1000) if times else UNKNOWN


def _order(value: str) -> tuple[float, str]:
    try:
        return float(value), value
    except ValueError:
        return 0.0, value


def _input(run: RunRow, name: str) -> str | None:
    """What it was set to; what was left at its default is told by that word."""
    inputs = run.document.get("inputs")
    if not inputs or name not in inputs:
        return None
    return "default" if inputs[name] is None else str(inputs[name])


def _hours(run: RunRow) -> str | None:
    """The hours of a day, where the run's region is, in which it began."""
    began, region = run.at("timestamps.started_at"), str(run.at("inputs.region") or "")
    zone = next(
        (ZONES[one] for one in sorted(ZONES, key=len, reverse=True) if region.startswith(one)), None
    )
    if began is None or zone is None:
        return None
    try:
        hour = datetime.fromisoformat(began).astimezone(ZoneInfo(zone)).hour
    except (ZoneInfoNotFoundError, ValueError):
        return None
    first = hour - hour % HOURS
    return f"{first:02d} to {first + HOURS:02d}"


_READ: Sequence[tuple[str, Callable[[RunRow], str | None]]] = (
    ("Region", partial(_input, name="region")),
    ("Service tier", partial(_input, name="service_tier")),
    ("Temperature", partial(_input, name="temperature")),
    ("Local hour", _hours),
)
