"""One row of a sweep's index, from the document of a cell's run: just printed, or stored."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from socratic_bench.concurrency import convert
from socratic_bench.documents.run import RunDocument, RunResult
from socratic_bench.documents.sweep import CellRow
from socratic_bench.errors import EXIT_GATE
from socratic_bench.ports.benchmark import Benchmark, MetricInfo
from socratic_bench.ports.parts import Views
from socratic_bench.runs.gates import metric_at
from socratic_bench.studies.sweep.grid import Cell
from socratic_bench.studies.sweep.judge_variance import judge_variances


def row_of_result(cell: Cell, result: RunResult, benchmark: Benchmark) -> CellRow:
    """How a cell's run ended just now."""
    document = RunDocument.of(result).printed
    metrics = (*benchmark.metrics, *result.opening.metrics)
    return _row(cell, document, metrics, benchmark.views, exit_code=result.exit_code)


def row_of_curated(cell: Cell, body: bytes, benchmark: Benchmark) -> CellRow | None:
    """How a cell's run ended by its curated file; `None` if that is none."""
    try:
        document = msgspec.json.decode(body)
        exit_code = EXIT_GATE if document["error"] else 0
        return _row(cell, document, benchmark.metrics, benchmark.views, exit_code=exit_code)
    except (msgspec.MsgspecError, KeyError, TypeError):
        return None


def _row(
    cell: Cell,
    document: Mapping[str, Any],
    infos: Sequence[MetricInfo],
    views: Views,
    *,
    exit_code: int,
) -> CellRow:
    """Raises `msgspec.ValidationError`, `KeyError` or `TypeError` for what is no run's document."""
    cost, times = document["cost"], document["timestamps"]
    total = cost and cost["total"]
    values = document["metrics"]
    known = {one.name: metric_at(one.name, values) for one in infos}
    timed = [one for one in infos if one.censored_by]
    return convert(
        {
            "cell": cell.key,
            "axes": dict(cell.values),
            "repeat": cell.repeat,
            "exit_code": exit_code,
            "metrics": known,
            "censored": [one.name for one in timed if metric_at(one.censored_by or "", values)],
            "judge_variance": judge_variances(document, views),
            "exposures": views.exposures(document),
            "parts": views.parts(document),
            "votes": [one["votes"]["scores"] for one in document["turns"] if one.get("votes")]
            or None,
            "usage": document["usage"]["total"],
            "cost_usd": total and total["total_usd"],
            **times,
            **{name: document[name] for name in _SAME},
        },
        CellRow,
    )


# Keys that a run's document has, too.
_SAME = ("run_id", "seed", "status", "end_reason", "n_turns", "error")
