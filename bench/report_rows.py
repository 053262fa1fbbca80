"""The rows of reports: a thousand runs as one file, and what a browser makes of it."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.contenders import COMMAND, ROOT, environment
from bench.many_runs import make
from bench.row import Plan, Row, Say, absolute

TURNS, LETTERS = 40, 600
MEGABYTE = 1_000_000
ROUNDS = 3


def reports(plan: Plan, say: Say) -> Iterator[Row]:
    """Whole processes, from before their start to after their end."""
    name = f"report of {plan.report_runs:,} runs of {TURNS} turns"
    rounds = min(plan.many_rounds, ROUNDS)
    say(f"{name}, {rounds} rounds ...")
    with tempfile.TemporaryDirectory() as place:
        folder, path = Path(place) / "runs", Path(place) / "report.html"
        make(folder, plan.report_runs, TURNS, LETTERS)
        words = ("report", str(folder), "--html", str(path), "--max-size", "100MB", "-q")
        times = []
        for _ in range(rounds):
            began_s = time.monotonic()
            subprocess.run(
                [*COMMAND, *words], env=environment(""), cwd=ROOT, check=True, capture_output=True
            )
            times.append(time.monotonic() - began_s)
        yield absolute(name, "wall seconds to make", "s", (60.0, 30.0), times)
        size_mb = path.stat().st_size / MEGABYTE
        yield absolute(name, "size", "MB", (30.0, 25.0), [size_mb])
        shown = [_first_screen_s(path) for _ in range(rounds)]
        yield absolute(name, "seconds to the first screen, Chromium", "s", (2.0, 1.0), shown)


def _first_screen_s(path: Path) -> float:
    """In a browser that is open already: from the request to a picture of the page."""
    words = [sys.executable, "-m", "bench.first_screen", str(path)]
    found = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)
    return float(found.stdout)
