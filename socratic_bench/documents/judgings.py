"""The document of runs that were judged again: how the verdicts differ from the first ones."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from socratic_bench.documents.agreement import Agreement
from socratic_bench.documents.error import ErrorEntry
from socratic_bench.documents.expected_jurors import ExpectedJuror
from socratic_bench.documents.scalars import Amount, BenchmarkName, Count, Model, RunId
from socratic_bench.documents.schemas import Document
from socratic_bench.documents.usage import CallUsage
from socratic_bench.turns import JuryRule
from socratic_bench.types import doc

Name = Annotated[str, doc("of the judging: judge, rubric, 8 hex digits of its settings")]
Mean = Annotated[float | None, doc("mean; null where nothing is known")]


class JudgingSettings(Struct, frozen=True, kw_only=True):
    """Who judges again, and how."""

    jurors: Annotated[list[Model], Meta(min_length=1, description="the judge models")]
    samples: Annotated[int, Meta(ge=1, description="verdicts of each on a turn")]
    quorum: Annotated[int, Meta(ge=1, description="jurors that must give a verdict")]
    rule: Annotated[JuryRule | None, doc("how jurors' scores become one; null with one judge")]
    context: Annotated[Count, doc("exchanges before a reply that are shown")]
    rubric: Annotated[str, doc("edition of the rubric")]
    rubric_sha256: Annotated[str, doc("fingerprint of its file")]


class Changed(Struct, frozen=True, kw_only=True):
    """One dimension, or the score, on the turns that both have judged."""

    n_turns: Annotated[Count, doc("turns with a verdict in both")]
    first: Mean
    second: Mean
    mean_difference: Annotated[
        float | None, doc("mean of the second less the first; null without turns")
    ]
    absolute_error: Annotated[Amount | None, doc("mean distance of both; null without turns")]
    alpha: Annotated[
        Annotated[float, Meta(ge=-1, le=1)] | None,
        doc(
            "Krippendorff's alpha of both, ordinal; null without the extra stats, or "
            "where all scores are the same"
        ),
    ]


class Figure(Struct, frozen=True, kw_only=True):
    """A metric over the runs in which it is known by both verdicts."""

    n_runs: Annotated[Count, doc("runs in which both know it")]
    first: Mean
    second: Mean


class JurorSpent(Struct, frozen=True, kw_only=True):
    """What one judge model has cost."""

    model: Model
    usage: Annotated[CallUsage, doc("its tokens and calls")]
    cost_usd: Annotated[Amount | None, doc("USD; null if a price is not known")]


class RejudgedRun(Struct, frozen=True, kw_only=True):
    """One run and what became of its new verdicts."""

    run_id: RunId
    source: Annotated[str, doc("the document of the run")]
    judging: Annotated[str | None, doc("folder of the verdicts; null: not begun")]
    status: Annotated[
        Literal["completed", "partial", "failed", "left"],
        doc("left: what ended an earlier one kept it from being begun"),
    ]
    end_reason: Annotated[str | None, doc("how the judging ended; null: not begun")]
    n_turns: Annotated[Count, doc("turns to be judged")] = 0
    n_judged: Annotated[Count, doc("turns with a new verdict")] = 0
    first: Annotated[dict[str, float | None], doc("metrics by the first verdicts")] = field(
        default_factory=dict
    )
    second: Annotated[dict[str, float | None], doc("the same by the new verdicts")] = field(
        default_factory=dict
    )


class JudgingsDocument(Document, frozen=True, kw_only=True):
    """Stored runs that were judged again."""

    kind: Literal["judgings"] = "judgings"
    benchmark: BenchmarkName
    name: Name
    settings: Annotated[JudgingSettings, doc("who judges again, and how")]
    n_runs: Annotated[Count, doc("runs that were named")]
    n_judged_runs: Annotated[Count, doc("runs whose judging is complete")]
    dimensions: Annotated[
        dict[str, Changed],
        doc("by dimension, and overall_score: how new and first verdicts differ"),
    ]
    agreement: Annotated[
        dict[str, Agreement],
        doc("by dimension, and overall_score: how far the new jurors agree; empty with one judge"),
    ]
    figures: Annotated[dict[str, Figure], doc("by metric: means over runs, old and new")]
    runs: Annotated[list[RejudgedRun], doc("run by run")]
    jurors: Annotated[list[JurorSpent], doc("what each judge model has cost")]
    cost_usd: Annotated[
        Amount | None, doc("USD in all, of earlier processes, too; null: not known")
    ]
    notices: Annotated[list[str], doc("what people should know of it")]
    error: Annotated[ErrorEntry | None, doc("what ended it early; null: nothing")]


class JudgingsDryRun(Document, frozen=True, kw_only=True):
    """What it would take to judge stored runs again."""

    kind: Literal["judgings_dry_run"] = "judgings_dry_run"
    benchmark: BenchmarkName
    name: Name
    settings: Annotated[JudgingSettings, doc("who would judge, and how")]
    n_runs: Annotated[Count, doc("runs that were named")]
    n_turns: Annotated[Count, doc("turns that would be judged")]
    jurors: Annotated[list[ExpectedJuror], doc("what each judge model would take")]
    cost_usd: Annotated[Amount | None, doc("USD as expected; null if a price is not known")]
    low_usd: Annotated[Amount | None, doc("USD if reasons are short; null as above")]
    high_usd: Annotated[Amount | None, doc("USD if reasons are long; null as above")]
    duration_seconds: Annotated[Amount, doc("seconds that are expected")]
    covers_high: Annotated[bool | None, doc("whether --max-cost-usd covers it; null without one")]
