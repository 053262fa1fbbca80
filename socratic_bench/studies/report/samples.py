"""Each sample with each model."""

from socratic_bench.studies.report.cell_charts import heat_map
from socratic_bench.studies.report.leaderboard import places_of
from socratic_bench.studies.report.palette import STEPS
from socratic_bench.studies.report.parts import (
    Chart,
    Figure,
    Section,
    columns,
    counted,
    number,
    words,
)
from socratic_bench.studies.report.study import Study

FIRST_DARK = 5


def samples(study: Study) -> Section | None:
    """Each sample with each model by the primary metric; what was not tested is blank."""
    names, metric = study.rows.samples, study.primary
    cells = {
        (name, model): study.mean(metric, [run for run in runs if run.sample == name])
        for name in names
        for model, runs in study.runs.items()
    }
    known = {place: found.mean for place, found in cells.items() if found}
    if not known:
        return None
    low = metric.low if metric.low is not None else min(known.values())
    high = metric.high if metric.high is not None else max(known.values())
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
        for (name, model), value in known.items()
    ]
    rows = [
        [
            name,
            *(
                number(known[name, model], places) if (name, model) in known else ""
                for model in study.ranked
            ),
        ]
        for name in names
    ]
    blank = len(cells) - len(known)
    said = f" {counted(blank, 'pair')} not tested: blank, which is not zero." if blank else ""
    return Section(
        name="samples",
        title=f"By {study.views.sample}",
        paragraphs=[f"{metric.title}; the stronger the shade, the higher.{said}"],
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
