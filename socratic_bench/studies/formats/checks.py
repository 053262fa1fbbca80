"""What a pipeline decides by: a check for each run and gate, with its reason and a turn."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from socratic_bench.documents.comparison import ComparisonDocument
from socratic_bench.documents.run import RunResult
from socratic_bench.documents.sweep import CellRow, FigureGate, Mean, SweepDocument
from socratic_bench.errors import EXIT_GATE, BenchError
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.runs.gates import metric_at
from socratic_bench.settings import Gate
from socratic_bench.storage.stores import Region
from socratic_bench.studies.gates import missed_drops, missed_gates
from socratic_bench.studies.reading import read_single
from socratic_bench.studies.sweep.sweep import SweepResult

LONGEST_QUOTE = 2000
SIGNS = {"under": ">=", "over": "<="}
NO_VALUE = "\u2013"
QuoteOf = Callable[[str], str]


class Check(Struct, frozen=True, kw_only=True):
    """One case: `failed` is a gate that was missed, `error` a run that could not be completed.
    `quote` has the words of a turn in which the model fell short.
    """

    group: str
    name: str
    outcome: Literal["passed", "failed", "error", "skipped"] = "passed"
    reason: str = ""
    quote: str = ""
    seconds: float | None = None


class Checks(Struct, frozen=True, kw_only=True):
    """All checks of a run, sweep or comparison, and its table of models: `heads` and `rows`."""

    title: str
    checks: Sequence[Check]
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    sentences: Sequence[str] = ()

    @property
    def failures(self) -> list[Check]:
        return [check for check in self.checks if check.outcome in ("failed", "error")]


def checks_of_error(title: str, error: BenchError) -> Checks:
    """Of what could not start."""
    check = Check(group=title, name="start", outcome="error", reason=error.message)
    return Checks(title=title, checks=[check])


def checks_of_run(result: RunResult, benchmark: Benchmark) -> Checks:
    """The run itself, its gates, and whether enough was judged."""
    config, model = result.config, result.config.model
    quote = _quote_of_result(result, benchmark)
    error = result.error
    checks = [
        Check(
            group=model,
            name=f"run of {result.opening.id}",
            outcome="error" if error else "passed",
            reason=error.message if error else "",
            seconds=result.duration_s,
        )
    ]
    sentences = [*result.shortfalls] if not error else []
    for gate in config.all_gates:
        value = metric_at(gate.metric, result.metrics)
        reason = next((text for text in sentences if text.startswith(f"{gate.metric} is ")), "")
        is_missed = not error and (value is None or not gate.passes(value))
        outcome = "skipped" if error else "failed" if is_missed else "passed"
        if is_missed:
            sentences.remove(reason)
        checks.append(
            Check(
                group=model,
                name=_gate_name(gate),
                outcome=outcome,  # type: ignore[arg-type] # one of these
                reason=reason or (error.message if error else ""),
                quote=quote if is_missed else "",
            )
        )
    checks += [
        Check(group=model, name=f"judging {n}", outcome="failed", reason=text)
        for n, text in enumerate(sentences, start=1)
    ]
    headline = benchmark.headline(result.metrics) if result.metrics else ()
    rows = [[model, result.opening.id, str(result.n_turns), ", ".join(headline) or NO_VALUE]]
    heads = ("model", "sample", "turns", "result")
    return Checks(title=result.run_id, checks=checks, heads=heads, rows=rows)


def checks_of_sweep(document: SweepDocument, result: SweepResult, region: Region) -> Checks:
    """Each run of the grid, and each gate by model."""
    places = [place for place in (document.output_artifacts, document.s3_artifacts) if place]
    roots = [place.runs.removesuffix("raw/runs/").rstrip("/") for place in places]

    def quote_of(run_id: str) -> str:
        return _quote_of_stored(run_id, roots, region) if roots else ""

    worst = _worst_runs(document)
    rows = [result.rows.get(cell.key) for cell in result.cells]
    checks = [
        _check_of_cell(row, quote_of)
        if row
        else Check(
            group=document.sweep_id or "sweep",
            name=cell.key,
            outcome="skipped",
            reason="The run has not ended.",
        )
        for cell, row in zip(result.cells, rows, strict=True)
    ]
    if result.error:
        message = result.error.message
        checks.append(Check(group="sweep", name="complete", outcome="error", reason=message))
    checks += _checks_of_gates(
        document.figure_gates, lambda name: quote_of(worst[name]) if name in worst else ""
    )
    primary = document.primary_metric
    figures = [
        [
            str(group.value),
            f"{group.n_completed}/{group.n_runs}",
            *_figure_cells(primary.name if primary else "", group.metrics),
            NO_VALUE if group.cost_usd is None else f"{group.cost_usd:.4g}",
        ]
        for group in document.groups.get("model", ())
    ]
    return Checks(
        title=document.sweep_id or "sweep",
        checks=checks,
        heads=("model", "runs", primary.name if primary else "score", "95 % CI", "USD"),
        rows=figures,
        sentences=[f"{difference.summary}." for difference in document.differences],
    )


def checks_of_comparison(document: ComparisonDocument) -> Checks:
    """Each gate of each contender."""
    checks = [*_checks_of_gates(document.figure_gates, lambda _: "")]
    for gate in document.gates:
        limit = "" if gate.of == "mean" else f".{gate.of}"
        checks.append(
            Check(
                group=gate.name,
                name=f"drop of {gate.metric}{limit} <= {gate.max_drop:g}",
                outcome="passed" if gate.passed else "failed",
                reason=" ".join(missed_drops([gate])),
            )
        )
    checks += [
        Check(
            group=contender.model,
            name="runs",
            outcome="error",
            reason=f"No run of {contender.model} is complete.",
        )
        for contender in document.failed
    ]
    metric = document.primary_metric.name
    return Checks(
        title="comparison",
        checks=checks,
        heads=("model", "runs", metric, "95 % CI"),
        rows=[
            [contender.name, str(contender.n_runs), *_figure_cells(metric, contender.metrics)]
            for contender in document.contenders
        ],
        sentences=[f"{difference.summary}." for difference in document.differences],
    )


def _check_of_cell(row: CellRow, quote_of: QuoteOf) -> Check:
    values = [f"{name} {value}" for name, value in row.axes.items() if value is not None]
    is_gate = row.exit_code == EXIT_GATE
    return Check(
        group=str(row.axes.get("model", "run")),
        name=", ".join((*values, f"repeat {row.repeat}")),
        outcome="failed" if is_gate else "error" if row.exit_code else "passed",
        reason=(row.error.message if row.error else row.end_reason) if row.exit_code else "",
        quote=quote_of(row.run_id) if is_gate else "",
        seconds=row.duration_seconds,
    )


def _checks_of_gates(gates: Iterable[FigureGate], quote_of: QuoteOf) -> Iterator[Check]:
    for gate in gates:
        yield Check(
            group=gate.name,
            name=_gate_name(Gate(gate.gate, gate.bound, gate.side)),
            outcome="passed" if gate.passed else "failed",
            reason=" ".join(missed_gates([gate])),
            quote="" if gate.passed else quote_of(gate.name),
        )


def _gate_name(gate: Gate) -> str:
    return f"{gate.metric} {SIGNS[gate.side]} {gate.bound:g}"


def _worst_runs(document: SweepDocument) -> Mapping[str, str]:
    """By model, the id of its run with the worst value."""
    worst: dict[str, tuple[float, str]] = {}
    sign = 1 if document.primary_metric is None or document.primary_metric.higher_is_better else -1
    for run in document.runs:
        model = str(run.axes.get("model"))
        if run.value is not None and sign * run.value < worst.get(model, (float("inf"), ""))[0]:
            worst[model] = (sign * run.value, run.run_id)
    return {model: run_id for model, (_, run_id) in worst.items()}


def _figure_cells(name: str, metrics: Mapping[str, Mean]) -> tuple[str, str]:
    mean = metrics.get(name)
    if mean is None or mean.mean is None:
        return NO_VALUE, NO_VALUE
    has_limits = mean.low is not None and mean.high is not None
    return f"{mean.mean:.4g}", f"{mean.low:.4g} to {mean.high:.4g}" if has_limits else NO_VALUE


def _quote_of_result(result: RunResult, benchmark: Benchmark) -> str:
    for turn in result.turns:
        if not turn.replayed and benchmark.falls_short(result.config, turn):
            score = turn.verdict.overall_score if turn.verdict else None
            return _quote(turn.index, score, turn.prompt, turn.reply.message.text)
    return ""


def _quote_of_stored(run_id: str, roots: Sequence[str], region: Region) -> str:
    try:
        single = read_single(run_id, roots, region, None)
    except BenchError as error:  # it says so in place of the turn, and the gate still counts
        return f"The turn could not be read: {error.message}"
    for turn in single.run.turns:
        if not turn.is_replayed and single.falls_short(turn):
            return f"{run_id}, {_quote(turn.turn, turn.score, turn.said or '', turn.reply)}"
    return ""


def _quote(index: int, score: float | None, prompt: str, reply: str) -> str:
    points = "" if score is None else f", score {score:g}"
    texts = (text[:LONGEST_QUOTE] for text in (prompt, reply))
    return "turn {}{}\n\n> {}\n\n{}".format(index, points, *texts)
