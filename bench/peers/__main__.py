"""`make bench-peers`: the 40-turn job in other programs, beside this one, at the same latency.

    python -m bench.peers [--runs 1] [--turns 40] [--latency-ms 300] [--page FILE]

Makes their environments under .bench/ on the first call, from the package index, with the versions
that bench/peers/*.txt pin. Every program plays the same dialogue between a tutor and a student and
has each of the tutor's replies judged. They take turns; the medians are shown.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.contenders import ROOT, Cost, cost_of, emulator, play
from bench.report import context, fill_in

HERE = Path(__file__).parent
PEERS = ("boto3", "inspect_ai", "deepeval")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--latency-ms", type=float, default=300.0)
    parser.add_argument("--environments", type=Path, default=ROOT / ".bench" / "peers")
    parser.add_argument("--page", type=Path, help="fill in its table, such as docs/performance.md")
    found = parser.parse_args()
    pythons = {name: _environment(found.environments / name, name) for name in PEERS}
    costs: dict[str, list[Cost]] = {"socratic-runner": [], **{name: [] for name in PEERS}}
    with emulator(found.latency_ms) as url:
        for _ in range(found.runs):
            costs["socratic-runner"].append(play(found.turns, url))
            for name, python in pythons.items():
                costs[name].append(_job(name, python, url, found.turns))
    path_s = 2 * found.turns * found.latency_ms / 1000
    lines = [
        "| program | wall | of the critical path | CPU | peak memory |",
        "|---|---|---|---|---|",
        *(_row(f"{name} {_version(name)}", path_s, costs[name]) for name in costs),
    ]
    print("\n".join(lines))
    if found.page:
        head = f"{context()} {found.turns} turns at {found.latency_ms:g} ms a call."
        fill_in(found.page, "bench-peers", "\n".join([head, "", *lines]))


def _environment(folder: Path, name: str) -> Path:
    """The interpreter of the peer's environment, which is made if it is not there."""
    python = folder / "bin" / "python"
    done = folder / ".done"
    pins = (HERE / f"{name}.txt").read_text()
    if not done.exists() or done.read_text() != pins:
        print(f"Installing {name} ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "-r", HERE / f"{name}.txt"], check=True)
        done.write_text(pins)
    return python


def _job(name: str, python: Path, url: str, turns: int) -> Cost:
    print(f"{name} ...", file=sys.stderr)
    os.environ.update(BENCH_TURNS=str(turns), DEEPEVAL_TELEMETRY_OPT_OUT="YES")
    words = [str(python), str(HERE / f"with_{name}.py")]
    cost, printed = cost_of(words, url)
    said = json.loads(printed.splitlines()[-1])
    if said != {"replies": turns, "verdicts": turns}:
        sys.exit(f"{name} did not do the whole job: {said}")
    return cost


def _version(name: str) -> str:
    if name == "socratic-runner":
        return ""
    return (HERE / f"{name}.txt").read_text().splitlines()[0].partition("==")[2]


def _row(name: str, path_s: float, costs: Sequence[Cost]) -> str:
    wall_s = median(cost.wall_s for cost in costs)
    cpu_s, peak_mb = median(c.cpu_s for c in costs), median(c.peak_mb for c in costs)
    ratio = wall_s / path_s
    return f"| {name.strip()} | {wall_s:.1f} s | {ratio:.3f} | {cpu_s:.2f} s | {peak_mb:.0f} MB |"


if __name__ == "__main__":
    main()
