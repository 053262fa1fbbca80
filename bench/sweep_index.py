"""The index of a sweep whose cells have all ended, without a single call."""

from pathlib import Path

import orjson

from bench.contenders import TUTOR
from cli.arguments import parse
from cli.sources import sources
from cli.sweep import build_parser
from socratic_bench.documents.plain import plain_keys
from socratic_bench.documents.sweep import CellRow, SweepFile
from socratic_bench.documents.usage import ActorUsage
from socratic_bench.studies.sweep.grid import run_id
from socratic_bench.studies.sweep.request import read_sweep
from socratic_bench.version import VERSION

SCENARIOS = ("ai-ethics", "career-change", "time-management", "ethical-dilemma", "honest-friend")
SWEEP_ID = "sweep-01K9ZN5V2E3T4R5Y6N7J8K9M0N"
METRICS = ("overall_score", "discipline", "help", "sustained_half_life")
ROWS = 100


def finished_cells(folder: Path, n_repeats: int) -> tuple[str, ...]:
    """Ten cells for each repeat; the words of the command that goes on with them."""
    words = (
        *("--models", TUTOR, f"{TUTOR}:b", "--scenarios", *SCENARIOS),
        *("--repeats", str(n_repeats), "--seed", "7", "--output-dir", str(folder), "--resume"),
    )
    flags, _ = parse(build_parser(), words)
    grid = read_sweep(flags, sources(flags))[0].grid
    place = folder / "sweeps" / SWEEP_ID
    (place / "cells").mkdir(parents=True)
    begun = SweepFile(
        sweep_id=SWEEP_ID,
        benchmark="socratic",
        identity=grid.identity(),
        seed=7,
        started_at="2026-11-01T00:00:00+00:00",
        runner_version=VERSION,
    )
    (place / "sweep.json").write_bytes(orjson.dumps(plain_keys(begun)))
    lines = [
        orjson.dumps(
            plain_keys(
                CellRow(
                    cell=cell.key,
                    run_id=run_id(begun, cell),
                    axes=dict(cell.values),
                    repeat=cell.repeat,
                    seed=cell.seed,
                    status="completed",
                    end_reason="max_turns",
                    exit_code=0,
                    metrics=dict.fromkeys(METRICS, 1.0 * (cell.seed % 10)),
                    n_turns=40,
                    usage=ActorUsage(calls=120, attempts=120, input_tokens=1, output_tokens=1),
                    cost_usd=0.25,
                    started_at="2026-11-01T00:00:00Z",
                    completed_at="2026-11-01T00:01:00Z",
                    duration_seconds=60.0,
                )
            )
        )
        for cell in grid.cells()
    ]
    for n in range(0, len(lines), ROWS):
        body = b"\n".join(lines[n : n + ROWS]) + b"\n"
        (place / "cells" / f"{n:026d}.jsonl").write_bytes(body)
    return words
