"""Sections on conditions of runs: settings that differ between runs, and samples."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from socratic_bench.documents.usage import Percentiles
from socratic_bench.studies.report.chart_kinds import heat_map
from socratic_bench.studies.report.charts import STEPS, extent, intervals
from socratic_bench.studies.report.leaderboard import MODEL, chart_point, interval_text, places_of
from socratic_bench.studies.report.parts import (
    UNKNOWN,
    Chart,
    Figure,
    Section,
    columns,
    count_text,
    number,
    words,
)
from socratic_bench.studies.report.study import Study
from socratic_bench.studies.rows import RunRow

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


def _hours(run: RunRow) -> str | None:
    """The local hours, in the run's region, in which it started."""
    began, region = run.at("timestamps.started_at"), str(run.at("inputs.region") or "")
    zone = next(
        (
            ZONES[prefix]
            for prefix in sorted(ZONES, key=len, reverse=True)
            if region.startswith(prefix)
        ),
        None,
    )
    if began is None or zone is None:
        return None
    try:
        hour = datetime.fromisoformat(began).astimezone(ZoneInfo(zone)).hour
    except (ZoneInfoNotFoundError, ValueError):
        return None
    first = hour - hour % HOURS
    return f"{first:02d} to {first + HOURS:02d}"


def _input(run: RunRow, name: str) -> str | None:
    """The value of a setting; "default" if it was not set."""
    inputs = run.document.get("inputs")
    if not inputs or name not in inputs:
        return None
    return "default" if inputs[name] is None else str(inputs[name])


_READ: Sequence[tuple[str, Callable[[RunRow], str | None]]] = (
    ("Region", partial(_input, name="region")),
    ("Service tier", partial(_input, name="service_tier")),
    ("Temperature", partial(_input, name="temperature")),
    ("Local hour", _hours),
)
FIRST_DARK = 5


def settings(study: Study) -> Section | None:
    """A figure for each setting with several values in these runs."""
    figures = [_figure(study, title, value) for title, value in _READ]
    shown_figures = [figure for figure in figures if figure]
    if not shown_figures:
        return None
    return Section(
        name="settings",
        title="Settings",
        paragraphs=[
            "What differed between runs, one setting at a time; nothing else is held equal."
        ],
        figures=shown_figures,
    )


def _figure(study: Study, title: str, value: Callable[[RunRow], str | None]) -> Figure | None:
    values = sorted(
        {setting for run in study.rows.runs if (setting := value(run)) is not None}, key=_order
    )
    if len(values) < 2:  # noqa: PLR2004 -- one value tells nothing
        return None
    cells = [
        (model, setting, [run for run in runs if value(run) == setting])
        for model, runs in study.runs.items()
        for setting in values
    ]
    metric = study.primary
    rows = [
        [model, setting, *_setting_cells(study, runs)] for model, setting, runs in cells if runs
    ]
    data = [
        chart_point(setting, model, mean, interval_text(mean, places_of(metric)), panel=model)
        for model, setting, runs in cells
        if model in study.panel_models and (mean := study.mean(metric, runs))
    ]
    titles = ("Runs", metric.title, "Last byte, s, p50", "p99")
    name = title.lower().replace(" ", "-")
    return Figure(
        caption=f"By {title.lower()}",
        columns=columns(MODEL, words(title), *titles),
        rows=rows,
        chart=Chart(
            name=f"settings-{name}",
            title=f"{metric.title} by {title.lower()}{study.models_note}",
            description="For each model and value, the mean with its 95 % interval. The table has "
            "the figures.",
            specs=intervals(data, study.ranked, metric.title, extent(metric.low, metric.high)),
        )
        if data
        else None,
    )


def _order(value: str) -> tuple[float, str]:
    try:
        return float(value), value
    except ValueError:
        return 0.0, value


def _setting_cells(study: Study, runs: list[RunRow]) -> Iterator[str]:
    metric = study.primary
    times = Percentiles.of([turn.latency_ms for run in runs for turn in run.turns])
    yield str(len(runs))
    yield interval_text(study.mean(metric, runs), places_of(metric))
    yield number(times.p50 / 1000) if times else UNKNOWN
    yield number(times.p99 / 1000) if times else UNKNOWN


def samples(study: Study) -> Section | None:
    """The primary metric of each sample and model; pairs without runs are blank."""
    names, metric = study.rows.samples, study.primary
    cells = {
        (name, model): study.mean(metric, [run for run in runs if run.sample_name == name])
        for name in names
        for model, runs in study.runs.items()
    }
    means = {place: mean.mean for place, mean in cells.items() if mean}
    if not means:
        return None
    low = metric.low if metric.low is not None else min(means.values())
    high = metric.high if metric.high is not None else max(means.values())
    places = places_of(metric)
    data = [
        {
            "row": name,
            "column": model,
            "text": number(value, places),
            "step": (step := _step(value, low, high)),
            "is_dark": step >= FIRST_DARK,
            "tip": f"{model} in {name}: {number(value, places)}",
        }
        for (name, model), value in means.items()
    ]
    rows = [
        [
            name,
            *(
                number(means[name, model], places) if (name, model) in means else ""
                for model in study.ranked
            ),
        ]
        for name in names
    ]
    blank = len(cells) - len(means)
    remark = f" {count_text(blank, 'pair')} not tested: blank, which is not zero." if blank else ""
    return Section(
        name="samples",
        title=f"By {study.views.sample}",
        paragraphs=[f"{metric.title}; the stronger the shade, the higher.{remark}"],
        figures=[
            Figure(
                caption=metric.title,
                columns=columns(words(study.views.sample.capitalize()), *study.ranked),
                rows=rows,
                chart=Chart(
                    name="samples",
                    title=f"{metric.title} by {study.views.sample} and model",
                    description="A cell for each pair that was tested, with its figure. Blank: "
                    "not tested.",
                    specs=heat_map(data, names, study.ranked),
                ),
            )
        ],
    )


def _step(value: float, low: float, high: float) -> int:
    share = (value - low) / (high - low) if high > low else 1.0
    return min(len(STEPS) - 1, max(0, int(share * len(STEPS))))
