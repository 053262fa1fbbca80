"""Writes the table of docs/engines.md: what one machine drives, what a quota allows, what it costs.

    python tools/engines.py

Speed and memory are those measured in docs/dev/performance.md; prices are dated list prices.
"""

import re
import sys
from pathlib import Path

from socratic_bench.studies.sweep.estimate import CALLS_PER_S

ROOT = Path(__file__).resolve().parents[1]
PAGE, PERFORMANCE = ROOT / "docs/engines.md", ROOT / "docs/dev/performance.md"
# USD in us-east-1, Linux on x86, as published in spring 2026 for Fargate, Lambda and EKS.
PRICES_OF = "2026-04"
VCPU_HOUR, GB_HOUR, SPOT_SHARE = 0.04048, 0.004445, 0.3
LAMBDA_GB_S, LAMBDA_REQUEST, CLUSTER_HOUR = 0.0000166667, 0.0000002, 0.10
# The sweep that is reckoned: runs, turns, the quota of the model under test, seconds a turn.
RUNS, TURNS, QUOTA_RPM, TURN_S = 1000, 20, 1000, 6.0
SHARDS_AT_ONCE, TASK_VCPU, TASK_GB, LAMBDA_GB, LAMBDA_AT_ONCE = 4, 0.5, 1.0, 0.5, 100


def memory_mb() -> tuple[float, float]:
    """The median peaks of one dialogue and of 200 at once."""
    text = PERFORMANCE.read_text()
    one, many = (
        float(re.search(rf"^\| {name} \| peak memory, MB \| \S+ \| (\S+)", text, re.MULTILINE)[1])
        for name in ("one dialogue of 40 turns at 300 ms", "200 dialogues at once")
    )
    return one, many


def table() -> str:
    one_mb, many_mb = memory_mb()
    at_quota_h = RUNS * TURNS / QUOTA_RPM / 60
    task_usd = TASK_VCPU * VCPU_HOUR + TASK_GB * GB_HOUR
    batch_usd = SHARDS_AT_ONCE * at_quota_h * task_usd
    run_s = TURNS * TURN_S
    # A function waits for a quota, too, while its time is billed.
    busy_s = max(run_s, at_quota_h * 3600 * LAMBDA_AT_ONCE / RUNS)
    lambda_usd = RUNS * (busy_s * LAMBDA_GB * LAMBDA_GB_S + LAMBDA_REQUEST)
    rows = [
        ("one machine", "0", "the quota is below what it drives: nearly always"),
        (f"Slurm, {SHARDS_AT_ONCE} tasks", "0", "you have a cluster and a shared folder"),
        (
            f"AWS Batch on Fargate, {SHARDS_AT_ONCE} shards",
            f"{batch_usd:.2f} (Spot about {SPOT_SHARE * batch_usd:.2f})",
            "nothing should run between sweeps",
        ),
        (
            f"Kubernetes, {SHARDS_AT_ONCE} pods",
            f"{batch_usd:.2f} + {CLUSTER_HOUR * at_quota_h:.2f} for EKS",
            "you have a cluster",
        ),
        (
            f"Lambda, {LAMBDA_AT_ONCE} runs at a time",
            f"{lambda_usd:.2f}",
            "single runs of under 15 minutes",
        ),
    ]
    n_requests = RUNS * TURNS
    text = (
        f"{RUNS:,} runs of {TURNS} turns are {n_requests:,} requests to the model under test. At a "
        f"quota of {QUOTA_RPM:,} requests a minute they take {at_quota_h * 60:.0f} minutes on any "
        f"engine. One process drives about {CALLS_PER_S:.0f} calls a second "
        f"({CALLS_PER_S * 60:,.0f} a minute) in {many_mb:.0f} MB with 200 runs at once "
        f"({one_mb:.0f} MB with one). Prices: list prices of us-east-1, {PRICES_OF}, "
        "without models."
    )
    lines = [
        text,
        "",
        "| engine | compute, USD | fits if |",
        "|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    return "\n".join(lines)


def main() -> None:
    text = PAGE.read_text()
    begin, end = "<!-- engines -->", "<!-- end of engines -->"
    before, rest = text.split(begin)
    PAGE.write_text(f"{before}{begin}\n{table()}\n{end}{rest.split(end)[1]}")


if __name__ == "__main__":
    sys.exit(main())
